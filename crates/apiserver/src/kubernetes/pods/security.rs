//! What must hold of security contexts of pods and containers.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::containers::each_container;
use crate::kubernetes::checks::{descending_path, is_true, list, one_of_if_set, syntax, text};
use crate::kubernetes::internal;
use crate::meta;

/// Highest user and group.
const MAX_ID: i64 = i32::MAX as i64;

/// What of a pod and its security context Windows does not know, in the order in which it is looked at.
const NOT_OF_WINDOWS: [&str; 15] = [
    "appArmorProfile",
    "seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];
/// What of a container's security context Windows does not know.
const NOT_OF_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

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
    let mut seen = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let at = at.child("sysctls").index(index).child("name");
        if name.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if !is_sysctl(name) {
            let why = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(Error::invalid(&at, *name, why));
        } else if !seen.insert(name) {
            errors.push(Error::duplicate(&at, *name));
        }
        let of_host = [
            ("hostNetwork", is_of_network(name)),
            ("hostIPC", is_of_communication(name)),
        ];
        if let Some((key, _)) = of_host.iter().find(|(key, is_own)| *is_own && is_true(spec, key)) {
            let why = format!("may not be specified when '{key}' is true");
            errors.push(Error::invalid(&at, *name, why));
        }
    }
    let policies = ["Always", "OnRootMismatch"];
    one_of_if_set(context, "fsGroupChangePolicy", &policies, &at, errors);
    validate_seccomp(context, &at, errors);
    validate_windows(context, &at, errors);
    validate_app_armor(context, &at, errors);
    one_of_if_set(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &at, errors);
    one_of_if_set(context, "seLinuxChangePolicy", &["Recursive"], &at, errors);
}

/// A kernel setting with dots between its parts, the way in which the first separator tells it is meant.
fn with_dots(name: &str) -> String {
    let slashes = name
        .find(['.', '/'])
        .is_some_and(|at| name.get(at..).is_some_and(|rest| rest.starts_with('/')));
    let swapped = |one: char| match one {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    if slashes {
        name.chars().map(swapped).collect()
    } else {
        name.to_owned()
    }
}

/// Whether a kernel setting belongs to the network.
fn is_of_network(name: &str) -> bool {
    with_dots(name).starts_with("net.")
}

/// Whether a kernel setting belongs to the ways in which processes talk with each other.
fn is_of_communication(name: &str) -> bool {
    const SETTINGS: [&str; 10] = [
        "kernel.sem",
        "kernel.shm",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.msg",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
    ];
    let name = with_dots(name);
    SETTINGS.contains(&name.as_str()) || name.starts_with("fs.mqueue.")
}

/// Users of its own, which a pod has that does not use those of its node, fit to no other part of the node.
pub(super) fn validate_users(spec: &Value, path: &Path, errors: &mut ErrorList) {
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
        for (at, container) in each_container(spec, path) {
            if !list(container, "volumeDevices").is_empty() {
                errors.push(Error::forbidden(
                    &at.child("volumeDevices"),
                    "when `hostUsers` is false",
                ));
            }
        }
    }
}

/// What the operating system that a pod says to need does not know.
pub(super) fn validate_system(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let context = spec.get("securityContext").unwrap_or(&Value::Null);
    let at = path.child("securityContext");
    match spec.at("/os/name").and_then(Value::as_str) {
        Some("linux") => {
            let why = "windows options cannot be set for a linux pod";
            let mut refuse = |context: &Value, at: Path| {
                if context.get("windowsOptions").is_some() {
                    errors.push(Error::forbidden(&at.child("windowsOptions"), why));
                }
            };
            refuse(context, at);
            for (at, container) in each_container(spec, path) {
                if let Some(context) = container.get("securityContext") {
                    refuse(context, at.child("securityContext"));
                }
            }
        }
        Some("windows") => {
            let why = "cannot be set for a windows pod";
            for key in NOT_OF_WINDOWS {
                let (owner, at) = match key {
                    "hostUsers" | "hostPID" | "hostIPC" | "shareProcessNamespace" => (spec, path),
                    _ => (context, &at),
                };
                let is_set = match owner.get(key) {
                    None => false,
                    Some(Value::Bool(set)) => *set || matches!(key, "hostUsers" | "shareProcessNamespace"),
                    Some(Value::Array(elements)) => key != "sysctls" || !elements.is_empty(),
                    Some(_) => true,
                };
                if is_set {
                    errors.push(Error::forbidden(&at.child(key), why));
                }
            }
            for (at, container) in each_container(spec, path) {
                let Some(context) = container.get("securityContext") else {
                    continue;
                };
                for key in NOT_OF_WINDOWS_CONTAINERS
                    .iter()
                    .filter(|key| context.get(**key).is_some())
                {
                    errors.push(Error::forbidden(&at.child("securityContext").child(key), why));
                }
            }
        }
        _ => {}
    }
}

