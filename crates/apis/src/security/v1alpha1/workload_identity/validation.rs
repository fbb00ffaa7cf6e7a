//! Validation of workload identities, [VAL-WI1], and their subject, [GAPI-42].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::super::credentials_binding::provider_type;
use super::*;
use crate::validation::{immutable, object_meta, object_meta_update};

const SUB_MAX: usize = 255;

/// The subject that tokens of an identity carry; made when the uid is known.
pub fn workload_identity_sub(identity: &WorkloadIdentity) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let meta = &identity.metadata;
    format!(
        "gardener.cloud:workloadidentity:{}:{}:{}",
        text(&meta.namespace),
        text(&meta.name),
        text(&meta.uid)
    )
}

/// Fills in the subject of an identity without one.
pub fn default_workload_identity(identity: &mut WorkloadIdentity) {
    if identity.status.sub.is_empty() {
        identity.status.sub = workload_identity_sub(identity);
    }
}

/// Checks a workload identity that is to be created or stored again.
pub fn validate_workload_identity(identity: &WorkloadIdentity) -> ErrorList {
    let mut errors = object_meta(&identity.metadata, true, gardener_apimachinery::names::dns_subdomain);
    let path = Path::new("spec");
    let audiences = &identity.spec.audiences;
    let at = path.child("audiences");
    if audiences.is_empty() {
        errors.push(Error::required(&at, "must provide at least one audience"));
    }
    let mut seen = BTreeSet::new();
    for (i, audience) in audiences.iter().enumerate() {
        if audience.is_empty() {
            errors.push(Error::required(&at.index(i), "must specify non-empty audience"));
        }
        if !seen.insert(audience) {
            errors.push(Error::duplicate(&at.index(i), audience.as_str()));
        }
    }
    errors.extend(provider_type(
        &identity.spec.target_system.r#type,
        &path.child("targetSystem.type"),
    ));
    let sub = identity.status.sub.as_str();
    let at = Path::new("status.sub");
    if sub.is_empty() {
        errors.push(Error::required(&at, "must specify sub claim value"));
    }
    let expected = workload_identity_sub(identity);
    if sub != expected {
        errors.push(Error::invalid(
            &at,
            sub,
            format!("sub claim does not match expected value: {expected:?}"),
        ));
    }
    for (index, symbol) in expected.char_indices().filter(|(_, symbol)| !symbol.is_ascii()) {
        let why = format!("sub claim contains non-ascii symbol({symbol:?}) at index {index}");
        errors.push(Error::invalid(&at, expected.as_str(), why));
    }
    if expected.len() > SUB_MAX {
        let why = format!(
            "sub claim is too long ({}), it is allowed to be no more than {SUB_MAX} ASCII characters",
            expected.len()
        );
        errors.push(Error::invalid(&at, expected.as_str(), why));
    }
    errors
}

/// Checks a change of a workload identity.
pub fn validate_workload_identity_update(new: &WorkloadIdentity, old: &WorkloadIdentity) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(immutable(
        &new.spec.target_system.r#type,
        &old.spec.target_system.r#type,
        &Path::new("spec.targetSystem.type"),
    ));
    errors.extend(validate_workload_identity(new));
    if !old.status.sub.is_empty() {
        errors.extend(immutable(&new.status.sub, &old.status.sub, &Path::new("status.sub")));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_wi1_recorded_refusal() {
        let mut identity: WorkloadIdentity = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "w1", "namespace": "garden-local", "uid": "u"},
            "spec": {"audiences": ["", "a", "a"], "targetSystem": {"type": ""}}}),
        )
        .unwrap();
        default_workload_identity(&mut identity);
        assert_eq!(identity.status.sub, "gardener.cloud:workloadidentity:garden-local:w1:u");
        let texts: Vec<String> = validate_workload_identity(&identity)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "spec.audiences[0]: Required value: must specify non-empty audience",
                "spec.audiences[2]: Duplicate value: \"a\"",
                "spec.targetSystem.type: Required value: must specify a provider type",
            ]
        );
    }
}
