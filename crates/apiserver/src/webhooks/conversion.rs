//! Conversion webhooks: custom resources in other versions, as a webhook of their definition makes them.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Path, aggregate, go_quote};
use gardener_apimachinery::meta::{validate_annotations, validate_labels};
use gardener_apimachinery::pointer::Pointed;
use gardener_schema::json::{go_type, type_of};
use serde_json::{Value, json};
use std::time::Duration;

use super::call::{self, Endpoint, ServiceReference};
use crate::cluster::LogicalCluster;
use crate::definition::Definition;
use crate::meta;
use crate::registry::Scope;

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Who converts the objects of a definition.
#[derive(Clone, Debug)]
pub struct ConversionWebhook {
    /// Where it is.
    endpoint: Endpoint,
    /// Versions of reviews that it takes, preferred first.
    review_versions: Vec<String>,
}

impl ConversionWebhook {
    /// Reads `spec.conversion`; none where no webhook converts.
    pub(crate) fn of(conversion: &Value) -> Option<Self> {
        if meta::text(conversion, "/strategy") != "Webhook" {
            return None;
        }
        let config = conversion.at("/webhook/clientConfig")?;
        let text = |pointer: &str| meta::text(config, pointer).to_owned();
        let versions = meta::elements(conversion, "/webhook/conversionReviewVersions").iter();
        let bundle: Option<k8s_openapi::ByteString> = config
            .get("caBundle")
            .and_then(|bundle| serde_json::from_value(bundle.clone()).ok());
        Some(Self {
            endpoint: Endpoint {
                url: config.get("url").and_then(Value::as_str).map(str::to_owned),
                service: config.get("service").map(|service| ServiceReference {
                    namespace: text("/service/namespace"),
                    name: text("/service/name"),
                    path: text("/service/path"),
                    port: service
                        .get("port")
                        .and_then(Value::as_u64)
                        .and_then(|port| u16::try_from(port).ok())
                        .unwrap_or(443),
                }),
                ca_bundle: bundle.map(|bundle| bundle.0).unwrap_or_default(),
                ..Endpoint::default()
            },
            review_versions: versions
                .filter_map(|version| version.as_str().map(str::to_owned))
                .collect(),
        })
    }

    /// Converts those objects that are not of this version yet, with one call for all.
    async fn convert(
        &self,
        cluster: &LogicalCluster,
        definition: &Definition,
        objects: &mut [&mut Value],
        to: &str,
    ) -> Result<(), ApiError> {
        let wanted = definition.api_version(to);
        let mut open: Vec<&mut &mut Value> = objects
            .iter_mut()
            .filter(|object| meta::text(object, "/apiVersion") != wanted)
            .collect();
        for object in &open {
            definition.check_known_version(object)?;
        }
        let Some(first) = open.first() else { return Ok(()) };
        let (from, kind) = (meta::text(first, "/apiVersion"), meta::text(first, "/kind"));
        let of = format!(
            "{}, Kind={kind}",
            if from.contains('/') {
                from.to_owned()
            } else {
                format!("/{from}")
            }
        );
        let failed = |why: String| ApiError::unclassified(format!("conversion webhook for {of} {why}"));
        let known = |version: &&String| matches!(version.as_str(), "v1" | "v1beta1");
        let Some(version) = self.review_versions.iter().find(known) else {
            return Err(ApiError::unclassified("no supported conversion review versions"));
        };
        let uid = cluster.chance().uid();
        let api_version = format!("apiextensions.k8s.io/{version}");
        let asked: Vec<&Value> = open.iter().map(|object| &***object).collect();
        let review = json!({
            "kind": "ConversionReview", "apiVersion": api_version,
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": asked},
        });
        let answer = call::ask(cluster, &self.endpoint, TIMEOUT, &review)
            .await
            .map_err(|unanswered| failed(format!("failed: {}", unanswered.why)))?;
        let converted = converted(&answer, version, &uid).map_err(|why| failed(format!("failed: {why}")))?;
        if converted.len() != open.len() {
            return Err(failed(format!(
                "returned {} objects, expected {}",
                converted.len(),
                open.len()
            )));
        }
        for (object, converted) in open.iter_mut().zip(converted) {
            let Value::Object(_) = &converted else {
                return Err(ApiError::unclassified(no_object(&converted)));
            };
            if meta::text(&converted, "/kind").is_empty() {
                let why = format!("Object 'Kind' is missing in '{converted}'");
                return Err(ApiError::unclassified(why));
            }
            let result =
                restored(object, converted, &wanted).map_err(|why| failed(format!("returned invalid {why}")))?;
            ***object = shaped(definition, to, result);
        }
        Ok(())
    }
}

