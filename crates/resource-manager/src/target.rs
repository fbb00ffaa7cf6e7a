//! Writes to the target cluster: applies objects, deletes them, and releases those that are no longer managed.

use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::duration::Duration as Span;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::resources::v1alpha1::ManagedResourceStatusResource as Reference;
use gardener_controller::Read;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::followed::{Followed, Health};
use crate::mapper::{Mapper, Mapping};
use crate::merge::{self, DESCRIPTION, ORIGIN, Options, annotation};
use gardener_apimachinery::meta::is_true;

/// Object annotations of this manager's users.
const IGNORE: &str = "resources.gardener.cloud/ignore";
const MODE: &str = "resources.gardener.cloud/mode";
const KEEP: &str = "resources.gardener.cloud/keep-object";
const DELETE_ON_INVALID: &str = "resources.gardener.cloud/delete-on-invalid-update";
const PROPAGATION_ON_INVALID: &str = "resources.gardener.cloud/deletion-propagation-on-invalid-update";
const FINALIZE_AFTER: &str = "resources.gardener.cloud/finalize-deletion-after";
pub(crate) const GARBAGE_COLLECTABLE: &str = "resources.gardener.cloud/garbage-collectable-reference";

/// Why the target is not as it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TargetError {
    /// The API refused or did not answer.
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    /// The target does not serve the kind.
    #[error("no matches for kind {kind:?} in version {api_version:?}")]
    NoSuchKind {
        /// Its group and version.
        api_version: String,
        /// Its name.
        kind: String,
    },
    /// An annotation has a value that is not known.
    #[error("annotation {key} has the value {value:?}; it must be Background, Foreground or Orphan")]
    Annotation {
        /// Which annotation.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// The object was deleted because it cannot be updated; the next run creates it anew.
    #[error("deleted {0} because it could not be updated; it is created anew by the next reconciliation")]
    Deleted(String),
    /// An object cannot be read.
    #[error("the object cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

/// What became of an object that is to go.
pub(crate) enum Gone {
    /// It is gone, or is not ours to delete.
    Yes,
    /// It is still there; the key for messages.
    NotYet(String),
}

/// What is known of an object before it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was applied before.
    Applied,
    /// Nothing: most likely it is not there.
    Not,
}

