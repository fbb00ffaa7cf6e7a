//! Configurations of admission webhooks: what is wrong with them. Calling webhooks is [`crate::webhooks`].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::link::Link;
use gardener_apimachinery::meta::validate_label_selector;
use gardener_apimachinery::names;
use serde_json::Value;

use crate::intercept::conditions;
use crate::meta;

/// Review versions that webhooks may ask for.
const REVIEW_VERSIONS: &str = "v1, v1beta1";

/// How many match conditions a webhook may have.
const CONDITIONS: usize = 64;

/// What an update need not repair because it was so before.
#[derive(Clone, Copy)]
struct Leniency {
    any_side_effects: bool,
    any_review_versions: bool,
    repeated_names: bool,
    any_label_values: bool,
    any_conditions: bool,
}

/// What is wrong with a new configuration.
pub(super) fn validate(configuration: &Value) -> ErrorList {
    check(
        configuration,
        Leniency {
            any_side_effects: false,
            any_review_versions: false,
            repeated_names: false,
            any_label_values: false,
            any_conditions: false,
        },
    )
}

/// Warns of a name that is meant for what servers read from files.
pub(super) fn warn_of_name(object: &Value) -> Vec<String> {
    const OF_FILES: &str = ".static.k8s.io";
    let is_of_files = meta::name(object).ends_with(OF_FILES);
    let warning = || {
        format!(
            "metadata.name: names ending with \"{OF_FILES}\" are reserved for static manifest-based configurations and cannot be managed via the API"
        )
    };
    is_of_files.then(warning).into_iter().collect()
}

/// What is wrong with a changed configuration. Old ones may keep what is refused today.
pub(super) fn validate_update(configuration: &Value, old: &Value) -> ErrorList {
    let hooks = || meta::elements(old, "/webhooks").iter();
    let mut names: Vec<&str> = hooks().map(|hook| meta::text(hook, "/name")).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    check(
        configuration,
        Leniency {
            any_side_effects: !hooks().all(|hook| matches!(meta::text(hook, "/sideEffects"), "None" | "NoneOnDryRun")),
            any_review_versions: !hooks().all(|hook| {
                let versions = meta::elements(hook, "/admissionReviewVersions");
                versions.is_empty() || versions.iter().any(is_known)
            }),
            repeated_names: names.len() != all,
            any_conditions: conditions(configuration) == conditions(old),
            any_label_values: hooks().any(|hook| !selectors(hook, false, &Path::root()).is_empty()),
        },
    )
}

fn conditions(configuration: &Value) -> Vec<Option<&Value>> {
    let hooks = meta::elements(configuration, "/webhooks").iter();
    hooks.map(|hook| hook.get("matchConditions")).collect()
}

fn is_known(version: &Value) -> bool {
    matches!(version.as_str(), Some("v1" | "v1beta1"))
}

fn check(configuration: &Value, leniency: Leniency) -> ErrorList {
    let mutating = meta::text(configuration, "/kind").starts_with("Mutating");
    let mut errors = ErrorList::new();
    let mut seen: Vec<&str> = Vec::new();
    for (at, hook) in meta::elements(configuration, "/webhooks").iter().enumerate() {
        let path = Path::new("webhooks").index(at);
        webhook(hook, mutating, leniency, &path, &mut errors);
        review_versions(hook, leniency, &path.child("admissionReviewVersions"), &mut errors);
        let name = meta::text(hook, "/name");
        if !leniency.repeated_names && !name.is_empty() {
            if seen.contains(&name) {
                errors.push(Error::duplicate(&path.child("name"), name));
            }
            seen.push(name);
        }
    }
    errors
}

fn webhook(hook: &Value, mutating: bool, leniency: Leniency, path: &Path, errors: &mut ErrorList) {
    errors.extend(fully_qualified_name(meta::text(hook, "/name"), &path.child("name")));
    for (at, one) in meta::elements(hook, "/rules").iter().enumerate() {
        rule(one, &path.child("rules").index(at), errors);
    }
    let mut one_of = |key: &str, supported: &[&str]| {
        if let Some(value) = hook.get(key).and_then(Value::as_str)
            && !supported.contains(&value)
        {
            errors.push(Error::not_supported(&path.child(key), value, supported));
        }
    };
    one_of("failurePolicy", &["Fail", "Ignore"]);
    one_of("matchPolicy", &["Equivalent", "Exact"]);
    let side_effects: &[&str] = match leniency.any_side_effects {
        true => &["None", "NoneOnDryRun", "Some", "Unknown"],
        false => &["None", "NoneOnDryRun"],
    };
    one_of("sideEffects", side_effects);
    if hook.get("sideEffects").is_none_or(Value::is_null) {
        let why = format!("must specify one of {}", side_effects.join(", "));
        errors.push(Error::required(&path.child("sideEffects"), why));
    }
    if let Some(seconds) = hook.get("timeoutSeconds").and_then(Value::as_i64)
        && !(1..=30).contains(&seconds)
    {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.push(Error::invalid(&path.child("timeoutSeconds"), seconds, why));
    }
    errors.extend(selectors(hook, leniency.any_label_values, path));
    if mutating
        && let Some(policy) = hook.get("reinvocationPolicy").and_then(Value::as_str)
        && !matches!(policy, "Never" | "IfNeeded")
    {
        let supported = ["IfNeeded", "Never"];
        errors.push(Error::not_supported(
            &path.child("reinvocationPolicy"),
            policy,
            &supported,
        ));
    }
    client_config(
        hook.get("clientConfig").unwrap_or(&Value::Null),
        &path.child("clientConfig"),
        errors,
    );
    if !leniency.any_conditions {
        match_conditions(hook, false, &path.child("matchConditions"), errors);
    }
}

