//! Status writes: JSON merge patches on the status subresource, so that what others write stays [EXT-3], [EXT-4].

use gardener_apimachinery::clock::Clock;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::operation::{OperationType, SUCCEEDED};
use crate::{ActuatorError, ExtensionKind};

fn last_operation(operation: OperationType, state: &str, progress: i32, description: String, clock: &Clock) -> Value {
    json!({
        "type": operation.as_str(),
        "state": state,
        "progress": progress,
        "description": description,
        "lastUpdateTime": clock.time(),
    })
}

async fn patch<K: ExtensionKind>(api: &Api<K>, object: &K, status: Value) -> Result<K, kube::Error> {
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(&object.name_any(), &PatchParams::default(), &patch)
        .await
}

fn name<K: ExtensionKind>(object: &K) -> String {
    format!("{} {}", K::kind(&()), object.name_any())
}

pub(crate) async fn started<K: ExtensionKind>(
    api: &Api<K>,
    object: &K,
    operation: OperationType,
    clock: &Clock,
) -> Result<K, kube::Error> {
    let description = format!("{} of {} is under way", operation.as_str(), name(object));
    let last = last_operation(operation, "Processing", 1, description, clock);
    patch(api, object, json!({"lastOperation": last})).await
}

pub(crate) async fn failed<K: ExtensionKind>(
    api: &Api<K>,
    object: &K,
    operation: OperationType,
    error: &ActuatorError,
    clock: &Clock,
) -> Result<K, kube::Error> {
    let description = format!(
        "{} of {} failed: {}",
        operation.as_str(),
        name(object),
        error.description
    );
    let status = json!({
        "lastOperation": last_operation(operation, "Error", 50, description.clone(), clock),
        "lastError": {
            "description": description,
            "codes": if error.codes.is_empty() { Value::Null } else { json!(error.codes) },
            "lastUpdateTime": clock.time(),
        },
        "observedGeneration": object.meta().generation,
    });
    patch(api, object, status).await
}

pub(crate) async fn succeeded<K: ExtensionKind>(
    api: &Api<K>,
    object: &K,
    operation: OperationType,
    also: Value,
    clock: &Clock,
) -> Result<K, kube::Error> {
    let description = format!("{} of {} succeeded", operation.as_str(), name(object));
    let mut status = json!({
        "lastOperation": last_operation(operation, SUCCEEDED, 100, description, clock),
        "lastError": null,
        "observedGeneration": object.meta().generation,
    });
    if let (Value::Object(status), Value::Object(also)) = (&mut status, also) {
        status.extend(also);
    }
    patch(api, object, status).await
}
