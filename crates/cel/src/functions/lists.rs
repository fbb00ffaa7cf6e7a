//! Lists, maps and optional values.

use super::numbers::arithmetic;
use super::{Found, failed};
use crate::eval::{EvalError, Evaluation};
use crate::value::Value;

pub(super) fn lists<'a>(
    evaluation: &mut Evaluation<'_>,
    name: &str,
    member: bool,
    args: &[Value<'a>],
) -> Option<Found<'a>> {
    let [list, rest @ ..] = args else { return None };
    list.list_len()?;
    if !member && !name.starts_with("sets.") {
        return None;
    }
    let weight: u64 = list.elements().map(|one| one.size().div_ceil(10) + 1).sum();
    if let Err(error) = evaluation.pay(weight) {
        return Some(Err(error));
    }
    let place = |at: Option<usize>| Value::Int(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1));
    Some(match (name, rest) {
        ("isSorted", []) => {
            let all: Vec<Value<'a>> = list.elements().collect();
            let sorted = all.windows(2).all(|pair| match pair {
                [a, b] => a.order(b).is_some_and(|order| order.is_le()),
                _ => true,
            });
            Ok(Value::Bool(sorted))
        }
        ("sum", []) => {
            let mut all = list.elements();
            let first = match all.next() {
                None => return Some(Ok(Value::Int(0))),
                Some(first @ (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_))) => first,
                Some(_) => return None,
            };
            all.try_fold(first, |sum, one| {
                arithmetic(evaluation, "_+_", &[sum, one]).unwrap_or_else(|| Err(EvalError::overload()))
            })
        }
        ("min" | "max", []) => {
            let mut all = list.elements();
            let Some(mut found) = all.next() else {
                return Some(failed(format!("{name} called on empty list")));
            };
            for one in all {
                let Some(order) = one.order(&found) else {
                    return Some(Err(EvalError::overload()));
                };
                if (name == "min" && order.is_lt()) || (name == "max" && order.is_gt()) {
                    found = one;
                }
            }
            Ok(found)
        }
        ("indexOf", [wanted]) => Ok(place(list.elements().position(|one| one.same(wanted)))),
        ("lastIndexOf", [wanted]) => {
            let all: Vec<Value<'a>> = list.elements().collect();
            Ok(place(all.iter().rposition(|one| one.same(wanted))))
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [other]) => {
            other.list_len()?;
            if let Err(error) = evaluation.pay(list.size().saturating_mul(other.size())) {
                return Some(Err(error));
            }
            let (one, other): (Vec<_>, Vec<_>) = (list.elements().collect(), other.elements().collect());
            let has = |all: &[Value<'a>], one: &Value<'a>| all.iter().any(|own| own.same(one));
            Ok(Value::Bool(match name {
                "sets.contains" => other.iter().all(|wanted| has(&one, wanted)),
                "sets.intersects" => other.iter().any(|wanted| has(&one, wanted)),
                _ => other.iter().all(|wanted| has(&one, wanted)) && one.iter().all(|wanted| has(&other, wanted)),
            }))
        }
        _ => return None,
    })
}

pub(super) fn optionals<'a>(name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    Some(match (name, args) {
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::Optional(Some(Box::new(value.clone())))),
        ("optional.ofNonZeroValue", [value]) => Ok(Value::Optional(match is_zero(value) {
            true => None,
            false => Some(Box::new(value.clone())),
        })),
        ("hasValue", [Value::Optional(inner)]) => Ok(Value::Bool(inner.is_some())),
        ("value", [Value::Optional(Some(inner))]) => Ok((**inner).clone()),
        ("value", [Value::Optional(None)]) => failed("optional.none() dereference"),
        ("or", [own @ Value::Optional(inner), other @ Value::Optional(_)]) => {
            Ok(if inner.is_some() { own.clone() } else { other.clone() })
        }
        ("orValue", [Value::Optional(inner), other]) => {
            Ok(inner.as_ref().map_or_else(|| other.clone(), |inner| (**inner).clone()))
        }
        _ => return None,
    })
}

pub(super) fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => true,
        Value::Double(value) => *value == 0.0,
        Value::Text(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Json(..) => value.size() == 0,
        Value::Timestamp(time) => time.is_first(),
        _ => false,
    }
}
