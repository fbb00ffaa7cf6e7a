//! Admission plugin that tells pods where their nodes are.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use super::checks::text;
use crate::definition::{Admission, Attributes, Operation};
use crate::meta;

/// Labels of nodes that tell where they are.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Tells pods by labels in which zone and region their node is, once it is known: when they are bound, or created with it.
pub struct PodTopologyLabels;

#[async_trait]
impl Admission for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        if attributes.operation != Operation::Create || !attributes.is("", "pods") {
            return Ok(());
        }
        let object = attributes.object.as_deref().unwrap_or(&Value::Null);
        let node = match attributes.subresource {
            "" => meta::text(object, "/spec/nodeName"),
            "binding" => {
                let target = object.get("target").unwrap_or(&Value::Null);
                let is_node = text(target, "kind") == "Node";
                if is_node { text(target, "name") } else { "" }
            }
            _ => "",
        };
        let lister = attributes.context.lister;
        let Some(node) = (!node.is_empty()).then(|| lister.get("", "nodes", "", node)).flatten() else {
            return Ok(());
        };
        let labels = meta::string_map(node.at("/metadata/labels"));
        for (key, value) in labels.into_iter().filter(|(key, _)| TOPOLOGY.contains(&key.as_str())) {
            let Some(object) = attributes.object.as_mut() else {
                break;
            };
            let own = meta::metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
            if let Some(own) = own.as_object_mut() {
                own.insert(key, value.into());
            }
        }
        Ok(())
    }
}
