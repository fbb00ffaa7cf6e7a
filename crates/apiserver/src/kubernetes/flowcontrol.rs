//! Flow schemas, priority levels, and API services: how requests find their way.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::{Map, Value, json};

use super::checks::{self, is_true, list, number, spec_of, syntax, text};
use super::strategy::Kind;
use super::workloads::set_status;
use super::{bootstrap, internal};
use crate::aggregation::LOCAL;
use crate::meta;

const VERBS: [&str; 9] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
const EXEMPT: &str = "exempt";
/// The bits of a hash by which a hand of queues is dealt.
const HASH_BITS: f64 = 60.0;
const MAX_QUEUES: i64 = 10_000_000;
const MAX_PRECEDENCE: i64 = 10_000;

fn fill(object: &mut Map<String, Value>, defaults: &[(&str, Value)], zero_is_unset: bool) {
    for (key, value) in defaults {
        let is_unset = object
            .get(*key)
            .is_none_or(|own| own.is_null() || zero_is_unset && own.as_i64() == Some(0));
        if is_unset {
            object.insert((*key).to_owned(), value.clone());
        }
    }
}

/// Types of conditions: each once.
fn conditions(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status").child("conditions");
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in meta::elements(object, "/status/conditions").iter().enumerate() {
        let (own, at) = (text(condition, "type"), path.index(index).child("type"));
        if seen.contains(&own) {
            errors.push(Error::duplicate(&at, own));
        }
        seen.push(own);
        if own.is_empty() {
            errors.push(Error::required(&at, ""));
        }
    }
    errors
}

fn texts<'v>(rule: &'v Value, key: &str) -> Vec<&'v str> {
    list(rule, key).iter().filter_map(Value::as_str).collect()
}

fn validate_verbs(rule: &Value, path: &Path, errors: &mut ErrorList) {
    let (verbs, at) = (texts(rule, "verbs"), path.child("verbs"));
    if verbs.is_empty() {
        errors.push(Error::required(&at, "verbs must contain at least one value"));
    } else if verbs.contains(&"*") {
        if verbs.len() > 1 {
            errors.push(Error::invalid(
                &at,
                json!(verbs),
                "if '*' is present, must not specify other verbs",
            ));
        }
    } else if !verbs.iter().all(|verb| VERBS.contains(verb)) {
        errors.push(Error::not_supported(&at, json!(verbs), &VERBS));
    }
}

fn validate_resource_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    validate_verbs(rule, path, errors);
    for (key, one, many) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let (own, at) = (texts(rule, key), path.child(key));
        if own.is_empty() {
            errors.push(Error::required(
                &at,
                format!("resource rules must supply at least one {one}"),
            ));
        } else if own.len() > 1 && own.contains(&"*") {
            let why = format!("if '*' is present, must not specify other {many}");
            errors.push(Error::invalid(&at, json!(own), why));
        }
    }
    let (namespaces, at) = (texts(rule, "namespaces"), path.child("namespaces"));
    if namespaces.is_empty() && !is_true(rule, "clusterScope") {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(Error::required(&at, why));
    } else if namespaces.contains(&"*") {
        if namespaces.len() > 1 {
            let why = "if '*' is present, must not specify other namespaces";
            errors.push(Error::invalid(&at, json!(namespaces), why));
        }
    } else {
        for (index, name) in namespaces.iter().enumerate() {
            for why in meta::dns1123_label(name) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                errors.push(Error::invalid(&at.index(index), *name, why));
            }
        }
    }
}

fn url_path(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("must not be empty");
    }
    if path == "/" {
        return None;
    }
    if !path.starts_with('/') {
        return Some("must start with slash");
    }
    if path.contains(' ') {
        return Some("must not contain white-space");
    }
    if path.contains("//") {
        return Some("must not contain double slash");
    }
    match path.matches('*').count() {
        0 => None,
        1 if path.ends_with("/*") => None,
        1 => Some("wildcard can only do suffix matching"),
        _ => Some("wildcard can only do suffix matching"),
    }
}

fn validate_url_rule(rule: &Value, path: &Path, errors: &mut ErrorList) {
    validate_verbs(rule, path, errors);
    let (urls, at) = (texts(rule, "nonResourceURLs"), path.child("nonResourceURLs"));
    if urls.is_empty() {
        errors.push(Error::required(&at, "nonResourceURLs must contain at least one value"));
    } else if urls.contains(&"*") {
        if urls.len() > 1 {
            let why = "if '*' is present, must not specify other non-resource URLs";
            errors.push(Error::invalid(&at, json!(urls), why));
        }
    } else {
        for (index, url) in urls.iter().enumerate() {
            errors.extend(url_path(url).map(|why| Error::invalid(&at.index(index), *url, why)));
        }
    }
}

