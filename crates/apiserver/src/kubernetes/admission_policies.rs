//! Admission policies and their bindings as objects: what must hold of them. What they decide is [`crate::policies`].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use gardener_cel::Environment;
use serde_json::{Value, json};

use super::checks::{label_selector, list, spec_of, syntax, text};
use super::strategy::Kind;
use super::{defaults, internal, jobs, webhooks};
use crate::definition::Context;
use crate::intercept::expressions::{Expression, Returns};
use crate::intercept::matching::GROUP;
use crate::meta;
use crate::policies::rules::Compiler;
use crate::user::UserInfo;

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
            let path = path.child(key).index(index);
            resource_names(list(rule, "resourceNames"), &path.child("resourceNames"), errors);
            webhooks::rule(rule, &path, errors);
        }
    }
}

fn resource_names(all: &[Value], path: &Path, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, name) in all.iter().enumerate() {
        let (name, path) = (name.as_str().unwrap_or_default(), path.index(index));
        syntax(names::path_segment(name), name, &path, errors);
        if !seen.insert(name) {
            errors.push(Error::duplicate(&path, name));
        }
    }
}

/// What must hold of all policies. `old` is the policy before, if there was one.
fn validate_policy(policy: &Value, old: Option<&Value>, validates: bool, compiler: &mut Compiler) -> ErrorList {
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
            validate_matches(constraints, &path, &mut errors);
            if list(constraints, "resourceRules").is_empty() {
                errors.push(Error::required(&path.child("resourceRules"), ""));
            }
            if !validates {
                validate_mutated(constraints, &path, &mut errors);
            }
        }
    }
    let same = |key: &str| old.is_some_and(|old| spec_of(old).get(key) == spec.get(key));
    // conditions that stay are not looked at again
    if !same("paramKind") || !same("matchConditions") {
        let path = path.child("matchConditions");
        webhooks::match_conditions(spec, spec.get("paramKind").is_some(), &path, &mut errors);
    }
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        validate_variable(variable, compiler, &path.child("variables").index(index), &mut errors);
    }
    errors
}

fn validate_variable(variable: &Value, compiler: &mut Compiler, path: &Path, errors: &mut ErrorList) {
    let (name, source) = (text(variable, "name"), text(variable, "expression"));
    if name.trim().is_empty() {
        errors.push(Error::required(&path.child("name"), "name is not specified"));
    } else if !gardener_cel::is_identifier(name) {
        let why = "must be a valid CEL identifier";
        errors.push(Error::invalid(&path.child("name"), name, why));
    }
    let path = path.child("expression");
    if source.trim().is_empty() {
        errors.push(Error::required(&path, "expression is not specified"));
    } else if let Some(fault) = compiler.variable(name, source) {
        errors.push(fault.at(&path, source));
    }
}

/// What must hold of an expression that is there.
fn validate_expression(
    source: &str,
    told: &str,
    environment: &Environment,
    returns: Returns,
    path: &Path,
    errors: &mut ErrorList,
) {
    if let Some(fault) = Expression::compile(environment, source, returns).error() {
        errors.push(fault.at(path, told));
    }
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// How many values for the audit log a policy may have.
const MAX_ANNOTATIONS: usize = 20;
/// How many bytes the expression of one may have.
const MAX_ANNOTATION: usize = 5 * 1024;

/// What must hold of a policy that validates.
fn validate_validations(policy: &Value, compiler: &Compiler) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(policy), Path::new("spec"));
    let (validations, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.push(Error::required(&path.child("validations"), why));
        errors.push(Error::required(&path.child("auditAnnotations"), why));
        return errors;
    }
    let (full, messages) = (compiler.full(), compiler.messages());
    for (index, validation) in validations.iter().enumerate() {
        let at = path.child("validations").index(index);
        validate_validation(validation, (&full, &messages), &at, &mut errors);
    }
    let path = path.child("auditAnnotations");
    if annotations.len() > MAX_ANNOTATIONS {
        let why = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
        let shown = internal::text("[]admissionregistration.AuditAnnotation", &annotations.to_vec().into());
        errors.push(Error::literal(&path, shown, why));
    }
    let mut keys: Vec<&str> = Vec::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let at = path.index(index);
        let key = text(annotation, "key");
        match meta::name(policy) {
            "" => errors.push(Error::invalid(
                &at.child("key"),
                key,
                "requires metadata.name be non-empty",
            )),
            name => {
                let whole = format!("{name}/{key}");
                syntax(names::qualified_name(&whole), &whole, &at.child("key"), &mut errors);
            }
        }
        let told = text(annotation, "valueExpression");
        let (source, place) = (told.trim(), at.child("valueExpression"));
        if source.is_empty() {
            errors.push(Error::required(&place, "valueExpression is not specified"));
        } else if source.len() > MAX_ANNOTATION {
            let why = format!("must not exceed {MAX_ANNOTATION} bytes in length");
            errors.push(Error::required(&place, why));
        } else {
            validate_expression(source, told, &full, Returns::TextOrNull, &place, &mut errors);
        }
        if keys.contains(&key) {
            errors.push(Error::duplicate(&at.child("key"), key));
        }
        keys.push(key);
    }
    errors
}

