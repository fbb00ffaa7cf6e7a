//! What the server itself notes in FlowSchemas: whether the level of priority that they refer to exists. As with upstream, that comes a moment
//! after the write that changes it, and is owned by who reads the configuration of flows.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::LogicalCluster;
use crate::crd::server_scope;
use crate::definition::{Definition, Lister};
use crate::meta;
use crate::registry::{PatchKind, WriteOptions};

/// The group of both kinds.
pub(crate) const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// FlowSchemas.
pub(crate) const SCHEMAS: &str = "flowschemas";
/// The levels of priority that they name.
pub(crate) const LEVELS: &str = "prioritylevelconfigurations";
const CONDITION: &str = "Dangling";
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// How often a cluster's schemas are looked at anew when others change them at the same time.
const ATTEMPTS: usize = 5;

/// Whether what is noted follows from objects of this kind.
pub(crate) fn follows_from(definition: &Definition) -> bool {
    definition.group == GROUP && [SCHEMAS, LEVELS].contains(&definition.plural.as_str())
}

/// The condition of a schema whose level is there, or is not.
pub(crate) fn condition(schema: &Value, exists: bool, now: Timestamp) -> Value {
    let level = go_quote(meta::text(schema, "/spec/priorityLevelConfiguration/name"));
    let about = format!("This FlowSchema references the PriorityLevelConfiguration object named {level}");
    let (status, reason, message) = match exists {
        true => ("False", "Found", format!("{about} and it exists")),
        false => ("True", "NotFound", format!("{about} but there is no such object")),
    };
    json!({"type": CONDITION, "status": status, "reason": reason, "lastTransitionTime": meta::rfc3339(now), "message": message})
}

/// The condition that a schema should have and has not.
fn missing(schema: &Value, levels: &BTreeSet<String>, now: Timestamp) -> Option<Value> {
    let wanted = condition(
        schema,
        levels.contains(meta::text(schema, "/spec/priorityLevelConfiguration/name")),
        now,
    );
    let mut noted = meta::elements(schema, "/status/conditions").iter();
    let noted = noted.find(|condition| meta::text(condition, "/type") == CONDITION);
    let same = |noted: &Value| {
        ["status", "reason", "message"]
            .iter()
            .all(|key| noted.get(*key) == wanted.get(*key))
    };
    (!noted.is_some_and(same)).then_some(wanted)
}

/// Looks at all schemas of a cluster, apart from whoever waits for an answer.
pub(crate) fn look(cluster: &Arc<LogicalCluster>) {
    cluster.aside(|cluster| async move { settle(&cluster).await });
}

/// Looks at the schemas of a cluster that is opened, if something is to be noted.
pub(crate) fn resume(cluster: &Arc<LogicalCluster>) {
    if !todo(cluster).is_empty() {
        look(cluster);
    }
}

fn todo(cluster: &Arc<LogicalCluster>) -> Vec<(String, Value)> {
    let levels = cluster.list(GROUP, LEVELS, None);
    let levels: BTreeSet<String> = levels.iter().map(|level| meta::name(level).to_owned()).collect();
    let now = cluster.clock().now();
    let schemas = cluster.list(GROUP, SCHEMAS, None);
    let todo = schemas
        .iter()
        .filter_map(|schema| Some((meta::name(schema).to_owned(), missing(schema, &levels, now)?)));
    todo.collect()
}

async fn settle(cluster: &Arc<LogicalCluster>) {
    for _ in 0..ATTEMPTS {
        let todo = todo(cluster);
        if todo.is_empty() {
            return;
        }
        for (name, condition) in todo {
            // what is gone needs no condition; what changed is looked at again
            if let Err(error) = note(cluster, &name, &condition).await
                && !matches!(error.reason(), "NotFound" | "Conflict")
            {
                tracing::warn!(cluster = cluster.name(), name, %error, "it cannot be noted whether the level of a FlowSchema exists");
                return;
            }
        }
    }
}

async fn note(cluster: &Arc<LogicalCluster>, name: &str, condition: &Value) -> Result<(), ApiError> {
    let Some(definition) = cluster.find(GROUP, SCHEMAS) else {
        return Ok(());
    };
    let api_version = definition
        .stored_version()
        .map(|version| definition.api_version(&version.name));
    let Some(scope) = server_scope(cluster, definition, "status") else {
        return Ok(());
    };
    let applied = json!({
        "apiVersion": api_version, "kind": "FlowSchema", "metadata": {"name": name}, "status": {"conditions": [condition]},
    });
    let options = WriteOptions {
        field_manager: MANAGER.to_owned(),
        force: true,
        ..WriteOptions::default()
    };
    let body = Bytes::from(applied.to_string());
    scope
        .at("", name)
        .patch(PatchKind::Apply, &body, &options)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_of_levels() {
        let now = Timestamp::UNIX_EPOCH;
        let levels = BTreeSet::from(["there".to_owned()]);
        let schema = |level: &str, noted: Value| json!({"metadata": {"name": "s"}, "spec": {"priorityLevelConfiguration": {"name": level}}, "status": {"conditions": noted}});
        let found = missing(&schema("there", json!([])), &levels, now).unwrap();
        assert_eq!(found["status"], "False");
        assert_eq!(
            found["message"],
            "This FlowSchema references the PriorityLevelConfiguration object named \"there\" and it exists"
        );
        assert_eq!(missing(&schema("there", json!([found])), &levels, now), None);
        // the message tells the level, too
        assert!(missing(&schema("gone", json!([found])), &levels, now).is_some());
        let dangling = missing(
            &schema("gone", json!([{"type": "Other", "status": "True"}])),
            &levels,
            now,
        )
        .unwrap();
        assert_eq!(
            (&dangling["status"], &dangling["reason"]),
            (&json!("True"), &json!("NotFound"))
        );
        assert_eq!(missing(&schema("gone", json!([dangling])), &levels, now), None);
    }
}
