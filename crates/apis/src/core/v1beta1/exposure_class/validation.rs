//! Validation of exposure classes, [VAL-EC1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;

use super::*;
use crate::validation::{invalid_each, object_meta, object_meta_update, seed_selector, shown, tolerations};

const HANDLER_MAX: usize = 34;

/// Checks an exposure class that is to be created or stored again.
pub fn validate_exposure_class(class: &ExposureClass) -> ErrorList {
    let mut errors = object_meta(&class.metadata, false);
    let path = Path::new("handler");
    errors.extend(invalid_each(&path, &class.handler, names::dns_label(&class.handler)));
    if class.handler.len() > HANDLER_MAX {
        errors.push(Error::invalid(
            &path,
            class.handler.as_str(),
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

/// Checks a change of an exposure class. Upstream shows the old value.
pub fn validate_exposure_class_update(new: &ExposureClass, old: &ExposureClass) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    if new.handler != old.handler {
        errors.push(Error::invalid(
            &Path::new("handler"),
            old.handler.as_str(),
            crate::validation::IMMUTABLE,
        ));
    }
    if new.scheduling != old.scheduling {
        errors.push(Error::invalid(
            &Path::new("scheduling"),
            shown(&old.scheduling),
            crate::validation::IMMUTABLE,
        ));
    }
    errors.extend(validate_exposure_class(new));
    errors
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
