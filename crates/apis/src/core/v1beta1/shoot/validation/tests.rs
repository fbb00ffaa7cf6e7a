//! Table tests over whole shoots: each row changes one thing of a good shoot and names the finding.

mod words;

use serde_json::{Value, json};

use super::*;
use crate::core::v1beta1::shoot::{default_shoot, sync_cloud_profile};

/// A complete shoot with nodes, without defaults.
pub(crate) fn good() -> Value {
    json!({
        "metadata": {"name": "one", "namespace": "garden-local"},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "local"},
            "credentialsBindingName": "local",
            "region": "local",
            "kubernetes": {"version": "1.35.0"},
            "networking": {"type": "calico", "pods": "10.3.0.0/16"},
            "provider": {"type": "local", "workers": [{
                "name": "w", "minimum": 1, "maximum": 2,
                "machine": {"type": "local", "image": {"name": "local", "version": "1.0.0"}}
            }]}
        }
    })
}

fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(key);
                } else {
                    merge(target.entry(key.clone()).or_insert(json!({})), value);
                }
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

/// A good shoot with changes, defaulted.
pub(crate) fn shoot(patch: Value) -> Shoot {
    shoot_with(&[patch])
}

fn shoot_with(patches: &[Value]) -> Shoot {
    let mut value = good();
    for patch in patches {
        merge(&mut value, patch);
    }
    let mut shoot: Shoot = serde_json::from_value(value).unwrap();
    default_shoot(&mut shoot, 3);
    sync_cloud_profile(&mut shoot, None);
    shoot
}

fn worker(patch: Value) -> Value {
    let mut worker = good()["spec"]["provider"]["workers"][0].clone();
    merge(&mut worker, &patch);
    json!({"spec": {"provider": {"workers": [worker]}}})
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn finds(patch: Value, expected: &str) {
    let found = texts(&validate_shoot(&shoot(patch.clone())));
    assert!(
        found.iter().any(|text| text.contains(expected)),
        "{patch}: {expected} is not in {found:#?}"
    );
}

#[test]
fn a_good_shoot_has_no_findings() {
    assert_eq!(texts(&validate_shoot_creation(&shoot(json!({})))), Vec::<String>::new());
    let workerless = json!({"metadata": {"name": "w", "namespace": "garden-local"}, "spec": {
        "cloudProfile": {"name": "local"}, "region": "local", "kubernetes": {"version": "1.35.0"}, "provider": {"type": "local"}}});
    let mut workerless: Shoot = serde_json::from_value(workerless).unwrap();
    default_shoot(&mut workerless, 0);
    sync_cloud_profile(&mut workerless, None);
    assert_eq!(texts(&validate_shoot_creation(&workerless)), Vec::<String>::new());
}

#[test]
fn val_s_top_level() {
    for (patch, expected) in [
        (
            json!({"metadata": {"name": "a.b"}}),
            "metadata.name: Invalid value: \"a.b\"",
        ),
        (
            json!({"metadata": {"name": "a--b"}}),
            "name may not contain two consecutive hyphens",
        ),
        (
            json!({"spec": {"cloudProfile": null}}),
            "spec.cloudProfile.name: Required value: must specify a cloud profile",
        ),
        (
            json!({"spec": {"cloudProfileName": "x"}}),
            "spec.cloudProfileName: Forbidden: for Kubernetes version >= 1.34",
        ),
        (
            json!({"spec": {"region": ""}}),
            "spec.region: Required value: must specify a region",
        ),
        (
            json!({"spec": {"credentialsBindingName": null}}),
            "spec.secretBindingName: Required value",
        ),
        (
            json!({"spec": {"secretBindingName": "s"}}),
            "is incompatible with credentialsBindingName",
        ),
        (
            json!({"spec": {"seedName": ""}}),
            "seed name must not be empty when providing the key",
        ),
        (
            json!({"spec": {"purpose": "infrastructure"}}),
            "spec.purpose: Unsupported value: \"infrastructure\"",
        ),
        (
            json!({"spec": {"tolerations": [{"key": ""}]}}),
            "spec.tolerations[0].key: Required value",
        ),
        (
            json!({"spec": {"exposureClassName": "A"}}),
            "exposureClassName is not a valid DNS subdomain",
        ),
        (
            json!({"spec": {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "all"}}}}}),
            "Unsupported value: \"all\"",
        ),
        (
            json!({"spec": {"controlPlane": {"zones": ["a", "a"]}}}),
            "spec.controlPlane.zones[1]: Duplicate value",
        ),
        (
            json!({"spec": {"extensions": [{"type": "x"}, {"type": "x"}]}}),
            "spec.extensions[1].type: Duplicate value: \"x\"",
        ),
        (
            json!({"spec": {"resources": [{"name": "n", "resourceRef": {"kind": "Node", "name": "x"}}]}}),
            "spec.resources[0].resourceRef: Unsupported value",
        ),
    ] {
        finds(patch, expected);
    }
}

