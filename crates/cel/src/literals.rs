//! Lists and maps that an expression writes down. All their elements are of one type, but for what is formatted.

use crate::ast::{Expr, Node};
use crate::check::Types;
use crate::errors::Finding;
use crate::types::{Bindings, Type};

/// The first element of each literal that is of another type than those before it.
pub(crate) fn mixed(expr: &Expr, types: &Types) -> Vec<Finding> {
    let mut findings = Vec::new();
    visit(expr, types, &mut findings);
    findings
}

fn visit(expr: &Expr, types: &Types, findings: &mut Vec<Finding>) {
    let mut inner = |expr: &Expr| visit(expr, types, findings);
    match &expr.node {
        Node::Literal(_) | Node::Ident(_) => {}
        Node::Struct { fields, .. } => fields.iter().for_each(|field| inner(&field.value)),
        Node::Select { operand, .. } | Node::Has { operand, .. } => inner(operand),
        // whatever stands in what is formatted
        Node::Call { name, .. } if name == "format" => {}
        Node::Call { target, args, .. } => target.iter().map(|target| &**target).chain(args).for_each(inner),
        Node::Logic { args, .. } => args.iter().for_each(inner),
        Node::List(elements) => {
            findings.extend(one_type(
                elements.iter().map(|(optional, element)| (*optional, element)),
                types,
            ));
            elements.iter().for_each(|(_, element)| visit(element, types, findings));
        }
        Node::Map(entries) => {
            let keys = one_type(entries.iter().map(|(_, key, _)| (false, key)), types);
            let values = one_type(entries.iter().map(|(optional, _, value)| (*optional, value)), types);
            findings.extend(match (keys, values) {
                (Some(key), Some(value)) => Some(if key.at < value.at { key } else { value }),
                (key, value) => key.or(value),
            });
            for (_, key, value) in entries {
                visit(key, types, findings);
                visit(value, types, findings);
            }
        }
        Node::Fold(fold) => {
            inner(&fold.range);
            fold.filter.iter().for_each(&mut inner);
            inner(&fold.body);
        }
    }
}

fn one_type<'a>(elements: impl Iterator<Item = (bool, &'a Expr)>, types: &Types) -> Option<Finding> {
    let mut first: Option<Type> = None;
    for (optional, element) in elements {
        let found = match (optional, types.get(element)) {
            (true, Type::Optional(inner)) => *inner,
            (_, found) => found,
        };
        match &first {
            // what is open takes the type of the others
            None if is_open(element) => {}
            None => first = Some(found),
            Some(first) if first.is(&found) => {}
            Some(first) if is_open(element) && Bindings::default().fits(first, &found) => {}
            Some(first) => {
                let why = format!("expected type '{first}' but found '{found}'");
                return Some(Finding::new(element.at, why));
            }
        }
    }
    None
}

/// Whether a part of the expression has whatever type the place wants: an empty list or map, or a value that is not there.
fn is_open(expr: &Expr) -> bool {
    match &expr.node {
        Node::List(elements) => elements.is_empty() || elements.iter().any(|(_, element)| is_open(element)),
        Node::Map(entries) => {
            entries.is_empty() || entries.iter().any(|(_, key, value)| is_open(key) || is_open(value))
        }
        Node::Call { name, target, args } => {
            name == "none" || target.iter().map(|target| &**target).chain(args).any(is_open)
        }
        _ => false,
    }
}
