//! Checks that several kinds share. Each returns findings in the order in which they were made.

pub mod extension_object;
mod ranges;
mod requested_changes;

use gardener_apimachinery::type_meta::is_no_group_version;
use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_escaped};
use gardener_apimachinery::quantity::Amount;
use gardener_apimachinery::{meta, names};

use crate::core::v1beta1::{SeedSelector, Toleration};

pub use ranges::{Range, overlapping};
pub use requested_changes::requested_changes;

/// What Kubernetes says about negative numbers.
pub const NEGATIVE: &str = "must be greater than or equal to 0";
/// What Kubernetes says about changed fields that must not change.
pub const IMMUTABLE: &str = "field is immutable";

/// A value as it is shown in a finding.
pub fn shown<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A value as Go writes it in JSON: `<`, `>` and `&` stand as escapes.
pub fn go_json<T: Serialize + ?Sized>(value: &T) -> String {
    go_escaped(serde_json::to_string(value).unwrap_or_default()).into_owned()
}

/// A finding when a field has changed.
pub fn immutable<T: Serialize + PartialEq>(new: &T, old: &T, path: &Path) -> ErrorList {
    if new == old {
        ErrorList::new()
    } else {
        vec![Error::invalid(path, shown(new), IMMUTABLE)]
    }
}

/// One `Invalid` finding per text of a name check.
pub fn invalid_each(path: &Path, value: &str, details: Vec<String>) -> ErrorList {
    details
        .into_iter()
        .map(|detail| Error::invalid(path, value, detail))
        .collect()
}

/// A finding when a number is negative.
pub fn non_negative(value: impl Into<i64>, path: &Path) -> ErrorList {
    let value = value.into();
    if value < 0 {
        vec![Error::invalid(path, value, NEGATIVE)]
    } else {
        ErrorList::new()
    }
}

