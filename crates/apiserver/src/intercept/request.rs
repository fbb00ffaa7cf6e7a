//! A request as AdmissionReviews and expressions tell it.

use serde_json::{Map, Value, json};

use super::matching::{self, Invocation};
use crate::definition::Attributes;

/// What is told of a request besides its objects.
pub(crate) fn of(attributes: &Attributes<'_>, invocation: &Invocation) -> Map<String, Value> {
    let gvk =
        |(group, version, kind): (String, String, String)| json!({"group": group, "version": version, "kind": kind});
    let gvr =
        |group: &str, version: &str, resource: &str| json!({"group": group, "version": version, "resource": resource});
    let requested = attributes.definition;
    let definition = invocation.definition(attributes);
    let own_kind = attributes.kind();
    let main_kind = requested.version(attributes.version).map(|version| &version.kind);
    let asked_kind = match main_kind == Some(&own_kind.2) && own_kind.0 == requested.group {
        true => {
            let kind = definition.version(&invocation.version);
            let kind = kind.map_or_else(String::new, |version| version.kind.clone());
            (definition.group.clone(), invocation.version.clone(), kind)
        }
        false => own_kind.clone(),
    };
    let mut request = Map::new();
    let mut put = |key: &str, value: Value| drop(request.insert(key.to_owned(), value));
    put("kind", gvk(asked_kind));
    put(
        "resource",
        gvr(&definition.group, &invocation.version, &definition.plural),
    );
    put("requestKind", gvk(own_kind));
    put(
        "requestResource",
        gvr(&requested.group, attributes.version, &requested.plural),
    );
    for (key, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", matching::name(attributes)),
        ("namespace", matching::namespace(attributes)),
    ] {
        if !text.is_empty() {
            put(key, text.into());
        }
    }
    put("operation", matching::word(attributes.operation).into());
    put("userInfo", json!(attributes.context.user));
    put("dryRun", attributes.context.dry_run.into());
    put("options", attributes.options.clone());
    request
}
