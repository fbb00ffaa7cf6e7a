//! Structural validation of custom resources, with apiextensions' messages.

use std::collections::BTreeMap;

use gardener_apimachinery::field::{Error, ErrorList, ErrorType, Path};
use serde_json::{Number, Value};

use crate::formats;
use crate::json::same;
use crate::meta::OBJECT_META;
use crate::numbers::is_as_good_as_whole;
use crate::rules::Findings;
use crate::schema::{Constraints, Kind, ListType, Schema};

impl Schema {
    /// Checks types, required fields, bounds, formats, duplicates in sets and maps and the supported CEL rules.
    ///
    /// `old` is the value before an update. Findings about a part that the update did not change are left out
    /// (ratcheting).
    pub fn validate(&self, value: &Value, old: Option<&Value>, path: &Path) -> ErrorList {
        self.validate_with(Vec::new(), (value, old), path, Vec::new).errors
    }

    /// As [`Schema::validate`], after what was found wrong before and with `more`: rules are looked at only where nothing of it stands in their way.
    pub fn validate_with(
        &self,
        before: ErrorList,
        (value, old): (&Value, Option<&Value>),
        path: &Path,
        more: impl FnOnce() -> ErrorList,
    ) -> Findings {
        let mut errors = before;
        // an object as a whole is never as it was, not even where nothing changes
        self.check_changed(value, old, path, &mut errors);
        errors.extend(more());
        self.judged(errors, (value, old), path)
    }

    /// As [`Schema::validate_with`] where only the status may have changed: what else the object lacks is not looked at, but for rules.
    pub fn validate_status(
        &self,
        before: ErrorList,
        (value, old): (&Value, Option<&Value>),
        more: impl FnOnce() -> ErrorList,
    ) -> Findings {
        const STATUS: &str = "status";
        let mut errors = before;
        if let (Some(schema), Some(status)) = (self.child(STATUS), value.get(STATUS)) {
            let old = old.and_then(|old| old.get(STATUS));
            schema.check(status, old, &Path::new(STATUS), &mut errors);
        }
        errors.extend(more());
        self.judged(errors, (value, old), &Path::root())
    }

    /// Whether [`Schema::validate_status`] says the same of an object that has nothing but its metadata and status. Rules may look at all of an
    /// object, and lists in which something was there twice before may stay so wherever they are.
    pub fn judges_status_alone(&self) -> bool {
        let mut others = self.fields.iter().filter(|(name, _)| ***name != *"status");
        !self.has_rules && self.additional.is_none() && !others.any(|(_, other)| other.has_keyed_lists)
    }

    /// What is wrong, with what is wrong by rules, too.
    fn judged(&self, mut errors: ErrorList, (value, old): (&Value, Option<&Value>), path: &Path) -> Findings {
        let lists = |value: &Value| {
            let mut errors = ErrorList::new();
            self.check_lists(value, path, &mut errors);
            errors
        };
        // where lists were wrong before, they may stay so
        let of_lists = lists(value);
        if !of_lists.is_empty() && old.is_none_or(|old| lists(old).is_empty()) {
            errors.extend(of_lists);
        }
        let mut still_broken = ErrorList::new();
        if self.has_rules {
            if errors.iter().any(blocks_rules) {
                let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
                errors.push(Error::invalid(&Path::new("<nil>"), Value::Null, why));
            } else {
                let broken = self.broken_rules(value, old, path);
                errors.extend(broken.errors);
                still_broken = broken.still_broken;
            }
        }
        Findings { errors, still_broken }
    }

    /// All but the rules.
    fn structure(&self, value: &Value, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        self.check_changed(value, None, path, &mut errors);
        errors
    }

