//! Conversion webhooks: custom resources in other versions, as a webhook of their definition makes them.

mod known;

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Path, aggregate, go_quote};
use gardener_apimachinery::go_json::type_of;
use gardener_apimachinery::meta::{validate_annotations, validate_labels};
use gardener_apimachinery::pointer::Pointed;
use gardener_schema::json::go_type;
use serde_json::{Value, json};
use std::time::Duration;

use self::known::Known;
use super::call::{self, Endpoint, ServiceReference};
use crate::cluster::LogicalCluster;
use crate::definition::Definition;
use crate::meta;

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many objects are converted with one call, and of how many bytes: so that neither the call nor its answer grows with a list. (Upstream asks for
/// each object of a list by itself.)
const MOST_AT_ONCE: usize = 100;
const LARGEST_AT_ONCE: usize = 4 << 20;

/// Who converts the objects of a definition.
#[derive(Clone, Debug)]
pub struct ConversionWebhook {
    /// Where it is.
    endpoint: Endpoint,
    /// Versions of reviews that it takes, preferred first.
    review_versions: Vec<String>,
    known: Known,
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
            known: Known::default(),
        })
    }

    /// As [`Self::convert`], but those that were converted before, and have not changed since, are as they were then.
    async fn convert_known(
        &self,
        cluster: &LogicalCluster,
        definition: &Definition,
        objects: &mut [&mut Value],
        to: &str,
    ) -> Result<(), ApiError> {
        let wanted = definition.api_version(to);
        if let [object] = objects {
            let Some(converted) = self.known.of(object, &wanted) else {
                return self.convert(cluster, definition, &mut [object], to).await;
            };
            let mut asked = object.clone();
            let made = converted.get_or_try_init(|| async {
                self.convert(cluster, definition, &mut [&mut asked], to).await?;
                Ok::<_, ApiError>(Arc::new(asked))
            });
            **object = Value::clone(made.await?);
            return Ok(());
        }
        let mut open = Vec::new();
        for object in objects.iter_mut() {
            let converted = self.known.of(object, &wanted);
            match converted.as_ref().and_then(|converted| converted.get()) {
                Some(made) => **object = Value::clone(made),
                None => open.push((&mut **object, converted)),
            }
        }
        let sizes: Vec<usize> = open.iter().map(|(object, _)| size_of_json(object)).collect();
        let mut rest = open.as_mut_slice();
        for count in portions(&sizes) {
            let (portion, others) = rest.split_at_mut(count);
            rest = others;
            let mut asked: Vec<&mut Value> = portion.iter_mut().map(|(object, _)| &mut **object).collect();
            self.convert(cluster, definition, &mut asked, to).await?;
            for (object, converted) in portion {
                if let Some(converted) = converted {
                    // another one may have been faster
                    let _ = converted.set(Arc::new(object.clone()));
                }
            }
        }
        Ok(())
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

/// How many of objects of these sizes, in bytes and in order, go with each call.
fn portions(sizes: &[usize]) -> Vec<usize> {
    let mut counts = Vec::new();
    let (mut count, mut size) = (0, 0);
    for own in sizes {
        if count == MOST_AT_ONCE || count > 0 && size + own > LARGEST_AT_ONCE {
            counts.push(std::mem::take(&mut count));
            size = 0;
        }
        count += 1;
        size += own;
    }
    counts.extend((count > 0).then_some(count));
    counts
}

/// About how many bytes a value takes as JSON: without what is escaped in texts.
fn size_of_json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(elements) => 2 + elements.iter().map(size_of_json).sum::<usize>(),
        Value::Object(members) => {
            let sizes = members
                .iter()
                .map(|(name, member)| name.len() + 4 + size_of_json(member));
            2 + sizes.sum::<usize>()
        }
    }
}

