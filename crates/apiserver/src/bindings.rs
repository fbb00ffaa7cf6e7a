//! Bindings that are posted beside the pods, not below the pod that they bind: upstream's oldest way to bind. They come to the pod's `binding`.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::ApiError;
use http::Method;

use crate::cluster::LogicalCluster;
use crate::definition::Definition;
use crate::handle::Call;
use crate::meta;
use crate::posted::Posted;
use crate::request::ResourcePath;

const PLURAL: &str = "bindings";
const KIND: (&str, &str, &str) = ("", "v1", "Binding");

static DEFINITION: LazyLock<Arc<Definition>> = LazyLock::new(|| Arc::new(Posted::from(KIND).definition(PLURAL, true)));

/// Whether bindings may be posted beside the pods: where there are pods.
pub(crate) fn are_served(cluster: &LogicalCluster) -> bool {
    cluster.find("", "pods").is_some()
}

/// What a binding that was posted beside the pods asks for.
pub(crate) struct Asked {
    /// The path of the bound pod's `binding`.
    pub(crate) path: ResourcePath,
    /// The resource of that path.
    pub(crate) pods: Arc<Definition>,
    /// The resource that was asked for, as admission sees it.
    pub(crate) bindings: Arc<Definition>,
}

/// What a call to `bindings` asks for; none, if the path is another.
///
/// # Errors
/// 405 for all but POST, and 400 for a body that cannot be read.
pub(crate) fn asked(call: &Call, path: &ResourcePath) -> Result<Option<Asked>, ApiError> {
    let is_here = path.group.is_empty() && path.version == "v1" && path.resource == PLURAL;
    if !is_here || !path.name.is_empty() || path.namespace.is_empty() {
        return Ok(None);
    }
    let Some(pods) = call.cluster.find("", "pods") else {
        return Ok(None);
    };
    if call.method != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    let path = ResourcePath {
        resource: "pods".to_owned(),
        name: meta::name(&call.decoded_as("v1", KIND.2)?.value).to_owned(),
        subresource: "binding".to_owned(),
        ..path.clone()
    };
    Ok(Some(Asked {
        path,
        pods,
        bindings: Arc::clone(&DEFINITION),
    }))
}
