//! Leases: what may be said of how long they last and how often they went to somebody else.

use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::strategy::Kind;

/// Coordinated leader election is off, as upstream has it.
fn drop_coordination(lease: &mut Value) {
    if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, _| !matches!(key.as_str(), "strategy" | "preferredHolder"));
    }
}

/// The rules of leases.
pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.create_on_update = true;
    kind.prepare_create = |_, lease| {
        drop_coordination(lease);
        Ok(())
    };
    kind.prepare_update = |_, lease, _| {
        drop_coordination(lease);
        Ok(())
    };
    kind.validate = |object| {
        let spec = Path::new("spec");
        let number = |key: &str| object.at(&format!("/spec/{key}")).and_then(Value::as_i64);
        let mut errors = Vec::new();
        if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            errors.push(Error::invalid(
                &spec.child("leaseDurationSeconds"),
                seconds,
                "must be greater than 0",
            ));
        }
        if let Some(transitions) = number("leaseTransitions").filter(|transitions| *transitions < 0) {
            errors.push(Error::invalid(
                &spec.child("leaseTransitions"),
                transitions,
                "must be greater than or equal to 0",
            ));
        }
        errors
    };
    kind
}