/// The objects of an answer.
fn converted(answer: &Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let text = |pointer: &str| meta::text(answer, pointer);
    let response = answer.get("response").filter(|response| response.is_object());
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    is_review(api_version, kind, version)?;
    if version == "v1" {
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

/// Refuses what cannot be read as a review of a version, in the words of Go's decoder. What it does not say of itself is as it should be.
fn is_review(api_version: &str, kind: &str, version: &str) -> Result<(), String> {
    let own = format!("apiextensions.k8s.io/{version}");
    let api_version = if api_version.is_empty() { &own } else { api_version };
    let kind = if kind.is_empty() { "ConversionReview" } else { kind };
    let registered = match api_version.strip_prefix("apiextensions.k8s.io/") {
        Some(of @ ("v1" | "v1beta1")) => {
            let known = [
                "ConversionReview",
                "CustomResourceDefinition",
                "CustomResourceDefinitionList",
            ];
            known.contains(&kind).then_some(of)
        }
        _ => None,
    };
    match registered {
        Some(of) if of == version && kind == "ConversionReview" => Ok(()),
        Some(of) => Err(format!(
            "converting ({of}.{kind}) to ({version}.ConversionReview): unknown conversion"
        )),
        None => Err(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )),
    }
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

/// What the version's schema leaves of a converted object. Defaults are those of the version in which it was sent, and of the one in which it is
/// stored: converting adds none.
fn shaped(definition: &Definition, version: &str, mut object: Value) -> Value {
    definition.prune_as(&mut object, version);
    object
}

/// As [`convert`], for stored objects that may be as they were converted before: whoever reads one of them alone is shown how it is converted now.
///
/// # Errors
/// As those of [`convert`].
pub(crate) async fn convert_known(
    cluster: &LogicalCluster,
    definition: &Definition,
    objects: &mut [&mut Value],
    from: &str,
    to: &str,
) -> Result<(), ApiError> {
    match definition.strategy.conversion_webhook() {
        Some(webhook) => webhook.convert_known(cluster, definition, objects, to).await,
        None => convert(cluster, definition, objects, from, to).await,
    }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use bytes::Bytes;

    use super::*;
    use crate::webhooks::{Answer, Transport};

    /// A webhook that says of each object how often it was asked.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Transport for Counting {
        async fn post(&self, _: &LogicalCluster, _: &Endpoint, _: Duration, body: Bytes) -> Result<Answer, String> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            // others come while it is asked
            tokio::task::yield_now().await;
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            let mut objects = review["request"]["objects"].take();
            for object in objects.as_array_mut().unwrap() {
                object["apiVersion"] = review["request"]["desiredAPIVersion"].clone();
                object["spec"] = json!({"asked": asked});
            }
            let response = json!({
                "uid": review["request"]["uid"], "convertedObjects": objects, "result": {"status": "Success"},
            });
            let review = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
            Ok(Answer {
                status: 200,
                content_type: "application/json".to_owned(),
                body: review.to_string().into(),
            })
        }
    }

    fn definition() -> Definition {
        let version = |name: &str, stored: bool| {
            let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            json!({"name": name, "served": true, "storage": stored, "schema": {"openAPIV3Schema": schema}})
        };
        let webhook = json!({
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://webhook.example.com/convert"},
        });
        let crd = json!({
            "metadata": {"name": "ones.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "ones", "singular": "one", "kind": "One", "listKind": "OneList"},
                "versions": [version("v1", true), version("v2", false)],
                "conversion": {"strategy": "Webhook", "webhook": webhook},
            },
            "status": {
                "acceptedNames": {"plural": "ones", "singular": "one", "kind": "One", "listKind": "OneList"},
                "conditions": [{"type": "NamesAccepted", "status": "True"}],
            },
        });
        crate::crd::definition(&crd).unwrap()
    }

    fn stored(uid: &str, revision: &str) -> Value {
        json!({
            "apiVersion": "example.com/v1",
            "kind": "One",
            "metadata": {"name": uid, "uid": uid, "resourceVersion": revision},
        })
    }

    fn asked(object: &Value) -> &Value {
        assert_eq!(object["apiVersion"], "example.com/v2");
        &object["spec"]["asked"]
    }

    #[test]
    fn what_is_no_review_is_refused_as_gos_decoder_refuses_it() {
        let group = "apiextensions.k8s.io";
        for (api_version, kind, version, expected) in [
            ("v1", "ConversionReview", "v1", Ok(())),
            ("v1", "", "v1", Ok(())),
            (
                "v1beta1",
                "ConversionReview",
                "v1",
                Err("converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion"),
            ),
            (
                "v1",
                "CustomResourceDefinition",
                "v1beta1",
                Err("converting (v1.CustomResourceDefinition) to (v1beta1.ConversionReview): unknown conversion"),
            ),
            (
                "v2",
                "ConversionReview",
                "v1",
                Err(
                    "no kind \"ConversionReview\" is registered for version \"apiextensions.k8s.io/v2\" in scheme \"pkg/runtime/scheme.go:111\"",
                ),
            ),
        ] {
            let said = is_review(&format!("{group}/{api_version}"), kind, version);
            assert_eq!(said, expected.map_err(str::to_owned), "{api_version} {kind}");
        }
        assert_eq!(is_review("", "", "v1"), Ok(()));
    }

    #[tokio::test]
    async fn what_was_converted_is_known_until_it_changes() {
        let (cluster, definition) = (LogicalCluster::in_memory(), definition());
        cluster.webhooks().use_transport(Arc::new(Counting::default()));

        let (mut one, mut other) = (stored("a", "1"), stored("b", "2"));
        let mut both = [&mut one, &mut other];
        convert_known(&cluster, &definition, &mut both, "v1", "v2")
            .await
            .unwrap();
        assert_eq!((asked(&one), asked(&other)), (&json!(1), &json!(1)), "one call for all");

        let (mut one, mut changed, mut new) = (stored("a", "1"), stored("b", "3"), stored("c", "4"));
        let mut all = [&mut one, &mut changed, &mut new];
        convert_known(&cluster, &definition, &mut all, "v1", "v2")
            .await
            .unwrap();
        assert_eq!(asked(&one), 1, "it is known");
        assert_eq!((asked(&changed), asked(&new)), (&json!(2), &json!(2)));

        let mut one = stored("a", "1");
        convert(&cluster, &definition, &mut [&mut one], "v1", "v2")
            .await
            .unwrap();
        assert_eq!(asked(&one), 3, "who reads it alone is shown how it is converted now");
    }

    #[test]
    fn neither_many_nor_large_objects_go_with_one_call() {
        let large = LARGEST_AT_ONCE;
        for (sizes, counts) in [
            (vec![], vec![]),
            (vec![1; 100], vec![100]),
            (vec![1; 201], vec![100, 100, 1]),
            (vec![1, large, large - 1, 1, 1], vec![1, 1, 2, 1]),
            (vec![2 * large, 1], vec![1, 1]),
        ] {
            assert_eq!(portions(&sizes), counts, "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn a_long_list_is_converted_in_portions() {
        let (cluster, definition) = (LogicalCluster::in_memory(), definition());
        cluster.webhooks().use_transport(Arc::new(Counting::default()));
        let mut objects: Vec<Value> = (0..150).map(|number| stored(&format!("u{number}"), "1")).collect();
        let mut all: Vec<&mut Value> = objects.iter_mut().collect();
        convert_known(&cluster, &definition, &mut all, "v1", "v2")
            .await
            .unwrap();
        for (number, object) in objects.iter().enumerate() {
            assert_eq!(object["metadata"]["name"], format!("u{number}"));
            assert_eq!(*asked(object), if number < 100 { 1 } else { 2 });
        }
    }

    #[tokio::test]
    async fn who_wants_the_same_at_a_time_has_it_made_once() {
        let (cluster, definition) = (LogicalCluster::in_memory(), definition());
        cluster.webhooks().use_transport(Arc::new(Counting::default()));
        let watchers = (0..10).map(|_| async {
            let mut object = stored("a", "1");
            convert_known(&cluster, &definition, &mut [&mut object], "v1", "v2")
                .await
                .unwrap();
            assert_eq!(asked(&object), 1);
        });
        futures::future::join_all(watchers).await;
    }
}
