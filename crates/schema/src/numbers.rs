//! Numbers as upstream's validator looks at them: whole ones and others differ, and a bound is first made what the number is.

use gardener_apimachinery::field::{Error, ErrorList, Path, go_float};
use serde_json::{Number, Value};

use crate::schema::{Constraints, Kind, Schema};
use crate::validate::place;

/// How far a number may be from a whole one, in proportion, to be taken for it.
const EPSILON: f64 = 1e-9;
/// The largest number whose whole neighbours can be told apart.
const MAX_WHOLE: f64 = 9_007_199_254_740_991.0;
/// The first whole number that is none of 64 bits.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// A number as Go decodes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Native {
    Whole(i64),
    Float(f64),
}

impl Native {
    fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(whole) => Self::Whole(whole),
            None => Self::Float(number.as_f64().unwrap_or_default()),
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Float(float) => float,
        }
    }

    /// A bound as one for this number.
    fn bound(self, bound: f64) -> Self {
        match self {
            Self::Whole(_) => Self::Whole(truncated(bound)),
            Self::Float(_) => Self::Float(bound),
        }
    }

    fn text(self) -> String {
        match self {
            Self::Whole(whole) => whole.to_string(),
            Self::Float(float) => go_float(float),
        }
    }

    /// The whole number of 64 bits that the digits tell. They are the shortest that stand for a number, with zeros behind them: a number that 64
    /// bits hold may be told by more than they hold.
    fn told_whole(self) -> Option<i64> {
        match self {
            Self::Whole(whole) => Some(whole),
            Self::Float(float) => float.to_string().parse().ok(),
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Whole(whole) => whole.into(),
            Self::Float(float) => float.into(),
        }
    }
}

/// The whole part of a number; what is none of 64 bits is the smallest of them, as processors have it.
pub(crate) fn truncated(number: f64) -> i64 {
    match (-BEYOND..BEYOND).contains(&number) {
        true => number.trunc() as i64,
        false => i64::MIN,
    }
}

/// Whether a number is whole, or as good as that.
pub(crate) fn is_as_good_as_whole(number: f64) -> bool {
    if !number.is_finite() || number.abs() > MAX_WHOLE {
        return false;
    }
    let whole = number.trunc();
    let difference = (number - whole).abs();
    match difference == 0.0 {
        true => true,
        false => number > 0.0 && whole != 0.0 && difference / (number.abs() + whole.abs()) < EPSILON,
    }
}

fn is_multiple(number: Native, factor: Native) -> bool {
    match (number, factor) {
        (Native::Whole(number), Native::Whole(factor)) => number.checked_rem(factor).unwrap_or(0) == 0,
        _ => {
            let (number, factor) = (number.float(), factor.float());
            is_as_good_as_whole(if factor < 1.0 {
                1.0 / factor * number
            } else {
                number / factor
            })
        }
    }
}

fn is_less(one: Native, other: Native) -> bool {
    match (one, other) {
        (Native::Whole(one), Native::Whole(other)) => one < other,
        _ => one.float() < other.float(),
    }
}

impl Schema {
    /// Checks a number against its type's range and its bounds.
    pub(crate) fn check_number(&self, value: &Value, path: &Path, errors: &mut ErrorList) {
        let Value::Number(number) = value else { return };
        let number = Native::of(number);
        errors.extend(self.out_of_range(number, "Checked", path));
        for constraints in self.constraints() {
            self.check_bounds(number, constraints, path, errors);
        }
    }

    /// What is said of a number that the type has not. It is told without its value and on the object itself, as upstream does.
    fn out_of_range(&self, number: Native, what: &str, path: &Path) -> Option<Error> {
        let format = self.format();
        let fits = match (self.kind(), format) {
            (Kind::Integer, Some("int32")) => number.told_whole().is_some_and(|whole| i32::try_from(whole).is_ok()),
            (Kind::Integer, _) => number.told_whole().is_some(),
            (_, Some("float")) => number.float().abs() <= f64::from(f32::MAX),
            _ => true,
        };
        if fits {
            return None;
        }
        let format = format.map_or("(default format)".to_owned(), |format| format!("with format {format}"));
        let (ty, path) = (self.kind().type_name(), path.as_str());
        let why = format!("{what} value must be of type {ty} {format} in {path}");
        Some(Error::invalid(&Path::root(), "", why))
    }

