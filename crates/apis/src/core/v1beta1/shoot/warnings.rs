//! What a shoot's owner is told without being refused, [VAL-X1], [VAL-X2], in upstream's words.

use std::time::Duration as Std;

use gardener_apimachinery::field::Path;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::constants::{annotation, operation};
use crate::versions::at_least;

/// Whose age is looked at, where it is told about, what it is called, and when it was last begun and finished.
type Rotated<'a> = (bool, &'static str, &'static str, Option<Option<&'a Time>>);

const DOCS: &str =
    "https://github.com/gardener/gardener/blob/master/docs/usage/shoot-operations/shoot_credentials_rotation.md";
const MIGRATION: &str = "https://github.com/gardener/gardener/blob/master/docs/usage/shoot-operations/secretbinding-to-credentialsbinding-migration.md";
const ANONYMOUS: &str =
    "https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-authenticator-configuration";

/// What is told of a write. Credentials are due when they were not rotated for `interval`, and a rotation that was begun is to be completed within a
/// third of it.
pub fn shoot_warnings(shoot: &Shoot, old: Option<&Shoot>, now: Timestamp, interval: Std) -> Vec<String> {
    let mut told = Vec::new();
    if old.is_some() {
        told.extend(due(shoot, now, interval));
        told.extend(incomplete(shoot, now, interval / 3));
    }
    let (spec, kubernetes) = (&shoot.spec, &shoot.spec.kubernetes);
    let version = kubernetes.version.as_deref().unwrap_or_default();
    let mut tell = |holds: bool, sentence: &str| {
        if holds {
            told.push(sentence.to_owned());
        }
    };
    let manager = kubernetes.kube_controller_manager.as_ref();
    tell(
        manager.is_some_and(|manager| manager.pod_eviction_timeout.is_some()),
        "you are setting the spec.kubernetes.kubeControllerManager.podEvictionTimeout field. The field does not have effect since Kubernetes 1.13 and is forbidden to be set starting from Kubernetes 1.33. Instead, use the spec.kubernetes.kubeAPIServer.(defaultNotReadyTolerationSeconds/defaultUnreachableTolerationSeconds) fields.",
    );
    let asked = shoot.annotation(annotation::OPERATION).unwrap_or_default();
    let halves = [
        operation::ROTATE_ETCD_ENCRYPTION_KEY_START,
        operation::ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE,
    ];
    tell(
        halves.contains(&asked),
        &format!(
            "you are setting the operation annotation to {asked}. This annotation has been deprecated and is forbidden to be set starting from Kubernetes 1.34. Instead, use the {} annotation, which performs a full rotation of the ETCD encryption key.",
            operation::ROTATE_ETCD_ENCRYPTION_KEY
        ),
    );
    let autoscaler = kubernetes.cluster_autoscaler.as_ref();
    tell(
        !at_least(version, 33) && autoscaler.is_some_and(|own| own.max_empty_bulk_delete.is_some()),
        "you are setting the spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete field. The field has been deprecated and is forbidden to be set starting from Kubernetes 1.33. The value is not used and will be set to nil. Instead, use the spec.kubernetes.clusterAutoscaler.maxScaleDownParallelism field.",
    );
    tell(
        at_least(version, 33) && spec.cloud_profile_name.as_deref().is_some_and(|name| !name.is_empty()),
        "you are setting the spec.cloudProfileName field. The field is deprecated and will be forcefully set empty starting with Kubernetes 1.34. Use the new spec.cloudProfile.name field instead.",
    );
    tell(
        spec.addons.is_some(),
        "you are setting the spec.addons field. The field is deprecated and will be forbidden starting with Kubernetes 1.35.",
    );
    let ipvs = |shoot: &Shoot| {
        let proxy = shoot.spec.kubernetes.kube_proxy.as_ref();
        proxy.is_some_and(|proxy| proxy.enabled == Some(true) && proxy.mode.as_deref() == Some("IPVS"))
    };
    if ipvs(shoot) {
        let deprecated = at_least(version, 35);
        tell(
            deprecated,
            "you are using IPVS mode for kube-proxy. The IPVS mode is deprecated starting with Kubernetes 1.35. Please switch to iptables or nftables mode.",
        );
        tell(
            !deprecated && old.is_some_and(|old| !ipvs(old)),
            "you have switched to IPVS mode for kube-proxy. The IPVS mode is deprecated starting with Kubernetes 1.35. Please switch to iptables or nftables mode.",
        );
    }
    tell(
        kubernetes
            .kube_scheduler
            .as_ref()
            .is_some_and(|own| own.kube_max_pd_vols.is_some()),
        "you are setting the spec.kubernetes.kubeScheduler.kubeMaxPDVols field. The field has been deprecated and is forbidden to be set starting from Kubernetes 1.35. The kubeMaxPDVols configuration is no longer necessary as values are set by the respective CSI driver.",
    );
    tell(
        spec.secret_binding_name.is_some(),
        &format!(
            "spec.secretBindingName is deprecated and will be disallowed starting with Kubernetes 1.34. For migration instructions, see: {MIGRATION}"
        ),
    );
    told.extend(spec_warnings(spec, &Path::new("spec")));
    told
}

