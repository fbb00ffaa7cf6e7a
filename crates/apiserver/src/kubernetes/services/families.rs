//! Families of addresses of services: which a service gets, and what it may ask for.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::{Map, Value, json};

use crate::kubernetes::addresses;
use crate::kubernetes::checks::{map, text};

const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const NONE: &str = "None";

/// The texts of a list.
pub(super) fn texts(spec: &Map<String, Value>, key: &str) -> Vec<String> {
    let list = spec.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is_headless(spec: &Map<String, Value>) -> bool {
    text_of(spec, "clusterIP") == NONE
}

fn text_of<'s>(spec: &'s Map<String, Value>, key: &str) -> &'s str {
    spec.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The family of an address.
pub(super) fn family(address: &str) -> &'static str {
    if address.contains(':') { "IPv6" } else { "IPv4" }
}

/// Has the list of addresses follow the one address that older clients know, and both what was before.
pub(super) fn follow_address(spec: &mut Map<String, Value>, old: Option<&Value>) {
    let own = text_of(spec, "clusterIP").to_owned();
    let Some(old) = old.and_then(|old| old.get("spec")).and_then(Value::as_object) else {
        if !own.is_empty() && texts(spec, "clusterIPs").is_empty() {
            spec.insert("clusterIPs".to_owned(), json!([own]));
        }
        return;
    };
    let before = text_of(old, "clusterIP");
    let has_addresses = |spec: &Map<String, Value>| text_of(spec, "type") != "ExternalName";
    let keeps_addresses = has_addresses(spec) && has_addresses(old);
    if keeps_addresses && own.is_empty() {
        spec.insert("clusterIP".to_owned(), before.into());
    }
    let own = text_of(spec, "clusterIP").to_owned();
    if texts(spec, "clusterIPs").is_empty() && (keeps_addresses || own == before) && !before.is_empty() {
        // a service that was written before there was the list has none
        let list = old.get("clusterIPs").cloned();
        spec.insert("clusterIPs".to_owned(), list.unwrap_or_else(|| json!([before])));
    }
    if own != before && texts(spec, "clusterIPs") == texts(old, "clusterIPs") {
        match own.as_str() {
            "" => spec.remove("clusterIPs"),
            own => spec.insert("clusterIPs".to_owned(), json!([own])),
        };
    }
}

/// Fills in what a service lacks that was stored before there were lists of addresses and families. Those of a headless one are told as where IPv4
/// comes first.
pub(super) fn fill_stored(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if text_of(spec, "type") == "ExternalName" {
        spec.remove("internalTrafficPolicy");
    }
    follow_address(spec, None);
    if text_of(spec, "type") == "ExternalName" || !texts(spec, "ipFamilies").is_empty() {
        return;
    }
    let has_selector = spec
        .get("selector")
        .and_then(Value::as_object)
        .is_some_and(|own| !own.is_empty());
    let families = match is_headless(spec) {
        true if has_selector => vec!["IPv4"],
        true => vec!["IPv4", "IPv6"],
        false => texts(spec, "clusterIPs").iter().map(|own| family(own)).collect(),
    };
    let policy = match families.len() {
        0 => return,
        1 => "SingleStack",
        _ => "RequireDualStack",
    };
    spec.insert("ipFamilies".to_owned(), json!(families));
    spec.insert("ipFamilyPolicy".to_owned(), policy.into());
}

