//! Validation of projects, [VAL-PR1] – [VAL-PR9].

use std::collections::BTreeSet;
use std::sync::LazyLock;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::{meta, names};
use k8s_openapi::api::rbac::v1::Subject;
use regex::Regex;
use serde_json::Value;

use super::*;
use crate::constants::{GARDEN_NAMESPACE, PROJECT_NAMESPACE_PREFIX};
use crate::validation::{
    allowed_tolerations, go_pointer, go_struct, immutable, immutable_as, invalid_each, object_meta, object_meta_update,
    shown, tolerations,
};

const NAME_MAX: usize = 10;
const RESERVED: [&str; 3] = [
    "gardener-system-seed-lease",
    "gardener-system-shoot-issuer",
    "gardener-system-public",
];
const ROLES: [&str; 5] = ["admin", "owner", "serviceaccountmanager", "uam", "viewer"];
const EXTENSION_ROLE_MAX: usize = 20;

/// Checks a project that is to be created or stored again. `old` is the stored one on an update.
pub fn validate_project(project: &Project, old: Option<&Project>) -> ErrorList {
    let mut errors = object_meta(&project.metadata, false, gardener_apimachinery::names::dns_subdomain);
    let name = project.metadata.name.as_deref().unwrap_or_default();
    let path = Path::new("metadata.name");
    if name.len() > NAME_MAX {
        errors.push(Error::too_long(&path, NAME_MAX));
    }
    if name.contains("--") {
        errors.push(Error::invalid(
            &path,
            name,
            "name may not contain two consecutive hyphens",
        ));
    }
    let spec = &project.spec;
    let path = Path::new("spec");
    let reserved = spec.namespace.as_deref().is_some_and(|own| RESERVED.contains(&own));
    errors.extend(namespace(spec, &path.child("namespace")));
    if reserved {
        return errors;
    }
    errors.extend(members(spec, &path.child("members")));
    for (name, subject) in [("createdBy", &spec.created_by), ("owner", &spec.owner)] {
        if let Some(subject) = subject {
            errors.extend(validate_subject(subject, &path.child(name)));
        }
    }
    for (name, text, before) in [
        (
            "description",
            &spec.description,
            old.and_then(|old| old.spec.description.as_ref()),
        ),
        ("purpose", &spec.purpose, old.and_then(|old| old.spec.purpose.as_ref())),
    ] {
        let Some(text) = text else { continue };
        let at = path.child(name);
        if text.is_empty() {
            errors.push(Error::required(
                &at,
                format!("must provide a {name} when key is present"),
            ));
        }
        if before != Some(text) {
            errors.extend(free_form_text(text, &at));
        }
    }
    if let Some(both) = &spec.tolerations {
        let at = path.child("tolerations");
        errors.extend(tolerations(&both.defaults, &at.child("defaults")));
        errors.extend(tolerations(&both.whitelist, &at.child("whitelist")));
        let defaults = at.child("defaults");
        errors.extend(allowed_tolerations(&both.defaults, &both.whitelist, &defaults));
    }
    errors.extend(dual_approval(spec, &path.child("dualApprovalForDeletion")));
    errors
}

/// Text that people write about a project, [VAL-PR6]: letters, decimal digits, spaces and some punctuation. Go quotes what must not be there.
fn free_form_text(text: &str, path: &Path) -> ErrorList {
    // matches one character
    #[expect(clippy::unwrap_used, reason = "the pattern is well formed")]
    static REFUSED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[^\p{L}\p{Nd}\p{White_Space}.,:_/\\-]").unwrap());
    let refused: Vec<String> = REFUSED
        .find_iter(text)
        .flat_map(|found| found.as_str().chars())
        .map(go_quoted_character)
        .collect();
    match refused.is_empty() {
        true => ErrorList::new(),
        false => vec![Error::forbidden(
            path,
            format!("must not contain invalid character: [{}]", refused.join(" ")),
        )],
    }
}

/// A character in single quotes as Go's `%q` prints it, which escapes what it cannot show.
fn go_quoted_character(c: char) -> String {
    #[expect(clippy::unwrap_used, reason = "the pattern is well formed")]
    static SHOWN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$").unwrap());
    match (c, u32::from(c)) {
        ('\'' | '\\', _) => format!("'\\{c}'"),
        ('\x07', _) => r"'\a'".into(),
        ('\x08', _) => r"'\b'".into(),
        _ if SHOWN.is_match(c.encode_utf8(&mut [0; 4])) => format!("'{c}'"),
        (_, code @ (..=0x1f | 0x7f)) => format!(r"'\x{code:02x}'"),
        (_, code @ ..=0xffff) => format!(r"'\u{code:04x}'"),
        (_, code) => format!(r"'\U{code:08x}'"),
    }
}

