//! Reading a configuration file: what is not known is refused, what has no effect is told.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::meta::validate_label_selector;
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value};

use super::{ConditionThreshold, ControllerManagerConfiguration, LeaderElection, Quota, Servers};

const API_VERSION: &str = "controllermanager.config.gardener.cloud/v1alpha1";
const KIND: &str = "ControllerManagerConfiguration";
/// The one feature gate of the controller-manager.
pub(super) const DISABLE_NGINX_INGRESS: &str = "DisableNginxIngressInShoot";

const LOG_LEVELS: [&str; 3] = ["debug", "info", "error"];
const LOG_FORMATS: [&str; 2] = ["json", "text"];

/// Fields that are accepted, but change nothing.
const WITHOUT_EFFECT: [&str; 7] = [
    "controllers.cacheSyncTimeout",
    "debugging.enableContentionProfiling",
    "debugging.enableProfiling",
    "gardenClientConnection.acceptContentTypes",
    "gardenClientConnection.burst",
    "gardenClientConnection.contentType",
    "gardenClientConnection.qps",
];

/// Why a configuration file cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no YAML, or a value is none that fits its field.
    #[error("it cannot be read as {KIND} of {API_VERSION}: {0}")]
    Malformed(String),
    /// It is of another kind.
    #[error("expected {KIND} of {API_VERSION}, found {0}")]
    OtherKind(String),
    /// It has fields that there are not, or values of another type.
    #[error("strict decoding error: {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// Values are wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Invalid(ErrorList),
}

/// Reads a configuration file. Answers with what was given but has no effect here.
///
/// # Errors
/// [`ConfigurationError`].
pub fn read(text: &str) -> Result<(ControllerManagerConfiguration, Vec<&'static str>), ConfigurationError> {
    let malformed = |error: &dyn std::fmt::Display| ConfigurationError::Malformed(error.to_string());
    let mut given: Value = serde_saphyr::from_str(text).map_err(|error| malformed(&error))?;
    remove_nulls(&mut given);
    let mut own = match given {
        Value::Object(own) => own,
        Value::Null => Map::new(),
        other => return Err(malformed(&format!("expected an object, found {other}"))),
    };
    let mut text_of = |key: &str| match own.remove(key) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (api_version, kind) = (text_of("apiVersion"), text_of("kind"));
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
        return Err(ConfigurationError::OtherKind(format!("{kind:?} of {api_version:?}")));
    }
    let given = Value::Object(own);
    let mut unknown = Vec::new();
    compare(&given, &shape().map_err(|error| malformed(&error))?, "", &mut unknown);
    if !unknown.is_empty() {
        return Err(ConfigurationError::Unknown(unknown));
    }
    let without_effect = WITHOUT_EFFECT.into_iter().filter(|path| {
        let pointer = format!("/{}", path.replace('.', "/"));
        given.at(&pointer).is_some()
    });
    let without_effect = without_effect.collect();
    let event = given.at("/controllers/event").is_some();
    let mut configuration: ControllerManagerConfiguration =
        serde_json::from_value(given).map_err(|error| malformed(&error))?;
    if !event {
        configuration.controllers.event = None;
    }
    // port 0 is one that is not set
    let (servers, defaults) = (&mut configuration.server, Servers::default());
    for (own, default) in [
        (&mut servers.health_probes.port, defaults.health_probes.port),
        (&mut servers.metrics.port, defaults.metrics.port),
    ] {
        if *own == 0 {
            *own = default;
        }
    }
    let errors = errors(&configuration);
    match errors.is_empty() {
        true => Ok((configuration, without_effect)),
        false => Err(ConfigurationError::Invalid(errors)),
    }
}

/// A field that is null is one that is not set.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// A configuration in which everything is set that can be. An empty object or list stands for one with any content.
fn shape() -> Result<Value, serde_json::Error> {
    let mut all = ControllerManagerConfiguration::default();
    all.controllers.seed.shoot_monitor_period = Some(all.controllers.seed.monitor_period);
    all.controllers.project.quotas = vec![Quota::default()];
    for check in [
        &mut all.controllers.seed_extensions_check,
        &mut all.controllers.seed_backup_buckets_check,
    ] {
        check.condition_thresholds = vec![ConditionThreshold::default()];
    }
    let mut shape = serde_json::to_value(all)?;
    // these are Kubernetes' own
    for path in ["config", "projectSelector"] {
        if let Some(part) = shape.at_mut(&format!("/controllers/project/quotas/0/{path}")) {
            *part = Value::Object(Map::new());
        }
    }
    Ok(shape)
}

