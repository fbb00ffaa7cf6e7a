//! DNSRecords [EXT-51].

use std::net::IpAddr;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{ip, names};

use crate::extensions::v1alpha1::{DNSRecord, DNSRecordSpec};
use crate::validation::extension_object::{ExtensionObject, is_unnamed, required};
use crate::validation::{immutable, shown};

const RECORD_TYPES: [&str; 4] = ["A", "AAAA", "CNAME", "TXT"];

impl ExtensionObject for DNSRecord {
    type Spec = DNSRecordSpec;
    const NAMESPACED: bool = true;
    const WORDS: &'static str = "dns record";

    fn spec(&self) -> &DNSRecordSpec {
        &self.spec
    }

    fn validate_content(&self) -> ErrorList {
        let (spec, path) = (&self.spec, Path::new("spec"));
        let needed = [
            ("type", spec.r#type.is_empty()),
            ("secretRef.name", is_unnamed(&spec.secret_ref)),
        ];
        let mut errors = required(&path, &needed);
        for (name, value) in [("region", &spec.region), ("zone", &spec.zone)] {
            if value.as_deref() == Some("") {
                let why = "field cannot be empty if specified";
                errors.push(Error::invalid(&path.child(name), "", why));
            }
        }
        // challenges for certificates are names with an underscore, and only TXT records have them
        let prefix = if spec.record_type == "TXT" { "_" } else { "*." };
        let name = spec.name.strip_prefix(prefix).unwrap_or(&spec.name);
        errors.extend(names::fully_qualified_domain_name(name, &path.child("name")));
        if !RECORD_TYPES.contains(&spec.record_type.as_str()) {
            let at = path.child("recordType");
            errors.push(Error::not_supported(&at, spec.record_type.as_str(), &RECORD_TYPES));
        }
        errors.extend(values(spec, &path.child("values")));
        if let Some(ttl) = spec.ttl.filter(|ttl| !(0..=i64::from(i32::MAX)).contains(ttl)) {
            let why = format!("must be between 0 and {}, inclusive", i32::MAX);
            errors.push(Error::invalid(&path.child("ttl"), ttl, why));
        }
        errors
    }

    fn validate_changes(new: &DNSRecordSpec, old: &DNSRecordSpec, path: &Path) -> ErrorList {
        let mut errors = immutable(&new.r#type, &old.r#type, &path.child("type"));
        errors.extend(immutable(&new.name, &old.name, &path.child("name")));
        errors.extend(immutable(&new.record_type, &old.record_type, &path.child("recordType")));
        errors
    }
}

/// What a record leads to.
fn values(spec: &DNSRecordSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.values.is_empty() {
        errors.push(Error::required(path, "field is required"));
    }
    if spec.record_type == "CNAME" && spec.values.len() > 1 {
        let why = "CNAME records must have a single value";
        errors.push(Error::invalid(path, shown(&spec.values), why));
    }
    for (i, value) in spec.values.iter().enumerate() {
        let at = path.index(i);
        errors.extend(match spec.record_type.as_str() {
            "A" | "AAAA" if value.parse::<IpAddr>().is_err() => {
                Some(Error::invalid(&at, value.as_str(), ip::NO_ADDRESS))
            }
            "CNAME" => names::fully_qualified_domain_name(value, &at),
            _ => None,
        });
    }
    errors
}
