//! Evaluation within a budget: every step is paid for before it is made.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Fold, FoldKind, Init, Literal, Node};
use crate::declared::Elements;
use crate::functions;
use crate::library;
use crate::made;
use crate::parser::qualified;
use crate::value::{Key, Value};

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// It costs more than it may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// No such key, division by zero, …; in cel-go's words.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }

    pub(crate) fn overload() -> Self {
        Self::new("no such overload")
    }
}

/// A question whether somebody may do something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// A service account (namespace and name) in place of the caller.
    pub service_account: Option<(String, String)>,
    /// A path that is no resource.
    pub path: Option<String>,
    /// API group.
    pub group: String,
    /// Resource.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The field selector of a list or watch.
    pub field_selector: String,
    /// Its label selector.
    pub label_selector: String,
    /// The decision, once it is asked for: whether it is allowed, and why.
    pub decision: Option<(bool, String)>,
}

/// Decides what [`Check`] asks.
pub trait Authorizer {
    /// Whether `verb` is allowed, and why or why not.
    fn decide(&self, check: &Check, verb: &str) -> (bool, String);
}

/// Finds variables when they are asked for.
pub trait Lazy<'a> {
    /// The value of a variable; none if there is no such variable.
    fn value(&self, name: &str) -> Option<Result<Value<'a>, EvalError>>;
}

/// Variables by name.
pub(crate) struct Scope<'s, 'a> {
    pub(crate) names: Vec<(&'s str, Value<'a>)>,
    /// Those that are found when they are asked for.
    pub(crate) lazy: Option<&'s dyn Lazy<'a>>,
    pub(crate) parent: Option<&'s Scope<'s, 'a>>,
}

impl<'a> Scope<'_, 'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        let own = self.names.iter().rev().find(|(own, _)| *own == name);
        match own {
            Some((_, value)) => Some(value.clone()),
            None => self.parent?.get(name),
        }
    }

    fn lazy(&self, name: &str) -> Option<Found<'a>> {
        match self.parent {
            Some(parent) => parent.lazy(name),
            None => self.lazy?.value(name),
        }
    }
}

/// What one evaluation has spent.
pub(crate) struct Evaluation<'e> {
    pub(crate) spent: u64,
    pub(crate) limit: u64,
    pub(crate) authorizer: Option<&'e dyn Authorizer>,
}

type Found<'a> = Result<Value<'a>, EvalError>;

