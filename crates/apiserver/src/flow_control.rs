//! To which flow a request belongs: the first FlowSchema that fits it, and the level of priority which that names. Answers tell both by their uids, and
//! clients see by that that they need not hold themselves back. Nothing waits: requests here are bounded in other ways.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_store::Entry;
use http::{HeaderMap, HeaderName, HeaderValue};
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfiguration, ResourcePolicyRule, Subject,
};
use parking_lot::Mutex;

use crate::authz::Attributes;
use crate::cluster::LogicalCluster;
use crate::flow_schemas::{GROUP, LEVELS, SCHEMAS};
use crate::followed::Followed;
use crate::object;
use crate::rbac::has;
use crate::user::UserInfo;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// Where no precedence is told.
const DEFAULT_PRECEDENCE: i32 = 1000;

/// The flows of a cluster.
#[derive(Default)]
pub(crate) struct FlowControl {
    schemas: Mutex<Followed<Vec<Schema>>>,
    levels: Mutex<Followed<BTreeMap<String, HeaderValue>>>,
}

/// A FlowSchema.
struct Schema {
    precedence: i32,
    uid: HeaderValue,
    level: String,
    rules: Vec<PolicyRulesWithSubjects>,
}

/// The flow of one request, as its answer tells it.
pub(crate) struct Flow {
    schema: HeaderValue,
    level: HeaderValue,
}

impl Flow {
    /// Has an answer tell the flow, unless another server did.
    pub(crate) fn tell(self, headers: &mut HeaderMap) {
        headers.entry(SCHEMA_UID).or_insert(self.schema);
        headers.entry(LEVEL_UID).or_insert(self.level);
    }
}

impl FlowControl {
    /// The flow of a request. None where no schema fits, or nobody has made schemas.
    pub(crate) fn flow(&self, cluster: &LogicalCluster, request: &Attributes<'_>) -> Option<Flow> {
        let levels = self.levels.lock().current(cluster, (GROUP, LEVELS), |entries| {
            let levels = entries.iter().filter_map(|entry| {
                let level: PriorityLevelConfiguration = object::parse(entry)?;
                Some((level.metadata.name?, header(level.metadata.uid)?))
            });
            levels.collect()
        });
        let schemas = self.schemas.lock().current(cluster, (GROUP, SCHEMAS), ordered);
        schemas.iter().find_map(|schema| {
            let level = levels.get(&schema.level)?;
            schema.fits(request).then(|| Flow {
                schema: schema.uid.clone(),
                level: level.clone(),
            })
        })
    }
}

/// The schemas in the order in which they are tried. Entries come by name, which decides between those of one precedence.
fn ordered(entries: &[Arc<Entry>]) -> Vec<Schema> {
    let schemas = entries.iter().filter_map(|entry| {
        let schema: FlowSchema = object::parse(entry)?;
        let spec = schema.spec;
        Some(Schema {
            precedence: spec.matching_precedence.unwrap_or(DEFAULT_PRECEDENCE),
            uid: header(schema.metadata.uid)?,
            level: spec.priority_level_configuration.name,
            rules: spec.rules.unwrap_or_default(),
        })
    });
    let mut schemas: Vec<Schema> = schemas.collect();
    schemas.sort_by_key(|schema| schema.precedence);
    schemas
}

fn header(uid: Option<String>) -> Option<HeaderValue> {
    HeaderValue::try_from(uid?).ok()
}

impl Schema {
    fn fits(&self, request: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| {
            let fits = || match request.is_resource {
                true => {
                    let mut rules = rule.resource_rules.iter().flatten();
                    rules.any(|rule| is_of_resource(rule, request))
                }
                false => {
                    let mut rules = rule.non_resource_rules.iter().flatten();
                    rules.any(|rule| is_of_path(rule, request))
                }
            };
            rule.subjects.iter().any(|subject| is_by(subject, request.user)) && fits()
        })
    }
}

fn is_by(subject: &Subject, user: &UserInfo) -> bool {
    let by_user = || {
        subject
            .user
            .as_ref()
            .is_some_and(|own| own.name == "*" || own.name == user.name)
    };
    let by_group = || {
        let group = subject.group.as_ref();
        group.is_some_and(|own| own.name == "*" || user.is_in(&own.name))
    };
    let by_account = || {
        let Some(own) = &subject.service_account else {
            return false;
        };
        user.account()
            .is_some_and(|(namespace, account)| namespace == own.namespace && (own.name == "*" || own.name == account))
    };
    match subject.kind.as_str() {
        "User" => by_user(),
        "Group" => by_group(),
        "ServiceAccount" => by_account(),
        _ => false,
    }
}

