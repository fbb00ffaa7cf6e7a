//! Worked cases of the garden's admission, asked of a garden with one of everything that a shoot needs.

use gardener_apiserver::UserInfo;
use serde_json::{Value, json};

use super::garden::Garden;
use crate::Features;
use crate::admission::webhooks::ResourceSize;

const CORE: &str = "core.gardener.cloud";
const SECURITY: &str = "security.gardener.cloud";
pub(super) const ONE: (&str, &str, &str) = ("Shoot", "garden-dev", "one");

fn object(api_version: &str, kind: &str, (namespace, name): (&str, &str), more: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "uid": "u"}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    merge(&mut object, more);
    object
}

pub(super) fn core(kind: &str, place: (&str, &str), more: Value) -> Value {
    object("core.gardener.cloud/v1beta1", kind, place, more)
}

/// Puts members into an object, as a merge patch does.
pub(crate) fn merge(object: &mut Value, patch: Value) {
    match (object, patch) {
        (Value::Object(members), Value::Object(patch)) => {
            for (key, value) in patch {
                match value {
                    Value::Null => drop(members.remove(&key)),
                    value => merge(members.entry(key).or_insert(Value::Null), value),
                }
            }
        }
        (object, patch) => *object = patch,
    }
}

pub(super) fn change(patch: Value) -> impl FnOnce(&mut Value) {
    |object| merge(object, patch)
}

pub(super) fn shoot(more: Value) -> Value {
    let mut shoot = core(
        "Shoot",
        ("garden-dev", "one"),
        json!({"metadata": {"creationTimestamp": "2026-05-01T09:00:00Z"}, "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "local"}, "region": "eu", "credentialsBindingName": "creds",
            "kubernetes": {"version": "1.34.1"},
            "networking": {"type": "calico", "pods": "100.96.0.0/11", "services": "100.64.0.0/13", "nodes": "10.0.0.0/16"},
            "provider": {"type": "local", "workers": [{
                "name": "w1", "minimum": 1, "maximum": 2, "volume": {"type": "std", "size": "30Gi"},
                "machine": {"type": "m1", "image": {"name": "linux", "version": "1.0.0"}},
            }]},
        }}),
    );
    merge(&mut shoot, more);
    shoot
}

fn seed(name: &str, more: Value) -> Value {
    let mut seed = core(
        "Seed",
        ("", name),
        json!({"spec": {
            "provider": {"type": "local", "region": "eu", "zones": ["a", "b", "c"]},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "dns": {"internal": {"domain": "internal.example.com"}, "defaults": [{
                "domain": "example.com", "type": "local",
                "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "dns"},
            }]},
            "backup": {"provider": "local", "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "b"}},
        }}),
    );
    merge(&mut seed, more);
    seed
}

/// Profile `local`, project `dev`, credentials `creds`, seeds `s1` and `s2`, shoot `one`.
pub(super) async fn garden() -> Garden {
    filled(Garden::new()).await
}

/// Puts all of it into a garden.
async fn filled(mut garden: Garden) -> Garden {
    let namespace = json!({"metadata": {"name": "garden-dev", "labels": {"gardener.cloud/role": "project"}}});
    garden.put("", "namespaces", namespace);
    let project = core("Project", ("", "dev"), json!({"spec": {"namespace": "garden-dev"}}));
    garden.put(CORE, "projects", project);
    let profile = core(
        "CloudProfile",
        ("", "local"),
        json!({"spec": {
            "type": "local",
            "kubernetes": {"versions": [{"version": "1.36.0"}, {"version": "1.35.0"}, {"version": "1.34.1"}, {"version": "1.33.5"}]},
            "machineImages": [{"name": "linux", "updateStrategy": "major", "versions": [
                {"version": "1.0.0", "architectures": ["amd64"], "cri": [{"name": "containerd"}]},
                {"version": "1.1.0", "architectures": ["amd64"], "cri": [{"name": "containerd"}]},
            ]}],
            "machineTypes": [{"name": "m1", "cpu": "4", "gpu": "0", "memory": "8Gi", "architecture": "amd64", "usable": true}],
            "volumeTypes": [{"name": "std", "class": "standard", "minSize": "20Gi", "usable": true}],
            "regions": [{"name": "eu", "zones": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}],
        }}),
    );
    garden.put(CORE, "cloudprofiles", profile);
    let registered: Vec<Value> = [
        "ControlPlane",
        "Infrastructure",
        "Worker",
        "BackupBucket",
        "BackupEntry",
        "DNSRecord",
    ]
    .map(|kind| json!({"kind": kind, "type": "local"}))
    .into_iter()
    .chain([
        json!({"kind": "Network", "type": "calico"}),
        json!({"kind": "OperatingSystemConfig", "type": "linux"}),
        json!({"kind": "ContainerRuntime", "type": "containerd"}),
    ])
    .collect();
    let registration = core(
        "ControllerRegistration",
        ("", "local"),
        json!({"spec": {"resources": registered}}),
    );
    garden.put(CORE, "controllerregistrations", registration);
    garden.put(
        "",
        "secrets",
        object("v1", "Secret", ("garden-dev", "key"), json!({"data": {}})),
    );
    let binding = object(
        "security.gardener.cloud/v1alpha1",
        "CredentialsBinding",
        ("garden-dev", "creds"),
        json!({
            "provider": {"type": "local"}, "quotas": [],
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden-dev", "name": "key"},
        }),
    );
    garden.put(SECURITY, "credentialsbindings", binding);
    for name in ["s1", "s2"] {
        garden.put(CORE, "seeds", seed(name, json!({})));
    }
    garden.create(shoot(json!({}))).await.unwrap();
    garden
}

/// Sets members of an object that is there, without asking anybody.
pub(super) fn set(garden: &mut Garden, resource: &str, (namespace, name): (&str, &str), patch: Value) {
    let group = if resource == "credentialsbindings" {
        SECURITY
    } else {
        CORE
    };
    let mut object = garden.stored(group, resource, namespace, name);
    merge(&mut object, patch);
    garden.put(group, resource, object);
}

#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(answer: Result<T, gardener_apimachinery::ApiError>, code: i32, why: &str) {
    let error = answer.unwrap_err();
    assert!(error.message().contains(why), "expected {why}\nfound {error}");
    assert_eq!(error.status().code, Some(code), "{error}");
}

#[tokio::test]
async fn adm_29b_a_seed_must_take_the_shoot() {
    let bind = |seed: &str| change(json!({"spec": {"seedName": seed}}));
    let mut garden = garden().await;
    assert!(garden.update(ONE, "binding", bind("s1")).await.is_ok());
    refused(
        garden.update(ONE, "", bind("s1")).await,
        403,
        "spec.seedName 'nil' cannot be changed to 's1' by patching the shoot, please use the shoots/binding subresource",
    );
    for (patch, why) in [
        (
            json!({"spec": {"taints": [{"key": "a"}]}}),
            "forbidden to use a seed whose taints are not tolerated by the shoot",
        ),
        (
            json!({"spec": {"taints": null}, "status": {"allocatable": {"shoots": "0"}}}),
            "cannot schedule shoot 'one' on seed 's1' that already has the maximum number of shoots scheduled on it (0)",
        ),
        (
            json!({"status": {"allocatable": null}, "metadata": {"deletionTimestamp": "2026-05-01T09:00:00Z"}}),
            "cannot schedule shoot 'one' on seed 's1' that is already marked for deletion",
        ),
    ] {
        set(&mut garden, "seeds", ("", "s1"), patch);
        refused(garden.update(ONE, "binding", bind("s1")).await, 403, why);
    }
    set(
        &mut garden,
        "seeds",
        ("", "s1"),
        json!({"metadata": {"deletionTimestamp": null}}),
    );
    for (selector, why) in [
        (
            json!({"matchLabels": {"a": "b"}}),
            "because the cloud profile seed selector is not matching the labels of the seed",
        ),
        (
            json!({"matchLabels": null, "providerTypes": ["x"]}),
            "none of the provider types in the cloud profile seed selector",
        ),
    ] {
        set(
            &mut garden,
            "cloudprofiles",
            ("", "local"),
            json!({"spec": {"seedSelector": selector}}),
        );
        refused(garden.update(ONE, "binding", bind("s1")).await, 403, why);
    }
    let all = json!({"spec": {"seedSelector": {"providerTypes": ["*"]}}});
    set(&mut garden, "cloudprofiles", ("", "local"), all);
    assert!(garden.update(ONE, "binding", bind("s1")).await.is_ok());
}

