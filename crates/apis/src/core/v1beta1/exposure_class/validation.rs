//! Validation of exposure classes, [VAL-EC1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use serde_json::Value;

use super::*;
use crate::validation::{IMMUTABLE, go_struct, invalid_each, object_meta, seed_selector, shown, tolerations};

const HANDLER_MAX: usize = 34;

/// Checks an exposure class that is to be created or stored again.
pub fn validate_exposure_class(class: &ExposureClass) -> ErrorList {
    let mut errors = object_meta(&class.metadata, false, gardener_apimachinery::names::dns_label);
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
    let mut errors = ErrorList::new();
    if new.handler != old.handler {
        let at = Path::new("handler");
        errors.push(Error::invalid(&at, old.handler.as_str(), IMMUTABLE));
    }
    if new.scheduling != old.scheduling {
        let shown = old.scheduling.as_ref().map_or_else(|| "null".to_owned(), go_scheduling);
        errors.push(Error::literal(&Path::new("scheduling"), shown, IMMUTABLE));
    }
    errors
}

/// A class's scheduling as Go prints it.
fn go_scheduling(scheduling: &ExposureClassScheduling) -> String {
    let selector = scheduling.seed_selector.as_ref().map_or(Value::Null, shown);
    let tolerations = match scheduling.tolerations.is_empty() {
        true => "null".to_owned(),
        false => {
            let each: Vec<String> = scheduling
                .tolerations
                .iter()
                .map(|own| go_struct(&[("Key", own.key.as_str().into()), ("Value", shown(&own.value))]))
                .collect();
            format!("[{}]", each.join(","))
        }
    };
    let selector = match selector {
        Value::Object(mut members) => {
            // the providers' types are a field of Gardener's own, which has no JSON name
            let types = members.remove("providerTypes").unwrap_or(Value::Null);
            let labels = Value::Object(members).to_string();
            let labels = labels
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'))
                .unwrap_or_default();
            let comma = if labels.is_empty() { "" } else { "," };
            format!("{{{labels}{comma}\"ProviderTypes\":{types}}}")
        }
        other => other.to_string(),
    };
    format!("{{\"SeedSelector\":{selector},\"Tolerations\":{tolerations}}}")
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
