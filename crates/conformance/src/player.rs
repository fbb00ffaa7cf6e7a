//! Plays sequences against a server.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use gardener_apimachinery::pointer::Pointed;
use gardener_apiserver::protobuf;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT, WARNING};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::normalize::{self, Normalizer};
use crate::sequence::{Answer, Recording, Sequence, Step};
use crate::webhook::Webhook;

/// Whom servers take for the manager of fields.
const AGENT: &str = "player/1.0";
/// How long to wait before a step asks again.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(50);
/// How often a step asks at most.
const PATIENCE: usize = 400;
/// How long kube-apiserver may take to follow a change of its webhooks, or of an object that webhooks are asked about.
const FOLLOWS: std::time::Duration = std::time::Duration::from_millis(500);

/// Puts values in the place of `${name}`.
fn filled(text: &str, variables: &BTreeMap<String, String>) -> String {
    variables.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("${{{name}}}"), value)
    })
}

/// Plays one sequence in a namespace of the given name, which it makes.
///
/// # Errors
/// The server cannot be reached, or a step asks for what cannot be sent.
pub async fn play(
    client: &Client,
    webhook: &Webhook,
    sequence: &Sequence,
    namespace: &str,
) -> anyhow::Result<Recording> {
    prepare(client, namespace).await?;
    webhook.script(namespace, &sequence.webhooks);
    let known = [("ns", namespace), ("webhook", &webhook.url), ("ca", &webhook.ca_bundle)];
    let mut variables: BTreeMap<String, String> = known
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut normalizer = Normalizer::new(namespace);
    normalizer.hide(&webhook.url, "${webhook}");
    normalizer.hide(webhook.url.trim_start_matches("https://"), "${webhook host}");
    normalizer.hide(&webhook.ca_bundle, "${ca}");
    let mut answers = Vec::with_capacity(sequence.steps.len());
    for step in &sequence.steps {
        let (mut answer, body) = ask(client, step, &variables, &mut normalizer)
            .await
            .with_context(|| format!("{}: {}", sequence.name, step.request))?;
        if !sequence.webhooks.is_empty() {
            tokio::time::sleep(FOLLOWS).await;
        }
        let asked = webhook.take_asked(namespace);
        answer.asked = asked.iter().map(|asked| normalizer.value(asked)).collect();
        answers.push(answer);
        for (name, pointer) in &step.save {
            let value = match body.at(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            variables.insert(name.clone(), value);
        }
    }
    Ok(Recording {
        name: sequence.name.clone(),
        answers,
    })
}

/// Makes the namespace, and the service account that a controller manager would make in it.
async fn prepare(client: &Client, namespace: &str) -> anyhow::Result<()> {
    for (path, object) in [
        (
            "/api/v1/namespaces".to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        ),
        (
            format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        ),
    ] {
        let request = Request::post(path)
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, "application/json")
            .body(Body::from(object.to_string().into_bytes()))?;
        let response = client.send(request).await?;
        if !response.status().is_success() {
            bail!("namespace {namespace} cannot be prepared: {}", response.status());
        }
    }
    Ok(())
}

/// Sends one request. Answers what is compared, and the body as it came.
async fn ask(
    client: &Client,
    step: &Step,
    variables: &BTreeMap<String, String>,
    normalizer: &mut Normalizer,
) -> anyhow::Result<(Answer, Value)> {
    let mut asked = 0;
    let response = loop {
        let response = client.send(request(step, variables)?).await?;
        asked += 1;
        match step.until {
            Some(status) if status != response.status().as_u16() => {
                if asked == PATIENCE {
                    bail!("it is {} and never {status}", response.status());
                }
                tokio::time::sleep(AGAIN).await;
            }
            _ => break response,
        }
    };
    let is_watch = step.request.contains("watch=") || step.request.contains("/watch/");
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    let header = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let content_type = parts.headers.get(CONTENT_TYPE).map(header).unwrap_or_default();
    let raw: Value = match serde_json::from_slice(&bytes) {
        _ if content_type == format!("{};stream=watch", protobuf::CONTENT_TYPE) => {
            protobuf::decode_watch(&bytes)?.into()
        }
        _ if content_type == protobuf::CONTENT_TYPE => protobuf::decode(&bytes)?,
        _ if content_type == "application/yaml" => serde_saphyr::from_str(&text)?,
        Ok(value) if !is_watch => value,
        _ if is_watch && parts.status.is_success() => serde_json::Deserializer::from_slice(&bytes)
            .into_iter::<Value>()
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        Ok(value) => value,
        Err(_) => text.as_ref().into(),
    };
    let answer = Answer {
        status: parts.status.as_u16(),
        content_type,
        warnings: parts
            .headers
            .get_all(WARNING)
            .iter()
            .map(|value| normalizer.text(&header(value)))
            .collect(),
        told: step
            .tells
            .iter()
            .filter_map(|name| {
                let value = normalizer.text(&header(parts.headers.get(name)?));
                Some((name.clone(), normalize::without_hash(&value)))
            })
            .collect(),
        body: match step.tells.is_empty() {
            true => normalizer.value(&raw),
            false => Value::Null,
        },
        asked: Vec::new(),
    };
    Ok((answer, raw))
}

fn request(step: &Step, variables: &BTreeMap<String, String>) -> anyhow::Result<Request<Body>> {
    let request = filled(&step.request, variables);
    let (method, path) = request.split_once(' ').context("a request is `METHOD /path`")?;
    let body = match (&step.body, &step.text) {
        (Some(body), None) => filled(&body.to_string(), variables),
        (None, Some(text)) => filled(text, variables),
        (None, None) => String::new(),
        (Some(_), Some(_)) => bail!("a step has a body or a text, not both"),
    };
    let mut built = Request::builder()
        .method(method.parse::<Method>()?)
        .uri(path)
        .header(USER_AGENT, AGENT);
    if !body.is_empty() {
        built = built.header(CONTENT_TYPE, step.content_type.as_deref().unwrap_or("application/json"));
    }
    for (name, value) in &step.headers {
        let value = HeaderValue::from_str(&filled(value, variables))?;
        built = built.header(name.parse::<HeaderName>()?, value);
    }
    let body = match step.content_type.as_deref() {
        Some(protobuf::CONTENT_TYPE) if step.body.is_some() => as_protobuf(&serde_json::from_str(&body)?)?,
        _ => body.into_bytes(),
    };
    Ok(built.body(Body::from(body))?)
}

fn as_protobuf(object: &Value) -> anyhow::Result<Vec<u8>> {
    let member = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = protobuf::Kind::of(member("apiVersion"), member("kind"))
        .with_context(|| format!("{} has no protobuf form", member("kind")))?;
    Ok(kind.encode_value(object)?.to_vec())
}
