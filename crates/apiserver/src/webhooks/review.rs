//! AdmissionReviews: what a webhook is asked, and what its answer must be.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_schema::Definitions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::definition::Attributes;
use crate::intercept::matching::Invocation;
use crate::intercept::request;

const GROUP: &str = "admission.k8s.io";

/// The newest version of reviews that both sides know, in the webhook's order.
pub(super) fn version(accepted: &[String]) -> Option<&str> {
    let known = |version: &&String| matches!(version.as_str(), "v1" | "v1beta1");
    accepted.iter().find(known).map(String::as_str)
}

/// What a webhook is asked about a request. `object` and `old` are in the form of the invocation.
pub(super) fn request(
    version: &str,
    uid: &str,
    attributes: &Attributes<'_>,
    invocation: &Invocation,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    let mut request = request::of(attributes, invocation);
    let mut put = |key: &str, value: Value| drop(request.insert(key.to_owned(), value));
    put("uid", uid.into());
    put("object", object.cloned().unwrap_or(Value::Null));
    put("oldObject", old.cloned().unwrap_or(Value::Null));
    json!({"kind": "AdmissionReview", "apiVersion": format!("{GROUP}/{version}"), "request": request})
}

/// What a webhook decided.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    /// Why not, if not.
    pub(super) status: Option<Status>,
    /// Operations of a JSON patch; empty: none.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) warnings: Vec<String>,
    /// For the audit log, by key.
    pub(super) audit_annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Response {
    uid: String,
    allowed: bool,
    status: Option<Status>,
    patch: Option<String>,
    patch_type: Option<String>,
    warnings: Option<Vec<String>>,
    audit_annotations: Option<std::collections::BTreeMap<String, String>>,
}

/// The types of reviews in Go, as far as answers have them.
static TYPES: LazyLock<Definitions> = LazyLock::new(|| {
    const API: &str = "io.k8s.api.admission";
    const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
    let (text, count) = (json!({"type": "string"}), json!({"type": "integer", "format": "int32"}));
    let texts = json!({"type": "object", "additionalProperties": text});
    let of = |name: String| json!({"$ref": format!("#/components/schemas/{name}")});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let mut schemas = serde_json::Map::new();
    for version in ["v1", "v1beta1"] {
        let name = |kind: &str| format!("{API}.{version}.{kind}");
        let review = json!({
            "type": "object",
            "properties": {"apiVersion": text, "kind": text, "response": of(name("AdmissionResponse"))},
            "x-kubernetes-group-version-kind": [{"group": GROUP, "version": version, "kind": "AdmissionReview"}],
        });
        schemas.insert(name("AdmissionReview"), review);
        let response = json!({
            "uid": text, "allowed": {"type": "boolean"}, "status": of(format!("{META}.Status")),
            "patch": {"type": "string", "format": "byte"}, "patchType": text, "auditAnnotations": texts,
            "warnings": {"type": "array", "items": text},
        });
        schemas.insert(name("AdmissionResponse"), object(response));
    }
    let metadata = json!({"selfLink": text, "resourceVersion": text, "continue": text, "remainingItemCount": {"type": "integer", "format": "int64"}});
    let status = json!({
        "apiVersion": text, "kind": text, "metadata": of(format!("{META}.ListMeta")), "status": text, "message": text,
        "reason": text, "code": count, "details": of(format!("{META}.StatusDetails")),
    });
    let details = json!({
        "name": text, "group": text, "kind": text, "uid": text, "retryAfterSeconds": count,
        "causes": {"type": "array", "items": of(format!("{META}.StatusCause"))},
    });
    for (name, properties) in [
        ("ListMeta", metadata),
        ("Status", status),
        ("StatusDetails", details),
        ("StatusCause", json!({"reason": text, "message": text, "field": text})),
    ] {
        schemas.insert(format!("{META}.{name}"), object(properties));
    }
    Definitions::from_openapi([&json!({"components": {"schemas": schemas}})]).unwrap_or_default()
});

/// Why an answer is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It cannot be decoded as a review.
    Undecodable(String),
    /// It is no answer to the question.
    Invalid(String),
}

/// Reads the answer to a review of this version and uid.
pub(super) fn verdict(version: &str, uid: &str, mutating: bool, review: Value) -> Result<Verdict, Unusable> {
    let text = |key: &str| review.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    check_kind((GROUP, "AdmissionReview"), version, &api_version, &kind).map_err(Unusable::Undecodable)?;
    let response: Option<Response> = match review.get("response") {
        None | Some(Value::Null) => None,
        Some(response) => {
            let types = TYPES.for_kind(GROUP, version, "AdmissionReview");
            if let Some(Err(why)) = types.map(|types| types.decode(&review, &format!("{version}.AdmissionReview"))) {
                return Err(Unusable::Undecodable(why.to_string()));
            }
            Some(Response::deserialize(response).map_err(|why| Unusable::Undecodable(format!("json: {why}")))?)
        }
    };
    let invalid = |why: String| Err(Unusable::Invalid(why));
    let Some(response) = response else {
        return invalid("webhook response was absent".into());
    };
    let patch = match &response.patch {
        None => Vec::new(),
        Some(text) => STANDARD
            .decode(text)
            .map_err(|why| Unusable::Undecodable(why.to_string()))?,
    };
    let mut patch_type = response.patch_type.clone().unwrap_or_default();
    if version == "v1" {
        if response.uid != uid {
            return invalid(format!(
                "expected response.uid={}, got {}",
                go_quote(uid),
                go_quote(&response.uid)
            ));
        }
        if (api_version.as_str(), kind.as_str()) != ("admission.k8s.io/v1", "AdmissionReview") {
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
            return invalid(format!(
                "expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
            ));
        }
        if !mutating {
            if !patch.is_empty() {
                return invalid("validating webhook may not return response.patch".into());
            }
            if response.patch_type.is_some() {
                return invalid("validating webhook may not return response.patchType".into());
            }
        } else {
            match (patch.is_empty(), &response.patch_type) {
                (false, None) => return invalid("webhook returned response.patch but not response.patchType".into()),
                (true, Some(_)) => {
                    return invalid("webhook returned response.patchType but not response.patch".into());
                }
                (false, Some(kind)) if kind.is_empty() => {
                    return invalid("webhook returned invalid response.patchType of \"\"".into());
                }
                _ => {}
            }
        }
    } else {
        patch_type = if patch.is_empty() {
            String::new()
        } else {
            "JSONPatch".to_owned()
        };
    }
    Ok(Verdict {
        allowed: response.allowed,
        status: response.status,
        patch: if mutating { patch } else { Vec::new() },
        patch_type,
        warnings: response.warnings.unwrap_or_default(),
        audit_annotations: response.audit_annotations.unwrap_or_default(),
    })
}