fn validate_validation(
    validation: &Value,
    (full, messages): (&Environment, &Environment),
    at: &Path,
    errors: &mut ErrorList,
) {
    let source = text(validation, "expression");
    let place = at.child("expression");
    match source.trim() {
        "" => errors.push(Error::required(&place, "expression is not specified")),
        _ => validate_expression(source, source, full, Returns::Bool, &place, errors),
    }
    let source = text(validation, "messageExpression");
    let place = at.child("messageExpression");
    match source.trim() {
        "" if source.is_empty() => {}
        "" => errors.push(Error::invalid(&place, source, "must be non-empty if specified")),
        _ => validate_expression(source, source, messages, Returns::Text, &place, errors),
    }
    let message = text(validation, "message");
    let place = at.child("message");
    if !message.is_empty() && message.trim().is_empty() {
        errors.push(Error::invalid(&place, message, "must be non-empty if specified"));
    } else if has_line_breaks(message.trim()) {
        errors.push(Error::invalid(&place, message, "must not contain line breaks"));
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    if let Some(reason) = validation.get("reason").and_then(Value::as_str)
        && !reasons.contains(&reason)
    {
        errors.push(Error::not_supported(&at.child("reason"), reason, &reasons));
    }
}

/// What is wrong with a policy, and what with the rest of one that validates.
fn validate(policy: &Value, old: Option<&Value>, validates: bool) -> ErrorList {
    let spec = spec_of(policy);
    let mut compiler = Compiler::new(
        spec.get("paramKind").is_some(),
        !validates || !list(spec, "variables").is_empty(),
    );
    let mut errors = validate_policy(policy, old, validates, &mut compiler);
    errors.extend(match validates {
        true => validate_validations(policy, &compiler),
        false => validate_mutations(spec, &compiler),
    });
    errors
}

/// Only what is created or updated can be changed.
fn validate_mutated(resources: &Value, path: &Path, errors: &mut ErrorList) {
    let known = ["*", "CONNECT", "CREATE", "UPDATE"];
    let rules = list(resources, "resourceRules").iter();
    let operations = rules
        .flat_map(|rule| list(rule, "operations"))
        .filter_map(Value::as_str);
    let at = path.child("resourceRules").child("operations");
    errors.extend(
        operations
            .filter(|own| !known.contains(own))
            .map(|own| Error::not_supported(&at, own, &known)),
    );
}

/// What must hold of a policy that changes objects.
fn validate_mutations(spec: &Value, compiler: &Compiler) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let mutations = list(spec, "mutations");
    if mutations.is_empty() {
        let why = "mutations must contain at least one item";
        errors.push(Error::required(&path.child("mutations"), why));
    }
    let environment = compiler.patches();
    for (index, mutation) in mutations.iter().enumerate() {
        validate_mutation(
            mutation,
            &environment,
            &path.child("mutations").index(index),
            &mut errors,
        );
    }
    let (own, at) = (text(spec, "reinvocationPolicy"), path.child("reinvocationPolicy"));
    let known = ["IfNeeded", "Never"];
    match own {
        "" => errors.push(Error::required(&at, "")),
        own if !known.contains(&own) => errors.push(Error::not_supported(&at, own, &known)),
        _ => {}
    }
    errors
}