/// Kinds of subjects with the members that tell them.
const SUBJECTS: [(&str, &str); 3] = [
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
    ("Group", "group"),
];

fn validate_subject(subject: &Value, path: &Path, errors: &mut ErrorList) {
    let kind = text(subject, "kind");
    let Some((_, own)) = SUBJECTS.iter().find(|(known, _)| *known == kind) else {
        let known = ["Group", "ServiceAccount", "User"];
        errors.push(Error::not_supported(&path.child("kind"), kind, &known));
        return;
    };
    let at = path.child(own);
    match subject.get(*own) {
        None => errors.push(Error::required(
            &at,
            format!("{own} is required when subject kind is '{kind}'"),
        )),
        Some(told) => {
            let name = text(told, "name");
            if name.is_empty() {
                errors.push(Error::required(&at.child("name"), ""));
            } else if kind == "ServiceAccount" && name != "*" {
                syntax(meta::dns1123_subdomain(name), name, &at.child("name"), errors);
            }
            if kind == "ServiceAccount" {
                match text(told, "namespace") {
                    "" => {
                        let why = "must specify namespace for service account";
                        errors.push(Error::required(&at.child("namespace"), why));
                    }
                    name => syntax(meta::dns1123_label(name), name, &at.child("namespace"), errors),
                }
            }
        }
    }
    for (other, key) in SUBJECTS
        .iter()
        .filter(|(known, key)| *known != kind && subject.get(*key).is_some())
    {
        let why = format!("{key} is forbidden when subject kind is not '{other}'");
        errors.push(Error::forbidden(&path.child(key), why));
    }
}

fn validate_schema(schema: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(schema), Path::new("spec"));
    let precedence = number(spec, "matchingPrecedence").unwrap_or(0);
    let at = path.child("matchingPrecedence");
    if precedence <= 0 {
        errors.push(Error::invalid(&at, precedence, "must be a positive value"));
    }
    if precedence > MAX_PRECEDENCE {
        let why = format!("must not be greater than {MAX_PRECEDENCE}");
        errors.push(Error::invalid(&at, precedence, why));
    }
    if precedence == 1 && meta::name(schema) != EXEMPT {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.push(Error::invalid(&at, precedence, why));
    }
    if let Some(method) = spec.get("distinguisherMethod") {
        let (own, known) = (text(method, "type"), ["ByNamespace", "ByUser"]);
        if !known.contains(&own) {
            let at = path.child("distinguisherMethod").child("type");
            let mut error = Error::not_supported(&at, "", &known);
            error.show_as(format!("{{\"Type\":{}}}", Value::from(own)));
            errors.push(error);
        }
    }
    let at = path.child("priorityLevelConfiguration").child("name");
    match meta::text(spec, "/priorityLevelConfiguration/name") {
        "" => errors.push(Error::required(&at, "must reference a priority level")),
        name => syntax(meta::dns1123_subdomain(name), name, &at, &mut errors),
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        let path = path.child("rules").index(index);
        let at = path.child("subjects");
        if list(rule, "subjects").is_empty() {
            errors.push(Error::required(&at, "subjects must contain at least one value"));
        }
        for (index, subject) in list(rule, "subjects").iter().enumerate() {
            validate_subject(subject, &at.index(index), &mut errors);
        }
        let (resources, urls) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
        if resources.is_empty() && urls.is_empty() {
            let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
            errors.push(Error::required(&path, why));
        }
        for (index, rule) in resources.iter().enumerate() {
            validate_resource_rule(rule, &path.child("resourceRules").index(index), &mut errors);
        }
        for (index, rule) in urls.iter().enumerate() {
            validate_url_rule(rule, &path.child("nonResourceRules").index(index), &mut errors);
        }
    }
    errors.extend(mandatory_schema(schema));
    errors.extend(conditions(schema));
    errors
}

/// Objects that no cluster is without, and which stay what they are.
const MANDATORY: [&str; 2] = [EXEMPT, "catch-all"];

