//! What is said of calls with values that no overload takes.

use crate::eval::EvalError;
use crate::value::Value;

/// Whether values of a type can be the first argument of an operator, whatever the others are; none for functions that are no operators.
fn takes(name: &str, first: &Value<'_>) -> Option<bool> {
    use Value::{Bool, Bytes, Double, Duration, Int, Text, Timestamp, Uint};
    let list = first.list_len().is_some();
    Some(match name {
        "_+_" => {
            list || matches!(
                first,
                Int(_) | Uint(_) | Double(_) | Text(_) | Bytes(_) | Timestamp(_) | Duration(_)
            )
        }
        "_-_" => matches!(first, Int(_) | Uint(_) | Double(_) | Timestamp(_) | Duration(_)),
        "_*_" | "_/_" => matches!(first, Int(_) | Uint(_) | Double(_)),
        "_%_" => matches!(first, Int(_) | Uint(_)),
        "-_" => matches!(first, Bool(_) | Int(_) | Double(_) | Duration(_)),
        "_<_" | "_<=_" | "_>_" | "_>=_" => matches!(
            first,
            Bool(_) | Int(_) | Uint(_) | Double(_) | Text(_) | Bytes(_) | Timestamp(_) | Duration(_)
        ),
        "size" => list || first.keys().is_some() || matches!(first, Text(_) | Bytes(_)),
        "sort" | "@sortByAssociatedKeys" => list,
        _ => return None,
    })
}

/// Why a function cannot be called with these values.
pub(super) fn no_overload(name: &str, args: &[Value<'_>]) -> EvalError {
    // these do not look at types before they are called
    if let "!_" | "matches" | "contains" | "startsWith" | "endsWith" | "flatten" = name {
        return EvalError::overload();
    }
    // they are asked themselves what they can do
    let answers = |first: &Value<'_>| matches!(first, Value::Text(_) | Value::Timestamp(_) | Value::Duration(_));
    match args.first().map(|first| (first, takes(name, first))) {
        Some((first, Some(taken))) if taken || answers(first) => EvalError::overload(),
        Some((_, Some(_))) => EvalError::new(format!("no such overload: {name}")),
        _ => {
            let types: Vec<&str> = args.iter().map(Value::type_name).collect();
            EvalError::new(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}