#[tokio::test]
async fn w40_w41_adm_29c_where_a_shoot_may_move() {
    let mut garden = garden().await;
    let moved = || change(json!({"spec": {"seedName": "s2"}}));
    set(
        &mut garden,
        "shoots",
        ("garden-dev", "one"),
        json!({"spec": {"seedName": "s1", "dns": {"domain": "one.dev.example.com"}}, "status": {"seedName": "s1"}}),
    );
    assert!(garden.update(ONE, "binding", moved()).await.is_ok());
    refused(
        garden.update(ONE, "binding", |_| ()).await,
        500,
        "update of binding rejected, shoot is already assigned to the same seed",
    );
    refused(
        garden
            .update(ONE, "", change(json!({"spec": {"seedName": null}})))
            .await,
        403,
        "spec.seedName is already set to 's1' and cannot be changed to 'nil'",
    );
    let more = change(json!({"spec": {"seedName": "s2", "purpose": "production"}}));
    refused(
        garden.update(ONE, "binding", more).await,
        403,
        "only spec.seedName can be changed using the binding subresource",
    );
    for (patch, why) in [
        (
            json!({"dns": {"defaults": [{"domain": "other.com", "type": "local"}]}}),
            "because the shoot uses the default domain \"example.com\"",
        ),
        (
            json!({"dns": {"internal": {"domain": "x.com"}}}),
            "cannot change seed name because internal domain would change from \"internal.example.com\" to \"x.com\"",
        ),
        (
            json!({"backup": null}),
            "cannot change seed name because backup is not configured for seed \"s2\"",
        ),
    ] {
        set(&mut garden, "seeds", ("", "s2"), json!({"spec": patch}));
        refused(garden.update(ONE, "binding", moved()).await, 403, why);
    }
    set(&mut garden, "seeds", ("", "s1"), json!({"spec": {"backup": null}}));
    refused(
        garden.update(ONE, "binding", moved()).await,
        403,
        "cannot change seed name because backup is not configured for old seed \"s1\"",
    );
}

#[tokio::test]
async fn adm_29c_a_shoot_that_moves_stays_as_it_is() {
    let mut garden = garden().await;
    let purpose = || change(json!({"spec": {"purpose": "production"}}));
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    set(&mut garden, "shoots", ("garden-dev", "one"), confirmed);
    let operation =
        |kind: &str, state: &str| json!({"status": {"lastOperation": {"type": kind, "state": state, "progress": 1}}});
    for (kind, state, moves) in [
        ("Reconcile", "Processing", false),
        ("Migrate", "Succeeded", true),
        ("Restore", "Processing", true),
        ("Restore", "Succeeded", false),
    ] {
        set(&mut garden, "shoots", ("garden-dev", "one"), operation(kind, state));
        let (changed, deleted) = (
            garden.update(ONE, "", purpose()).await,
            garden.delete("Shoot", "garden-dev", "one").await,
        );
        if moves {
            let why = format!("during {kind} operation that is in state {state}");
            refused(changed, 403, &format!("cannot change shoot spec {why}"));
            refused(deleted, 403, &format!("cannot mark shoot for deletion {why}"));
        } else {
            assert!(
                changed.is_ok() && deleted.is_ok(),
                "{kind} {state}: {changed:?} {deleted:?}"
            );
        }
    }
    let rescheduled = json!({"spec": {"seedName": "s2"}, "status": {"seedName": "s1"}});
    set(&mut garden, "shoots", ("garden-dev", "one"), rescheduled);
    refused(
        garden.update(ONE, "", purpose()).await,
        403,
        "shoot spec cannot be changed because shoot has been rescheduled to a new seed",
    );
}

/// A change of the status is made without reading the specification, which stays as it is; what follows from both does.
#[tokio::test]
async fn gapi_36_38_a_status_changes_labels_and_generation_but_no_specification() {
    let garden = |labels: Value| async move {
        let mut garden = garden().await;
        let before = json!({
            "metadata": {"generation": 3, "labels": labels},
            "spec": {"seedName": "s1"}, "status": {"seedName": "s1", "lastOperation": {"type": "Migrate", "state": "Processing", "progress": 1}},
        });
        garden.put("core.gardener.cloud", "shoots", shoot(before));
        garden
    };
    let place = ("Shoot", "garden-dev", "one");
    let following = json!({
        "name.seed.gardener.cloud/s1": "true", "networking.extensions.gardener.cloud/calico": "true",
        "operatingsystemconfig.extensions.gardener.cloud/linux": "true", "provider.extensions.gardener.cloud/local": "true",
    });
    let with = |key: &str| {
        let mut labels = following.clone();
        labels[key] = "true".into();
        labels
    };
    let named = json!({"name.seed.gardener.cloud/s1": "true", "own": "true"});
    let own = garden(named.clone()).await;
    let moved = own
        .update(place, "status", change(json!({"status": {"seedName": "s2"}})))
        .await
        .unwrap();
    let mut both = with("own");
    both["name.seed.gardener.cloud/s2"] = "true".into();
    assert_eq!(moved["metadata"]["labels"], both);
    assert_eq!(
        moved["spec"],
        own.stored("core.gardener.cloud", "shoots", "garden-dev", "one")["spec"]
    );
    assert_eq!(
        (&moved["metadata"]["generation"], &moved["status"]["seedName"]),
        (&json!(3), &json!("s2"))
    );
    let succeeded = change(json!({"status": {"lastOperation": {"state": "Succeeded", "progress": 100}}}));
    let migrated = own.update(place, "status", succeeded).await.unwrap();
    assert_eq!(migrated["metadata"]["generation"], 4);
    // as with upstream each write of such a status does so
    let mut away = own.stored("core.gardener.cloud", "shoots", "garden-dev", "one");
    merge(&mut away, json!({"status": {"lastOperation": {"state": "Succeeded"}}}));
    let mut gone = garden(named.clone()).await;
    gone.put("core.gardener.cloud", "shoots", away);
    let again = change(json!({"status": {"technicalID": "t"}}));
    let again = gone.update(place, "status", again).await.unwrap();
    assert_eq!(again["metadata"]["generation"], 4);
    // labels that follow from the specification cannot be taken away, and come when they are not there yet, [ADM-33]
    let none = || change(json!({"metadata": {"labels": null}, "status": {"technicalID": "t"}}));
    let kept = own.update(place, "status", none()).await.unwrap();
    assert_eq!(kept["metadata"]["labels"], following);
    let own = garden(json!({"name.seed.gardener.cloud/s1": "true", "shoot.gardener.cloud/self-hosted": "true"})).await;
    let kept = own.update(place, "status", none()).await.unwrap();
    assert_eq!(kept["metadata"]["labels"], with("shoot.gardener.cloud/self-hosted"));
}

