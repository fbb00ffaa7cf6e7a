//! Extension objects, Etcds and protected definitions are deleted only when that was confirmed [EXT-130], [GRM-62].

use gardener_apis::constants::annotation::CONFIRMATION_DELETION;
use gardener_apis::constants::label::DELETION_PROTECTED;
use gardener_controller::apply::is_not_found;
use gardener_controller::{api_error, operation};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::{Api, Client, Resource};

use super::review::{Request, Response};

/// The extension kinds that are protected: all but Bastions, which are nobody's state, and Clusters.
const EXTENSIONS: [&str; 11] = [
    "backupbuckets",
    "backupentries",
    "containerruntimes",
    "controlplanes",
    "dnsrecords",
    "extensions",
    "infrastructures",
    "networks",
    "operatingsystemconfigs",
    "selfhostedshootexposures",
    "workers",
];

/// Which members of a collection are judged.
fn members(request: &Request) -> Option<ListParams> {
    let place = &request.resource;
    let plural = place.resource.as_str();
    match (place.group.as_str(), place.version.as_str()) {
        ("apiextensions.k8s.io", "v1" | "v1beta1") if plural == "customresourcedefinitions" => {
            Some(ListParams::default().labels(&format!("{DELETION_PROTECTED}=true")))
        }
        ("druid.gardener.cloud", "v1alpha1") if plural == "etcds" => Some(ListParams::default()),
        ("extensions.gardener.cloud", "v1alpha1") if EXTENSIONS.contains(&plural) => Some(ListParams::default()),
        _ => None,
    }
}

pub(super) async fn judge(source: &Client, request: &Request) -> Response {
    if request.operation != "DELETE" {
        return Response::allowed("operation is not DELETE");
    }
    let Some(members) = members(request) else {
        return Response::allowed("resource is not deletion-protected");
    };
    // who deletes a collection does not tell its members
    if request.name.is_empty() {
        return match list(source, request, &members).await {
            Ok(members) => verdict(&members),
            Err(error) if is_not_found(&error) => Response::allowed("object was not found"),
            Err(error) => Response::errored(500, api_error(&error)),
        };
    }
    let object = request.old_object.as_ref().or(request.object.as_ref());
    let Some(object) = object.filter(|object| !object.is_null()) else {
        return Response::errored(500, "no object found in admission request");
    };
    match serde_json::from_value::<PartialObjectMeta>(object.clone()) {
        Ok(object) => verdict(&[object]),
        Err(error) => Response::errored(500, format!("the object cannot be read: {error}")),
    }
}

async fn list(
    source: &Client,
    request: &Request,
    params: &ListParams,
) -> Result<Vec<PartialObjectMeta<DynamicObject>>, kube::Error> {
    let named = GroupVersionKind::gvk(&request.kind.group, &request.kind.version, &request.kind.kind);
    let resource = ApiResource::from_gvk_with_plural(&named, &request.resource.resource);
    let api: Api<DynamicObject> = match request.namespace.as_str() {
        "" => Api::all_with(source.clone(), &resource),
        namespace => Api::namespaced_with(source.clone(), namespace, &resource),
    };
    Ok(api.list_metadata(params).await?.items)
}

/// All of the objects must be confirmed.
fn verdict<K: Resource>(objects: &[K]) -> Response {
    if objects.iter().all(operation::is_deletion_confirmed) {
        Response::allowed("")
    } else {
        Response::denied(format!("must have a {CONFIRMATION_DELETION:?} annotation to delete"))
    }
}
