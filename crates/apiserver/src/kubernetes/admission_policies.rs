//! Admission policies and their bindings as objects: what must hold of them, but for their expressions, which nobody evaluates yet.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use serde_json::{Value, json};

use super::checks::{label_selector, list, spec_of, syntax, text};
use super::strategy::Kind;
use super::{defaults, webhooks};
use crate::meta;

/// What requests a policy or binding is for.
fn validate_matches(resources: &Value, path: &Path, errors: &mut ErrorList) {
    let policies = ["Equivalent", "Exact"];
    if let Some(policy) = resources.get("matchPolicy").and_then(Value::as_str)
        && !policies.contains(&policy)
    {
        errors.push(Error::not_supported(&path.child("matchPolicy"), policy, &policies));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = resources.get(key).filter(|selector| selector.is_object()) {
            label_selector(selector, &path.child(key), errors);
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in list(resources, key).iter().enumerate() {
            webhooks::rule(rule, &path.child(key).index(index), errors);
        }
    }
}

fn validate_policy(policy: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(policy), Path::new("spec"));
    let on_failure = ["Fail", "Ignore"];
    let own = text(spec, "failurePolicy");
    if !on_failure.contains(&own) {
        errors.push(Error::not_supported(&path.child("failurePolicy"), own, &on_failure));
    }
    if let Some(kind) = spec.get("paramKind") {
        validate_kind(kind, &path.child("paramKind"), &mut errors);
    }
    match spec.get("matchConstraints") {
        None => errors.push(Error::required(&path.child("matchConstraints"), "")),
        Some(constraints) => {
            let path = path.child("matchConstraints");
            let before = errors.len();
            validate_matches(constraints, &path, &mut errors);
            if errors.len() == before && list(constraints, "resourceRules").is_empty() {
                errors.push(Error::required(&path.child("resourceRules"), ""));
            }
        }
    }
    errors
}

/// What must hold of a policy that validates.
fn validate_validations(policy: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(policy), Path::new("spec"));
    let (validations, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.push(Error::required(&path.child("validations"), why));
        errors.push(Error::required(&path.child("auditAnnotations"), why));
        return errors;
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
    for (index, validation) in validations.iter().enumerate() {
        let at = path.child("validations").index(index);
        if text(validation, "expression").trim().is_empty() {
            errors.push(Error::required(&at.child("expression"), "expression is not specified"));
        }
        let message = text(validation, "message");
        if !message.is_empty() && message.trim().is_empty() {
            errors.push(Error::invalid(
                &at.child("message"),
                message,
                "message must be non-empty if specified",
            ));
        } else if message.contains('\n') {
            errors.push(Error::invalid(
                &at.child("message"),
                message,
                "must not contain line breaks",
            ));
        }
        let reason = text(validation, "reason");
        if !reason.is_empty() && !reasons.contains(&reason) {
            let told = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
            errors.push(Error::not_supported(&at.child("reason"), reason, &told));
        }
    }
    let mut keys: Vec<&str> = Vec::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let at = path.child("auditAnnotations").index(index);
        let key = text(annotation, "key");
        if !key.is_empty() {
            let whole = format!("{}/{key}", meta::name(policy));
            let wrong = names::qualified_name(&whole);
            syntax(wrong, &whole, &at.child("key"), &mut errors);
        } else {
            errors.push(Error::required(&at.child("key"), ""));
        }
        if text(annotation, "valueExpression").trim().is_empty() {
            errors.push(Error::required(
                &at.child("valueExpression"),
                "valueExpression is not specified",
            ));
        }
        if keys.contains(&key) {
            errors.push(Error::duplicate(&at.child("key"), key));
        }
        keys.push(key);
    }
    errors
}

