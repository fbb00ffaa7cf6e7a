//! Namespaces: their name as label, their phase, and their own finalizers.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::defaults;
use super::strategy::Kind;
use crate::meta;
use crate::selectable::Selectable;

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
    kind.canonicalize = label_with_name;
    kind.prepare_create = |_, namespace| {
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
    // an update that changes a namespace's own finalizers, which are in its spec, and its metadata
    kind.views = &["finalize"];
    kind.view_verbs = &["update"];
    kind.update_view = |_, _, namespace, old| {
        label_with_name(namespace);
        if let (Some(members), Some(status)) = (namespace.as_object_mut(), old.get("status")) {
            members.insert("status".into(), status.clone());
        }
        let path = Path::new("spec").child("finalizers");
        let own = meta::elements(namespace, "/spec/finalizers").iter().enumerate();
        own.filter_map(|(index, name)| Some((index, name.as_str()?)))
            .flat_map(|(index, name)| finalizer_errors(name, &path.index(index)))
            .collect()
    };
    kind.left_alone = |subresource| match subresource {
        "finalize" => &["status"],
        _ => &[],
    };
    kind.fields = const {
        &[
            Selectable::text("status.phase", "/status/phase"),
            Selectable::text("name", "/metadata/name"),
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