/// What upstream has one of the mandatory objects be.
fn mandatory(object: &Value, plural: &str) -> Option<&'static Value> {
    let name = meta::name(object);
    MANDATORY
        .contains(&name)
        .then(|| bootstrap::recorded_spec("flowcontrol.apiserver.k8s.io", plural, name))?
}

fn mandatory_schema(schema: &Value) -> Option<Error> {
    let (name, spec) = (meta::name(schema), spec_of(schema));
    let wanted = mandatory(schema, "flowschemas")?;
    let why = || format!("spec of '{name}' must equal the fixed value");
    let shown = || internal::text("flowcontrol.FlowSchemaSpec", spec);
    (spec != wanted).then(|| Error::literal(&Path::new("spec"), shown(), why()))
}

/// How much an exempt level lends may be told; nothing else of a mandatory level.
fn mandatory_level(level: &Value) -> Option<Error> {
    let (name, spec) = (meta::name(level), spec_of(level));
    let wanted = mandatory(level, "prioritylevelconfigurations")?;
    let part = |spec: &Value| {
        let mut spec = spec.clone();
        if let Some(members) = spec.as_object_mut().filter(|_| name == EXEMPT) {
            members.remove("exempt");
        }
        spec
    };
    let except = if name == EXEMPT {
        " except the 'spec.exempt' field"
    } else {
        ""
    };
    let why = || format!("spec of '{name}'{except} must equal the fixed value");
    let shown = || internal::text("flowcontrol.PriorityLevelConfigurationSpec", spec);
    (part(spec) != part(wanted)).then(|| Error::literal(&Path::new("spec"), shown(), why()))
}

pub(super) fn flow_schemas(mut kind: Kind) -> Kind {
    kind.default = |schema| {
        let Some(members) = schema.as_object_mut() else { return };
        if let Some(spec) = members.entry("spec").or_insert_with(|| json!({})).as_object_mut() {
            fill(spec, &[("matchingPrecedence", json!(1000))], true);
        }
    };
    kind.row_order = Some(|schema| {
        schema
            .at("/spec/matchingPrecedence")
            .and_then(Value::as_i64)
            .unwrap_or(0)
    });
    kind.validate = validate_schema;
    kind.validate_status = |schema, _| conditions(schema);
    kind
}

fn shares(level: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(shares) = number(level, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
        let why = "must be a non-negative integer";
        errors.push(Error::invalid(&path.child("nominalConcurrencyShares"), shares, why));
    }
}

fn lendable(level: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(percent) = number(level, "lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        let why = "must be between 0 and 100, inclusive";
        errors.push(Error::invalid(&path.child("lendablePercent"), percent, why));
    }
}

/// The bits that choose a hand among queues.
#[allow(clippy::cast_precision_loss)] // numbers are small, and upstream computes so
fn entropy(queues: i64, hand: i64) -> i64 {
    let choices = (0..hand).map(|taken| ((queues - taken) as f64).log2()).sum::<f64>();
    #[allow(clippy::cast_possible_truncation)]
    let bits = choices.ceil() as i64;
    bits
}

fn validate_queuing(queuing: &Value, path: &Path, errors: &mut ErrorList) {
    let own = |key: &str| number(queuing, key).unwrap_or(0);
    if own("queueLengthLimit") <= 0 {
        errors.push(Error::invalid(
            &path.child("queueLengthLimit"),
            own("queueLengthLimit"),
            "must be positive",
        ));
    }
    let (queues, hand) = (own("queues"), own("handSize"));
    if queues <= 0 {
        errors.push(Error::invalid(&path.child("queues"), queues, "must be positive"));
    } else if queues > MAX_QUEUES {
        let why = format!("must not be greater than {MAX_QUEUES}");
        errors.push(Error::invalid(&path.child("queues"), queues, why));
    }
    let at = path.child("handSize");
    if hand <= 0 {
        errors.push(Error::invalid(&at, hand, "must be positive"));
    } else if hand > queues {
        errors.push(Error::invalid(
            &at,
            hand,
            format!("should not be greater than queues ({queues})"),
        ));
    } else {
        #[allow(clippy::cast_possible_truncation)]
        let most = HASH_BITS as i64;
        // a hand that needs more bits than there are is found after so many
        if entropy(queues, hand.min(most + 1)) > most {
            let why = format!(
                "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {most}"
            );
            errors.push(Error::invalid(&at, hand, why));
        }
    }
}

