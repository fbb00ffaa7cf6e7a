//! What a gardenlet's configuration says about the gardenlet itself: connections, leader election, controllers, the ways to its seed [VAL-MS1].

use gardener_apimachinery::duration::Duration;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::{meta, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

use crate::validation::{invalid_each, non_negative};

const PURPOSES: [&str; 5] = ["development", "evaluation", "infrastructure", "production", "testing"];
/// The least validity of a gardenlet's certificate.
const VALIDITY_MIN: Duration = Duration::from_secs(600);
/// How long DNS entries may be remembered, in seconds.
const DNS_TTL: std::ops::RangeInclusive<i64> = 30..=600;

fn number(part: &Value, pointer: &str) -> Option<i64> {
    part.at(pointer)?.as_i64()
}

fn duration(part: &Value, pointer: &str) -> Option<Duration> {
    part.at(pointer)?.as_str()?.parse().ok()
}

fn text<'a>(part: &'a Value, pointer: &str) -> &'a str {
    part.at(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(part: &'a Value, pointer: &str) -> &'a [Value] {
    part.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// How the gardenlet connects to the garden, its seed and its shoots.
pub(super) fn connections(config: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in [
        "gardenClientConnection",
        "seedClientConnection",
        "shootClientConnection",
    ] {
        let Some(connection) = config.get(name) else { continue };
        let at = path.child(name);
        if let Some(burst) = number(connection, "/burst").filter(|burst| *burst < 0) {
            errors.push(Error::invalid(&at.child("burst"), burst, "must be non-negative"));
        }
        if let Some(validity) = connection.get("kubeconfigValidity") {
            errors.extend(kubeconfig_validity(validity, &at.child("kubeconfigValidity")));
        }
    }
    errors
}

fn kubeconfig_validity(validity: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(time) = duration(validity, "/validity")
        && time < VALIDITY_MIN
    {
        errors.push(Error::invalid(
            &path.child("validity"),
            time.to_string(),
            "validity must be at least 10m",
        ));
    }
    let (least, most) = ("autoRotationJitterPercentageMin", "autoRotationJitterPercentageMax");
    let (min, max) = (
        validity.get(least).and_then(Value::as_i64),
        validity.get(most).and_then(Value::as_i64),
    );
    if let Some(min) = min.filter(|min| *min < 1) {
        errors.push(Error::invalid(
            &path.child(least),
            min,
            "minimum percentage must be at least 1",
        ));
    }
    if let Some(max) = max.filter(|max| *max > 100) {
        errors.push(Error::invalid(
            &path.child(most),
            max,
            "maximum percentage must be at most 100",
        ));
    }
    if let (Some(min), Some(max)) = (min, max)
        && min >= max
    {
        errors.push(Error::invalid(
            &path.child(least),
            min,
            "minimum percentage must be less than maximum percentage",
        ));
    }
    errors
}

/// How replicas of the gardenlet find the one that works. Upstream tells it from the root on.
pub(super) fn leader_election(config: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(election) = config.get("leaderElection") else {
        return errors;
    };
    if election.get("leaderElect").and_then(Value::as_bool) != Some(true) {
        return errors;
    }
    let path = Path::new("leaderElection");
    let time = |name: &str| duration(election, &format!("/{name}")).unwrap_or_default();
    for name in ["leaseDuration", "renewDeadline", "retryPeriod"] {
        if time(name) <= Duration::default() {
            let shown = time(name).to_string();
            errors.push(Error::invalid(&path.child(name), shown, "must be greater than zero"));
        }
    }
    let deadline = time("renewDeadline");
    if time("leaseDuration") <= deadline {
        errors.push(Error::invalid(
            &path.child("leaseDuration"),
            deadline.to_string(),
            "must be greater than `RenewDeadline`",
        ));
    }
    for name in ["resourceLock", "resourceNamespace", "resourceName"] {
        if text(election, &format!("/{name}")).is_empty() {
            errors.push(Error::required(&path.child(name), ""));
        }
    }
    errors
}

/// What the controllers are told.
pub(super) fn controllers(config: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(controllers) = config.get("controllers") else {
        return errors;
    };
    let path = path.child("controllers");
    let own = |name: &str| controllers.get(name).unwrap_or(&Value::Null);
    errors.extend(backup_entries(own("backupEntry"), &path.child("backupEntry")));
    let syncs = |name: &str| {
        let given = number(own(name), "/concurrentSyncs").unwrap_or_default();
        non_negative(given, &path.child(name).child("concurrentSyncs"))
    };
    let time = |name: &str, pointer: &str, shown: &str| {
        let given = duration(own(name), pointer).unwrap_or_default();
        not_before_zero(given, &path.child(name).child(shown))
    };
    errors.extend(syncs("bastion"));
    errors.extend(syncs("shoot"));
    // upstream's own spelling
    errors.extend(time("shoot", "/progressReportPeriod", "progressReporterPeriod"));
    errors.extend(time("shoot", "/retryDuration", "retryDuration"));
    errors.extend(time("shoot", "/syncPeriod", "syncPeriod"));
    if let Some(ttl) = number(own("shoot"), "/dnsEntryTTLSeconds").filter(|ttl| !DNS_TTL.contains(ttl)) {
        let why = format!("must be within [{},{}]", DNS_TTL.start(), DNS_TTL.end());
        errors.push(Error::invalid(&path.child("shoot.dnsEntryTTLSeconds"), ttl, why));
    }
    errors.extend(syncs("shootCare"));
    errors.extend(time("shootCare", "/syncPeriod", "syncPeriod"));
    let threshold = "staleExtensionHealthChecks.threshold";
    errors.extend(time("shootCare", "/staleExtensionHealthChecks/threshold", threshold));
    let threshold = "managedResourceProgressingThreshold";
    errors.extend(time("shootCare", "/managedResourceProgressingThreshold", threshold));
    for (i, condition) in list(own("shootCare"), "/conditionThresholds").iter().enumerate() {
        let at = path.child("shootCare.conditionThresholds").index(i).child("duration");
        let given = duration(condition, "/duration").unwrap_or_default();
        errors.extend(not_before_zero(given, &at));
    }
    errors.extend(syncs("managedSeed"));
    for name in ["syncPeriod", "waitSyncPeriod", "syncJitterPeriod"] {
        errors.extend(time("managedSeed", &format!("/{name}"), name));
    }
    errors.extend(syncs("networkPolicy"));
    let selectors = list(own("networkPolicy"), "/additionalNamespaceSelectors");
    for (i, selector) in selectors.iter().enumerate() {
        let at = path.child("networkPolicy.additionalNamespaceSelectors").index(i);
        if let Ok(selector) = LabelSelector::deserialize(selector) {
            errors.extend(meta::validate_label_selector(&selector, &at));
        }
    }
    let name = "tokenExpirationDuration";
    errors.extend(time("tokenRequestorWorkloadIdentity", "/tokenExpirationDuration", name));
    errors
}

/// Upstream shows nanoseconds.
fn not_before_zero(time: Duration, path: &Path) -> ErrorList {
    non_negative(time.as_nanos(), path)
}

fn backup_entries(own: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let purposes = list(own, "/deletionGracePeriodShootPurposes");
    let path = path.child("deletionGracePeriodShootPurposes");
    if !purposes.is_empty() && number(own, "/deletionGracePeriodHours").is_none_or(|hours| hours <= 0) {
        let why = "must specify grace period hours > 0 when specifying purposes";
        errors.push(Error::forbidden(&path, why));
    }
    for (i, purpose) in purposes.iter().enumerate() {
        let purpose = purpose.as_str().unwrap_or_default();
        if !PURPOSES.contains(&purpose) {
            errors.push(Error::not_supported(&path.index(i), purpose, &PURPOSES));
        }
    }
    errors
}

/// Where shoots' API servers are reached.
pub(super) fn sni(sni: Option<&Value>, path: &Path) -> ErrorList {
    let address = sni.and_then(|sni| sni.at("/ingress/serviceExternalIP")?.as_str());
    let wrong = address.filter(|address| address.parse::<std::net::IpAddr>().is_err());
    let at = path.child("ingress.serviceExternalIP");
    wrong
        .map(|address| Error::invalid(&at, address, "external service ip is invalid"))
        .into_iter()
        .collect()
}

/// How shoots of exposure classes are reached.
pub(super) fn exposure_class_handlers(config: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, handler) in list(config, "/exposureClassHandlers").iter().enumerate() {
        let at = path.child("exposureClassHandlers").index(i);
        let name = text(handler, "/name");
        errors.extend(invalid_each(&at.child("name"), name, names::dns_label(name)));
        if let Some(class) = handler.at("/loadBalancerService/class").and_then(Value::as_str) {
            let wrong = names::qualified_name(class);
            errors.extend(invalid_each(&at.child("loadBalancerService.class"), class, wrong));
        }
        errors.extend(sni(handler.get("sni"), &at.child("sni")));
    }
    errors
}

/// How long pods stay on nodes that are gone.
pub(super) fn node_toleration(config: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = path.child("nodeToleration");
    for name in [
        "defaultNotReadyTolerationSeconds",
        "defaultUnreachableTolerationSeconds",
    ] {
        let seconds = number(config, &format!("/nodeToleration/{name}")).unwrap_or_default();
        errors.extend(non_negative(seconds, &path.child(name)));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::validate_gardenlet_config;
    use super::*;

    #[test]
    fn val_ms1_what_a_configuration_says_about_its_gardenlet() {
        let refusals = |config: Value| -> Vec<String> {
            let found = validate_gardenlet_config(&config, "BootstrapToken", false, &Path::new("c"));
            found.iter().map(ToString::to_string).collect()
        };
        for (config, wanted) in [
            (
                json!({"gardenClientConnection": {"burst": -1, "kubeconfigValidity": {"validity": "5m",
                    "autoRotationJitterPercentageMin": 0, "autoRotationJitterPercentageMax": 101}}}),
                vec![
                    "c.gardenClientConnection.burst: Invalid value: -1: must be non-negative",
                    "c.gardenClientConnection.kubeconfigValidity.validity: Invalid value: \"5m0s\": validity must be at least 10m",
                    "c.gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin: Invalid value: 0: minimum percentage must be at least 1",
                    "c.gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMax: Invalid value: 101: maximum percentage must be at most 100",
                ],
            ),
            (
                json!({"leaderElection": {"leaderElect": true, "leaseDuration": "5s", "renewDeadline": "10s", "retryPeriod": "0s", "resourceLock": "leases"}}),
                vec![
                    "leaderElection.retryPeriod: Invalid value: \"0s\": must be greater than zero",
                    "leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`",
                    "leaderElection.resourceNamespace: Required value",
                    "leaderElection.resourceName: Required value",
                ],
            ),
            (json!({"leaderElection": {"leaderElect": false}}), vec![]),
            (
                json!({"controllers": {"backupEntry": {"deletionGracePeriodShootPurposes": ["fun"]},
                    "shoot": {"concurrentSyncs": -1, "syncPeriod": "-1s", "dnsEntryTTLSeconds": 10},
                    "networkPolicy": {"additionalNamespaceSelectors": [{"matchLabels": {"a": "b c"}}]}}}),
                vec![
                    "c.controllers.backupEntry.deletionGracePeriodShootPurposes: Forbidden: must specify grace period hours > 0 when specifying purposes",
                    "c.controllers.backupEntry.deletionGracePeriodShootPurposes[0]: Unsupported value: \"fun\": supported values: \"development\", \"evaluation\", \"infrastructure\", \"production\", \"testing\"",
                    "c.controllers.shoot.concurrentSyncs: Invalid value: -1: must be greater than or equal to 0",
                    "c.controllers.shoot.syncPeriod: Invalid value: -1000000000: must be greater than or equal to 0",
                    "c.controllers.shoot.dnsEntryTTLSeconds: Invalid value: 10: must be within [30,600]",
                ],
            ),
            (
                json!({"sni": {"ingress": {"serviceExternalIP": "1.2.3"}}, "exposureClassHandlers": [{"name": "A"}],
                    "nodeToleration": {"defaultNotReadyTolerationSeconds": -1}}),
                vec![
                    "c.sni.ingress.serviceExternalIP: Invalid value: \"1.2.3\": external service ip is invalid",
                    "c.nodeToleration.defaultNotReadyTolerationSeconds: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
        ] {
            let mut found = refusals(config);
            found.retain(|text| !text.contains("lowercase RFC 1123 label") && !text.contains("valid label must be"));
            for text in &wanted {
                assert!(found.iter().any(|own| own == text), "{text} is not in {found:#?}");
            }
        }
    }
}
