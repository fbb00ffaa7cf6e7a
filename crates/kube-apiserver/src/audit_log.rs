//! The audit log: events of requests in a file, or on the standard output.
//!
//! What is told of which requests is known to `gardener_apiserver::audit`; how files follow each other, to [`rotation`].

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::audit::{Audit, Event, Policy, PolicyError, Sink};

use crate::access::{FileError, read};
use crate::flags::AuditFlags;

mod rotation;

use rotation::{Limits, RotatingFile};

const POLICY_FLAG: &str = "audit-policy-file";
const MEGABYTE: u64 = 1024 * 1024;

/// Why there is no audit log where one is wanted.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The policy cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The policy cannot be used.
    #[error("loading audit policy file: {reason}: from file {}", path.display())]
    Policy {
        /// The policy's file.
        path: PathBuf,
        /// What is wrong with it.
        reason: PolicyError,
    },
    /// The log cannot be written.
    #[error("--audit-log-path: {}: {source}", path.display())]
    Unwritable {
        /// The log's file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What is told of requests as flags want it, if anything.
///
/// # Errors
/// [`AuditError`].
pub fn open(flags: &AuditFlags, clock: &Clock) -> Result<Option<Arc<Audit>>, AuditError> {
    let Some(path) = &flags.audit_policy_file else {
        if !flags.audit_log_path.is_empty() {
            tracing::warn!("there is an --audit-log-path, but nothing is told there without an --{POLICY_FLAG}");
        }
        return Ok(None);
    };
    let policy = Policy::parse(&read(POLICY_FLAG, path)?).map_err(|reason| AuditError::Policy {
        path: path.clone(),
        reason,
    })?;
    if flags.audit_log_path.is_empty() {
        tracing::warn!("there is an --{POLICY_FLAG}, but nothing is told without an --audit-log-path");
        return Ok(None);
    }
    let log = AuditLog::open(flags, clock)?;
    Ok(Some(Arc::new(Audit::new(policy, Arc::new(log)))))
}

/// Writes events.
struct AuditLog {
    writing: Writing,
    as_json: bool,
    /// Whether a request fails that cannot be told.
    is_strict: bool,
    /// How long events may be before objects are left out of them.
    longest: Option<usize>,
}

/// Who writes.
enum Writing {
    /// Whoever tells of a request.
    Now(parking_lot::Mutex<Output>),
    /// A thread, for those who do not wait. Both are there until the end.
    Later(Option<SyncSender<String>>, Option<JoinHandle<()>>),
}

/// Where lines go.
enum Output {
    Stdout,
    File(RotatingFile),
}

impl Output {
    fn write(&mut self, line: &str) -> std::io::Result<()> {
        match self {
            Self::Stdout => std::io::stdout().lock().write_all(line.as_bytes()),
            Self::File(file) => file.write(line.as_bytes()),
        }
    }
}

/// A number that was found not to be negative.
fn counted(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

impl AuditLog {
    fn open(flags: &AuditFlags, clock: &Clock) -> Result<Self, AuditError> {
        let path = PathBuf::from(&flags.audit_log_path);
        let unwritable = |source| AuditError::Unwritable {
            path: path.clone(),
            source,
        };
        let output = match &*flags.audit_log_path {
            "-" => Output::Stdout,
            _ => {
                let limits = Limits {
                    bytes: counted(flags.audit_log_maxsize) * MEGABYTE,
                    files: usize::try_from(flags.audit_log_maxbackup).unwrap_or_default(),
                    days: flags.audit_log_maxage,
                    compress: flags.audit_log_compress,
                };
                Output::File(RotatingFile::open(&path, limits, clock.clone()).map_err(unwritable)?)
            }
        };
        let writing = match &*flags.audit_log_mode {
            "batch" => {
                let most = usize::try_from(flags.audit_log_batch_buffer_size).unwrap_or_default();
                Writing::aside(output, most).map_err(unwritable)?
            }
            _ => Writing::Now(parking_lot::Mutex::new(output)),
        };
        let longest = usize::try_from(flags.audit_log_truncate_max_event_size).unwrap_or(usize::MAX);
        Ok(Self {
            writing,
            as_json: flags.audit_log_format == "json",
            is_strict: flags.audit_log_mode == "blocking-strict",
            longest: flags.audit_log_truncate_enabled.then_some(longest),
        })
    }

    fn line(&self, event: &Event) -> Result<String, serde_json::Error> {
        let mut line = match self.as_json {
            true => serde_json::to_string(event)?,
            false => event.line(),
        };
        line.push('\n');
        Ok(line)
    }

    /// The event as it is written; none of one that is too long however little it tells.
    fn bounded(&self, event: &Event) -> Result<Option<String>, serde_json::Error> {
        let line = self.line(event)?;
        match self.longest {
            Some(longest) if line.len() > longest => {
                let mut shorter = event.clone();
                shorter.truncate();
                let line = self.line(&shorter)?;
                Ok((line.len() <= longest).then_some(line))
            }
            _ => Ok(Some(line)),
        }
    }
}

impl Writing {
    fn aside(mut output: Output, most: usize) -> std::io::Result<Self> {
        let (sender, lines) = sync_channel::<String>(most);
        let thread = std::thread::Builder::new().name("audit-log".into()).spawn(move || {
            for line in lines {
                if let Err(error) = output.write(&line) {
                    tracing::error!(%error, "an audit event could not be written");
                }
            }
        })?;
        Ok(Self::Later(Some(sender), Some(thread)))
    }

    fn write(&self, line: String) -> Result<(), String> {
        match self {
            Self::Now(output) => output.lock().write(&line).map_err(|error| error.to_string()),
            Self::Later(sender, _) => {
                let sent = sender.as_ref().map_or(Ok(()), |sender| sender.try_send(line));
                sent.map_err(|error| match error {
                    TrySendError::Full(_) => "audit buffer queue blocked".to_owned(),
                    TrySendError::Disconnected(_) => "the log is closed".to_owned(),
                })
            }
        }
    }
}

impl Sink for AuditLog {
    fn take(&self, event: &Event) -> bool {
        let written = match self.bounded(event) {
            Ok(Some(line)) => self.writing.write(line),
            Ok(None) => Err("it is too long, even without objects".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        match written {
            Ok(()) => true,
            Err(why) => {
                tracing::error!(why, "an audit event could not be written");
                !self.is_strict
            }
        }
    }
}

impl Drop for Writing {
    /// What waits is still written.
    fn drop(&mut self) {
        if let Self::Later(sender, thread) = self {
            drop(sender.take());
            // that it panicked has been told already
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

#[cfg(test)]
mod tests;