#[test]
fn val_w_workerless() {
    let mut value = good();
    value["spec"]["provider"]["workers"] = json!([]);
    let one: Shoot = serde_json::from_value(value).unwrap();
    let found = texts(&validate_shoot(&one));
    for field in [
        "spec.credentialsBindingName",
        "spec.networking.type",
        "spec.networking.pods",
    ] {
        let expected = format!("{field}: Forbidden: this field should not be set for workerless Shoot clusters");
        assert!(found.contains(&expected), "{field}: {found:#?}");
    }
}

#[test]
fn val_p_pools() {
    for (patch, expected) in [
        (
            json!({"name": ""}),
            "workers[0].name: Invalid value: \"\": a lowercase RFC 1123 label must consist of",
        ),
        (
            json!({"name": "abcdefghijklmnop"}),
            "workers[0].name: Too long: may not be more than 15 bytes",
        ),
        (
            json!({"machine": {"type": ""}}),
            "workers[0].machine.type: Required value",
        ),
        (json!({"machine": {"image": null}}), "must specify a machine image"),
        (json!({"minimum": -1}), "minimum value must not be negative"),
        (
            json!({"maximum": 0}),
            "workers[0].maximum: Forbidden: maximum value must not be less than minimum value",
        ),
        (
            json!({"maxSurge": 0, "maxUnavailable": 0}),
            "may not be 0 when `maxSurge` is 0",
        ),
        (json!({"maxSurge": "five"}), "must be an integer or percentage"),
        (json!({"maxUnavailable": "101%"}), "must not be greater than 100%"),
        (
            json!({"labels": {"a b": "c"}}),
            "workers[0].labels: Invalid value: \"a b\"",
        ),
        (
            json!({"taints": [{"key": "k", "effect": "Sometimes"}]}),
            "taints[0].effect: Unsupported value",
        ),
        (
            json!({"kubernetes": {"version": "1.36.0"}}),
            "must not be higher than control plane version",
        ),
        (
            json!({"kubernetes": {"version": "1.31.0"}}),
            "at most three minor versions behind",
        ),
        (json!({"volume": {"size": "20G"}}), "volume size must match the regex"),
        (
            json!({"dataVolumes": [{"name": "d", "size": "1Gi"}]}),
            "a worker volume must be defined",
        ),
        (
            json!({"kubeletDataVolumeName": "d"}),
            "refers to unrecognized data volume d",
        ),
        (
            json!({"cri": {"name": "docker"}}),
            "cri.name: Unsupported value: \"docker\"",
        ),
        (
            json!({"machine": {"architecture": "mips"}}),
            "machine.architecture: Unsupported value",
        ),
        (json!({"updateStrategy": "Never"}), "updateStrategy: Unsupported value"),
        (json!({"priority": -2}), "can not be less than -1"),
        (
            json!({"sysctls": {"a..b": "1"}}),
            "workers[0].sysctls.a..b: Invalid value",
        ),
        (json!({"systemComponents": {"allow": false}}), "at least one active"),
        (
            json!({"zones": ["a", "b", "c"]}),
            "maximum node count should be greater than or equal to the number of zones",
        ),
        (
            json!({"machineControllerManager": {"machineDrainTimeout": "-1s"}}),
            "machineDrainTimeout: Invalid value: \"-1s\": must be non-negative",
        ),
    ] {
        finds(worker(patch), expected);
    }
}

