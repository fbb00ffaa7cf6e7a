//! Types of expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::declared::{Declared, Shape};

#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// Checked when evaluated.
    Dyn,
    /// Whatever the place wants: of the elements of an empty list.
    Open,
    /// What is wrong was reported already.
    Error,
    Null,
    /// `bool`, `int`, `uint`, `double`, `string`, `bytes`, `timestamp`, `duration`.
    Simple(&'static str),
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Optional(Box<Type>),
    /// The type of a type.
    Of(Box<Type>),
    /// Types of libraries, by their full name.
    Abstract(&'static str),
    Object(Arc<Declared>),
    /// Of an object that an expression makes, by its name.
    Made(Arc<str>),
    /// A type parameter of a function.
    Param(char),
}

pub(crate) const BOOL: Type = Type::Simple("bool");
pub(crate) const INT: Type = Type::Simple("int");
pub(crate) const STRING: Type = Type::Simple("string");

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Open => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Simple(name) | Self::Abstract(name) => f.write_str(name),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Of(inner) => write!(f, "type({inner})"),
            Self::Object(declared) => f.write_str(declared.object_name()),
            Self::Made(name) => f.write_str(name),
            Self::Param(name) => write!(f, "{name}"),
        }
    }
}

impl Type {
    /// The type of values of a declaration.
    pub(crate) fn of(declared: &Arc<Declared>) -> Self {
        match &declared.shape {
            Shape::Bool => BOOL,
            Shape::Int => INT,
            Shape::Double => Self::Simple("double"),
            Shape::Text => STRING,
            Shape::Bytes => Self::Simple("bytes"),
            Shape::Timestamp => Self::Simple("timestamp"),
            Shape::Duration => Self::Simple("duration"),
            Shape::Dyn => Self::Dyn,
            Shape::Authorizer => Self::Abstract("kubernetes.authorization.Authorizer"),
            Shape::ResourceCheck => Self::Abstract("kubernetes.authorization.ResourceCheck"),
            Shape::Optional(inner) => Self::Optional(Box::new(Self::of(inner))),
            Shape::List { items, .. } => Self::List(Box::new(Self::of(items))),
            Shape::Map(values) | Shape::Named(values) => Self::Map(Box::new(STRING), Box::new(Self::of(values))),
            Shape::Object { .. } => Self::Object(Arc::clone(declared)),
        }
    }

    /// What is declared of a variable that has a value of this type. What declarations cannot tell is checked when it is evaluated.
    pub(crate) fn declared(&self) -> Declared {
        match self {
            Self::Simple("bool") => Declared::new(Shape::Bool),
            Self::Simple("int") => Declared::new(Shape::Int),
            Self::Simple("double") => Declared::new(Shape::Double),
            Self::Simple("string") => Declared::new(Shape::Text),
            Self::Simple("bytes") => Declared::new(Shape::Bytes),
            Self::Simple("timestamp") => Declared::new(Shape::Timestamp),
            Self::Simple("duration") => Declared::new(Shape::Duration),
            Self::List(element) => Declared::list_of(element.declared()),
            Self::Map(key, value) if matches!(**key, Self::Simple("string")) => {
                Declared::new(Shape::Map(Arc::new(value.declared())))
            }
            _ => Declared::new(Shape::Dyn),
        }
    }

    /// The name by which a value of the type calls its type, where that is not the checker's.
    pub(crate) fn runtime_name(&self) -> String {
        match self {
            Self::Null => "null_type".to_owned(),
            Self::Simple("timestamp") => "google.protobuf.Timestamp".to_owned(),
            Self::Simple("duration") => "google.protobuf.Duration".to_owned(),
            Self::List(element) => format!("list({})", element.runtime_name()),
            Self::Map(key, value) => format!("map({}, {})", key.runtime_name(), value.runtime_name()),
            Self::Optional(inner) => format!("optional_type({})", inner.runtime_name()),
            Self::Of(inner) => format!("type({})", inner.runtime_name()),
            other => other.to_string(),
        }
    }