#[tokio::test]
async fn adm_29d_to_29h_what_a_shoot_keeps() {
    let mut garden = garden().await;
    set(
        &mut garden,
        "shoots",
        ("garden-dev", "one"),
        json!({"spec": {"seedName": "s1", "dns": {"domain": "one.dev.example.com"}}}),
    );
    // [ADM-29d]
    let going = json!({"metadata": {"deletionTimestamp": "2026-05-01T09:00:00Z"}});
    set(&mut garden, "seeds", ("", "s1"), going);
    let annotate = |key: &str| change(json!({"metadata": {"annotations": {key: "true"}}}));
    assert!(
        garden
            .update(ONE, "", annotate("confirmation.gardener.cloud/deletion"))
            .await
            .is_ok()
    );
    refused(
        garden.update(ONE, "", annotate("a")).await,
        403,
        "only the 'confirmation.gardener.cloud/deletion' annotation can be changed",
    );
    set(
        &mut garden,
        "seeds",
        ("", "s1"),
        json!({"metadata": {"deletionTimestamp": null}}),
    );
    // [ADM-29e], [ST-150]: section 22.16
    let asleep = |enabled: bool| change(json!({"spec": {"hibernation": {"enabled": enabled}}}));
    for (constraint, was, becomes, refusal) in [
        (Value::Null, false, true, ""),
        (
            json!([{"type": "HibernationPossible", "status": "True"}]),
            false,
            true,
            "",
        ),
        (
            json!([{"type": "HibernationPossible", "status": "False", "message": "webhook"}]),
            false,
            true,
            "'HibernationPossible' constraint is 'False': webhook",
        ),
        (
            json!([{"type": "HibernationPossible", "status": "Progressing", "message": "m"}]),
            false,
            true,
            "'HibernationPossible' constraint is 'Progressing': m",
        ),
        (
            json!([{"type": "HibernationPossible", "status": "Unknown", "message": "m"}]),
            false,
            true,
            "'HibernationPossible' constraint is 'Unknown': m",
        ),
        (
            json!([{"type": "HibernationPossible", "status": "False"}]),
            true,
            true,
            "",
        ),
        (
            json!([{"type": "HibernationPossible", "status": "False"}]),
            true,
            false,
            "",
        ),
    ] {
        let given = json!({"spec": {"hibernation": {"enabled": was}}, "status": {"constraints": constraint}});
        set(&mut garden, "shoots", ("garden-dev", "one"), given);
        let answer = garden.update(ONE, "", asleep(becomes)).await;
        match refusal {
            "" => assert!(answer.is_ok(), "{constraint} {was} {becomes}"),
            refusal => refused(answer, 403, refusal),
        }
    }
    let awake = json!({"spec": {"hibernation": {"enabled": false}}, "status": {"constraints": null}});
    set(&mut garden, "shoots", ("garden-dev", "one"), awake);
    // [ADM-29f]
    let managed = || change(json!({"metadata": {"annotations": {"authentication.gardener.cloud/issuer": "managed"}}}));
    refused(
        garden.update(ONE, "", managed()).await,
        403,
        "cannot enable managed service account issuer",
    );
    let secret = json!({"metadata": {"labels": {"gardener.cloud/role": "shoot-service-account-issuer"}}});
    garden.put("", "secrets", object("v1", "Secret", ("garden", "issuer"), secret));
    assert!(garden.update(ONE, "", managed()).await.is_ok());
    set(
        &mut garden,
        "shoots",
        ("garden-dev", "one"),
        json!({"metadata": {"annotations": {"authentication.gardener.cloud/issuer": "managed"}}}),
    );
    refused(
        garden
            .update(ONE, "", change(json!({"metadata": {"annotations": null}})))
            .await,
        403,
        "once enabled managed service account issuer cannot be disabled",
    );
    // [ADM-29h]
    let selector = |labels: Value| change(json!({"spec": {"seedSelector": {"matchLabels": labels}}}));
    refused(
        garden.update(ONE, "", selector(json!({"a": "b"}))).await,
        403,
        "cannot change seedSelector to not match the labels of the already selected seed \"s1\"",
    );
    set(
        &mut garden,
        "shoots",
        ("garden-dev", "one"),
        json!({"spec": {"seedSelector": {"matchLabels": {}}}}),
    );
    refused(
        garden
            .update(ONE, "", change(json!({"spec": {"seedSelector": null}})))
            .await,
        403,
        "spec.seedSelector: Invalid value: null: cannot unset seedSelector once it has been set",
    );
}

#[tokio::test]
async fn adm_29g_credentials_change_by_their_readers_only() {
    let mut garden = garden().await;
    garden.put(
        "",
        "secrets",
        object("v1", "Secret", ("garden-dev", "other"), json!({"data": {}})),
    );
    let binding = object(
        "security.gardener.cloud/v1alpha1",
        "CredentialsBinding",
        ("garden-dev", "more"),
        json!({
            "provider": {"type": "local"},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden-dev", "name": "other"},
        }),
    );
    garden.put(SECURITY, "credentialsbindings", binding);
    let bind = || change(json!({"spec": {"credentialsBindingName": "more"}}));
    assert!(garden.update(ONE, "", bind()).await.is_ok());
    garden.forbidden = vec![("get", "secrets", "other")];
    refused(
        garden.update(ONE, "", bind()).await,
        403,
        "user \"admin\" is not allowed to read the newly referenced Secret \"garden-dev/other\"",
    );
    garden.forbidden = vec![("get", "secrets", "key")];
    refused(
        garden.update(ONE, "", bind()).await,
        403,
        "the previously referenced Secret \"garden-dev/key\"",
    );
}

/// What the plugin that completes shoots finds is told together, and by what was asked for.
#[tokio::test]
async fn adm_23_25_all_that_cannot_be_completed_is_told() {
    let mut garden = garden().await;
    let mut pools = shoot(json!({"spec": {"kubernetes": {"version": "1.9"}}}));
    let pool = |name: &str, machine: Value| {
        let mut pool = pools["spec"]["provider"]["workers"][0].clone();
        merge(&mut pool, json!({"name": name, "machine": machine}));
        pool
    };
    let workers = json!([
        pool("a", json!({"image": {"name": "none"}})),
        pool("b", json!({"image": {"name": "linux", "version": "7"}})),
        pool("c", json!({"image": null, "type": "unlisted", "architecture": "riscv"})),
    ]);
    pools["spec"]["provider"]["workers"] = workers;
    let why = [
        "[spec.kubernetes.version: Invalid value: \"1.9\": couldn't find a suitable version for 1.9. Suitable versions have a non-expired expiration date and are no 'preview' versions. 'Preview'-classified versions have to be selected explicitly",
        "spec.provider.workers[0]: Invalid value: \"none\": image is not supported",
        "spec.provider.workers[1]: Invalid value: \"linux@7\": failed to determine latest machine image from cloud profile: unable to determine latest expirable version",
        "spec.provider.workers[2]: Invalid value: \"\": no valid machine image found that supports architecture `riscv`]",
    ];
    refused(garden.create(pools).await, 403, &why.join(", "));
}