#[test]
fn val_k_components() {
    for (patch, expected) in [
        (
            json!({"kubeAPIServer": {"eventTTL": "25h"}}),
            "can not be longer than 24h",
        ),
        (
            json!({"kubeAPIServer": {"requests": {"maxMutatingInflight": 2501}}}),
            "cannot set higher than 2500",
        ),
        (
            json!({"kubeAPIServer": {"tlsMinVersion": "VersionTLS10"}}),
            "tlsMinVersion: Unsupported value",
        ),
        (
            json!({"kubeAPIServer": {"serviceAccountConfig": {"maxTokenExpiration": "1h"}}}),
            "must be at least 720h (30d)",
        ),
        (
            json!({"kubeAPIServer": {"serviceAccountConfig": {"issuer": "http://x"}}}),
            "have https scheme",
        ),
        (
            json!({"kubeAPIServer": {"encryptionConfig": {"resources": ["secrets"]}}}),
            "\"secrets\" are always encrypted",
        ),
        (
            json!({"kubeAPIServer": {"encryptionConfig": {"provider": {"type": "aesgcm"}}}}),
            "auto rotation must be enabled",
        ),
        (
            json!({"kubeAPIServer": {"enableAnonymousAuthentication": true}}),
            "enableAnonymousAuthentication field is no longer supported",
        ),
        (
            json!({"kubeControllerManager": {"nodeCIDRMaskSize": 29}}),
            "must be between 16 and 28",
        ),
        (
            json!({"kubeControllerManager": {"nodeCIDRMaskSize": 26}}),
            "support the highest maxPod",
        ),
        (
            json!({"kubeScheduler": {"profile": "fast"}}),
            "kubeScheduler.profile: Unsupported value",
        ),
        (
            json!({"kubeProxy": {"mode": "Warp"}}),
            "kubeProxy.mode: Unsupported value: \"Warp\": supported values: \"IPTables\", \"IPVS\", \"NFTables\"",
        ),
        (
            json!({"clusterAutoscaler": {"ignoreTaints": []}}),
            "clusterAutoscaler.ignoreTaints.IgnoreTaints: Forbidden: not supported in Kubernetes version 1.35.0",
        ),
        (
            json!({"clusterAutoscaler": {"expander": "best"}}),
            "clusterAutoscaler.expander: Unsupported value",
        ),
        (
            json!({"clusterAutoscaler": {"scaleDownUtilizationThreshold": 1.5}}),
            "can not be greater than 1.0",
        ),
        (
            json!({"verticalPodAutoscaler": {"enabled": true, "evictionTolerance": 1.0}}),
            "in the range [0, 1)",
        ),
        (
            json!({"kubelet": {"imageGCHighThresholdPercent": 30}}),
            "must be less than imageGCHighThresholdPercent",
        ),
        (
            json!({"kubelet": {"evictionHard": {"memoryAvailable": "much"}}}),
            "evictionHard.memoryAvailable: Invalid value",
        ),
        (
            json!({"kubelet": {"evictionHard": {"memoryAvailable": "-5%"}}}),
            "evictionHard.memoryAvailable: Invalid value: \"-5%\": field must be either a valid resource quantity",
        ),
        (
            json!({"kubelet": {"evictionHard": {"memoryAvailable": "5.5%"}}}),
            "evictionHard.memoryAvailable: Invalid value: \"5.5%\": field must be either a valid resource quantity",
        ),
        (
            json!({"kubelet": {"evictionHard": {"memoryAvailable": "101%"}}}),
            "evictionHard.memoryAvailable: Invalid value: \"101%\": must not be greater than 100%",
        ),
        (
            json!({"kubelet": {"featureGates": {"Nonsense": true}}}),
            "unknown feature gate",
        ),
        (
            json!({"kubelet": {"podPidsLimit": 9}}),
            "podPIDsLimit value must be at least 100",
        ),
        (json!({"kubelet": {"memorySwap": {}}}), "'FailSwapOn=true'"),
        (
            json!({"etcd": {"main": {"autoscaling": {"minAllowed": {"memory": "100M"}}}}}),
            "value must be bigger than >= 300M",
        ),
    ] {
        finds(json!({"spec": {"kubernetes": patch}}), expected);
    }
    finds(
        json!({"spec": {"kubernetes": {"version": null}}}),
        "kubernetes version must not be empty",
    );
}