fn is_of_resource(rule: &ResourcePolicyRule, request: &Attributes<'_>) -> bool {
    let own = |resource: &str| match resource.split_once('/') {
        Some((resource, subresource)) => (resource, subresource) == (request.resource, request.subresource),
        None => resource == "*" || (resource == request.resource && request.subresource.is_empty()),
    };
    let resource = || rule.resources.iter().any(|resource| own(resource));
    let place = || match request.namespace {
        "" => rule.cluster_scope == Some(true),
        namespace => has(rule.namespaces.as_deref().unwrap_or_default(), namespace),
    };
    has(&rule.verbs, request.verb) && resource() && has(&rule.api_groups, request.group) && place()
}

fn is_of_path(rule: &NonResourcePolicyRule, request: &Attributes<'_>) -> bool {
    let path = request.path;
    let fits = |own: &String| {
        let below = own.strip_suffix('*').unwrap_or(own);
        let below = below.strip_suffix('/').unwrap_or(below);
        let is_below = || path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
        own == "*" || own == path || is_below()
    };
    has(&rule.verbs, request.verb) && rule.non_resource_urls.iter().any(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn level(name: &str) -> Value {
        json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
            "metadata": {"name": name, "uid": format!("level-{name}")}, "spec": {"type": "Exempt"}})
    }

    fn schema(name: &str, precedence: i32, level: &str, subject: Value) -> Value {
        json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name, "uid": name},
            "spec": {
                "matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level},
                "rules": [{
                    "subjects": [subject],
                    "resourceRules": [
                        {"verbs": ["get"], "apiGroups": ["*"], "resources": ["pods", "pods/status"], "namespaces": ["a"]},
                        {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*"], "clusterScope": true},
                    ],
                    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/version", "/apis/*"]}],
                }],
            },
        })
    }

    fn found(cluster: &LogicalCluster, request: &Attributes<'_>) -> Option<(String, String)> {
        let flow = cluster.flow_control().flow(cluster, request)?;
        let mut headers = HeaderMap::new();
        flow.tell(&mut headers);
        let told = |name: &HeaderName| headers[name].to_str().unwrap().to_owned();
        Some((told(&SCHEMA_UID), told(&LEVEL_UID)))
    }

    #[tokio::test]
    async fn requests_are_of_the_first_schema_that_fits() {
        let cluster = LogicalCluster::in_memory();
        let account = json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}});
        let objects = vec![
            level("there"),
            schema("b", 10, "there", json!({"kind": "User", "user": {"name": "jane"}})),
            schema("a", 20, "there", json!({"kind": "User", "user": {"name": "jane"}})),
            schema("c", 5, "missing", json!({"kind": "User", "user": {"name": "*"}})),
            schema("d", 30, "there", json!({"kind": "Group", "group": {"name": "readers"}})),
            schema("e", 40, "there", account),
        ];
        cluster.copy_in(objects).await.unwrap();
        let of = |user: &UserInfo, verb: &str, group: &str, resource: &str, namespace: &str| {
            let request = Attributes::of_resource(user, verb, group, resource, namespace, "x");
            found(&cluster, &request).map(|(schema, _)| schema)
        };
        let jane = UserInfo::new("jane", &["readers"]);
        let joe = UserInfo::new("joe", &["readers"]);
        let robot = UserInfo::service_account("n", "robot", "");
        let other = UserInfo::service_account("nn", "robot", "");
        assert_eq!(of(&jane, "get", "", "pods", "a").as_deref(), Some("b"));
        assert_eq!(of(&joe, "get", "", "pods/status", "a").as_deref(), Some("d"));
        assert_eq!(of(&robot, "get", "x", "pods", "a").as_deref(), Some("e"));
        for (verb, group, resource, namespace) in [
            ("list", "", "pods", "a"),
            ("get", "", "pods/log", "a"),
            ("get", "", "pods", "b"),
            ("get", "", "pods", ""),
            ("get", "apps", "deployments", "b"),
        ] {
            assert_eq!(of(&joe, verb, group, resource, namespace), None, "{verb} {resource}");
        }
        assert_eq!(of(&joe, "list", "apps", "deployments/scale", "").as_deref(), Some("d"));
        assert_eq!(of(&other, "get", "", "pods", "a"), None);
        let path = |path: &str| {
            let request = Attributes {
                path,
                is_resource: false,
                ..Attributes::of_resource(&joe, "get", "", "", "", "")
            };
            found(&cluster, &request).is_some()
        };
        assert!(path("/version") && path("/version/x") && path("/apis/apps"));
        assert!(!path("/apis") && !path("/versions"));
        // a level that comes to be counts from then on
        cluster.copy_in(vec![level("missing")]).await.unwrap();
        let request = Attributes::of_resource(&other, "get", "", "pods", "a", "x");
        assert_eq!(
            found(&cluster, &request),
            Some(("c".to_owned(), "level-missing".to_owned()))
        );
    }
}
