//! Namespaces: their name as label, their phase, and their own finalizers.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::defaults;
use super::strategy::Kind;
use crate::definition::{Context, Effect, Subresource};
use crate::{meta, registry};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn kind(mut kind: Kind) -> Kind {
    kind.default = |namespace| {
        label_with_name(namespace);
        defaults::phase(namespace, "Active");
    };
    kind.name = meta::dns1123_label;
    kind.whole_first = true;
    kind.validate = |namespace| {
        let at = Path::new("spec").child("finalizers");
        let own = meta::elements(namespace, "/spec/finalizers").iter();
        own.filter_map(Value::as_str)
            .flat_map(|name| finalizer_errors(name, &at))
            .collect()
    };
    kind.prepare_create = |_, namespace| {
        label_with_name(namespace);
        let mut finalizers: Vec<Value> = namespace
            .at("/spec/finalizers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !finalizers.contains(&json!("kubernetes")) {
            finalizers.push("kubernetes".into());
        }
        if let Some(members) = namespace.as_object_mut() {
            members.insert("spec".into(), json!({"finalizers": finalizers}));
            members.insert("status".into(), json!({"phase": "Active"}));
        }
        Ok(())
    };
    kind.prepare_update = |_, namespace, old| {
        // the finalizers in the spec change through `finalize` only
        if let (Some(members), Some(spec)) = (namespace.as_object_mut(), old.get("spec")) {
            members.insert("spec".into(), spec.clone());
        }
        Ok(())
    };
    kind.validate_status = |namespace, _| {
        let phase = meta::text(namespace, "/status/phase");
        let (expected, when) = match meta::is_deleting(namespace) {
            false => ("Active", "empty"),
            true => ("Terminating", "not empty"),
        };
        if phase == expected {
            return Vec::new();
        }
        let why = format!("may only be '{expected}' if `deletionTimestamp` is {when}");
        vec![Error::invalid(&Path::new("status.Phase"), phase, why)]
    };
    kind.fields = |namespace| {
        vec![
            ("status.phase".into(), meta::text(namespace, "/status/phase").into()),
            ("name".into(), meta::name(namespace).into()),
        ]
    };
    kind
}

/// What is wrong with the name of a namespace's own finalizer.
fn finalizer_errors(name: &str, at: &Path) -> ErrorList {
    let mut wrong = meta::qualified_name(name);
    let is_standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&name);
    if !name.contains('/') && !is_standard {
        wrong.push("name is neither a standard finalizer name nor is it fully qualified".to_owned());
    }
    wrong.into_iter().map(|why| Error::invalid(at, name, why)).collect()
}

fn label_with_name(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    if name.is_empty() {
        return;
    }
    let labels = meta::metadata_mut(namespace)
        .entry("labels")
        .or_insert_with(|| json!({}));
    if !labels.is_object() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(NAME_LABEL.into(), name.into());
    }
}

/// `namespaces/finalize`: an update that changes a namespace's own finalizers, which are in its spec, and its metadata.
pub(super) struct Finalize;

#[async_trait]
impl Subresource for Finalize {
    fn kind(&self) -> (&'static str, &'static str, &'static str) {
        ("", "v1", "Namespace")
    }

    fn verbs(&self) -> &'static [&'static str] {
        &["update"]
    }

    async fn call(&self, _: &Context<'_>, _: &str, namespace: &Value, body: Value) -> Result<Effect, ApiError> {
        let name = meta::name(namespace);
        let path = Path::new("spec").child("finalizers");
        let mut wrong: Vec<Error> = meta::elements(&body, "/spec/finalizers")
            .iter()
            .filter_map(Value::as_str)
            .enumerate()
            .flat_map(|(index, own)| finalizer_errors(own, &path.index(index)))
            .collect();
        let mut stored = namespace.clone();
        let finalizers = body.at("/spec/finalizers").cloned().unwrap_or_else(|| json!([]));
        if let Some(members) = stored.as_object_mut() {
            let spec = match finalizers.as_array().is_none_or(Vec::is_empty) {
                true => json!({}),
                false => json!({"finalizers": finalizers}),
            };
            members.insert("spec".into(), spec);
            // as every update, this one may change the metadata too
            members.insert("metadata".into(), body.get("metadata").cloned().unwrap_or_default());
        }
        registry::keep_server_metadata(&mut stored, namespace);
        label_with_name(&mut stored);
        wrong.extend(meta::validate_update(&stored, namespace));
        if !wrong.is_empty() {
            return Err(ApiError::invalid("", "Namespace", name, &wrong));
        }
        Ok(Effect::Store(stored))
    }
}