#[test]
fn val_n_d_a_m_h_the_rest() {
    for (patch, expected) in [
        (
            json!({"networking": {"type": ""}}),
            "spec.networking.type: Required value: networking type must be provided",
        ),
        (
            json!({"networking": {"pods": "10.3.0.1/16"}}),
            "must be valid canonical CIDR",
        ),
        (
            json!({"networking": {"services": "fd00::/108"}}),
            "must be a valid IPv4 address",
        ),
        (
            json!({"networking": {"ipFamilies": ["IPv5"]}}),
            "spec.networking.ipFamilies[0]: Unsupported value",
        ),
        (json!({"dns": {"domain": "A"}}), "spec.dns.domain: Invalid value"),
        (
            json!({"dns": {"providers": [{"type": "x"}]}}),
            "non-primary DNS providers must specify `credentialsRef`",
        ),
        (
            json!({"addons": {"nginxIngress": {"enabled": true}}}),
            "addons field is no longer supported",
        ),
        (
            json!({"maintenance": {"timeWindow": {"begin": "1 pm", "end": "2 pm"}}}),
            "spec.maintenance.timeWindow.begin/end: Invalid value: {\"Begin\":\"1 pm\",\"End\":\"2 pm\"}: could not parse begin time",
        ),
        (
            json!({"maintenance": {"autoRotation": {"credentials": {"observability": {"rotationPeriod": "1m"}}}}}),
            "between 30m and 90d",
        ),
        (
            json!({"monitoring": {"alerting": {"emailReceivers": ["nobody"]}}}),
            "must provide a valid email",
        ),
        (
            json!({"hibernation": {"schedules": [{}]}}),
            "either start or end has to be provided",
        ),
        (
            json!({"hibernation": {"schedules": [{"start": "never"}]}}),
            "not a valid cron spec: Expected exactly 5 fields, found 1: never",
        ),
        (
            json!({"hibernation": {"schedules": [{"start": "0 1 * * *", "location": "Atlantis"}]}}),
            "location: Invalid value: \"Atlantis\": not a valid location",
        ),
        (
            json!({"hibernation": {"schedules": [{"start": "0 1 * * *"}, {"end": "0 1 * * *"}]}}),
            "schedules[1].end: Duplicate value",
        ),
        (
            json!({"systemComponents": {"coreDNS": {"rewriting": {"commonSuffixes": [".com"]}}}}),
            "at least one non-leading dot",
        ),
    ] {
        finds(json!({"spec": patch}), expected);
    }
}

#[test]
fn val_o_operations() {
    let annotated =
        |now: &str, later: &str| json!({"metadata": {"annotations": {OPERATION: now, MAINTENANCE_OPERATION: later}}});
    let created = |patch: Value| {
        let mut patch = patch;
        merge(
            &mut patch,
            &json!({"status": {"lastOperation": {"type": "Create", "state": "Succeeded"}}}),
        );
        patch
    };
    assert_eq!(validate_shoot(&shoot(created(annotated("rotate-ca-start", "")))), []);
    for (patch, expected) in [
        (
            annotated("dance", ""),
            "metadata.annotations[gardener.cloud/operation]: Unsupported value: \"dance\"",
        ),
        (
            annotated("retry;reconcile", ""),
            "operation 'retry' is not permitted to be run in parallel",
        ),
        (
            annotated("reconcile", "reconcile"),
            "must not have any equal operations",
        ),
        (
            annotated("rotate-ca-start", ""),
            "cannot start CA rotation if shoot was not yet created successfully",
        ),
        (
            created(annotated("rotate-ca-start;rotate-ca-start-without-workers-rollout", "")),
            "is not permitted to be run together with",
        ),
        (annotated("rotate-ca-complete", ""), "phase is not 'Prepared'"),
        (
            annotated("rotate-etcd-encryption-key-start", ""),
            "please use 'rotate-etcd-encryption-key' instead",
        ),
        (annotated("rollout-workers=x", ""), "worker pool name x does not exist"),
        (annotated("rollout-workers=*,w", ""), "no other pool names are allowed"),
        (
            annotated("rotate-ca-start", "rotate-credentials-start"),
            "is not permitted when maintenance operation is 'rotate-credentials-start'",
        ),
    ] {
        finds(patch, expected);
    }
}

