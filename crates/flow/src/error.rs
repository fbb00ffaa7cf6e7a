//! What can go wrong in a task and in a flow.

use std::fmt;

use gardener_apimachinery::field::go_quote;

/// Why a task failed. Every error converts into it with `?`, then without codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskError {
    message: String,
    codes: Vec<String>,
    severe: bool,
}

impl TaskError {
    /// An error that a retry may heal.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            codes: Vec::new(),
            severe: false,
        }
    }

    /// The same error with Gardener's error codes (`ERR_INFRA_…`), which travel to `status.lastErrors[].codes` [ST-140].
    #[must_use]
    pub fn with_codes<C: Into<String>>(mut self, codes: impl IntoIterator<Item = C>) -> Self {
        self.codes.extend(codes.into_iter().map(Into::into));
        self
    }

    /// The same error, but no retry heals it: the task fails at once.
    #[must_use]
    pub fn severe(mut self) -> Self {
        self.severe = true;
        self
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Gardener's error codes.
    pub fn codes(&self) -> &[String] {
        &self.codes
    }

    /// Whether retrying is useless.
    pub fn is_severe(&self) -> bool {
        self.severe
    }

    pub(crate) fn prefixed(mut self, prefix: &str) -> Self {
        self.message.insert_str(0, prefix);
        self
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

// `TaskError` is not itself an `Error`: that is what lets all errors convert into it.
impl<E: std::error::Error + 'static> From<E> for TaskError {
    fn from(error: E) -> Self {
        let any: &(dyn std::error::Error + 'static) = &error;
        Self::new(match any.downcast_ref() {
            // people read this: the whole object around the message is not for them
            Some(kube::Error::Api(status)) => status.message.clone(),
            _ => error.to_string(),
        })
    }
}

/// A task of a flow that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailure {
    /// The task's name; also its `taskID` in `status.lastErrors` [CP-20].
    pub task: String,
    /// Its last error.
    pub error: TaskError,
}

/// `task "<name>" failed: <error>`, the description in `status.lastErrors` [ST-140].
impl fmt::Display for TaskFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "task {} failed: {}", go_quote(&self.task), self.error)
    }
}

fn listed(failures: &[TaskFailure]) -> String {
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(" "))
}

fn canceled_with(failures: &[TaskFailure]) -> String {
    if failures.is_empty() {
        String::new()
    } else {
        format!(". Encountered task errors: {}", listed(failures))
    }
}

/// Why a flow did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// Tasks failed, in the order in which they did [CP-20].
    #[error("flow {} encountered task errors: {}", go_quote(.flow), listed(.failures))]
    Failed {
        /// The flow's name.
        flow: String,
        /// The tasks that failed.
        failures: Vec<TaskFailure>,
    },
    /// The flow was canceled; tasks that ran were dropped [ST-125].
    #[error("flow {} was canceled: context canceled{}", go_quote(.flow), canceled_with(.failures))]
    Canceled {
        /// The flow's name.
        flow: String,
        /// The tasks that had failed before.
        failures: Vec<TaskFailure>,
    },
    /// The graph was put together wrongly; no task ran [ST-142].
    #[error("flow {} is wrongly put together: {reason}", go_quote(.flow))]
    Malformed {
        /// The flow's name.
        flow: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl FlowError {
    /// The tasks that failed, in the order in which they did.
    pub fn failures(&self) -> &[TaskFailure] {
        match self {
            Self::Failed { failures, .. } | Self::Canceled { failures, .. } => failures,
            Self::Malformed { .. } => &[],
        }
    }

    /// The codes of all failures, without duplicates, in order of appearance [ST-140].
    pub fn codes(&self) -> Vec<String> {
        let mut codes: Vec<String> = Vec::new();
        for code in self.failures().iter().flat_map(|one| one.error.codes()) {
            if !codes.contains(code) {
                codes.push(code.clone());
            }
        }
        codes
    }
}