fn validate_limited(limited: &Value, path: &Path, errors: &mut ErrorList) {
    let none = Value::Null;
    shares(limited, path, errors);
    let (response, at) = (
        limited.get("limitResponse").unwrap_or(&none),
        path.child("limitResponse"),
    );
    let queuing = response.get("queuing");
    match (text(response, "type"), queuing) {
        ("Reject", Some(_)) => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(Error::forbidden(&at.child("queuing"), why));
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(Error::required(&at.child("queuing"), why));
        }
        ("Queue", Some(queuing)) => validate_queuing(queuing, &at.child("queuing"), errors),
        ("", _) => errors.push(Error::required(&at.child("type"), "")),
        (other, _) => errors.push(Error::not_supported(&at.child("type"), other, &["Queue", "Reject"])),
    }
    lendable(limited, path, errors);
    if let Some(percent) = number(limited, "borrowingLimitPercent").filter(|percent| *percent < 0) {
        let why = "if specified, must be a non-negative integer";
        errors.push(Error::invalid(&path.child("borrowingLimitPercent"), percent, why));
    }
}

fn validate_level(level: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(level), Path::new("spec"));
    let kind = text(spec, "type");
    if (meta::name(level) == EXEMPT) != (kind == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(Error::invalid(&path.child("type"), kind, why));
    }
    let (limited, exempt) = (spec.get("limited"), spec.get("exempt"));
    match kind {
        "Exempt" => {
            if limited.is_some() {
                let why = "must be nil if the type is not Limited";
                errors.push(Error::forbidden(&path.child("limited"), why));
            }
            if let Some(exempt) = exempt {
                shares(exempt, &path.child("exempt"), &mut errors);
                lendable(exempt, &path.child("exempt"), &mut errors);
            }
        }
        "Limited" => {
            if exempt.is_some() {
                errors.push(Error::forbidden(
                    &path.child("exempt"),
                    "must be nil if the type is Limited",
                ));
            }
            match limited {
                None => {
                    let why = "must not be empty when type is Limited";
                    errors.push(Error::required(&path.child("limited"), why));
                }
                Some(limited) => validate_limited(limited, &path.child("limited"), &mut errors),
            }
        }
        "" => errors.push(Error::required(&path.child("type"), "")),
        other => errors.push(Error::not_supported(&path.child("type"), other, &["Exempt", "Limited"])),
    }
    errors.extend(mandatory_level(level));
    errors.extend(conditions(level));
    errors
}

pub(super) fn priority_levels(mut kind: Kind) -> Kind {
    kind.default = |level| {
        let Some(spec) = level.get_mut("spec").and_then(Value::as_object_mut) else {
            return;
        };
        if let Some(exempt) = spec.get_mut("exempt").and_then(Value::as_object_mut) {
            fill(
                exempt,
                &[("nominalConcurrencyShares", json!(0)), ("lendablePercent", json!(0))],
                false,
            );
        }
        let Some(limited) = spec.get_mut("limited").and_then(Value::as_object_mut) else {
            return;
        };
        fill(
            limited,
            &[("nominalConcurrencyShares", json!(30)), ("lendablePercent", json!(0))],
            false,
        );
        let queuing = limited
            .get_mut("limitResponse")
            .and_then(|response| response.get_mut("queuing"));
        if let Some(queuing) = queuing.and_then(Value::as_object_mut) {
            let defaults = [
                ("handSize", json!(8)),
                ("queues", json!(64)),
                ("queueLengthLimit", json!(50)),
            ];
            fill(queuing, &defaults, true);
        }
    };
    kind.validate = validate_level;
    kind.validate_status = |level, _| conditions(level);
    kind
}

/// A service is named for what it serves.
fn service_name(service: &Value, name: &str) -> Vec<String> {
    let spec = spec_of(service);
    let wanted = format!("{}.{}", text(spec, "version"), text(spec, "group"));
    if name == wanted || !gardener_apimachinery::names::path_segment(name).is_empty() {
        return Vec::new();
    }
    let wanted = gardener_apimachinery::field::go_quote(&wanted);
    vec![format!("must be `spec.version+\".\"+spec.group`: {wanted}")]
}