/// UC-15 and UC-34 to UC-38, by their words; nothing where the change is allowed.
#[test]
fn uc_15_34_to_38_windows_and_operations() {
    let annotated = |now: &str, later: &str| {
        json!({
            "metadata": {"annotations": {OPERATION: now, MAINTENANCE_OPERATION: later}},
            "status": {"lastOperation": {"type": "Create", "state": "Succeeded"}},
        })
    };
    let asleep = |mut patch: Value| {
        merge(&mut patch, &json!({"spec": {"hibernation": {"enabled": true}}}));
        patch
    };
    let waking = |mut patch: Value| {
        merge(&mut patch, &json!({"status": {"hibernated": true}}));
        patch
    };
    let hibernated = "is not permitted when shoot is hibernated or is waking up";
    let day = json!({"spec": {"maintenance": {"timeWindow": {"begin": "220000+0000", "end": "220000+0000"}}}});
    for (id, patch, expected) in [
        ("UC-15", day, "time window must not be greater than 6h0m0s"),
        ("UC-34", asleep(annotated("rotate-credentials-start", "")), hibernated),
        (
            "UC-34 waking",
            waking(annotated("rotate-credentials-start", "")),
            hibernated,
        ),
        ("UC-35", asleep(annotated("rotate-ca-start", "")), ""),
        (
            "UC-36",
            annotated("rollout-workers=*,a", ""),
            "if '*' is provided, no other pool names are allowed",
        ),
        (
            "UC-37",
            annotated("reconcile;maintain", ""),
            "operation 'maintain' is not permitted to be run in parallel with other operations",
        ),
        (
            "UC-38",
            annotated("rotate-ssh-keypair", "rotate-ssh-keypair"),
            "must not have any equal operations",
        ),
    ] {
        let found = texts(&validate_shoot(&shoot(patch)));
        let as_expected = match expected {
            "" => found.is_empty(),
            expected => found.iter().any(|text| text.contains(expected)),
        };
        assert!(as_expected, "{id}: {found:#?}");
    }
    // [UPD-50]: what cannot be asked for while the shoot sleeps, and what can
    for (operation, is_forbidden) in [
        ("maintain", false),
        ("retry", false),
        ("reconcile", false),
        ("rotate-ca-start", false),
        ("rotate-observability-credentials", false),
        ("rotate-ssh-keypair", false),
        ("rotate-credentials-start", true),
        ("rotate-credentials-start-without-workers-rollout", true),
        ("rotate-serviceaccount-key-start", true),
        ("rotate-etcd-encryption-key", true),
        ("rollout-workers=w", true),
    ] {
        for (now, later) in [(operation, ""), ("", operation)] {
            let found = texts(&validate_shoot(&shoot(waking(annotated(now, later)))));
            let told = found.iter().any(|text| text.contains(hibernated));
            assert_eq!(told, is_forbidden, "{operation} {now:?} {found:#?}");
        }
    }
}

