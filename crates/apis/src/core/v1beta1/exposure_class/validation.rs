//! Validation of exposure classes, [VAL-EC1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use serde_json::Value;

use super::*;
use crate::validation::{
    go_list, go_members, go_pointer, go_struct, immutable, immutable_as, invalid_each, object_meta, seed_selector,
    shown, tolerations,
};

const HANDLER_MAX: usize = 34;

/// Checks an exposure class that is to be created or stored again.
pub fn validate_exposure_class(class: &ExposureClass) -> ErrorList {
    let mut errors = object_meta(&class.metadata, false, names::dns_label);
    let path = Path::new("handler");
    // upstream shows the class's name here
    let name = class.metadata.name.as_deref().unwrap_or_default();
    errors.extend(invalid_each(&path, name, names::dns_label(&class.handler)));
    if class.handler.len() > HANDLER_MAX {
        errors.push(Error::invalid(
            &path,
            name,
            format!("exposure class handler is restricted to {HANDLER_MAX} characters"),
        ));
    }
    if let Some(scheduling) = &class.scheduling {
        let path = Path::new("scheduling");
        if let Some(selector) = &scheduling.seed_selector {
            errors.extend(seed_selector(selector, &path.child("seedSelector")));
        }
        errors.extend(tolerations(&scheduling.tolerations, &path.child("tolerations")));
    }
    errors
}

/// Checks a change of an exposure class: of a stored one nothing else is looked at. Upstream shows the old value.
pub fn validate_exposure_class_update(new: &ExposureClass, old: &ExposureClass) -> ErrorList {
    let mut errors = immutable(&old.handler, &new.handler, &Path::new("handler"));
    let at = Path::new("scheduling");
    errors.extend(immutable_as(&old.scheduling, &new.scheduling, &at, |own| {
        go_pointer(own.as_ref(), go_scheduling)
    }));
    errors
}

/// A class's scheduling as Go prints it.
fn go_scheduling(scheduling: &ExposureClassScheduling) -> String {
    let toleration = |own: &Toleration| go_struct(&[("Key", own.key.as_str().into()), ("Value", shown(&own.value))]);
    go_members(&[
        (
            "SeedSelector",
            go_pointer(scheduling.seed_selector.as_ref(), go_selector),
        ),
        ("Tolerations", go_list(&scheduling.tolerations, toleration)),
    ])
}

/// A seed selector as Go prints it: the labels by their names in JSON, the providers' types, which have none, by Go's.
fn go_selector(selector: &SeedSelector) -> String {
    let selector = shown(selector);
    let mut members: Vec<(&str, Value)> = ["matchLabels", "matchExpressions"]
        .into_iter()
        .filter_map(|name| Some((name, selector.get(name)?.clone())))
        .collect();
    let types = selector.get("providerTypes").cloned().unwrap_or_default();
    members.push(("ProviderTypes", types));
    go_struct(&members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_ec1_handler() {
        let old: ExposureClass =
            serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}, "handler": "inet"})).unwrap();
        let mut new = old.clone();
        new.handler = "other".into();
        let texts: Vec<String> = validate_exposure_class_update(&new, &old)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, ["handler: Invalid value: \"inet\": field is immutable"]);
        new.handler = "a".repeat(35);
        assert_eq!(validate_exposure_class(&new).len(), 1);
    }
}