/// Checks match conditions. `params` tells whether they know a policy's parameters.
pub(super) fn match_conditions(object: &Value, params: bool, path: &Path, errors: &mut ErrorList) {
    let conditions = meta::elements(object, "/matchConditions");
    if conditions.len() > CONDITIONS {
        errors.push(Error::too_many(path, conditions.len(), CONDITIONS));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (at, condition) in conditions.iter().enumerate() {
        let path = path.index(at);
        let expression = meta::text(condition, "/expression").trim();
        if expression.is_empty() {
            errors.push(Error::required(&path.child("expression"), ""));
        } else if let Some(fault) = conditions::compile(expression, params).error() {
            errors.push(fault.at(&path.child("expression"), expression));
        }
        let name = meta::text(condition, "/name");
        if name.is_empty() {
            errors.push(Error::required(&path.child("name"), ""));
            continue;
        }
        let wrong = names::qualified_name(name).into_iter();
        errors.extend(wrong.map(|why| Error::invalid(&path.child("name"), name, why)));
        match seen.contains(&name) {
            true => errors.push(Error::duplicate(&path.child("name"), name)),
            false => seen.push(name),
        }
    }
}

/// Checks both selectors; values of labels only where they are to be.
fn selectors(hook: &Value, any_label_values: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for key in ["namespaceSelector", "objectSelector"] {
        let selector = hook.get(key).filter(|selector| !selector.is_null());
        if let Some(selector) = selector.and_then(|selector| serde_json::from_value(selector.clone()).ok()) {
            errors.extend(validate_label_selector(&selector, &path.child(key)));
        }
    }
    if any_label_values {
        errors.retain(|error| !error.body().contains("a valid label must be"));
    }
    errors
}

/// Checks where a webhook is.
pub(super) fn client_config(config: &Value, path: &Path, errors: &mut ErrorList) {
    let url = config.get("url").and_then(Value::as_str);
    let service = config.get("service").filter(|service| service.is_object());
    match (url, service) {
        (Some(url), None) => errors.extend(webhook_url(url, &path.child("url"))),
        (None, Some(service)) => errors.extend(webhook_service(service, &path.child("service"))),
        _ => errors.push(Error::required(path, "exactly one of url or service is required")),
    }
}

/// A DNS name of at least three parts.
fn fully_qualified_name(name: &str, path: &Path) -> ErrorList {
    if name.is_empty() {
        return vec![Error::required(path, "")];
    }
    let wrong = names::dns_subdomain(name);
    if !wrong.is_empty() {
        return vec![Error::invalid(path, name, wrong.join(","))];
    }
    match name.split('.').count() < 3 {
        true => vec![Error::invalid(
            path,
            name,
            "should be a domain with at least three segments separated by dots",
        )],
        false => Vec::new(),
    }
}

fn texts(object: &Value, key: &str) -> Vec<String> {
    let list = object.get(key).and_then(Value::as_array).into_iter().flatten();
    list.map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
}

/// Checks which requests a rule is for.
pub(super) fn rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let only = |key: &str, what: &str, errors: &mut ErrorList| {
        let list = texts(rule, key);
        let path = path.child(key);
        if list.is_empty() {
            errors.push(Error::required(&path, ""));
        }
        if list.len() > 1 && list.iter().any(|one| one == "*") {
            let why = format!("if '*' is present, must not specify other {what}");
            errors.push(Error::invalid(&path, list.clone(), why));
        }
        list
    };
    for (at, operation) in only("operations", "operations", errors).iter().enumerate() {
        if !OPERATIONS.contains(&operation.as_str()) {
            let path = path.child("operations").index(at);
            errors.push(Error::not_supported(&path, operation.as_str(), &OPERATIONS));
        }
    }
    only("apiGroups", "API groups", errors);
    for (at, version) in only("apiVersions", "API versions", errors).iter().enumerate() {
        if version.is_empty() {
            errors.push(Error::required(&path.child("apiVersions").index(at), ""));
        }
    }
    resources(&texts(rule, "resources"), &path.child("resources"), errors);
    if let Some(scope) = rule.get("scope").and_then(Value::as_str)
        && !matches!(scope, "*" | "Cluster" | "Namespaced")
    {
        let supported = ["*", "Cluster", "Namespaced"];
        errors.push(Error::not_supported(&path.child("scope"), scope, &supported));
    }
}

