//! How much of a device's capacity may be asked for at once.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use serde_json::{Value, json};

use crate::kubernetes::checks::{amount, list};

/// Most amounts of which one may be asked for.
const OPTIONS: usize = 10;

/// What is wrong with the policy of a capacity: amounts, or a range of them, to which the default belongs.
pub(super) fn validate(policy: &Value, capacity: &Value, path: &Path, errors: &mut ErrorList) {
    let of = |value: &Value, key: &str| value.get(key).and_then(amount);
    let (options, range) = (list(policy, "validValues"), policy.get("validRange"));
    let (whole, default) = (of(capacity, "value").unwrap_or(Amount::units(0)), of(policy, "default"));
    let (key, default) = match (options.is_empty(), range, default) {
        (false, Some(_), _) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.push(Error::forbidden(path, why));
            return;
        }
        (true, None, _) => return,
        (false, None, Some(default)) => ("validValues", default),
        (true, Some(_), Some(default)) => ("validRange", default),
        (is_empty, _, None) => {
            let key = if is_empty { "validRange" } else { "validValues" };
            let why = format!("required when {key} is defined");
            errors.push(Error::required(&path.child("default"), why));
            return;
        }
    };
    let at = path.child(key);
    match range {
        Some(range) => validate_range(range, default, whole, &at, errors),
        None => {
            let options: Vec<Amount> = options.iter().filter_map(amount).collect();
            validate_options(&options, default, whole, &at, errors);
        }
    }
}

fn validate_options(options: &[Amount], default: Amount, whole: Amount, path: &Path, errors: &mut ErrorList) {
    for (index, (own, next)) in options.iter().zip(options.iter().skip(1)).enumerate() {
        if own > next {
            let why = "values must be sorted in ascending order";
            errors.push(Error::invalid(&path.index(index + 1), next.to_string(), why));
        }
    }
    let is_many = options.len() > OPTIONS;
    if is_many {
        errors.push(Error::too_many(path, options.len(), OPTIONS));
    } else {
        for (index, own) in options.iter().enumerate().filter(|(_, own)| **own > whole) {
            let why = format!("option is larger than capacity value: {whole}");
            errors.push(Error::invalid(&path.index(index), own.to_string(), why));
        }
        let mut seen = BTreeSet::new();
        for (index, own) in options.iter().enumerate() {
            if !seen.insert(own.value()) {
                errors.push(Error::duplicate(&path.index(index), json!(own.value().to_string())));
            }
        }
    }
    // of too many, upstream looks at none
    if is_many || !options.contains(&default) {
        let why = "default value is not valid according to the requestPolicy";
        errors.push(Error::invalid(path, default.to_string(), why));
    }
}

fn validate_range(range: &Value, default: Amount, whole: Amount, path: &Path, errors: &mut ErrorList) {
    let [least, most, step] = ["min", "max", "step"].map(|key| range.get(key).and_then(amount));
    let Some(least) = least else {
        let why = "required when validRange is defined";
        errors.push(Error::required(&path.child("min"), why));
        return;
    };
    let mut refuse = |is_wrong: bool, key: &str, shown: Amount, why: String| {
        if is_wrong {
            errors.push(Error::invalid(&path.child(key), shown.to_string(), why));
        }
    };
    let larger = |what: &str| format!("{what} is larger than capacity value: {whole}");
    refuse(least > whole, "min", least, larger("min"));
    refuse(
        default < least,
        "min",
        default,
        format!("default is less than min: {least}"),
    );
    if let Some(most) = most {
        refuse(least > most, "max", least, format!("min is larger than max: {most}"));
        refuse(most > whole, "max", most, larger("max"));
        refuse(
            default > most,
            "max",
            default,
            format!("default is more than max: {most}"),
        );
    }
    let Some(step) = step else { return };
    let first = least + step;
    refuse(first > whole, "step", step, larger(&format!("one step {first}")));
    for own in [Some(default), most].into_iter().flatten() {
        let beyond = own.value().wrapping_sub(least.value());
        let is_between = beyond.checked_rem(step.value()).is_some_and(|rest| rest != 0);
        let why = format!("value is not a multiple of a given step ({step}) from ({least})");
        refuse(is_between, "step", own, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_ranges_have_their_default_and_fit() {
        for (policy, expected) in [
            (json!({}), vec![]),
            (json!({"default": "1Gi"}), vec![]),
            (json!({"default": "2", "validValues": ["1", "2"]}), vec![]),
            (
                json!({"validValues": ["1"]}),
                vec!["p.default: Required value: required when validValues is defined"],
            ),
            (
                json!({"validRange": {"min": "1"}}),
                vec!["p.default: Required value: required when validRange is defined"],
            ),
            (
                json!({"default": "1", "validValues": ["1"], "validRange": {"min": "1"}}),
                vec![
                    "p: Forbidden: exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
                ],
            ),
            (
                json!({"default": "3", "validValues": ["2", "1", "1", "11"]}),
                vec![
                    "p.validValues[1]: Invalid value: \"1\": values must be sorted in ascending order",
                    "p.validValues[3]: Invalid value: \"11\": option is larger than capacity value: 10",
                    "p.validValues[2]: Duplicate value: \"1\"",
                    "p.validValues: Invalid value: \"3\": default value is not valid according to the requestPolicy",
                ],
            ),
            (
                json!({"default": "4", "validRange": {"min": "2", "max": "8", "step": "2"}}),
                vec![],
            ),
            (
                json!({"default": "4", "validRange": {"max": "8"}}),
                vec!["p.validRange.min: Required value: required when validRange is defined"],
            ),
            (
                json!({"default": "1", "validRange": {"min": "2", "max": "12"}}),
                vec![
                    "p.validRange.min: Invalid value: \"1\": default is less than min: 2",
                    "p.validRange.max: Invalid value: \"12\": max is larger than capacity value: 10",
                ],
            ),
            (
                json!({"default": "5", "validRange": {"min": "2", "step": "9"}}),
                vec![
                    "p.validRange.step: Invalid value: \"9\": one step 11 is larger than capacity value: 10",
                    "p.validRange.step: Invalid value: \"5\": value is not a multiple of a given step (9) from (2)",
                ],
            ),
        ] {
            let mut errors = ErrorList::new();
            validate(&policy, &json!({"value": "10"}), &Path::new("p"), &mut errors);
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected, "{policy}");
        }
    }
}