/// [ST-151], [ST-170]: what keeps a shoot awake, and which schedules there may be.
#[test]
fn st_151_170_hibernation() {
    let base = json!({"spec": {"kubernetes": {"kubeAPIServer": {"encryptionConfig": {"resources": ["configmaps"]}}}}});
    let state = |key: &str, phase: &str, encrypted: Value| {
        json!({"status": {"credentials": {
        "rotation": {key: {"phase": phase}}, "encryptionAtRest": {"resources": encrypted}}}})
    };
    let good = || json!(["configmaps"]);
    for (status, expected) in [
        (state("etcdEncryptionKey", "Completed", good()), ""),
        (state("etcdEncryptionKey", "Prepared", good()), ""),
        (
            state("etcdEncryptionKey", "Preparing", good()),
            "etcdEncryptionKey.phase is \"Preparing\"",
        ),
        (
            state("etcdEncryptionKey", "Completing", good()),
            "etcdEncryptionKey.phase is \"Completing\"",
        ),
        (state("serviceAccountKey", "Prepared", good()), ""),
        (
            state("serviceAccountKey", "Preparing", good()),
            "serviceAccountKey.phase is \"Preparing\"",
        ),
        (
            state("serviceAccountKey", "PreparingWithoutWorkersRollout", good()),
            "serviceAccountKey.phase is \"PreparingWithoutWorkersRollout\"",
        ),
        (
            state("serviceAccountKey", "Completing", good()),
            "serviceAccountKey.phase is \"Completing\"",
        ),
        (
            state("serviceAccountKey", "Completed", json!([])),
            "status.credentials.encryptionAtRest.resources are not equal",
        ),
    ] {
        let old = shoot_with(&[base.clone(), status.clone()]);
        let sleeps = json!({"spec": {"hibernation": {"enabled": true}}});
        let new = shoot_with(&[base.clone(), status.clone(), sleeps]);
        let found = texts(&validate_shoot_update(&new, &old));
        let as_expected = match expected {
            "" => found.is_empty(),
            expected => found
                .iter()
                .any(|text| text.contains("spec.hibernation.enabled: Forbidden") && text.contains(expected)),
        };
        assert!(as_expected, "{status}: {found:#?}");
    }
    let schedules = |schedules: Value| {
        texts(&validate_shoot(&shoot(
            json!({"spec": {"hibernation": {"schedules": schedules}}}),
        )))
    };
    for good in [
        json!([{"start": "0 20 * * 1-5", "end": "0 6 * * 1-5", "location": "Europe/Berlin"}]),
        json!([{"start": "@daily"}, {"end": "TZ=Asia/Tokyo 0 6 * * *", "location": ""}]),
        json!([{"end": "@every 12h"}]),
    ] {
        assert_eq!(schedules(good.clone()), Vec::<String>::new(), "{good}");
    }
    for (bad, expected) in [
        (json!([{}]), "schedules[0].start/end: Required value"),
        (
            json!([{"start": ""}]),
            "schedules[0].start: Invalid value: \"\": not a valid cron spec: ",
        ),
        (json!([{"end": "0 0 0 * * *"}]), "schedules[0].end: Invalid value"),
        (
            json!([{"start": "0 1 * * *", "end": "0 1 * * *"}]),
            "schedules[0].end: Duplicate value: \"0 1 * * *\"",
        ),
        (
            json!([{"start": "0 1 * * *"}, {"start": "0 1 * * *", "location": "Asia/Tokyo"}]),
            "schedules[1].start: Duplicate value",
        ),
        (
            json!([{"start": "0 1 * * *", "location": "Moon/Crater"}]),
            "schedules[0].location: Invalid value: \"Moon/Crater\": not a valid location",
        ),
    ] {
        let found = schedules(bad.clone());
        assert!(found.iter().any(|text| text.contains(expected)), "{bad}: {found:#?}");
    }
}