/// What is told of a spec wherever one stands.
pub fn spec_warnings(spec: &ShootSpec, path: &Path) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(server) = &spec.kubernetes.kube_api_server {
        let path = path.child("kubernetes.kubeAPIServer");
        if server.enable_anonymous_authentication.is_some() {
            told.push(format!(
                "you are setting the {} field. The field is deprecated. Using Kubernetes v1.32 and above, please use anonymous authentication configuration. See: {ANONYMOUS}",
                path.child("enableAnonymousAuthentication").as_str()
            ));
        }
        if server
            .watch_cache_sizes
            .as_ref()
            .is_some_and(|sizes| sizes.default.is_some())
        {
            told.push(format!(
                "you are setting the {} field. The field has been deprecated and is forbidden to be set starting from Kubernetes 1.35. The cache size is automatically sized by the kube-apiserver.",
                path.child("watchCacheSizes.default").as_str()
            ));
        }
    }
    for (i, provider) in spec.dns.iter().flat_map(|dns| &dns.providers).enumerate() {
        if provider.secret_name.is_some() {
            let path = path.child("dns.providers").index(i);
            told.push(format!(
                "you are setting the {} field. The field is deprecated and is forbidden to be set starting from Kubernetes 1.35. Use {} instead.",
                path.child("secretName").as_str(),
                path.child("credentialsRef").as_str()
            ));
        }
    }
    told
}

fn is_older(time: Option<&Time>, now: Timestamp, age: Std) -> bool {
    time.is_none_or(|time| time.0 + age < now)
}

/// Credentials that nobody rotated for long.
fn due(shoot: &Shoot, now: Timestamp, interval: Std) -> Vec<String> {
    let created = shoot.metadata.creation_timestamp.as_ref();
    if created.is_none() || !is_older(created, now, interval) {
        return Vec::new();
    }
    let credentials = shoot.status.credentials.as_ref();
    let Some(rotation) = credentials.and_then(|credentials| credentials.rotation.as_ref()) else {
        return vec![format!(
            "you should consider rotating the shoot credentials, see {DOCS}#gardener-provided-credentials for details"
        )];
    };
    let all: [Rotated<'_>; 5] = [
        (
            true,
            "certificate-authorities",
            "certificate authorities",
            rotation
                .certificate_authorities
                .as_ref()
                .map(|own| own.last_initiation_time.as_ref()),
        ),
        (
            true,
            "etcd-encryption-key",
            "ETCD encryption key",
            rotation
                .etcd_encryption_key
                .as_ref()
                .map(|own| own.last_initiation_time.as_ref()),
        ),
        (
            shoot.spec.purpose.as_deref() != Some("testing"),
            "observability-passwords-for-plutono",
            "observability passwords",
            rotation
                .observability
                .as_ref()
                .map(|own| own.last_initiation_time.as_ref()),
        ),
        (
            true,
            "serviceaccount-token-signing-key",
            "ServiceAccount token signing key",
            rotation
                .service_account_key
                .as_ref()
                .map(|own| own.last_initiation_time.as_ref()),
        ),
        (
            !shoot.is_workerless() && shoot.spec.ssh_access_enabled(),
            "ssh-key-pair-for-worker-nodes",
            "SSH keypair",
            rotation
                .ssh_keypair
                .as_ref()
                .map(|own| own.last_initiation_time.as_ref()),
        ),
    ];
    let is_due = |begun: Option<Option<&Time>>| is_older(begun.flatten(), now, interval);
    let due = all
        .into_iter()
        .filter(|(concerns, _, _, begun)| *concerns && is_due(*begun));
    due.map(|(_, anchor, what, _)| format!("you should consider rotating the {what}, see {DOCS}#{anchor} for details"))
        .collect()
}

