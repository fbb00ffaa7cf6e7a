//! How long admission took, what its webhooks answered, and how long they took. Webhooks are few, but anybody who may register one chooses its name.

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apimachinery::metrics::{Durations, Text};
use parking_lot::Mutex;

use crate::definition::Operation;
use crate::intercept::matching::word;

/// Upper bounds, in seconds, of the steps in which the durations of all plugins together are counted.
const IN_ALL: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// Upper bounds, in seconds, of the steps in which webhooks' durations are counted.
const STEPS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Greater status codes are counted as this one: webhooks choose them.
const LAST_CODE: u16 = 600;

/// The counts of admission: of all plugins one after the other.
#[derive(Default)]
pub(crate) struct Steps(Mutex<BTreeMap<Step, Durations<{ IN_ALL.len() }>>>);

/// What plugins did with one kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    /// `admit`, where they may change objects, or `validate`.
    pub(crate) step: &'static str,
    /// What happens to the object.
    pub(crate) operation: Operation,
    /// Whether one of them refused.
    pub(crate) rejected: bool,
}

impl Steps {
    /// Counts what they did.
    pub(crate) fn count(&self, step: Step, taken: Duration) {
        self.0.lock().entry(step).or_default().add(&IN_ALL, taken);
    }

    /// Writes them in Prometheus' text form.
    pub(super) fn tell(&self, out: &mut Text) {
        let name = "apiserver_admission_step_admission_duration_seconds";
        out.family(name, "histogram", "How long admission took, in seconds.");
        for (step, durations) in self.0.lock().iter() {
            let (operation, rejected, step) = (word(step.operation), step.rejected, step.step);
            let labels = format!("operation=\"{operation}\",rejected=\"{rejected}\",type=\"{step}\"");
            out.durations(name, &labels, &IN_ALL, durations);
        }
    }
}

/// The counts of admission webhooks.
#[derive(Default)]
pub(crate) struct Webhooks(Mutex<BTreeMap<Turn, Counted>>);

/// One webhook's turn in one kind of request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    /// The webhook's name.
    pub(crate) name: String,
    /// `admit` for those that change objects, `validating` for those that refuse them.
    pub(crate) step: &'static str,
    /// What happens to the object.
    pub(crate) operation: Operation,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The webhook consents.
    Allowed,
    /// The webhook refuses, with this code.
    Refused(u16),
    /// It could not be asked, or answers what is none; the code is that of the failure.
    Failed {
        /// The failure's code.
        code: u16,
        /// Whether the request goes on all the same.
        ignored: bool,
    },
    /// The request is refused before or after it was asked.
    Broken,
}

#[derive(Default)]
struct Counted {
    /// By code and whether the request was refused.
    ended: BTreeMap<(u16, bool), u64>,
    /// By whether the request was refused.
    durations: [Durations<{ STEPS.len() }>; 2],
    /// By the type of the error and the code.
    refusals: BTreeMap<(&'static str, u16), u64>,
    ignored: u64,
}

impl Webhooks {
    /// Counts a turn that ended.
    pub(crate) fn count(&self, turn: Turn, end: End, taken: Duration) {
        let (code, error) = match end {
            End::Allowed => (200, None),
            End::Refused(code) => (code, Some("no_error")),
            End::Failed { code, ignored } => (code, (!ignored).then_some("calling_webhook_error")),
            End::Broken => (0, Some("apiserver_internal_error")),
        };
        let code = code.min(LAST_CODE);
        let mut all = self.0.lock();
        let counted = all.entry(turn).or_default();
        *counted.ended.entry((code, error.is_some())).or_default() += 1;
        if let Some(durations) = counted.durations.get_mut(usize::from(error.is_some())) {
            durations.add(&STEPS, taken);
        }
        if let Some(error) = error {
            *counted.refusals.entry((error, code)).or_default() += 1;
        }
        if matches!(end, End::Failed { ignored: true, .. }) {
            counted.ignored += 1;
        }
    }