/// How many percent a text such as `5%` tells, as many as there can be if no number holds them; none if it is no whole percentage.
pub(crate) fn percentage(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// A finding when an amount is negative or is no quantity.
pub fn non_negative_quantity(quantity: &Quantity, path: &Path) -> ErrorList {
    // Go's zero quantity is read from nothing; it stands for 0.
    if quantity.0.is_empty() {
        return ErrorList::new();
    }
    match quantity.0.parse::<Amount>() {
        Ok(amount) if amount.is_negative() => vec![Error::invalid(path, quantity.0.as_str(), NEGATIVE)],
        Ok(_) => ErrorList::new(),
        Err(error) => vec![Error::invalid(path, quantity.0.as_str(), error.to_string())],
    }
}

/// An amount of a resource of pods: not negative, and whole where the resource is counted.
pub fn resource_amount(name: &str, quantity: &Quantity, path: &Path) -> ErrorList {
    let mut errors = non_negative_quantity(quantity, path);
    let counted = match name {
        "pods" | "resourcequotas" | "services" | "replicationcontrollers" | "secrets" | "configmaps" => true,
        "persistentvolumeclaims" | "services.nodeports" | "services.loadbalancers" => true,
        _ => {
            name.contains('/')
                && !name.contains("kubernetes.io/")
                && !name.starts_with("requests.")
                && names::qualified_name(&format!("requests.{name}")).is_empty()
        }
    };
    let is_broken = |amount: Amount| amount.milli_value() % 1000 != 0;
    if counted && quantity.0.parse().is_ok_and(is_broken) {
        errors.push(Error::invalid(path, quantity.0.as_str(), "must be an integer"));
    }
    errors
}

/// Metadata of a kind whose names follow a rule, such as [`names::dns_label`].
pub fn object_meta(metadata: &ObjectMeta, namespaced: bool, name: fn(&str) -> Vec<String>) -> ErrorList {
    meta::validate_object_meta(metadata, namespaced, name, &Path::new("metadata"))
}

/// What an update may not do to metadata.
pub fn object_meta_update(new: &ObjectMeta, old: &ObjectMeta) -> ErrorList {
    meta::validate_object_meta_update(new, old, &Path::new("metadata"))
}

/// The label rules of a selector for seeds, [VAL-S12].
pub fn seed_selector(selector: &SeedSelector, path: &Path) -> ErrorList {
    meta::validate_selector_parts(&selector.match_labels, &selector.match_expressions, path)
}

/// What tells tolerations apart [TOL-2]: an empty value is another than none.
pub fn toleration_identity(toleration: &Toleration) -> String {
    match &toleration.value {
        Some(value) => format!("{}={value}", toleration.key),
        None => toleration.key.clone(),
    }
}

/// Checks a list of tolerations [TOL-4].
pub fn tolerations(tolerations: &[Toleration], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: Vec<String> = Vec::new();
    for (i, toleration) in tolerations.iter().enumerate() {
        let path = path.index(i);
        let (key, identity) = (&toleration.key, toleration_identity(toleration));
        if key.is_empty() {
            errors.push(Error::required(&path.child("key"), "cannot be empty"));
        } else {
            errors.extend(invalid_each(&path.child("key"), key, names::qualified_name(key)));
        }
        if let Some(value) = &toleration.value {
            errors.extend(invalid_each(&path.child("value"), value, names::label_value(value)));
        }
        if seen.contains(&identity) || seen.contains(key) {
            errors.push(Error::duplicate(&path, identity.as_str()));
        }
        seen.push(identity);
    }
    errors
}

/// Checks that tolerations are allowed by a list [TOL-7]: an entry of it without value allows every value of its key.
pub fn allowed_tolerations(tolerations: &[Toleration], allowed: &[Toleration], path: &Path) -> ErrorList {
    let mut identities: Vec<String> = allowed.iter().map(toleration_identity).collect();
    identities.sort();
    identities.dedup();
    let is_allowed = |own: &Toleration| identities.contains(&own.key) || identities.contains(&toleration_identity(own));
    let refused = tolerations.iter().enumerate().filter(|(_, own)| !is_allowed(own));
    let shown = identities.join(" ");
    let why = format!("only the following tolerations are allowed: [{shown}]");
    refused
        .map(|(i, _)| Error::forbidden(&path.index(i), why.as_str()))
        .collect()
}

/// A parsed range of addresses, or the finding that it is none.
pub fn cidr(text: &str, path: &Path) -> Result<IpNet, Error> {
    text.parse::<IpNet>()
        .map_err(|_| Error::invalid(path, text, format!("invalid CIDR address: {text}")))
}

/// The name of an address family, `IPv4` or `IPv6`. IPv4 addresses may be written as IPv6 ones.
pub fn family(net: &IpNet) -> &'static str {
    match net.addr().to_canonical() {
        IpAddr::V4(_) => "IPv4",
        IpAddr::V6(_) => "IPv6",
    }
}

/// A range must be canonical: no bits set beyond its prefix.
pub fn canonical_cidr(net: &IpNet, text: &str, path: &Path) -> ErrorList {
    if net.trunc().addr() == net.addr() {
        ErrorList::new()
    } else {
        vec![Error::invalid(path, text, "must be valid canonical CIDR")]
    }
}

/// Whether two ranges share an address.
pub fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// IP families are known and stand once, [VAL-N3], [VAL-SD4].
pub fn ip_families(families: &[String], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (i, family) in families.iter().enumerate() {
        if !matches!(family.as_str(), "IPv4" | "IPv6") {
            errors.push(Error::not_supported(&path.index(i), family.as_str(), &["IPv4", "IPv6"]));
        }
        if !seen.insert(family) {
            errors.push(Error::duplicate(&path.index(i), family.as_str()));
        }
    }
    errors
}

/// A group, version and kind as Go prints them: `/v1, Kind=Secret`.
pub fn go_kind(api_version: &str, kind: &str) -> String {
    match api_version.split_once('/') {
        Some(_) if is_no_group_version(api_version) => format!("/, Kind={kind}"),
        Some((group, version)) => format!("{group}/{version}, Kind={kind}"),
        None => format!("/{api_version}, Kind={kind}"),
    }
}

/// A finding of a reference (kind, name, version) whose version has more than a group before it.
pub fn no_group_version(path: &Path, (kind, name, version): (&str, &str, &str)) -> Error {
    let shown = go_struct(&[
        ("kind", kind.into()),
        ("name", name.into()),
        ("apiVersion", version.into()),
    ]);
    let why = "cannot determine GroupVersionKind for specified reference: unexpected GroupVersion string";
    Error::literal(path, shown, format!("{why}: {version}"))
}