/// A status may ask for a rotation that goes on, whose tasks stay with the object [ADM-20], [ADM-26].
#[tokio::test]
async fn adm_20_26_a_status_keeps_the_tasks_of_rotations() {
    let mut garden = garden().await;
    let rotates = json!({"metadata": {"annotations": {"gardener.cloud/operation": "rotate-ssh-keypair"}}});
    garden.put("core.gardener.cloud", "shoots", shoot(rotates));
    let place = ("Shoot", "garden-dev", "one");
    let told = change(json!({"status": {"technicalID": "t"}}));
    let told = garden.update(place, "status", told).await.unwrap();
    let tasks = &told["metadata"]["annotations"]["shoot.gardener.cloud/tasks"];
    assert_eq!(*tasks, "deployInfrastructure");
}

#[tokio::test]
async fn adm_32_pools_get_what_is_offered() {
    let mut garden = garden().await;
    let pool = |patch: Value| move |shoot: &mut Value| merge(&mut shoot["spec"]["provider"]["workers"][0], patch);
    for (patch, why) in [
        (
            json!({"machine": {"type": "m9"}}),
            "spec.provider.workers[0].machine.type: Unsupported value: \"m9\": supported values: \"m1\"",
        ),
        (
            json!({"machine": {"image": {"name": "linux", "version": "9.0.0"}}}),
            "machine.image.version: Unsupported value: \"9.0.0\": supported values: \"linux:1.0.0\", \"linux:1.1.0\"",
        ),
        (
            json!({"volume": {"type": "gold"}}),
            "volume.type: Unsupported value: \"gold\": supported values: \"std\"",
        ),
        // [ADM-32e]
        (
            json!({"volume": {"size": "10Gi"}}),
            "volume.size: Invalid value: \"10Gi\": size must be >= 20Gi",
        ),
        // [ADM-32f]
        (
            json!({"zones": ["x"]}),
            "zones[0]: Unsupported value: \"x\": supported values: \"a\", \"b\", \"c\"",
        ),
        // [ADM-32h]
        (
            json!({"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "4"}}}}),
            "kubernetes.kubelet: Invalid value: \"kubeReserved CPU: 4\": total reserved CPU (kubeReserved) cannot be more than the Node's CPU capacity '4'",
        ),
        // [ADM-31]
        (
            json!({"providerConfig": {"apiVersion": "x/__internal", "kind": "A"}}),
            "providerConfig: Invalid value: \"x/__internal, Kind=A\": must not use apiVersion 'internal'",
        ),
    ] {
        refused(garden.update(ONE, "", pool(patch)).await, 403, why);
    }
    // [ADM-32i]
    let pinned = json!({"controlPlane": {"zones": ["z"]}});
    let zones = |more: Value| {
        let mut two = shoot(json!({"metadata": {"name": "two"}, "spec": pinned}));
        merge(&mut two, more);
        two
    };
    // [VAL-U16]
    refused(
        garden.update(ONE, "", change(json!({"spec": pinned}))).await,
        422,
        "spec.controlPlane.zones: Forbidden: field is immutable",
    );
    refused(
        garden.create(zones(json!({}))).await,
        403,
        "spec.controlPlane.zones can only be set when the CloudProfile has",
    );
    set(
        &mut garden,
        "cloudprofiles",
        ("", "local"),
        json!({"spec": {"controlPlane": {"allowZonePinning": true}}}),
    );
    refused(
        garden.create(zones(json!({"spec": {"seedName": "s1"}}))).await,
        403,
        "spec.controlPlane.zones[0]: Invalid value: \"z\": zone is not available in seed \"s1\"",
    );
    // [ADM-32n]
    let live = change(json!({"metadata": {"annotations": {"migration.gardener.cloud/live-migrate": "true"}}}));
    refused(
        garden.update(ONE, "", live).await,
        403,
        "the \"LiveControlPlaneMigration\" feature gate is disabled",
    );
}

#[tokio::test]
async fn mig_200_to_203_what_moves_without_a_pause() {
    let mut features = Features::default();
    assert!(features.switch("LiveControlPlaneMigration", true));
    let mut garden = filled(Garden::with_features(features)).await;
    let live = || json!({"metadata": {"annotations": {"migration.gardener.cloud/live-migrate": "t"}}});
    let mut two = shoot(live());
    two["metadata"]["name"] = "two".into();
    refused(
        garden.create(two).await,
        403,
        "metadata.annotations[migration.gardener.cloud/live-migrate]: Forbidden: annotation must not be set on shoot creation",
    );
    let mut asleep = live();
    let spec = json!({"seedName": "s1", "hibernation": {"enabled": true}, "dns": {"domain": "one.dev.example.com"}});
    merge(&mut asleep, json!({"spec": spec, "status": {"seedName": "s1"}}));
    set(&mut garden, "shoots", ("garden-dev", "one"), asleep);
    // nothing is asked of a shoot that stays
    let label = change(json!({"metadata": {"labels": {"a": "b"}}}));
    garden.update(ONE, "", label).await.unwrap();
    let moved = || change(json!({"spec": {"seedName": "s2"}}));
    let other = json!({"spec": {"provider": {"type": "other", "region": "us"}}});
    set(&mut garden, "seeds", ("", "s2"), other);
    let error = garden.update(ONE, "binding", moved()).await.unwrap_err();
    for why in [
        "spec.seedName: Forbidden: shoot control plane must be configured for high availability to perform a live control plane migration",
        "spec.seedName: Forbidden: live control plane migration is not supported for hibernated or waking-up shoots",
        "spec.seedName: Forbidden: source and destination seeds must use the same provider type (local -> other)",
        "spec.seedName: Forbidden: gardenlet version not reported for source seed \"s1\"",
        "spec.seedName: Forbidden: gardenlet version not reported for destination seed \"s2\"",
        "spec.seedName: Forbidden: no scheduler region ConfigMap found for cloud profile \"local\" (source region eu, destination region us)",
    ] {
        assert!(error.message().contains(why), "{error}");
    }
    let awake = json!({
        "hibernation": null, "controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}},
    });
    set(&mut garden, "shoots", ("garden-dev", "one"), json!({"spec": awake}));
    for (seed, version) in [("s1", "v1"), ("s2", "v2")] {
        let patch = json!({"spec": {"provider": {"type": "local"}}, "status": {"gardener": {"id": "", "name": "", "version": version}}});
        set(&mut garden, "seeds", ("", seed), patch);
    }
    refused(
        garden.update(ONE, "binding", moved()).await,
        403,
        "source and destination seeds must run the same gardenlet version (s1: v1, s2: v2)",
    );
    let same = json!({"status": {"gardener": {"version": "v1"}}});
    set(&mut garden, "seeds", ("", "s2"), same);
    for (threshold, data, why) in [
        (
            None,
            json!({"us": "eu: 1"}),
            Some("source region eu not configured in region ConfigMap \"regions\""),
        ),
        (
            None,
            json!({"eu": "asia: 1"}),
            Some(
                "distance from source region eu to destination region us not configured in region ConfigMap \"regions\"",
            ),
        ),
        (
            None,
            json!({"eu": "us: far"}),
            Some("failed to parse region distances for \"eu\" from ConfigMap garden/regions"),
        ),
        (None, json!({"eu": "us: 180"}), None),
        (
            None,
            json!({"eu": "us: 181"}),
            Some("distance 181 from source region eu to destination region us exceeds threshold 180"),
        ),
        (Some("200"), json!({"eu": "us: 181"}), None),
        (
            Some("-1"),
            json!({"eu": "us: 1"}),
            Some("threshold must be non-negative, got -1"),
        ),
        (
            Some("far"),
            json!({"eu": "us: 1"}),
            Some("invalid value \"far\" for annotation"),
        ),
    ] {
        let mut map = object(
            "v1",
            "ConfigMap",
            ("garden", "regions"),
            json!({"data": data, "metadata": {
                "labels": {"scheduling.gardener.cloud/purpose": "region-config"},
                "annotations": {"scheduling.gardener.cloud/cloudprofiles": "other, local"},
            }}),
        );
        if let Some(threshold) = threshold {
            let key = "migration.gardener.cloud/inter-region-distance-threshold";
            map["metadata"]["annotations"][key] = threshold.into();
        }
        garden.put("", "configmaps", map);
        match why {
            Some(why) => refused(garden.update(ONE, "binding", moved()).await, 403, why),
            None => drop(garden.update(ONE, "binding", moved()).await.unwrap()),
        }
    }
    let distant = json!({"metadata": {"annotations": {"migration.gardener.cloud/allow-distant-regions": "true"}}});
    set(&mut garden, "shoots", ("garden-dev", "one"), distant);
    garden.update(ONE, "binding", moved()).await.unwrap();
}

#[tokio::test]
async fn adm_32m_profiles_change_within_their_family() {
    let mut garden = garden().await;
    let child = core(
        "NamespacedCloudProfile",
        ("garden-dev", "child"),
        json!({"spec": {"parent": {"kind": "CloudProfile", "name": "local"}}, "status": {"cloudProfileSpec": {
            "type": "local", "kubernetes": {"versions": [{"version": "1.34.1"}]}, "regions": [{"name": "eu"}],
            "machineImages": [{"name": "linux", "versions": [{"version": "1.1.0"}]}], "machineTypes": [{"name": "m1"}],
        }}}),
    );
    garden.put(CORE, "namespacedcloudprofiles", child);
    let other = core("CloudProfile", ("", "other"), json!({"spec": {"type": "local"}}));
    garden.put(CORE, "cloudprofiles", other);
    let to = |kind: &str, name: &str| change(json!({"spec": {"cloudProfile": {"kind": kind, "name": name}}}));
    refused(
        garden.update(ONE, "", to("CloudProfile", "other")).await,
        500,
        "cannot change from \"local\" to \"other\". The cloud profile reference must remain within the same hierarchy",
    );
    refused(
        garden.update(ONE, "", to("NamespacedCloudProfile", "child")).await,
        500,
        "newly referenced cloud profile does not contain the machine image version \"linux@1.0.0\" currently in use by worker \"w1\"",
    );
}

#[tokio::test]
async fn adm_35_quotas_hold() {
    let mut garden = garden().await;
    let quota = core(
        "Quota",
        ("garden-dev", "q"),
        json!({"spec": {
            "clusterLifetimeDays": 3, "metrics": {"cpu": "12"},
            "scope": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"},
        }}),
    );
    garden.put(CORE, "quotas", quota);
    let quotas = json!({"quotas": [{"namespace": "garden-dev", "name": "q"}]});
    set(&mut garden, "credentialsbindings", ("garden-dev", "creds"), quotas);
    // 8 of 12 are taken by the first
    refused(
        garden.create(shoot(json!({"metadata": {"name": "two"}}))).await,
        403,
        "quota limits exceeded. Unable to allocate further cpu",
    );
    let maximum = |most: i32| move |shoot: &mut Value| shoot["spec"]["provider"]["workers"][0]["maximum"] = most.into();
    assert!(garden.update(ONE, "", maximum(3)).await.is_ok());
    refused(garden.update(ONE, "", maximum(4)).await, 403, "quota limits exceeded");
    let expires =
        |time: &str| change(json!({"metadata": {"annotations": {"shoot.gardener.cloud/expiration-timestamp": time}}}));
    assert!(garden.update(ONE, "", expires("2026-05-04T09:00:00Z")).await.is_ok());
    refused(
        garden.update(ONE, "", expires("2026-05-04T11:00:00Z")).await,
        403,
        "requested shoot expiration time is too long. Can only be extended by 3 day(s)",
    );
}

#[tokio::test]
async fn adm_36_62_63_shoots_that_are_seeds() {
    let mut garden = garden().await;
    let project = core(
        "Project",
        ("", "garden"),
        json!({"spec": {"namespace": "garden", "tolerations": {"whitelist": [{"key": "seed.gardener.cloud/protected"}]}}}),
    );
    garden.put(CORE, "projects", project);
    let mut root = garden.stored(CORE, "shoots", "garden-dev", "one");
    merge(
        &mut root,
        json!({"metadata": {"name": "root", "namespace": "garden"}, "spec": {
            "seedName": "s1", "dns": {"domain": "root.garden.example.com"},
            "kubernetes": {"verticalPodAutoscaler": {"enabled": true}},
        }}),
    );
    root["spec"]["provider"]["workers"][0]["zones"] = json!(["a", "b"]);
    garden.put(CORE, "shoots", root);
    let credentials = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "dns"});
    let managed = |name: &str, more: Value| {
        let mut managed = object(
            "seedmanagement.gardener.cloud/v1alpha1",
            "ManagedSeed",
            ("garden", name),
            json!({"spec": {"shoot": {"name": "root"}, "gardenlet": {"config": {
                "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
                "seedConfig": {"spec": {"dns": {
                    "internal": {"domain": "internal.example.com", "type": "local", "credentialsRef": credentials},
                    "defaults": [{"domain": "example.com", "type": "local", "credentialsRef": credentials}],
                }}},
            }}}}),
        );
        merge(&mut managed, more);
        managed
    };
    refused(
        garden
            .create(managed(
                "root",
                json!({"metadata": {"namespace": "garden-dev"}, "spec": {"shoot": {"name": "gone"}}}),
            ))
            .await,
        422,
        "spec.shoot.name: Invalid value: \"gone\": shoot garden-dev/gone not found",
    );
    let pods =
        json!({"spec": {"gardenlet": {"config": {"seedConfig": {"spec": {"networks": {"pods": "10.9.0.0/16"}}}}}}});
    refused(
        garden.create(managed("root", pods)).await,
        422,
        "seed pods CIDR must be equal to shoot pods CIDR 100.96.0.0/11",
    );
    let made = garden.create(managed("root", json!({}))).await.unwrap();
    let spec = &made["spec"]["gardenlet"]["config"]["seedConfig"]["spec"];
    assert_eq!(spec["ingress"]["domain"], "ingress.root.garden.example.com");
    assert_eq!(
        spec["provider"],
        json!({"type": "local", "region": "eu", "zones": ["a", "b"]})
    );
    assert_eq!(spec["networks"]["nodes"], "10.0.0.0/16");
    assert_eq!(spec["dns"]["provider"]["type"], "local");
    assert_eq!(
        made["metadata"]["labels"],
        json!({"name.seed.gardener.cloud/s1": "true"})
    );
    // [ADM-43]
    let own = seed(
        "root",
        json!({"spec": {
            "ingress": {"domain": "ingress.root.garden.example.com", "controller": {"kind": "nginx"}},
            "dns": {
                "internal": {"type": "local", "credentialsRef": credentials},
                "provider": {"type": "local", "credentialsRef": credentials},
            },
        }}),
    );
    let own = garden.create(own).await.unwrap();
    assert_eq!(own["metadata"]["labels"]["name.seed.gardener.cloud/s1"], "true");
    // [ADM-36]
    refused(
        garden.create(managed("again", json!({}))).await,
        422,
        "shoot garden/root already registered as seed by managed seed garden/root",
    );
    let root = ("Shoot", "garden", "root");
    let zones = |shoot: &mut Value| shoot["spec"]["provider"]["workers"][0]["zones"] = json!(["b"]);
    refused(
        garden.update(root, "", zones).await,
        422,
        "must not be removed as long as registered in managedseed",
    );
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    set(&mut garden, "shoots", ("garden", "root"), confirmed);
    refused(
        garden.delete("Shoot", "garden", "root").await,
        403,
        "cannot delete shoot garden/root since it is still referenced by a managed seed",
    );
    // [ADM-63]
    assert!(garden.delete("ManagedSeed", "garden", "root").await.is_ok());
    set(
        &mut garden,
        "shoots",
        ("garden-dev", "one"),
        json!({"spec": {"seedName": "root"}}),
    );
    refused(
        garden.delete("ManagedSeed", "garden", "root").await,
        403,
        "cannot delete managed seed garden/root since its seed root is still used by shoot(s)",
    );
}