impl Evaluation<'_> {
    pub(crate) fn pay(&mut self, cost: u64) -> Result<(), EvalError> {
        self.spent = self.spent.saturating_add(cost);
        match self.spent > self.limit {
            true => Err(EvalError::CostLimit),
            false => Ok(()),
        }
    }

    /// Pays for going through a text.
    pub(crate) fn traverse(&mut self, size: u64) -> Result<(), EvalError> {
        self.pay(size.div_ceil(10))
    }

    pub(crate) fn eval<'s, 'a>(&mut self, expr: &'s Expr, scope: &Scope<'s, 'a>) -> Found<'a> {
        match &expr.node {
            Node::Literal(literal) => Ok(of_literal(literal)),
            Node::Ident(name) => {
                self.pay(1)?;
                if let Some(value) = scope.get(name) {
                    return Ok(value);
                }
                match scope.lazy(name) {
                    Some(value) => {
                        // a variable, and its field
                        self.pay(1)?;
                        value
                    }
                    None => named_type(name),
                }
            }
            Node::Select {
                operand,
                field,
                optional,
            } => {
                let operand = self.eval(operand, scope)?;
                self.pay(1)?;
                select(&operand, field, *optional)
            }
            Node::Has { operand, field } => {
                if let Node::Ident(name) = &operand.node
                    && scope.get(name).is_none()
                    && let Some(value) = scope.lazy(&format!("{name}.{field}"))
                {
                    self.pay(1)?;
                    return value.map(|_| Value::Bool(true));
                }
                let operand = self.eval(operand, scope)?;
                has(&operand, field).map(Value::Bool)
            }
            Node::Call { name, target, args } => self.call(name, target.as_deref(), args, scope),
            Node::Logic { and, args } => self.logic(*and, args, scope),
            Node::List(elements) => self.list(elements, scope),
            Node::Map(entries) => self.map(entries, scope),
            Node::Struct { name, fields } => self.object(name, fields, scope),
            Node::Fold(fold) => self.fold(fold, scope),
        }
    }

    /// A failing operand counts only if no other decides.
    fn logic<'s, 'a>(&mut self, and: bool, args: &'s [Expr], scope: &Scope<'s, 'a>) -> Found<'a> {
        let mut failed = None;
        for arg in args {
            match self.eval(arg, scope) {
                Ok(Value::Bool(value)) if value != and => return Ok(Value::Bool(value)),
                Ok(Value::Bool(_)) => {}
                Err(EvalError::CostLimit) => return Err(EvalError::CostLimit),
                Ok(_) => failed = failed.or(Some(EvalError::overload())),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(and)), Err)
    }

    fn list<'s, 'a>(&mut self, elements: &'s [(bool, Expr)], scope: &Scope<'s, 'a>) -> Found<'a> {
        self.pay(10)?;
        let mut list = Vec::with_capacity(elements.len());
        for (optional, element) in elements {
            match (optional, self.eval(element, scope)?) {
                (true, Value::Optional(inner)) => list.extend(inner.map(|inner| *inner)),
                (_, value) => list.push(value),
            }
        }
        Ok(Value::List(Arc::new(list)))
    }

    fn object<'s, 'a>(&mut self, name: &str, fields: &'s [Init], scope: &Scope<'s, 'a>) -> Found<'a> {
        let mut made = BTreeMap::new();
        for field in fields {
            let value = match (field.optional, self.eval(&field.value, scope)?) {
                (true, Value::Optional(Some(inner))) => *inner,
                (true, Value::Optional(None)) => {
                    made.remove(&field.name);
                    continue;
                }
                (true, other) => {
                    let why = format!(
                        "cannot initialize optional entry '{}' from non-optional value {}",
                        field.name,
                        other.type_name()
                    );
                    return Err(EvalError::new(why));
                }
                (false, value) => value,
            };
            made.insert(field.name.clone(), value);
        }
        self.pay(40)?;
        made::make(name, made)
    }

    fn map<'s, 'a>(&mut self, entries: &'s [(bool, Expr, Expr)], scope: &Scope<'s, 'a>) -> Found<'a> {
        self.pay(30)?;
        let mut map = BTreeMap::new();
        for (optional, key, value) in entries {
            let key = self.eval(key, scope)?;
            let key = key
                .key()
                .ok_or_else(|| EvalError::new(format!("unsupported key type: {}", key.type_name())))?;
            let value = match (optional, self.eval(value, scope)?) {
                (true, Value::Optional(None)) => continue,
                (true, Value::Optional(Some(inner))) => *inner,
                (_, value) => value,
            };
            // the last one counts
            map.insert(key, value);
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn call<'s, 'a>(
        &mut self,
        name: &'s str,
        target: Option<&'s Expr>,
        args: &'s [Expr],
        scope: &Scope<'s, 'a>,
    ) -> Found<'a> {
        if name == "_?_:_"
            && let [condition, yes, no] = args
        {
            return match self.eval(condition, scope)? {
                Value::Bool(true) => self.eval(yes, scope),
                Value::Bool(false) => self.eval(no, scope),
                _ => Err(EvalError::overload()),
            };
        }
        let global = target
            .and_then(qualified)
            .map(|space| format!("{space}.{name}"))
            .filter(|name| library::is_global(name));
        let (name, target): (Cow<'_, str>, _) = match global {
            Some(name) => (Cow::Owned(name), None),
            None => (Cow::Borrowed(name), target),
        };
        let mut values = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            values.push(self.eval(target, scope)?);
        }
        for arg in args {
            values.push(self.eval(arg, scope)?);
        }
        match (&*name, values.as_slice()) {
            ("_==_" | "_!=_", [left, right]) => {
                self.pay(1)?;
                self.pay_comparison(left, right)?;
                Ok(Value::Bool(left.same(right) == (name == "_==_")))
            }
            ("@in", [element, range]) => self.contains(element, range).map(Value::Bool),
            ("_[_]", [operand, index]) => {
                self.pay(1)?;
                index_of(operand, index, false)
            }
            ("_[?_]", [operand, index]) => {
                self.pay(1)?;
                index_of(operand, index, true)
            }
            ("_+_", [left, right]) if left.list_len().is_some() => self.joined(left, right),
            _ => functions::call(self, &name, target.is_some(), &values),
        }
    }

    /// Comparing costs what there is to look at in the smaller one; parts of parts are counted too.
    fn pay_comparison(&mut self, left: &Value<'_>, right: &Value<'_>) -> Result<(), EvalError> {
        match (left, right) {
            (Value::Text(_) | Value::Bytes(_), Value::Text(_) | Value::Bytes(_)) => {
                self.traverse(left.size().min(right.size()))
            }
            (Value::Json(..) | Value::List(_) | Value::Map(_), Value::Json(..) | Value::List(_) | Value::Map(_)) => {
                let unordered = *left.kind_of_elements() != Elements::Atomic;
                let (a, b) = (weight(left, self.limit), weight(right, self.limit));
                let weight = if unordered {
                    a.saturating_mul(b.max(1))
                } else {
                    a.min(b)
                };
                self.traverse(weight)
            }
            _ => Ok(()),
        }
    }

    fn contains(&mut self, element: &Value<'_>, range: &Value<'_>) -> Result<bool, EvalError> {
        if range.list_len().is_some() {
            self.pay(range.size())?;
            for other in range.elements() {
                self.pay_comparison(element, &other)?;
                if element.same(&other) {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        self.pay(1)?;
        match range {
            Value::Map(_) | Value::Json(..) => Ok(element.key().is_some_and(|key| range.member(&key).is_some())),
            _ => Err(EvalError::overload()),
        }
    }

    /// Lists one after the other; sets and maps by keys are united.
    fn joined<'a>(&mut self, left: &Value<'a>, right: &Value<'a>) -> Found<'a> {
        if right.list_len().is_none() {
            return Err(EvalError::overload());
        }
        self.pay(1)?;
        self.traverse(left.size() + right.size())?;
        let mut list: Vec<Value<'a>> = left.elements().collect();
        match left.kind_of_elements() {
            Elements::Atomic => list.extend(right.elements()),
            Elements::Set => {
                for one in right.elements() {
                    self.pay(list.len() as u64)?;
                    if !list.iter().any(|own| own.same(&one)) {
                        list.push(one);
                    }
                }
            }
            Elements::Map(keys) => {
                let keys: Vec<Key> = keys.iter().cloned().map(Key::Text).collect();
                let same_keys = |a: &Value<'a>, b: &Value<'a>| {
                    keys.iter().all(|key| match (a.member(key), b.member(key)) {
                        (Some(a), Some(b)) => a.same(&b),
                        (a, b) => a.is_none() && b.is_none(),
                    })
                };
                for one in right.elements() {
                    self.pay(list.len() as u64)?;
                    match list.iter_mut().find(|own| same_keys(own, &one)) {
                        Some(own) => *own = one,
                        None => list.push(one),
                    }
                }
            }
        }
        Ok(Value::List(Arc::new(list)))
    }

    fn fold<'s, 'a>(&mut self, fold: &'s Fold, scope: &Scope<'s, 'a>) -> Found<'a> {
        let range = self.eval(&fold.range, scope)?;
        if let FoldKind::OptMap | FoldKind::OptFlatMap = fold.kind {
            let Value::Optional(inner) = range else {
                return Err(EvalError::overload());
            };
            let Some(inner) = inner else {
                return Ok(Value::Optional(None));
            };
            let inside = bound(fold, scope, *inner, Value::Null);
            let found = self.eval(&fold.body, &inside)?;
            return Ok(match fold.kind {
                FoldKind::OptMap => Value::Optional(Some(Box::new(found))),
                _ => found,
            });
        }
        let pairs = self.pairs(&range, fold.names.len() == 2)?;
        let mut state = State::default();
        for (first, second) in pairs {
            self.pay(2)?;
            let inside = bound(fold, scope, first.clone(), second);
            if let Some(filter) = &fold.filter {
                match self.eval(filter, &inside)? {
                    Value::Bool(true) => {}
                    Value::Bool(false) => continue,
                    _ => return Err(EvalError::overload()),
                }
            }
            let found = self.eval(&fold.body, &inside);
            if self.step(fold.kind, &mut state, first, found)? {
                break;
            }
        }
        self.pay(1)?;
        if fold.kind == FoldKind::SortBy {
            let keys = Value::List(Arc::new(state.list));
            return functions::call(self, "@sortByAssociatedKeys", true, &[range, keys]);
        }
        state.result(fold.kind)
    }

    /// The names' values for each element. Maps give keys, or keys and values.
    fn pairs<'a>(&mut self, range: &Value<'a>, two: bool) -> Result<Vec<(Value<'a>, Value<'a>)>, EvalError> {
        self.pay(range.size().div_ceil(10))?;
        if range.list_len().is_some() {
            let elements = range.elements().enumerate();
            return Ok(elements
                .map(|(at, element)| match two {
                    true => (Value::Int(i64::try_from(at).unwrap_or(i64::MAX)), element),
                    false => (element, Value::Null),
                })
                .collect());
        }
        let keys = range.keys().ok_or_else(EvalError::overload)?;
        Ok(keys
            .into_iter()
            .map(|key| {
                let value = match two {
                    true => key.key().and_then(|key| range.member(&key)).unwrap_or(Value::Null),
                    false => Value::Null,
                };
                (key, value)
            })
            .collect())
    }

    /// Takes one element's result. Answers whether the rest does not matter.
    fn step<'a>(
        &mut self,
        kind: FoldKind,
        state: &mut State<'a>,
        first: Value<'a>,
        found: Found<'a>,
    ) -> Result<bool, EvalError> {
        let found = match (kind, found) {
            // an error counts only if no other element decides
            (FoldKind::All | FoldKind::Exists, Err(EvalError::Failed(why))) => {
                state.failed.get_or_insert(EvalError::Failed(why));
                return Ok(false);
            }
            (_, found) => found?,
        };
        match (kind, found) {
            (FoldKind::All, Value::Bool(false)) | (FoldKind::Exists, Value::Bool(true)) => {
                state.decided = true;
                return Ok(true);
            }
            (FoldKind::All | FoldKind::Exists, Value::Bool(_)) => {}
            (FoldKind::All | FoldKind::Exists, _) => {
                state.failed.get_or_insert_with(EvalError::overload);
            }
            (FoldKind::ExistsOne, Value::Bool(value)) => state.count += usize::from(value),
            (FoldKind::Filter, Value::Bool(true)) => state.list.push(first),
            (FoldKind::Filter, Value::Bool(false)) => {}
            (FoldKind::ExistsOne | FoldKind::Filter, _) => return Err(EvalError::overload()),
            (FoldKind::TransformMap, value) => {
                state.map.insert(first.key().ok_or_else(EvalError::overload)?, value);
            }
            (FoldKind::TransformMapEntry, entry) => {
                let Some(keys) = entry.keys() else {
                    let found = entry.type_name();
                    return Err(EvalError::new(format!(
                        "no such overload: cel.@mapInsert(map, {found})"
                    )));
                };
                for own in keys {
                    let Some(key) = own.key() else { continue };
                    let Some(value) = entry.member(&key) else { continue };
                    if state.map.insert(key, value).is_some() {
                        let shown = functions::shown(&own).unwrap_or_default();
                        return Err(EvalError::new(format!("insert failed: key {shown} already exists")));
                    }
                }
            }
            (_, value) => {
                self.pay(11)?;
                state.list.push(value);
            }
        }
        Ok(false)
    }
}

#[derive(Default)]
struct State<'a> {
    decided: bool,
    failed: Option<EvalError>,
    count: usize,
    list: Vec<Value<'a>>,
    map: BTreeMap<Key, Value<'a>>,
}

impl<'a> State<'a> {
    fn result(self, kind: FoldKind) -> Found<'a> {
        match (kind, self.failed) {
            (FoldKind::All, _) if self.decided => Ok(Value::Bool(false)),
            (FoldKind::Exists, _) if self.decided => Ok(Value::Bool(true)),
            (_, Some(failed)) => Err(failed),
            (FoldKind::All, None) => Ok(Value::Bool(true)),
            (FoldKind::Exists, None) => Ok(Value::Bool(false)),
            (FoldKind::ExistsOne, None) => Ok(Value::Bool(self.count == 1)),
            (FoldKind::TransformMap | FoldKind::TransformMapEntry, None) => Ok(Value::Map(Arc::new(self.map))),
            (_, None) => Ok(Value::List(Arc::new(self.list))),
        }
    }
}

fn bound<'s, 'a>(fold: &'s Fold, scope: &'s Scope<'s, 'a>, first: Value<'a>, second: Value<'a>) -> Scope<'s, 'a> {
    let names = fold.names.iter().map(String::as_str);
    Scope {
        names: names.zip([first, second]).collect(),
        lazy: None,
        parent: Some(scope),
    }
}

pub(crate) fn of_literal<'a>(literal: &Literal) -> Value<'a> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::Text(text) => Value::text(text.clone()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}

fn named_type<'a>(name: &str) -> Found<'a> {
    const NAMES: [&str; 10] = [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
    ];
    match NAMES.iter().find(|own| **own == name) {
        Some(name) => Ok(Value::Type(name)),
        None => Err(EvalError::new(format!("no such attribute(s): {name}"))),
    }
}

fn select<'a>(operand: &Value<'a>, field: &str, optional: bool) -> Found<'a> {
    index_of(operand, &Value::text(field.to_owned()), optional)
}

fn has(operand: &Value<'_>, field: &str) -> Result<bool, EvalError> {
    match operand {
        Value::Optional(None) => Ok(false),
        Value::Optional(Some(inner)) => has(inner, field),
        operand => part(operand, &Value::text(field.to_owned())).map(|found| found.is_some()),
    }
}

/// What an operand has under an index or a name. Behind an optional value everything is optional.
fn index_of<'a>(operand: &Value<'a>, index: &Value<'a>, optional: bool) -> Found<'a> {
    match operand {
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => index_of(inner, index, true),
        operand => match (part(operand, index)?, optional) {
            (found, true) => Ok(Value::Optional(found.map(Box::new))),
            (Some(found), false) => Ok(found),
            (None, false) => {
                let missing = match operand.list_len() {
                    Some(_) => "index out of bounds",
                    None => "no such key",
                };
                let index = functions::shown(index).unwrap_or_default();
                Err(EvalError::new(format!("{missing}: {index}")))
            }
        },
    }
}

/// An element of a list or a member of a map. What is neither has no parts, which is no error.
fn part<'a>(operand: &Value<'a>, index: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
    let own = qualifier(index)?;
    if operand.list_len().is_none() {
        return match (operand, &own) {
            // objects with a schema have names only
            (Value::Json(_, Some(_)), Key::Bool(_) | Key::Int(_) | Key::Double(_) | Key::Null) => {
                Err(EvalError::overload())
            }
            _ => Ok(operand.member(&own)),
        };
    }
    match (own, index) {
        (Key::Int(at), _) if i64::try_from(at).is_ok() => {
            Ok(usize::try_from(at).ok().and_then(|at| operand.element(at)))
        }
        (_, Value::Uint(_) | Value::Double(_)) => {
            let index = functions::shown(index).unwrap_or_default();
            Err(EvalError::new(format!("unsupported index value {index} in list")))
        }
        _ => {
            let found = index.type_name();
            Err(EvalError::new(format!("unsupported index type '{found}' in list")))
        }
    }
}

/// The key that an index is.
///
/// # Errors
/// It is of a type that no index has.
pub(crate) fn qualifier(index: &Value<'_>) -> Result<Key, EvalError> {
    let key = match index {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Text(_) => index.key(),
        _ => None,
    };
    key.ok_or_else(|| EvalError::new(format!("invalid qualifier type: {}", index.go_type())))
}

/// How much there is to look at in a value, up to a limit.
fn weight(value: &Value<'_>, limit: u64) -> u64 {
    let mut total: u64 = 0;
    let mut open = vec![value.clone()];
    while let Some(value) = open.pop() {
        total = total.saturating_add(value.size()).saturating_add(1);
        if total > limit.saturating_mul(10) {
            return total;
        }
        open.extend(value.elements());
        let keys = value.keys().unwrap_or_default();
        open.extend(keys.iter().filter_map(|key| value.member(&key.key()?)));
    }
    total
}
