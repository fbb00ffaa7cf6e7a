//! The worked cases of the garden API's rules, [W1] – [W49], a row for each. What needs more than a row is told in `cases`.

use serde_json::{Value, json};

use super::cases::{ONE, change, core, garden, merge, refused, set, shoot};
use super::difference;
use super::garden::{Garden, text};

/// What becomes of a request.
enum Then {
    /// The object in the answer has these members.
    Has(Value),
    /// A finding about this field with this text.
    Refused(&'static str, &'static str),
}
use Then::{Has, Refused};

/// The garden of the cases.
async fn base() -> Garden {
    let mut garden = garden().await;
    let versions = ["1.36.0", "1.35.0", "1.34.1", "1.33.5", "1.32.9"].map(|version| json!({"version": version}));
    let profile = json!({"spec": {"kubernetes": {"versions": versions}}});
    set(&mut garden, "cloudprofiles", ("", "local"), profile);
    garden
}

/// The shoot of the cases, with changes.
fn one(patch: Value) -> Value {
    let mut shoot = shoot(json!({"spec": {"kubernetes": {"version": "1.33.5"}}}));
    merge(&mut shoot, patch);
    shoot
}

/// Pools in place of the shoot's: each is its pool with changes.
fn pools<const N: usize>(patches: [Value; N]) -> Value {
    let pools: Vec<Value> = patches
        .into_iter()
        .map(|patch| {
            let mut pool = one(json!({}))["spec"]["provider"]["workers"][0].clone();
            merge(&mut pool, patch);
            pool
        })
        .collect();
    json!({"spec": {"provider": {"workers": pools}}})
}

fn window(begin: &str, end: &str) -> Value {
    json!({"spec": {"maintenance": {"timeWindow": {"begin": begin, "end": end}}}})
}

/// What of `expected` an answer lacks.
fn lacks(expected: &Value, answer: &Value, at: &str) -> Vec<String> {
    match expected {
        Value::Object(members) => {
            let of = |key: &String| answer.get(key).unwrap_or(&Value::Null);
            let members = members.iter();
            members
                .flat_map(|(key, value)| lacks(value, of(key), &format!("{at}.{key}")))
                .collect()
        }
        _ => difference(expected, answer, at),
    }
}

#[track_caller]
fn check(case: &str, answer: Result<Value, gardener_apimachinery::ApiError>, then: &Then) {
    match (answer, then) {
        (Ok(answer), Has(expected)) => assert_eq!(lacks(expected, &answer, ""), Vec::<String>::new(), "{case}"),
        (Err(error), Refused(field, why)) => {
            let told = error.message();
            assert!(
                told.contains(&format!("{field}: ")) && told.contains(why),
                "{case}: {told}"
            );
        }
        (Ok(answer), Refused(..)) => panic!("{case} is accepted: {answer}"),
        (Err(error), Has(_)) => panic!("{case} is refused: {error}"),
    }
}

