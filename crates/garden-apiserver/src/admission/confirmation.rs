//! Deletion is confirmed, and finalizers stay until deletion is done, [ADM-58], [ADM-60].

use std::collections::BTreeMap;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::meta::is_true;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{annotation, finalizer};
use gardener_apis::core::v1beta1::Shoot;
use gardener_apiserver::definition::{Admission, Attributes, Draft, Operation};
use gardener_apiserver::meta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as Wanted;
use serde_json::{Value, json};

use super::{errors_occurred, typed};
use crate::lookup;

const GROUP: &str = "core.gardener.cloud";

/// [ADM-58].
pub(super) struct DeletionConfirmation;

fn confirmed(object: &Value) -> bool {
    is_confirmed(&meta::string_map(object.at("/metadata/annotations")))
}

fn is_confirmed(annotations: &BTreeMap<String, String>) -> bool {
    annotations
        .get(annotation::CONFIRMATION_DELETION)
        .is_some_and(|text| is_true(text))
}

/// Who confirmed that an object goes; empty if it is not told.
fn confirmer(object: Option<&Value>) -> String {
    let annotations = object.and_then(|object| object.at("/metadata/annotations"));
    let told = annotations.and_then(|annotations| annotations.get(annotation::DELETION_CONFIRMED_BY)?.as_str());
    told.unwrap_or_default().to_owned()
}

fn selects(selector: &Wanted, object: &Value) -> bool {
    gardener_apimachinery::selector::LabelSelector::from(selector)
        .matches(&meta::string_map(object.at("/metadata/labels")))
}

/// Whether somebody who may has confirmed that an object goes.
fn may_go(attributes: &Attributes<'_>, object: &Value) -> Result<(), ApiError> {
    let forbid = |why: &str| ApiError::forbidden(GROUP, &attributes.definition.plural, meta::name(object), why);
    if !confirmed(object) {
        return Err(forbid(&format!(
            "must have a \"{}\" annotation to delete",
            annotation::CONFIRMATION_DELETION
        )));
    }
    if attributes.definition.plural != "shoots" {
        return Ok(());
    }
    let user = attributes.context.user;
    let confirmer = confirmer(Some(object));
    let project = lookup::project_of(attributes.context.lister, attributes.namespace);
    let four_eyes = project
        .iter()
        .flat_map(|project| &project.spec.dual_approval_for_deletion)
        .any(|approval| {
            approval.resource == "shoots"
                && selects(&approval.selector, object)
                && (approval.include_service_accounts.unwrap_or(true)
                    || !user.name.starts_with("system:serviceaccount:"))
        });
    if four_eyes && confirmer == user.name {
        return Err(forbid(
            "you are not allowed to both confirm the deletion and send the actual DELETE request - another subject must perform the deletion",
        ));
    }
    Ok(())
}

/// Refuses the deletion of a collection of which not every object may go, whichever of them are chosen.
fn all_are_confirmed(attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let namespace = Some(attributes.namespace).filter(|_| attributes.definition.namespaced);
    let all = attributes
        .context
        .lister
        .list(GROUP, &attributes.definition.plural, namespace);
    let refusals = all.iter().filter_map(|object| may_go(attributes, object).err());
    let refusals: Vec<String> = refusals.map(|refusal| refusal.to_string()).collect();
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(ApiError::unclassified(errors_occurred(&refusals))),
    }
}

#[async_trait]
impl Admission for DeletionConfirmation {
    fn name(&self) -> &'static str {
        "DeletionConfirmation"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.is(GROUP, "shoots") || !attributes.subresource.is_empty() {
            return Ok(());
        }
        let user = attributes.context.user.name.clone();
        let before = attributes.old_json().is_some_and(confirmed);
        let Some(shoot) = typed::<Shoot>(attributes) else {
            return Ok(());
        };
        let annotations = shoot.metadata.annotations.as_ref();
        let now = annotations.is_some_and(is_confirmed);
        let confirmer = match (before, now) {
            (false, true) => Some(user),
            // who confirmed it stays who did, whatever is told
            (true, true) => Some(confirmer(attributes.old_json())),
            (_, false) => None,
        };
        if confirmer.as_deref()
            == annotations
                .and_then(|own| own.get(annotation::DELETION_CONFIRMED_BY))
                .map(String::as_str)
        {
            return Ok(());
        }
        let Some(object) = attributes.object.as_mut() else {
            return Ok(());
        };
        let metadata = meta::metadata_mut(object);
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            match confirmer {
                Some(confirmer) => annotations.insert(annotation::DELETION_CONFIRMED_BY.into(), confirmer.into()),
                None => annotations.remove(annotation::DELETION_CONFIRMED_BY),
            };
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let kinds = ["shoots", "projects", "shootstates"];
        if attributes.operation != Operation::Delete
            || attributes.definition.group != GROUP
            || !kinds.contains(&attributes.definition.plural.as_str())
        {
            return Ok(());
        }
        let Some(old) = attributes.old else { return Ok(()) };
        if attributes.with_collection {
            return all_are_confirmed(attributes);
        }
        may_go(attributes, old)
    }
}

/// [ADM-60].
pub(super) struct FinalizerRemoval;

/// Whether a write takes Gardener's finalizer away. Few do, so that the others need not become types for it.
fn is_removed(attributes: &Attributes<'_>) -> bool {
    let has = |object: &Value| meta::finalizers(object).iter().any(|name| name == finalizer::GARDENER);
    attributes.old.map(Draft::read_part).is_some_and(has)
        && !attributes.object.as_ref().map(Draft::read_part).is_some_and(has)
}

impl FinalizerRemoval {
    fn binding(attributes: &Attributes<'_>, word: &str, uses: impl Fn(&Shoot) -> bool) -> Result<(), ApiError> {
        let used = lookup::list::<Shoot>(attributes.context.lister, Some(attributes.namespace));
        if used.iter().any(uses) {
            return Err(attributes.forbidden(&format!(
                "finalizer must not be removed - {word} {}/{} is still in use by at least one shoot",
                attributes.namespace, attributes.name
            )));
        }
        Ok(())
    }
}

#[async_trait]
impl Admission for FinalizerRemoval {
    fn name(&self) -> &'static str {
        "FinalizerRemoval"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Update || !is_removed(attributes) {
            return Ok(());
        }
        if typed::<Shoot>(attributes).is_some_and(|shoot| !deletion_done(&shoot)) {
            return Err(attributes.forbidden(
                "finalizer \"gardener\" cannot be removed because shoot deletion has not completed successfully yet",
            ));
        }
        if attributes.is(GROUP, "secretbindings") {
            return Self::binding(attributes, "secret binding", |shoot| {
                shoot.spec.secret_binding_name.as_deref() == Some(attributes.name)
            });
        }
        if attributes.is("security.gardener.cloud", "credentialsbindings") {
            return Self::binding(attributes, "credentials binding", |shoot| {
                shoot.spec.credentials_binding_name.as_deref() == Some(attributes.name)
            });
        }
        Ok(())
    }
}

fn deletion_done(shoot: &Shoot) -> bool {
    shoot.status.technical_id.is_empty()
        || shoot.status.last_operation.as_ref().is_none_or(|operation| {
            operation.r#type == "Delete" && operation.state == "Succeeded" && operation.progress == 100
        })
}
