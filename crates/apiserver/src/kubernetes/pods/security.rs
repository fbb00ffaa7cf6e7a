//! What must hold of security contexts of pods and containers.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use crate::kubernetes::checks::{descending_path, is_true, list, one_of, text};

/// Highest user and group.
const MAX_ID: i64 = i32::MAX as i64;

fn id(value: Option<&Value>, at: &Path, errors: &mut ErrorList) {
    if let Some(id) = value.and_then(Value::as_i64).filter(|id| !(0..=MAX_ID).contains(id)) {
        errors.push(Error::invalid(at, id, "must be between 0 and 2147483647, inclusive"));
    }
}

pub(super) fn validate_pod(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let at = path.child("securityContext");
    let none = Value::Null;
    let context = spec.get("securityContext").unwrap_or(&none);
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(context.get(key), &at.child(key), errors);
    }
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        id(Some(group), &at.child("supplementalGroups").index(index), errors);
    }
    if is_true(spec, "shareProcessNamespace") && is_true(spec, "hostPID") {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(Error::invalid(&at.child("shareProcessNamespace"), true, why));
    }
    let names: Vec<&str> = list(context, "sysctls").iter().map(|own| text(own, "name")).collect();
    for (index, name) in names.iter().enumerate() {
        let at = at.child("sysctls").index(index).child("name");
        if name.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if !is_sysctl(name) {
            let why = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(Error::invalid(&at, *name, why));
        } else if names.iter().take(index).any(|other| other == name) {
            errors.push(Error::duplicate(&at, *name));
        }
    }
    let policies = ["Always", "OnRootMismatch"];
    one_of(context, "fsGroupChangePolicy", &policies, &at, errors);
    validate_profiles(context, &at, errors);
    one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &at, errors);
    if spec.get("hostUsers") == Some(&Value::Bool(false)) {
        for (key, name) in [
            ("hostNetwork", "hostNetwork"),
            ("hostPID", "HostPID"),
            ("hostIPC", "HostIPC"),
        ] {
            if is_true(spec, key) {
                errors.push(Error::forbidden(&path.child(name), "when `hostUsers` is false"));
            }
        }
    }
}

/// Containers of Windows that are processes of their host: all of a pod's are, or none, and they have the host's network.
pub(super) fn validate_host_process(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let of = |context: &Value| {
        context
            .pointer("/securityContext/windowsOptions/hostProcess")
            .and_then(Value::as_bool)
    };
    let of_pod = of(spec);
    let containers = ["initContainers", "containers", "ephemeralContainers"];
    let is_host_process = |container: &Value| of(container).or(of_pod).unwrap_or(false);
    let all: Vec<bool> = containers
        .iter()
        .flat_map(|key| list(spec, key))
        .map(is_host_process)
        .collect();
    if !all.contains(&true) {
        return;
    }
    if all.contains(&false) {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(Error::invalid(path, "", why));
    }
    if !is_true(spec, "hostNetwork") {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(Error::invalid(&path.child("hostNetwork"), false, why));
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let ends = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let fits = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(fits)
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_part)
}