#[tokio::test]
async fn w1_to_w15_and_w31_to_w42_shoots_are_created() {
    let kubernetes = |version: &str| json!({"spec": {"kubernetes": {"version": version}}});
    let both = |mut one: Value, other: Value| {
        merge(&mut one, other);
        one
    };
    let rows = [
        (
            "W1",
            json!({}),
            Has(json!({"spec": {
                "purpose": "evaluation", "schedulerName": "default-scheduler",
                "kubernetes": {"kubeAPIServer": {
                    "requests": {"maxNonMutatingInflight": 400, "maxMutatingInflight": 200}, "eventTTL": "1h0m0s",
                    "encryptionConfig": {"provider": {"type": "aescbc"}},
                }},
            }})),
        ),
        (
            "W2",
            json!({}),
            Has(json!({"spec": {"kubernetes": {
                "kubeAPIServer": {"defaultNotReadyTolerationSeconds": 300, "defaultUnreachableTolerationSeconds": 300},
                "kubeControllerManager": {"nodeCIDRMaskSize": 24, "nodeMonitorGracePeriod": "40s"},
                "kubeProxy": {"mode": "IPTables"}, "kubeScheduler": {"profile": "balanced"},
            }}})),
        ),
        (
            "W3",
            json!({"spec": {"kubernetes": {"kubelet": {"maxPods": 250}}}}),
            Has(json!({"spec": {"kubernetes": {"kubeControllerManager": {"nodeCIDRMaskSize": 23}}}})),
        ),
        (
            "W4",
            json!({"spec": {"kubernetes": {"kubelet": {"maxPods": 300}, "kubeControllerManager": {"nodeCIDRMaskSize": 24}}}}),
            Refused(
                "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize",
                "kubelet or kube-controller-manager configuration incorrect",
            ),
        ),
        ("W6, the shortest", window("220000+0000", "223000+0000"), Has(json!({}))),
        (
            "W6, too short",
            window("220000+0000", "222959+0000"),
            Refused(
                "spec.maintenance.timeWindow",
                "time window must not be smaller than 30m0s",
            ),
        ),
        (
            "W7",
            window("220000+0000", "040001+0000"),
            Refused(
                "spec.maintenance.timeWindow",
                "time window must not be greater than 6h0m0s",
            ),
        ),
        (
            "W8",
            pools(["w1", "w2"].map(|name| json!({"name": name, "systemComponents": {"allow": false}}))),
            Refused("spec.provider.workers", "at least one active"),
        ),
        (
            "W9",
            pools([json!({"zones": ["a", "b", "c"]})]),
            Refused(
                "spec.provider.workers[0].maximum",
                "maximum node count should be greater than or equal to the number of zones",
            ),
        ),
        (
            "W10",
            pools([
                json!({"zones": ["a", "b"], "maximum": 1}),
                json!({"name": "w2", "zones": ["b", "a"], "maximum": 2}),
            ]),
            Has(json!({})),
        ),
        (
            "W11",
            pools([
                json!({"taints": [{"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}]}),
            ]),
            Refused("spec.provider.workers[0].taints[0].key", "reserved by gardener"),
        ),
        (
            "W12, three minors",
            both(
                kubernetes("1.35.0"),
                pools([json!({"kubernetes": {"version": "1.32.9"}})]),
            ),
            Has(json!({})),
        ),
        (
            "W12, four minors",
            both(
                kubernetes("1.36.0"),
                pools([json!({"kubernetes": {"version": "1.32.9"}})]),
            ),
            Refused(
                "spec.provider.workers[0].kubernetes.version",
                "at most three minor versions behind",
            ),
        ),
        (
            "W13",
            pools([json!({"kubernetes": {"version": "1.34.1"}})]),
            Refused(
                "spec.provider.workers[0].kubernetes.version",
                "must not be higher than control plane version",
            ),
        ),
        (
            "W14",
            json!({"spec": {
                "credentialsBindingName": null, "networking": null, "provider": {"workers": null},
                "kubernetes": {"kubeProxy": {"mode": "IPTables"}},
            }}),
            Refused("spec.kubernetes.kubeProxy", "should not be set for workerless"),
        ),
        (
            "W15",
            json!({"spec": {"purpose": "production", "addons": {"nginxIngress": {"enabled": true}}}}),
            Refused(
                "spec.addons",
                "can only be enabled on shoots with .spec.purpose=evaluation",
            ),
        ),
        (
            "W31",
            json!({"spec": {"cloudProfile": null, "cloudProfileName": "local"}}),
            Has(
                json!({"spec": {"cloudProfile": {"kind": "CloudProfile", "name": "local"}, "cloudProfileName": "local"}}),
            ),
        ),
        (
            "W32",
            json!({"spec": {"kubernetes": {"version": "1.34.1"}, "cloudProfile": null, "cloudProfileName": "local"}}),
            Refused("spec.cloudProfileName", "no longer supported"),
        ),
        (
            "W33",
            json!({"spec": {
                "kubernetes": {"version": "1.34.1"}, "credentialsBindingName": null, "secretBindingName": "creds",
            }}),
            Refused("spec.secretBindingName", ">= 1.34"),
        ),
        (
            "W42",
            json!({"spec": {"networking": {"pods": "100.64.0.0/12", "services": "100.64.0.0/13"}}}),
            Refused(
                "spec.networking.services",
                "shoot pod network intersects with shoot service network",
            ),
        ),
    ];
    for (case, patch, then) in rows {
        let mut garden = base().await;
        let mut sent = one(patch);
        sent["metadata"]["name"] = "two".into();
        check(case, garden.create(sent).await, &then);
    }
}

#[tokio::test]
async fn w5_a_window_is_a_full_hour() {
    let mut garden = base().await;
    let mut sent = one(json!({}));
    sent["metadata"]["name"] = "two".into();
    let shoot = garden.create(sent).await.unwrap();
    let window = &shoot["spec"]["maintenance"]["timeWindow"];
    let hour = |end: &str| -> u32 {
        let text = text(window, end);
        text.strip_suffix("0000+0000").unwrap().parse().unwrap()
    };
    assert_eq!((hour("/begin") + 1) % 24, hour("/end"), "{window}");
}

/// A change of the shoot: its case, what it is before, what changes, and what becomes of it.
type Row = (&'static str, Value, Value, Then);

#[tokio::test]
async fn w16_to_w30_shoots_are_changed() {
    let version = |version: &str| json!({"spec": {"kubernetes": {"version": version}}});
    let annotated = |operation: &str| json!({"metadata": {"annotations": {"gardener.cloud/operation": operation}}});
    let ended = |state: &str| json!({"status": {"lastOperation": {"type": "Create", "state": state, "progress": 100}}});
    let wider = || pools([json!({"maximum": 3})]);
    let confined = || json!({"spec": {"maintenance": {"confineSpecUpdateRollout": true}}});
    let operation = |value: Value| json!({"annotations": {"gardener.cloud/operation": value}});
    let with = |generation: i64, mut metadata: Value| {
        metadata["generation"] = generation.into();
        Has(json!({"metadata": metadata}))
    };
    let rows: Vec<Row> = vec![
        (
            "W16",
            version("1.32.9"),
            version("1.34.1"),
            Refused("spec.kubernetes.version", "cannot skip a minor version"),
        ),
        (
            "W17",
            json!({}),
            version("1.32.9"),
            Refused("spec.kubernetes.version", "downgrade is not supported"),
        ),
        (
            "W18",
            {
                let mut old = version("1.34.1");
                merge(&mut old, pools([json!({"kubernetes": {"version": "1.32.9"}})]));
                old
            },
            pools([json!({"kubernetes": {"version": "1.34.1"}})]),
            Has(json!({})),
        ),
        (
            "W19",
            json!({}),
            json!({"spec": {"provider": {"workers": null}}}),
            Refused(
                "spec.provider.workers",
                "cannot switch from a Shoot with workers to a workerless Shoot",
            ),
        ),
        (
            "W20, region",
            json!({}),
            json!({"spec": {"region": "us"}}),
            Refused("spec.region", "field is immutable"),
        ),
        (
            "W20, pods",
            json!({}),
            json!({"spec": {"networking": {"pods": "100.128.0.0/11"}}}),
            Refused("spec.networking.pods", "field is immutable"),
        ),
        (
            "W21",
            json!({}),
            json!({"spec": {"networking": {"ipFamilies": ["IPv6"]}}}),
            Refused("spec.networking.ipFamilies", "unsupported IP family update"),
        ),
        ("W22", json!({}), wider(), with(2, json!({}))),
        ("W23, rolled out later", confined(), wider(), with(1, json!({}))),
        (
            "W23, hibernated",
            confined(),
            json!({"spec": {"hibernation": {"enabled": true}}}),
            with(2, json!({})),
        ),
        (
            "W24, another operation",
            ended("Failed"),
            annotated("reconcile"),
            with(1, operation("reconcile".into())),
        ),
        (
            "W24, retry",
            ended("Failed"),
            annotated("retry"),
            with(2, operation(Value::Null)),
        ),
        (
            "W25",
            ended("Succeeded"),
            annotated("rotate-ca-start;reconcile"),
            with(2, operation("rotate-ca-start".into())),
        ),
        (
            "W26",
            {
                let mut old = ended("Succeeded");
                old["spec"] = json!({"provider": {"workersSettings": {"sshAccess": {"enabled": false}}}});
                old
            },
            annotated("rotate-ssh-keypair"),
            with(1, operation(Value::Null)),
        ),
        (
            "W27",
            {
                let mut old = ended("Succeeded");
                merge(&mut old, annotated("rotate-ca-start"));
                old
            },
            json!({"metadata": {"annotations": {"maintenance.gardener.cloud/operation": "rotate-ca-start"}}}),
            Refused("metadata.annotations", "must not have any equal operations"),
        ),
        (
            "W28",
            ended("Succeeded"),
            annotated("rotate-credentials-start;rotate-ca-start-without-workers-rollout"),
            Refused(
                "metadata.annotations[gardener.cloud/operation]",
                "is not permitted to be run together with",
            ),
        ),
        (
            "W29",
            ended("Succeeded"),
            annotated("rotate-ca-complete"),
            Refused(
                "metadata.annotations[gardener.cloud/operation]",
                "cannot complete CA rotation if .status.credentials.rotation.certificateAuthorities.phase is not 'Prepared'",
            ),
        ),
        (
            "W30",
            json!({}),
            json!({"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}}),
            Refused(
                "metadata.annotations[confirmation.gardener.cloud/force-deletion]",
                "when Shoot deletionTimestamp is nil",
            ),
        ),
    ];
    for (case, before, patch, then) in rows {
        let mut garden = base().await;
        let spec = before["spec"].clone();
        let old = if spec.is_null() {
            json!({})
        } else {
            json!({"spec": spec})
        };
        let created = garden.create(one(old)).await;
        created.unwrap_or_else(|error| panic!("{case}: {error}"));
        let late = json!({"status": before["status"], "metadata": {"annotations": before["metadata"]["annotations"]}});
        set(&mut garden, "shoots", ("garden-dev", "one"), late);
        check(case, garden.update(ONE, "", change(patch)).await, &then);
    }
}

#[tokio::test]
async fn w34_w35_w37_profiles_and_what_they_limit() {
    let profile = |versions: Value| {
        let mut profile = core("CloudProfile", ("", "other"), json!({}));
        profile["spec"] = json!({
            "type": "local", "kubernetes": {"versions": versions}, "regions": [{"name": "eu"}],
            "machineImages": [{"name": "linux", "versions": [{"version": "1.0.0"}]}],
            "machineTypes": [{"name": "m1", "cpu": "4", "gpu": "0", "memory": "8Gi"}],
        });
        profile
    };
    let mut garden = base().await;
    check(
        "W34",
        garden
            .create(profile(
                json!([{"version": "1.33.5", "expirationDate": "2099-01-01T00:00:00Z"}]),
            ))
            .await,
        &Refused(
            "spec.kubernetes.versions[].expirationDate",
            "expiration date of latest kubernetes version ('1.33.5') must not be set",
        ),
    );
    let supported = ["1.33.5", "1.33.4"].map(|version| json!({"version": version, "classification": "supported"}));
    check(
        "W35",
        garden.create(profile(json!(supported))).await,
        &Refused(
            "spec.kubernetes.versions[0]",
            "lifecycle stages must not overlap per minor version",
        ),
    );
    let limits = json!({"spec": {"limits": {"maxNodesTotal": 5}}});
    set(&mut garden, "cloudprofiles", ("", "local"), limits);
    for (case, pools, then) in [
        (
            "W37, minimum",
            pools([
                json!({"minimum": 4, "maximum": 4}),
                json!({"name": "w2", "minimum": 2, "maximum": 2}),
            ]),
            Refused("spec.provider.workers", "limit of 5"),
        ),
        (
            "W37, maximum",
            pools([json!({"minimum": 4, "maximum": 9})]),
            Has(json!({})),
        ),
    ] {
        let mut sent = one(pools);
        sent["metadata"]["name"] = "two".into();
        check(case, garden.create(sent).await, &then);
    }
}

#[tokio::test]
async fn w36_w43_w44_what_is_in_use_or_confirmed() {
    let mut garden = base().await;
    let at = one(json!({"metadata": {"name": "two"}, "spec": {"dns": {"domain": "a.example.org"}}}));
    garden.create(at).await.unwrap();
    let without = ["1.36.0", "1.35.0", "1.34.1", "1.32.9"].map(|version| json!({"version": version}));
    let removed = change(json!({"spec": {"kubernetes": {"versions": without}}}));
    refused(
        garden.update(("CloudProfile", "", "local"), "", removed).await,
        403,
        "version is still in use by shoot 'garden-dev/two'",
    );
    check(
        "W43",
        garden
            .create(one(
                json!({"metadata": {"name": "three"}, "spec": {"dns": {"domain": "b.a.example.org"}}}),
            ))
            .await,
        &Refused(
            "spec.dns.domain",
            "the domain is already used by another shoot or it is a subdomain of an already used domain",
        ),
    );
    refused(
        garden.delete("Shoot", "garden-dev", "two").await,
        403,
        "must have a \"confirmation.gardener.cloud/deletion\" annotation to delete",
    );
}

#[tokio::test]
async fn w38_w39_w46_w47_projects_and_their_names() {
    let mut garden = base().await;
    for (name, namespace) in [("thepr", "garden-thepr"), ("gone", "garden-gone")] {
        let labels = json!({"metadata": {"name": namespace, "labels": {"gardener.cloud/role": "project"}}});
        garden.put("", "namespaces", labels);
        let project = core("Project", ("", name), json!({"spec": {"namespace": namespace}}));
        garden.put("core.gardener.cloud", "projects", project);
        let key = json!({"metadata": {"name": "key", "namespace": namespace}});
        garden.put("", "secrets", key);
        let mut binding = garden.stored("security.gardener.cloud", "credentialsbindings", "garden-dev", "creds");
        binding["metadata"]["namespace"] = namespace.into();
        garden.put("security.gardener.cloud", "credentialsbindings", binding);
    }
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-05-01T09:00:00Z"}});
    set(&mut garden, "projects", ("", "gone"), deleted);
    let named = |namespace: &str, name: &str| one(json!({"metadata": {"namespace": namespace, "name": name}}));
    let sixteen = "abcdefghijklmnop";
    check(
        "W38, 16",
        garden.create(named("garden-thepr", sixteen)).await,
        &Has(json!({})),
    );
    let why = "the length of the shoot name and the project name must not exceed 21 characters";
    refused(
        garden.create(named("garden-thepr", &format!("{sixteen}q"))).await,
        422,
        why,
    );
    refused(
        garden.create(named("garden-gone", "one")).await,
        403,
        "already marked for deletion",
    );
    let project = |name: &str, spec: Value| core("Project", ("", name), json!({"spec": spec}));
    check(
        "W46",
        garden.create(project("a-verylong1", json!({}))).await,
        &Refused("metadata.name", "Too long"),
    );
    check(
        "W47",
        garden.create(project("other", json!({"namespace": "dev"}))).await,
        &Refused("spec.namespace", "must start with garden-"),
    );
}