    /// Writes them in Prometheus' text form.
    pub(super) fn tell(&self, out: &mut Text) {
        let all = self.0.lock();
        if all.is_empty() {
            return;
        }
        let labels = |turn: &Turn| {
            let Turn { name, step, operation } = turn;
            format!("name=\"{name}\",operation=\"{}\",type=\"{step}\"", word(*operation))
        };
        let name = "apiserver_admission_webhook_request_total";
        out.family(
            name,
            "counter",
            "Questions to admission webhooks, by what they answered.",
        );
        for (turn, counted) in all.iter() {
            for ((code, rejected), number) in &counted.ended {
                let labels = format!("code=\"{code}\",{},rejected=\"{rejected}\"", labels(turn));
                out.sample(name, &labels, number);
            }
        }
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        out.family(name, "histogram", "How long admission webhooks took, in seconds.");
        for (turn, counted) in all.iter() {
            for (durations, rejected) in counted.durations.iter().zip([false, true]) {
                if durations.number() > 0 {
                    let labels = format!("{},rejected=\"{rejected}\"", labels(turn));
                    out.durations(name, &labels, &STEPS, durations);
                }
            }
        }
        let name = "apiserver_admission_webhook_rejection_count";
        out.family(
            name,
            "counter",
            "Requests that admission webhooks, or failures to ask them, refused.",
        );
        for (turn, counted) in all.iter() {
            for ((error, code), number) in &counted.refusals {
                let labels = format!("error_type=\"{error}\",{},rejection_code=\"{code}\"", labels(turn));
                out.sample(name, &labels, number);
            }
        }
        let name = "apiserver_admission_webhook_fail_open_count";
        out.family(name, "counter", "Failures to ask admission webhooks that were ignored.");
        let mut ignored: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (turn, counted) in all.iter().filter(|(_, counted)| counted.ignored > 0) {
            *ignored.entry((&turn.name, turn.step)).or_default() += counted.ignored;
        }
        for ((webhook, step), number) in ignored {
            out.sample(name, &format!("name=\"{webhook}\",type=\"{step}\""), number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_of_a_turn_is_told() {
        let (webhooks, taken) = (Webhooks::default(), Duration::from_millis(30));
        let turn = Turn {
            name: "a.example.com".to_owned(),
            step: "validating",
            operation: Operation::Create,
        };
        for end in [
            End::Allowed,
            End::Refused(403),
            End::Refused(9999),
            End::Failed {
                code: 503,
                ignored: false,
            },
            End::Failed {
                code: 503,
                ignored: true,
            },
            End::Broken,
        ] {
            webhooks.count(turn.clone(), end, taken);
        }
        let mut out = Text::default();
        webhooks.tell(&mut out);
        let text = out.into_text();
        let of = "name=\"a.example.com\",operation=\"CREATE\",type=\"validating\"";
        for line in [
            format!("request_total{{code=\"200\",{of},rejected=\"false\"}} 1\n"),
            format!("request_total{{code=\"503\",{of},rejected=\"false\"}} 1\n"),
            format!("request_total{{code=\"503\",{of},rejected=\"true\"}} 1\n"),
            format!("request_total{{code=\"600\",{of},rejected=\"true\"}} 1\n"),
            format!("request_total{{code=\"0\",{of},rejected=\"true\"}} 1\n"),
            format!("admission_duration_seconds_bucket{{{of},rejected=\"true\",le=\"0.025\"}} 0\n"),
            format!("admission_duration_seconds_bucket{{{of},rejected=\"true\",le=\"0.1\"}} 4\n"),
            format!("rejection_count{{error_type=\"no_error\",{of},rejection_code=\"403\"}} 1\n"),
            format!("rejection_count{{error_type=\"calling_webhook_error\",{of},rejection_code=\"503\"}} 1\n"),
            format!("rejection_count{{error_type=\"apiserver_internal_error\",{of},rejection_code=\"0\"}} 1\n"),
            "fail_open_count{name=\"a.example.com\",type=\"validating\"} 1\n".to_owned(),
        ] {
            let line = format!("apiserver_admission_webhook_{line}");
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
    }
}
