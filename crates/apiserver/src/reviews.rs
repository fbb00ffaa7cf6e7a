//! Review APIs: questions that are posted and answered, and never stored. Who am I, may I, may they, whose token is this.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::selector::{FieldSelector, LabelSelector};
use http::{Method, Response, StatusCode};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use crate::authz::{self, Attributes, Decision, Undecided};
use crate::cluster::LogicalCluster;
use crate::handle::Call;
use crate::meta;
use crate::posted::Posted;
use crate::request::ResourcePath;
use crate::respond::{self, Body};
use crate::user::UserInfo;

mod validation;

use validation::Asks;

/// A review resource.
pub(crate) struct Review {
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
}

const fn review(plural: &'static str, kind: &'static str, namespaced: bool) -> Review {
    Review {
        plural,
        kind,
        namespaced,
    }
}

/// Group, version and resource of all reviews.
const RESOURCES: &[(&str, &str, Review)] = &[
    (
        "authentication.k8s.io",
        "v1",
        review("selfsubjectreviews", "SelfSubjectReview", false),
    ),
    (
        "authentication.k8s.io",
        "v1",
        review("tokenreviews", "TokenReview", false),
    ),
    (
        "authorization.k8s.io",
        "v1",
        review("localsubjectaccessreviews", "LocalSubjectAccessReview", true),
    ),
    (
        "authorization.k8s.io",
        "v1",
        review("selfsubjectaccessreviews", "SelfSubjectAccessReview", false),
    ),
    (
        "authorization.k8s.io",
        "v1",
        review("selfsubjectrulesreviews", "SelfSubjectRulesReview", false),
    ),
    (
        "authorization.k8s.io",
        "v1",
        review("subjectaccessreviews", "SubjectAccessReview", false),
    ),
];

/// The reviews that a cluster answers: all, or none behind an aggregator.
pub(crate) fn of(cluster: &LogicalCluster) -> &'static [(&'static str, &'static str, Review)] {
    match cluster.config().elsewhere {
        None => RESOURCES,
        Some(_) => &[],
    }
}