/// Profiles of seccomp and AppArmor, which stand in the contexts of pods and containers alike.
fn validate_profiles(context: &Value, path: &Path, errors: &mut ErrorList) {
    if let Some(profile) = context.get("seccompProfile") {
        let at = path.child("seccompProfile");
        let known = ["Localhost", "RuntimeDefault", "Unconfined"];
        let file = profile.get("localhostProfile").and_then(Value::as_str);
        match text(profile, "type") {
            "" => errors.push(Error::required(
                &at.child("type"),
                "type is required when seccompProfile is set",
            )),
            kind if !known.contains(&kind) => errors.push(Error::not_supported(&at.child("type"), kind, &known)),
            _ => {}
        }
        match (text(profile, "type"), file) {
            ("Localhost", None) => errors.push(Error::required(
                &at.child("localhostProfile"),
                "must be set when seccomp type is Localhost",
            )),
            ("Localhost", Some(file)) => descending_path(file, &at.child("localhostProfile"), errors),
            (kind, Some(file)) => {
                let shown = format!("{{\"Type\":\"{kind}\",\"LocalhostProfile\":{}}}", Value::from(file));
                let why = "can only be set when seccomp type is Localhost";
                errors.push(Error::literal(&at.child("localhostProfile"), shown, why));
            }
            (_, None) => {}
        }
    }
    if let Some(windows) = context.get("windowsOptions") {
        let at = path.child("windowsOptions");
        for key in ["gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"] {
            if windows.get(key) == Some(&Value::from("")) {
                let name = key.trim_start_matches("gmsaC");
                errors.push(Error::invalid(
                    &at.child(key),
                    "",
                    format!("{name} cannot be an empty string"),
                ));
            }
        }
    }
    let Some(profile) = context.get("appArmorProfile") else {
        return;
    };
    let at = path.child("appArmorProfile");
    let file = profile.get("localhostProfile").and_then(Value::as_str);
    let place = at.child("localhostProfile");
    match (text(profile, "type"), file) {
        ("Localhost", None | Some("")) => {
            errors.push(Error::required(&place, "must be set when AppArmor type is Localhost"));
        }
        ("Localhost", Some(file)) if file.trim() != file => {
            errors.push(Error::invalid(&place, file, "must not be padded with whitespace"));
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            errors.push(Error::invalid(
                &place,
                file,
                "can only be set when AppArmor type is Localhost",
            ));
        }
        ("Localhost" | "RuntimeDefault" | "Unconfined", _) => {}
        ("", _) => errors.push(Error::required(
            &at.child("type"),
            "type is required when appArmorProfile is set",
        )),
        (other, _) => errors.push(Error::not_supported(
            &at.child("type"),
            other,
            &["Localhost", "RuntimeDefault", "Unconfined"],
        )),
    }
}

/// The context of one container; `host_users`: users in it are those of the node.
pub(super) fn validate_container(container: &Value, host_users: bool, path: &Path, errors: &mut ErrorList) {
    let Some(context) = container.get("securityContext") else {
        return;
    };
    for key in ["runAsUser", "runAsGroup"] {
        id(context.get(key), &path.child(key), errors);
    }
    one_of(context, "procMount", &["Default", "Unmasked"], path, errors);
    if host_users && text(context, "procMount") == "Unmasked" {
        let why = "`hostUsers` must be false to use `Unmasked`";
        errors.push(Error::invalid(&path.child("procMount"), "Unmasked", why));
    }
    let mut rest = ErrorList::new();
    validate_profiles(context, path, &mut rest);
    // upstream looks at escalation between the two profiles
    let is_seccomp = |error: &Error| error.path.as_str().contains(".seccompProfile.");
    let (seccomp, others): (ErrorList, ErrorList) = rest.into_iter().partition(is_seccomp);
    errors.extend(seccomp);
    if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        let adds_all = || {
            let added = context.get("capabilities").map_or(&[][..], |own| list(own, "add"));
            added.iter().any(|name| name.as_str() == Some("CAP_SYS_ADMIN"))
        };
        for (wrong, what) in [
            (is_true(context, "privileged"), "`privileged` to true"),
            (adds_all(), "`capabilities.Add` CAP_SYS_ADMIN"),
        ] {
            if wrong {
                let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
                errors.push(Error::literal(path, shown_context(context), why));
            }
        }
    }
    errors.extend(others);
}

/// A security context as upstream shows it: the fields of its own type, in their order, set or not.
fn shown_context(context: &Value) -> String {
    const FIELDS: [&str; 12] = [
        "capabilities",
        "privileged",
        "seLinuxOptions",
        "windowsOptions",
        "runAsUser",
        "runAsGroup",
        "runAsNonRoot",
        "readOnlyRootFilesystem",
        "allowPrivilegeEscalation",
        "procMount",
        "seccompProfile",
        "appArmorProfile",
    ];
    let shown = |key: &&str| {
        let mut name: String = key.chars().take(1).flat_map(char::to_uppercase).collect();
        name.extend(key.chars().skip(1));
        let name = if *key == "seLinuxOptions" {
            "SELinuxOptions".to_owned()
        } else {
            name
        };
        let value = context.get(*key).unwrap_or(&Value::Null);
        let value = match (*key, value) {
            ("capabilities", Value::Object(own)) => {
                let part = |key: &str| own.get(key).unwrap_or(&Value::Null).to_string();
                format!("{{\"Add\":{},\"Drop\":{}}}", part("add"), part("drop"))
            }
            (_, value) => value.to_string(),
        };
        format!("\"{name}\":{value}")
    };
    format!("{{{}}}", FIELDS.iter().map(shown).collect::<Vec<_>>().join(","))
}
