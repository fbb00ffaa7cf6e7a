//! Texts that are formatted, where they and their arguments are written down: what would fail is refused before it is evaluated.

use crate::ast::{Expr, Literal, Node};
use crate::check::Types;
use crate::errors::Finding;
use crate::functions::{Piece, pieces, refused, takes};

/// What is wrong with the formatting of an expression, and not with that of its parts.
pub(crate) fn unformattable(expr: &Expr, types: &Types) -> Option<Finding> {
    let Node::Call {
        name,
        target: Some(target),
        args,
    } = &expr.node
    else {
        return None;
    };
    let ("format", Node::Literal(Literal::Text(text)), [list]) = (name.as_str(), &target.node, args.as_slice()) else {
        return None;
    };
    let Node::List(list) = &list.node else {
        return None;
    };
    let mut args = list.iter().map(|(_, arg)| arg);
    let mut wanted = 0_usize;
    for piece in pieces(text) {
        let clause = match piece {
            Piece::Plain(_) => continue,
            Piece::Cut => return Some(Finding::new(expr.at, "unexpected end of string")),
            Piece::Clause(clause) => clause,
        };
        let Some(arg) = args.next() else {
            return Some(Finding::new(expr.at, format!("index {wanted} out of range")));
        };
        wanted += 1;
        let verb = match clause {
            Ok(clause) => clause.verb,
            Err(why) => return Some(Finding::new(expr.at, why)),
        };
        if let Some((at, found)) = unfit(verb, arg, types) {
            return Some(Finding::new(at, refused(verb, &found)));
        }
    }
    (args.next().is_some()).then(|| {
        let given = list.len();
        let why = format!("too many arguments supplied to string.format (expected {wanted}, got {given})");
        Finding::new(expr.at, why)
    })
}

/// The place and the type of what a clause does not take: the argument, or a part of it.
fn unfit(verb: char, arg: &Expr, types: &Types) -> Option<(usize, String)> {
    let found = types.get(arg);
    if !found.is_dyn() && !takes(verb, found.name()) {
        return Some((arg.at, found.name().to_owned()));
    }
    if verb != 's' {
        return None;
    }
    match &arg.node {
        Node::List(elements) => elements.iter().find_map(|(_, element)| unfit(verb, element, types)),
        Node::Map(entries) => entries
            .iter()
            .find_map(|(_, key, value)| unfit(verb, key, types).or_else(|| unfit(verb, value, types))),
        _ => None,
    }
}
