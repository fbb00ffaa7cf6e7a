//! JSON paths as columns of custom resources, scales and selectable fields have them: `.status.conditions[?(@.type=="Ready")].status`. They find what
//! client-go's `jsonpath` finds. Recursive descent, unions and templates, which those paths may not have or nobody uses there, are not known here.

use std::cmp::Ordering;

use serde_json::Value;

/// The first value at a path; none where nothing is, or where the path cannot be followed.
pub(crate) fn first<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let steps = parse(path, 0)?;
    find(object, &steps)?.into_iter().next()
}

/// A step of a path.
enum Step {
    /// A member.
    Field(String),
    /// All members, or all elements.
    All,
    /// One element; a negative place counts from the end.
    Index(i64),
    /// The elements from a place to before another.
    Slice(Option<i64>, Option<i64>),
    /// The elements in which something is.
    Having(Vec<Step>),
    /// The elements in which something compares with something.
    Comparing(Operand, Operator, Operand),
}

enum Operand {
    Path(Vec<Step>),
    Literal(Value),
}

type Operator = fn(Ordering) -> bool;

/// Operators, those of two characters first.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<=", Ordering::is_le),
    (">=", Ordering::is_ge),
    ("<", Ordering::is_lt),
    (">", Ordering::is_gt),
];

/// How deep conditions may stand within conditions.
const MAX_DEPTH: usize = 16;

/// The steps of a path; none if it cannot be read.
fn parse(path: &str, depth: usize) -> Option<Vec<Step>> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(start) = rest.chars().next() {
        rest = match start {
            '[' => {
                let end = closing(rest)?;
                steps.push(bracketed(rest.get(1..end)?.trim(), depth)?);
                rest.get(end + 1..)?
            }
            _ => {
                let (name, behind) = member(rest.strip_prefix('.').unwrap_or(rest));
                match name.as_str() {
                    "" => {}
                    "*" => steps.push(Step::All),
                    _ => steps.push(Step::Field(name)),
                }
                behind
            }
        };
    }
    Some(steps)
}

/// A member's name, in which a backslash takes the meaning from what follows it, and what stands behind it.
fn member(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (name, text.get(at..).unwrap_or_default()),
            character => name.push(character),
        }
    }
    (name, "")
}

/// Where the bracket that a text begins with is closed.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), character) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn bracketed(inside: &str, depth: usize) -> Option<Step> {
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(condition) = inside.strip_prefix("?(").and_then(|inside| inside.strip_suffix(')')) {
        return filter(condition.trim(), depth);
    }
    if let Some(name) = unquoted(inside) {
        return Some(Step::Field(name.to_owned()));
    }
    let place = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    match inside.split_once(':') {
        Some((start, end)) => Some(Step::Slice(place(start)?, place(end)?)),
        None => inside.parse().ok().map(Step::Index),
    }
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

fn filter(condition: &str, depth: usize) -> Option<Step> {
    let mut quote = None;
    for (at, character) in condition.char_indices() {
        match (quote, character) {
            (Some(open), character) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, _) => {
                let rest = condition.get(at..)?;
                if let Some((sign, operator)) = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign)) {
                    let (left, right) = (condition.get(..at)?, rest.get(sign.len()..)?);
                    return Some(Step::Comparing(
                        operand(left.trim(), depth)?,
                        *operator,
                        operand(right.trim(), depth)?,
                    ));
                }
            }
        }
    }
    match operand(condition, depth)? {
        Operand::Path(steps) => Some(Step::Having(steps)),
        Operand::Literal(_) => None,
    }
}

fn operand(text: &str, depth: usize) -> Option<Operand> {
    if let Some(path) = text.strip_prefix('@') {
        return parse(path, depth + 1).map(Operand::Path);
    }
    if let Some(text) = unquoted(text) {
        return Some(Operand::Literal(text.into()));
    }
    let literal: Value = serde_json::from_str(text).ok()?;
    matches!(literal, Value::Number(_) | Value::Bool(_)).then_some(Operand::Literal(literal))
}

/// All values at a path; none if it cannot be followed.
fn find<'v>(object: &'v Value, steps: &[Step]) -> Option<Vec<&'v Value>> {
    let mut found = vec![object];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            follow(value, step, &mut next)?;
        }
        found = next;
    }
    Some(found)
}

