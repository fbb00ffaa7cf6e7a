//! Types of a tree, and what is wrong with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Fold, FoldKind, Init, Literal, Node};
use crate::declared::Declared;
use crate::errors::Finding;
use crate::functions;
use crate::instant::Instant;
use crate::library::{self, Overload};
use crate::literals::mixed;
use crate::made;
use crate::parser::qualified;
use crate::templates::unformattable;
use crate::types::{BOOL, Bindings, INT, STRING, Type};

/// The types of a tree's nodes, as long as the tree stays where it is.
#[derive(Default)]
pub(crate) struct Types(BTreeMap<usize, Type>);

impl Types {
    fn key(expr: &Expr) -> usize {
        std::ptr::from_ref(expr).addr()
    }

    /// The type of a node of the tree; anything for others.
    pub(crate) fn get(&self, expr: &Expr) -> Type {
        self.0.get(&Self::key(expr)).cloned().unwrap_or(Type::Dyn)
    }
}

/// Finds the types of an expression, in which these variables are known, and of its parts.
/// `patches` tells whether it may make objects that change others.
pub(crate) fn check(
    expr: &Expr,
    variables: &BTreeMap<String, Arc<Declared>>,
    patches: bool,
) -> Result<(Type, Types), Vec<Finding>> {
    let mut checker = Checker {
        patches,
        scopes: vec![
            variables
                .iter()
                .map(|(name, declared)| (name.clone(), Type::of(declared)))
                .collect(),
        ],
        findings: Vec::new(),
        literals: Vec::new(),
        types: Types::default(),
    };
    let found = checker.of(expr);
    // what is written down is looked at only in what is right so far
    if checker.findings.is_empty() {
        checker.findings = std::mem::take(&mut checker.literals);
        checker.findings.extend(mixed(expr, &checker.types));
    }
    match checker.findings.is_empty() {
        true => Ok((found, checker.types)),
        false => Err(checker.findings),
    }
}

struct Checker {
    /// Whether there are types of objects that change others, and what goes with them.
    patches: bool,
    scopes: Vec<BTreeMap<String, Type>>,
    findings: Vec<Finding>,
    /// What is wrong with values that are written down.
    literals: Vec<Finding>,
    types: Types,
}

impl Checker {
    fn wrong(&mut self, at: usize, message: String) -> Type {
        self.findings.push(Finding::new(at, message));
        Type::Error
    }