/// The objects of an answer.
fn converted(answer: &Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let text = |pointer: &str| meta::text(answer, pointer);
    let response = answer.get("response").filter(|response| response.is_object());
    if version == "v1" {
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if (api_version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            return Err(format!(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {group}/{version}, Kind={kind}"
            ));
        }
        if response.is_some() && text("/response/uid") != uid {
            return Err(format!(
                "expected response.uid={}, got {}",
                go_quote(uid),
                go_quote(text("/response/uid"))
            ));
        }
    }
    let Some(response) = response else {
        return Err("no response provided".to_owned());
    };
    let status = text("/response/result/status");
    if status != "Success" {
        return Err(match text("/response/result/message") {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    Ok(meta::elements(response, "/convertedObjects").to_vec())
}

/// A converted object with the metadata that a conversion may not change.
fn restored(original: &Value, mut converted: Value, wanted: &str) -> Result<Value, String> {
    let own = |object: &Value, pointer: &str| meta::text(object, pointer).to_owned();
    for (what, pointer) in [("groupVersion", "/apiVersion"), ("kind", "/kind")] {
        let expected = match what {
            "kind" => own(original, pointer),
            _ => wanted.to_owned(),
        };
        let received = own(&converted, pointer);
        if expected != received {
            return Err(format!(
                "object at index 0: invalid {what} (expected {expected}, received {received})"
            ));
        }
    }
    for (what, pointer) in [
        ("name", "/metadata/name"),
        ("namespace", "/metadata/namespace"),
        ("UID", "/metadata/uid"),
    ] {
        let (before, after) = (own(original, pointer), own(&converted, pointer));
        if before != after {
            return Err(format!("object: must have the same {what}: {before} != {after}"));
        }
    }
    let metadata = match converted.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => {
            let of_type = go_type(other);
            return Err(format!(
                "metadata: invalid metadata of type {of_type} in converted object"
            ));
        }
        None => return Err("metadata: missing metadata in converted object".to_owned()),
    };
    let mut kept = original.get("metadata").cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(kept) = &mut kept {
        for key in ["labels", "annotations"] {
            let own = metadata.get(key).filter(|own| !own.is_null());
            let Some(own) = own else {
                kept.remove(key);
                continue;
            };
            if kept.get(key) != Some(own) {
                check_changed(key, own).map_err(|why| format!("metadata: {why}"))?;
            }
            kept.insert(key.to_owned(), own.clone());
        }
    }
    if let Value::Object(members) = &mut converted {
        members.insert("metadata".into(), kept);
    }
    Ok(converted)
}

/// What Go's decoder says of a converted object that is none.
fn no_object(converted: &Value) -> String {
    match converted {
        // upstream keeps nothing of a null
        Value::Null => "unexpected end of JSON input".to_owned(),
        other => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            type_of(other)
        ),
    }
}

/// Checks labels or annotations that a conversion changed.
fn check_changed(key: &str, changed: &Value) -> Result<(), String> {
    let Value::Object(members) = changed else {
        let of_type = go_type(changed);
        return Err(format!("invalid metadata.{key} of type {of_type} in converted object"));
    };
    let mut texts = BTreeMap::new();
    for (name, value) in members {
        let Value::String(text) = value else {
            let of_type = go_type(value);
            return Err(format!(
                "metadata.{key}[{name}] must be a string, but is {of_type} in converted object"
            ));
        };
        texts.insert(name.clone(), text.clone());
    }
    let path = Path::new("metadata");
    let errors = match key {
        "labels" => validate_labels(&texts, &path.child("labels")),
        // upstream's path has it in the singular
        _ => validate_annotations(&texts, &path.child("annotation")),
    };
    match errors.is_empty() {
        true => Ok(()),
        false => Err(aggregate(&errors)),
    }
}

/// What the version's schema makes of a converted object.
fn shaped(definition: &Definition, version: &str, mut object: Value) -> Value {
    let version = definition.versions.iter().find(|own| own.name == version);
    if let Some((version, schema)) = version.and_then(|version| Some((version, version.schema.as_ref()?))) {
        if version.prunes {
            schema.prune(&mut object);
        }
        schema.apply_defaults(&mut object);
    }
    object
}

/// Rewrites objects into another version of their resource, by the definition's webhook where it has one.
///
/// # Errors
/// Tells why they cannot be converted.
pub(crate) async fn convert(
    cluster: &LogicalCluster,
    definition: &Definition,
    objects: &mut [&mut Value],
    from: &str,
    to: &str,
) -> Result<(), ApiError> {
    match definition.strategy.conversion_webhook() {
        Some(webhook) => webhook.convert(cluster, definition, objects, to).await,
        None => objects
            .iter_mut()
            .try_for_each(|object| definition.convert(object, from, to)),
    }
}

/// The frames of a watch with their objects in the version that the request asks for.
pub(crate) fn converted_frames(
    frames: impl Stream<Item = Bytes> + Send + 'static,
    scope: Scope,
) -> futures::stream::BoxStream<'static, Bytes> {
    if scope.definition.strategy.conversion_webhook().is_none() {
        return frames.boxed();
    }
    let converted = frames.then(move |frames| {
        let scope = scope.clone();
        async move {
            let mut out = Vec::with_capacity(frames.len());
            for line in frames.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                match event(line, &scope).await {
                    Some(event) => out.extend_from_slice(event.to_string().as_bytes()),
                    None => out.extend_from_slice(line),
                }
                out.push(b'\n');
            }
            Bytes::from(out)
        }
    });
    converted.boxed()
}

/// An event with its object converted; none where the line is to stay as it is.
async fn event(line: &[u8], scope: &Scope) -> Option<Value> {
    let mut event: Value = serde_json::from_slice(line).ok()?;
    let is_object = meta::text(&event, "/object/apiVersion").starts_with(&format!("{}/", scope.definition.group));
    let is_bookmark = meta::text(&event, "/type") == "BOOKMARK";
    if !is_object || is_bookmark {
        return None;
    }
    let object = event.get_mut("object")?;
    if let Err(error) = scope.to_requested(object).await {
        // as upstream, the watch tells what went wrong in the object's place
        let mut status = serde_json::to_value(error.status()).ok()?;
        if let Value::Object(status) = &mut status {
            status.insert("kind".into(), "Status".into());
            status.insert("apiVersion".into(), "v1".into());
        }
        return Some(json!({"type": "ERROR", "object": status}));
    }
    Some(event)
}
