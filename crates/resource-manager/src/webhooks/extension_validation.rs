//! Extension objects and Etcds are judged by the rules of their kinds [EXT-131].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gardener_apimachinery::ApiError;
use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::extensions::v1alpha1::*;
use gardener_apis::validation::extension_object::{ExtensionObject, validate, validate_update, webhook_path};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::review::{Request, Response};

/// Judges a request.
pub(super) type Judge = fn(&Request) -> Response;

/// Who judges, by path.
static JUDGES: LazyLock<BTreeMap<String, Judge>> = LazyLock::new(|| {
    fn of<K: ExtensionObject + DeserializeOwned + kube::Resource>() -> (String, Judge) {
        (webhook_path::<K>(), by::<K>)
    }
    BTreeMap::from([
        of::<BackupBucket>(),
        of::<BackupEntry>(),
        of::<Bastion>(),
        of::<ContainerRuntime>(),
        of::<ControlPlane>(),
        of::<DNSRecord>(),
        of::<Etcd>(),
        of::<Extension>(),
        of::<Infrastructure>(),
        of::<Network>(),
        of::<OperatingSystemConfig>(),
        of::<SelfHostedShootExposure>(),
        of::<Worker>(),
    ])
});

/// Who judges at a path.
pub(super) fn judge(path: &str) -> Option<Judge> {
    JUDGES.get(path).copied()
}

fn by<K: ExtensionObject + DeserializeOwned + kube::Resource>(request: &Request) -> Response {
    let read = |object: &Option<Value>| serde_json::from_value::<K>(object.clone().unwrap_or_default());
    let judged = match request.operation.as_str() {
        "CREATE" => read(&request.object).map(|object| {
            let errors = validate(&object);
            (object, errors)
        }),
        "UPDATE" => read(&request.object).and_then(|new| {
            let errors = validate_update(&new, &read(&request.old_object)?);
            Ok((new, errors))
        }),
        _ => return Response::allowed(""),
    };
    let (object, errors) = match judged {
        Ok(judged) => judged,
        Err(error) => return Response::errored(400, format!("the object cannot be read: {error}")),
    };
    if errors.is_empty() {
        return Response::allowed("");
    }
    let place = &request.kind;
    let refused = ApiError::invalid(&place.group, &place.kind, &object.name_any(), &errors);
    Response::refused(refused.status().clone())
}