/// What is wrong with addresses, families and their policy, before any is chosen.
pub(super) fn validate(spec: &Map<String, Value>, known: &[String]) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let at = path.child("clusterIPs");
    let (own, all) = (text_of(spec, "clusterIP"), texts(spec, "clusterIPs"));
    match (own, all.first()) {
        ("", Some(_)) => {
            let why = "must be empty when `clusterIP` is not specified";
            errors.push(Error::invalid(&at, json!(all), why));
        }
        ("", None) => {}
        (_, None) => errors.push(Error::required(&at, "")),
        (own, Some(first)) if own != first => {
            errors.push(Error::invalid(&at, json!(all), "first value must match `clusterIP`"));
        }
        _ => {}
    }
    let families = texts(spec, "ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, family) in families.iter().enumerate() {
        let at = path.child("ipFamilies").index(index);
        if !matches!(family.as_str(), "IPv4" | "IPv6") {
            errors.push(Error::not_supported(&at, family.as_str(), &["IPv4", "IPv6"]));
        }
        if !seen.insert(family) {
            errors.push(Error::duplicate(&at, family.as_str()));
        }
    }
    if let Some(policy) = spec.get("ipFamilyPolicy").and_then(Value::as_str)
        && !POLICIES.contains(&policy)
    {
        errors.push(Error::not_supported(&path.child("ipFamilyPolicy"), policy, &POLICIES));
    }
    let before = errors.len();
    for (index, address) in all.iter().enumerate() {
        if index == 0 && address == NONE {
            if all.len() > 1 {
                errors.push(Error::invalid(
                    &at,
                    json!(all),
                    "'None' must be the first and only value",
                ));
            }
        } else if !known.contains(address) {
            addresses::address(address, &at.index(index), &mut errors);
        }
    }
    let is_wrong = errors.len() > before;
    if all.len() > 2 {
        errors.push(Error::invalid(&at, json!(all), "may only hold up to 2 values"));
    }
    if is_wrong {
        return errors;
    }
    if let [first, second] = all.as_slice()
        && family(first) == family(second)
    {
        let why = "may specify no more than one IP for each IP family";
        errors.push(Error::invalid(&at, json!(all), why));
    }
    if !is_headless(spec) {
        for (index, (address, wanted)) in all.iter().zip(&families).enumerate() {
            if matches!(wanted.as_str(), "IPv4" | "IPv6") && family(address) != wanted {
                let why = format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
                errors.push(Error::invalid(&at.index(index), address.as_str(), why));
            }
        }
    }
    errors
}