fn validate_service(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (spec, path) = (spec_of(object), Path::new("spec"));
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.push(Error::required(&path.child("group"), why));
    }
    if !group.is_empty() {
        syntax(meta::dns1123_subdomain(group), group, &path.child("group"), &mut errors);
    }
    let wrong = gardener_apimachinery::names::dns1035_label(version);
    syntax(wrong, version, &path.child("version"), &mut errors);
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let own = number(spec, key).unwrap_or(0);
        if !(1..=most).contains(&own) {
            let why = format!("must be positive and less than {most}");
            errors.push(Error::invalid(&path.child(key), own, why));
        }
    }
    let (authority, skips) = (text(spec, "caBundle"), is_true(spec, "insecureSkipTLSVerify"));
    let skip_at = path.child("insecureSkipTLSVerify");
    let Some(service) = spec.get("service") else {
        if !authority.is_empty() {
            use base64::Engine;
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(authority)
                .map_or(0, |bytes| bytes.len());
            let why = "local APIServices may not have a caBundle";
            errors.push(Error::invalid(&path.child("caBundle"), format!("{bytes} bytes"), why));
        }
        if skips {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(Error::invalid(&skip_at, true, why));
        }
        return errors;
    };
    let at = path.child("service");
    for key in ["namespace", "name"] {
        if text(service, key).is_empty() {
            errors.push(Error::required(&at.child(key), ""));
        }
    }
    let port = number(service, "port").unwrap_or(0);
    if let Some(error) = checks::port_number(port, &at.child("port")) {
        errors.push(Error::invalid(
            &at.child("port"),
            port,
            format!("port is not valid: {}", error.detail),
        ));
    }
    if skips && !authority.is_empty() {
        errors.push(Error::invalid(&skip_at, true, "may not be true if caBundle is present"));
    }
    errors
}

pub(super) fn api_services(mut kind: Kind) -> Kind {
    kind.has_tables_of_status = false;
    kind.name = gardener_apimachinery::names::path_segment;
    kind.own_name = service_name;
    kind.prepare_create = |context, service| {
        if service.at("/spec/service").is_none_or(Value::is_null) {
            let now = meta::rfc3339(context.now);
            let condition = json!({
                "type": "Available", "status": "True", "lastTransitionTime": now,
                "reason": LOCAL.0, "message": LOCAL.1,
            });
            set_status(service, json!({"conditions": [condition]}));
        }
        Ok(())
    };
    kind.validate = validate_service;
    kind.validate_status = |service, _| {
        let mut errors = ErrorList::new();
        let path = Path::new("status").child("conditions");
        let known = ["True", "False", "Unknown"];
        for (index, condition) in meta::elements(service, "/status/conditions").iter().enumerate() {
            let own = text(condition, "status");
            if !known.contains(&own) {
                errors.push(Error::not_supported(&path.index(index).child("status"), own, &known));
            }
        }
        errors
    };
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mandatory_objects_stay_what_they_are() {
        let object = |plural: &str, name: &str, change: &dyn Fn(&mut Value)| {
            let group = "flowcontrol.apiserver.k8s.io";
            let mut spec = bootstrap::recorded_spec(group, plural, name).unwrap().clone();
            change(&mut spec);
            json!({"metadata": {"name": name}, "spec": spec})
        };
        let (schemas, levels) = ("flowschemas", "prioritylevelconfigurations");
        let told = |error: Option<Error>| error.map(|error| error.detail);
        for name in MANDATORY {
            assert_eq!(told(mandatory_schema(&object(schemas, name, &|_| {}))), None);
            assert_eq!(told(mandatory_level(&object(levels, name, &|_| {}))), None);
            let changed = object(schemas, name, &|spec| spec["matchingPrecedence"] = json!(7));
            let why = format!("spec of '{name}' must equal the fixed value");
            assert_eq!(told(mandatory_schema(&changed)), Some(why));
        }
        // others may be anything, and how much the exempt level lends may be told
        let other = object(schemas, "probes", &|spec| spec["matchingPrecedence"] = json!(7));
        assert_eq!(told(mandatory_schema(&other)), None);
        let lending = object(levels, EXEMPT, &|spec| spec["exempt"]["lendablePercent"] = json!(7));
        assert_eq!(told(mandatory_level(&lending)), None);
        let limited = object(levels, EXEMPT, &|spec| spec["type"] = json!("Limited"));
        assert!(
            told(mandatory_level(&limited))
                .unwrap()
                .contains("except the 'spec.exempt' field")
        );
        let shares = object(levels, "catch-all", &|spec| {
            spec["limited"]["nominalConcurrencyShares"] = json!(7)
        });
        assert!(mandatory_level(&shares).is_some());
    }
}