fn follow<'v>(value: &'v Value, step: &Step, found: &mut Vec<&'v Value>) -> Option<()> {
    // nothing is behind null
    if value.is_null() {
        return Some(());
    }
    if let (Step::Field(name), Value::Object(members)) = (step, value) {
        found.extend(members.get(name));
        return Some(());
    }
    if let (Step::All, Value::Object(members)) = (step, value) {
        found.extend(members.values());
        return Some(());
    }
    if let Step::Field(_) = step {
        // what has no members has not this one
        return Some(());
    }
    let elements = value.as_array()?;
    match step {
        Step::Index(at) => {
            let at = if *at < 0 { at + elements.len() as i64 } else { *at };
            found.push(elements.get(usize::try_from(at).ok()?)?);
        }
        Step::Slice(start, end) => {
            let length = elements.len() as i64;
            let place = |at: i64| if at < 0 { at + length } else { at };
            let (start, end) = (place(start.unwrap_or(0)), place(end.unwrap_or(length)));
            if start != end {
                found.extend(elements.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?);
            }
        }
        Step::Having(steps) => {
            let has = |element: &&Value| find(element, steps).is_some_and(|found| !found.is_empty());
            found.extend(elements.iter().filter(has));
        }
        Step::Comparing(left, operator, right) => {
            for element in elements {
                let (left, right) = (of(element, left)?, of(element, right)?);
                if let (Some(left), Some(right)) = (left, right)
                    && operator(compare(left, right)?)
                {
                    found.push(element);
                }
            }
        }
        Step::All | Step::Field(_) => found.extend(elements),
    }
    Some(())
}

/// The one value that an operand means for an element, if any; none if it means several.
fn of<'v>(element: &'v Value, operand: &'v Operand) -> Option<Option<&'v Value>> {
    match operand {
        Operand::Literal(value) => Some(Some(value)),
        Operand::Path(steps) => match find(element, steps)?.as_slice() {
            [] => Some(None),
            [one] => Some(Some(one)),
            _ => None,
        },
    }
}

/// How values of one kind compare; none if they are of several, or have no order.
fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_followed() {
        let object = json!({
            "spec": {"a": [{"b": 1}, {"b": 2, "c": "x"}], "l.x/y": "z", "none": null},
            "status": {"conditions": [{"type": "A", "status": "False"}, {"type": "Ready]", "status": "True"}]},
        });
        for (path, expected) in [
            (".spec.a[0].b", Some(json!(1))),
            (".spec.a[-1].b", Some(json!(2))),
            (".spec.a[2].b", None),
            (".spec.a[*].c", Some(json!("x"))),
            (".spec.a[*].none", None),
            (".spec.a[1:].b", Some(json!(2))),
            (".spec.a[0:0].b", None),
            (".spec.a[?(@.c)].b", Some(json!(2))),
            (".spec.a[?(@.b>1)].c", Some(json!("x"))),
            (".spec.a[?(@.b != 1)].b", Some(json!(2))),
            (".spec.a[?(@.b=='1')].b", None),
            (".status.conditions[?(@.type==\"Ready]\")].status", Some(json!("True"))),
            (".status.conditions[?(@.type=='B')].status", None),
            (".spec.l\\.x/y", Some(json!("z"))),
            (".spec['l.x/y']", Some(json!("z"))),
            (".spec.none.x", None),
            (".spec.none", Some(Value::Null)),
            (".spec.a.b", None),
            ("spec.a[1].c", Some(json!("x"))),
            (".spec.a[", None),
            (".spec.a[x]", None),
        ] {
            assert_eq!(first(&object, path), expected.as_ref(), "{path}");
        }
        assert_eq!(first(&object, "."), Some(&object));
        assert_eq!(first(&object, &".spec.a[?(@".repeat(100_000)), None);
        assert_eq!(
            first(&object, &format!("{}{}", ".a[?(@".repeat(10_000), ")]".repeat(10_000))),
            None
        );
    }

    proptest! {
        /// Whatever a definition's author writes is followed or not.
        #[test]
        fn no_path_is_too_odd(path in "[.a\\[\\]*?@()=<>!'\"0-9:\\\\ é-]{0,30}") {
            let object = json!({"a": [{"a": 1}, {"a": "a"}, [true, null]], "0": {"a": 0.5}});
            let _ = first(&object, &path);
        }
    }
}
