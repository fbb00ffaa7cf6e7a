//! Roles and their bindings: what is refused. Who may give which rights away is in [`crate::rbac::escalation`].
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/>

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Value, json};

use super::defaults;
use super::strategy::Kind;
use crate::meta;
use crate::rbac::escalation::{check_binding, check_role};

const GROUP: &str = "rbac.authorization.k8s.io";

fn names(mut kind: Kind) -> Kind {
    kind.name = meta::path_segment;
    kind.whole_first = true;
    kind.create_on_update = true;
    kind
}

/// Roles, whose rules are about a namespace.
pub(super) fn roles(kind: Kind) -> Kind {
    let mut kind = names(kind);
    kind.validate = |role| rules(role, true);
    kind.prepare_create = |context, role| check_role(context, "roles", role, None);
    kind.prepare_update = |context, role, old| check_role(context, "roles", role, Some(old));
    kind
}

/// Cluster roles, whose rules may be about other URLs too, or come from other roles.
pub(super) fn cluster_roles(kind: Kind) -> Kind {
    let mut kind = names(kind);
    kind.prepare_create = |context, role| check_role(context, "clusterroles", role, None);
    kind.prepare_update = |context, role, old| check_role(context, "clusterroles", role, Some(old));
    kind.validate = |role| {
        let mut errors = rules(role, false);
        let selectors = meta::elements(role, "/aggregationRule/clusterRoleSelectors");
        for (index, selector) in selectors.iter().enumerate() {
            let at = Path::new("aggregationRule").child("clusterRoleSelectors").index(index);
            let mut wrong = ErrorList::new();
            super::checks::label_selector(selector, &at, &mut wrong);
            if !wrong.is_empty() {
                let why = "invalid label selector.";
                wrong.push(Error::invalid(&at, Value::Null, why));
            }
            errors.extend(wrong);
        }
        if role.get("aggregationRule").is_some_and(Value::is_object)
            && meta::elements(role, "/aggregationRule/clusterRoleSelectors").is_empty()
        {
            errors.push(Error::required(
                &Path::new("aggregationRule").child("clusterRoleSelectors"),
                "at least one clusterRoleSelector required if aggregationRule is non-nil",
            ));
        }
        errors
    };
    kind
}

/// Bindings in a namespace.
pub(super) fn bindings(kind: Kind) -> Kind {
    let mut kind = names(kind).defaulted(defaults::role_binding);
    kind.validate = |binding| binding_errors(binding, true);
    kind.prepare_create = |context, binding| check_binding(context, "rolebindings", binding, None);
    kind.prepare_update = |context, binding, old| check_binding(context, "rolebindings", binding, Some(old));
    kind.validate_update = role_ref_stays;
    kind
}

/// Bindings everywhere.
pub(super) fn cluster_bindings(kind: Kind) -> Kind {
    let mut kind = names(kind).defaulted(defaults::role_binding);
    kind.validate = |binding| binding_errors(binding, false);
    kind.prepare_create = |context, binding| check_binding(context, "clusterrolebindings", binding, None);
    kind.prepare_update = |context, binding, old| check_binding(context, "clusterrolebindings", binding, Some(old));
    kind.validate_update = role_ref_stays;
    kind
}

fn rules(role: &Value, namespaced: bool) -> ErrorList {
    let mut errors = Vec::new();
    for (index, rule) in meta::elements(role, "/rules").iter().enumerate() {
        let path = Path::new("rules").index(index);
        let has = |member: &str| !meta::elements(rule, &format!("/{member}")).is_empty();
        if !has("verbs") {
            errors.push(Error::required(
                &path.child("verbs"),
                "verbs must contain at least one value",
            ));
        }
        if has("nonResourceURLs") {
            let urls = rule.get("nonResourceURLs").cloned().unwrap_or_default();
            let mut wrong = |why: &str| errors.push(Error::invalid(&path.child("nonResourceURLs"), urls.clone(), why));
            if namespaced {
                wrong("namespaced rules cannot apply to non-resource URLs");
            }
            if has("apiGroups") || has("resources") || has("resourceNames") {
                wrong("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        for (member, what) in [("apiGroups", "api group"), ("resources", "resource")] {
            if !has(member) {
                let why = format!("resource rules must supply at least one {what}");
                errors.push(Error::required(&path.child(member), why));
            }
        }
    }
    errors
}

fn binding_errors(binding: &Value, namespaced: bool) -> ErrorList {
    let path = Path::new("roleRef");
    let none = json!({});
    let role = binding.get("roleRef").unwrap_or(&none);
    let mut errors = Vec::new();
    if meta::text(role, "/apiGroup") != GROUP {
        errors.push(Error::not_supported(
            &path.child("apiGroup"),
            meta::text(role, "/apiGroup"),
            &[GROUP],
        ));
    }
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&meta::text(role, "/kind")) {
        errors.push(Error::not_supported(
            &path.child("kind"),
            meta::text(role, "/kind"),
            kinds,
        ));
    }
    match meta::text(role, "/name") {
        "" => errors.push(Error::required(&path.child("name"), "")),
        name => {
            let wrong = meta::path_segment(name).into_iter();
            errors.extend(wrong.map(|why| Error::invalid(&path.child("name"), name, why)));
        }
    }
    for (index, subject) in meta::elements(binding, "/subjects").iter().enumerate() {
        subject_errors(subject, namespaced, &Path::new("subjects").index(index), &mut errors);
    }
    errors
}

fn subject_errors(subject: &Value, namespaced: bool, path: &Path, errors: &mut ErrorList) {
    let (name, group) = (meta::text(subject, "/name"), meta::text(subject, "/apiGroup"));
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    let wanted = match meta::text(subject, "/kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let wrong = meta::dns1123_subdomain(name).into_iter();
                errors.extend(wrong.map(|why| Error::invalid(&path.child("name"), name, why)));
            }
            ""
        }
        "User" | "Group" => GROUP,
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            return errors.push(Error::not_supported(&path.child("kind"), other, &known));
        }
    };
    if group != wanted {
        errors.push(Error::not_supported(&path.child("apiGroup"), group, &[wanted]));
    }
    let needs_namespace = !namespaced && meta::text(subject, "/kind") == "ServiceAccount";
    if needs_namespace && meta::text(subject, "/namespace").is_empty() {
        errors.push(Error::required(&path.child("namespace"), ""));
    }
}

/// Whom a binding binds to what is decided once: the role. Upstream shows it with the names of Go's fields.
fn role_ref_stays(object: &Value, old: &Value) -> ErrorList {
    if object.get("roleRef") == old.get("roleRef") {
        return Vec::new();
    }
    let none = json!({});
    let role = object.get("roleRef").unwrap_or(&none);
    let shown = json!({"APIGroup": meta::text(role, "/apiGroup"), "Kind": meta::text(role, "/kind"), "Name": meta::text(role, "/name")});
    vec![Error::invalid(&Path::new("roleRef"), shown, "cannot change roleRef")]
}
