//! Extension objects and Etcds are judged by the rules of their kinds [EXT-131].

use gardener_apimachinery::ApiError;
use gardener_apis::druid::v1alpha1::Etcd;
use gardener_apis::extensions::v1alpha1::*;
use gardener_apis::validation::extension_object::{ExtensionObject, validate, validate_update};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::review::{Request, Response};

type Judge = fn(&Request) -> Response;

/// What is judged: the path, and by which kind's rules.
const JUDGES: [(&str, Judge); 13] = [
    (
        "/validate-extensions-gardener-cloud-v1alpha1-backupbucket",
        by::<BackupBucket>,
    ),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-backupentry",
        by::<BackupEntry>,
    ),
    ("/validate-extensions-gardener-cloud-v1alpha1-bastion", by::<Bastion>),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-containerruntime",
        by::<ContainerRuntime>,
    ),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-controlplane",
        by::<ControlPlane>,
    ),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-dnsrecord",
        by::<DNSRecord>,
    ),
    ("/validate-druid-gardener-cloud-v1alpha1-etcd", by::<Etcd>),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-extension",
        by::<Extension>,
    ),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-infrastructure",
        by::<Infrastructure>,
    ),
    ("/validate-extensions-gardener-cloud-v1alpha1-network", by::<Network>),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-operatingsystemconfig",
        by::<OperatingSystemConfig>,
    ),
    (
        "/validate-extensions-gardener-cloud-v1alpha1-selfhostedshootexposure",
        by::<SelfHostedShootExposure>,
    ),
    ("/validate-extensions-gardener-cloud-v1alpha1-worker", by::<Worker>),
];

/// Whether a path leads to rules.
pub(super) fn serves(path: &str) -> bool {
    JUDGES.iter().any(|(own, _)| *own == path)
}

pub(super) fn judge(path: &str, request: &Request) -> Response {
    match JUDGES.iter().find(|(own, _)| *own == path) {
        Some((_, judge)) => judge(request),
        None => Response::errored(404, format!("nothing is judged at {path}")),
    }
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