    /// How many of upstream's checks look at a value, that of its parts not counted: of alternatives that all fail, the one with the most is
    /// told.
    fn own_checks(&self, value: &Value) -> usize {
        // the schema as a whole, its composites and its enumeration always do
        let always = 4;
        let of_type = match self.kind() == Kind::Any && self.format().is_none() {
            true => 0,
            false => 2,
        };
        let of_value = match value {
            Value::String(_) => 1 + usize::from(self.format().is_some()),
            Value::Number(_) | Value::Array(_) => 2,
            Value::Object(_) => 1,
            Value::Null | Value::Bool(_) => 0,
        };
        always + of_type + of_value
    }

    /// Adds what is wrong; tells how many of upstream's checks looked at the value and its parts.
    fn check(&self, value: &Value, old: Option<&Value>, path: &Path, errors: &mut ErrorList) -> usize {
        match old.is_some_and(|old| same(value, old)) {
            true => 0,
            false => self.check_changed(value, old, path, errors),
        }
    }

    fn check_changed(&self, value: &Value, old: Option<&Value>, path: &Path, errors: &mut ErrorList) -> usize {
        if value.is_null() && (self.is_nullable() || self.kind() == Kind::Any) {
            return 1;
        }
        let mut checks = self.own_checks(value);
        if let Some(expected) = self.wrong_type(value) {
            let (expected, own) = match (self.format(), value) {
                // with a format, upstream compares formats; texts and lists have none
                (Some(format), Value::Number(number)) => (format, if number.is_i64() { "int64" } else { "float64" }),
                (Some(format), Value::Bool(_) | Value::Object(_)) => (format, ""),
                _ => (expected, schema_type(value)),
            };
            let why = format!("{} must be of type {expected}: \"{own}\"", place(path));
            errors.push(Error::type_invalid(path, own, why));
            for constraints in self.constraints().filter(|_| !value.is_null()) {
                checks += constraints.check_branches(value, path, errors);
            }
            self.check_number(value, path, errors);
            for constraints in self.constraints() {
                constraints.check_enumeration(value, path, errors);
            }
            return checks;
        }
        // in the order in which upstream's validators look
        for constraints in self.constraints() {
            checks += constraints.check_branches(value, path, errors);
        }
        self.check_number(value, path, errors);
        for constraints in self.constraints() {
            constraints.check_text(value, path, errors);
        }
        self.check_format(value, path, errors);
        if let (Value::Array(elements), Some(items)) = (value, self.items()) {
            for (i, value) in elements.iter().enumerate() {
                let old = old.and_then(|old| self.counterpart(old, value));
                checks += items.check(value, old, &path.index(i), errors);
            }
        }
        for constraints in self.constraints() {
            constraints.check_count(value, path, errors);
        }
        for constraints in self.constraints() {
            constraints.check_enumeration(value, path, errors);
        }
        let Value::Object(members) = value else { return checks };
        for constraints in self.constraints() {
            constraints.check_size(members.len(), path, errors);
        }
        // Metadata is decoded and validated for all kinds alike, not by the schema; only what the CRD adds counts.
        if self.definition_name() != Some(OBJECT_META) {
            for (name, value) in members {
                if let Some(child) = self.child(name) {
                    let old = old.and_then(|old| old.get(name));
                    checks += child.check(value, old, &path.child(name), errors);
                }
            }
            let missing = self.required().filter(|name| !members.contains_key(*name));
            errors.extend(missing.map(|name| Error::required(&path.child(name), "")));
        }
        checks
    }

    fn check_format(&self, value: &Value, path: &Path, errors: &mut ErrorList) {
        if let (Value::String(text), Some(format)) = (value, self.format())
            && matches!(self.kind(), Kind::String | Kind::Any)
            && !formats::named::fits(format, text)
        {
            let why = format!("{} must be of type {format}: {value}", place(path));
            errors.push(Error::type_invalid(path, text.as_str(), why));
        }
    }

