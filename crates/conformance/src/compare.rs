//! Tells how two answers differ, in words that lead to the place.

use gardener_apimachinery::pointer::Pointed;
use serde_json::{Value, json};

use crate::sequence::{Answer, Recording, Sequence, Step};

/// How our answers differ from the recorded ones where they should not, and which steps are excused without need: a line per place;
/// empty when all is well.
pub fn differences(sequence: &Sequence, recorded: &Recording, ours: &Recording) -> Vec<String> {
    let mut found = Vec::new();
    if recorded.answers.len() != ours.answers.len() {
        found.push(format!(
            "{} answers are recorded, the sequence has {} steps: record it anew",
            recorded.answers.len(),
            ours.answers.len()
        ));
    }
    for (number, step, of_step) in steps(sequence, recorded, ours) {
        let of_step = match &step.differs {
            None => of_step,
            Some(_) if of_step.is_empty() => vec!["no longer differs: take away its `differs`".to_owned()],
            Some(_) => Vec::new(),
        };
        found.extend(of_step.into_iter().map(|line| format!("step {number} {line}")));
    }
    found
}

/// How two servers' answers to a sequence that was never recorded differ, but for steps that are excused in the one it was made from.
pub fn between(sequence: &Sequence, one: &Recording, other: &Recording) -> Vec<String> {
    let (one, other) = (in_order(one), in_order(other));
    let compared = steps(sequence, &one, &other).filter(|(_, step, _)| step.differs.is_none());
    compared
        .flat_map(|(number, _, of_step)| of_step.into_iter().map(move |line| format!("step {number} {line}")))
        .collect()
}

/// Answers in which that stands in one order which a server tells in any: who owns fields by the second in which it was written, and what is wrong
/// by the order of Go's maps.
fn in_order(recording: &Recording) -> Recording {
    fn order(value: &mut Value) {
        match value {
            Value::Object(members) => members
                .iter_mut()
                .for_each(|(key, member)| match (key.as_str(), member) {
                    ("managedFields", Value::Array(entries)) => {
                        entries.sort_by_cached_key(|entry| {
                            let keys = ["manager", "operation", "subresource", "apiVersion"];
                            keys.map(|key| entry.get(key).map(Value::to_string))
                        });
                    }
                    ("causes", Value::Array(causes)) => causes.sort_by_cached_key(Value::to_string),
                    (_, other) => order(other),
                }),
            Value::Array(elements) => elements.iter_mut().for_each(order),
            _ => {}
        }
    }
    let mut recording = recording.clone();
    for answer in &mut recording.answers {
        order(&mut answer.body);
        let has_causes = answer.body.at("/details/causes").is_some();
        if let Some(Value::String(message)) = answer.body.get_mut("message").filter(|_| has_causes) {
            let mut words: Vec<&str> = message.split([' ', ',', '[', ']', '\n']).collect();
            words.sort_unstable();
            *message = words.join(" ");
        }
    }
    recording
}

/// How our answers differ where a step excuses it: what is left to mend, a line per place.
pub fn excused(sequence: &Sequence, recorded: &Recording, ours: &Recording) -> Vec<String> {
    let excused = steps(sequence, recorded, ours).filter(|(_, step, _)| step.differs.is_some());
    excused
        .flat_map(|(number, step, of_step)| {
            let of_step = of_step.into_iter();
            of_step.map(move |line| format!("step {number} ({}) {line}", step.request))
        })
        .collect()
}

/// The steps, by number, with how their answers differ.
fn steps<'s>(
    sequence: &'s Sequence,
    recorded: &'s Recording,
    ours: &'s Recording,
) -> impl Iterator<Item = (usize, &'s Step, Vec<String>)> {
    let pairs = recorded.answers.iter().zip(&ours.answers).zip(&sequence.steps);
    (1..)
        .zip(pairs)
        .map(|(number, ((recorded, ours), step))| (number, step, of_answers(recorded, ours)))
}

fn of_answers(recorded: &Answer, ours: &Answer) -> Vec<String> {
    let mut found = Vec::new();
    let pairs = [
        ("status", Value::from(recorded.status), Value::from(ours.status)),
        (
            "content type",
            recorded.content_type.as_str().into(),
            ours.content_type.as_str().into(),
        ),
        (
            "warnings",
            recorded.warnings.clone().into(),
            ours.warnings.clone().into(),
        ),
        ("headers", json!(recorded.told), json!(ours.told)),
    ];
    for (what, recorded, ours) in pairs {
        if recorded != ours {
            found.push(format!("{what}: {ours} instead of {recorded}"));
        }
    }
    value(
        " asked",
        &recorded.asked.clone().into(),
        &ours.asked.clone().into(),
        &mut found,
    );
    // an object instead of a refusal has nothing in common with it
    if recorded.status != ours.status {
        for (what, answer) in [("recorded", recorded), ("ours", ours)] {
            let message = answer.body.get("message").unwrap_or(&Value::Null);
            found.push(format!("{what}: {message}"));
        }
        return found;
    }
    value("", &recorded.body, &ours.body, &mut found);
    found
}

fn value(path: &str, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            for (key, wanted) in recorded {
                let path = format!("{path}/{key}");
                match ours.get(key) {
                    Some(own) => value(&path, wanted, own, found),
                    None => found.push(format!("{path}: missing, should be {wanted}")),
                }
            }
            for (key, own) in ours.iter().filter(|(key, _)| !recorded.contains_key(*key)) {
                found.push(format!("{path}/{key}: {own}, should be absent"));
            }
        }
        (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
            for (at, (wanted, own)) in recorded.iter().zip(ours).enumerate() {
                value(&format!("{path}/{at}"), wanted, own, found);
            }
        }
        (recorded, ours) if recorded != ours => found.push(format!("{path}: {ours} instead of {recorded}")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_place_is_named() {
        let answer = |status: u16, body: Value| Answer {
            status,
            content_type: "application/json".into(),
            warnings: Vec::new(),
            told: BTreeMap::new(),
            body,
            asked: Vec::new(),
        };
        let sequence = |differs: &str| -> Sequence {
            serde_saphyr::from_str(&format!("{{name: n, steps: [{{request: GET /{differs}}}]}}")).unwrap()
        };
        let recording = |answers: Vec<Answer>| Recording {
            name: "n".into(),
            answers,
        };
        let recorded = recording(vec![answer(200, json!({"a": [1, 2], "b": "x", "c": 1}))]);
        let ours = recording(vec![answer(200, json!({"a": [1, 3], "b": "x", "d": 1}))]);
        assert_eq!(
            differences(&sequence(""), &recorded, &ours),
            [
                "step 1 /a/1: 3 instead of 2",
                "step 1 /c: missing, should be 1",
                "step 1 /d: 1, should be absent",
            ]
        );
        assert!(differences(&sequence(""), &recorded, &recorded).is_empty());
        let excused = sequence(", differs: for now");
        assert!(differences(&excused, &recorded, &ours).is_empty());
        assert_eq!(
            super::excused(&excused, &recorded, &ours).first().map(String::as_str),
            Some("step 1 (GET /) /a/1: 3 instead of 2")
        );
        assert!(super::excused(&sequence(""), &recorded, &ours).is_empty());
        assert_eq!(
            differences(&excused, &recorded, &recorded),
            ["step 1 no longer differs: take away its `differs`"]
        );
    }
}