/// Rotations that were begun and wait to be completed.
fn incomplete(shoot: &Shoot, now: Timestamp, within: Std) -> Vec<String> {
    let credentials = shoot.status.credentials.as_ref();
    let Some(rotation) = credentials.and_then(|credentials| credentials.rotation.as_ref()) else {
        return Vec::new();
    };
    let all = [
        (
            "certificate authorities",
            rotation
                .certificate_authorities
                .as_ref()
                .map(|own| (&own.last_initiation_finished_time, &own.last_completion_triggered_time)),
        ),
        (
            "ETCD encryption key",
            rotation
                .etcd_encryption_key
                .as_ref()
                .map(|own| (&own.last_initiation_finished_time, &own.last_completion_triggered_time)),
        ),
        (
            "ServiceAccount token signing key",
            rotation
                .service_account_key
                .as_ref()
                .map(|own| (&own.last_initiation_finished_time, &own.last_completion_triggered_time)),
        ),
    ];
    let waits = |(begun, completed): (&Option<Time>, &Option<Time>)| {
        let begun = begun.as_ref();
        let done = begun
            .zip(completed.as_ref())
            .is_some_and(|(begun, completed)| completed.0 > begun.0);
        begun.is_some() && !done && is_older(begun, now, within)
    };
    let waiting = all.into_iter().filter(|(_, times)| times.is_some_and(waits));
    waiting
        .map(|(what, _)| {
            let within = crate::Duration::from(within);
            format!("the {what} rotation initiation was finished more than {within} ago and should be completed")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const DAY: Std = Std::from_secs(24 * 3600);

    fn told(shoot: Value, old: Option<Value>) -> Vec<String> {
        let read = |shoot: Value| -> Shoot { serde_json::from_value(shoot).unwrap() };
        let now = "2026-05-01T00:00:00Z".parse().unwrap();
        shoot_warnings(&read(shoot), old.map(read).as_ref(), now, 90 * DAY)
    }

    #[test]
    fn val_x1_credentials_that_are_due() {
        let shoot = |created: &str, rotation: Value| {
            json!({"metadata": {"creationTimestamp": created}, "spec": {"purpose": "testing", "provider": {"type": "x"}},
                "status": {"credentials": {"rotation": rotation}}})
        };
        let (long_ago, lately) = ("2025-01-01T00:00:00Z", "2026-04-01T00:00:00Z");
        assert!(told(shoot(long_ago, Value::Null), None).is_empty());
        assert!(told(shoot(lately, Value::Null), Some(json!({}))).is_empty());
        let found = told(shoot(long_ago, Value::Null), Some(json!({})));
        assert!(
            found.len() == 1 && found[0].contains("rotating the shoot credentials"),
            "{found:?}"
        );
        let rotation = json!({
            "certificateAuthorities": {"lastInitiationTime": long_ago},
            "etcdEncryptionKey": {"lastInitiationTime": lately, "lastInitiationFinishedTime": "2026-03-01T00:00:00Z"},
        });
        let found = told(shoot(long_ago, rotation), Some(json!({})));
        let expected = [
            "rotating the certificate authorities",
            "rotating the ServiceAccount token signing key",
            "the ETCD encryption key rotation initiation was finished more than 720h0m0s ago and should be completed",
        ];
        assert!(
            found.len() == 3 && found.iter().zip(expected).all(|(found, why)| found.contains(why)),
            "{found:?}"
        );
    }

    #[test]
    fn val_x2_fields_that_go() {
        let spec = |version: &str, more: Value| {
            let mut spec = json!({"kubernetes": {"version": version}, "provider": {"type": "x"}});
            for (key, value) in more.as_object().unwrap() {
                match key.as_str() {
                    "kubernetes" => spec["kubernetes"]
                        .as_object_mut()
                        .unwrap()
                        .extend(value.as_object().unwrap().clone()),
                    _ => spec[key] = value.clone(),
                }
            }
            json!({"spec": spec})
        };
        for (version, more, why) in [
            (
                "1.33.0",
                json!({"cloudProfileName": "x"}),
                "spec.cloudProfileName field",
            ),
            (
                "1.33.0",
                json!({"secretBindingName": "x"}),
                "spec.secretBindingName is deprecated",
            ),
            ("1.33.0", json!({"addons": {}}), "spec.addons field"),
            (
                "1.35.0",
                json!({"kubernetes": {"kubeProxy": {"enabled": true, "mode": "IPVS"}}}),
                "you are using IPVS mode",
            ),
            (
                "1.33.0",
                json!({"kubernetes": {"kubeAPIServer": {"watchCacheSizes": {"default": 1}}}}),
                "spec.kubernetes.kubeAPIServer.watchCacheSizes.default field",
            ),
            (
                "1.33.0",
                json!({"dns": {"providers": [{}, {"secretName": "x"}]}}),
                "spec.dns.providers[1].secretName field",
            ),
        ] {
            let found = told(spec(version, more), None);
            assert!(found.len() == 1 && found[0].contains(why), "{why}: {found:?}");
        }
        assert!(told(spec("1.32.0", json!({"cloudProfileName": "x"})), None).is_empty());
    }
}
