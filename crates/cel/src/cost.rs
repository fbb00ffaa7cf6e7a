//! What an expression may cost, found before there are values: cel-go's estimator with Kubernetes' sizes. Which definitions are accepted hangs
//! on its numbers, so its oddities are kept: sizes are looked up by the *path* that led to a value, and a path that begins at the result of a
//! call is looked up in the root. What single functions cost is in [`calls`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Fold, FoldKind, Literal, Node};
use crate::check::Types;
use crate::declared::{Declared, Shape};
use crate::parser::qualified;
use crate::types::{INT, Type};

mod calls;
mod range;

use range::Range;

const KEYS: &str = "@keys";
const VALUES: &str = "@values";
const ITEMS: &str = "@items";
const INDICES: &str = "@indices";

/// The most that an expression can cost. `types` is what the checker found.
pub(crate) fn estimate(expr: &Expr, variables: &BTreeMap<String, Arc<Declared>>, types: &Types) -> u64 {
    let mut estimator = Estimator {
        variables,
        types,
        scopes: Vec::new(),
    };
    estimator.of(expr).cost.max
}

struct Estimator<'a> {
    variables: &'a BTreeMap<String, Arc<Declared>>,
    types: &'a Types,
    /// Names that macros bind, the innermost last.
    scopes: Vec<(String, Local)>,
}

