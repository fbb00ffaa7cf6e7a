//! Who owns what: sets belong to deployments, machines to sets; orphans that a selector matches are adopted.

use gardener_controller::apply::{self, Writable};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};
use kube::{Api, Resource, ResourceExt};

use crate::Error;

/// The reference by which `owner` owns.
pub(crate) fn reference<O: Resource<DynamicType = ()>>(owner: &O) -> OwnerReference {
    OwnerReference {
        api_version: O::api_version(&()).into_owned(),
        kind: O::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether the labels match; selectors of machines are labels only. An empty one selects nothing [MCH-8].
fn is_selected<K: Resource>(object: &K, selector: Option<&LabelSelector>) -> bool {
    let wanted = selector.and_then(|selector| selector.match_labels.as_ref());
    let labels = object.meta().labels.as_ref();
    wanted.is_some_and(|wanted| {
        !wanted.is_empty()
            && wanted
                .iter()
                .all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    })
}

/// Those of `objects` that `owner` owns; orphans that its selector matches are adopted on the way.
pub(crate) async fn owned<K, O>(
    api: &Api<K>,
    objects: Vec<K>,
    owner: &O,
    selector: Option<&LabelSelector>,
) -> Result<Vec<K>, Error>
where
    K: Writable,
    O: Resource<DynamicType = ()>,
{
    let uid = owner.meta().uid.as_deref();
    let mut found = Vec::new();
    for object in objects {
        let controller = object
            .owner_references()
            .iter()
            .find(|reference| reference.controller == Some(true));
        match controller {
            Some(controller) if Some(controller.uid.as_str()) == uid => found.push(object),
            Some(_) => {}
            None if is_selected(&object, selector)
                && object.meta().deletion_timestamp.is_none()
                && owner.meta().deletion_timestamp.is_none() =>
            {
                let reference = reference(owner);
                let adopted = apply::patch_locked(api, &object, |object| object.owner_references_mut().push(reference));
                found.push(adopted.await?.0);
            }
            None => {}
        }
    }
    Ok(found)
}