/// Tells what of a value is not in the shape.
fn compare(given: &Value, shape: &Value, path: &str, wrong: &mut Vec<String>) {
    let expected = match (given, shape) {
        (Value::Object(given), Value::Object(known)) => {
            for (name, value) in given.iter().filter(|_| !known.is_empty()) {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                match known.get(name) {
                    Some(known) => compare(value, known, &path, wrong),
                    None => wrong.push(format!("unknown field {path:?}")),
                }
            }
            return;
        }
        (Value::Array(given), Value::Array(known)) => {
            for (index, value) in given.iter().enumerate() {
                if let Some(known) = known.first() {
                    compare(value, known, &format!("{path}[{index}]"), wrong);
                }
            }
            return;
        }
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_)) => {
            return;
        }
        (_, Value::Object(_)) => "an object",
        (_, Value::Array(_)) => "a list",
        (_, Value::String(_)) => "a string",
        (_, Value::Bool(_)) => "true or false",
        (_, Value::Number(_) | Value::Null) => "a number",
    };
    wrong.push(format!("field {path:?} must be {expected}, not {given}"));
}

/// What upstream's validation says.
fn errors(configuration: &ControllerManagerConfiguration) -> ErrorList {
    let root = Path::root();
    let mut errors = leader_election(&configuration.leader_election, &root.child("leaderElection"));
    let (level, format) = (&configuration.log_level, &configuration.log_format);
    if !LOG_LEVELS.contains(&level.as_str()) {
        errors.push(Error::not_supported(
            &root.child("logLevel"),
            level.as_str(),
            &LOG_LEVELS,
        ));
    }
    if !LOG_FORMATS.contains(&format.as_str()) {
        errors.push(Error::not_supported(
            &root.child("logFormat"),
            format.as_str(),
            &LOG_FORMATS,
        ));
    }
    let quotas = root.child("controllers").child("project").child("quotas");
    for (index, quota) in configuration.controllers.project.quotas.iter().enumerate() {
        let path = quotas.index(index).child("projectSelector");
        errors.extend(validate_label_selector(&quota.project_selector, &path));
    }
    let gates = root.child("featureGates");
    for gate in configuration
        .feature_gates
        .keys()
        .filter(|gate| *gate != DISABLE_NGINX_INGRESS)
    {
        errors.push(Error::not_supported(&gates, gate.as_str(), &[DISABLE_NGINX_INGRESS]));
    }
    errors
}