/// What is known of a name that a macro binds.
#[derive(Clone, Default)]
struct Local {
    path: Vec<String>,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// How large the keys and values of a list or map are.
#[derive(Clone, Copy)]
struct Entries {
    list: bool,
    key: Range,
    value: Range,
}

impl Entries {
    fn or(this: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (this, other) = (this?, other?);
        Some(Self {
            list: this.list,
            key: this.key.or(other.key),
            value: this.value.or(other.value),
        })
    }
}

/// What is known of a node.
#[derive(Clone)]
struct Estimate {
    cost: Range,
    /// How large its value is, in characters, bytes or elements.
    size: Option<Range>,
    /// How its value is reached from a variable; empty where it is computed.
    path: Vec<String>,
    entries: Option<Entries>,
    ty: Type,
}

impl Estimate {
    fn size_or_unknown(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

/// Sizes that follow from the type alone.
fn size_of_type(ty: &Type) -> Option<Range> {
    match ty {
        Type::Simple("string" | "bytes") => None,
        Type::Simple(_) => Some(Range::exactly(1)),
        Type::Optional(inner) => size_of_type(inner),
        _ => None,
    }
}

impl Estimator<'_> {
    fn type_of(&self, expr: &Expr) -> Type {
        self.types.get(expr)
    }

    /// The declared size at the end of a path.
    fn size_at(&self, path: &[String]) -> Option<Range> {
        let (first, steps) = path.split_first()?;
        // paths that begin at the result of a call are looked up in the root, too
        let root = self.variables.get(first).or_else(|| self.variables.get("self"))?;
        let mut at = match &root.shape {
            Shape::Optional(inner) => inner,
            _ => root,
        };
        let text = Arc::new(Declared::new(Shape::Text).at_most(Some(0)));
        for step in steps {
            at = match (step.as_str(), &at.shape) {
                (ITEMS | VALUES, Shape::List { items: values, .. } | Shape::Map(values) | Shape::Named(values)) => {
                    values
                }
                // keys have no bound, which counts as none at all
                (KEYS, Shape::Map(_) | Shape::Named(_)) => &text,
                (name, Shape::Object { fields, .. }) => &fields.get(name)?.declared,
                _ => return None,
            };
        }
        Some(Range::up_to(at.max_elements))
    }

    /// A node that costs this, with what follows from its path and its type.
    fn node(&self, expr: &Expr, cost: Range, path: Vec<String>) -> Estimate {
        let ty = self.type_of(expr);
        let size = self.size_at(&path).or_else(|| size_of_type(&ty));
        Estimate {
            cost,
            size,
            path,
            entries: None,
            ty,
        }
    }

    fn of(&mut self, expr: &Expr) -> Estimate {
        match &expr.node {
            Node::Literal(literal) => {
                let size = match literal {
                    Literal::Text(text) => text.chars().count() as u64,
                    Literal::Bytes(bytes) => bytes.len() as u64,
                    _ => 1,
                };
                Estimate {
                    size: Some(Range::exactly(size)),
                    ..self.node(expr, Range::default(), Vec::new())
                }
            }
            Node::Ident(name) => {
                let bound = self.scopes.iter().rev().find(|(own, _)| own == name);
                let local = bound.map(|(_, local)| local.clone());
                let path = local
                    .as_ref()
                    .map_or_else(|| vec![name.clone()], |local| local.path.clone());
                let mut found = self.node(expr, Range::exactly(1), path);
                if let Some(local) = local {
                    found.size = found.size.or(local.size);
                    found.entries = local.entries;
                }
                found
            }
            Node::Select {
                operand,
                field,
                optional,
            } => {
                let operand = self.of(operand);
                if *optional {
                    // a call of two arguments
                    return self.node(expr, operand.cost.plus(Range::exactly(1)), Vec::new());
                }
                let own = matches!(operand.ty, Type::Map(..) | Type::Object(_));
                let mut path = operand.path;
                path.push(field.clone());
                self.node(expr, operand.cost.plus(Range::exactly(u64::from(own))), path)
            }
            Node::Has { operand, .. } => {
                // whether the field is there, and not how large it is
                let operand = self.of(operand);
                self.node(expr, operand.cost, Vec::new())
            }
            Node::Logic { args, .. } => {
                let costs: Vec<Range> = args.iter().map(|arg| self.of(arg).cost).collect();
                let cost = Range {
                    // the rest need not be looked at
                    min: costs.first().map_or(0, |first| first.min),
                    max: costs.iter().fold(0, |sum, cost| sum.saturating_add(cost.max)),
                };
                self.node(expr, cost, Vec::new())
            }
            Node::List(elements) => {
                let elements: Vec<Estimate> = elements.iter().map(|(_, element)| self.of(element)).collect();
                let costs = elements.iter().map(|element| element.cost);
                let cost = costs.fold(Range::exactly(10), Range::plus);
                Estimate {
                    size: Some(Range::exactly(elements.len() as u64)),
                    entries: Some(Entries {
                        list: true,
                        key: Range::exactly(1),
                        value: Range::any_of(elements.iter().map(Estimate::size_or_unknown)),
                    }),
                    ..self.node(expr, cost, Vec::new())
                }
            }
            Node::Map(entries) => {
                let entries = entries.iter().map(|(_, key, value)| (self.of(key), self.of(value)));
                let entries: Vec<(Estimate, Estimate)> = entries.collect();
                let costs = entries.iter().map(|(key, value)| key.cost.plus(value.cost));
                let cost = costs.fold(Range::exactly(30), Range::plus);
                Estimate {
                    size: Some(Range::exactly(entries.len() as u64)),
                    entries: Some(Entries {
                        list: false,
                        key: Range::any_of(entries.iter().map(|(key, _)| key.size_or_unknown())),
                        value: Range::any_of(entries.iter().map(|(_, value)| value.size_or_unknown())),
                    }),
                    ..self.node(expr, cost, Vec::new())
                }
            }
            Node::Struct { fields, .. } => {
                let costs = fields.iter().map(|field| self.of(&field.value).cost);
                let cost = costs.fold(Range::exactly(40), Range::plus);
                self.node(expr, cost, Vec::new())
            }
            Node::Call { name, target, args } => self.call(expr, name, target.as_deref(), args),
            Node::Fold(fold) => match fold.kind {
                FoldKind::OptMap | FoldKind::OptFlatMap => self.optional(expr, fold),
                FoldKind::SortBy => self.sorted(expr, fold),
                _ => self.fold(expr, fold),
            },
        }
    }

    fn call(&mut self, expr: &Expr, name: &str, target: Option<&Expr>, args: &[Expr]) -> Estimate {
        // `optional.of` is a function, not a member of something called optional
        let global = target
            .and_then(qualified)
            .map(|space| format!("{space}.{name}"))
            .filter(|name| crate::library::is_global(name));
        let (name, target) = match &global {
            Some(name) => (name.as_str(), None),
            None => (name, target),
        };
        let args_found: Vec<Estimate> = args.iter().map(|arg| self.of(arg)).collect();
        let target = target.map(|target| self.of(target));
        let of_args = args_found
            .iter()
            .map(|arg| arg.cost)
            .fold(Range::default(), Range::plus);
        if let ("dyn", None, [only]) = (name, &target, args_found.as_slice()) {
            return Estimate {
                size: only.size,
                entries: only.entries,
                ..self.node(expr, of_args.plus(Range::exactly(1)), Vec::new())
            };
        }
        let called = self.called(name, target.as_ref(), &args_found, args);
        let of_target = target.as_ref().map_or(Range::default(), |target| target.cost);
        let cost = match called.instead_of_args {
            true => called.cost.plus(of_target),
            false => called.cost.plus(of_args).plus(of_target),
        };
        let mut path = Vec::new();
        let mut size = called.size;
        if let ("_[_]", [container, _]) = (name, args_found.as_slice()) {
            path.clone_from(&container.path);
            path.push(
                if matches!(container.ty, Type::List(_)) {
                    ITEMS
                } else {
                    VALUES
                }
                .to_owned(),
            );
            size = container.entries.map(|entries| entries.value);
        }
        let found = self.node(expr, cost, path);
        Estimate {
            size: size.or(found.size),
            entries: called.entries,
            ..found
        }
    }

    /// What a macro's names stand for while it goes through `range`.
    fn bound(&self, fold: &Fold, range: &Estimate) -> Vec<(String, Local)> {
        let list = match range.entries {
            Some(entries) => entries.list,
            None => matches!(range.ty, Type::List(_)),
        };
        let keys = range.entries.map(|entries| entries.key);
        let values = range.entries.map(|entries| entries.value);
        let local = |step: &str, size| {
            let mut path = range.path.clone();
            path.push(step.to_owned());
            Local {
                path,
                size,
                entries: None,
            }
        };
        let bound = match (list, fold.names.len()) {
            (true, 1) => vec![local(ITEMS, values)],
            (false, 1) => vec![local(KEYS, keys)],
            (true, _) => vec![local(INDICES, keys), local(VALUES, values)],
            (false, _) => vec![local(KEYS, keys), local(VALUES, values)],
        };
        let bound = match (list, bound.as_slice()) {
            (true, [key, _]) => vec![key.clone(), local(ITEMS, values)],
            _ => bound,
        };
        fold.names.iter().cloned().zip(bound).collect()
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Estimate {
        let range = self.of(&fold.range);
        let outside = self.scopes.len();
        let bound = self.bound(fold, &range);
        self.scopes.extend(bound);
        let body = self.of(&fold.body);
        let filter = fold.filter.as_ref().map(|filter| self.of(filter).cost);
        // filters name the element once more
        let element = fold.names.first().and_then(|name| {
            let (_, local) = self.scopes.iter().rev().find(|(own, _)| own == name)?;
            self.size_at(&local.path).or(local.size)
        });
        self.scopes.truncate(outside);
        // what the macros are made of: the condition and the step of each round, and what they begin and end with
        let body_cost = body.cost;
        let kept = |step: Range, filter: Range| filter.plus(step.or(Range::exactly(1)));
        let (each, once) = match fold.kind {
            FoldKind::All | FoldKind::Exists => {
                let condition = if matches!(fold.kind, FoldKind::All) { 2 } else { 3 };
                let step = Range {
                    min: 1,
                    max: body_cost.max.saturating_add(1),
                };
                (step.plus(Range::exactly(condition)), 1)
            }
            FoldKind::ExistsOne => (body_cost.plus(Range { min: 1, max: 2 }), 2),
            FoldKind::Filter => (kept(Range::exactly(13), body_cost), 11),
            FoldKind::Map | FoldKind::SortBy => {
                let step = body_cost.plus(Range::exactly(12));
                (filter.map_or(step, |filter| kept(step, filter)), 11)
            }
            FoldKind::TransformMap | FoldKind::TransformMapEntry => {
                let own = if matches!(fold.kind, FoldKind::TransformMap) {
                    3
                } else {
                    2
                };
                let step = body_cost.plus(Range::exactly(own));
                (filter.map_or(step, |filter| kept(step, filter)), 31)
            }
            FoldKind::OptMap | FoldKind::OptFlatMap => (body_cost, 0),
        };
        let count = range.size_or_unknown();
        let cost = range.cost.plus(Range::exactly(once)).plus(count.times(each));
        let found = self.node(expr, cost, Vec::new());
        let one = |value: Option<Range>| {
            Some(Entries {
                list: true,
                key: Range::exactly(1),
                value: value.unwrap_or(Range::UNKNOWN).or(Range::default()),
            })
        };
        let (size, entries) = match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => (Range::exactly(1), None),
            FoldKind::Filter => (count, one(element)),
            FoldKind::Map => (count, one(body.size)),
            _ => (count, None),
        };
        Estimate {
            size: Some(size),
            entries,
            ..found
        }
    }

    /// `sortBy`: the list is bound to a name, its keys are made from it, and both are compared.
    fn sorted(&mut self, expr: &Expr, fold: &Fold) -> Estimate {
        let keys = self.fold(expr, fold);
        let key = Type::List(Box::new(self.type_of(&fold.body)));
        let sorted = calls::sorted(&key, keys.size_or_unknown());
        // the empty list of what binds a name, and the name twice
        let cost = keys.cost.plus(Range::exactly(12)).plus(sorted.cost);
        Estimate {
            size: sorted.size,
            ..self.node(expr, cost, Vec::new())
        }
    }

    /// `optMap` and `optFlatMap`: the target is looked at twice, and the body once.
    fn optional(&mut self, expr: &Expr, fold: &Fold) -> Estimate {
        let target = self.of(&fold.range);
        let value = match &target.ty {
            Type::Optional(inner) => size_of_type(inner),
            _ => None,
        };
        let looked_at = target.cost.plus(Range::exactly(1));
        if let Some(name) = fold.names.first() {
            let local = Local {
                size: value,
                ..Local::default()
            };
            self.scopes.push((name.clone(), local));
        }
        let body = self.of(&fold.body);
        self.scopes.pop();
        let wrapped = u64::from(matches!(fold.kind, FoldKind::OptMap));
        let there = looked_at.plus(body.cost).plus(Range::exactly(10 + wrapped));
        let cost = looked_at.plus(there.or(Range::exactly(1)));
        self.node(expr, cost, Vec::new())
    }
}

/// The type of sizes and indices, which calls of numbers have.
fn is_number(ty: &Type) -> bool {
    ty.is(&INT) || matches!(ty, Type::Simple("uint" | "double" | "timestamp" | "duration" | "bool"))
}
