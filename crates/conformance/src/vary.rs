//! Sequences that nobody wrote: one body of a recorded one is changed in one or two places, by chance, so that both servers are asked what no author
//! thought of. Only what is asked is made here; [`crate::player`] plays it and [`crate::compare`] tells what differs.

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::pointer::{self, Pointed};
use serde_json::{Map, Value, json};

use crate::sequence::Sequence;

/// A changed sequence.
#[derive(Clone, Debug)]
pub struct Variation {
    /// The sequence as it is played: steps after the changed one are kept, for they show what came of it.
    pub sequence: Sequence,
    /// What was changed, one line per change.
    pub changes: Vec<String>,
}

/// Changes one body of a sequence. None if it has no body to change, or is about webhooks, whose following takes too long.
pub fn vary(sequence: &Sequence, chance: &Chance) -> Option<Variation> {
    if !sequence.webhooks.is_empty() {
        return None;
    }
    let with_body: Vec<usize> = (0..sequence.steps.len())
        .filter(|at| sequence.steps.get(*at).is_some_and(|step| step.body.is_some()))
        .collect();
    let at = *pick(&with_body, chance)?;
    let mut sequence = sequence.clone();
    let step = sequence.steps.get_mut(at)?;
    // what is asked now need not be answered as before
    step.until = None;
    let body = step.body.as_mut()?;
    let times = 1 + chance.below(4) / 3;
    let changes = (0..times).filter_map(|_| change(body, chance)).collect::<Vec<_>>();
    let changes: Vec<String> = changes
        .into_iter()
        .map(|change| format!("step {} {}: {change}", at + 1, step.request))
        .collect();
    (!changes.is_empty()).then_some(Variation { sequence, changes })
}

/// One of some things; none of none.
pub fn pick<'a, T>(among: &'a [T], chance: &Chance) -> Option<&'a T> {
    let count = u64::try_from(among.len()).ok().filter(|count| *count > 0)?;
    among.get(usize::try_from(chance.below(count)).ok()?)
}

/// Changes one place of a value and tells how.
fn change(body: &mut Value, chance: &Chance) -> Option<String> {
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
fn gather(value: &Value, path: &str, places: &mut Vec<String>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(body: Value) -> Sequence {
        let step = json!({"request": "POST /api/v1/nodes", "body": body});
        serde_json::from_value(json!({"name": "a", "steps": [{"request": "GET /api"}, step]}))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn one_number_makes_one_variation_and_others_differ() {
        let own =
            sequence(json!({"metadata": {"name": "a", "labels": {"a/b": "c"}}, "spec": {"taints": [{"key": "x"}]}}));
        let varied = |number| vary(&own, &Chance::seeded(number)).map(|own| own.changes);
        let all: std::collections::BTreeSet<_> = (0..200).filter_map(varied).collect();
        assert!(all.len() > 50, "{} variations", all.len());
        assert_eq!(varied(7), varied(7));
    }

    #[test]
    fn what_has_nothing_to_change_is_left_alone() {
        assert!(vary(&sequence(json!({})), &Chance::seeded(1)).is_none());
    }
}