#[tokio::test]
async fn w48_adm_50_to_56_references() {
    let mut garden = garden().await;
    for name in ["q1", "q2"] {
        let scope = json!({"spec": {"scope": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}, "metrics": {"cpu": "1"}}});
        garden.put(CORE, "quotas", core("Quota", ("garden-dev", name), scope));
    }
    let binding = |more: Value| {
        let mut binding = object(
            "security.gardener.cloud/v1alpha1",
            "CredentialsBinding",
            ("garden-dev", "b"),
            json!({
                "provider": {"type": "local"},
                "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden-dev", "name": "key"},
            }),
        );
        merge(&mut binding, more);
        binding
    };
    let quota = |name: &str| json!({"namespace": "garden-dev", "name": name});
    refused(
        garden
            .create(binding(json!({"quotas": [quota("q1"), quota("q2")]})))
            .await,
        403,
        "only one quota per scope (project or credentials) can be assigned",
    );
    garden.forbidden = vec![("get", "secrets", "key")];
    refused(
        garden.create(binding(json!({}))).await,
        403,
        "is forbidden:  cannot reference a Secret you are not allowed to read",
    );
    garden.forbidden = Vec::new();
    let server = |more: Value| change(json!({"spec": {"kubernetes": {"kubeAPIServer": more}}}));
    refused(
        garden
            .update(
                ONE,
                "",
                server(json!({"structuredAuthentication": {"configMapName": "gone"}})),
            )
            .await,
        403,
        "failed to resolve structured authentication config map reference: configmaps \"gone\" not found",
    );
    // [ADM-54]
    let bucket = core(
        "BackupBucket",
        ("", "bucket"),
        json!({"spec": {"provider": {"type": "local", "region": "eu"}}}),
    );
    garden.put(CORE, "backupbuckets", bucket);
    let entry = core(
        "BackupEntry",
        ("garden-dev", "entry"),
        json!({"spec": {"bucketName": "bucket"}}),
    );
    garden.put(CORE, "backupentries", entry);
    refused(
        garden.delete("BackupBucket", "", "bucket").await,
        403,
        "cannot delete BackupBucket because BackupEntries are still referencing it, backupEntryNames: garden-dev/entry",
    );
    // [ADM-53]
    let taken = core("Project", ("", "again"), json!({"spec": {"namespace": "garden-dev"}}));
    refused(
        garden.create(taken).await,
        403,
        "namespace \"garden-dev\" is already used by another project",
    );
}

