//! Where an object is: what queues and stores are keyed by.

use std::fmt;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};

/// An object of a known kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The logical cluster; empty where there is only one.
    pub cluster: String,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectRef {
    /// An object in the one cluster at hand.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            cluster: String::new(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// An object of a cluster-scoped kind in the one cluster at hand.
    pub fn cluster_scoped(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    /// Where `object` is, in the one cluster at hand.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }

    /// The same object in a logical cluster.
    #[must_use]
    pub fn in_cluster(mut self, cluster: impl Into<String>) -> Self {
        self.cluster = cluster.into();
        self
    }
}

/// `[<cluster>:][<namespace>/]<name>`.
impl fmt::Display for ObjectRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster.is_empty() {
            write!(formatter, "{}:", self.cluster)?;
        }
        if !self.namespace.is_empty() {
            write!(formatter, "{}/", self.namespace)?;
        }
        formatter.write_str(&self.name)
    }
}

/// The reference that Events and owners carry: kind, version, place and uid of `object`.
pub fn object_reference<K: Resource>(object: &K, kind: &K::DynamicType) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(kind).into_owned()),
        kind: Some(K::kind(kind).into_owned()),
        namespace: object.namespace(),
        name: Some(object.name_any()),
        uid: object.uid(),
        resource_version: object.resource_version(),
        field_path: None,
    }
}