/// Containers of Windows that are processes of their host: all of a pod's are, or none, and they have the host's network.
pub(super) fn validate_host_process(spec: &Value, path: &Path, errors: &mut ErrorList) {
    let of = |context: &Value| {
        context
            .at("/securityContext/windowsOptions/hostProcess")
            .and_then(Value::as_bool)
    };
    let of_pod = of(spec);
    let mut all = Vec::new();
    for (at, container) in each_container(spec, path) {
        let own = of(container);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let why = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            let at = at.child("securityContext").child("windowsOptions").child("hostProcess");
            errors.push(Error::invalid(&at, own, why));
        }
        all.push(own.or(of_pod).unwrap_or(false));
    }
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

/// What of a pod's spec a cluster refuses that lets no containers do what their node may.
pub(in crate::kubernetes) fn not_allowed(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let of = |owner: &Value, key: &str| owner.at(&format!("/securityContext/{key}")).and_then(Value::as_bool);
    let of_pod = of(spec, "windowsOptions/hostProcess");
    let mut is_host_process = false;
    for (at, container) in each_container(spec, path) {
        if of(container, "privileged") == Some(true) {
            let at = at.child("securityContext").child("privileged");
            errors.push(Error::forbidden(&at, "disallowed by cluster policy"));
        }
        is_host_process |= of(container, "windowsOptions/hostProcess").or(of_pod) == Some(true);
    }
    if is_host_process {
        let why = "hostProcess containers are disallowed by cluster policy";
        errors.push(Error::forbidden(path, why));
    }
    errors
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

/// The profile of seccomp, which stands in the contexts of pods and containers alike.
fn validate_seccomp(context: &Value, path: &Path, errors: &mut ErrorList) {
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
            (_, Some(_)) => {
                let shown = internal::text("core.SeccompProfile", profile);
                let why = "can only be set when seccomp type is Localhost";
                errors.push(Error::literal(&at.child("localhostProfile"), shown, why));
            }
            (_, None) => {}
        }
    }
}

/// Longest specification of an account for groups of services, in KiB.
const ACCOUNT_MAX: usize = 64;
const DOMAIN_MAX: usize = 256;
const USER_MAX: usize = 104;

/// What containers of Windows run as.
fn validate_windows(context: &Value, path: &Path, errors: &mut ErrorList) {
    let Some(windows) = context.get("windowsOptions") else {
        return;
    };
    let path = path.child("windowsOptions");
    let own = |key: &str| windows.get(key).and_then(Value::as_str);
    if let Some(name) = own("gmsaCredentialSpecName") {
        syntax(
            meta::dns1123_subdomain(name),
            name,
            &path.child("gmsaCredentialSpecName"),
            errors,
        );
    }
    if let Some(account) = own("gmsaCredentialSpec") {
        let at = path.child("gmsaCredentialSpec");
        if account.is_empty() {
            errors.push(Error::invalid(&at, "", "gmsaCredentialSpec cannot be an empty string"));
        } else if account.len() > ACCOUNT_MAX * 1024 {
            let why = format!("gmsaCredentialSpec size must be under {ACCOUNT_MAX} KiB");
            errors.push(Error::invalid(&at, account, why));
        }
    }
    if let Some(name) = own("runAsUserName") {
        let at = path.child("runAsUserName");
        errors.extend(windows_user(name).into_iter().map(|why| {
            let why = format!("runAsUserName{why}");
            Error::invalid(&at, name, why)
        }));
    }
}

/// What is wrong with a user of Windows, `DOMAIN\\user` or `user`.
fn windows_user(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec![" cannot be an empty string".to_owned()];
    }
    if name.chars().any(|one| one.is_ascii_control()) {
        return vec![" cannot contain control characters".to_owned()];
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, rest)) if rest.contains('\\') => {
            return vec![" cannot contain more than one backslash".to_owned()];
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut wrong = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN_MAX {
            wrong.push(format!("'s Domain length must be under {DOMAIN_MAX} characters"));
        }
        let is_net_bios = (1..=15).contains(&domain.chars().count())
            && !domain.starts_with('.')
            && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|']);
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if !is_net_bios && !domain.split('.').all(is_label) {
            wrong.push("'s Domain doesn't match the NetBios nor the DNS format".to_owned());
        }
    }
    if user.is_empty() {
        wrong.push("'s User cannot be empty".to_owned());
    } else if user.len() > USER_MAX {
        wrong.push(format!("'s User length must not be longer than {USER_MAX} characters"));
    }
    if !user.is_empty() && user.bytes().all(|byte| matches!(byte, b'.' | b' ')) {
        wrong.push("'s User cannot contain only periods or spaces".to_owned());
    }
    if user.contains([
        '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
    ]) {
        wrong.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]".to_owned());
    }
    wrong
}