#[tokio::test]
async fn w49_adm_55_57_profiles_of_projects() {
    let mut garden = garden().await;
    let profile = |spec: Value| {
        let mut profile = core(
            "NamespacedCloudProfile",
            ("garden-dev", "p"),
            json!({"spec": {"parent": {"kind": "CloudProfile", "name": "local"}}}),
        );
        merge(&mut profile["spec"], spec);
        profile
    };
    let image = |version: Value| json!({"machineImages": [{"name": "linux", "versions": [version]}]});
    let later = "2027-01-01T00:00:00Z";
    for (spec, why) in [
        (
            json!({"kubernetes": {"versions": [{"version": "1.30.0", "expirationDate": later}]}}),
            "'1.30.0' does not exist in parent CloudProfile and thus cannot be overridden",
        ),
        (
            json!({"kubernetes": {"versions": [{"version": "1.34.1"}]}}),
            "specified version '1.34.1' does not set expiration date",
        ),
        (
            image(json!({"version": "1.0.0"})),
            "expiration date for version \"1.0.0\" must be set",
        ),
        (
            image(json!({"version": "1.0.0", "expirationDate": later, "classification": "supported"})),
            "must not provide a classification to an extended machine image in NamespacedCloudProfile",
        ),
        (
            image(json!({"version": "2.0.0"})),
            "must provide at least one supported container runtime",
        ),
    ] {
        refused(garden.create(profile(spec)).await, 500, why);
    }
    let good = json!({"kubernetes": {"versions": [{"version": "1.34.1", "expirationDate": later}]}});
    garden.create(profile(good)).await.unwrap();
    // [ADM-55]
    let named = json!({"spec": {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "p"}}});
    set(&mut garden, "shoots", ("garden-dev", "one"), named);
    let place = ("NamespacedCloudProfile", "garden-dev", "p");
    assert!(
        garden
            .update(place, "", change(json!({"spec": {"kubernetes": null}})))
            .await
            .is_ok()
    );
    let ended = json!({"spec": {"kubernetes": {"versions": [{"version": "1.34.1", "expirationDate": "2026-01-01T00:00:00Z"}]}}});
    set(&mut garden, "cloudprofiles", ("", "local"), ended);
    refused(
        garden
            .update(place, "", change(json!({"spec": {"kubernetes": null}})))
            .await,
        403,
        "version with extended expiration date is still in use by shoot 'garden-dev/one'",
    );
    // [VER-33]: whoever goes is not asked
    let again = json!({"spec": {"kubernetes": {"versions": [{"version": "1.36.0"}, {"version": "1.34.1"}]}}});
    set(&mut garden, "cloudprofiles", ("", "local"), again);
    let place = ("CloudProfile", "", "local");
    let without = || {
        change(
            json!({"spec": {"machineImages": [{"name": "other", "versions": [{"version": "1.0.0", "architectures": ["amd64"], "cri": [{"name": "containerd"}]}]}]}}),
        )
    };
    refused(
        garden.update(place, "", without()).await,
        403,
        "unable to delete Machine image version 'linux/1.0.0' from CloudProfile \"local\" - version is still in use by shoot 'garden-dev/one' by worker",
    );
    let goes = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["gardener"]}});
    set(&mut garden, "cloudprofiles", ("", "local"), goes);
    garden.update(place, "", without()).await.unwrap();
}