    fn check_bounds(&self, number: Native, constraints: &Constraints, path: &Path, errors: &mut ErrorList) {
        if let Some(factor) = &constraints.multiple_of {
            let (number, factor) = self.bounded(number, factor, "MultipleOf", path, errors);
            let (text, at) = (factor.text(), path.as_str());
            if factor.float() <= 0.0 {
                let why = format!("factor MultipleOf declared for {at} must be positive: {text}");
                errors.push(Error::invalid(path, factor.value(), why));
            } else if !is_multiple(number, factor) {
                let why = format!("{} should be a multiple of {text}", place(path));
                errors.push(Error::invalid(path, number.value(), why));
            }
        }
        let or_equal = |exclusive: bool| if exclusive { "" } else { "or equal to " };
        if let Some((min, exclusive)) = &constraints.minimum {
            let (number, min) = self.bounded(number, min, "Minimum boundary", path, errors);
            if is_less(number, min) || *exclusive && !is_less(min, number) {
                let (or_equal, min) = (or_equal(*exclusive), min.text());
                let why = format!("{} should be greater than {or_equal}{min}", place(path));
                errors.push(Error::invalid(path, number.value(), why));
            }
        }
        if let Some((max, exclusive)) = &constraints.maximum {
            let (number, max) = self.bounded(number, max, "Maximum boundary", path, errors);
            if is_less(max, number) || *exclusive && !is_less(number, max) {
                let (or_equal, max) = (or_equal(*exclusive), max.text());
                let why = format!("{} should be less than {or_equal}{max}", place(path));
                errors.push(Error::invalid(path, number.value(), why));
            }
        }
    }

    /// A number and a bound in one form. A bound that the type has not is told, and is one for any number.
    fn bounded(
        &self,
        number: Native,
        bound: &Number,
        what: &str,
        path: &Path,
        errors: &mut ErrorList,
    ) -> (Native, Native) {
        let bound = bound.as_f64().unwrap_or_default();
        match self.out_of_range(Native::Float(bound), what, path) {
            Some(wrong) => {
                errors.push(wrong);
                (Native::Float(number.float()), Native::Float(bound))
            }
            None => (number, number.bound(bound)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(schema: Value, number: Value) -> Vec<String> {
        let document = json!({"type": "object", "properties": {"spec": schema}});
        let schema = Schema::from_crd(&document).unwrap();
        let found = schema.validate(&json!({"spec": number}), None, &Path::root());
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn bounds_are_made_what_the_number_is() {
        for (schema, number, expected) in [
            (
                json!({"type": "integer", "multipleOf": -1}),
                json!(3),
                vec!["spec: Invalid value: -1: factor MultipleOf declared for spec must be positive: -1"],
            ),
            (
                json!({"type": "number", "multipleOf": 0.5}),
                json!(3),
                vec!["spec: Invalid value: 0: factor MultipleOf declared for spec must be positive: 0"],
            ),
            (json!({"type": "number", "multipleOf": 0.1}), json!(0.3), vec![]),
            (
                json!({"type": "number", "multipleOf": 0.3}),
                json!(1e-7),
                vec!["spec: Invalid value: 1e-07: spec in body should be a multiple of 0.3"],
            ),
            (
                json!({"type": "number", "maximum": 7.5}),
                json!(8),
                vec!["spec: Invalid value: 8: spec in body should be less than or equal to 7"],
            ),
            (
                json!({"type": "integer", "maximum": 7.5}),
                json!(7),
                vec![
                    r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in spec"#,
                ],
            ),
            (
                json!({"type": "integer", "minimum": 1e3}),
                json!(1),
                vec!["spec: Invalid value: 1: spec in body should be greater than or equal to 1000"],
            ),
            (
                json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
                json!(1),
                vec!["spec: Invalid value: 1: spec in body should be greater than 1"],
            ),
            (
                json!({"type": "integer", "format": "int32"}),
                json!(2_147_483_648_i64),
                vec![r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec"#],
            ),
            (
                json!({"type": "integer", "format": "int32", "minimum": 3}),
                json!(1.5),
                vec![
                    r#"spec: Invalid value: "float64": spec in body must be of type int32: "float64""#,
                    r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec"#,
                    "spec: Invalid value: 1.5: spec in body should be greater than or equal to 3",
                ],
            ),
        ] {
            assert_eq!(findings(schema.clone(), number.clone()), expected, "{schema} {number}");
        }
    }
}
