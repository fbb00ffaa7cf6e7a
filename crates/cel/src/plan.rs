//! What is found out of an expression before it is ever evaluated: constants are converted, patterns read and indices judged once. Those that
//! would always fail keep the expression from being used at all, even where they would never be asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Expr, Node};
use crate::eval::{EvalError, Evaluation, of_literal, qualifier};
use crate::functions;
use crate::value::Value;

type Constant = Option<Value<'static>>;

/// Why an expression cannot be used, if anything in it always fails.
pub(crate) fn unusable(expr: &Expr) -> Option<String> {
    constant(expr).err().map(|why| why.to_string())
}

/// The value of a part of an expression that is always the same.
fn constant(expr: &Expr) -> Result<Constant, EvalError> {
    match &expr.node {
        Node::Literal(literal) => Ok(Some(of_literal(literal))),
        Node::Ident(_) => Ok(None),
        Node::Struct { fields, .. } => {
            let values = fields.iter().map(|field| &field.value);
            values
                .map(constant)
                .try_for_each(|value| value.map(drop))
                .map(|()| None)
        }
        Node::Select { operand, .. } | Node::Has { operand, .. } => constant(operand).map(|_| None),
        Node::Logic { args, .. } => args.iter().try_for_each(|arg| constant(arg).map(drop)).map(|()| None),
        Node::List(elements) => {
            let mut all = Some(Vec::with_capacity(elements.len()));
            for (optional, element) in elements {
                match constant(element)?.filter(|_| !optional) {
                    Some(element) => all.iter_mut().for_each(|all| all.push(element.clone())),
                    None => all = None,
                }
            }
            Ok(all.map(|all| Value::List(Arc::new(all))))
        }
        Node::Map(entries) => {
            let mut all = Some(BTreeMap::new());
            for (optional, key, value) in entries {
                let key = constant(key)?.and_then(|key| key.key());
                match key.zip(constant(value)?).filter(|_| !optional) {
                    Some((key, value)) => all.iter_mut().for_each(|all| {
                        all.insert(key.clone(), value.clone());
                    }),
                    None => all = None,
                }
            }
            Ok(all.map(|all| Value::Map(Arc::new(all))))
        }
        Node::Fold(fold) => {
            let parts = [&fold.range].into_iter().chain(&fold.filter).chain([&fold.body]);
            parts.map(constant).try_for_each(|part| part.map(drop)).map(|()| None)
        }
        Node::Call { name, target, args } => {
            let target = target.iter().map(|target| &**target);
            let args: Vec<Constant> = target.chain(args).map(constant).collect::<Result<_, _>>()?;
            called(name, args)
        }
    }
}

fn called(name: &str, args: Vec<Constant>) -> Result<Constant, EvalError> {
    match (name, args.as_slice()) {
        (
            "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint",
            [Some(value)],
        ) => {
            let mut evaluation = Evaluation {
                spent: 0,
                limit: u64::MAX,
                authorizer: None,
            };
            functions::call(&mut evaluation, name, false, std::slice::from_ref(value)).map(Some)
        }
        ("_[_]" | "_[?_]", [_, Some(index)]) => qualifier(index).map(|_| None),
        ("matches" | "find" | "findAll", [_, Some(Value::Text(pattern)), ..]) => match functions::pattern(pattern) {
            Ok(_) => Ok(None),
            Err(why) => Err(EvalError::new(why.to_string())),
        },
        _ => Ok(None),
    }
}