/// [VAL-PR2].
fn namespace(spec: &ProjectSpec, path: &Path) -> ErrorList {
    let Some(namespace) = spec.namespace.as_deref() else {
        return ErrorList::new();
    };
    if RESERVED.contains(&namespace) {
        let why = format!("Project namespaces [{}] are reserved by Gardener", RESERVED.join(", "));
        return vec![Error::invalid(path, namespace, why)];
    }
    let mut errors = ErrorList::new();
    if namespace != GARDEN_NAMESPACE && !namespace.starts_with(PROJECT_NAMESPACE_PREFIX) {
        errors.push(Error::invalid(
            path,
            namespace,
            format!("must start with {PROJECT_NAMESPACE_PREFIX}"),
        ));
    }
    errors.extend(invalid_each(path, namespace, names::dns_label(namespace)));
    errors
}

/// [VAL-PR4].
fn validate_subject(subject: &Subject, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if subject.name.is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    let group = subject.api_group.as_deref().unwrap_or_default();
    let namespace = subject.namespace.as_deref().unwrap_or_default();
    match subject.kind.as_str() {
        "ServiceAccount" => {
            errors.extend(
                names::dns_subdomain(&subject.name)
                    .into_iter()
                    .filter(|_| !subject.name.is_empty())
                    .map(|detail| Error::invalid(&path.child("name"), subject.name.as_str(), detail)),
            );
            if !group.is_empty() {
                errors.push(Error::not_supported(&path.child("apiGroup"), group, &[""]));
            }
            if namespace.is_empty() {
                errors.push(Error::required(&path.child("namespace"), ""));
            } else {
                let at = path.child("namespace");
                errors.extend(invalid_each(&at, namespace, names::dns_label(namespace)));
            }
        }
        "User" | "Group" => {
            if group != defaults::RBAC_GROUP {
                errors.push(Error::not_supported(
                    &path.child("apiGroup"),
                    group,
                    &[defaults::RBAC_GROUP],
                ));
            }
            if !namespace.is_empty() {
                errors.push(Error::forbidden(
                    &path.child("namespace"),
                    "must not be set when kind is User or Group",
                ));
            }
        }
        other => errors.push(Error::not_supported(
            &path.child("kind"),
            other,
            &["ServiceAccount", "User", "Group"],
        )),
    }
    errors
}

/// A subject as JSON with its members in Go's order.
fn go_subject(subject: &Subject) -> String {
    let mut members = vec![("kind", subject.kind.as_str().into())];
    if let Some(group) = subject.api_group.as_deref().filter(|group| !group.is_empty()) {
        members.push(("apiGroup", group.into()));
    }
    members.push(("name", subject.name.as_str().into()));
    if let Some(namespace) = subject.namespace.as_deref().filter(|own| !own.is_empty()) {
        members.push(("namespace", namespace.into()));
    }
    go_struct(&members)
}

/// A member as Go prints it: its roles are in one list there.
fn as_go(member: &ProjectMember) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (group, namespace) = (text(&member.api_group), text(&member.namespace));
    let members = [
        ("kind", Some(shown(&member.kind))),
        ("apiGroup", (!group.is_empty()).then(|| shown(&group))),
        ("name", Some(shown(&member.name))),
        ("namespace", (!namespace.is_empty()).then(|| shown(&namespace))),
        ("Roles", Some(shown(&member.all_roles()))),
    ];
    let members = members.into_iter();
    let members: Vec<(&str, Value)> = members
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .collect();
    go_struct(&members)
}

/// What makes two members the same: group, kind, namespace and name, where a User `system:serviceaccount:<namespace>:<name>` is that ServiceAccount.
fn identity(member: &ProjectMember) -> (&str, &str, &str, &str) {
    let account = || {
        let name = member.name.strip_prefix(defaults::SERVICE_ACCOUNTS)?;
        let mut parts = name.split(':');
        Some(("", "ServiceAccount", parts.next()?, parts.next()?))
    };
    let own = (
        member.api_group.as_deref().unwrap_or_default(),
        member.kind.as_str(),
        member.namespace.as_deref().unwrap_or_default(),
        member.name.as_str(),
    );
    (member.kind == "User").then(account).flatten().unwrap_or(own)
}

