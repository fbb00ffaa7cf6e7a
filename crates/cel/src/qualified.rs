//! Variables whose names have dots. In `authorizer.requestResource` the longest name that is a variable's is meant; only what is left of it are
//! fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Node};
use crate::declared::Declared;
use crate::parser::qualified;

/// Puts such variables in the place of the fields that they look like.
pub(crate) fn resolve(expr: &mut Expr, variables: &BTreeMap<String, Arc<Declared>>) {
    if variables.keys().any(|name| name.contains('.')) {
        Resolver {
            variables,
            bound: Vec::new(),
        }
        .visit(expr);
    }
}

struct Resolver<'v> {
    variables: &'v BTreeMap<String, Arc<Declared>>,
    /// Names that macros bind: what begins with one is no variable.
    bound: Vec<String>,
}

impl Resolver<'_> {
    fn visit(&mut self, expr: &mut Expr) {
        if let Node::Select { .. } = &expr.node
            && let Some(name) = qualified(expr)
            && self.variables.contains_key(&name)
            && !name
                .split('.')
                .next()
                .is_some_and(|first| self.bound.iter().any(|bound| bound == first))
        {
            expr.node = Node::Ident(name);
            return;
        }
        match &mut expr.node {
            Node::Literal(_) | Node::Ident(_) => {}
            Node::Struct { fields, .. } => fields.iter_mut().for_each(|field| self.visit(&mut field.value)),
            Node::Select { operand, .. } | Node::Has { operand, .. } => self.visit(operand),
            Node::Call { target, args, .. } => {
                target.iter_mut().for_each(|target| self.visit(target));
                args.iter_mut().for_each(|arg| self.visit(arg));
            }
            Node::Logic { args, .. } => args.iter_mut().for_each(|arg| self.visit(arg)),
            Node::List(elements) => elements.iter_mut().for_each(|(_, element)| self.visit(element)),
            Node::Map(entries) => entries.iter_mut().for_each(|(_, key, value)| {
                self.visit(key);
                self.visit(value);
            }),
            Node::Fold(fold) => {
                self.visit(&mut fold.range);
                let outside = self.bound.len();
                self.bound.extend(fold.names.iter().cloned());
                fold.filter.iter_mut().for_each(|filter| self.visit(filter));
                self.visit(&mut fold.body);
                self.bound.truncate(outside);
            }
        }
    }
}