/// Looks whether an answer is of the kind that was asked for, of this group and version: another one is not even decoded. One that tells neither is.
///
/// # Errors
/// What upstream's decoder says.
pub(crate) fn check_kind(
    (group, kind): (&str, &str),
    version: &str,
    api_version: &str,
    found: &str,
) -> Result<(), String> {
    let (own_group, own) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let is_kind = own_group == group && found == kind;
    if api_version.is_empty() || found.is_empty() || (is_kind && own == version) {
        return Ok(());
    }
    Err(match is_kind && matches!(own, "v1" | "v1beta1") {
        true => format!("converting ({own}.{kind}) to ({version}.{kind}): unknown conversion"),
        false => format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            go_quote(found),
            go_quote(api_version)
        ),
    })
}

/// The refusal of a webhook, as the client gets it: what it answered, or nothing but that it refuses.
pub fn refusal(name: &str, status: Option<Status>) -> ApiError {
    let mut status = status.unwrap_or_default();
    status.code = Some(status.code.unwrap_or(0).max(400));
    if matches!(status.status.as_deref(), None | Some("" | "Success")) {
        status.status = Some("Failure".to_owned());
    }
    let denied = format!("admission webhook {} denied the request", go_quote(name));
    let told = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    status.message = Some(match (told(&status.message), told(&status.reason)) {
        (Some(message), _) => format!("{denied}: {message}"),
        (None, Some(reason)) => format!("{denied}: {reason}"),
        (None, None) => format!("{denied} without explanation"),
    });
    ApiError::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked() {
        let review = |response: Value| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        let patch = STANDARD.encode("[]");
        for (mutating, answer, expected) in [
            (
                true,
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
                "webhook response was absent",
            ),
            (
                true,
                review(json!({"uid": "b", "allowed": true})),
                "expected response.uid=\"a\", got \"b\"",
            ),
            (
                true,
                json!({"response": {"uid": "a", "allowed": true}}),
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            ),
            (
                true,
                review(json!({"uid": "a", "allowed": true, "patch": patch})),
                "webhook returned response.patch but not response.patchType",
            ),
            (
                true,
                review(json!({"uid": "a", "allowed": true, "patchType": "JSONPatch"})),
                "webhook returned response.patchType but not response.patch",
            ),
            (
                false,
                review(json!({"uid": "a", "allowed": true, "patch": patch, "patchType": "JSONPatch"})),
                "validating webhook may not return response.patch",
            ),
            (
                false,
                review(json!({"uid": "a", "allowed": true, "patchType": "JSONPatch"})),
                "validating webhook may not return response.patchType",
            ),
        ] {
            assert_eq!(
                verdict("v1", "a", mutating, answer).unwrap_err(),
                Unusable::Invalid(expected.to_owned())
            );
        }
        let old = json!({"response": {"allowed": true, "patch": patch}});
        let old = verdict("v1beta1", "a", true, old).unwrap();
        assert!(
            old.allowed && old.patch == b"[]" && old.patch_type == "JSONPatch",
            "{old:?}"
        );
        assert_eq!(
            verdict("v1", "a", true, json!({"apiVersion": "v1", "kind": "Pod"})).unwrap_err(),
            Unusable::Undecodable(
                "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"".into()
            )
        );
    }

    #[test]
    fn refusals_say_who_refused() {
        let status = |value: Value| Some(serde_json::from_value::<Status>(value).unwrap());
        for (status, code, message) in [
            (
                None,
                400,
                "admission webhook \"a.b.c\" denied the request without explanation",
            ),
            (
                status(json!({"message": "no"})),
                400,
                "admission webhook \"a.b.c\" denied the request: no",
            ),
            (
                status(json!({"code": 403, "reason": "Forbidden"})),
                403,
                "admission webhook \"a.b.c\" denied the request: Forbidden",
            ),
            (
                status(json!({"code": 200, "status": "Success"})),
                400,
                "admission webhook \"a.b.c\" denied the request without explanation",
            ),
        ] {
            let refused = refusal("a.b.c", status);
            assert_eq!((refused.code(), refused.message()), (code, message));
            assert_eq!(refused.status().status.as_deref(), Some("Failure"));
        }
    }
}