#[tokio::test]
async fn tol_7_to_13_tolerations_are_given_and_allowed() {
    let mut garden = garden().await;
    let both = json!({"spec": {"tolerations": {"defaults": [{"key": "a"}], "whitelist": [{"key": "a"}, {"key": "b", "value": "1"}]}}});
    set(&mut garden, "projects", ("", "dev"), both);
    let with = |tolerations: Value| shoot(json!({"metadata": {"name": "two"}, "spec": {"tolerations": tolerations}}));
    let made = garden.create(with(json!([{"key": "b", "value": "1"}]))).await.unwrap();
    assert_eq!(
        made["spec"]["tolerations"],
        json!([{"key": "b", "value": "1"}, {"key": "a"}])
    );
    // a key that the shoot has is not given again
    let made = garden.create(with(json!([{"key": "a", "value": "x"}]))).await.unwrap();
    assert_eq!(made["spec"]["tolerations"], json!([{"key": "a", "value": "x"}]));
    for tolerations in [
        json!([{"key": "b"}]),
        json!([{"key": "b", "value": "2"}]),
        json!([{"key": "c"}]),
    ] {
        refused(
            garden.create(with(tolerations)).await,
            403,
            "error while validating tolerations against allowlist: [spec.tolerations[0]: Forbidden: only the following tolerations are allowed: [a b=1]]",
        );
    }
    // what is there may stay, and go
    set(
        &mut garden,
        "projects",
        ("", "dev"),
        json!({"spec": {"tolerations": {"defaults": null, "whitelist": null}}}),
    );
    let two = ("Shoot", "garden-dev", "two");
    assert!(garden.update(two, "", |_| ()).await.is_ok());
    assert!(
        garden
            .update(two, "", change(json!({"spec": {"tolerations": null}})))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn adm_70_to_79_webhooks_are_built_in() {
    let sizes: ResourceSize = serde_json::from_value(json!({
        "limits": [{"apiGroups": ["core.gardener.cloud"], "apiVersions": ["*"], "resources": ["shoots"], "size": "1k"}],
    }))
    .unwrap();
    let garden = garden().await.with_webhooks(sizes);
    // [ADM-76]
    let why = "admission webhook \"validate-resource-size.gardener.cloud\" denied the request: shoots.core.gardener.cloud \"one\" is forbidden: maximum resource size exceeded! Size in request: ";
    let annotate = || change(json!({"metadata": {"annotations": {"a": "b"}}}));
    refused(garden.update(ONE, "", annotate()).await, 403, why);
    // [ADM-73]
    let mut garden = self::garden().await.with_webhooks(ResourceSize::default());
    let policy = |text: &str| {
        object(
            "v1",
            "ConfigMap",
            ("garden-dev", "policy"),
            json!({"data": {"policy": text}}),
        )
    };
    let audited = || {
        change(
            json!({"spec": {"kubernetes": {"kubeAPIServer": {"auditConfig": {"auditPolicy": {"configMapRef": {"name": "policy"}}}}}}}),
        )
    };
    refused(
        garden.update(ONE, "", audited()).await,
        422,
        "referenced audit policy ConfigMap garden-dev/policy does not exist",
    );
    for (text, why) in [
        ("", "audit policy in policy key is empty"),
        (
            "kind: Other",
            "failed to decode the provided audit policy: expected kind \"Policy\" of audit.k8s.io/v1",
        ),
        (
            "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Most}]}",
            "provided invalid audit policy: [rules[0].level: Unsupported value",
        ),
    ] {
        garden.put("", "configmaps", policy(text));
        refused(garden.update(ONE, "", audited()).await, 422, why);
    }
    garden.put(
        "",
        "configmaps",
        policy("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}"),
    );
    assert!(garden.update(ONE, "", audited()).await.is_ok());
}

#[tokio::test]
async fn tol_16_who_may_choose_a_seed() {
    let mut garden = garden().await;
    garden.user = UserInfo::new("alice", &[]);
    garden.forbidden = vec![("update", "shoots/binding", "two")];
    let two = |more: Value| {
        let mut two = shoot(json!({"metadata": {"name": "two"}}));
        merge(&mut two, more);
        two
    };
    refused(
        garden.create(two(json!({"spec": {"seedName": "s1"}}))).await,
        403,
        "user \"alice\" is not allowed to set .spec.seedName for \"shoots\"",
    );
    assert!(garden.create(two(json!({}))).await.is_ok());
}

/// Upstream's strategies tell what is wrong with an update's metadata once as a change and once by itself, around what changes.
#[tokio::test]
async fn updates_tell_of_metadata_in_upstreams_order() {
    let mut garden = Garden::new();
    let installation = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerInstallation", "metadata": {"name": "i"},
        "spec": {"registrationRef": {"name": "r"}, "seedRef": {"name": "s"}}});
    garden.put("core.gardener.cloud", "controllerinstallations", installation);
    let change = |object: &mut Value| {
        object["metadata"]["labels"] = json!({"Bad Key": "x"});
        object["spec"]["registrationRef"]["name"] = "other".into();
    };
    let refused = garden
        .update(("ControllerInstallation", "", "i"), "", change)
        .await
        .unwrap_err();
    let status = serde_json::to_value(refused.status()).unwrap();
    let causes = status["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    assert_eq!(
        fields,
        ["metadata.labels", "spec.registrationRef.name", "metadata.labels"]
    );
    let change = |object: &mut Value| {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "A", "name": "a"}])
    };
    let refused = garden
        .update(("ControllerInstallation", "", "i"), "", change)
        .await
        .unwrap_err();
    let status = serde_json::to_value(refused.status()).unwrap();
    let causes = status["details"]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert!(
        causes
            .iter()
            .all(|cause| cause["field"] == "metadata.ownerReferences.uid")
    );
}

/// As a real gardener-apiserver answered.
#[tokio::test]
async fn shoots_and_registrations_are_refused_as_upstream() {
    let named = |name: &str, more: Value| {
        let mut one = shoot(more);
        one["metadata"]["name"] = name.into();
        one
    };
    // a default domain is the shoot's own, also before it has a seed
    let mut garden = garden().await;
    let domain = |domain: &str| json!({"spec": {"dns": {"domain": domain}}});
    let secret = json!({"metadata": {
        "name": "default-domain", "namespace": "garden", "labels": {"gardener.cloud/role": "default-domain"},
        "annotations": {"dns.gardener.cloud/domain": "default.org", "dns.gardener.cloud/provider": "local"},
    }});
    garden.put("", "secrets", secret);
    refused(
        garden.create(named("two", domain("two.default.org"))).await,
        422,
        "shoot uses a default domain but does not match expected scheme: <shoot-name>.<project-name>.<default-domain> (expected 'two.dev.default.org', but got 'two.default.org')",
    );
    // a profile has one name
    for version in ["1.33.5", "1.34.1"] {
        let twice = json!({"spec": {"cloudProfileName": "local", "kubernetes": {"version": version}}});
        let told = garden.create(named("three", twice)).await.unwrap_err();
        assert_eq!(
            (told.code(), told.reason(), told.message()),
            (
                500,
                "",
                "new shoot can only specify either cloudProfileName or cloudProfile reference"
            )
        );
    }
    // of each kind of extension the type that is found last counts
    let registration = |name: &str, types: &[&str]| {
        let resources: Vec<Value> = types
            .iter()
            .map(|own| json!({"kind": "Extension", "type": own}))
            .collect();
        core(
            "ControllerRegistration",
            ("", name),
            json!({"spec": {"resources": resources}}),
        )
    };
    garden.put(CORE, "controllerregistrations", registration("z1", &["a", "b"]));
    refused(
        garden.create(registration("z2", &["b"])).await,
        403,
        "another ControllerRegistration resource already exists that controls resource Extension/b primarily",
    );
    assert!(garden.create(registration("z3", &["a"])).await.is_ok());
}

