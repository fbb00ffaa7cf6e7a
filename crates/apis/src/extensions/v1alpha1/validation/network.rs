//! Networks.

use gardener_apimachinery::field::{Error, ErrorList, Path};

use crate::extensions::v1alpha1::{Network, NetworkSpec};
use crate::validation::extension_object::{ExtensionObject, required};
use crate::validation::{Range, immutable, ip_families, overlapping};

impl ExtensionObject for Network {
    type Spec = NetworkSpec;
    const NAMESPACED: bool = true;
    const WORDS: &'static str = "network";

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn validate_content(&self) -> ErrorList {
        let (spec, path) = (&self.spec, Path::new("spec"));
        let mut errors = required(&path, &[("type", spec.r#type.is_empty())]);
        let unknown = ip_families(&spec.ip_families, &path.child("ipFamilies"));
        if !unknown.is_empty() {
            // of which family the ranges should be is not known
            errors.extend(unknown);
            return errors;
        }
        let (mut ranges, mut unreadable) = (Vec::new(), ErrorList::new());
        for (name, text) in [("podCIDR", &spec.pod_cidr), ("serviceCIDR", &spec.service_cidr)] {
            if text.is_empty() {
                errors.push(Error::required(&path.child(name), "field is required"));
                continue;
            }
            match Range::parse(text, path.child(name)) {
                Ok(range) => ranges.push(range),
                Err(error) => unreadable.push(error),
            }
        }
        errors.extend(unreadable);
        // with two families, the first one need not be that of the ranges
        if spec.ip_families.len() < 2 {
            let primary = spec.ip_families.first().map_or("IPv4", String::as_str);
            errors.extend(ranges.iter().filter_map(|range| range.of_other_family(primary)));
        }
        if spec.ip_families != ["IPv6"] {
            errors.extend(overlapping(&ranges.iter().collect::<Vec<_>>()));
        }
        errors
    }

    fn validate_changes(new: &NetworkSpec, old: &NetworkSpec, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        if !may_follow(&new.ip_families, &old.ip_families) {
            let families = |list: &[String]| list.join(" ");
            let why = format!(
                "unsupported IP family update: oldIPFamilies=[{}], newIPFamilies=[{}]",
                families(&old.ip_families),
                families(&new.ip_families)
            );
            errors.push(Error::forbidden(&path.child("ipFamilies"), why));
        }
        errors.extend(immutable(&new.r#type, &old.r#type, &path.child("type")));
        errors.extend(immutable(&new.pod_cidr, &old.pod_cidr, &path.child("podCIDR")));
        errors.extend(immutable(
            &new.service_cidr,
            &old.service_cidr,
            &path.child("serviceCIDR"),
        ));
        errors
    }
}

/// Whether a network may go from some families to others: IPv6 may come beside IPv4, and go again.
fn may_follow(new: &[String], old: &[String]) -> bool {
    const BOTH: [&str; 2] = ["IPv4", "IPv6"];
    new == old || (old == ["IPv4"] && new == BOTH) || (old == BOTH && new == ["IPv4"])
}