/// [VAL-PR5].
fn members(spec: &ProjectSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    let mut owners = 0;
    for (i, member) in spec.members.iter().enumerate() {
        let at = path.index(i);
        if member.kind == "User"
            && member.name.starts_with(defaults::SERVICE_ACCOUNTS)
            && member.name.split(':').count() < 4
        {
            let why = format!("unsupported service account user name: {}", go_quote(&member.name));
            errors.push(Error::invalid(&at.child("name"), member.name.as_str(), why));
            continue;
        }
        if !seen.insert(identity(member)) {
            let mut error = Error::duplicate(&at, shown(member));
            error.show_as(as_go(member));
            errors.push(error);
        }
        errors.extend(validate_subject(
            &Subject {
                api_group: member.api_group.clone(),
                kind: member.kind.clone(),
                name: member.name.clone(),
                namespace: member.namespace.clone(),
            },
            &at,
        ));
        let roles = member.all_roles();
        let mut seen = BTreeSet::new();
        for (j, role) in roles.iter().enumerate() {
            let at = at.child("roles").index(j);
            if !seen.insert(role) {
                errors.push(Error::duplicate(&at, role.as_str()));
            }
            if let Some(name) = role.strip_prefix("extension:") {
                if name.len() > EXTENSION_ROLE_MAX {
                    errors.push(Error::too_long(&at, EXTENSION_ROLE_MAX));
                }
                let wrong = names::path_segment(name);
                if !wrong.is_empty() {
                    errors.push(Error::invalid(&at, role.as_str(), wrong.join(", ")));
                }
            } else if !ROLES.contains(&role.as_str()) {
                let mut supported: Vec<&str> = ROLES.to_vec();
                supported.push("extension:*");
                errors.push(Error::not_supported(&at, role.as_str(), &supported));
            }
        }
        let owning = roles
            .iter()
            .enumerate()
            .filter(|(_, role)| *role == defaults::ROLE_OWNER);
        for (j, _) in owning {
            owners += 1;
            if owners > 1 {
                errors.push(Error::forbidden(
                    &at.child("roles").index(j),
                    "cannot have more than one member having the owner role",
                ));
            }
        }
    }
    errors
}

/// [VAL-PR8].
fn dual_approval(spec: &ProjectSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, approval) in spec.dual_approval_for_deletion.iter().enumerate() {
        let at = path.index(i);
        let resource = approval.resource.as_str();
        if resource.is_empty() {
            errors.push(Error::required(&at.child("resource"), "cannot be empty"));
        } else {
            if resource != "shoots" {
                errors.push(Error::not_supported(&at.child("resource"), resource, &["shoots"]));
            }
            if !seen.insert(resource) {
                errors.push(Error::duplicate(&at.child("resource"), resource));
            }
        }
        errors.extend(meta::validate_label_selector(&approval.selector, &at.child("selector")));
    }
    errors
}

/// Checks a change of a project.
pub fn validate_project_update(new: &Project, old: &Project) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(validate_project(new, Some(old)));
    let path = Path::new("spec");
    if old.spec.created_by.is_some() {
        let at = path.child("createdBy");
        errors.extend(immutable_as(&new.spec.created_by, &old.spec.created_by, &at, |own| {
            go_pointer(own.as_ref(), go_subject)
        }));
    }
    if old.spec.namespace.is_some() {
        errors.extend(immutable(
            &new.spec.namespace,
            &old.spec.namespace,
            &path.child("namespace"),
        ));
    }
    if old.spec.owner.is_some() && new.spec.owner.is_none() {
        errors.push(Error::invalid(
            &path.child("owner"),
            serde_json::Value::Null,
            "owner cannot be reset",
        ));
    }
    errors
}