/// As a real gardener-apiserver answered.
#[tokio::test]
async fn what_is_kept_and_told_of_changes() {
    let mut garden = garden().await;
    // a seed's configuration tells the seed
    let at_home = json!({"metadata": {"name": "home", "namespace": "garden"}, "spec": {
        "dns": {"domain": "home.example.org"}, "kubernetes": {"verticalPodAutoscaler": {"enabled": true}},
    }});
    garden.put(CORE, "shoots", shoot(at_home));
    let managed = |gardenlet: Value| {
        let spec = json!({"spec": {"shoot": {"name": "home"}, "gardenlet": gardenlet}});
        object(
            "seedmanagement.gardener.cloud/v1alpha1",
            "ManagedSeed",
            ("garden", "home"),
            spec,
        )
    };
    refused(
        garden.create(managed(json!({}))).await,
        500,
        "no seed config found for managedseed home",
    );
    // the subject of a WorkloadIdentity is told with each change
    let identity = object(
        "security.gardener.cloud/v1alpha1",
        "WorkloadIdentity",
        ("garden-dev", "wi"),
        json!({"spec": {"audiences": ["a"], "targetSystem": {"type": "local"}}}),
    );
    garden.create(identity).await.unwrap();
    refused(
        garden
            .update(
                ("WorkloadIdentity", "garden-dev", "wi"),
                "",
                change(json!({"status": null})),
            )
            .await,
        422,
        "status.sub: Required value: must specify sub claim value",
    );
    // an unmanaged provider is the first one like any other
    let unmanaged =
        json!({"metadata": {"name": "two"}, "spec": {"seedName": "s1", "dns": {"providers": [{"type": "unmanaged"}]}}});
    let two = garden.create(shoot(unmanaged)).await.unwrap();
    assert_eq!(
        two["spec"]["dns"],
        json!({"providers": [{"primary": true, "type": "unmanaged"}]})
    );
    // a name of a profile that is made undone counts as a change
    let old = json!({"metadata": {"name": "three"}, "spec": {"kubernetes": {"version": "1.32.9"}}});
    let versions = json!([{"version": "1.36.0"}, {"version": "1.34.1"}, {"version": "1.32.9"}]);
    let offered = json!({"spec": {"kubernetes": {"versions": versions}}});
    set(&mut garden, "cloudprofiles", ("", "local"), offered);
    garden.create(shoot(old)).await.unwrap();
    let renamed = change(json!({"spec": {"cloudProfileName": "other"}}));
    let three = garden
        .update(("Shoot", "garden-dev", "three"), "", renamed)
        .await
        .unwrap();
    assert_eq!(
        (&three["spec"]["cloudProfileName"], &three["metadata"]["generation"]),
        (&json!("local"), &json!(2))
    );
    // the selector of a placed shoot is told in Go's order
    let placed = json!({"spec": {"seedName": "s1"}});
    set(&mut garden, "shoots", ("garden-dev", "one"), placed);
    let selector = json!({"spec": {"seedSelector": {"matchLabels": {"a": "b"}, "providerTypes": ["x"]}}});
    refused(
        garden.update(ONE, "", change(selector)).await,
        403,
        "spec.seedSelector: Invalid value: {\"matchLabels\":{\"a\":\"b\"},\"ProviderTypes\":[\"x\"]}: cannot change seedSelector to not match the labels",
    );
    // amounts that a status tells are whole
    let types = json!([{"name": "m", "cpu": null, "gpu": null, "memory": "1024Mi"}]);
    let profile = core(
        "NamespacedCloudProfile",
        ("garden-dev", "own"),
        json!({"spec": {"parent": {"kind": "CloudProfile", "name": "local"}}}),
    );
    garden.create(profile).await.unwrap();
    let told = change(json!({"status": {"cloudProfileSpec": {"machineTypes": types}}}));
    let own = garden
        .update(("NamespacedCloudProfile", "garden-dev", "own"), "status", told)
        .await
        .unwrap();
    let told = &own["status"]["cloudProfileSpec"]["machineTypes"][0];
    assert_eq!(
        (&told["cpu"], &told["gpu"], &told["memory"]),
        (&json!("0"), &json!("0"), &json!("1Gi"))
    );
}

/// As with a real gardener-apiserver, some plugins look at what is in deletion like at anything else.
#[tokio::test]
async fn what_is_in_deletion_is_labelled_and_has_a_seed() {
    let mut garden = garden().await;
    let goes =
        json!({"metadata": {"deletionTimestamp": "2026-05-01T09:00:00Z", "labels": null, "finalizers": ["gardener"]}});
    set(&mut garden, "shoots", ("garden-dev", "one"), goes);
    let labelled = change(json!({"metadata": {"labels": {"a": "b"}}}));
    let labels = &garden.update(ONE, "", labelled).await.unwrap()["metadata"]["labels"];
    assert_eq!(
        labels,
        &json!({
            "a": "b",
            "networking.extensions.gardener.cloud/calico": "true",
            "operatingsystemconfig.extensions.gardener.cloud/linux": "true",
            "provider.extensions.gardener.cloud/local": "true",
        })
    );
    refused(
        garden
            .update(ONE, "binding", change(json!({"spec": {"seedName": "nope"}})))
            .await,
        500,
        "error retrieving default domains: Internal error occurred: could not get seed nope: seed.core.gardener.cloud \"nope\" not found",
    );
    let goes = json!({"deletionTimestamp": "2026-05-01T09:00:00Z", "finalizers": ["gardener"]});
    let bucket = core(
        "BackupBucket",
        ("", "bucket"),
        json!({"spec": {"provider": {"type": "local"}, "seedName": "s1"}}),
    );
    garden.put(CORE, "backupbuckets", bucket);
    let entry = core(
        "BackupEntry",
        ("garden-dev", "entry"),
        json!({"metadata": goes, "spec": {"bucketName": "bucket", "seedName": "s1"}}),
    );
    garden.put(CORE, "backupentries", entry);
    let moved = change(json!({"spec": {"seedName": "nope"}}));
    refused(
        garden.update(("BackupEntry", "garden-dev", "entry"), "", moved).await,
        403,
        "seed.core.gardener.cloud \"nope\" not found",
    );
    // nobody becomes a member of a project that goes
    let owner = |name: &str| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let project = json!({"metadata": goes, "spec": {"owner": owner("alice"), "createdBy": owner("alice")}});
    set(&mut garden, "projects", ("", "dev"), project);
    let given = change(json!({"spec": {"owner": owner("bob")}}));
    let project = garden.update(("Project", "", "dev"), "", given).await.unwrap();
    assert_eq!(project["spec"].get("members"), None);
}

/// A client refuses a name that its request's path cannot have before it asks. Who looks into what it remembers finds nothing.
#[tokio::test]
async fn names_that_cannot_be_asked_for() {
    let mut garden = garden().await;
    let bastion = |name: &str| {
        object(
            "operations.gardener.cloud/v1alpha1",
            "Bastion",
            ("garden-dev", "b"),
            json!({"spec": {"shootRef": {"name": name}, "sshPublicKey": "ssh-rsa AAAA", "ingress": []}}),
        )
    };
    let why = "could not get shoot garden-dev/a/b%: invalid resource name \"a/b%\": [may not contain '/' may not contain '%']";
    refused(garden.create(bastion("a/b%")).await, 500, why);
    refused(
        garden.create(bastion("gone")).await,
        422,
        "shoot garden-dev/gone not found",
    );
    let registration = core(
        "ControllerRegistration",
        ("", "other"),
        json!({"spec": {"deployment": {"deploymentRefs": [{"name": "50%"}]}}}),
    );
    refused(
        garden.create(registration).await,
        403,
        "1 error occurred:\n\t* invalid resource name \"50%\": [may not contain '%']\n",
    );
    let authentication =
        json!({"spec": {"kubernetes": {"kubeAPIServer": {"structuredAuthentication": {"configMapName": "a/b"}}}}});
    refused(
        garden
            .update(("Shoot", "garden-dev", "one"), "", change(authentication))
            .await,
        403,
        "failed to resolve structured authentication config map reference: invalid resource name \"a/b\": [may not contain '/']",
    );
}