fn validate_mutation(mutation: &Value, environment: &Environment, path: &Path, errors: &mut ErrorList) {
    const FORMS: [(&str, &str, Returns); 2] = [
        ("ApplyConfiguration", "applyConfiguration", Returns::Configuration),
        ("JSONPatch", "jsonPatch", Returns::Patch),
    ];
    let own = text(mutation, "patchType");
    if own.is_empty() {
        return errors.push(Error::required(&path.child("patchType"), ""));
    }
    let Some((_, wanted, returns)) = FORMS.iter().find(|(form, ..)| *form == own) else {
        return errors.push(Error::not_supported(
            &path.child("patchType"),
            own,
            &FORMS.map(|(form, ..)| form),
        ));
    };
    match mutation.get(*wanted) {
        None => {
            let why = format!("must be specified when patchType is {own}");
            errors.push(Error::required(&path.child(wanted), why));
        }
        Some(patch) => {
            let (told, at) = (text(patch, "expression"), path.child(wanted).child("expression"));
            match told.trim() {
                "" => errors.push(Error::required(&at, "")),
                source => validate_expression(source, source, environment, *returns, &at, errors),
            }
        }
    }
    for (_, other, _) in FORMS
        .iter()
        .filter(|(form, key, _)| *form != own && mutation.get(*key).is_some())
    {
        let why = format!("must not be specified when patchType is {own}");
        errors.push(Error::invalid(&path.child(other), format!("{{{other}}}"), why));
    }
}

fn validate_kind(kind: &Value, path: &Path, errors: &mut ErrorList) {
    let told = text(kind, "apiVersion");
    let at = path.child("apiVersion");
    let (group, version) = told.split_once('/').unwrap_or(("", told));
    let joined =
        |value: &str, wrong: Vec<String>| (!wrong.is_empty()).then(|| Error::invalid(&at, value, wrong.join(",")));
    if told.is_empty() {
        errors.push(Error::required(&at, ""));
    } else if version.contains('/') {
        let why = format!("unexpected GroupVersion string: {told}");
        errors.push(Error::invalid(&at, told, why));
    } else {
        if !group.is_empty() {
            errors.extend(joined(group, names::dns_subdomain(group)));
        }
        match version {
            "" => errors.push(Error::invalid(&at, told, "version must be specified")),
            version => errors.extend(joined(version, names::dns1035_label(version))),
        }
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

/// Of which kind parameters are: group, version and kind.
fn param_kind(policy: &Value) -> Option<(&str, &str, &str)> {
    let kind = spec_of(policy).get("paramKind")?;
    let (version, kind) = (text(kind, "apiVersion"), text(kind, "kind"));
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Some((group, version, kind))
}

/// Whether somebody may read what a policy reads: a policy shows its parameters to everybody.
fn authorize_policy(context: &Context<'_>, policy: &Value, old: Option<&Value>) -> ErrorList {
    let Some((group, version, kind)) = param_kind(policy) else {
        return ErrorList::new();
    };
    if context.user.is_master() || old.and_then(param_kind) == Some((group, version, kind)) {
        return ErrorList::new();
    }
    let resource = resource_of(context, group, version, kind);
    let resource = resource.as_deref().unwrap_or("*");
    if context.lister.allowed(context.user, "get", group, resource, "*", "*") {
        return ErrorList::new();
    }
    let why = format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, apiVersion={})",
        shown(context.user),
        text(spec_of(policy).get("paramKind").unwrap_or(&Value::Null), "apiVersion"),
    );
    vec![Error::forbidden(&Path::new("spec").child("paramKind"), why)]
}

/// Whether somebody may read the parameters to which a binding refers.
/// `policies` is the resource of the policies that are bound.
fn authorize_binding(context: &Context<'_>, binding: &Value, old: Option<&Value>, policies: &str) -> ErrorList {
    let spec = spec_of(binding);
    let Some(reference) = spec.get("paramRef") else {
        return ErrorList::new();
    };
    let same = |key: &str| old.is_some_and(|old| spec_of(old).get(key) == spec.get(key));
    if context.user.is_master() || same("paramRef") && same("policyName") {
        return ErrorList::new();
    }
    let name = text(reference, "name");
    let verb = if name.is_empty() { "list" } else { "get" };
    let policy_name = text(spec, "policyName");
    let policy = context.lister.get(GROUP, policies, "", policy_name);
    let kind = policy.as_deref().and_then(param_kind);
    let resource = kind.and_then(|(group, version, kind)| resource_of(context, group, version, kind));
    let (group, resource) = match kind {
        Some((group, ..)) => (group, resource.as_deref().unwrap_or("*")),
        None => ("*", "*"),
    };
    let namespace = text(reference, "namespace");
    if context
        .lister
        .allowed(context.user, verb, group, resource, namespace, name)
    {
        return ErrorList::new();
    }
    let user = shown(context.user);
    let all = "permission for all groups, versions and resources";
    let why = match (&policy, kind) {
        (None, _) => format!(
            "unable to get policy {policy_name} to determine minimum required permissions and user {user} does not have \"{verb}\" {all}"
        ),
        (Some(_), Some((group, version, kind))) if resource == "*" => format!(
            "unable to resolve paramKind {} to determine minimum required permissions and user {user} does not have \"{verb}\" {all}",
            shown_kind(group, version, kind)
        ),
        _ => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
    };
    vec![Error::forbidden(&Path::new("spec").child("paramRef"), why)]
}