/// Checks a change of a project's status, [VAL-PR9].
pub fn validate_project_status_update(new: &Project, old: &Project) -> ErrorList {
    let phase = |project: &Project| project.status.phase.clone().unwrap_or_default();
    if !phase(old).is_empty() && phase(new).is_empty() {
        vec![Error::invalid(
            &Path::new("status.phase"),
            "",
            "phase cannot be updated to an empty string",
        )]
    } else {
        ErrorList::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(value: serde_json::Value) -> Project {
        let mut project: Project = serde_json::from_value(value).unwrap();
        default_project(&mut project);
        project
    }

    fn texts(project: &Project) -> Vec<String> {
        let errors = validate_project(project, None);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn val_pr_recorded_refusal() {
        let project = project(
            serde_json::json!({"metadata": {"name": "much-too-long-a-name"}, "spec": {"namespace": "other-ns",
            "members": [{"kind": "Robot", "name": "r", "role": ""}, {"kind": "ServiceAccount", "name": "x", "role": "admin"}],
            "tolerations": {"defaults": [{"key": "k"}]}}}),
        );
        assert_eq!(
            texts(&project),
            [
                "metadata.name: Too long: may not be more than 10 bytes",
                "spec.namespace: Invalid value: \"other-ns\": must start with garden-",
                "spec.members[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                "spec.members[1].namespace: Required value",
                "spec.tolerations.defaults[0]: Forbidden: only the following tolerations are allowed: []",
            ]
        );
    }

    #[test]
    fn val_pr5_a_role_is_told_once() {
        let members = serde_json::json!([{"kind": "User", "name": "a", "roles": ["uam", "uam"]},
            {"kind": "User", "name": "b", "role": "uam", "roles": ["uam"]}, {"kind": "User", "name": "c", "roles": ["uam", "viewer", "viewer"]}]);
        let project = project(serde_json::json!({"metadata": {"name": "a"}, "spec": {"members": members}}));
        assert_eq!(
            texts(&project),
            [
                "spec.members[0].roles[1]: Duplicate value: \"uam\"",
                "spec.members[2].roles[2]: Duplicate value: \"viewer\""
            ]
        );
    }

    #[test]
    fn val_pr_changes() {
        let old = project(
            serde_json::json!({"metadata": {"name": "a"}, "spec": {"namespace": "garden-a", "owner": {"kind": "User", "name": "o"}}}),
        );
        let mut new = old.clone();
        new.spec.namespace = Some("garden-b".into());
        new.spec.owner = None;
        let texts: Vec<String> = validate_project_update(&new, &old)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "spec.namespace: Invalid value: \"garden-b\": field is immutable",
                "spec.owner: Invalid value: null: owner cannot be reset"
            ]
        );
    }

    #[test]
    fn def_41_the_gardens_project_tolerates_protection() {
        let project = project(
            serde_json::json!({"metadata": {"name": "garden"}, "spec": {"namespace": "garden",
            "tolerations": {"defaults": [{"key": "seed.gardener.cloud/protected", "value": "x"}], "whitelist": [{"key": "seed.gardener.cloud/protected"}]}}}),
        );
        let both = project.spec.tolerations.unwrap();
        assert_eq!((both.defaults.len(), both.whitelist.len()), (2, 1));
    }

    #[test]
    fn val_pr5_who_is_the_same_member() {
        let group = "rbac.authorization.k8s.io";
        let project = project(serde_json::json!({"metadata": {"name": "a"}, "spec": {"members": [
            {"kind": "User", "apiGroup": group, "name": "u", "role": "owner"},
            {"kind": "User", "apiGroup": "other", "name": "u", "roles": ["owner", "boss"]},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n", "role": "admin"},
            {"kind": "User", "apiGroup": group, "name": "system:serviceaccount:n:s", "role": "extension:a/b%c"}]}}));
        let found = validate_project(&project, None);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "spec.members[1].apiGroup: Unsupported value: \"other\": supported values: \"rbac.authorization.k8s.io\"",
                "spec.members[1].roles[1]: Unsupported value: \"boss\": supported values: \"admin\", \"owner\", \"serviceaccountmanager\", \"uam\", \"viewer\", \"extension:*\"",
                "spec.members[1].roles[0]: Forbidden: cannot have more than one member having the owner role",
                "spec.members[3]: Duplicate value: {\"kind\":\"User\",\"apiGroup\":\"rbac.authorization.k8s.io\",\"name\":\"system:serviceaccount:n:s\",\"Roles\":[\"extension:a/b%c\"]}",
                "spec.members[3].roles[0]: Invalid value: \"extension:a/b%c\": may not contain '/', may not contain '%'",
            ]
        );
    }

    #[test]
    fn val_pr5_pr6_members_and_texts() {
        let project = project(
            serde_json::json!({"metadata": {"name": "a"}, "spec": {"description": "a;b", "purpose": "",
            "members": [
                {"kind": "User", "name": "u", "role": "owner", "roles": ["uam", "uam"]},
                {"kind": "User", "name": "u", "role": "king"},
                {"kind": "User", "name": "v", "role": "owner"},
                {"kind": "User", "name": "w", "role": "extension:a/b"},
                {"kind": "User", "name": "system:serviceaccount:x", "role": "uam"}
            ]}}),
        );
        let texts: Vec<String> = validate_project(&project, None)
            .iter()
            .map(ToString::to_string)
            .collect();
        for expected in [
            "spec.members[0].roles[2]: Duplicate value: \"uam\"",
            "spec.members[1]: Duplicate value",
            "spec.members[1].roles[0]: Unsupported value: \"king\"",
            "spec.members[2].roles[0]: Forbidden: cannot have more than one member having the owner role",
            "spec.members[3].roles[0]: Invalid value: \"extension:a/b\": may not contain '/'",
            "spec.members[4].name: Invalid value: \"system:serviceaccount:x\": unsupported service account user name",
            "spec.description: Forbidden: must not contain invalid character: [';']",
            "spec.purpose: Required value: must provide a purpose when key is present",
        ] {
            assert!(
                texts.iter().any(|text| text.contains(expected)),
                "{expected}: {texts:#?}"
            );
        }
    }
}
