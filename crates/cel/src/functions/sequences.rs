//! Lists made of lists: parts of them, in another order, without what stands in them twice.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Found, failed, shown};
use crate::eval::{EvalError, Evaluation};
use crate::value::Value;

/// What a call costs that makes a list.
const MAKING: u64 = 11;

pub(super) fn sequences<'a>(
    evaluation: &mut Evaluation<'_>,
    name: &str,
    member: bool,
    args: &[Value<'a>],
) -> Option<Found<'a>> {
    let (list, rest) = match (name, args) {
        ("lists.range", [Value::Int(end)]) => return Some(counted(evaluation, *end)),
        ("optional.unwrap", [list]) if is_of_optionals(list) => return Some(present(list)),
        (_, [list, rest @ ..]) if member && list.list_len().is_some() => (list, rest),
        _ => return None,
    };
    let size = list.size();
    Some(match (name, rest) {
        ("first", []) => Ok(Value::Optional(list.element(0).map(Box::new))),
        ("last", []) => Ok(Value::Optional(list.elements().last().map(Box::new))),
        ("unwrapOpt", []) if is_of_optionals(list) => present(list),
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(evaluation, list, *from, *to),
        ("flatten", []) => flatten(evaluation, list, 1),
        ("flatten", [Value::Int(depth)]) => flatten(evaluation, list, *depth),
        ("reverse", []) => evaluation.pay(size.saturating_add(MAKING)).map(|()| {
            let mut all: Vec<Value<'a>> = list.elements().collect();
            all.reverse();
            Value::List(Arc::new(all))
        }),
        ("distinct", []) => pay_comparisons(evaluation, list).map(|()| {
            let mut found: Vec<Value<'a>> = Vec::new();
            for one in list.elements() {
                if !found.iter().any(|own| own.same(&one)) {
                    found.push(one);
                }
            }
            Value::List(Arc::new(found))
        }),
        ("sort", []) => sorted(evaluation, list, list),
        ("@sortByAssociatedKeys", [keys]) if keys.list_len().is_some() => sorted(evaluation, list, keys),
        _ => return None,
    })
}

/// Pays for comparing each element of a list with each.
fn pay_comparisons(evaluation: &mut Evaluation<'_>, list: &Value<'_>) -> Result<(), EvalError> {
    let pairs = list.size().saturating_mul(list.size());
    let read = match list.element(0) {
        Some(Value::Text(_) | Value::Bytes(_)) => pairs / 10,
        _ => 0,
    };
    evaluation.pay(pairs.saturating_mul(2).saturating_add(read).saturating_add(MAKING))
}

fn counted<'a>(evaluation: &mut Evaluation<'_>, end: i64) -> Found<'a> {
    evaluation.pay(u64::try_from(end).unwrap_or(0).saturating_add(MAKING))?;
    Ok(Value::List(Arc::new((0..end).map(Value::Int).collect())))
}

/// Whether a list may be one of optional values: only its first element is looked at before it is unwrapped.
fn is_of_optionals(list: &Value<'_>) -> bool {
    list.list_len().is_some() && matches!(list.element(0), None | Some(Value::Optional(_)))
}

/// The values of those that have one.
fn present<'a>(list: &Value<'a>) -> Found<'a> {
    let mut found = Vec::new();
    for one in list.elements() {
        match one {
            Value::Optional(inner) => found.extend(inner.map(|inner| *inner)),
            other => {
                let shown = shown(&other).unwrap_or_else(|| other.type_name().to_owned());
                return failed(format!("value {shown} is not optional"));
            }
        }
    }
    Ok(Value::List(Arc::new(found)))
}

fn slice<'a>(evaluation: &mut Evaluation<'_>, list: &Value<'a>, from: i64, to: i64) -> Found<'a> {
    let refused = |why: String| failed(format!("cannot slice({from}, {to}), {why}"));
    let (Ok(start), Ok(end)) = (usize::try_from(from), usize::try_from(to)) else {
        return refused("negative indexes not supported".to_owned());
    };
    let length = list.list_len().unwrap_or(0);
    if start > end {
        return refused("start index must be less than or equal to end index".to_owned());
    }
    if length < end {
        return refused(format!("list is length {length}"));
    }
    evaluation.pay((end - start) as u64 + MAKING)?;
    let part = (start..end).filter_map(|at| list.element(at));
    Ok(Value::List(Arc::new(part.collect())))
}

/// Puts the elements of lists in the place of the lists, as deep as `depth` says.
fn flatten<'a>(evaluation: &mut Evaluation<'_>, list: &Value<'a>, depth: i64) -> Found<'a> {
    let Ok(depth) = u64::try_from(depth) else {
        return failed("level must be non-negative");
    };
    evaluation.pay(list.size().saturating_mul(depth).saturating_add(MAKING))?;
    let mut found = Vec::new();
    let mut open: Vec<(Value<'a>, u64)> = list.elements().map(|one| (one, depth)).collect();
    open.reverse();
    while let Some((one, depth)) = open.pop() {
        if one.list_len().is_none() || depth == 0 {
            found.push(one);
            continue;
        }
        // lists may stand in each other so that they have far more elements than they take room
        evaluation.pay(one.size().saturating_add(1))?;
        let mut inner: Vec<(Value<'a>, u64)> = one.elements().map(|inner| (inner, depth - 1)).collect();
        inner.reverse();
        open.append(&mut inner);
    }
    Ok(Value::List(Arc::new(found)))
}

/// A list in the order of its keys.
fn sorted<'a>(evaluation: &mut Evaluation<'_>, list: &Value<'a>, keys: &Value<'a>) -> Found<'a> {
    pay_comparisons(evaluation, keys)?;
    let Some(first) = keys.element(0) else {
        return Ok(list.clone());
    };
    if first.order(&first).is_none() && !is_no_number(&first) {
        return failed("list elements must be comparable");
    }
    if keys.elements().any(|key| key.type_name() != first.type_name()) {
        return failed("list elements must have the same type");
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.elements().zip(list.elements()).collect();
    // what is no number comes last
    let missing = |a: &Value<'_>, b: &Value<'_>| is_no_number(a).cmp(&is_no_number(b));
    let order = |a: &Value<'_>, b: &Value<'_>| a.order(b).unwrap_or_else(|| missing(a, b));
    pairs.sort_by(|(a, _), (b, _)| -> Ordering { order(a, b) });
    Ok(Value::List(Arc::new(pairs.into_iter().map(|(_, one)| one).collect())))
}

fn is_no_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Double(value) if value.is_nan())
}