/// An object reference as Go prints it.
pub fn go_reference(reference: &ObjectReference) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    format!(
        "&ObjectReference{{Kind:{},Namespace:{},Name:{},UID:{},APIVersion:{},ResourceVersion:{},FieldPath:{},}}",
        text(&reference.kind),
        text(&reference.namespace),
        text(&reference.name),
        text(&reference.uid),
        text(&reference.api_version),
        text(&reference.resource_version),
        text(&reference.field_path),
    )
}

/// An object reference as JSON with its members in Go's order.
pub fn reference_in_order(reference: &ObjectReference) -> String {
    let members: Vec<(&str, Value)> = [
        ("kind", &reference.kind),
        ("namespace", &reference.namespace),
        ("name", &reference.name),
        ("uid", &reference.uid),
        ("apiVersion", &reference.api_version),
        ("resourceVersion", &reference.resource_version),
        ("fieldPath", &reference.field_path),
    ]
    .into_iter()
    .filter_map(|(name, value)| {
        value
            .as_deref()
            .filter(|own| !own.is_empty())
            .map(|own| (name, own.into()))
    })
    .collect();
    go_struct(&members)
}

/// A list as Go prints it, whose elements it prints in a way of their own.
pub fn go_list<T>(list: &[T], element: impl Fn(&T) -> String) -> String {
    match list.is_empty() {
        true => "null".to_owned(),
        false => format!("[{}]", list.iter().map(element).collect::<Vec<_>>().join(",")),
    }
}

/// What a pointer leads to as Go prints it.
pub fn go_pointer<T>(value: Option<&T>, shown: impl Fn(&T) -> String) -> String {
    value.map_or_else(|| "null".to_owned(), shown)
}

/// A finding when a field has changed whose value Go prints in a way of its own.
pub fn immutable_as<T: PartialEq + ?Sized>(new: &T, old: &T, path: &Path, shown: impl Fn(&T) -> String) -> ErrorList {
    match new == old {
        true => ErrorList::new(),
        false => vec![Error::literal(path, shown(new), IMMUTABLE)],
    }
}

/// A finding when a list of references has changed.
pub fn immutable_references(new: &[ObjectReference], old: &[ObjectReference], path: &Path) -> ErrorList {
    immutable_as(new, old, path, |list| go_list(list, reference_in_order))
}

/// The kinds of credentials that a reference may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Secrets and WorkloadIdentities.
    SecretOrWorkloadIdentity,
    /// Those and InternalSecrets.
    AnySecretOrWorkloadIdentity,
}

impl Credentials {
    fn kinds(self) -> &'static [(&'static str, &'static str)] {
        const SECRET: (&str, &str) = ("v1", "Secret");
        const INTERNAL: (&str, &str) = ("core.gardener.cloud/v1beta1", "InternalSecret");
        const IDENTITY: (&str, &str) = ("security.gardener.cloud/v1alpha1", "WorkloadIdentity");
        match self {
            Self::SecretOrWorkloadIdentity => &[SECRET, IDENTITY],
            Self::AnySecretOrWorkloadIdentity => &[SECRET, INTERNAL, IDENTITY],
        }
    }
}

/// A reference to credentials: complete and of an allowed kind, [VAL-CB1], [VAL-SD5].
pub fn credentials_ref(reference: &ObjectReference, allowed: Credentials, namespaced: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let api_version = reference.api_version.as_deref().unwrap_or_default();
    let kind = reference.kind.as_deref().unwrap_or_default();
    let name = reference.name.as_deref().unwrap_or_default();
    if api_version.is_empty() {
        errors.push(Error::required(&path.child("apiVersion"), "must provide an apiVersion"));
    }
    if kind.is_empty() {
        errors.push(Error::required(&path.child("kind"), "must provide a kind"));
    }
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), "must provide a name"));
    }
    errors.extend(invalid_each(&path.child("name"), name, names::dns_subdomain(name)));
    if namespaced {
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        if namespace.is_empty() {
            errors.push(Error::required(&path.child("namespace"), "must provide a namespace"));
        }
        errors.extend(invalid_each(
            &path.child("namespace"),
            namespace,
            names::dns_subdomain(namespace),
        ));
    }
    if !allowed.kinds().contains(&(api_version, kind)) {
        let supported: Vec<String> = allowed
            .kinds()
            .iter()
            .map(|(version, kind)| go_kind(version, kind))
            .collect();
        errors.push(Error::not_supported(path, go_reference(reference), &supported));
    }
    errors
}

