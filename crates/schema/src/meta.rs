//! The schemas of object and list metadata, recorded from a kube-apiserver: CRDs do not spell them out.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value};

use crate::{Definitions, Schema};

/// Name of the definition of object metadata.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Name of the definition of list metadata.
pub(crate) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../recorded/meta.json")).unwrap_or_default());
static DEFINITIONS: LazyLock<Definitions> =
    LazyLock::new(|| Definitions::from_openapi([&*DOCUMENT]).unwrap_or_default());

static OF_REQUESTS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../recorded/custom-resources.json")).unwrap_or_default());

/// The recorded component schemas of `ObjectMeta`, `ListMeta` and what they refer to.
pub(crate) fn components() -> Option<&'static Map<String, Value>> {
    schemas(&DOCUMENT)
}

/// Those of what else requests for custom resources carry (`Status`, `DeleteOptions`, `Patch`), and of `Scale`.
pub(crate) fn of_requests() -> Option<&'static Map<String, Value>> {
    schemas(&OF_REQUESTS)
}

fn schemas(document: &Value) -> Option<&Map<String, Value>> {
    document.at("/components/schemas")?.as_object()
}

/// The schema of `metadata` of objects.
pub fn object_meta() -> Arc<Schema> {
    DEFINITIONS.get(OBJECT_META).unwrap_or_else(|| Arc::new(Schema::any()))
}

/// The schema of `metadata` of lists.
pub fn list_meta() -> Arc<Schema> {
    DEFINITIONS.get(LIST_META).unwrap_or_else(|| Arc::new(Schema::any()))
}
