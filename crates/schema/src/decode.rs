//! Whether a JSON value decodes into the Go type of a built-in kind; if not, with the message of Go's decoder.
//!
//! Custom resources are not decoded but validated (`validate`).

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path, go_quote};
use gardener_apimachinery::go_json::type_of;
use serde_json::{Map, Value};

use crate::schema::{Kind, Schema};
use crate::{formats, go_types};

/// A value that does not decode: the message of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl DecodeError {
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }

    /// The 400 that an API server answers for a body of `kind` at `version` (without group).
    pub fn into_api_error(self, version: &str, kind: &str) -> ApiError {
        cannot_be_handled(version, kind, &self.0)
    }
}

/// The 400 for unknown fields (paths as of [`Schema::unknown_fields`]) where the client asked for strict validation.
pub fn strict_error(unknown: &[String], version: &str, kind: &str) -> ApiError {
    let list: Vec<String> = unknown
        .iter()
        .map(|path| format!("unknown field {}", go_quote(path)))
        .collect();
    cannot_be_handled(version, kind, &format!("strict decoding error: {}", list.join(", ")))
}

fn cannot_be_handled(version: &str, kind: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version {} cannot be handled as a {kind}: {why}",
        go_quote(version)
    ))
}

/// The order in which a body tells the members of its objects, which a [`Value`] does not keep.
#[derive(Debug)]
pub enum Order {
    /// Those of an object, and of what is in them.
    Members(Vec<(String, Order)>),
    /// Of the elements of a list.
    Elements(Vec<Order>),
    /// What has no members.
    Leaf,
}

impl Order {
    /// That of a body; none if it is no JSON.
    pub fn of(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }
}

impl<'de> serde::Deserialize<'de> for Order {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderVisitor)
    }
}

struct OrderVisitor;

impl<'de> serde::de::Visitor<'de> for OrderVisitor {
    type Value = Order;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Order, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Order::Members(members))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Order, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Order::Elements(elements))
    }

    fn visit_unit<E>(self) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Order, E> {
        Ok(Order::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Order, E> {
        Ok(Order::Leaf)
    }
}

/// Where the decoder is: Go names the innermost struct and the fields on the way to it.
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    /// The full name of the struct's definition, where it has one.
    definition: Option<&'a str>,
    /// What the struct is called where its definition has no name.
    kind: &'a str,
    field: &'a str,
}

/// A map of lists, each of a type of its own.
const CAPABILITIES: &str = "v1beta1.Capabilities";
const CAPABILITY_VALUES: &str = "v1beta1.CapabilityValues";

impl Place<'_> {
    fn path(&self) -> String {
        let embedding = self.go_type().and_then(|go| go.embedding(self.field));
        let parts = [
            self.parent.map(Place::path),
            embedding.map(str::to_owned),
            Some(self.field.to_owned()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(".")
    }

    fn go_type(&self) -> Option<&'static go_types::GoType<'static>> {
        go_types::of(self.definition?)
    }

    /// The named type of the field or, for a value of a schema inside the field's list or map, of its elements.
    fn named(&self, schema: &Schema) -> Option<&'static str> {
        let mut named = self.go_type()?.named(self.field)?;
        let is_list = schema.kind() == Kind::Array;
        if named == CAPABILITY_VALUES && !is_list {
            return None;
        }
        if named == CAPABILITIES {
            return match schema.kind() {
                Kind::Object => Some(CAPABILITIES),
                Kind::Array => Some(CAPABILITY_VALUES),
                _ => None,
            };
        }
        let is_map = schema.kind() == Kind::Object;
        if is_map && schema.definition_name().is_some() {
            // its definition names a struct, even one within a list that has a name of its own
            return None;
        }
        loop {
            let (of_list, of_map) = (named.starts_with('['), named.starts_with("map["));
            if is_list && of_list || is_map && of_map || !of_list && !of_map {
                return Some(named);
            }
            named = named.split_once(']')?.1;
        }
    }
}

/// What may stand in a definition's schema in the place of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Union {
    Bool,
    Schemas,
    Texts,
}