/// A struct as Go prints it in a finding whose type has no JSON names: its fields in their order.
pub fn go_struct(fields: &[(&str, Value)]) -> String {
    let fields: Vec<(&str, String)> = fields.iter().map(|(name, value)| (*name, go_json(value))).collect();
    go_members(&fields)
}

/// As [`go_struct`], of values that are written already, such as structs in structs.
pub fn go_members(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// A reference by a name, and perhaps a namespace, [VAL-SB1], [VAL-CB1].
pub fn name_and_namespace(name: Option<&str>, namespace: Option<&str>, path: &Path) -> ErrorList {
    let (name, namespace) = (name.unwrap_or_default(), namespace.unwrap_or_default());
    let mut errors = match name.is_empty() {
        true => vec![Error::required(&path.child("name"), "must provide a name")],
        false => invalid_each(&path.child("name"), name, names::dns_subdomain(name)),
    };
    if !namespace.is_empty() {
        errors.extend(invalid_each(
            &path.child("namespace"),
            namespace,
            names::dns_label(namespace),
        ));
    }
    errors
}

/// Certificates in PEM form, [VAL-P10], [VAL-CP13]; only the first is looked at, as upstream does.
pub fn ca_bundle(text: &str, path: &Path) -> ErrorList {
    match gardener_pki::begins_with_certificate(text) {
        true => ErrorList::new(),
        false => vec![Error::invalid(
            path,
            text,
            "caBundle is not a valid PEM-encoded certificate",
        )],
    }
}

/// The size of a volume in the form `20Gi`, [VAL-P11].
pub fn is_volume_size(text: &str) -> bool {
    text.strip_suffix("Gi")
        .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
}

/// The annotation `gardener.cloud/operation` of kinds that know a fixed set, [VAL-SD1].
pub fn operation_annotation(new: &ObjectMeta, old: Option<&ObjectMeta>, supported: &[&str]) -> ErrorList {
    use crate::constants::annotation::OPERATION;
    let value = |meta: &ObjectMeta| meta.annotations.as_ref().and_then(|all| all.get(OPERATION)).cloned();
    let path = Path::new("metadata.annotations").key(OPERATION);
    let mut errors = ErrorList::new();
    let Some(operation) = value(new).filter(|operation| !operation.is_empty()) else {
        return errors;
    };
    if !supported.contains(&operation.as_str()) {
        errors.push(Error::not_supported(&path, operation.as_str(), supported));
    }
    if let Some(before) = old.and_then(value)
        && !before.is_empty()
        && before != operation
    {
        errors.push(Error::forbidden(
            &path,
            format!("must not overwrite operation {before:?} with {operation:?}"),
        ));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let path = Path::new("p");
        assert_eq!(
            cidr("nope", &path).unwrap_err().to_string(),
            "p: Invalid value: \"nope\": invalid CIDR address: nope"
        );
        assert!(cidr("10.1.2.3/40", &path).is_err());
        let net = cidr("10.0.0.1/8", &path).unwrap();
        assert_eq!(canonical_cidr(&net, "10.0.0.1/8", &path).len(), 1);
        assert!(overlap(&net, &"10.2.0.0/16".parse().unwrap()));
        assert!(!overlap(&net, &"11.2.0.0/16".parse().unwrap()));
    }

    #[test]
    fn references_name_their_kind_as_go_does() {
        assert_eq!(go_kind("v1", "Secret"), "/v1, Kind=Secret");
        assert_eq!(
            go_kind("core.gardener.cloud/v1beta1", "Project"),
            "core.gardener.cloud/v1beta1, Kind=Project"
        );
    }

    #[test]
    fn val_p11_sizes() {
        assert!(is_volume_size("30Gi"));
        for bad in ["Gi", "3.5Gi", "30G", "-3Gi"] {
            assert!(!is_volume_size(bad), "{bad}");
        }
    }
}