fn validate_kind(kind: &Value, path: &Path, errors: &mut ErrorList) {
    let version = text(kind, "apiVersion");
    let at = path.child("apiVersion");
    match version.split('/').collect::<Vec<_>>().as_slice() {
        _ if version.is_empty() => errors.push(Error::required(&at, "")),
        [version] => syntax(names::dns1035_label(version), version, &at, errors),
        [group, version] => {
            syntax(names::dns_subdomain(group), group, &at, errors);
            syntax(names::dns1035_label(version), version, &at, errors);
        }
        _ => errors.push(Error::invalid(
            &at,
            version,
            format!("unexpected GroupVersion string: {version}"),
        )),
    }
    let (own, at) = (text(kind, "kind"), path.child("kind"));
    if own.is_empty() {
        errors.push(Error::required(&at, ""));
        return;
    }
    let wrong = names::dns1035_label(&own.to_lowercase());
    if !wrong.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        errors.push(Error::invalid(&at, own, why));
    }
}

/// Policies that validate, or change.
pub(super) fn policies(mut kind: Kind, validates: bool) -> Kind {
    kind.default = |policy| {
        if let Some(members) = policy.as_object_mut() {
            members.entry("spec").or_insert_with(|| json!({}));
        }
        defaults::admission_policy(policy);
    };
    kind.validate_create = if validates {
        |policy| {
            let mut errors = validate_policy(policy);
            errors.extend(validate_validations(policy));
            errors
        }
    } else {
        validate_policy
    };
    kind.validate_update = if validates {
        |policy, old| match spec_of(policy) == spec_of(old) {
            true => ErrorList::new(),
            false => {
                let mut errors = validate_policy(policy);
                errors.extend(validate_validations(policy));
                errors
            }
        }
    } else {
        |policy, old| match spec_of(policy) == spec_of(old) {
            true => ErrorList::new(),
            false => validate_policy(policy),
        }
    };
    kind
}

fn validate_params(reference: &Value, path: &Path, errors: &mut ErrorList) {
    let (name, selector) = (text(reference, "name"), reference.get("selector"));
    match (name.is_empty(), selector) {
        (false, Some(_)) => {
            let why = "name and selector are mutually exclusive";
            errors.push(Error::forbidden(&path.child("name"), why));
            errors.push(Error::forbidden(&path.child("selector"), why));
        }
        (true, None) => errors.push(Error::required(path, "one of name or selector must be specified")),
        (false, None) => syntax(names::path_segment(name), name, &path.child("name"), errors),
        (true, Some(selector)) => label_selector(selector, &path.child("selector"), errors),
    }
    let known = ["Deny", "Allow"];
    let at = path.child("parameterNotFoundAction");
    match text(reference, "parameterNotFoundAction") {
        "" => errors.push(Error::required(&at, "")),
        own if !known.contains(&own) => errors.push(Error::not_supported(&at, own, &known)),
        _ => {}
    }
}

fn validate_binding(binding: &Value, validates: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(binding), Path::new("spec"));
    let (policy, at) = (text(spec, "policyName"), path.child("policyName"));
    match policy {
        "" => errors.push(Error::required(&at, "")),
        policy => syntax(names::dns_subdomain(policy), policy, &at, &mut errors),
    }
    if let Some(reference) = spec.get("paramRef") {
        validate_params(reference, &path.child("paramRef"), &mut errors);
    }
    if let Some(resources) = spec.get("matchResources") {
        validate_matches(resources, &path.child("matchResources"), &mut errors);
    }
    if !validates {
        return errors;
    }
    let (actions, at) = (list(spec, "validationActions"), path.child("validationActions"));
    if actions.is_empty() {
        errors.push(Error::required(&at, "at least one validation action is required"));
    }
    let known = ["Audit", "Deny", "Warn"];
    for (index, own) in actions.iter().enumerate() {
        if actions.iter().take(index).any(|other| other == own) {
            errors.push(Error::duplicate(&at.index(index), own.clone()));
        }
        let own = own.as_str().unwrap_or_default();
        if !known.contains(&own) {
            errors.push(Error::not_supported(&at.index(index), own, &known));
        }
    }
    let has = |action: &str| actions.iter().any(|own| own == action);
    if has("Deny") && has("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.push(Error::invalid(&at, actions.to_vec(), why));
    }
    errors
}

/// Bindings of policies that validate, or change.
pub(super) fn bindings(mut kind: Kind, validates: bool) -> Kind {
    kind.default = defaults::admission_policy_binding;
    kind.validate = if validates {
        |binding| validate_binding(binding, true)
    } else {
        |binding| validate_binding(binding, false)
    };
    kind
}