impl Schema {
    /// Checks the JSON types of a value, and quantities, durations and times. `kind` names the root where the schema has
    /// no definition name. Null decodes into anything, and unknown fields do not matter.
    ///
    /// # Errors
    /// The first misfit, worded as Go's decoder does: `json: cannot unmarshal string into Go struct field
    /// CloudProfileSpec.spec.regions of type []v1beta1.Region`. Types that read themselves (times, quantities, …) end the decoding when they
    /// fail; of other misfits the first is told in the end.
    pub fn decode(&self, value: &Value, kind: &str) -> Result<(), DecodeError> {
        self.decode_in(value, kind, None)
    }

    /// As [`Schema::decode`], of a value that was told in an order: what is told first is found first.
    ///
    /// # Errors
    /// As [`Schema::decode`].
    pub fn decode_in(&self, value: &Value, kind: &str, order: Option<&Order>) -> Result<(), DecodeError> {
        let mut first = None;
        self.decode_at(value, order, kind, None, &mut first)?;
        first.map_or(Ok(()), Err)
    }

    /// As [`Schema::decode`], of an object's metadata alone.
    ///
    /// # Errors
    /// As [`Schema::decode`].
    pub fn decode_metadata(&self, object: &Value, kind: &str) -> Result<(), DecodeError> {
        match object.get("metadata") {
            // upstream reads it by itself, so that messages begin with its struct
            Some(metadata) if self.kind() == Kind::Object => match self.field("metadata") {
                Some(schema) => schema.decode(metadata, kind),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Reads version, kind and metadata of the objects that the schema says are inside an object, as upstream does by way of their Go types: what is
    /// empty in metadata is left out.
    ///
    /// # Errors
    /// Where it does not fit, what was found, and why.
    pub fn read_embedded(&self, object: &mut Value) -> Result<(), String> {
        self.read_below(object, "", true)
    }

    fn read_below(&self, value: &mut Value, path: &str, is_root: bool) -> Result<(), String> {
        if !self.has_embedded_resources() {
            return Ok(());
        }
        match value {
            Value::Object(members) => {
                let is_resource = self.is_embedded_resource() && !is_root;
                for key in ["apiVersion", "kind"].into_iter().filter(|_| is_resource) {
                    if let Some(value) = members.get(key).filter(|value| !value.is_string()) {
                        let at = Path::new(&format!("{path}.{key}"));
                        return Err(Error::invalid(&at, value.clone(), "must be a string").to_string());
                    }
                }
                if let Some(metadata) = members.get_mut("metadata").filter(|_| is_resource) {
                    let schema = crate::meta::object_meta();
                    schema
                        .decode(metadata, "ObjectMeta")
                        .map_err(|why| format!("{path}.metadata: Invalid value: {metadata}: {why}"))?;
                    schema.drop_empty(metadata);
                }
                for (name, value) in members {
                    if let Some(child) = self.child(name) {
                        let at = match (self.field(name), path) {
                            (None, path) => format!("{path}[{name}]"),
                            (_, "") => name.clone(),
                            (_, path) => format!("{path}.{name}"),
                        };
                        child.read_below(value, &at, false)?;
                    }
                }
                Ok(())
            }
            Value::Array(elements) => {
                let Some(items) = self.items() else { return Ok(()) };
                let mut elements = elements.iter_mut().enumerate();
                elements.try_for_each(|(index, value)| items.read_below(value, &format!("{path}[{index}]"), false))
            }
            _ => Ok(()),
        }
    }

    fn decode_member(
        &self,
        name: &str,
        (value, order): (&Value, Option<&Order>),
        kind: &str,
        place: Option<&Place<'_>>,
        first: &mut Option<DecodeError>,
    ) -> Result<(), DecodeError> {
        if let Some(child) = self.field(name) {
            let inner = Place {
                parent: place,
                definition: self.definition_name(),
                kind,
                field: name,
            };
            let read = |union: Union, value: &Value, order: Option<&Order>| {
                let mut within = None;
                self.decode_union(union, (value, order), kind, &inner, &mut within)?;
                // what reads itself ends the decoding
                within.map_or(Ok(()), Err)
            };
            return match (
                child.union(),
                child.additional().and_then(|values| values.union()),
                value,
            ) {
                (Some(union), _, value) => read(union, value, order),
                (_, Some(union), Value::Object(members)) => {
                    members.values().try_for_each(|value| read(union, value, None))
                }
                _ => child.decode_at(value, order, kind, Some(&inner), first),
            };
        }
        self.additional()
            .map_or(Ok(()), |child| child.decode_at(value, order, kind, place, first))
    }

    /// Answers what ends the decoding; what is told in the end is `first`.
    fn decode_at(
        &self,
        value: &Value,
        order: Option<&Order>,
        kind: &str,
        place: Option<&Place<'_>>,
        first: &mut Option<DecodeError>,
    ) -> Result<(), DecodeError> {
        match (self.kind(), value) {
            (_, Value::Null) => return Ok(()),
            (Kind::Object, value) if self.is_flavor() => return decode_flavor(value, order, kind, place),
            (Kind::Object, Value::Object(members)) => return self.decode_members((members, order), kind, place, first),
            (Kind::Array, Value::Array(elements)) => {
                let Some(items) = self.items() else { return Ok(()) };
                let below = |index: usize| match order {
                    Some(Order::Elements(told)) => told.get(index),
                    _ => None,
                };
                let mut elements = elements.iter().enumerate();
                return elements
                    .try_for_each(|(index, value)| items.decode_at(value, below(index), kind, place, first));
            }
            (Kind::String, Value::Array(elements)) if self.format() == Some("byte") => {
                let misfits = elements.iter().filter_map(|element| not_a_byte(element, kind, place));
                if let Some(why) = misfits.into_iter().next() {
                    first.get_or_insert(why);
                }
                return Ok(());
            }
            _ => {}
        }
        match self.decode_leaf(value, kind, place) {
            Err(why) if !self.reads_itself() => {
                first.get_or_insert(why);
                Ok(())
            }
            decoded => decoded,
        }
    }

    fn decode_members(
        &self,
        (members, order): (&Map<String, Value>, Option<&Order>),
        kind: &str,
        place: Option<&Place<'_>>,
        first: &mut Option<DecodeError>,
    ) -> Result<(), DecodeError> {
        if let Some(Order::Members(told)) = order {
            let mut told = told.iter();
            return told.try_for_each(|(name, below)| match members.get(name) {
                Some(value) => self.decode_member(name, (value, Some(below)), kind, place, first),
                None => Ok(()),
            });
        }
        let mut members = members.iter();
        members.try_for_each(|(name, value)| self.decode_member(name, (value, None), kind, place, first))
    }

    /// Whether the Go type has a decoder of its own.
    fn reads_itself(&self) -> bool {
        matches!(self.kind(), Kind::Quantity | Kind::IntOrString)
            || matches!(self.format(), Some("date-time" | "go-micro-time" | "go-duration"))
    }

    /// Whether the Go type is that of machine images' flavors, which reads itself as capabilities. Documents do not tell what it holds.
    fn is_flavor(&self) -> bool {
        self.definition_name()
            .is_some_and(|name| name.ends_with(".v1beta1.MachineImageFlavor"))
    }

    /// What else may stand where a definition's schema has a schema, if this is such a place.
    fn union(&self) -> Option<Union> {
        // most fields are something, which is quickly seen
        if self.kind() != Kind::Any {
            return None;
        }
        let (_, or) = self.definition_name()?.rsplit_once(".JSONSchemaPropsOr")?;
        match or {
            "Bool" => Some(Union::Bool),
            "Array" => Some(Union::Schemas),
            "StringArray" => Some(Union::Texts),
            _ => None,
        }
    }

    /// Decodes what is a schema as `self` is, or something else. What is neither is nothing, but for a bool.
    fn decode_union(
        &self,
        union: Union,
        (value, order): (&Value, Option<&Order>),
        kind: &str,
        place: &Place<'_>,
        first: &mut Option<DecodeError>,
    ) -> Result<(), DecodeError> {
        let place = Some(place);
        match (union, value) {
            (_, Value::Object(_)) => self.decode_at(value, order, kind, place, first),
            (Union::Schemas, Value::Array(schemas)) => schemas
                .iter()
                .try_for_each(|schema| self.decode_at(schema, None, kind, place, first)),
            (Union::Texts, Value::Array(texts)) => {
                let other = texts.iter().find(|text| !text.is_string() && !text.is_null());
                other.map_or(Ok(()), |other| Err(misfit(type_of(other), "string", kind, place)))
            }
            (Union::Bool, other) => schema_or_bool(other),
            (Union::Schemas | Union::Texts, _) => Ok(()),
        }
    }

    fn decode_leaf(&self, value: &Value, kind: &str, place: Option<&Place<'_>>) -> Result<(), DecodeError> {
        match (self.kind(), value) {
            (Kind::Any, other) if self.union() == Some(Union::Bool) => schema_or_bool(other),
            (_, Value::Null) | (Kind::Any, _) => Ok(()),
            (Kind::String, Value::String(text)) => match self.format() {
                Some("date-time") => formats::time(text).map_err(DecodeError),
                Some("go-micro-time") => formats::micro_time(text).map_err(DecodeError),
                Some("go-duration") => formats::duration(text).map_err(DecodeError),
                Some("byte") => decode_bytes(text),
                _ => Ok(()),
            },
            (Kind::String, other) if matches!(self.format(), Some("date-time" | "go-micro-time" | "go-duration")) => {
                Err(misfit(type_of(other), "string", kind, place))
            }
            (Kind::Quantity, Value::String(text)) => {
                formats::quantity(text.trim()).map_err(|why| DecodeError(why.to_owned()))
            }
            (Kind::Quantity, other) => formats::quantity(&other.to_string()).map_err(|why| DecodeError(why.to_owned())),
            (Kind::IntOrString, Value::String(_)) => Ok(()),
            (Kind::IntOrString, Value::Number(number)) if in_range(number, "int32") => Ok(()),
            (Kind::IntOrString, other) => Err(misfit(&literal(other), "int32", kind, place)),
            (Kind::Integer, Value::Number(number)) => {
                let go = self.go_type(kind);
                if in_range(number, &go) {
                    Ok(())
                } else {
                    Err(misfit(&format!("number {number}"), &go, kind, place))
                }
            }
            (Kind::Number, Value::Number(_)) | (Kind::Boolean, Value::Bool(_)) => Ok(()),
            // it keeps whatever there is
            _ if self.definition_name().is_some_and(|name| {
                name.ends_with(".pkg.runtime.RawExtension") || name.ends_with(".meta.v1.FieldsV1")
            }) =>
            {
                Ok(())
            }
            (_, other) => {
                let named = place.and_then(|place| place.named(self));
                let go = named.map_or_else(|| self.go_type(kind), str::to_owned);
                Err(misfit(type_of(other), &go, kind, place))
            }
        }
    }

    /// The name of the Go type as the decoder tells it. Named scalar types are not known to schemas: their base is told.
    fn go_type(&self, kind: &str) -> String {
        match self.kind() {
            Kind::Boolean => "bool".into(),
            Kind::Integer => self.format().unwrap_or("int64").to_owned(),
            Kind::Number => "float64".into(),
            Kind::String if self.format() == Some("byte") => "[]uint8".into(),
            Kind::String | Kind::IntOrString | Kind::Quantity => match self.definition_name() {
                Some(name) => qualified_name(name),
                None => "string".into(),
            },
            Kind::Array => format!(
                "[]{}",
                self.items().map_or("interface {}".into(), |items| items.go_type(kind))
            ),
            Kind::Object => match (self.definition_name(), self.additional()) {
                (Some(name), _) => qualified_name(name),
                (None, Some(values)) => format!("map[string]{}", values.go_type(kind)),
                (None, None) => kind.to_owned(),
            },
            Kind::Any => "interface {}".into(),
        }
    }
}

/// Whether a value may stand where a schema or a bool may.
fn schema_or_bool(value: &Value) -> Result<(), DecodeError> {
    match value {
        Value::String(_) | Value::Number(_) | Value::Array(_) => {
            Err(DecodeError("boolean or JSON schema expected".to_owned()))
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => Ok(()),
    }
}

fn misfit(found: &str, go: &str, kind: &str, place: Option<&Place<'_>>) -> DecodeError {
    DecodeError(match place {
        Some(place) => format!(
            "json: cannot unmarshal {found} into Go struct field {}.{} of type {go}",
            place.definition.map_or(place.kind, short_name),
            place.path()
        ),
        None => {
            let go = if go.is_empty() { kind } else { go };
            format!("json: cannot unmarshal {found} into Go value of type {go}")
        }
    })
}

/// Why an element of a list of bytes is none.
fn not_a_byte(element: &Value, kind: &str, place: Option<&Place<'_>>) -> Option<DecodeError> {
    let found = match element {
        Value::Null => return None,
        Value::Number(number) if number.as_u64().is_some_and(|number| number <= u64::from(u8::MAX)) => return None,
        Value::Number(number) => format!("number {number}"),
        other => type_of(other).to_owned(),
    };
    Some(misfit(&found, "uint8", kind, place))
}

fn decode_bytes(text: &str) -> Result<(), DecodeError> {
    use base64::Engine;
    match base64::engine::general_purpose::STANDARD.decode(text) {
        Ok(_) => Ok(()),
        Err(_) => {
            let offset = wrong_byte(text.as_bytes());
            Err(DecodeError(format!("illegal base64 data at input byte {offset}")))
        }
    }
}

/// Decodes capabilities: a map of lists of texts.
fn decode_flavor(
    flavor: &Value,
    order: Option<&Order>,
    kind: &str,
    place: Option<&Place<'_>>,
) -> Result<(), DecodeError> {
    let Value::Object(capabilities) = flavor else {
        return Err(misfit(type_of(flavor), CAPABILITIES, kind, place));
    };
    let told: Vec<&Value> = match order {
        Some(Order::Members(told)) => told.iter().filter_map(|(name, _)| capabilities.get(name)).collect(),
        _ => capabilities.values().collect(),
    };
    for values in told {
        match values {
            Value::Null => {}
            Value::Array(values) => {
                let other = values.iter().find(|value| !value.is_string() && !value.is_null());
                if let Some(other) = other {
                    return Err(misfit(type_of(other), "string", kind, place));
                }
            }
            other => return Err(misfit(type_of(other), CAPABILITY_VALUES, kind, place)),
        }
    }
    Ok(())
}

/// Where Go finds that a text is no base64: at the first byte that does not belong where it stands, or at the four bytes of which some are missing.
fn wrong_byte(text: &[u8]) -> usize {
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let own = text.iter().position(|byte| !alphabet(*byte)).unwrap_or(text.len());
    let (whole, left) = (own / 4 * 4, own % 4);
    match (text.get(own), left) {
        (None, _) => whole,
        (Some(b'='), 3) => own + 1,
        (Some(b'='), 2) => match text.get(own + 1) {
            None | Some(b'=') => text.len().min(own + 2),
            Some(_) => own,
        },
        _ => own,
    }
}

fn in_range(number: &serde_json::Number, go: &str) -> bool {
    match go {
        "int32" => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        _ => number.as_i64().is_some(),
    }
}

/// `Deployment` of `io.k8s.api.apps.v1.Deployment`.
fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// `v1.Deployment` of `io.k8s.api.apps.v1.Deployment`.
fn qualified_name(name: &str) -> String {
    let mut parts = name.rsplitn(3, '.');
    let kind = parts.next().unwrap_or(name);
    match parts.next() {
        Some(package) => format!("{package}.{kind}"),
        None => kind.to_owned(),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("number {number}"),
        other => type_of(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn messages_of_gardener_apiserver() {
        let gardener = fixtures::gardener();
        let decode = |kind: &str, spec: Value| {
            let schema = gardener.for_kind("core.gardener.cloud", "v1beta1", kind).unwrap();
            schema
                .decode(&json!({"spec": spec}), kind)
                .map_err(|why| why.into_api_error("v1beta1", kind).message().to_owned())
        };
        assert_eq!(
            decode("CloudProfile", json!({"type": "local", "regions": "north"})).unwrap_err(),
            "CloudProfile in version \"v1beta1\" cannot be handled as a CloudProfile: json: cannot unmarshal string into Go \
             struct field CloudProfileSpec.spec.regions of type []v1beta1.Region"
        );
        assert_eq!(
            decode("Quota", json!({"metrics": {"cpu": "many"}})).unwrap_err(),
            "Quota in version \"v1beta1\" cannot be handled as a Quota: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
        assert_eq!(decode("Quota", json!({"metrics": {"cpu": "1", "memory": 2}})), Ok(()));
        assert_eq!(
            decode("Project", json!({"members": [{"name": 7}]})).unwrap_err(),
            "Project in version \"v1beta1\" cannot be handled as a Project: json: cannot unmarshal number into Go struct field \
             ProjectMember.spec.members.Subject.name of type string"
        );
        let versions = json!([{"classification": 7}]);
        assert_eq!(
            decode("CloudProfile", json!({"machineImages": [{"versions": versions}]})).unwrap_err(),
            "CloudProfile in version \"v1beta1\" cannot be handled as a CloudProfile: json: cannot unmarshal number into Go \
             struct field MachineImageVersion.spec.machineImages.versions.ExpirableVersion.classification of type \
             v1beta1.VersionClassification"
        );
    }

    #[test]
    fn messages_of_built_in_kinds() {
        let schema = fixtures::deployment();
        for (value, expected) in [
            (
                json!("x"),
                "json: cannot unmarshal string into Go value of type v1.Deployment",
            ),
            (
                json!({"spec": {"replicas": "3"}}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 1.5}}),
                "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"spec": {"replicas": 3_000_000_000_i64}}),
                "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                json!({"metadata": {"labels": []}}),
                "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"name": true}]}}}}),
                "json: cannot unmarshal bool into Go struct field Container.spec.template.spec.containers.name of type string",
            ),
            (
                json!({"metadata": {"creationTimestamp": "now"}}),
                "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as \"2006\"",
            ),
            (
                json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": true}}}}),
                "json: cannot unmarshal bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
            ),
        ] {
            assert_eq!(
                schema.decode(&value, "Deployment").unwrap_err().to_string(),
                expected,
                "{value}"
            );
        }
        let fits = json!({"metadata": null, "spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": "25%"}}}, "x": 1});
        assert_eq!(schema.decode(&fits, "Deployment"), Ok(()));
    }

    #[test]
    fn what_is_told_first_is_found_first() {
        let schema = fixtures::deployment();
        let body = r#"{"spec": {"template": {"spec": {"containers": [{"name": 1, "image": true}]}}, "replicas": "3"}}"#;
        let value: Value = serde_json::from_str(body).unwrap();
        let told = |order: Option<&Order>| schema.decode_in(&value, "Deployment", order).unwrap_err().to_string();
        assert!(told(None).contains("DeploymentSpec.spec.replicas"));
        let order = Order::of(body.as_bytes()).unwrap();
        assert!(told(Some(&order)).contains("Container.spec.template.spec.containers.name"));
        assert!(Order::of(b"{").is_none());
    }

    #[test]
    fn bytes_may_be_told_as_a_list() {
        let gardener = fixtures::gardener();
        let schema = gardener
            .for_kind("core.gardener.cloud", "v1beta1", "InternalSecret")
            .unwrap();
        let misfit = |bytes: Value| schema.decode(&json!({"data": {"a": bytes}}), "InternalSecret");
        for (bytes, text) in [(json!([]), ""), (json!([1, 2]), "AQI="), (json!([255, null]), "/wA=")] {
            assert_eq!(misfit(bytes.clone()), Ok(()), "{bytes}");
            let mut object = json!({"data": {"a": bytes}});
            schema.canonicalize(&mut object);
            assert_eq!(object, json!({"data": {"a": text}}));
        }
        for (bytes, found) in [
            (json!([{}, "a"]), "object"),
            (json!([1, 256]), "number 256"),
            (json!([-1]), "number -1"),
        ] {
            let mut object = json!({"data": {"a": bytes}});
            let why = format!("json: cannot unmarshal {found} into Go struct field InternalSecret.data of type uint8");
            assert_eq!(misfit(bytes).unwrap_err().to_string(), why);
            let told = object.clone();
            schema.canonicalize(&mut object);
            assert_eq!(object, told);
        }
        let why = misfit(json!({})).unwrap_err().to_string();
        assert!(
            why.ends_with("cannot unmarshal object into Go struct field InternalSecret.data of type []uint8"),
            "{why}"
        );
    }

    #[test]
    fn bytes_that_are_no_base64() {
        for (text, offset) in [
            ("x=y", 1),
            ("x", 0),
            ("xx", 0),
            ("xxxx=", 4),
            ("xx==x", 4),
            ("xx=", 3),
            ("xx=x", 2),
            ("xxx=x", 4),
            ("a b", 1),
            ("abcdefg", 4),
        ] {
            let told = decode_bytes(text).unwrap_err().to_string();
            assert_eq!(told, format!("illegal base64 data at input byte {offset}"), "{text}");
        }
    }

    #[test]
    fn strict_message() {
        let paths = ["metadata.colour".to_owned(), "scheduling.seedSelectr".to_owned()];
        assert_eq!(
            strict_error(&paths, "v1beta1", "ExposureClass").message(),
            "ExposureClass in version \"v1beta1\" cannot be handled as a ExposureClass: strict decoding error: unknown field \
             \"metadata.colour\", unknown field \"scheduling.seedSelectr\""
        );
    }
}