    /// The element of the old list that is the same one: by keys in maps, by value in sets, else none is known.
    fn counterpart<'a>(&self, old: &'a Value, element: &Value) -> Option<&'a Value> {
        let old = old.as_array()?;
        match self.list_type()? {
            ListType::Map => {
                let keys = self.list_map_keys();
                old.iter()
                    .find(|old| keys.clone().all(|key| old.get(key) == element.get(key)))
            }
            ListType::Set => old.iter().find(|old| same(old, element)),
            ListType::Atomic => None,
        }
    }

    /// What is wrong with lists that are sets or maps: elements that are there twice (told of the second one), and those of maps that can have
    /// no key.
    fn check_lists(&self, value: &Value, path: &Path, errors: &mut ErrorList) {
        if !self.has_keyed_lists {
            return;
        }
        match value {
            Value::Object(members) => {
                // what metadata are, definitions do not say
                let is_resource = self.is_embedded_resource() || path.as_str().is_empty();
                for (name, value) in members.iter().filter(|(name, _)| !(is_resource && *name == "metadata")) {
                    if let Some(child) = self.child(name) {
                        let at = match self.field(name) {
                            Some(_) => path.child(name),
                            None => path.key(name),
                        };
                        child.check_lists(value, &at, errors);
                    }
                }
            }
            Value::Array(elements) => {
                match self.list_type() {
                    Some(ListType::Set) => twice(elements.iter().cloned(), path, errors),
                    Some(ListType::Map) => self.check_keys(elements, path, errors),
                    Some(ListType::Atomic) | None => {}
                }
                if let Some(items) = self.items() {
                    for (index, element) in elements.iter().enumerate() {
                        items.check_lists(element, &path.index(index), errors);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_keys(&self, elements: &[Value], path: &Path, errors: &mut ErrorList) {
        let mut keyless = elements.iter().enumerate();
        if let Some((index, element)) = keyless.find(|(_, element)| !element.is_object() && !element.is_null()) {
            let why = "must be an object for an array of list-type map";
            return errors.push(Error::invalid(&path.index(index), element.clone(), why));
        }
        let keys = elements.iter().map(|element| {
            let known = self
                .list_map_keys()
                .filter_map(|key| Some((key.to_owned(), element.get(key)?.clone())));
            Value::Object(known.collect())
        });
        twice(keys, path, errors);
    }

    /// The expected type where the value's JSON type does not fit.
    fn wrong_type(&self, value: &Value) -> Option<&'static str> {
        let fits = match (self.kind(), value) {
            (Kind::Any, _)
            | (Kind::Object, Value::Object(_))
            | (Kind::Array, Value::Array(_))
            | (Kind::String, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::IntOrString | Kind::Quantity, Value::String(_))
            | (Kind::Quantity, Value::Number(_)) => true,
            (Kind::Integer | Kind::IntOrString, Value::Number(number)) => is_whole(number),
            _ => false,
        };
        if fits {
            return None;
        }
        Some(match self.kind() {
            Kind::IntOrString => "integer,string",
            Kind::Quantity => "string,number",
            kind => kind.type_name(),
        })
    }
}

impl Constraints {
    fn check_text(&self, value: &Value, path: &Path, errors: &mut ErrorList) {
        let Value::String(text) = value else { return };
        let mut invalid =
            |why: String| errors.push(Error::invalid(path, value.clone(), format!("{} {why}", place(path))));
        let length = text.chars().count() as u64;
        // of a text the first thing that is wrong is told
        if let Some(max) = self.max_length.filter(|max| length > *max) {
            errors.push(Error::too_long(path, usize::try_from(max).unwrap_or(usize::MAX)));
        } else if let Some(min) = self.min_length.filter(|min| length < *min) {
            invalid(format!("should be at least {min} chars long"));
        } else if let Some((pattern, regex)) = &self.pattern
            && !regex.is_match(text)
        {
            invalid(format!("should match '{pattern}'"));
        }
    }

    /// Whether a list is as long as it may be. What is shown is how long it is.
    fn check_count(&self, value: &Value, path: &Path, errors: &mut ErrorList) {
        let Value::Array(elements) = value else { return };
        let count = elements.len() as u64;
        if let Some(min) = self.min_items.filter(|min| count < *min) {
            let why = format!("{} should have at least {min} items", place(path));
            errors.push(Error::invalid(path, count, why));
        }
        if let Some(max) = self.max_items.filter(|max| count > *max) {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            errors.push(Error::too_many(path, elements.len(), max));
        }
        if self.unique_items && (1..elements.len()).any(|i| elements.iter().take(i).any(|e| Some(e) == elements.get(i)))
        {
            let why = format!("{} shouldn't contain duplicates", place(path));
            errors.push(Error::invalid(path, "", why));
        }
    }

    /// Whether an object has as many members as it may have.
    fn check_size(&self, size: usize, path: &Path, errors: &mut ErrorList) {
        let count = size as u64;
        if let Some(min) = self.min_properties.filter(|min| count < *min) {
            let why = format!("{} should have at least {min} properties", place(path));
            errors.push(Error::invalid(path, count, why));
        }
        if let Some(max) = self.max_properties.filter(|max| count > *max) {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            errors.push(Error::too_many(path, size, max));
        }
    }

    fn check_enumeration(&self, value: &Value, path: &Path, errors: &mut ErrorList) {
        if let Some(allowed) = &self.enumeration
            && !allowed.iter().any(|one| same(one, value) || is_truncated(one, value))
        {
            let shown: Vec<String> = allowed
                .iter()
                .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
                .collect();
            errors.push(Error::not_supported(path, value.clone(), &shown));
        }
    }

    fn check_branches(&self, value: &Value, path: &Path, errors: &mut ErrorList) -> usize {
        let judge = |branches: &[Schema]| -> Vec<Judged> {
            let judged = branches.iter().map(|branch| {
                let mut errors = ErrorList::new();
                let checks = branch.check(value, None, path, &mut errors);
                Judged { errors, checks }
            });
            judged.collect()
        };
        let mut checks = 0;
        // Upstream reports these on the object itself, naming the place in the message.
        let composite = |why: &str| Error::invalid(&Path::root(), "", format!("\"{}\" {why}", path.as_str()));
        let any = judge(&self.any_of);
        if let Some(fits) = any.iter().find(|judged| judged.errors.is_empty()) {
            checks += fits.checks;
        } else if let Some(closest) = closest(any) {
            checks += closest.checks;
            errors.push(composite("must validate at least one schema (anyOf)"));
            errors.extend(closest.errors);
        }
        let one = judge(&self.one_of);
        let mut fitting = one.iter().filter(|judged| judged.errors.is_empty());
        let first = fitting.next().map(|judged| judged.checks);
        match fitting.count() + usize::from(first.is_some()) {
            _ if one.is_empty() => {}
            0 => {
                errors.push(composite(
                    "must validate one and only one schema (oneOf). Found none valid",
                ));
                if let Some(closest) = closest(one) {
                    checks += closest.checks;
                    errors.extend(closest.errors);
                }
            }
            1 => checks += first.unwrap_or(0),
            count => errors.push(composite(&format!(
                "must validate one and only one schema (oneOf). Found {count} valid alternatives"
            ))),
        }
        if self
            .not
            .as_ref()
            .is_some_and(|branch| branch.structure(value, path).is_empty())
        {
            errors.push(composite("must not validate the schema (not)"));
        }
        let all = judge(&self.all_of);
        checks += all.iter().map(|judged| judged.checks).sum::<usize>();
        if !all.iter().all(|judged| judged.errors.is_empty()) {
            let none = all.iter().all(|judged| !judged.errors.is_empty());
            errors.extend(all.into_iter().flat_map(|judged| judged.errors));
            let told = if none { ". None validated" } else { "" };
            errors.push(composite(&format!("must validate all the schemas (allOf){told}")));
        }
        checks
    }
}

/// What an alternative says to a value.
struct Judged {
    errors: ErrorList,
    /// How many checks looked at the value and its parts.
    checks: usize,
}

/// Whether a whole number that is allowed is what remains of a number without its fraction, which upstream takes for the same.
fn is_truncated(allowed: &Value, value: &Value) -> bool {
    match (allowed.as_i64(), value.as_f64()) {
        (Some(allowed), Some(number)) if value.is_f64() && number.abs() < 9.0e15 => number.trunc() as i64 == allowed,
        _ => false,
    }
}

/// Tells of values that are there more than once, of each the second time.
fn twice(values: impl Iterator<Item = Value>, path: &Path, errors: &mut ErrorList) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(Error::duplicate(&path.index(index), value));
        }
    }
}

