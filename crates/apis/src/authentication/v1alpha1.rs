//! `authentication.gardener.cloud/v1alpha1`: one file per kind.

mod admin_kubeconfig_request;
mod viewer_kubeconfig_request;

pub use admin_kubeconfig_request::*;
pub use viewer_kubeconfig_request::*;
