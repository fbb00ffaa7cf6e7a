//! The audit log: events of requests in a file, or on the standard output. How files follow each other is known to [`rotation`](super::rotation).

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::audit::{Event, Sink};
use parking_lot::Mutex;

use super::rotation::{Limits, RotatingFile};
use super::{AuditError, counted};
use crate::flags::AuditFlags;

const MEGABYTE: u64 = 1024 * 1024;

/// Writes events.
pub(super) struct Log {
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
    Now(Mutex<Output>),
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

impl Log {
    pub(super) fn open(flags: &AuditFlags, clock: &Clock) -> Result<Self, AuditError> {
        let path = PathBuf::from(&flags.audit_log_path);
        let unwritable = |source| AuditError::Unwritable {
            path: path.clone(),
            source,
        };
        let output = match &*flags.audit_log_path {
            "-" => Output::Stdout,
            _ => {
                let limits = Limits {
                    bytes: counted(flags.audit_log_maxsize) as u64 * MEGABYTE,
                    files: counted(flags.audit_log_maxbackup),
                    days: flags.audit_log_maxage,
                    compress: flags.audit_log_compress,
                };
                Output::File(RotatingFile::open(&path, limits, clock.clone()).map_err(unwritable)?)
            }
        };
        let writing = match &*flags.audit_log_mode {
            "batch" => {
                let most = counted(flags.audit_log_batch_buffer_size);
                Writing::aside(output, most).map_err(unwritable)?
            }
            _ => Writing::Now(Mutex::new(output)),
        };
        let longest = counted(flags.audit_log_truncate_max_event_size);
        Ok(Self {
            writing,
            as_json: flags.audit_log_format == "json",
            is_strict: flags.audit_log_mode == "blocking-strict",
            longest: flags.audit_log_truncate_enabled.then_some(longest),
        })
    }

    fn line(&self, event: &Event) -> String {
        let mut line = match self.as_json {
            true => event.json(),
            false => event.line(),
        };
        line.push('\n');
        line
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

impl Sink for Log {
    fn take(&self, event: &Event) -> bool {
        let written = match event.bounded(self.longest, |event| self.line(event)) {
            Some(line) => self.writing.write(line),
            None => Err("it is too long, even without objects".to_owned()),
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