/// Whether a service prefers both families, and nothing changes in that: then it does not get more or less because the cluster has another number of them.
fn prefers_both_as_before(spec: &Map<String, Value>, old: &Map<String, Value>) -> bool {
    const PREFERS: &str = "PreferDualStack";
    let has_address = matches!(text_of(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer");
    let same = |key: &str| text_of(spec, key) == text_of(old, key);
    let same_list = |key: &str| texts(spec, key) == texts(old, key);
    has_address
        && same("type")
        && text_of(spec, "ipFamilyPolicy") == PREFERS
        && matches!(text_of(old, "ipFamilyPolicy"), "" | PREFERS)
        && same("clusterIP")
        && same_list("clusterIPs")
        && same_list("ipFamilies")
}

/// Chooses policy and families for a cluster that has addresses of `configured` ones, the first of which is the default.
///
/// # Errors
/// What was asked for contradicts itself, or the cluster.
pub(super) fn choose(spec: &mut Map<String, Value>, old: Option<&Value>, configured: &[&str]) -> Result<(), ErrorList> {
    let old = old.and_then(|old| old.get("spec")).and_then(Value::as_object);
    if old.is_some_and(|old| prefers_both_as_before(spec, old)) {
        return Ok(());
    }
    let path = Path::new("spec");
    let headless = is_headless(spec);
    let selects = map(&Value::Object(spec.clone()), "selector").next().is_some();
    if !spec.contains_key("ipFamilyPolicy") {
        let before = old.map(|old| text_of(old, "ipFamilyPolicy")).unwrap_or_default();
        let policy = match before {
            "" if headless && !selects => "RequireDualStack",
            "" => "SingleStack",
            before => before,
        };
        spec.insert("ipFamilyPolicy".to_owned(), policy.into());
    }
    let known = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    let wrong = validate(spec, &known);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut errors = ErrorList::new();
    let policy = text_of(spec, "ipFamilyPolicy").to_owned();
    let policy_at = path.child("ipFamilyPolicy");
    let of_policy = |why: &str, errors: &mut ErrorList| {
        errors.push(Error::invalid(&policy_at, policy.as_str(), why));
    };
    let is_single = policy == "SingleStack";
    if let Some(old) = old {
        for (key, what) in [
            ("clusterIPs", "secondary cluster IP"),
            ("ipFamilies", "secondary IP family"),
        ] {
            let (own, before) = (texts(spec, key), texts(old, key));
            if is_single && own == before && own.len() > 1 {
                spec.insert(key.to_owned(), json!(own.get(..1)));
            } else if !is_single && !own.is_empty() && own.len() < before.len() {
                of_policy(&format!("must be 'SingleStack' to release the {what}"), &mut errors);
            }
        }
    }
    if is_single {
        for (key, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if texts(spec, key).len() == 2 {
                let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
                of_policy(&why, &mut errors);
            }
        }
    }
    let mut families = texts(spec, "ipFamilies");
    let all = texts(spec, "clusterIPs");
    for (index, address) in all.iter().enumerate().take_while(|(_, address)| *address != NONE) {
        if index < families.len() {
            continue;
        }
        let own = family(address);
        match configured.contains(&own) {
            true => families.push(own.to_owned()),
            false => {
                let why = format!("{own} is not configured on this cluster");
                errors.push(Error::invalid(&path.child("clusterIPs").index(index), json!(all), why));
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let default = configured.first().copied().unwrap_or("IPv4");
    let other = |family: &str| if family == "IPv4" { "IPv6" } else { "IPv4" };
    if headless && !selects {
        // whoever brings endpoints along may bring those of both families
        if families.is_empty() {
            families.push(default.to_owned());
        }
        if let [only] = families.as_slice()
            && !is_single
        {
            families.push(other(only).to_owned());
        }
        spec.insert("ipFamilies".to_owned(), json!(families));
        return Ok(());
    }
    if policy == "RequireDualStack" && configured.len() < 2 {
        of_policy("this cluster is not configured for dual-stack services", &mut errors);
    }
    for (index, family) in families.iter().enumerate() {
        if !configured.contains(&family.as_str()) {
            let at = path.child("ipFamilies").index(index);
            errors.push(Error::invalid(&at, family.as_str(), "not configured on this cluster"));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if families.is_empty() {
        families.push(default.to_owned());
    }
    if let [only] = families.as_slice()
        && !is_single
        && configured.len() == 2
    {
        families.push(other(only).to_owned());
    }
    spec.insert("ipFamilies".to_owned(), json!(families));
    Ok(())
}

const UNCHANGEABLE: &str = "may not change once set";

/// What may not change in a service's addresses and families.
pub(super) fn validate_change(service: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let empty = Map::new();
    let spec = |service: &'_ Value| {
        service
            .get("spec")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_else(|| empty.clone())
    };
    let (new, before) = (spec(service), spec(old));
    let is_external = |spec: &Map<String, Value>| text_of(spec, "type") == "ExternalName";
    if is_external(&new) || is_external(&before) {
        return errors;
    }
    let policy = new.get("ipFamilyPolicy").cloned().unwrap_or(Value::Null);
    let path = Path::new("spec");
    let (is_now, was) = (is_headless(&new), is_headless(&before));
    for (key, of) in [("clusterIPs", "clusterIP"), ("ipFamilies", "ipFamily")] {
        // one without an address has any families, and whoever becomes one or is one no longer changes them, too
        if is_now && was || is_now != was && key == "ipFamilies" {
            continue;
        }
        let at = path.child(key);
        let (own, old) = (texts(&new, key), texts(&before, key));
        if own.len() == old.len() {
            let changed = own.iter().zip(&old).enumerate().filter(|(_, (own, old))| own != old);
            for (index, _) in changed {
                // of families, upstream always tells the first
                let index = if key == "clusterIPs" { index } else { 0 };
                errors.push(Error::invalid(&at.index(index), json!(own), UNCHANGEABLE));
            }
            continue;
        }
        if own.len() < old.len() && texts(&new, "clusterIPs").is_empty() {
            let why = format!("primary {of} can not be unset");
            errors.push(Error::invalid(&at.index(0), json!(own), why));
        }
        if let (Some(first), Some(old)) = (own.first(), old.first())
            && first != old
        {
            // upstream shows the addresses here, whatever changed
            let shown = json!(texts(&new, "clusterIPs"));
            errors.push(Error::invalid(&at.index(0), shown, UNCHANGEABLE));
        }
        if own.len() == 1 && old.len() > 1 && policy != json!("SingleStack") {
            let why = format!("must be set to 'SingleStack' when releasing the secondary {of}");
            errors.push(Error::invalid(&path.child("ipFamilyPolicy"), policy.clone(), why));
        }
    }
    errors
}

/// The kind of a service, from its spec.
pub(super) fn kind(service: &Value) -> &str {
    text(service.get("spec").unwrap_or(&Value::Null), "type")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a change of a service's addresses and families.
    fn changed(old: (&[&str], &[&str]), new: (&[&str], &[&str]), policy: &str) -> Vec<String> {
        let service = |(addresses, families): (&[&str], &[&str])| {
            json!({"spec": {
                "type": "ClusterIP",
                "clusterIP": addresses.first(),
                "clusterIPs": addresses,
                "ipFamilies": families,
                "ipFamilyPolicy": policy,
            }})
        };
        let errors = validate_change(&service(new), &service(old));
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn services_of_old_have_lists_as_well() {
        for (spec, expected) in [
            (
                json!({"type": "ClusterIP", "clusterIP": "10.0.0.1"}),
                json!([["10.0.0.1"], ["IPv4"], "SingleStack"]),
            ),
            (
                json!({"type": "NodePort", "clusterIP": "fd00::1", "clusterIPs": ["fd00::1"]}),
                json!([["fd00::1"], ["IPv6"], "SingleStack"]),
            ),
            (
                json!({"type": "ClusterIP", "clusterIP": "None"}),
                json!([["None"], ["IPv4", "IPv6"], "RequireDualStack"]),
            ),
            (
                json!({"type": "ClusterIP", "clusterIP": "None", "selector": {"a": "b"}}),
                json!([["None"], ["IPv4"], "SingleStack"]),
            ),
            (
                json!({"type": "ExternalName", "externalName": "a.b"}),
                json!([null, null, null]),
            ),
            (
                json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "PreferDualStack"}),
                json!([["10.0.0.1"], ["IPv4"], "PreferDualStack"]),
            ),
        ] {
            let mut service = json!({"spec": spec});
            fill_stored(&mut service);
            let told = ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].map(|key| service["spec"][key].clone());
            assert_eq!(json!(told), expected, "{spec}");
        }
    }

    #[test]
    fn who_prefers_both_families_gets_no_more_on_its_own() {
        let spec = |policy: &str, addresses: &[&str]| {
            json!({
                "type": "ClusterIP",
                "clusterIP": addresses.first(),
                "clusterIPs": addresses,
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": policy,
            })
        };
        let old = spec("PreferDualStack", &["10.0.0.1"]);
        for (new, before, expected) in [
            (old.clone(), old.clone(), json!(["IPv4"])),
            (
                spec("RequireDualStack", &["10.0.0.1"]),
                old.clone(),
                json!(["IPv4", "IPv6"]),
            ),
            (old.clone(), spec("SingleStack", &["10.0.0.1"]), json!(["IPv4", "IPv6"])),
            (
                spec("PreferDualStack", &["10.0.0.1", "fd00::1"]),
                old,
                json!(["IPv4", "IPv6"]),
            ),
        ] {
            let mut chosen = new.as_object().cloned().unwrap_or_default();
            choose(&mut chosen, Some(&json!({"spec": before})), &["IPv4", "IPv6"]).unwrap();
            assert_eq!(chosen.get("ipFamilies"), Some(&expected), "{new}");
        }
    }

    #[test]
    fn families_change_only_where_there_is_no_address() {
        let (four, six) = (["10.0.0.20"].as_slice(), ["fd00::20"].as_slice());
        let (v4, v6) = (["IPv4"].as_slice(), ["IPv6"].as_slice());
        let none = [NONE].as_slice();
        assert!(changed((none, v6), (none, &["IPv4", "IPv6"]), "PreferDualStack").is_empty());
        assert!(changed((none, &["IPv4", "IPv6"]), (none, v6), "SingleStack").is_empty());
        assert_eq!(
            changed((none, v6), (four, v4), "SingleStack"),
            ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.20\"]: may not change once set"]
        );
        assert_eq!(
            changed((six, v6), (six, v4), "SingleStack"),
            ["spec.ipFamilies[0]: Invalid value: [\"IPv4\"]: may not change once set"]
        );
        assert_eq!(
            changed((six, v6), (six, &["IPv4", "IPv6"]), "PreferDualStack"),
            ["spec.ipFamilies[0]: Invalid value: [\"fd00::20\"]: may not change once set"]
        );
        assert_eq!(
            changed(
                (&["10.0.0.20", "fd00::20"], &["IPv4", "IPv6"]),
                (four, v4),
                "PreferDualStack"
            ),
            [
                "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing the secondary clusterIP",
                "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing the secondary ipFamily",
            ]
        );
    }
}