    fn variable(&self, name: &str) -> Option<Type> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).cloned())
    }

    fn of(&mut self, expr: &Expr) -> Type {
        let found = self.found(expr);
        self.types.0.insert(Types::key(expr), found.clone());
        self.literals.extend(unformattable(expr, &self.types));
        found
    }

    fn found(&mut self, expr: &Expr) -> Type {
        match &expr.node {
            Node::Literal(literal) => match literal {
                Literal::Null => Type::Null,
                Literal::Bool(_) => BOOL,
                Literal::Int(_) => INT,
                Literal::Uint(_) => Type::Simple("uint"),
                Literal::Double(_) => Type::Simple("double"),
                Literal::Text(_) => STRING,
                Literal::Bytes(_) => Type::Simple("bytes"),
            },
            Node::Ident(name) => self.ident(expr.at, name),
            Node::Select {
                operand,
                field,
                optional,
            } => {
                let operand = self.of(operand);
                let found = self.select(expr.at, &operand, field);
                match (optional, found) {
                    (false, found) => found,
                    (true, found @ (Type::Optional(_) | Type::Error)) => found,
                    (true, found) => Type::Optional(Box::new(found)),
                }
            }
            Node::Has { operand, field } => {
                let operand = self.of(operand);
                match self.select(expr.at, &operand, field) {
                    Type::Error if !operand.is_dyn() => Type::Error,
                    _ => BOOL,
                }
            }
            Node::Call { name, target, args } => self.call(expr.at, name, target.as_deref(), args),
            Node::Logic { args, .. } => {
                for arg in args {
                    let found = self.of(arg);
                    if !Bindings::default().fits(&BOOL, &found) {
                        self.wrong(arg.at, format!("expected type 'bool' but found '{found}'"));
                    }
                }
                BOOL
            }
            Node::List(elements) => {
                let mut joined: Option<Type> = None;
                for (optional, element) in elements {
                    let found = self.entry(*optional, element);
                    joined = Some(match joined {
                        Some(joined) => joined.join(found),
                        None => found,
                    });
                }
                Type::List(Box::new(joined.unwrap_or(Type::Open)))
            }
            Node::Map(entries) => {
                let mut joined: Option<(Type, Type)> = None;
                for (optional, key, value) in entries {
                    let key = self.of(key);
                    let value = self.entry(*optional, value);
                    joined = Some(match joined {
                        Some((keys, values)) => (keys.join(key), values.join(value)),
                        None => (key, value),
                    });
                }
                let (key, value) = joined.unwrap_or((Type::Open, Type::Open));
                Type::Map(Box::new(key), Box::new(value))
            }
            Node::Struct { name, fields } => self.made(expr.at, name, fields),
            Node::Fold(fold) => self.fold(expr.at, fold),
        }
    }

    /// The type of an object that the expression makes.
    fn made(&mut self, at: usize, name: &str, fields: &[Init]) -> Type {
        if !(self.patches && made::is_known(name)) {
            return match self.variable(name) {
                Some(found) => self.wrong(at, format!("'{}' is not a type", found.runtime_name())),
                None if library::simple(name).is_some() => self.wrong(at, format!("'{name}' is not a message type")),
                None => self.wrong(at, format!("undeclared reference to '{name}' (in container '')")),
            };
        }
        for field in fields {
            let found = self.entry(field.optional, &field.value);
            match made::field(name, &field.name) {
                Some(wanted) if Bindings::default().fits(&wanted, &found) => {}
                Some(wanted) => {
                    let why = format!(
                        "expected type of field '{}' is '{wanted}' but provided type is '{found}'",
                        field.name
                    );
                    self.wrong(field.at, why);
                }
                None => {
                    // it is known, but of no type
                    let why = format!(
                        "expected type of field '{}' is '' but provided type is '{found}'",
                        field.name
                    );
                    self.wrong(field.at, why);
                }
            }
        }
        Type::Made(name.into())
    }

    /// The type of an element, which may be one only if it has a value.
    fn entry(&mut self, optional: bool, expr: &Expr) -> Type {
        match (optional, self.of(expr)) {
            (true, Type::Optional(inner)) => *inner,
            (true, found) if !found.is_dyn() => {
                let why = format!("expected type 'optional_type({found})' but found '{found}'");
                self.wrong(expr.at, why)
            }
            (_, found) => found,
        }
    }

    fn ident(&mut self, at: usize, name: &str) -> Type {
        if let Some(found) = self.variable(name) {
            return found;
        }
        let named = match name {
            "list" => Some(Type::List(Box::new(Type::Dyn))),
            "map" => Some(Type::Map(Box::new(Type::Dyn), Box::new(Type::Dyn))),
            "null_type" => Some(Type::Null),
            "type" => Some(Type::Of(Box::new(Type::Dyn))),
            "dyn" => Some(Type::Dyn),
            "timestamp" | "duration" => None,
            name if self.patches && made::is_known(name) => Some(Type::Made(name.into())),
            name => library::simple(name),
        };
        match named {
            Some(named) => Type::Of(Box::new(named)),
            None => self.wrong(at, format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn select(&mut self, at: usize, operand: &Type, field: &str) -> Type {
        match operand {
            Type::Dyn | Type::Open | Type::Error => operand.clone(),
            Type::Map(_, value) => (**value).clone(),
            Type::Object(declared) => match declared.field(field) {
                Some(field) => Type::of(&field.declared),
                None => self.wrong(at, format!("undefined field '{field}'")),
            },
            Type::Made(name) => match made::field(name, field) {
                Some(found) => found,
                None => self.wrong(at, format!("undefined field '{field}'")),
            },
            Type::Optional(inner) => match self.select(at, inner, field) {
                Type::Error => Type::Error,
                found @ Type::Optional(_) => found,
                found => Type::Optional(Box::new(found)),
            },
            other => self.wrong(at, format!("type '{other}' does not support field selection")),
        }
    }

    fn call(&mut self, at: usize, name: &str, target: Option<&Expr>, args: &[Expr]) -> Type {
        // `optional.of` is a function, not a member of something called optional
        let global = target
            .and_then(qualified)
            .map(|space| format!("{space}.{name}"))
            .filter(|name| library::is_global(name) && (self.patches || name != library::ESCAPE_KEY));
        let (name, target) = match &global {
            Some(name) => (name.as_str(), None),
            None => (name, target),
        };
        let mut types = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            types.push(self.of(target));
        }
        for arg in args {
            types.push(self.of(arg));
        }
        if library::is_comparison(name)
            && let [left, right] = types.as_slice()
        {
            if !library::comparable(left, right) {
                return self.mismatch(at, name, target.is_some(), &types);
            }
            return BOOL;
        }
        let Some(overloads) = library::function(name) else {
            return self.wrong(at, format!("undeclared reference to '{name}' (in container '')"));
        };
        match returned(overloads, target.is_some(), &types) {
            Some(result) => {
                self.literals.extend(self.literal(name, target, args));
                result
            }
            None => self.mismatch(at, name, target.is_some(), &types),
        }
    }

    /// A literal that its function will always refuse.
    fn literal(&self, name: &str, target: Option<&Expr>, args: &[Expr]) -> Option<Finding> {
        let arg = match (name, target, args) {
            ("duration" | "timestamp", None, [arg]) | ("matches", Some(_), [arg]) | ("matches", None, [_, arg]) => arg,
            _ => return None,
        };
        let text = match (&arg.node, name) {
            (Node::Literal(Literal::Text(text)), _) => text,
            // a number makes a time, but no duration
            (Node::Literal(Literal::Int(_)), "duration") => "",
            _ => return None,
        };
        let usable = match name {
            "duration" => functions::duration(text).is_some(),
            "timestamp" => Instant::parse(text).is_ok(),
            _ => functions::pattern(text).is_ok(),
        };
        (!usable).then(|| Finding::new(arg.at, format!("invalid {name} argument")))
    }

    fn mismatch(&mut self, at: usize, name: &str, member: bool, types: &[Type]) -> Type {
        let mut shown = types.iter().map(Type::to_string);
        let applied = match (member, shown.next()) {
            (true, Some(target)) => format!("{target}.({})", shown.collect::<Vec<_>>().join(", ")),
            (_, first) => format!("({})", first.into_iter().chain(shown).collect::<Vec<_>>().join(", ")),
        };
        self.wrong(
            at,
            format!("found no matching overload for '{name}' applied to '{applied}'"),
        )
    }

    fn fold(&mut self, at: usize, fold: &Fold) -> Type {
        let range = self.of(&fold.range);
        let optional = matches!(fold.kind, FoldKind::OptMap | FoldKind::OptFlatMap);
        let bound = match (&range, optional) {
            (Type::Dyn | Type::Open | Type::Error, _) => [range.clone(), range.clone()],
            (Type::Optional(inner), true) => [(**inner).clone(), Type::Error],
            (Type::List(element), false) if fold.names.len() == 1 => [(**element).clone(), Type::Error],
            (Type::List(element), false) => [INT, (**element).clone()],
            (Type::Map(key, value), false) => [(**key).clone(), (**value).clone()],
            (other, false) => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.wrong(fold.range.at, why);
                [Type::Error, Type::Error]
            }
            (other, true) => {
                let why = format!("found no matching overload for 'hasValue' applied to '{other}.()'");
                self.wrong(at, why);
                [Type::Error, Type::Error]
            }
        };
        self.scopes.push(fold.names.iter().cloned().zip(bound).collect());
        let filter = fold.filter.as_ref().map(|filter| (filter.at, self.of(filter)));
        let body = self.of(&fold.body);
        self.scopes.pop();
        let boolean = |found: &Type| Bindings::default().fits(&BOOL, found);
        let result = match fold.kind {
            FoldKind::All | FoldKind::Exists => {
                if !boolean(&body) {
                    self.wrong(fold.body.at, format!("expected type 'bool' but found '{body}'"));
                }
                BOOL
            }
            FoldKind::ExistsOne => {
                if !boolean(&body) {
                    self.mismatch(at, "_?_:_", false, &[body, INT, INT]);
                }
                BOOL
            }
            FoldKind::Filter => {
                let element = match range {
                    Type::List(element) => *element,
                    Type::Map(key, _) => *key,
                    other => other,
                };
                let list = Type::List(Box::new(element));
                if !boolean(&body) {
                    self.mismatch(at, "_?_:_", false, &[body, list.clone(), list.clone()]);
                }
                list
            }
            FoldKind::Map => Type::List(Box::new(body)),
            FoldKind::SortBy => {
                let types = [range, Type::List(Box::new(body))];
                match library::function(SORT_BY).and_then(|overloads| returned(overloads, true, &types)) {
                    Some(sorted) => sorted,
                    None => self.mismatch(at, SORT_BY, true, &types),
                }
            }
            FoldKind::TransformMap => {
                let key = match range {
                    Type::Map(key, _) => *key,
                    Type::List(_) => INT,
                    other => other,
                };
                Type::Map(Box::new(key), Box::new(body))
            }
            FoldKind::TransformMapEntry => match body {
                body @ (Type::Map(..) | Type::Dyn | Type::Open | Type::Error) => body,
                body => {
                    let open = Type::Map(Box::new(Type::Dyn), Box::new(Type::Dyn));
                    self.mismatch(at, "cel.@mapInsert", false, &[open, body])
                }
            },
            FoldKind::OptMap => Type::Optional(Box::new(body)),
            FoldKind::OptFlatMap => match body {
                body @ (Type::Optional(_) | Type::Dyn | Type::Open | Type::Error) => body,
                body => self.mismatch(
                    at,
                    "_?_:_",
                    false,
                    &[BOOL, body.clone(), Type::Optional(Box::new(Type::Dyn))],
                ),
            },
        };
        if let Some((_, filter)) = filter.filter(|(_, found)| !boolean(found)) {
            return self.mismatch(at, "_?_:_", false, &[filter, result.clone(), result]);
        }
        result
    }
}

/// What a macro calls that sorts by keys.
const SORT_BY: &str = "@sortByAssociatedKeys";

/// The type of what a function answers; none if it cannot be called with these types.
fn returned(overloads: &[Overload], member: bool, types: &[Type]) -> Option<Type> {
    let mut result: Option<Type> = None;
    for overload in overloads {
        if overload.member != member || overload.params.len() != types.len() {
            continue;
        }
        let mut bindings = Bindings::default();
        let mut pairs = overload.params.iter().zip(types);
        if pairs.all(|(formal, actual)| bindings.fits(formal, actual)) {
            let found = bindings.filled(&overload.result);
            result = Some(match result {
                Some(known) if known.is(&found) => known,
                Some(_) => Type::Dyn,
                None => found,
            });
        }
    }
    result
}
