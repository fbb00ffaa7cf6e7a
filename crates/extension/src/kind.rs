//! What all kinds of the extension API have in common [EXT-3], as far as a controller needs it.

use gardener_apis::core::v1beta1::LastOperation;
use gardener_apis::extensions::v1alpha1 as kinds;
use gardener_controller::apply::Writable;
use gardener_controller::informer::Watched;
use kube::{Api, Client, Resource};

/// A kind of `extensions.gardener.cloud` that an extension is responsible for.
pub trait ExtensionKind: Writable + Watched + Resource<DynamicType = ()> + Sync {
    /// The finalizer of the kind [EXT-17].
    const FINALIZER: &'static str;

    /// The kind's objects in a namespace; the namespace does not count for kinds without.
    fn api(client: Client, namespace: &str) -> Api<Self>;
    /// Which extension is responsible: `spec.type`.
    fn extension_type(&self) -> &str;
    /// `spec.class`; absent means `shoot`.
    fn class(&self) -> Option<&str>;
    /// `status.lastOperation`.
    fn last_operation(&self) -> Option<&LastOperation>;
    /// Whether two states of an object have the same status.
    fn has_same_status(&self, other: &Self) -> bool;
}

macro_rules! extension_kind {
    ($kind:ident, $finalizer:literal, $scope:ident) => {
        impl ExtensionKind for kinds::$kind {
            const FINALIZER: &'static str = concat!("extensions.gardener.cloud/", $finalizer);

            fn api(client: Client, namespace: &str) -> Api<Self> {
                extension_kind!(@api $scope, client, namespace)
            }
            fn extension_type(&self) -> &str {
                &self.spec.r#type
            }
            fn class(&self) -> Option<&str> {
                self.spec.class.as_deref()
            }
            fn last_operation(&self) -> Option<&LastOperation> {
                self.status.last_operation.as_ref()
            }
            fn has_same_status(&self, other: &Self) -> bool {
                self.status == other.status
            }
        }
    };
    (@api Namespaced, $client:ident, $namespace:ident) => {
        Api::namespaced($client, $namespace)
    };
    (@api Cluster, $client:ident, $namespace:ident) => {{
        let _ = $namespace;
        Api::all($client)
    }};
}

extension_kind!(BackupBucket, "backupbucket", Cluster);
extension_kind!(BackupEntry, "backupentry", Cluster);
extension_kind!(Bastion, "bastion", Namespaced);
extension_kind!(ContainerRuntime, "containerruntime", Namespaced);
extension_kind!(ControlPlane, "controlplane", Namespaced);
extension_kind!(DNSRecord, "dnsrecord", Namespaced);
extension_kind!(Extension, "extension", Namespaced);
extension_kind!(Infrastructure, "infrastructure", Namespaced);
extension_kind!(Network, "network", Namespaced);
extension_kind!(OperatingSystemConfig, "operatingsystemconfigs", Namespaced);
extension_kind!(Worker, "worker", Namespaced);