fn resource_of(context: &Context<'_>, group: &str, version: &str, kind: &str) -> Option<String> {
    let definition = context.lister.cluster()?.of_kind(group, version, kind)?;
    Some(definition.plural.clone())
}

/// A user as Go prints one.
fn shown(user: &UserInfo) -> String {
    let extra = user.extra.iter();
    let extra: Vec<String> = extra
        .map(|(key, values)| format!("{key}:[{}]", values.join(" ")))
        .collect();
    format!(
        "&{{{} {} [{}] map[{}]}}",
        user.name,
        user.uid,
        user.groups.join(" "),
        extra.join(" ")
    )
}

/// A kind as Go prints a policy's.
fn shown_kind(group: &str, version: &str, kind: &str) -> String {
    let version = match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    format!("&{{{version} {kind}}}")
}

/// What is wrong with a changed policy.
fn update(policy: &Value, old: &Value, validates: bool) -> ErrorList {
    match spec_of(policy) == spec_of(old) {
        true => ErrorList::new(),
        false => validate(policy, Some(old), validates),
    }
}

/// Policies that validate, or change.
pub(super) fn policies(mut kind: Kind, validates: bool) -> Kind {
    kind.warnings = |policy, _| webhooks::warn_of_name(policy);
    kind.default = |policy| {
        if let Some(members) = policy.as_object_mut() {
            members.entry("spec").or_insert_with(|| json!({}));
        }
        defaults::admission_policy(policy);
    };
    kind.authorize = authorize_policy;
    kind.validate_create = match validates {
        true => |policy| validate(policy, None, true),
        false => |policy| validate(policy, None, false),
    };
    kind.validate_update = match validates {
        true => |policy, old| update(policy, old, true),
        false => |policy, old| update(policy, old, false),
    };
    kind.validate_status = |policy, _| {
        let mut errors = ErrorList::new();
        let path = Path::new("status").child("typeChecking").child("expressionWarnings");
        let warnings = meta::elements(policy, "/status/typeChecking/expressionWarnings");
        for (index, warning) in warnings.iter().enumerate() {
            for key in ["warning", "fieldRef"] {
                let own = text(warning, key);
                let is_empty = if key == "fieldRef" {
                    own.trim().is_empty()
                } else {
                    own.is_empty()
                };
                if is_empty {
                    errors.push(Error::required(&path.index(index).child(key), ""));
                }
            }
        }
        jobs::conditions_in(
            policy.get("status").unwrap_or(&Value::Null),
            &Path::new("status"),
            &mut errors,
        );
        errors
    };
    kind
}

