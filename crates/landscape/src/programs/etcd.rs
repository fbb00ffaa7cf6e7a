//! etcd: the landscape's one store keeps every cluster's objects, so that an etcd only has to be there.
//!
//! What it would have on its volume goes with the volume: [`crate::Landscape`] removes a cluster's objects when the volume claim of its `etcd-main` is
//! deleted.

use async_trait::async_trait;
use gardener_cluster::kubelet::{Invocation, Program};
use k8s_openapi::api::core::v1::{Container, Pod};

/// The volume claim that holds a control plane's objects.
pub const MAIN_CLAIM: &str = "etcd-main";

/// The program.
pub struct Etcd;

#[async_trait]
impl Program for Etcd {
    fn runs(&self, _: &Pod, container: &Container) -> bool {
        container.name == "etcd"
    }

    async fn run(&self, invocation: Invocation) -> i32 {
        // nobody listens when the kubelet ends at the same time
        let _ = invocation.ready.send(true);
        invocation.stop.cancelled().await;
        0
    }
}