fn resources(resources: &[String], path: &Path, errors: &mut ErrorList) {
    if resources.is_empty() {
        errors.push(Error::required(path, ""));
    }
    let (mut all_of, mut in_all): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    // as upstream has it, the last resource without a subresource decides
    let mut has_plain = false;
    for (at, resource) in resources.iter().enumerate() {
        let path = path.index(at);
        if resource.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        let Some((plural, subresource)) = resource.split_once('/') else {
            has_plain = resource != "*";
            continue;
        };
        let mut excluded = |by: String| {
            let why = format!("if '{by}' is present, must not specify {resource}");
            errors.push(Error::invalid(&path, resource.as_str(), why));
        };
        if all_of.contains(&plural) {
            excluded(format!("{plural}/*"));
        }
        if in_all.contains(&subresource) {
            excluded(format!("*/{subresource}"));
        }
        if subresource == "*" {
            all_of.push(plural);
        }
        if plural == "*" {
            in_all.push(subresource);
        }
    }
    let has = |one: &str| resources.iter().any(|own| own == one);
    if resources.len() > 1 && has("*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        errors.push(Error::invalid(path, resources.to_vec(), why));
    }
    if has("*") && has_plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(Error::invalid(path, resources.to_vec(), why));
    }
}

fn review_versions(hook: &Value, leniency: Leniency, path: &Path, errors: &mut ErrorList) {
    let versions = texts(hook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.push(Error::required(path, format!("must specify one of {REVIEW_VERSIONS}")));
        return;
    }
    conversion_review_versions(&versions, path, errors);
    if !leniency.any_review_versions
        && !versions
            .iter()
            .any(|version| matches!(version.as_str(), "v1" | "v1beta1"))
    {
        let why = format!("must include at least one of {REVIEW_VERSIONS}");
        errors.push(Error::invalid(path, versions, why));
    }
}

/// Checks names of review versions: each is a label, and stands there once.
pub(super) fn conversion_review_versions(versions: &[String], path: &Path, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (at, version) in versions.iter().enumerate() {
        let path = path.index(at);
        if !seen.insert(version) {
            errors.push(Error::invalid(&path, version.as_str(), "duplicate version"));
            continue;
        }
        let wrong = names::dns1035_label(version).into_iter();
        errors.extend(wrong.map(|why| Error::invalid(&path, version.as_str(), why)));
    }
}

const FORM: &str = "; desired format: https://host[/path]";

fn webhook_url(text: &str, path: &Path) -> ErrorList {
    let parts = match Link::parse(text) {
        Ok(parts) => parts,
        Err(why) => {
            return vec![Error::required(path, format!("url must be a valid URL: {why}{FORM}"))];
        }
    };
    let mut errors = ErrorList::new();
    if parts.scheme() != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(Error::invalid(path, parts.scheme(), why));
    }
    if parts.host().is_empty() {
        errors.push(Error::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = parts.user() {
        errors.push(Error::invalid(
            path,
            user,
            "user information is not permitted in the URL",
        ));
    }
    for (part, why) in [
        (parts.fragment(), "fragments are not permitted in the URL"),
        (parts.query(), "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            errors.push(Error::invalid(path, part, why));
        }
    }
    errors
}

fn webhook_service(service: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    // upstream tells each of the two by the other's name
    for (own, told) in [("/namespace", "name"), ("/name", "namespace")] {
        if meta::text(service, own).is_empty() {
            errors.push(Error::required(&path.child(told), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(Error::invalid(&path.child("port"), port, why));
    }
    let url_path = meta::text(service, "/path");
    if url_path.is_empty() || url_path == "/" {
        return errors;
    }
    let path = path.child("path");
    let mut invalid = |why: String| errors.push(Error::invalid(&path, url_path, why));
    if url_path == "//" {
        invalid("segment[0] may not be empty".to_owned());
        return errors;
    }
    if !url_path.starts_with('/') {
        invalid("must start with a '/'".to_owned());
    }
    // the first character goes, whether it is the slash or not
    let mut characters = url_path.chars();
    characters.next();
    let inner = characters.as_str();
    for (at, step) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        if step.is_empty() {
            invalid(format!("segment[{at}] may not be empty"));
            continue;
        }
        for why in names::dns_subdomain(step) {
            invalid(format!("segment[{at}]: {why}"));
        }
    }
    errors
}