fn validate_params(reference: &Value, path: &Path, errors: &mut ErrorList) {
    let (name, selector) = (text(reference, "name"), reference.get("selector"));
    let exclusive = "name and selector are mutually exclusive";
    if !name.is_empty() {
        let at = path.child("name");
        syntax(names::path_segment(name), name, &at, errors);
        if selector.is_some() {
            errors.push(Error::forbidden(&at, exclusive));
        }
    }
    if let Some(selector) = selector {
        let at = path.child("selector");
        label_selector(selector, &at, errors);
        if !name.is_empty() {
            errors.push(Error::forbidden(&at, exclusive));
        }
    }
    if name.is_empty() && selector.is_none() {
        errors.push(Error::required(path, "one of name or selector must be specified"));
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
        let path = path.child("matchResources");
        validate_matches(resources, &path, &mut errors);
        if !validates {
            validate_mutated(resources, &path, &mut errors);
        }
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
        let action = own.as_str().unwrap_or_default();
        if !known.contains(&action) {
            errors.push(Error::not_supported(&at.index(index), action, &known));
        }
        if actions.iter().take(index).any(|other| other == own) {
            errors.push(Error::duplicate(&at.index(index), own.clone()));
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
    kind.warnings = |binding, _| webhooks::warn_of_name(binding);
    kind.default = defaults::admission_policy_binding;
    kind.authorize = match validates {
        true => |context, binding, old| authorize_binding(context, binding, old, "validatingadmissionpolicies"),
        false => |context, binding, old| authorize_binding(context, binding, old, "mutatingadmissionpolicies"),
    };
    kind.validate = if validates {
        |binding| validate_binding(binding, true)
    } else {
        |binding| validate_binding(binding, false)
    };
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::strategy::kind_of;

    #[test]
    fn kinds_of_parameters_have_a_version() {
        for (version, expected) in [
            ("v1", None),
            ("a.b/v1", None),
            ("/v1", None),
            ("", Some("k.apiVersion: Required value")),
            (
                "/",
                Some("k.apiVersion: Invalid value: \"/\": version must be specified"),
            ),
            (
                "a.b/",
                Some("k.apiVersion: Invalid value: \"a.b/\": version must be specified"),
            ),
            (
                "a/b/c",
                Some("k.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"),
            ),
        ] {
            let mut errors = ErrorList::new();
            validate_kind(
                &json!({"apiVersion": version, "kind": "A"}),
                &Path::new("k"),
                &mut errors,
            );
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected: Vec<&str> = expected.into_iter().collect();
            assert_eq!(errors, expected, "{version}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_binds_a_policy_that_changes_objects_may_read_its_parameters() {
        let api = crate::testing::Api::open().await;
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({
            "metadata": {"name": "author"},
            "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}],
        });
        let binding = json!({
            "metadata": {"name": "author"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "author"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "author"}],
        });
        api.create(&format!("{rbac}/clusterroles"), &role).await.unwrap();
        api.create(&format!("{rbac}/clusterrolebindings"), &binding)
            .await
            .unwrap();
        let author = api.server.client("c", UserInfo::new("author", &[]));
        let refused = async |resource: &str, object: &Value| {
            let path = format!("/apis/{GROUP}/v1/{resource}");
            let request = http::Request::builder().method("POST").uri(path);
            let request = request.header("content-type", "application/json");
            match author
                .request::<Value>(request.body(object.to_string().into_bytes()).unwrap())
                .await
            {
                Err(kube::Error::Api(status)) => status.message,
                other => panic!("{other:?}"),
            }
        };
        let policy = json!({"metadata": {"name": "p"}, "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "Secret"},
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
            ]},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}}],
        }});
        let told = refused("mutatingadmissionpolicies", &policy).await;
        let why =
            "must have \"get\" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)";
        assert!(
            told.contains("spec.paramKind: Forbidden") && told.contains(why),
            "{told}"
        );
        let path = format!("/apis/{GROUP}/v1/mutatingadmissionpolicies");
        api.create(&path, &policy).await.unwrap();
        let binding = json!({"metadata": {"name": "b"}, "spec": {
            "policyName": "p",
            "paramRef": {"name": "s", "namespace": "n", "parameterNotFoundAction": "Deny"},
        }});
        let told = refused("mutatingadmissionpolicybindings", &binding).await;
        let why = "does not have \"get\" permission on the object referenced by paramRef";
        assert!(
            told.contains("spec.paramRef: Forbidden") && told.contains(why),
            "{told}"
        );
    }

    #[test]
    fn warnings_of_expressions_tell_which() {
        let kind = kind_of(GROUP, "validatingadmissionpolicies");
        let told = json!([{"warning": "w", "fieldRef": "spec.a"}, {"warning": "", "fieldRef": " "}]);
        let policy = json!({"status": {"typeChecking": {"expressionWarnings": told}}});
        let errors = (kind.validate_status)(&policy, &policy);
        let at: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
        let path = "status.typeChecking.expressionWarnings[1]";
        assert_eq!(at, [format!("{path}.warning"), format!("{path}.fieldRef")]);
    }

    #[test]
    fn names_of_what_stands_in_files_are_told() {
        for resource in [
            "validatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ] {
            let warnings = |name: &str| (kind_of(GROUP, resource).warnings)(&json!({"metadata": {"name": name}}), None);
            assert_eq!(warnings("a.k8s.io"), [""; 0]);
            assert_eq!(warnings("a.static.k8s.io").len(), 1, "{resource}");
        }
    }
}