/// Answers a review, when the path is one. Whether the caller may ask is decided before.
pub(crate) async fn answer(call: &Call, path: &ResourcePath) -> Result<Option<Response<Body>>, ApiError> {
    let Some((group, version, review)) = of(&call.cluster).iter().find(|(group, version, review)| {
        *group == path.group && *version == path.version && review.plural == path.resource
    }) else {
        return Ok(None);
    };
    if !path.name.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if call.method != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    let (options, accept) = (call.write_options()?, call.accept_one_shape()?);
    let decoded = call.decoded_as(&format!("{group}/{version}"), review.kind)?;
    let kind = meta::text(&decoded.value, "/kind");
    if !decoded.value.is_object() || (!kind.is_empty() && kind != review.kind) {
        return Err(ApiError::bad_request(format!(
            "expected a {}, got a {kind:?}",
            review.kind
        )));
    }
    let posted = Posted::from((*group, *version, review.kind));
    let mut warnings = Vec::new();
    let mut body = posted.read(decoded, &options, &mut warnings)?;
    meta::metadata_mut(&mut body);
    for key in ["uid", "creationTimestamp", "deletionTimestamp"] {
        meta::set(&mut body, key, None);
    }
    let own_namespace = meta::namespace(&body);
    if review.namespaced && !own_namespace.is_empty() && own_namespace != path.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let namespace = review.namespaced.then(|| path.namespace.clone().into());
    meta::set(&mut body, "namespace", namespace);
    posted.note_author(call, &options, "", &mut body);
    let status = match review.plural {
        "selfsubjectreviews" => {
            // what was sent is not repeated
            let now = meta::rfc3339(call.cluster.clock().now());
            body = json!({"metadata": {"creationTimestamp": now}});
            json!({"userInfo": *call.user})
        }
        "tokenreviews" if meta::text(&body, "/spec/token").is_empty() => {
            return Err(ApiError::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        "tokenreviews" => token_review(call, &body),
        "selfsubjectaccessreviews" => {
            validation::check(&body, Asks::Oneself)?;
            access_review(call, &body, &call.user).await?
        }
        "localsubjectaccessreviews" => {
            validation::check(&body, Asks::OthersHere)?;
            access_review(call, &body, &subject(&body)).await?
        }
        "subjectaccessreviews" => {
            validation::check(&body, Asks::Others)?;
            access_review(call, &body, &subject(&body)).await?
        }
        _ => match meta::text(&body, "/spec/namespace") {
            "" => return Err(ApiError::bad_request("no namespace on request")),
            namespace => rules_review(call, namespace),
        },
    };
    if let Value::Object(members) = &mut body {
        members.insert("apiVersion".into(), format!("{group}/{version}").into());
        members.insert("kind".into(), review.kind.into());
        members.insert("status".into(), status);
        if review.plural == "selfsubjectrulesreviews" {
            // upstream does not repeat what was asked
            members.insert("spec".into(), json!({}));
            members.insert("metadata".into(), json!({}));
        }
    }
    let mut response = respond::value(StatusCode::CREATED, &body, accept);
    respond::warn(&mut response, &warnings);
    Ok(Some(response))
}

/// A selector of a question.
#[derive(Default)]
struct Selected {
    /// What can be read of it, as a request would tell it. What cannot is left out, which asks for more.
    text: String,
    /// What is said of the rest, if there is one.
    ignored: Option<String>,
}

impl Selected {
    fn of(resource: Option<&Value>, which: &str) -> Self {
        let Some(given) = resource.and_then(|resource| resource.get(which)) else {
            return Self::default();
        };
        let is_read = |text: &str| match which {
            "labelSelector" => LabelSelector::parse(text).is_ok(),
            _ => FieldSelector::parse(text).is_ok(),
        };
        let raw = meta::text(given, "/rawSelector");
        let requirements = meta::elements(given, "/requirements");
        let told: Vec<String> = match raw {
            "" => requirements
                .iter()
                .filter_map(|own| requirement(own, which))
                .filter(|own| is_read(own))
                .collect(),
            raw => Some(raw.to_owned()).filter(|raw| is_read(raw)).into_iter().collect(),
        };
        let given = requirements.len().max(usize::from(!raw.is_empty()));
        let ignored = (told.len() < given).then(|| {
            let how = if told.is_empty() { "" } else { "partially " };
            format!("spec.resourceAttributes.{which} {how}ignored due to parse error")
        });
        Self {
            text: told.join(","),
            ignored,
        }
    }
}

/// A requirement of a selector as a request would tell it; none, if it cannot be told so.
fn requirement(own: &Value, which: &str) -> Option<String> {
    let (key, operator) = (meta::text(own, "/key"), meta::text(own, "/operator"));
    let values: Vec<&str> = meta::elements(own, "/values")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match (operator, values.as_slice(), which) {
        ("In", [value], _) => Some(format!("{key}={value}")),
        ("NotIn", [value], _) => Some(format!("{key}!={value}")),
        ("In", [_, ..], "labelSelector") => Some(format!("{key} in ({})", values.join(","))),
        ("NotIn", [_, ..], "labelSelector") => Some(format!("{key} notin ({})", values.join(","))),
        ("Exists", [], "labelSelector") => Some(key.to_owned()),
        ("DoesNotExist", [], "labelSelector") => Some(format!("!{key}")),
        _ => None,
    }
}

fn token_review(call: &Call, body: &Value) -> Value {
    let audiences: Vec<String> =
        serde_json::from_value(body.at("/spec/audiences").cloned().unwrap_or_else(|| json!([]))).unwrap_or_default();
    match call
        .cluster
        .config()
        .authenticator
        .token_user(&call.cluster, meta::text(body, "/spec/token"), &audiences)
    {
        Ok((user, audiences)) => json!({"authenticated": true, "user": user, "audiences": audiences}),
        Err(rejected) => json!({"user": {}, "error": rejected.for_review()}),
    }
}

/// Whom a question is about.
fn subject(body: &Value) -> UserInfo {
    let groups = meta::elements(body, "/spec/groups").iter();
    let extra = body.at("/spec/extra").cloned().unwrap_or_else(|| json!({}));
    UserInfo {
        name: meta::text(body, "/spec/user").to_owned(),
        uid: meta::text(body, "/spec/uid").to_owned(),
        groups: groups.filter_map(Value::as_str).map(str::to_owned).collect(),
        extra: serde_json::from_value(extra).unwrap_or_default(),
    }
}

async fn access_review(call: &Call, body: &Value, user: &UserInfo) -> Result<Value, ApiError> {
    let part = |pointer: &str| body.at(pointer).filter(|value| value.is_object());
    let (resource, path) = (part("/spec/resourceAttributes"), part("/spec/nonResourceAttributes"));
    let of = |value: Option<&Value>, key: &str| {
        value
            .and_then(|value| value.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let namespace = of(resource, "namespace");
    let (verb, group, version, name) = (
        of(resource.or(path), "verb"),
        of(resource, "group"),
        of(resource, "version"),
        of(resource, "name"),
    );
    let (plural, subresource, url) = (of(resource, "resource"), of(resource, "subresource"), of(path, "path"));
    let (fields, labels) = (
        Selected::of(resource, "fieldSelector"),
        Selected::of(resource, "labelSelector"),
    );
    let attributes = Attributes {
        user,
        verb: &verb,
        group: &group,
        version: &version,
        resource: &plural,
        subresource: &subresource,
        namespace: &namespace,
        name: &name,
        path: &url,
        is_resource: resource.is_some(),
        field_selector: &fields.text,
        label_selector: &labels.text,
    };
    let mut status = match call.cluster.config().authorizer.ask(&call.cluster, &attributes).await {
        Err(Undecided { why, denies: true }) => {
            json!({"allowed": false, "denied": true, "evaluationError": why})
        }
        Err(Undecided { why, denies: false }) => json!({"allowed": false, "evaluationError": why}),
        Ok(decided) => match decided {
            Decision::Allow => match authz::why_allowed(&call.cluster, &attributes) {
                Some(reason) => json!({"allowed": true, "reason": reason}),
                None => json!({"allowed": true}),
            },
            Decision::Deny(reason) => json!({"allowed": false, "denied": true, "reason": reason}),
            Decision::NoOpinion(reason) if reason.is_empty() => json!({"allowed": false}),
            Decision::NoOpinion(reason) => json!({"allowed": false, "reason": reason}),
        },
    };
    if let Value::Object(members) = &mut status {
        let told = members
            .get("evaluationError")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let why: Vec<String> = told.into_iter().chain(fields.ignored).chain(labels.ignored).collect();
        if !why.is_empty() {
            members.insert("evaluationError".into(), why.join("; ").into());
        }
    }
    Ok(status)
}

fn rules_review(call: &Call, namespace: &str) -> Value {
    let (mut resources, mut urls) = (Vec::new(), Vec::new());
    let mut collect = |rule: &PolicyRule| {
        if rule.non_resource_urls.as_ref().is_some_and(|list| !list.is_empty()) {
            urls.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
        } else {
            let mut value = json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if let (Value::Object(value), Some(names)) = (
                &mut value,
                rule.resource_names.as_ref().filter(|names| !names.is_empty()),
            ) {
                value.insert("resourceNames".into(), json!(names));
            }
            resources.push(value);
        }
    };
    let authorizer = &call.cluster.config().authorizer;
    let unresolved = authorizer.rules(&call.cluster, &call.user, namespace, &mut collect);
    let is_incomplete = unresolved.iter().any(|own| own.is_incomplete);
    let mut status = json!({"resourceRules": resources, "nonResourceRules": urls, "incomplete": is_incomplete});
    if !unresolved.is_empty() {
        let why: Vec<&str> = unresolved.iter().map(|own| own.why.as_str()).collect();
        status["evaluationError"] = field::aggregate(&why).into();
    }
    status
}
