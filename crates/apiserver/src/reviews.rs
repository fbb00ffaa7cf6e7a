//! Review APIs: questions that are posted and answered, and never stored. Who am I, may I, may they, whose token is this.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{self, Error, Path};
use http::{Method, Response, StatusCode};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Map, Value, json};

use crate::authz::{Attributes, Decision, Undecided, everything};
use crate::cluster::LogicalCluster;
use crate::handle::Call;
use crate::meta;
use crate::rbac;
use crate::request::ResourcePath;
use crate::respond::{self, Body};
use crate::user::UserInfo;

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

/// Answers a review, when the path is one.
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
    let may_ask = Attributes {
        user: &call.user,
        verb: "create",
        group,
        version,
        resource: review.plural,
        subresource: "",
        namespace: &path.namespace,
        name: "",
        path: "",
        is_resource: true,
        field_selector: "",
        label_selector: "",
    };
    // everybody may ask about themselves
    if !review.plural.starts_with("selfsubject")
        && let Decision::Deny(reason) | Decision::NoOpinion(reason) =
            call.cluster.config().authorizer.ask(&call.cluster, &may_ask).await?
    {
        return Err(ApiError::forbidden(
            group,
            review.plural,
            "",
            &crate::authz::forbidden_message(&may_ask, &reason),
        ));
    }
    let mut body = call.decoded()?.value;
    let own_namespace = meta::namespace(&body);
    if !own_namespace.is_empty() && own_namespace != path.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let kind = meta::text(&body, "/kind");
    if !body.is_object() || (!kind.is_empty() && kind != review.kind) {
        return Err(ApiError::bad_request(format!(
            "expected a {}, got a {kind:?}",
            review.kind
        )));
    }
    let status = match review.plural {
        "selfsubjectreviews" => {
            let now = meta::rfc3339(call.cluster.clock().now());
            meta::set(&mut body, "creationTimestamp", Some(now.into()));
            json!({"userInfo": user_value(&call.user)})
        }
        "tokenreviews" if meta::text(&body, "/spec/token").is_empty() => {
            return Err(ApiError::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        "tokenreviews" => token_review(call, &body),
        "selfsubjectaccessreviews" => access_review(call, &body, &call.user, "").await?,
        "localsubjectaccessreviews" => access_review(call, &body, &subject(&body)?, &path.namespace).await?,
        "subjectaccessreviews" => access_review(call, &body, &subject(&body)?, "").await?,
        _ => match meta::text(&body, "/spec/namespace") {
            "" => return Err(ApiError::bad_request("no namespace on request")),
            namespace => rules_review(call, namespace),
        },
    };
    if let Value::Object(members) = &mut body {
        members.insert("apiVersion".into(), format!("{group}/{version}").into());
        members.insert("kind".into(), review.kind.into());
        members.insert("status".into(), status);
        members.entry("metadata").or_insert_with(|| json!({}));
        if review.plural == "selfsubjectrulesreviews" {
            // upstream does not repeat what was asked
            members.insert("spec".into(), json!({}));
        }
        let spec = members.get("spec").cloned().unwrap_or(Value::Null);
        if let Some(entry) = managed_entry(call, &format!("{group}/{version}"), "", &spec)?
            && let Some(Value::Object(metadata)) = members.get_mut("metadata")
        {
            metadata.insert("managedFields".into(), entry);
        }
    }
    Ok(Some(respond::value(
        StatusCode::CREATED,
        &body,
        call.accept_one_shape()?,
    )))
}

/// A selector of a question, as a request would tell it. What cannot be told so is left out, which asks for more.
fn selector(resource: Option<&Value>, which: &str) -> String {
    let Some(given) = resource.and_then(|resource| resource.get(which)) else {
        return String::new();
    };
    let raw = meta::text(given, "/rawSelector");
    if !raw.is_empty() {
        return raw.to_owned();
    }
    let requirements = meta::elements(given, "/requirements").iter().filter_map(|own| {
        let (key, operator) = (meta::text(own, "/key"), meta::text(own, "/operator"));
        let values: Vec<&str> = meta::elements(own, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        match (operator, values.as_slice(), which) {
            ("In", [value], _) => Some(format!("{key}={value}")),
            ("NotIn", [value], _) => Some(format!("{key}!={value}")),
            ("In", values, "labelSelector") => Some(format!("{key} in ({})", values.join(","))),
            ("NotIn", values, "labelSelector") => Some(format!("{key} notin ({})", values.join(","))),
            ("Exists", [], "labelSelector") => Some(key.to_owned()),
            ("DoesNotExist", [], "labelSelector") => Some(format!("!{key}")),
            _ => None,
        }
    });
    requirements.collect::<Vec<_>>().join(",")
}

/// Who asked, as for any object; the spec is all that the author of what is not stored may own. None when it is empty.
///
/// # Errors
/// 422 for wrong options.
pub(crate) fn managed_entry(
    call: &Call,
    api_version: &str,
    subresource: &str,
    spec: &Value,
) -> Result<Option<Value>, ApiError> {
    if spec.as_object().is_none_or(Map::is_empty) {
        return Ok(None);
    }
    let options = call.write_options()?;
    let mut entry = json!({
        "manager": options.field_manager, "operation": "Update", "apiVersion": api_version,
        "time": meta::rfc3339(call.cluster.clock().now()), "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned(spec)},
    });
    if !subresource.is_empty() {
        entry["subresource"] = subresource.into();
    }
    Ok(Some(json!([entry])))
}

/// The fields of a value in which lists are owned as a whole.
fn owned(value: &Value) -> Value {
    let mut fields = Map::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        let mut below = owned(value);
        if let Value::Object(below) = &mut below
            && value.is_object()
        {
            below.insert(".".into(), json!({}));
        }
        fields.insert(format!("f:{key}"), below);
    }
    Value::Object(fields)
}

fn user_value(user: &UserInfo) -> Value {
    let mut value = Map::new();
    value.insert("username".into(), user.name.clone().into());
    if !user.uid.is_empty() {
        value.insert("uid".into(), user.uid.clone().into());
    }
    value.insert("groups".into(), json!(user.groups));
    if !user.extra.is_empty() {
        value.insert("extra".into(), json!(user.extra));
    }
    Value::Object(value)
}

fn token_review(call: &Call, body: &Value) -> Value {
    let audiences: Vec<String> =
        serde_json::from_value(body.pointer("/spec/audiences").cloned().unwrap_or_else(|| json!([])))
            .unwrap_or_default();
    match call
        .cluster
        .config()
        .authenticator
        .token_user(&call.cluster, meta::text(body, "/spec/token"), &audiences)
    {
        Ok((user, audiences)) => json!({"authenticated": true, "user": user_value(&user), "audiences": audiences}),
        Err(_) => json!({"user": {}, "error": "invalid bearer token"}),
    }
}

/// What is wrong with a review; upstream names no kind.
fn refused(error: Error) -> ApiError {
    ApiError::invalid("authorization.k8s.io", "", "", &[error])
}

fn subject(body: &Value) -> Result<UserInfo, ApiError> {
    let groups: Vec<String> =
        serde_json::from_value(body.pointer("/spec/groups").cloned().unwrap_or_else(|| json!([]))).unwrap_or_default();
    let name = meta::text(body, "/spec/user").to_owned();
    if name.is_empty() && groups.is_empty() {
        let error = Error::invalid(
            &Path::new("spec.user"),
            "",
            "at least one of user or group must be specified",
        );
        return Err(refused(error));
    }
    let extra = body.pointer("/spec/extra").cloned().unwrap_or_else(|| json!({}));
    Ok(UserInfo {
        name,
        uid: meta::text(body, "/spec/uid").to_owned(),
        groups,
        extra: serde_json::from_value(extra).unwrap_or_default(),
    })
}

async fn access_review(call: &Call, body: &Value, user: &UserInfo, local_namespace: &str) -> Result<Value, ApiError> {
    let resource = body
        .pointer("/spec/resourceAttributes")
        .filter(|value| value.is_object());
    let path = body
        .pointer("/spec/nonResourceAttributes")
        .filter(|value| value.is_object());
    if let (Some(_), Some(path)) = (resource, path) {
        let shown = format!(
            "{{\"Path\":{},\"Verb\":{}}}",
            Value::from(meta::text(path, "/path")),
            Value::from(meta::text(path, "/verb"))
        );
        let why = "cannot be specified in combination with resourceAttributes";
        return Err(refused(Error::literal(
            &Path::new("spec.nonResourceAttributes"),
            shown,
            why,
        )));
    }
    if resource.is_none() && path.is_none() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        let error = Error::invalid(
            &Path::new("spec.resourceAttributes"),
            resource.cloned().unwrap_or(Value::Null),
            detail,
        );
        return Err(refused(error));
    }
    let of = |value: Option<&Value>, key: &str| {
        value
            .and_then(|value| value.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    if let Some(path) = path.filter(|_| !local_namespace.is_empty()) {
        let shown = format!(
            "{{\"Path\":{},\"Verb\":{}}}",
            Value::from(meta::text(path, "/path")),
            Value::from(meta::text(path, "/verb"))
        );
        let at = Path::new("spec.nonResourceAttributes");
        return Err(refused(Error::literal(
            &at,
            shown,
            "disallowed on this kind of request",
        )));
    }
    let namespace = of(resource, "namespace");
    if !local_namespace.is_empty() && namespace != local_namespace {
        let error = Error::invalid(
            &Path::new("spec.resourceAttributes.namespace"),
            namespace.as_str(),
            "must match metadata.namespace",
        );
        return Err(refused(error));
    }
    let (verb, group, version, name) = (
        of(resource.or(path), "verb"),
        of(resource, "group"),
        of(resource, "version"),
        of(resource, "name"),
    );
    let (plural, subresource, url) = (of(resource, "resource"), of(resource, "subresource"), of(path, "path"));
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
        field_selector: &selector(resource, "fieldSelector"),
        label_selector: &selector(resource, "labelSelector"),
    };
    Ok(
        match call.cluster.config().authorizer.ask(&call.cluster, &attributes).await {
            Err(Undecided { why, denies: true }) => {
                json!({"allowed": false, "denied": true, "evaluationError": why})
            }
            Err(Undecided { why, denies: false }) => json!({"allowed": false, "evaluationError": why}),
            Ok(decided) => match decided {
                Decision::Allow if user.is_master() => json!({"allowed": true}),
                Decision::Allow => match rbac::reason(&call.cluster, &attributes) {
                    Some(reason) => json!({"allowed": true, "reason": reason}),
                    None => json!({"allowed": true}),
                },
                Decision::Deny(reason) => json!({"allowed": false, "denied": true, "reason": reason}),
                Decision::NoOpinion(reason) if reason.is_empty() => json!({"allowed": false}),
                Decision::NoOpinion(reason) => json!({"allowed": false, "reason": reason}),
            },
        },
    )
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
    if call.user.is_master() {
        everything().iter().for_each(&mut collect);
    }
    let authorizer = &call.cluster.config().authorizer;
    let unresolved = authorizer.rules(&call.cluster, &call.user, namespace, &mut collect);
    let mut status =
        json!({"resourceRules": resources, "nonResourceRules": urls, "incomplete": !unresolved.is_empty()});
    if !unresolved.is_empty() {
        status["evaluationError"] = field::aggregate(&unresolved).into();
    }
    status
}
