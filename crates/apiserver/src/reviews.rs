//! Review APIs: questions that are posted and answered, and never stored. Who am I, may I, may they, whose token is this.
//!
//! Admission sees them as it sees objects that are created; only policies do not judge them, and quotas do not count them.

use std::sync::{Arc, LazyLock};

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field;
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::selector::{FieldSelector, LabelSelector};
use http::{Method, Response, StatusCode};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use crate::authn::Remarks;
use crate::authz::{self, Attributes, Decision, Undecided};
use crate::cluster::LogicalCluster;
use crate::definition::Definition;
use crate::handle::Call;
use crate::meta;
use crate::posted::Posted;
use crate::registry::Scope;
use crate::request::ResourcePath;
use crate::respond::{self, Body};
use crate::user::UserInfo;

mod validation;

use validation::Asks;

/// A review resource.
pub(crate) struct Review {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
}

const fn review(group: &'static str, plural: &'static str, kind: &'static str) -> Review {
    Review {
        group,
        version: "v1",
        plural,
        kind,
        namespaced: false,
    }
}

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// All reviews.
const RESOURCES: &[Review] = &[
    review(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    review(AUTHENTICATION, "tokenreviews", "TokenReview"),
    Review {
        namespaced: true,
        ..review(AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview")
    },
    review(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    review(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    review(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
];

/// The reviews that a cluster answers: all, or none behind an aggregator.
pub(crate) fn of(cluster: &LogicalCluster) -> &'static [Review] {
    match cluster.config().elsewhere {
        None => RESOURCES,
        Some(_) => &[],
    }
}

/// The reviews as admission sees them, in the order of [`RESOURCES`]. They are made when the first is asked, as most clusters of a landscape
/// are asked none.
static DEFINITIONS: LazyLock<Vec<Arc<Definition>>> = LazyLock::new(|| {
    let definition = |review: &Review| review.posted().definition(review.plural, review.namespaced);
    RESOURCES.iter().map(definition).map(Arc::new).collect()
});

/// Whether a resource is a review.
pub(crate) fn is_one(definition: &Definition) -> bool {
    let mut all = RESOURCES.iter();
    all.any(|own| own.group == definition.group && own.plural == definition.plural)
}

/// The review of a path, if it is one that the cluster answers.
pub(crate) fn find(cluster: &LogicalCluster, path: &ResourcePath) -> Option<&'static Review> {
    let mut all = of(cluster).iter();
    all.find(|own| own.group == path.group && own.version == path.version && own.plural == path.resource)
}

/// Answers a review, when the path is one. Whether the caller may ask is decided before.
pub(crate) async fn answer(call: &Call, path: &ResourcePath) -> Result<Option<Response<Body>>, ApiError> {
    let Some(review) = find(&call.cluster, path) else {
        return Ok(None);
    };
    if !path.name.is_empty() || review.namespaced == path.namespace.is_empty() {
        return Err(ApiError::no_such_path());
    }
    if call.method != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    let mut definitions = DEFINITIONS.iter();
    let definition = definitions.find(|own| own.group == review.group && own.plural == review.plural);
    let definition = Arc::clone(definition.ok_or_else(ApiError::no_such_path)?);
    let mut scope = Scope {
        user: Arc::clone(&call.user),
        audited: call.audited.clone(),
        until: call.until,
        ..Scope::of_all(&call.cluster, definition, review.version)
    };
    if review.namespaced {
        scope.namespace.clone_from(&path.namespace);
    }
    let mut warnings = Vec::new();
    let answered = match review.shown(call, &mut scope, &mut warnings).await {
        Ok(mut response) => {
            respond::warn(&mut response, &warnings);
            response
        }
        Err(error) => {
            scope.refused_with.extend_if_none(warnings);
            let mut response = respond::error(&error, &call.wanted);
            respond::warn(&mut response, &scope.refused_with.take());
            response
        }
    };
    Ok(Some(answered))
}

impl Review {
    /// The answer to the review that was sent, in the form that is accepted.
    async fn shown(
        &self,
        call: &Call,
        scope: &mut Scope,
        warnings: &mut Vec<String>,
    ) -> Result<Response<Body>, ApiError> {
        let accept = call.accept_posted()?;
        let answer = self.answered(call, scope, warnings).await?;
        Ok(respond::value(
            StatusCode::CREATED,
            &self.posted().shown(answer, accept)?,
            accept,
        ))
    }

    /// The review that was sent, with its answer.
    async fn answered(&self, call: &Call, scope: &mut Scope, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
        let (decoded, options) = call.decoded_object(scope)?;
        let now = call.cluster.clock().now();
        let mut review = decoded.value;
        let read = scope.accept(
            &scope.context(now, options.dry_run),
            &mut review,
            &options,
            &decoded.source,
            warnings,
        );
        read?;
        if self.namespaced {
            scope.check_posted_namespace(&review)?;
        }
        meta::metadata_mut(&mut review);
        for key in ["uid", "creationTimestamp", "deletionTimestamp"] {
            meta::set(&mut review, key, None);
        }
        let namespace = self.namespaced.then(|| scope.namespace.clone().into());
        meta::set(&mut review, "namespace", namespace);
        self.posted().note_author(call, &options, "", &mut review);
        meta::name(&review).clone_into(&mut scope.name);
        let context = scope.context(now, options.dry_run);
        let check = |review: &mut Value| self.check(review);
        let admitted = scope.admit_body(&context, &options, review, None, check, warnings);
        let mut review = admitted.await?;
        let status = match self.plural {
            "selfsubjectreviews" => json!({"userInfo": *call.user}),
            "tokenreviews" => token_review(call, &review, warnings).await,
            "selfsubjectrulesreviews" => rules_review(call, meta::text(&review, "/spec/namespace")),
            "selfsubjectaccessreviews" => access_review(call, &review, &call.user).await?,
            _ => access_review(call, &review, &subject(&review)).await?,
        };
        if let Value::Object(members) = &mut review {
            // of some upstream does not repeat what was asked
            match self.plural {
                "selfsubjectreviews" => {
                    members.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind"));
                    members.insert("metadata".into(), json!({"creationTimestamp": meta::rfc3339(now)}));
                }
                "selfsubjectrulesreviews" => {
                    members.insert("spec".into(), json!({}));
                    members.insert("metadata".into(), json!({}));
                }
                _ => {}
            }
            members.insert("status".into(), status);
        }
        Ok(review)
    }

    fn posted(&self) -> Posted {
        (self.group, self.version, self.kind).into()
    }

    /// Refuses a question that cannot be answered.
    fn check(&self, review: &Value) -> Result<(), ApiError> {
        let is_empty = |pointer: &str| meta::text(review, pointer).is_empty();
        match self.plural {
            "tokenreviews" if is_empty("/spec/token") => Err(ApiError::bad_request(
                "token is required for TokenReview in authentication",
            )),
            "selfsubjectrulesreviews" if is_empty("/spec/namespace") => {
                Err(ApiError::bad_request("no namespace on request"))
            }
            "selfsubjectaccessreviews" => validation::check(review, Asks::Oneself),
            "localsubjectaccessreviews" => validation::check(review, Asks::OthersHere),
            "subjectaccessreviews" => validation::check(review, Asks::Others),
            _ => Ok(()),
        }
    }
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

async fn token_review(call: &Call, body: &Value, warnings: &mut Vec<String>) -> Value {
    let audiences: Vec<String> =
        serde_json::from_value(body.at("/spec/audiences").cloned().unwrap_or_else(|| json!([]))).unwrap_or_default();
    let authenticator = &call.cluster.config().authenticator;
    let (token, mut remarks) = (meta::text(body, "/spec/token"), Remarks::default());
    let found = authenticator.token_user(&call.cluster, token, &audiences, &mut remarks);
    let found = found.await;
    remarks.tell(&call.audited);
    warnings.append(&mut remarks.warnings);
    match found {
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
