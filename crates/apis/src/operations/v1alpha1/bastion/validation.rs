//! Validation of bastions, [VAL-BA1].

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::ssh_key::is_authorized_key;
use super::*;
use crate::constants::annotation::CREATED_BY;
use crate::validation::{cidr, immutable, object_meta, object_meta_update, shown};

/// Checks a bastion that is to be created or stored again.
pub fn validate_bastion(bastion: &Bastion) -> ErrorList {
    let mut errors = object_meta(&bastion.metadata, true, gardener_apimachinery::names::dns_label);
    let spec = &bastion.spec;
    let path = Path::new("spec");
    if spec.shoot_ref.name.is_empty() {
        errors.push(Error::invalid(
            &path.child("shootRef.name"),
            "",
            "shoot reference must not be empty",
        ));
    }
    let at = path.child("sshPublicKey");
    if spec.ssh_public_key.is_empty() {
        errors.push(Error::invalid(&at, "", "sshPublicKey must not be empty"));
    } else if !is_authorized_key(&spec.ssh_public_key) {
        errors.push(Error::invalid(
            &at,
            spec.ssh_public_key.as_str(),
            "invalid sshPublicKey",
        ));
    }
    let at = path.child("ingress");
    let ingress = spec.ingress.as_deref();
    if ingress.is_none_or(<[_]>::is_empty) {
        errors.push(Error::invalid(&at, shown(&spec.ingress), "ingress must not be empty"));
    }
    for policy in ingress.unwrap_or_default() {
        let range = policy.ip_block.cidr.as_str();
        if range.is_empty() {
            errors.push(Error::invalid(&at, range, "CIDR must not be empty"));
        } else if cidr(range, &at).is_err() {
            errors.push(Error::invalid(&at, range, "invalid CIDR"));
        }
    }
    errors
}

/// Checks a change of a bastion.
pub fn validate_bastion_update(new: &Bastion, old: &Bastion) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    let creator = |bastion: &Bastion| {
        let annotations = bastion.metadata.annotations.as_ref();
        annotations
            .and_then(|all| all.get(CREATED_BY))
            .cloned()
            .unwrap_or_default()
    };
    errors.extend(immutable(
        &creator(new),
        &creator(old),
        &Path::new("metadata.annotations"),
    ));
    let path = Path::new("spec");
    errors.extend(immutable(
        &new.spec.shoot_ref.name,
        &old.spec.shoot_ref.name,
        &path.child("shootRef.name"),
    ));
    errors.extend(immutable(
        &new.spec.ssh_public_key,
        &old.spec.ssh_public_key,
        &path.child("sshPublicKey"),
    ));
    errors.extend(validate_bastion(new));
    errors
}

/// Checks a change of a bastion's status at a time.
pub fn validate_bastion_status_update(new: &Bastion, now: k8s_openapi::jiff::Timestamp) -> ErrorList {
    match &new.status.last_heartbeat_timestamp {
        Some(heartbeat) if heartbeat.0 > now => vec![Error::invalid(
            &Path::new("status.lastHeartbeatTimestamp"),
            crate::validation::shown(heartbeat),
            "last heartbeat must not be in the future",
        )],
        _ => ErrorList::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_ba1_recorded_refusal() {
        let bastion: Bastion = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "b1", "namespace": "garden-local"},
            "spec": {"shootRef": {"name": "rich"}, "sshPublicKey": "not a key",
                     "ingress": [{"ipBlock": {"cidr": "1.2.3.4"}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}]}}),
        )
        .unwrap();
        let texts: Vec<String> = validate_bastion(&bastion).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.sshPublicKey: Invalid value: \"not a key\": invalid sshPublicKey",
                "spec.ingress: Invalid value: \"1.2.3.4\": invalid CIDR"
            ]
        );
    }
}
