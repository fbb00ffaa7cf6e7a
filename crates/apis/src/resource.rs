//! Ties a kind to its group, version and resource name, so that `kube::Api` and the serializers know it.

/// Implements [`k8s_openapi::Resource`], [`k8s_openapi::Metadata`] and a tagged JSON form for a kind.
#[macro_export]
macro_rules! resource {
    ($kind:ident, $group:literal, $version:literal, $plural:literal, Namespaced) => {
        $crate::resource!(@impl $kind, $group, $version, $plural, k8s_openapi::NamespaceResourceScope);
    };
    ($kind:ident, $group:literal, $version:literal, $plural:literal, Cluster) => {
        $crate::resource!(@impl $kind, $group, $version, $plural, k8s_openapi::ClusterResourceScope);
    };
    (@impl $kind:ident, $group:literal, $version:literal, $plural:literal, $scope:ty) => {
        impl k8s_openapi::Resource for $kind {
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($kind);
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = $scope;
        }
        impl k8s_openapi::Metadata for $kind {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }
            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }
    };
}