#[test]
fn val_u_changes() {
    let old = shoot(json!({"spec": {"seedName": "s", "dns": {"domain": "a.example.org"}}}));
    let check = |patch: Value| {
        let base = json!({"spec": {"seedName": "s", "dns": {"domain": "a.example.org"}}});
        texts(&validate_shoot_update(&shoot_with(&[base, patch]), &old))
    };
    assert_eq!(check(json!({})), Vec::<String>::new());
    for (patch, expected) in [
        (
            json!({"spec": {"region": "south"}}),
            "spec.region: Invalid value: \"south\": field is immutable",
        ),
        (
            json!({"spec": {"provider": {"type": "other"}}}),
            "spec.provider.type: Invalid value: \"other\": field is immutable",
        ),
        (
            json!({"spec": {"networking": {"type": "cilium"}}}),
            "spec.networking.type: Invalid value: \"cilium\": field is immutable",
        ),
        (
            json!({"spec": {"networking": {"pods": "10.9.0.0/16"}}}),
            "spec.networking.pods: Invalid value",
        ),
        (
            json!({"spec": {"networking": {"ipFamilies": ["IPv6"]}}}),
            "unsupported IP family update: oldIPFamilies=[IPv4], newIPFamilies=[IPv6]",
        ),
        (
            json!({"spec": {"credentialsBindingName": null, "secretBindingName": "x"}}),
            "the field cannot be unset",
        ),
        (
            json!({"spec": {"kubernetes": {"version": "1.34.9"}}}),
            "spec.kubernetes.version: Forbidden: kubernetes version downgrade is not supported",
        ),
        (
            json!({"spec": {"kubernetes": {"version": "1.37.0"}}}),
            "kubernetes version upgrade cannot skip a minor version",
        ),
        (
            json!({"spec": {"provider": {"workers": []}}}),
            "cannot switch from a Shoot with workers to a workerless Shoot",
        ),
        (
            worker(json!({"updateStrategy": "AutoInPlaceUpdate"})),
            "update strategy cannot be changed from AutoRollingUpdate",
        ),
        (
            json!({"spec": {"dns": {"domain": "b.example.org"}}}),
            "spec.dns.domain: Invalid value: \"b.example.org\": field is immutable",
        ),
        (
            json!({"spec": {"schedulerName": "mine"}}),
            "spec.schedulerName: Invalid value: \"mine\": field is immutable",
        ),
        (
            json!({"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}}),
            "cannot be set when Shoot deletionTimestamp is nil",
        ),
    ] {
        let found = check(patch.clone());
        assert!(
            found.iter().any(|text| text.contains(expected)),
            "{patch}: {expected} is not in {found:#?}"
        );
    }
}

#[test]
fn val_u1_spec_is_frozen_in_deletion() {
    let patch = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let old = shoot(patch.clone());
    let mut new = old.clone();
    new.metadata.annotations = Some([("a".to_owned(), "b".to_owned())].into());
    assert_eq!(validate_shoot_update(&new, &old), []);
    new.spec.region = "south".into();
    assert_eq!(
        texts(&validate_shoot_update(&new, &old)),
        [
            "spec: Forbidden: cannot update shoot spec if deletion timestamp is set. Requested changes: Region: south != local"
        ]
    );
}

#[test]
fn val_s4_finalizers_on_creation() {
    let one = shoot(json!({"metadata": {"finalizers": ["gardener"]}}));
    assert_eq!(
        texts(&validate_shoot_creation(&one)),
        ["metadata.finalizers[0]: Forbidden: finalizer \"gardener\" cannot be added on creation"]
    );
}

#[test]
fn val_u21_status() {
    let mut old = ShootStatus {
        technical_id: "a".into(),
        ..ShootStatus::default()
    };
    let mut new = old.clone();
    new.technical_id = "b".into();
    assert_eq!(
        texts(&update::status_update(&new, &old)),
        ["status.technicalID: Invalid value: \"b\": field is immutable"]
    );
    old.technical_id.clear();
    assert!(update::status_update(&new, &old).is_empty());
}

#[test]
fn val_u21_networks_in_use() {
    let status = |networking: serde_json::Value| -> Shoot {
        let status = serde_json::json!({"networking": networking});
        serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}, "status": status})).unwrap()
    };
    let networking = serde_json::json!({"egressCIDRs": ["x", "10.0.0.1/8"], "services": ["10.1.0.0/16"], "nodes": ["10.2.0.1/16", "FD00::/64"]});
    let found = super::validate_shoot_status_update(&status(networking), &status(serde_json::json!({})));
    assert_eq!(
        texts(&found),
        [
            "status.networking.nodes[0]: Invalid value: \"10.2.0.1/16\": must be valid canonical CIDR",
            "status.networking.egressCIDRs[0]: Invalid value: \"x\": invalid CIDR address: x",
            "status.networking.egressCIDRs[1]: Invalid value: \"10.0.0.1/8\": must be valid canonical CIDR",
        ]
    );
}

