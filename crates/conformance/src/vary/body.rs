//! Changes of a body: a place of it is taken away, or becomes something like it, or something that is wrong nearly everywhere.

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::pointer::{self, Pointed};
use serde_json::{Map, Value, json};

use super::pick;

/// Changes one place of a value and tells how.
pub(super) fn change(body: &mut Value, chance: &Chance) -> Option<String> {
    let mut places = Vec::new();
    gather(body, "", &mut places);
    let place = pick(&places, chance)?.clone();
    let other = pick(&places, chance).and_then(|other| body.at(other)).cloned();
    let (parent, key) = pointer::parent(&place)?;
    let own = body.at(&place).cloned()?;
    let made = match chance.below(5) {
        0 => None,
        1 => Some(other?),
        2 | 3 => Some(resembling(&own, chance)),
        _ => Some(pick(&strange(), chance)?.clone()),
    };
    let told = match (&made, body.at_mut(parent)?) {
        (None, Value::Object(members)) => {
            members.remove(key.as_ref());
            "taken away".to_owned()
        }
        (None, Value::Array(elements)) => {
            let at: usize = key.parse().ok()?;
            match chance.below(2) {
                0 => {
                    elements.remove(at);
                    "taken away".to_owned()
                }
                _ => {
                    elements.push(own);
                    "doubled".to_owned()
                }
            }
        }
        (Some(made), Value::Object(members)) => {
            members.insert(key.into_owned(), made.clone());
            format!("{made} instead of {own}")
        }
        (Some(made), Value::Array(elements)) => {
            *elements.get_mut(key.parse::<usize>().ok()?)? = made.clone();
            format!("{made} instead of {own}")
        }
        _ => return None,
    };
    let told: String = told.chars().take(300).collect();
    Some(format!("{place} {told}"))
}

/// All places in a value but itself, as JSON pointers.
pub(super) fn gather(value: &Value, path: &str, places: &mut Vec<String>) {
    let mut add = |key: &str, member: &Value| {
        let path = pointer::member(path, key);
        places.push(path.clone());
        gather(member, &path, places);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, member)| add(key, member)),
        Value::Array(elements) => {
            let elements = elements.iter().enumerate();
            elements.for_each(|(at, member)| add(&at.to_string(), member));
        }
        _ => {}
    }
}

/// A value of the same type that is a little wrong, or only different.
fn resembling(own: &Value, chance: &Chance) -> Value {
    let among: Vec<Value> = match own {
        Value::String(text) => vec![
            json!(""),
            json!(format!("{text}-")),
            json!(format!("-{text}")),
            json!(text.to_uppercase()),
            json!(format!("{text}/{text}")),
            json!(format!("{text} ")),
            json!(format!("{text}.{text}")),
            json!(format!("{text}_é")),
            json!(text.repeat(1 + 300 / text.len().max(1))),
            json!(text.chars().take(1).collect::<String>()),
        ],
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(1);
            vec![
                json!(0),
                json!(number.saturating_neg()),
                json!(number.saturating_add(1)),
                json!(number.saturating_mul(100_000)),
                json!(number.to_string()),
                json!(1.5),
            ]
        }
        Value::Bool(truth) => vec![json!(!truth), json!(truth.to_string())],
        Value::Array(elements) => vec![
            json!([]),
            elements.iter().rev().cloned().collect(),
            elements.iter().chain(elements).cloned().collect(),
            json!([null]),
            elements.first().cloned().unwrap_or_default(),
        ],
        Value::Object(members) => {
            let renamed = |change: fn(&str) -> String| -> Value {
                let members = members.iter();
                let members: Map<_, _> = members.map(|(key, value)| (change(key), value.clone())).collect();
                members.into()
            };
            vec![
                json!({}),
                renamed(|key| format!("{key}x")),
                renamed(str::to_uppercase),
                json!({"": ""}),
                json!([own]),
            ]
        }
        Value::Null => vec![json!({}), json!("")],
    };
    pick(&among, chance).cloned().unwrap_or_default()
}

/// Values that are wrong nearly everywhere.
fn strange() -> [Value; 12] {
    [
        Value::Null,
        json!(""),
        json!("a"),
        json!("A_b"),
        json!("*"),
        json!(0),
        json!(-1),
        json!(true),
        json!([]),
        json!({}),
        json!([""]),
        json!("10Mi"),
    ]
}