/// The profile of AppArmor, which stands in the contexts of pods and containers alike.
fn validate_app_armor(context: &Value, path: &Path, errors: &mut ErrorList) {
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
    one_of_if_set(context, "procMount", &["Default", "Unmasked"], path, errors);
    if host_users && text(context, "procMount") == "Unmasked" {
        let why = "`hostUsers` must be false to use `Unmasked`";
        errors.push(Error::invalid(&path.child("procMount"), "Unmasked", why));
    }
    validate_seccomp(context, path, errors);
    if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        let added = context.get("capabilities").map_or(&[][..], |own| list(own, "add"));
        let admins = added.iter().filter(|name| name.as_str() == Some("CAP_SYS_ADMIN"));
        let privileged = Some("`privileged` to true").filter(|_| is_true(context, "privileged"));
        for what in privileged
            .into_iter()
            .chain(admins.map(|_| "`capabilities.Add` CAP_SYS_ADMIN"))
        {
            let shown = internal::text("core.SecurityContext", context);
            let why = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
            errors.push(Error::literal(path, shown, why));
        }
    }
    validate_windows(context, path, errors);
    validate_app_armor(context, path, errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Api;

    #[tokio::test]
    async fn clusters_may_refuse_privileged_containers() {
        let (free, strict) = (
            Api::open().await,
            Api::open_with(|config| config.allows_privileged = false).await,
        );
        let account = json!({"metadata": {"name": "default"}});
        let spec = |context: Value| json!({"containers": [{"name": "c", "image": "i", "securityContext": context}]});
        let privileged = spec(json!({"privileged": true}));
        let pod = json!({"metadata": {"name": "p"}, "spec": privileged});
        let labels = json!({"a": "b"});
        let deployment = json!({"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": privileged},
        }});
        let namespace = |resource: &str| format!("{resource}/namespaces/default");
        let (core, apps) = (namespace("/api/v1"), namespace("/apis/apps/v1"));
        for (api, is_free) in [(&free, true), (&strict, false)] {
            api.create(&format!("{core}/serviceaccounts"), &account).await.unwrap();
            for (path, object, expected) in [
                (
                    format!("{core}/pods"),
                    &pod,
                    "Pod \"p\" is invalid: spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy",
                ),
                (
                    format!("{apps}/deployments"),
                    &deployment,
                    "Deployment.apps \"d\" is invalid: spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy",
                ),
            ] {
                let created = api.create(&path, object).await.map(drop);
                let expected = if is_free { Ok(()) } else { Err(expected.to_owned()) };
                assert_eq!(created, expected);
            }
        }
        let pods = format!("{core}/pods");
        let plain = json!({"metadata": {"name": "q"}, "spec": spec(json!({"privileged": false}))});
        strict.create(&pods, &plain).await.unwrap();
        let debugger = json!({"spec": {"ephemeralContainers": [
            {"name": "e", "image": "i", "securityContext": {"privileged": true}},
        ]}});
        let path = format!("{pods}/q/ephemeralcontainers");
        let refused = strict.ask("PATCH", &path, &debugger).await.unwrap_err();
        assert_eq!(
            refused["message"],
            "Pod \"q\" is invalid: spec.ephemeralContainers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"
        );
    }

    #[test]
    fn processes_of_the_host_need_the_same() {
        let windows = json!({"windowsOptions": {"hostProcess": true}});
        let spec = json!({"securityContext": windows, "containers": [{"name": "c"}]});
        let told: Vec<String> = not_allowed(&spec, &Path::new("spec"))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            ["spec: Forbidden: hostProcess containers are disallowed by cluster policy"]
        );
    }

    #[test]
    fn users_of_windows() {
        for (name, expected) in [
            ("ContainerUser", vec![]),
            ("NT AUTHORITY\\SYSTEM", vec![]),
            ("", vec![" cannot be an empty string"]),
            ("a\\b\\c", vec![" cannot contain more than one backslash"]),
            ("\\u", vec!["'s Domain doesn't match the NetBios nor the DNS format"]),
            ("d\\", vec!["'s User cannot be empty"]),
            ("..", vec!["'s User cannot contain only periods or spaces"]),
            ("a\n", vec![" cannot contain control characters"]),
            (
                "a@b",
                vec!["'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"],
            ),
        ] {
            assert_eq!(windows_user(name), expected, "{name}");
        }
    }
}