    /// The name of the type without that of its parts.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Dyn | Self::Open => "dyn",
            Self::Error => "!error!",
            Self::Null => "null_type",
            Self::Simple("timestamp") => "google.protobuf.Timestamp",
            Self::Simple("duration") => "google.protobuf.Duration",
            Self::Simple(name) | Self::Abstract(name) => name,
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Optional(_) => "optional_type",
            Self::Of(_) => "type",
            Self::Object(declared) => declared.object_name(),
            Self::Made(name) => name,
            Self::Param(_) => "",
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Open | Self::Error)
    }

    /// Whether nothing tells the two apart.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn | Self::Open, Self::Dyn | Self::Open)
            | (Self::Error, Self::Error)
            | (Self::Null, Self::Null) => true,
            (Self::Simple(a), Self::Simple(b)) | (Self::Abstract(a), Self::Abstract(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.is(b),
            // types of types are one type
            (Self::Of(_), Self::Of(_)) => true,
            (Self::Map(ak, av), Self::Map(bk, bv)) => ak.is(bk) && av.is(bv),
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b),
            (Self::Made(a), Self::Made(b)) => a == b,
            (Self::Param(a), Self::Param(b)) => a == b,
            _ => false,
        }
    }

    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Abstract(_)
                | Self::Object(_)
                | Self::Made(_)
                | Self::Optional(_)
                | Self::Simple("timestamp" | "duration")
        )
    }

    /// The type with what is open in it as another one has it, which it fits.
    fn closed_by(&self, other: &Self) -> Self {
        let closed = |own: &Self, other: &Self| Box::new(own.closed_by(other));
        match (self, other) {
            (Self::Open, other) => other.clone(),
            (Self::List(own), Self::List(other)) => Self::List(closed(own, other)),
            (Self::Optional(own), Self::Optional(other)) => Self::Optional(closed(own, other)),
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                Self::Map(closed(key, other_key), closed(value, other_value))
            }
            _ => self.clone(),
        }
    }

    /// The type of both; `dyn` where they have none in common.
    pub(crate) fn join(self, other: Self) -> Self {
        let mut bound = Bindings::default();
        if bound.fits(&self, &other) {
            return if other.is_dyn() { other } else { self.closed_by(&other) };
        }
        match Bindings::default().fits(&other, &self) {
            true => other,
            false => Self::Dyn,
        }
    }
}

/// What the type parameters of one call stand for.
#[derive(Default)]
pub(crate) struct Bindings(BTreeMap<char, Type>);

impl Bindings {
    /// Whether a value of `actual` may stand where `formal` is asked for.
    pub(crate) fn fits(&mut self, formal: &Type, actual: &Type) -> bool {
        if let Type::Param(name) = formal {
            let Some(known) = self.0.get(name).cloned() else {
                self.0.insert(*name, actual.clone());
                return true;
            };
            let fits = self.fits(&known, actual) || self.fits(actual, &known);
            if fits {
                // the wider one counts
                let wider = actual.is_dyn() && !matches!(actual, Type::Open) || matches!(known, Type::Null);
                let bound = if wider { actual.clone() } else { known.closed_by(actual) };
                self.0.insert(*name, bound);
            }
            return fits;
        }
        match (formal, actual) {
            (Type::Dyn | Type::Open | Type::Error, _) | (_, Type::Dyn | Type::Open | Type::Error) => true,
            (formal, Type::Null) => formal.is_nullable(),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.fits(a, b),
            (Type::Map(ak, av), Type::Map(bk, bv)) => self.fits(ak, bk) && self.fits(av, bv),
            (Type::Of(_), Type::Of(_)) => true,
            _ => formal.is(actual),
        }
    }

    /// A type with its parameters filled in; those that stand for nothing are `dyn`.
    pub(crate) fn filled(&self, formal: &Type) -> Type {
        let boxed = |inner: &Type| Box::new(self.filled(inner));
        match formal {
            Type::Param(name) => self.0.get(name).cloned().unwrap_or(Type::Open),
            Type::List(inner) => Type::List(boxed(inner)),
            Type::Optional(inner) => Type::Optional(boxed(inner)),
            Type::Of(inner) => Type::Of(boxed(inner)),
            Type::Map(key, value) => Type::Map(boxed(key), boxed(value)),
            other => other.clone(),
        }
    }
}
