//! Values of expressions. Lists and objects of JSON stay where they are; their parts are read when they are asked for.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use gardener_apimachinery::quantity::Amount;
use ipnet::IpNet;
use serde_json::Value as Json;

use crate::declared::{Declared, Elements, Shape, unescape};
use crate::eval::Check;
use crate::functions;
use crate::instant::Instant;
use crate::made::{self, Made};
use gardener_apimachinery::link::Link;

/// A value.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number that is not negative.
    Uint(u64),
    /// A number.
    Double(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A list that an expression made.
    List(Arc<Vec<Value<'a>>>),
    /// A map that an expression made.
    Map(Arc<BTreeMap<Key, Value<'a>>>),
    /// An object that an expression made.
    Made(Arc<Made<'a>>),
    /// A list or an object of JSON, and what is declared of it.
    Json(&'a Json, Option<&'a Declared>),
    /// A time.
    Timestamp(Instant),
    /// A duration in nanoseconds.
    Duration(i128),
    /// The name of a type.
    Type(&'static str),
    /// A value that may not be there.
    Optional(Option<Box<Value<'a>>>),
    /// An amount.
    Quantity(Amount),
    /// A URL.
    Url(Arc<Link>),
    /// An IP address.
    Ip(IpAddr),
    /// A range of addresses.
    Cidr(IpNet),
    /// A version.
    Semver(Arc<semver::Version>),
    /// A format of texts, by its name.
    Format(&'static str),
    /// A question to the authorizer, as far as it is put.
    Check(Arc<Check>),
}

/// A key of a map that an expression made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A truth value.
    Bool(bool),
    /// A whole number, signed or not.
    Int(i128),
    /// A text.
    Text(String),
    /// Nothing.
    Null,
    /// A number that is not whole, by its bits.
    Double(u64),
}

impl<'a> Value<'a> {
    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A value of JSON, in the type that is declared of it.
    pub fn of_json(json: &'a Json, declared: Option<&'a Declared>) -> Self {
        let shape = declared.map(|declared| &declared.shape);
        match (json, shape) {
            (Json::Null, _) => Self::Null,
            (Json::Bool(value), _) => Self::Bool(*value),
            (Json::Number(number), Some(Shape::Double)) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            (Json::Number(number), _) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => match number.as_f64() {
                    // a whole number written with a point
                    Some(value) if matches!(shape, Some(Shape::Int)) => Self::Int(value as i64),
                    value => Self::Double(value.unwrap_or(f64::NAN)),
                },
            },
            (Json::String(text), Some(Shape::Timestamp)) => match functions::timestamp(text) {
                Some(time) => Self::Timestamp(time),
                None => Self::text(text.as_str()),
            },
            (Json::String(text), Some(Shape::Duration)) => match functions::duration(text) {
                Some(nanoseconds) => Self::Duration(nanoseconds),
                None => Self::text(text.as_str()),
            },
            (Json::String(text), Some(Shape::Bytes)) => match functions::decode_base64(text) {
                Some(bytes) => Self::Bytes(bytes.into()),
                None => Self::text(text.as_str()),
            },
            (Json::String(text), _) => Self::text(text.as_str()),
            (Json::Array(_) | Json::Object(_), _) => Self::Json(json, declared),
        }
    }

    /// The name of its type, as expressions call it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) | Self::Json(Json::Array(_), _) => "list",
            Self::Map(_) | Self::Json(..) => "map",
            Self::Made(made) if *made.name == *made::PATCH => made::PATCH,
            Self::Made(_) => made::OBJECT,
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Check(_) => "kubernetes.authorization.Authorizer",
        }
    }

    /// The name of its type in cel-go, which some messages show.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::Text(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::List(_) => "*types.baseList",
            Self::Map(_) => "*types.baseMap",
            Self::Made(made) if *made.name == *made::PATCH => "*mutation.JSONPatchVal",
            Self::Made(_) => "*dynamic.ObjectVal",
            Self::Json(Json::Array(_), Some(_)) => "*common.unstructuredList",
            Self::Json(_, Some(_)) => "*common.unstructuredMap",
            Self::Json(Json::Array(_), None) => "[]interface {}",
            Self::Json(_, None) => "map[string]interface {}",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::Type(_) => "*types.Type",
            Self::Optional(_) => "*types.Optional",
            Self::Quantity(_) => "cel.Quantity",
            Self::Url(_) => "cel.URL",
            Self::Ip(_) => "cel.IP",
            Self::Cidr(_) => "cel.CIDR",
            Self::Semver(_) => "cel.Semver",
            Self::Format(_) => "*cel.Format",
            Self::Check(_) => "library.authorizerVal",
        }
    }

    /// How many elements, bytes or characters.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Json(Json::Array(list), _) => list.len(),
            Self::Json(Json::Object(members), _) => members.len(),
            _ => 1,
        };
        size as u64
    }

    /// The number of elements of a list.
    pub(crate) fn list_len(&self) -> Option<usize> {
        match self {
            Self::List(list) => Some(list.len()),
            Self::Json(Json::Array(list), _) => Some(list.len()),
            _ => None,
        }
    }

    /// An element of a list.
    pub(crate) fn element(&self, at: usize) -> Option<Value<'a>> {
        match self {
            Self::List(list) => list.get(at).cloned(),
            Self::Json(Json::Array(list), declared) => {
                let items = declared.and_then(|declared| match &declared.shape {
                    Shape::List { items, .. } => Some(&**items),
                    // in a value that may be anything
                    Shape::Named(_) => Some(declared),
                    _ => None,
                });
                list.get(at).map(|json| Self::of_json(json, items))
            }
            _ => None,
        }
    }

    /// All elements of a list.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        (0..self.list_len().unwrap_or(0)).filter_map(|at| self.element(at))
    }

    /// How a list's elements are told apart.
    pub(crate) fn kind_of_elements(&self) -> &Elements {
        match self {
            Self::Json(
                _,
                Some(Declared {
                    shape: Shape::List { elements, .. },
                    ..
                }),
            ) => elements,
            _ => &Elements::Atomic,
        }
    }

    /// A member of a map, or a field of an object by the name that expressions use.
    pub(crate) fn member(&self, key: &Key) -> Option<Value<'a>> {
        match (self, key) {
            (Self::Map(map), key) => map.get(key).cloned(),
            (Self::Made(made), Key::Text(name)) => made.fields.get(name).cloned(),
            (Self::Json(Json::Object(members), declared), Key::Text(name)) => {
                let declared: Option<&'a Declared> = *declared;
                match declared.map(|declared| (&declared.shape, declared)) {
                    Some((Shape::Object { .. }, declared)) => {
                        let field = declared.field(name)?;
                        // a field that is null is as absent
                        let json = members.get(&field.property).filter(|json| !json.is_null())?;
                        Some(Self::of_json(json, Some(&field.declared)))
                    }
                    Some((Shape::Named(values), own)) => {
                        let inner = if matches!(values.shape, Shape::Dyn) {
                            own
                        } else {
                            values
                        };
                        let json = match unescape(name) {
                            Some(name) => members.get(&name),
                            None => members.get(name),
                        };
                        json.map(|json| Self::of_json(json, Some(inner)))
                    }
                    Some((Shape::Map(values), _)) => members.get(name).map(|json| Self::of_json(json, Some(values))),
                    _ => members.get(name).map(|json| Self::of_json(json, None)),
                }
            }
            _ => None,
        }
    }

    /// The keys of a map, in order.
    pub(crate) fn keys(&self) -> Option<Vec<Value<'a>>> {
        match self {
            Self::Map(map) => Some(
                map.keys()
                    .map(|key| match key {
                        Key::Bool(value) => Self::Bool(*value),
                        Key::Int(value) => i64::try_from(*value)
                            .map_or_else(|_| Self::Uint(u64::try_from(*value).unwrap_or(u64::MAX)), Self::Int),
                        Key::Text(text) => Self::text(text.clone()),
                        Key::Null => Self::Null,
                        Key::Double(bits) => Self::Double(f64::from_bits(*bits)),
                    })
                    .collect(),
            ),
            Self::Json(Json::Object(members), _) => Some(members.keys().map(|key| Self::text(key.as_str())).collect()),
            _ => None,
        }
    }

    /// This value as a key.
    pub(crate) fn key(&self) -> Option<Key> {
        match self {
            Self::Bool(value) => Some(Key::Bool(*value)),
            Self::Int(value) => Some(Key::Int(i128::from(*value))),
            Self::Uint(value) => Some(Key::Int(i128::from(*value))),
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(Key::Int(*value as i128)),
            Self::Double(value) => Some(Key::Double(value.to_bits())),
            Self::Null => Some(Key::Null),
            Self::Text(text) => Some(Key::Text(text.clone().into_owned())),
            _ => None,
        }
    }

    /// Whether two values are the same. Numbers are compared by what they count.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(_) | Self::Uint(_) | Self::Double(_), Self::Int(_) | Self::Uint(_) | Self::Double(_)) => {
                self.order(other) == Some(Ordering::Equal)
            }
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Type(a), Self::Type(b)) | (Self::Format(a), Self::Format(b)) => a == b,
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.same(b),
                (a, b) => a.is_none() && b.is_none(),
            },
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a.cmp_precedence(b) == Ordering::Equal,
            (Self::Check(a), Self::Check(b)) => a == b,
            (Self::Made(a), Self::Made(b)) => {
                let same = |(name, value): (&String, &Value<'_>)| b.fields.get(name).is_some_and(|own| value.same(own));
                a.name == b.name && a.fields.len() == b.fields.len() && a.fields.iter().all(same)
            }
            _ => self.same_parts(other),
        }
    }

    fn same_parts(&self, other: &Self) -> bool {
        if let (Some(a), Some(b)) = (self.list_len(), other.list_len()) {
            return a == b
                && match self.kind_of_elements() {
                    Elements::Atomic => (0..a).all(|at| match (self.element(at), other.element(at)) {
                        (Some(a), Some(b)) => a.same(&b),
                        _ => false,
                    }),
                    // a set, or a map by keys: in any order
                    _ => {
                        let others: Vec<Value<'_>> = other.elements().collect();
                        self.elements().all(|one| others.iter().any(|other| one.same(other)))
                    }
                };
        }
        match (self.keys(), other.keys()) {
            (Some(a), Some(b)) => {
                a.len() == b.len()
                    && a.iter().all(|key| {
                        let Some(key) = key.key() else { return false };
                        match (self.property(&key), other.property(&key)) {
                            (Some(a), Some(b)) => a.same(&b),
                            _ => false,
                        }
                    })
            }
            _ => false,
        }
    }

    /// A member by the name that it has in JSON.
    fn property(&self, key: &Key) -> Option<Value<'a>> {
        if let (Self::Json(Json::Object(members), Some(declared)), Key::Text(name)) = (self, key)
            && let Shape::Object { fields, .. } = &declared.shape
        {
            let field = fields.values().find(|field| field.property == *name);
            let json = members.get(name)?;
            return Some(Self::of_json(json, field.map(|field| &*field.declared)));
        }
        self.member(key)
    }

    /// Which of two values comes first; none where they have no order.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        let number = |value: &Self| match value {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            _ => None,
        };
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), b) => a.partial_cmp(&(number(b)? as f64)),
            (a, Self::Double(b)) => (number(a)? as f64).partial_cmp(b),
            (a, b) => Some(number(a)?.cmp(&number(b)?)),
        }
    }
}
