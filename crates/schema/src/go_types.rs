//! What OpenAPI documents do not tell of the Go types behind built-in kinds: named scalar types, embedded structs, and the pointers, lists
//! and maps that Go's encoder writes as `null`, and which scalars are pointers. Go's decoder shows the first two in its messages.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

/// Found by reflection over `k8s.io/api`, `k8s.io/apimachinery`, `k8s.io/apiextensions-apiserver` and `k8s.io/kube-aggregator`, v0.36, and
/// `github.com/gardener/gardener/pkg/apis`, v1.150.
const RECORDED: &str = include_str!("../recorded/go-types.json");

static TYPES: LazyLock<BTreeMap<&'static str, GoType<'static>>> =
    LazyLock::new(|| serde_json::from_str(RECORDED).unwrap_or_default());

/// One struct.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GoType<'a> {
    /// Fields of named scalar types, or lists and maps of them, and the type as Go prints it.
    #[serde(borrow)]
    types: BTreeMap<&'a str, &'a str>,
    /// Fields of embedded structs, and the path of those structs.
    #[serde(borrow)]
    embedded: BTreeMap<&'a str, &'a str>,
    /// Fields that Go writes as `null` when nobody set them.
    #[serde(borrow)]
    pub(crate) nulls: Vec<&'a str>,
    /// Scalar fields that are pointers: Go writes also their zero values. It leaves out those of other optional scalars.
    #[serde(borrow)]
    pub(crate) pointers: Vec<&'a str>,
    /// Fields that documents give a zero value as default, or require as lists, though Go leaves them out when they are empty.
    #[serde(borrow)]
    pub(crate) omits: Vec<&'a str>,
    /// Fields that Go writes as these values when nobody set them.
    #[serde(borrow)]
    pub(crate) zeros: BTreeMap<&'a str, Value>,
}

/// Whether a definition is one of Kubernetes' own or Gardener's, whose Go types are all known.
pub(crate) fn is_known(definition: &str) -> bool {
    definition.starts_with("io.k8s.") || definition.starts_with("com.github.gardener.gardener.pkg.apis.")
}

/// The struct of a definition name, `io.k8s.api.core.v1.Volume`.
pub(crate) fn of(definition: &str) -> Option<&'static GoType<'static>> {
    TYPES.get(definition)
}

impl<'a> GoType<'a> {
    /// The embedded struct that has a field.
    pub(crate) fn embedding(&self, field: &str) -> Option<&'a str> {
        self.embedded.get(field).copied()
    }

    /// The type of a field, as Go prints it.
    pub(crate) fn named(&self, field: &str) -> Option<&'a str> {
        self.types.get(field).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_types_are_read() {
        let volume = of("io.k8s.api.core.v1.Volume").unwrap();
        assert_eq!(volume.embedding("emptyDir"), Some("VolumeSource"));
        let container = of("io.k8s.api.core.v1.Container").unwrap();
        assert_eq!(container.named("imagePullPolicy"), Some("v1.PullPolicy"));
        assert_eq!(of("io.k8s.api.rbac.v1.Role").unwrap().nulls, ["rules"]);
        let member = of("com.github.gardener.gardener.pkg.apis.core.v1beta1.ProjectMember").unwrap();
        assert_eq!(member.embedding("name"), Some("Subject"));
    }
}
