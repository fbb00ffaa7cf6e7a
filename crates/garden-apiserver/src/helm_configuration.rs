//! How ControllerDeployments of `v1beta1` tell a Helm chart: their `providerConfig` is of a type that is in no document of the garden's API.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::pointer::Pointed;
use gardener_apiserver::meta;
use gardener_schema::{Definitions, Schema};
use serde_json::{Value, json};

use crate::openapi_documents;

const GROUP: &str = "core.gardener.cloud";
const VERSION: &str = "v1beta1";
const KIND: &str = "HelmControllerDeployment";

/// The schema of the type. None only where the program is damaged.
static SCHEMA: LazyLock<Option<Arc<Schema>>> = LazyLock::new(|| {
    let package = "com.github.gardener.gardener.pkg.apis.core";
    let reference = format!("#/components/schemas/{package}.v1.OCIRepository");
    let own = json!({"components": {"schemas": {(format!("{package}.{VERSION}.{KIND}")): {
        "type": "object",
        "properties": {
            "chart": {"type": "string", "format": "byte"},
            "values": {},
            "ociRepository": {"allOf": [{"$ref": reference}]},
        },
        "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": KIND}],
    }}}});
    let recorded = openapi_documents().map(|(_, text)| serde_json::from_str(text));
    let mut documents: Vec<Value> = recorded.collect::<Result<_, _>>().ok()?;
    documents.push(own);
    Definitions::from_openapi(&documents)
        .ok()?
        .for_kind(GROUP, VERSION, KIND)
});

/// Whether the chart of a ControllerDeployment of a version can be read [GAPI-5].
///
/// # Errors
/// What Go's decoder says of it.
pub(crate) fn decode(version: &str, object: &Value) -> Result<(), String> {
    if version != VERSION || meta::text(object, "/type") != "helm" {
        return Ok(());
    }
    match (object.at("/providerConfig"), &*SCHEMA) {
        (Some(config), Some(schema)) => schema.decode(config, KIND).map_err(|why| why.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gapi_5_charts_are_told_by_their_type() {
        for (version, kind, config, why) in [
            ("v1beta1", "helm", json!(null), None),
            (
                "v1beta1",
                "helm",
                json!({"chart": "AAAA", "values": [1], "more": 1}),
                None,
            ),
            ("v1beta1", "custom", json!(5), None),
            ("v1", "helm", json!(5), None),
            (
                "v1beta1",
                "helm",
                json!(5),
                Some("json: cannot unmarshal number into Go value of type v1beta1.HelmControllerDeployment"),
            ),
            (
                "v1beta1",
                "helm",
                json!({"ociRepository": {"ref": 1}}),
                Some(
                    "json: cannot unmarshal number into Go struct field OCIRepository.ociRepository.ref of type string",
                ),
            ),
        ] {
            let object = json!({"type": kind, "providerConfig": config});
            assert_eq!(decode(version, &object).err().as_deref(), why, "{object}");
        }
    }
}