/// Whether rules are not worth evaluating beside a finding.
fn blocks_rules(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorType::NotSupported
            | ErrorType::Required
            | ErrorType::TooLong
            | ErrorType::TooMany
            | ErrorType::TypeInvalid
    )
}

/// The alternative that looked most closely, the first of several.
fn closest(alternatives: Vec<Judged>) -> Option<Judged> {
    alternatives
        .into_iter()
        .reduce(|best, next| if next.checks > best.checks { next } else { best })
}

/// How messages tell the place: `spec.replicas in body`.
pub(crate) fn place(path: &Path) -> String {
    format!("{} in body", path.as_str())
}

fn schema_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_whole(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(is_as_good_as_whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(schema: Value, value: Value, old: Option<Value>) -> Vec<String> {
        let document = json!({"type": "object", "properties": {"spec": schema}});
        let schema = Schema::from_crd(&document).unwrap();
        let old = old.map(|old| json!({"spec": old}));
        schema
            .validate(&json!({"spec": value}), old.as_ref(), &Path::root())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn messages() {
        for (schema, value, expected) in [
            (
                json!({"type": "integer"}),
                json!("x"),
                r#"spec: Invalid value: "string": spec in body must be of type integer: "string""#,
            ),
            (
                json!({"type": "string"}),
                json!(null),
                r#"spec: Invalid value: "null": spec in body must be of type string: "null""#,
            ),
            (
                json!({"x-kubernetes-int-or-string": true}),
                json!(true),
                r#"spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean""#,
            ),
            (
                json!({"type": "integer", "format": "int32"}),
                json!(3_000_000_000_i64),
                r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec"#,
            ),
            (
                json!({"type": "object", "required": ["a"]}),
                json!({}),
                "spec.a: Required value",
            ),
            (
                json!({"type": "string", "enum": ["a", "b"]}),
                json!("c"),
                r#"spec: Unsupported value: "c": supported values: "a", "b""#,
            ),
            (
                json!({"type": "string", "pattern": "^a+$"}),
                json!("b"),
                r#"spec: Invalid value: "b": spec in body should match '^a+$'"#,
            ),
            (
                json!({"type": "string", "maxLength": 2}),
                json!("abc"),
                "spec: Too long: may not be more than 2 bytes",
            ),
            (
                json!({"type": "string", "minLength": 2}),
                json!("a"),
                r#"spec: Invalid value: "a": spec in body should be at least 2 chars long"#,
            ),
            (
                json!({"type": "integer", "minimum": 1}),
                json!(0),
                "spec: Invalid value: 0: spec in body should be greater than or equal to 1",
            ),
            (
                json!({"type": "integer", "maximum": 3, "exclusiveMaximum": true}),
                json!(3),
                "spec: Invalid value: 3: spec in body should be less than 3",
            ),
            (
                json!({"type": "integer", "multipleOf": 5}),
                json!(7),
                "spec: Invalid value: 7: spec in body should be a multiple of 5",
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}, "maxItems": 1}),
                json!([1, 2]),
                "spec: Too many: 2: must have at most 1 item",
            ),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                json!(["a", 1]),
                r#"spec[1]: Invalid value: "integer": spec[1] in body must be of type string: "integer""#,
            ),
            (
                json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
                json!(["a", "b", "a"]),
                r#"spec[2]: Duplicate value: "a""#,
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}}),
                json!([{"k": "a", "v": "1"}, {"k": "a", "v": "2"}]),
                r#"spec[1]: Duplicate value: {"k":"a"}"#,
            ),
            (
                json!({"type": "string", "format": "date-time"}),
                json!("soon"),
                r#"spec: Invalid value: "soon": spec in body must be of type date-time: "soon""#,
            ),
            (
                json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
                json!({"a": "", "b": ""}),
                r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ),
        ] {
            assert_eq!(findings(schema.clone(), value, None), [expected], "{schema}");
        }
        // what is no whole number is told twice, as upstream tells it
        assert_eq!(
            findings(json!({"type": "integer", "format": "int64"}), json!(1.5), None),
            [
                r#"spec: Invalid value: "float64": spec in body must be of type int64: "float64""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec"#,
            ]
        );
    }

    #[test]
    fn what_fits_is_not_reported() {
        for (schema, value) in [
            (json!({"type": "string", "nullable": true}), json!(null)),
            (
                json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+$"}),
                json!("12"),
            ),
            (
                json!({"x-kubernetes-int-or-string": true, "pattern": "^[0-9]+$"}),
                json!(12),
            ),
            (json!({"type": "number"}), json!(1)),
            (json!({"type": "integer"}), json!(2.0)),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                json!({"any": [1, "a"]}),
            ),
        ] {
            assert_eq!(findings(schema.clone(), value, None), Vec::<String>::new(), "{schema}");
        }
    }

    #[test]
    fn alternatives_tell_what_the_one_with_most_checks_lacks() {
        let none =
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#;
        // members that are not there are no checks: the first of equals is told
        let schema = json!({"type": "object", "oneOf": [{"required": ["a", "b"]}, {"required": ["c"]}]});
        assert_eq!(
            findings(schema, json!({}), None),
            [none, "spec.a: Required value", "spec.b: Required value"]
        );
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [
            {"required": ["b"]}, {"properties": {"a": {"minLength": 2}}, "required": ["c"]}]});
        assert_eq!(
            findings(schema, json!({"a": "xy"}), None),
            [none, "spec.c: Required value"]
        );
    }

    #[test]
    fn transition_rules_hold_on_update_only() {
        let schema = json!({"type": "string", "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "Value is immutable"}, {"rule": "self.size() == 1"}]});
        let none: Vec<String> = Vec::new();
        assert_eq!(findings(schema.clone(), json!("a"), None), none);
        assert_eq!(findings(schema.clone(), json!("a"), Some(json!("a"))), none);
        assert_eq!(
            findings(schema, json!("b"), Some(json!("a"))),
            ["spec: Invalid value: \"b\": Value is immutable"]
        );
    }

    #[test]
    fn unchanged_parts_are_not_judged_again() {
        let schema = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "minimum": 5}}}});
        let old = json!([{"k": "a", "v": 1}]);
        let new = json!([{"k": "b", "v": 2}, {"k": "a", "v": 1}]);
        assert_eq!(
            findings(schema, new, Some(old)),
            ["spec[0].v: Invalid value: 2: spec[0].v in body should be greater than or equal to 5"]
        );
    }

    #[test]
    fn what_a_crd_says_about_metadata_counts() {
        let schema = Schema::from_crd(&json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}}}))
        .unwrap();
        let value = json!({"metadata": {"name": "long", "labels": {"a": "b"}, "ownerReferences": [{}]}});
        let found = schema.validate(&value, None, &Path::root());
        assert_eq!(
            found.first().unwrap().to_string(),
            "metadata.name: Too long: may not be more than 3 bytes"
        );
        assert!(schema.unknown_fields(&value).is_empty());
    }
}
