//! What an expression may cost at most, found before there are values: as cel-go's estimator with Kubernetes' sizes has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Fold, FoldKind, Literal, Node};
use crate::declared::{Declared, Shape};

/// A node's cost, the size of its value, and what is declared of it.
#[derive(Clone, Default)]
struct Estimate {
    cost: u64,
    size: u64,
    declared: Option<Arc<Declared>>,
}

const UNKNOWN: u64 = u64::MAX;

fn scaled(size: u64, factor: f64) -> u64 {
    let scaled = (size as f64 * factor).ceil();
    if scaled >= u64::MAX as f64 {
        u64::MAX
    } else {
        scaled as u64
    }
}

/// The most that an expression can cost.
pub(crate) fn estimate(expr: &Expr, variables: &BTreeMap<String, Arc<Declared>>) -> u64 {
    let mut estimator = Estimator {
        scopes: vec![variables.clone()],
    };
    estimator.of(expr).cost
}

struct Estimator {
    scopes: Vec<BTreeMap<String, Arc<Declared>>>,
}

fn known(cost: u64, declared: Option<Arc<Declared>>) -> Estimate {
    let size = declared.as_ref().map_or(UNKNOWN, |declared| match declared.shape {
        // objects have no elements, as Kubernetes counts: comparing two costs nothing more
        Shape::Text | Shape::Bytes | Shape::List { .. } | Shape::Map(_) | Shape::Object { .. } => declared.max_elements,
        Shape::Dyn if declared.max_elements > 0 => declared.max_elements,
        Shape::Dyn | Shape::Optional(_) | Shape::Authorizer => UNKNOWN,
        _ => 1,
    });
    Estimate { cost, size, declared }
}

fn items(declared: &Option<Arc<Declared>>) -> Option<Arc<Declared>> {
    match &declared.as_ref()?.shape {
        Shape::List { items, .. } => Some(Arc::clone(items)),
        Shape::Map(values) => Some(Arc::clone(values)),
        Shape::Optional(inner) => Some(Arc::clone(inner)),
        _ => None,
    }
}