#[test]
fn val_u21_advertised_urls() {
    let status = |addresses: serde_json::Value| -> Shoot {
        serde_json::from_value(
            serde_json::json!({"metadata": {"name": "a"}, "status": {"advertisedAddresses": addresses}}),
        )
        .unwrap()
    };
    let old = status(serde_json::json!([]));
    let refusals = |addresses: serde_json::Value| -> Vec<String> {
        let found = super::validate_shoot_status_update(&status(addresses), &old);
        found.iter().map(ToString::to_string).collect()
    };
    let form = "desired format: https://host[:port]";
    assert!(refusals(serde_json::json!([{"name": "a", "url": "https://api.example.org:443"}])).is_empty());
    assert_eq!(
        refusals(serde_json::json!([{"name": "", "url": "foo"}])),
        ["status.advertisedAddresses[0].name: Required value: field must not be empty"]
    );
    assert_eq!(
        refusals(serde_json::json!([{"name": "a", "url": ""}])),
        [
            format!(
                "status.advertisedAddresses[0].url: Invalid value: \"\": 'https' is the only allowed URL scheme; {form}"
            ),
            format!("status.advertisedAddresses[0].url: Invalid value: \"\": host must be provided; {form}"),
        ]
    );
    assert_eq!(
        refusals(serde_json::json!([{"name": "a", "url": "http://u@h/x?y#z"}])),
        [
            format!(
                "status.advertisedAddresses[0].url: Invalid value: \"http\": 'https' is the only allowed URL scheme; {form}"
            ),
            format!(
                "status.advertisedAddresses[0].url: Invalid value: \"u\": user information is not permitted in the URL; {form}"
            ),
            format!(
                "status.advertisedAddresses[0].url: Invalid value: \"z\": fragments are not permitted in the URL; {form}"
            ),
            format!(
                "status.advertisedAddresses[0].url: Invalid value: \"y\": query parameters are not permitted in the URL; {form}"
            ),
        ]
    );
    let url = |url: &str| refusals(serde_json::json!([{"name": "a", "url": url}]));
    let refused = |why: &str| format!("status.advertisedAddresses[0].url: {why}; {form}");
    assert_eq!(
        url("https://@h"),
        [refused(
            "Invalid value: \"\": user information is not permitted in the URL"
        )]
    );
    assert_eq!(
        url("https://h h"),
        [refused(
            "Required value: url must be a valid URL: parse \"https://h h\": invalid character \" \" in host name"
        )]
    );
}

/// With rules that compare each element with each other this takes minutes: one request must not hold up the others for so long.
#[test]
fn lists_may_be_long() {
    let names: Vec<String> = (0..100_000).map(|number| format!("n{number}")).collect();
    let emails: Vec<String> = names.iter().map(|name| format!("{name}@example.com")).collect();
    let issuers: Vec<String> = names.iter().map(|name| format!("https://{name}.example.com")).collect();
    let extensions: Vec<Value> = names.iter().map(|name| json!({"type": name})).collect();
    let volumes: Vec<Value> = names.iter().map(|name| json!({"name": name, "size": "1Gi"})).collect();
    let spec = json!({
        "controlPlane": {"zones": names},
        "extensions": extensions,
        "monitoring": {"alerting": {"emailReceivers": emails}},
        "kubernetes": {"kubeAPIServer": {
            "apiAudiences": names,
            "serviceAccountConfig": {"acceptedIssuers": issuers},
        }},
    });
    let long = shoot_with(&[
        json!({"spec": spec}),
        worker(json!({"volume": {"size": "20Gi"}, "dataVolumes": volumes})),
    ]);
    let found = texts(&validate_shoot(&long));
    assert!(
        !found.iter().any(|text| text.contains("Duplicate value")),
        "{:?}",
        found.first()
    );
}
