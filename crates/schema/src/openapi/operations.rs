//! How [`super::routes`] stand in a document: items of paths with their operations. What all operations of a path have as a parameter is
//! said once, of the path.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::routes::{Form, Parameter, Route};

/// The component of each kind (group, version, kind).
pub(super) type Components = BTreeMap<[String; 3], String>;

/// The component schemas by the kind that they say they describe, for those that describe one only.
pub(super) fn by_kind(components: &Map<String, Value>) -> Components {
    let mut found = Components::new();
    for (name, component) in components {
        let kinds = component
            .get("x-kubernetes-group-version-kind")
            .and_then(Value::as_array);
        if let Some([kind]) = kinds.map(Vec::as_slice) {
            let part = |name: &str| kind.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            found.insert(["group", "version", "kind"].map(part), name.clone());
        }
    }
    found
}

/// The `paths` of routes. Who `refuses` callers without credentials says so of each.
pub(super) fn paths(routes: Vec<Route>, components: &Components, refuses: bool) -> Map<String, Value> {
    let mut by_path: BTreeMap<String, Vec<Route>> = BTreeMap::new();
    for route in routes {
        by_path.entry(route.path.clone()).or_default().push(route);
    }
    by_path
        .into_iter()
        .map(|(path, routes)| (path, item(&routes, components, refuses)))
        .collect()
}

fn item(routes: &[Route], components: &Components, refuses: bool) -> Value {
    let in_all = |parameter: &Parameter| routes.iter().all(|route| route.parameters.contains(parameter));
    let common: Vec<Parameter> = routes
        .first()
        .into_iter()
        .flat_map(|route| route.parameters.iter().copied())
        .filter(in_all)
        .collect();
    let mut item = Map::new();
    for route in routes {
        item.insert(route.method.to_owned(), operation(route, &common, components, refuses));
    }
    if !common.is_empty() {
        item.insert("parameters".to_owned(), parameters(common.iter()));
    }
    Value::Object(item)
}

fn operation(route: &Route, common: &[Parameter], components: &Components, refuses: bool) -> Value {
    let (id, tag) = name(route);
    let answer = with_form(&route.answer, &route.produces, components);
    let mut responses: Map<String, Value> = route
        .codes
        .iter()
        .map(|code| {
            let response = json!({"description": description(*code), "content": answer});
            (code.to_string(), response)
        })
        .collect();
    if refuses {
        responses.insert("401".to_owned(), json!({"description": description(401)}));
    }
    let mut operation = Map::new();
    operation.insert("tags".to_owned(), json!([tag]));
    operation.insert("operationId".to_owned(), id.into());
    let mut own = route.parameters.iter().filter(|own| !common.contains(own)).peekable();
    if own.peek().is_some() {
        operation.insert("parameters".to_owned(), parameters(own));
    }
    if let Some(body) = &route.body {
        let mut written = json!({"content": with_form(&body.form, body.consumes, components)});
        if body.required {
            written["required"] = true.into();
        }
        operation.insert("requestBody".to_owned(), written);
    }
    operation.insert("responses".to_owned(), Value::Object(responses));
    if let Some((action, [group, version, kind])) = &route.action {
        operation.insert("x-kubernetes-action".to_owned(), (*action).into());
        let kind = json!({"group": group, "version": version, "kind": kind});
        operation.insert("x-kubernetes-group-version-kind".to_owned(), kind);
    }
    Value::Object(operation)
}

/// The identifier of an operation, which has group and version within, and its tag.
fn name(route: &Route) -> (String, String) {
    let mut parts = route.path.trim_matches('/').split('/').peekable();
    let (group, version) = match parts.next() {
        Some("api") => ("core", parts.next()),
        Some("apis") if parts.peek().is_some() => (parts.next().unwrap_or_default(), parts.next()),
        first => {
            let id = format!("{}{}", route.verb, route.subject);
            return (id, joined(first.unwrap_or_default(), false));
        }
    };
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    let tag = joined(group, false);
    let (verb, subject) = (route.verb, &route.subject);
    match version {
        Some(version) => (
            format!("{verb}{}{}{subject}", words(group), words(version)),
            format!("{tag}_{}", joined(version, false)),
        ),
        None => (format!("{verb}{}{subject}", words(group)), tag),
    }
}

const fn description(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        401 => "Unauthorized",
        _ => "OK",
    }
}

/// What is sent in each of the media types.
fn with_form(form: &Form, media_types: &[&str], components: &Components) -> Value {
    let schema = match form {
        Form::Text => json!({"type": "string"}),
        Form::Shared(name) => super::reference(name),
        Form::Kind(kind) => super::reference(components.get(kind).map_or("", String::as_str)),
    };
    media_types
        .iter()
        .map(|media_type| ((*media_type).to_owned(), json!({"schema": schema})))
        .collect()
}

fn parameters<'a>(of: impl Iterator<Item = &'a Parameter>) -> Value {
    let mut of: Vec<&Parameter> = of.collect();
    of.sort();
    of.into_iter()
        .map(|Parameter { name, place, kind }| {
            let mut written = json!({"name": name, "in": place, "schema": {"type": kind, "uniqueItems": true}});
            if *place == "path" {
                written["required"] = true.into();
            }
            written
        })
        .collect()
}

/// `AppsGardenerCloud` of `apps.gardener.cloud`.
pub(super) fn words(text: &str) -> String {
    joined(text, true)
}

/// The words of a name without what is between them. All begin with capitals, the first if it shall.
fn joined(text: &str, mut starts: bool) -> String {
    let mut found = String::with_capacity(text.len());
    for letter in text.chars() {
        if !letter.is_ascii_alphanumeric() && letter != '_' {
            starts = true;
        } else if std::mem::take(&mut starts) {
            found.push(letter.to_ascii_uppercase());
        } else {
            found.push(letter);
        }
    }
    found
}
