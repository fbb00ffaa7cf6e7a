//! What is told of a maintenance: `status.lastMaintenance` [VER-89] and events [VER-90].

use crate::credentials_rotation::Credentials;

/// Why something is maintained whether its owner wants it or not: the profile does not list its version.
pub(super) const UNKNOWN_VERSION: &str = "Version does not exist in CloudProfile";
/// Likewise: its Kubernetes version has expired.
pub(super) const KUBERNETES_EXPIRED: &str = "Kubernetes version expired - force update required";
/// Likewise: its machine image version has expired.
pub(super) const IMAGE_EXPIRED: &str = "Machine image version expired - force update required";

/// Whether a reason is one of those that leave the owner no choice.
pub fn is_forced(reason: &str) -> bool {
    let reasons = [UNKNOWN_VERSION, KUBERNETES_EXPIRED, IMAGE_EXPIRED];
    reasons.iter().any(|forced| reason.starts_with(forced))
}

/// What was maintained, or was to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The control plane's Kubernetes version.
    ControlPlane,
    /// The Kubernetes version of a pool that has its own.
    PoolKubernetes(String),
    /// The machine image of a pool.
    PoolImage(String),
    /// Credentials.
    Credentials(Credentials),
}

/// One thing that was maintained, or was to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What.
    pub subject: Subject,
    /// Why.
    pub reason: String,
    /// What was done, or why it could not be.
    pub result: Result<String, String>,
}

/// All that was done and that could not be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Versions, and credentials.
    pub items: Vec<Item>,
    /// What else was changed.
    pub messages: Vec<String>,
}

/// An event on the shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it tells of a failure.
    pub is_warning: bool,
    /// `KubernetesVersionMaintenance` or `MachineImageVersionMaintenance`.
    pub reason: &'static str,
    /// The text.
    pub message: String,
}

impl Subject {
    fn prefix(&self) -> String {
        match self {
            Self::ControlPlane => "Control Plane".to_owned(),
            Self::PoolKubernetes(pool) | Self::PoolImage(pool) => format!("Worker pool {pool:?}"),
            Self::Credentials(of) => format!("Credentials {:?}", of.operation()),
        }
    }

    fn failed(&self) -> &'static str {
        match self {
            Self::ControlPlane => "Kubernetes version update failed",
            Self::PoolKubernetes(_) => "Kubernetes version maintenance failed",
            Self::PoolImage(_) => "machine image version maintenance failed",
            Self::Credentials(_) => "Automatic rotation failed",
        }
    }
}

impl Item {
    fn description(&self) -> String {
        let prefix = self.subject.prefix();
        match &self.result {
            Ok(done) => format!("{prefix}: {done}. Reason: {}", self.reason),
            Err(_) => format!(
                "{prefix}: {}. Reason for update: {}",
                self.subject.failed(),
                self.reason
            ),
        }
    }

    fn failure(&self) -> Option<String> {
        let why = self.result.as_ref().err()?;
        let prefix = self.subject.prefix();
        Some(match self.subject {
            Subject::PoolImage(_) => format!("{prefix}: {why}"),
            Subject::Credentials(_) => format!("{prefix}: Automatic rotation failure due to: {why}"),
            Subject::ControlPlane | Subject::PoolKubernetes(_) => {
                format!("{prefix}: Kubernetes maintenance failure due to: {why}")
            }
        })
    }

    /// The event; rotations of credentials have none [VER-90].
    fn event(&self) -> Option<Event> {
        let (reason, what) = match self.subject {
            Subject::PoolImage(_) => ("MachineImageVersionMaintenance", "Machine image version"),
            Subject::ControlPlane | Subject::PoolKubernetes(_) => {
                ("KubernetesVersionMaintenance", "Kubernetes version")
            }
            Subject::Credentials(_) => return None,
        };
        let prefix = self.subject.prefix();
        let message = match &self.result {
            Ok(done) => format!("{prefix}: {done}. Reason: {}.", self.reason),
            Err(why) => format!(
                "{prefix}: {what} maintenance failed. Reason for update: {}. Error: {why}",
                self.reason
            ),
        };
        Some(Event {
            is_warning: self.result.is_err(),
            reason,
            message,
        })
    }
}

/// The reason that an event's message tells about a subject; none if it is about something else. The other way round than [`Report::events`].
pub fn reason_of<'m>(message: &'m str, subject: &Subject) -> Option<&'m str> {
    let told = message.strip_prefix(&*subject.prefix())?.strip_prefix(": ")?;
    let about_image = told.starts_with("Updated machine image") || told.starts_with("Machine image");
    if about_image != matches!(subject, Subject::PoolImage(_)) {
        return None;
    }
    if let Some((_, behind)) = told.split_once(". Reason for update: ") {
        return behind.split_once(". Error: ").map(|(reason, _)| reason);
    }
    let (_, reason) = told.rsplit_once(". Reason: ")?;
    reason.strip_suffix('.')
}

impl Report {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.messages.is_empty()
    }

    fn sorted(&self) -> Vec<&Item> {
        let group = |item: &&Item| match item.subject {
            Subject::ControlPlane => 0,
            Subject::PoolKubernetes(_) => 1,
            Subject::PoolImage(_) => 2,
            Subject::Credentials(_) => 3,
        };
        let mut items: Vec<&Item> = self.items.iter().collect();
        items.sort_by_key(group);
        items
    }

    /// `status.lastMaintenance.description`.
    pub fn description(&self) -> String {
        let failed = self.items.iter().filter(|item| item.result.is_err()).count();
        let all = self.items.len();
        let head = match failed {
            0 => "All maintenance operations successful.".to_owned(),
            failed => format!("({}/{all}) maintenance operations successful.", all - failed),
        };
        let mut told: Vec<String> = self.sorted().into_iter().map(Item::description).collect();
        told.extend(self.messages.iter().cloned());
        format!("{head} {}", told.join(", ")).trim_end().to_owned()
    }

    /// `status.lastMaintenance.failureReason`; none, if nothing failed.
    pub fn failure_reason(&self) -> Option<String> {
        let failures: Vec<String> = self.sorted().into_iter().filter_map(Item::failure).collect();
        (!failures.is_empty()).then(|| failures.join(", "))
    }

    /// The events to be written.
    pub fn events(&self) -> Vec<Event> {
        self.sorted().into_iter().filter_map(Item::event).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_as_they_are_told() {
        let subjects = [
            Subject::ControlPlane,
            Subject::PoolKubernetes("a".into()),
            Subject::PoolImage("a".into()),
        ];
        let item = |subject: &Subject, result: Result<&str, &str>| Item {
            subject: subject.clone(),
            reason: format!("{IMAGE_EXPIRED} (image update strategy: major)"),
            result: result.map(str::to_owned).map_err(str::to_owned),
        };
        for (at, subject) in subjects.iter().enumerate() {
            let done = match subject {
                Subject::PoolImage(_) => r#"Updated machine image "os" from "1" to "2""#,
                _ => r#"Updated Kubernetes version from "1" to "2""#,
            };
            for item in [item(subject, Ok(done)), item(subject, Err("no. Error: at all"))] {
                let message = item.event().unwrap().message;
                for (other, about) in subjects.iter().enumerate() {
                    let expected = (other == at).then_some(item.reason.as_str());
                    assert_eq!(reason_of(&message, about), expected, "{message} {about:?}");
                }
                assert!(is_forced(&item.reason));
            }
        }
        assert!(!is_forced("Automatic update of Kubernetes version configured"));
    }
}