fn leader_election(election: &LeaderElection, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if !election.leader_elect {
        return errors;
    }
    let (lease, renew, retry) = (election.lease_duration, election.renew_deadline, election.retry_period);
    for (name, duration) in [
        ("leaseDuration", lease),
        ("renewDeadline", renew),
        ("retryPeriod", retry),
    ] {
        if duration.as_nanos() <= 0 {
            let told = duration.to_string();
            errors.push(Error::invalid(&path.child(name), told, "must be greater than zero"));
        }
    }
    if lease < renew {
        let (path, told) = (path.child("leaseDuration"), renew.to_string());
        errors.push(Error::invalid(
            &path,
            told,
            "LeaseDuration must be greater than RenewDeadline",
        ));
    }
    if election.resource_lock != "leases" {
        let path = path.child("resourceLock");
        errors.push(Error::not_supported(
            &path,
            election.resource_lock.as_str(),
            &["leases"],
        ));
    }
    for (name, value) in [
        ("resourceNamespace", &election.resource_namespace),
        ("resourceName", &election.resource_name),
    ] {
        if value.is_empty() {
            errors.push(Error::required(&path.child(name), format!("{name} is required")));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use gardener_apimachinery::duration::Duration;

    use super::*;

    fn file(fields: &str) -> String {
        format!("apiVersion: {API_VERSION}\nkind: {KIND}\n{fields}")
    }

    #[test]
    fn what_is_not_set_has_upstreams_default() {
        let (own, without_effect) = read(&file("")).unwrap();
        assert_eq!((own.log_level.as_str(), own.log_format.as_str()), ("info", "json"));
        assert_eq!((own.server.health_probes.port, own.server.metrics.port), (2718, 2719));
        let controllers = &own.controllers;
        assert_eq!(controllers.shoot_quota.concurrent_syncs, 5);
        assert_eq!(controllers.managed_seed_set.sync_period.to_string(), "30m0s");
        assert_eq!(controllers.seed.shoot_monitor_period().to_string(), "3m20s");
        assert!(controllers.event.is_none(), "without its section it does not run");
        assert_eq!(without_effect, Vec::<&str>::new());
    }

    #[test]
    fn what_is_set_is_read() {
        let (own, without_effect) = read(&file(
            "gardenClientConnection: {kubeconfig: /k, qps: 100, burst: 130}\n\
             controllers:\n  cacheSyncTimeout: 2m\n  event: {}\n  bastion:\n  seed: {monitorPeriod: 1m, concurrentSyncs: null}\n  \
             shootMaintenance: {enableShootCoreAddonRestarter: true}\n  \
             seedExtensionsCheck: {conditionThresholds: [{type: ExtensionsReady, duration: 1m}]}\n  \
             project: {quotas: [{config: {apiVersion: v1, kind: ResourceQuota, spec: {hard: {count/shoots.core.gardener.cloud: \"100\"}}}, \
             projectSelector: {matchLabels: {a: b}}}, {config: {}}]}\n\
             leaderElection: {resourceNamespace: garden, leaderElect: false}\nfeatureGates: {DisableNginxIngressInShoot: true}\n\
             server: {healthProbes: {port: 1}, metrics: {port: 0}}\ndebugging: {enableProfiling: false}\nlogFormat: text\n",
        ))
        .unwrap();
        let controllers = &own.controllers;
        assert_eq!(
            controllers.event.as_ref().unwrap().ttl_non_shoot_events,
            Duration::from_secs(3600)
        );
        assert_eq!(controllers.seed.shoot_monitor_period(), Duration::from_secs(300));
        assert_eq!(
            controllers.seed_extensions_check.threshold("ExtensionsReady"),
            Duration::from_secs(60)
        );
        assert_eq!(
            controllers.seed_extensions_check.threshold("Other"),
            Duration::default()
        );
        assert_eq!(controllers.project.quotas.len(), 2);
        let maintenance = own.maintenance();
        assert!(
            maintenance.restart_control_plane && maintenance.restart_core_addons && maintenance.disable_nginx_ingress
        );
        assert_eq!((own.server.health_probes.port, own.server.metrics.port), (1, 2719));
        let expected = [
            "controllers.cacheSyncTimeout",
            "debugging.enableProfiling",
            "gardenClientConnection.burst",
            "gardenClientConnection.qps",
        ];
        assert_eq!(without_effect, expected);
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for (text, expected) in [
            (
                "",
                "expected ControllerManagerConfiguration of controllermanager.config.gardener.cloud/v1alpha1, found \"\" of \"\"",
            ),
            ("apiVersion: v1\nkind: Pod", "found \"Pod\" of \"v1\""),
            ("a: [", "it cannot be read"),
            (
                &file("controllers: {shoots: {}, event: {ttl: 1h}}\nlog: info"),
                "strict decoding error: unknown field \"controllers.event.ttl\", unknown field \"controllers.shoots\", unknown field \"log\"",
            ),
            (
                &file("controllers: {project: {quotas: [{confg: {}}]}}"),
                "unknown field \"controllers.project.quotas[0].confg\"",
            ),
            (
                &file("controllers: {seed: {concurrentSyncs: many}}"),
                "field \"controllers.seed.concurrentSyncs\" must be a number, not \"many\"",
            ),
            (&file("controllers: {seed: {syncPeriod: soon}}"), "invalid duration"),
            (
                &file("logLevel: loud"),
                "logLevel: Unsupported value: \"loud\": supported values: \"debug\", \"info\", \"error\"",
            ),
            (
                &file("leaderElection: {renewDeadline: 20s}"),
                "LeaseDuration must be greater than RenewDeadline",
            ),
            (
                &file("leaderElection: {resourceLock: endpoints}"),
                "leaderElection.resourceLock: Unsupported value",
            ),
            (
                &file("leaderElection: {retryPeriod: 0s}"),
                "leaderElection.retryPeriod: Invalid value: \"0s\": must be greater than zero",
            ),
            (
                &file("featureGates: {Fast: true}"),
                "featureGates: Unsupported value: \"Fast\"",
            ),
            (
                &file(
                    "controllers: {project: {quotas: [{config: {}, projectSelector: {matchExpressions: [{key: a, operator: Near}]}}]}}",
                ),
                "controllers.project.quotas[0].projectSelector.matchExpressions[0].operator",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}
