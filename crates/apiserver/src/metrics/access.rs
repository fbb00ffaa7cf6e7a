//! How often it was found out who asks and what they may do, what came of it, and how long it took.

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apimachinery::metrics::{Durations, Text};
use parking_lot::Mutex;

use crate::authz::Decision;

/// Upper bounds, in seconds, of the steps in which durations are counted.
const STEPS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
/// Names that are counted apart; of all others there may be any number.
const KNOWN_USERS: [&str; 5] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
];

/// The counts of who was let in, and what they were allowed.
#[derive(Default)]
pub(crate) struct Access {
    authentications: Mutex<ByResult>,
    authorizations: Mutex<ByResult>,
    users: Mutex<BTreeMap<&'static str, u64>>,
}

/// How long it took what ended with each result.
type ByResult = BTreeMap<&'static str, Durations<{ STEPS.len() }>>;

/// What came of looking for who asks.
pub(crate) enum Authentication<'n> {
    /// Somebody of this name.
    User(&'n str),
    /// Nobody: no credentials were shown.
    Nobody,
    /// What was shown is wrong.
    Wrong,
}

impl Access {
    /// Counts that somebody came.
    pub(crate) fn authenticated(&self, came: &Authentication<'_>, taken: Duration) {
        let result = match came {
            Authentication::User(_) => "success",
            Authentication::Nobody => "failure",
            Authentication::Wrong => "error",
        };
        count(&self.authentications, result, taken);
        if let Authentication::User(name) = came {
            *self.users.lock().entry(counted_as(name)).or_default() += 1;
        }
    }

    /// Counts a decision; none, where it could not be made.
    pub(crate) fn authorized(&self, decision: Option<&Decision>, taken: Duration) {
        let result = match decision {
            Some(Decision::Allow) => "allowed",
            Some(Decision::Deny(_)) => "denied",
            Some(Decision::NoOpinion(_)) => "no-opinion",
            None => "error",
        };
        count(&self.authorizations, result, taken);
    }

    /// Writes them in Prometheus' text form.
    pub(super) fn tell(&self, out: &mut Text) {
        let of = [
            (
                "authentication",
                "attempts",
                "Looks for who asks",
                &self.authentications,
            ),
            (
                "authorization",
                "attempts_total",
                "Decisions whether somebody may",
                &self.authorizations,
            ),
        ];
        for (what, attempts, about, counted) in of {
            let counted = counted.lock();
            let (name, labels) = (format!("{what}_{attempts}"), |result: &str| {
                format!("result=\"{result}\"")
            });
            out.family(&name, "counter", &format!("{about}, by what came of it."));
            for (result, durations) in counted.iter() {
                out.sample(&name, &labels(result), durations.number());
            }
            let name = format!("{what}_duration_seconds");
            out.family(&name, "histogram", &format!("{about}: how long it took, in seconds."));
            for (result, durations) in counted.iter() {
                out.durations(&name, &labels(result), &STEPS, durations);
            }
        }
        let name = "authenticated_user_requests";
        out.family(
            name,
            "counter",
            "Requests by whose they are; of most it is told that they are others'.",
        );
        for (user, number) in self.users.lock().iter() {
            out.sample(name, &format!("username=\"{user}\""), number);
        }
    }
}

fn count(counted: &Mutex<ByResult>, result: &'static str, taken: Duration) {
    counted.lock().entry(result).or_default().add(&STEPS, taken);
}

/// Under which name somebody is counted.
fn counted_as(name: &str) -> &'static str {
    let known = KNOWN_USERS.into_iter().find(|known| *known == name);
    known.unwrap_or(match name.contains('@') {
        true => "email_id",
        false => "other",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_users_are_others() {
        for (name, counted) in [
            ("admin", "admin"),
            ("kubelet", "kubelet"),
            ("me@example.com", "email_id"),
            ("system:node:a", "other"),
            ("", "other"),
        ] {
            assert_eq!(counted_as(name), counted, "{name}");
        }
    }

    #[test]
    fn what_came_of_it_is_told() {
        let access = Access::default();
        access.authenticated(&Authentication::User("alice"), Duration::from_millis(3));
        access.authenticated(&Authentication::Wrong, Duration::ZERO);
        access.authenticated(&Authentication::Nobody, Duration::ZERO);
        access.authorized(Some(&Decision::Allow), Duration::from_secs(20));
        access.authorized(None, Duration::ZERO);
        let mut out = Text::default();
        access.tell(&mut out);
        let text = out.into_text();
        for line in [
            "authentication_attempts{result=\"success\"} 1\n",
            "authentication_attempts{result=\"error\"} 1\n",
            "authentication_attempts{result=\"failure\"} 1\n",
            "authentication_duration_seconds_bucket{result=\"success\",le=\"0.002\"} 0\n",
            "authentication_duration_seconds_bucket{result=\"success\",le=\"0.004\"} 1\n",
            "authenticated_user_requests{username=\"other\"} 1\n",
            "authorization_attempts_total{result=\"allowed\"} 1\n",
            "authorization_attempts_total{result=\"error\"} 1\n",
            "authorization_duration_seconds_bucket{result=\"allowed\",le=\"16.384\"} 0\n",
            "authorization_duration_seconds_bucket{result=\"allowed\",le=\"+Inf\"} 1\n",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