impl Estimator {
    fn of(&mut self, expr: &Expr) -> Estimate {
        match &expr.node {
            Node::Literal(literal) => Estimate {
                size: match literal {
                    Literal::Text(text) => text.len() as u64,
                    Literal::Bytes(bytes) => bytes.len() as u64,
                    _ => 1,
                },
                ..Estimate::default()
            },
            Node::Ident(name) => {
                let declared = self.scopes.iter().rev().find_map(|scope| scope.get(name).cloned());
                known(1, declared)
            }
            Node::Select { operand, field, .. } => {
                let operand = self.of(operand);
                let of_field = |declared: &Arc<Declared>| match &declared.shape {
                    Shape::Map(values) => Some(Arc::clone(values)),
                    Shape::Optional(inner) => inner.field(field).map(|field| Arc::clone(&field.declared)),
                    _ => declared.field(field).map(|field| Arc::clone(&field.declared)),
                };
                let declared = operand.declared.as_ref().and_then(of_field);
                known(operand.cost.saturating_add(1), declared)
            }
            Node::Has { operand, .. } => Estimate {
                size: 1,
                ..self.cost_only(operand)
            },
            Node::Logic { args, .. } => {
                let costs = args.iter().map(|arg| self.of(arg).cost);
                Estimate {
                    cost: costs.fold(0, u64::saturating_add),
                    size: 1,
                    declared: None,
                }
            }
            Node::List(elements) => {
                let costs = elements.iter().map(|(_, element)| self.of(element).cost);
                Estimate {
                    cost: costs.fold(10, u64::saturating_add),
                    size: elements.len() as u64,
                    declared: None,
                }
            }
            Node::Map(entries) => {
                let costs = entries
                    .iter()
                    .map(|(_, key, value)| self.of(key).cost.saturating_add(self.of(value).cost));
                Estimate {
                    cost: costs.fold(30, u64::saturating_add),
                    size: entries.len() as u64,
                    declared: None,
                }
            }
            Node::Struct(_) => Estimate {
                cost: 40,
                size: UNKNOWN,
                declared: None,
            },
            Node::Call { name, target, args } => self.call(name, target.as_deref(), args),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn cost_only(&mut self, expr: &Expr) -> Estimate {
        Estimate {
            declared: None,
            ..self.of(expr)
        }
    }

    fn call(&mut self, name: &str, target: Option<&Expr>, args: &[Expr]) -> Estimate {
        let all: Vec<Estimate> = target.into_iter().chain(args).map(|arg| self.of(arg)).collect();
        let sum = all.iter().map(|arg| arg.cost).fold(0, u64::saturating_add);
        let size = |at: usize| all.get(at).map_or(UNKNOWN, |arg| arg.size);
        let of = |cost: u64, size: u64| Estimate {
            cost: cost.saturating_add(sum),
            size,
            declared: None,
        };
        match (name, all.len()) {
            ("_?_:_", 3) => {
                let cost = |at: usize| all.get(at).map_or(0, |arg| arg.cost);
                Estimate {
                    cost: cost(0).saturating_add(cost(1).max(cost(2))),
                    size: size(1).max(size(2)),
                    declared: None,
                }
            }
            ("_[_]" | "_[?_]", 2) => {
                let declared = all.first().and_then(|operand| items(&operand.declared));
                known(sum.saturating_add(1), declared)
            }
            ("orValue" | "value", _) => {
                let declared = all.first().and_then(|operand| items(&operand.declared));
                known(sum.saturating_add(1), declared)
            }
            ("_+_", 2) => {
                let result = size(0).saturating_add(size(1));
                let is_list = |arg: &Estimate| {
                    let shape = arg.declared.as_ref().map(|declared| &declared.shape);
                    matches!(shape, Some(Shape::List { .. }))
                };
                let is_list =
                    all.iter().any(is_list) || args.iter().any(|arg| matches!(arg.node, Node::List(_) | Node::Fold(_)));
                // numbers have size one, so that adding them costs one as well
                of(if is_list { 1 } else { scaled(result, 0.1) }, result)
            }
            ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_", 2) => of(scaled(size(0).min(size(1)), 0.1), 1),
            ("@in", 2) => of(size(1), 1),
            ("startsWith" | "endsWith", 2) => of(scaled(size(1), 0.1), 1),
            ("contains", 2) => of(scaled(size(0), 0.1).saturating_mul(scaled(size(1), 0.1)), 1),
            ("matches", 2) => {
                let text = scaled(size(0).saturating_add(1), 0.1);
                of(text.saturating_mul(scaled(size(1), 0.25)), 1)
            }
            ("find" | "findAll", 2..) => {
                let text = scaled(size(0).saturating_add(1), 0.1);
                of(text.saturating_mul(scaled(size(1), 0.25)), size(0))
            }
            ("check", 2) => of(350_000, 1),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => {
                let element = all.first().and_then(|list| items(&list.declared));
                match element.map(|element| known(0, Some(element)).size) {
                    Some(element) => of(size(0).saturating_mul(scaled(element, 0.1).saturating_add(1)), 1),
                    None => of(scaled(size(0), 0.1), 1),
                }
            }
            ("url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "string" | "bytes", _) => {
                of(scaled(size(0), 0.1), size(0))
            }
            ("replace", 3..) => {
                let more = match size(1) {
                    0 => size(0)
                        .saturating_add(1)
                        .saturating_mul(size(2))
                        .saturating_add(size(0)),
                    _ if size(2) <= 1 => size(0),
                    _ => size(0).saturating_mul(size(2)),
                };
                of(scaled(size(0), 0.2), more)
            }
            ("split", _) => of(scaled(size(0), 0.2), size(0)),
            ("join", _) => {
                let element = all.first().and_then(|list| items(&list.declared));
                let element = element.map_or(UNKNOWN, |element| known(0, Some(element)).size);
                let separator = if all.len() > 1 { size(1) } else { 0 };
                let total = size(0).saturating_mul(element.saturating_add(separator));
                of(scaled(total, 0.1), total)
            }
            ("format", _) => of(scaled(size(0), 0.1), UNKNOWN),
            (
                "isURL" | "quantity" | "isQuantity" | "ip" | "isIP" | "cidr" | "isCIDR" | "semver" | "isSemver"
                | "timestamp" | "duration",
                _,
            ) => of(scaled(size(0), 0.1), 1),
            ("validate", 2) => of(scaled(size(1).saturating_add(1), 0.1).saturating_mul(32), 1),
            _ => of(1, 1),
        }
    }

    fn fold(&mut self, fold: &Fold) -> Estimate {
        let range = self.of(&fold.range);
        let element = items(&range.declared);
        let is_map = matches!(
            range.declared.as_ref().map(|declared| &declared.shape),
            Some(Shape::Map(_))
        );
        let key = Arc::new(Declared::new(Shape::Text).at_most(Some(UNKNOWN)));
        let bound: [Option<Arc<Declared>>; 2] = match (is_map, fold.names.len()) {
            (true, _) => [Some(key), element],
            (false, 2) => [Some(Arc::new(Declared::new(Shape::Int))), element],
            (false, _) => [element, None],
        };
        let names = fold.names.iter().cloned().zip(bound);
        let scope = names.filter_map(|(name, declared)| Some((name, declared?)));
        self.scopes.push(scope.collect());
        let body = self.of(&fold.body);
        let filter = fold.filter.as_ref().map_or(0, |filter| self.of(filter).cost);
        self.scopes.pop();
        // what the loop itself does beside the body, and what it begins and ends with
        let (each, once) = match fold.kind {
            FoldKind::All => (3, 1),
            FoldKind::Exists => (4, 1),
            FoldKind::ExistsOne => (2, 2),
            FoldKind::Filter => (13, 11),
            FoldKind::Map => (12, 11),
            FoldKind::TransformMap | FoldKind::TransformMapEntry => (12, 31),
            FoldKind::OptMap | FoldKind::OptFlatMap => (3, 0),
        };
        let step = body.cost.saturating_add(filter).saturating_add(each);
        let count = match fold.kind {
            FoldKind::OptMap | FoldKind::OptFlatMap => 1,
            _ => range.size,
        };
        let size = match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => 1,
            FoldKind::OptMap | FoldKind::OptFlatMap => body.size,
            _ => range.size,
        };
        let declared = match fold.kind {
            FoldKind::Filter => range.declared,
            _ => None,
        };
        Estimate {
            cost: range
                .cost
                .saturating_add(once)
                .saturating_add(count.saturating_mul(step)),
            size,
            declared,
        }
    }
}