/// The target cluster.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) mapper: Mapper,
    pub(crate) followed: Followed,
    pub(crate) clock: Clock,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.at(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an object is excluded from management `[EXT-154]`.
pub(crate) fn is_excluded(object: &Value) -> bool {
    annotation(object, MODE) == "Ignore"
}

impl Target {
    async fn mapping(&self, api_version: &str, kind: &str) -> Result<Mapping, TargetError> {
        let found = self.mapper.find(api_version, kind).await?;
        found.ok_or_else(|| TargetError::NoSuchKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })
    }

    /// Puts an object into the namespace where it belongs `[EXT-141]`.
    pub(crate) async fn place(&self, object: &mut Value) {
        let (api_version, kind) = (text(object, "/apiVersion").to_owned(), text(object, "/kind").to_owned());
        let namespaced = match self.mapper.find(&api_version, &kind).await {
            Ok(Some(mapping)) => mapping.namespaced,
            _ => kind != "Namespace",
        };
        let unset = text(object, "/metadata/namespace").is_empty();
        if let Some(metadata) = object.at_mut("/metadata").and_then(Value::as_object_mut) {
            if !namespaced {
                metadata.remove("namespace");
            } else if unset {
                metadata.insert("namespace".into(), "default".into());
            }
        }
    }

    /// Applies one object.
    pub(crate) async fn apply(&self, object: &Value, options: &Options, known: Known) -> Result<(), TargetError> {
        let (api_version, kind, name, namespace) = (
            text(object, "/apiVersion"),
            text(object, "/kind"),
            text(object, "/metadata/name"),
            text(object, "/metadata/namespace"),
        );
        let mapping = self.mapping(api_version, kind).await?;
        let api = self.mapper.api(&mapping, namespace);
        let place = mapping.place(namespace, name);
        let desired = merge::desired(object.clone(), options);
        let create = async || -> Result<(), TargetError> {
            let new: DynamicObject = serde_json::from_value(merge::create(&desired, options))?;
            let created = api.create(&PostParams::default(), &new).await?;
            self.followed.wrote(&mapping, place.clone(), &created.metadata);
            Ok(())
        };
        // what could not be created may be there
        let refused = match known {
            Known::Not => match create().await {
                Err(TargetError::Api(error)) => Some(error),
                ended => return ended,
            },
            Known::Applied => None,
        };
        let Some(live) = api.read_opt(name).await? else {
            return match refused {
                Some(error) => Err(error.into()),
                None => create().await,
            };
        };
        if is_true(annotation(object, IGNORE)) {
            return Ok(());
        }
        let live_value = serde_json::to_value(&live)?;
        let mut options = options.clone();
        options.scaled_by_autoscaler = self.is_scaled(object).await?;
        let merged = merge::merge(&desired, &live_value, &options);
        let mut before = live_value.clone();
        if let Some(metadata) = before.at_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        if merged == before {
            return Ok(());
        }
        let replaced: DynamicObject = serde_json::from_value(merged)?;
        match api.replace(name, &PostParams::default(), &replaced).await {
            Ok(written) => {
                self.followed.wrote(&mapping, place, &written.metadata);
                Ok(())
            }
            Err(error) if is_invalid(&error) && self.deletes_on_invalid(object, &error) => {
                let policy = match annotation(object, PROPAGATION_ON_INVALID) {
                    "" => None,
                    "Background" => Some(PropagationPolicy::Background),
                    "Foreground" => Some(PropagationPolicy::Foreground),
                    "Orphan" => Some(PropagationPolicy::Orphan),
                    other => {
                        return Err(TargetError::Annotation {
                            key: PROPAGATION_ON_INVALID,
                            value: other.to_owned(),
                        });
                    }
                };
                api.delete(
                    name,
                    &DeleteParams {
                        propagation_policy: policy,
                        ..DeleteParams::default()
                    },
                )
                .await?;
                Err(TargetError::Deleted(format!("{kind} {name}")))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn deletes_on_invalid(&self, object: &Value, error: &kube::Error) -> bool {
        let immutable_data = matches!(text(object, "/kind"), "ConfigMap" | "Secret")
            && error.to_string().contains("field is immutable when `immutable` is set");
        is_true(annotation(object, DELETE_ON_INVALID)) || immutable_data
    }

    /// Whether an autoscaler of the namespace targets the object.
    async fn is_scaled(&self, object: &Value) -> Result<bool, TargetError> {
        let kind = text(object, "/kind");
        if !matches!(kind, "Deployment" | "StatefulSet") {
            return Ok(false);
        }
        let Some(mapping) = self.mapper.find("autoscaling/v2", "HorizontalPodAutoscaler").await? else {
            return Ok(false);
        };
        let api = self.mapper.api(&mapping, text(object, "/metadata/namespace"));
        let list = api.read_list(&ListParams::default()).await?;
        Ok(list.iter().any(|autoscaler| {
            let target = |key: &str| {
                autoscaler
                    .data
                    .at(&format!("/spec/scaleTargetRef/{key}"))
                    .and_then(Value::as_str)
            };
            target("kind") == Some(kind) && target("name") == Some(text(object, "/metadata/name"))
        }))
    }

    /// How healthy an object is; `None` when it or its kind is not there.
    pub(crate) async fn health(&self, reference: &Reference) -> Result<Option<Health>, TargetError> {
        let (api_version, kind, namespace, name) = (
            reference.api_version.as_deref().unwrap_or_default(),
            reference.kind.as_deref().unwrap_or_default(),
            reference.namespace.as_deref().unwrap_or_default(),
            reference.name.as_deref().unwrap_or_default(),
        );
        let Some(mapping) = self.mapper.find(api_version, kind).await? else {
            return Ok(None);
        };
        if let Some(health) = self.followed.health(&mapping, &mapping.place(namespace, name)) {
            return Ok(Some(health));
        }
        let found = self.read(reference).await?;
        Ok(found.map(|object| Health::of(&mapping.resource, &object)))
    }

    /// Reads an object by reference; `None` when it or its kind is not there.
    pub(crate) async fn read(&self, reference: &Reference) -> Result<Option<Value>, TargetError> {
        let (api_version, kind) = (
            reference.api_version.as_deref().unwrap_or_default(),
            reference.kind.as_deref().unwrap_or_default(),
        );
        let Some(mapping) = self.mapper.find(api_version, kind).await? else {
            return Ok(None);
        };
        let api = self
            .mapper
            .api(&mapping, reference.namespace.as_deref().unwrap_or_default());
        let found = api.read_opt(reference.name.as_deref().unwrap_or_default()).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// Takes this manager's marks off an object that is not managed any more, if they are ours.
    pub(crate) async fn release(&self, reference: &Reference, origin: &str) -> Result<(), TargetError> {
        let Some(live) = self.read(reference).await? else {
            return Ok(());
        };
        if annotation(&live, ORIGIN) != origin {
            return Ok(());
        }
        let mapping = self
            .mapping(
                reference.api_version.as_deref().unwrap_or_default(),
                reference.kind.as_deref().unwrap_or_default(),
            )
            .await?;
        let api = self
            .mapper
            .api(&mapping, reference.namespace.as_deref().unwrap_or_default());
        let patch = json!({"metadata": {"annotations": {ORIGIN: null, DESCRIPTION: null}}});
        api.patch(
            reference.name.as_deref().unwrap_or_default(),
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await?;
        Ok(())
    }

    /// Deletes an object that is no longer wanted `[EXT-160]` `[GRM-20]`.
    pub(crate) async fn delete(&self, reference: &Reference, delete_claims: bool) -> Result<Gone, TargetError> {
        let Some(live) = self.read(reference).await? else {
            return Ok(Gone::Yes);
        };
        let (api_version, kind) = (
            reference.api_version.clone().unwrap_or_default(),
            reference.kind.clone().unwrap_or_default(),
        );
        let (namespace, name) = (
            reference.namespace.clone().unwrap_or_default(),
            reference.name.clone().unwrap_or_default(),
        );
        let collectable = matches!(kind.as_str(), "ConfigMap" | "Secret")
            && live
                .at("/metadata/labels")
                .and_then(|labels| labels.get(GARBAGE_COLLECTABLE))
                .and_then(Value::as_str)
                == Some("true");
        if is_true(annotation(&live, KEEP)) || collectable {
            return Ok(Gone::Yes);
        }
        let mapping = self.mapping(&api_version, &kind).await?;
        let api = self.mapper.api(&mapping, &namespace);
        if text(&live, "/metadata/deletionTimestamp").is_empty() {
            if kind == "StatefulSet" && delete_claims {
                self.delete_claims(&live, &namespace).await?;
            }
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let policy = matches!(group, "apps" | "extensions" | "batch").then_some(PropagationPolicy::Foreground);
            match api
                .delete(
                    &name,
                    &DeleteParams {
                        propagation_policy: policy,
                        ..DeleteParams::default()
                    },
                )
                .await
            {
                // with something still to be done the answer would be the object
                Ok(answer) if answer.is_right() => return Ok(Gone::Yes),
                Ok(_) => {}
                Err(error) if gardener_controller::apply::is_not_found(&error) => return Ok(Gone::Yes),
                Err(error) => return Err(error.into()),
            }
        } else if !self.finalize(&api, &live, &name).await? {
            return Ok(Gone::NotYet(format!("{api_version}/{kind}/{namespace}/{name}")));
        }
        Ok(match api.read_opt(&name).await? {
            None => Gone::Yes,
            Some(_) => Gone::NotYet(format!("{api_version}/{kind}/{namespace}/{name}")),
        })
    }

    async fn delete_claims(&self, set: &Value, namespace: &str) -> Result<(), TargetError> {
        let labels = set
            .at("/spec/selector/matchLabels")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let selector: Vec<String> = labels
            .iter()
            .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
            .collect();
        if selector.is_empty() {
            return Ok(());
        }
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        claims
            .delete_collection(
                &DeleteParams::default(),
                &ListParams::default().labels(&selector.join(",")),
            )
            .await?;
        Ok(())
    }

    /// Removes the finalizers of an object whose deletion lasts longer than its annotation allows; answers whether it did.
    async fn finalize(&self, api: &Api<DynamicObject>, live: &Value, name: &str) -> Result<bool, TargetError> {
        let Ok(patience) = annotation(live, FINALIZE_AFTER).parse::<Span>() else {
            return Ok(false);
        };
        let Ok(asked) = text(live, "/metadata/deletionTimestamp").parse::<jiff::Timestamp>() else {
            return Ok(false);
        };
        let lasted = Duration::from_secs(u64::try_from(self.clock.now().as_second() - asked.as_second()).unwrap_or(0));
        if lasted < patience.to_std() {
            return Ok(false);
        }
        if text(live, "/kind") == "Namespace" {
            let body: DynamicObject = serde_json::from_value(
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}),
            )?;
            api.replace_subresource("finalize", name, &PostParams::default(), &body)
                .await?;
        }
        let patch = json!({"metadata": {"finalizers": null}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(true)
    }
}

fn is_invalid(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 422)
}

/// The reference of an object, with the labels and annotations that are applied to it.
pub(crate) fn reference_of(object: &Value) -> Reference {
    let some = |pointer: &str| Some(text(object, pointer).to_owned()).filter(|text| !text.is_empty());
    let texts = |pointer: &str| {
        let map = object.at(pointer).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    Reference {
        api_version: some("/apiVersion"),
        kind: some("/kind"),
        name: some("/metadata/name"),
        namespace: some("/metadata/namespace"),
        labels: texts("/metadata/labels"),
        annotations: texts("/metadata/annotations"),
        ..Reference::default()
    }
}
