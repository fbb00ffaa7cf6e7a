//! Decisions: worked cases by rule, and that nobody may touch what belongs to another seed.

mod self_hosted;
mod strangers;
mod table;

use serde_json::{Value, json};

use crate::request::{Answer, Request};
use crate::{Belongings, Source};

/// A garden of the given objects.
fn garden(objects: &[(Source, Value)]) -> Belongings {
    let mut belongings = Belongings::new();
    for (source, object) in objects {
        put(&mut belongings, *source, object);
    }
    belongings
}

fn put(belongings: &mut Belongings, source: Source, object: &Value) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let bytes = serde_json::to_vec(object).unwrap();
    belongings.set(source, text("namespace"), text("name"), Some(&bytes));
}

fn named(namespace: &str, name: &str) -> Value {
    match namespace {
        "" => json!({"name": name}),
        namespace => json!({"namespace": namespace, "name": name}),
    }
}

/// A question in words: verb, `[group/]resource[/subresource]` as tables write it, namespace, name; a dash is nothing. Selectors may follow:
/// `field:<selector>` or `label:<selector>`.
fn question(text: &str) -> Request<'_> {
    let words: Vec<&str> = text
        .split(' ')
        .map(|word| if word == "-" { "" } else { word })
        .collect();
    let [verb, resource, namespace, name, rest @ ..] = words.as_slice() else {
        panic!("{text}")
    };
    let (group, resource) = resource.split_once(':').unwrap_or(("core.gardener.cloud", resource));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let selector = |prefix: &str| {
        rest.iter()
            .find_map(|word| word.strip_prefix(prefix))
            .unwrap_or_default()
    };
    Request {
        verb,
        group,
        resource,
        subresource,
        namespace,
        name,
        field_selector: selector("field:"),
        label_selector: selector("label:"),
    }
}

fn no(reason: &str) -> Answer {
    Answer::NoOpinion(reason.to_owned())
}
