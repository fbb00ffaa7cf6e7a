//! Sequences that nobody wrote: one request of a recorded one is changed in one or two places, its body or what it asks for, by chance, so that both
//! servers are asked what no author thought of. Only what is asked is made here; [`crate::player`] plays it and [`crate::compare`] tells what differs.

mod body;
mod request;
mod walk;

use gardener_apimachinery::chance::Chance;

use crate::sequence::{Sequence, Step};

/// A changed sequence.
#[derive(Clone, Debug)]
pub struct Variation {
    /// The sequence as it is played: steps after the changed one are kept, for they show what came of it.
    pub sequence: Sequence,
    /// What was changed, one line per change.
    pub changes: Vec<String>,
}

/// What of a request is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Its body.
    Bodies,
    /// All else: method, path, query and headers.
    Requests,
    /// Everything: walks of several managers over one object, made of no sequence.
    Walks,
}

/// Changes one request of a sequence, or makes a new one. None if it has nothing to change, or is about webhooks, whose following takes too long.
pub fn vary(sequence: &Sequence, part: Part, chance: &Chance) -> Option<Variation> {
    if part == Part::Walks {
        return walk::walk(chance);
    }
    if !sequence.webhooks.is_empty() {
        return None;
    }
    // what is waited for by one server need not be waited for by the other
    let is_changeable = |step: &Step| match part {
        Part::Bodies => step.body.is_some(),
        Part::Requests | Part::Walks => step.until.is_none(),
    };
    let changeable: Vec<usize> = (0..sequence.steps.len())
        .filter(|at| sequence.steps.get(*at).is_some_and(is_changeable))
        .collect();
    let at = *pick(&changeable, chance)?;
    let mut sequence = sequence.clone();
    let step = sequence.steps.get_mut(at)?;
    let told = format!("step {} {}", at + 1, step.request);
    // what is asked now need not be answered as before
    step.until = None;
    let times = 1 + chance.below(4) / 3;
    let changes = (0..times).filter_map(|_| match part {
        Part::Bodies => body::change(step.body.as_mut()?, chance),
        Part::Requests | Part::Walks => request::change(step, chance),
    });
    let changes: Vec<String> = changes.map(|change| format!("{told}: {change}")).collect();
    (!changes.is_empty()).then_some(Variation { sequence, changes })
}

/// One of some things; none of none.
pub fn pick<'a, T>(among: &'a [T], chance: &Chance) -> Option<&'a T> {
    let count = u64::try_from(among.len()).ok().filter(|count| *count > 0)?;
    among.get(usize::try_from(chance.below(count)).ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
        for part in [Part::Bodies, Part::Requests] {
            let varied = |number| vary(&own, part, &Chance::seeded(number)).map(|own| own.changes);
            let all: std::collections::BTreeSet<_> = (0..200).filter_map(varied).collect();
            assert!(all.len() > 50, "{} variations", all.len());
            assert_eq!(varied(7), varied(7));
        }
    }

    #[test]
    fn what_has_nothing_to_change_is_left_alone() {
        assert!(vary(&sequence(json!({})), Part::Bodies, &Chance::seeded(1)).is_none());
    }
}
