//! Flags of the audit log.

use std::path::PathBuf;

use clap::Args;

use super::Switch;

/// The one version of events.
const VERSION: &str = "audit.k8s.io/v1";
/// When the request's outcome is told.
const MODES: [&str; 3] = ["batch", "blocking", "blocking-strict"];
const FORMATS: [&str; 2] = ["legacy", "json"];

/// What is told of requests, and where.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Flags")]
pub struct AuditFlags {
    /// How many events may wait to be written, if requests do not wait for it.
    #[arg(long, default_value = "10000", value_name = "INT", allow_negative_numbers = true)]
    pub audit_log_batch_buffer_size: i64,
    /// Whether files that are full are compressed.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub audit_log_compress: bool,
    /// How events are written: json, or legacy, a line of text.
    #[arg(long, default_value = "json", value_name = "STRING")]
    pub audit_log_format: String,
    /// How many days files are kept that are full; 0: however old they are.
    #[arg(long, default_value = "366", value_name = "INT", allow_negative_numbers = true)]
    pub audit_log_maxage: i64,
    /// How many files are kept that are full; 0: all.
    #[arg(long, default_value = "100", value_name = "INT", allow_negative_numbers = true)]
    pub audit_log_maxbackup: i64,
    /// How many megabytes a file holds at most; 0: however many.
    #[arg(long, default_value = "100", value_name = "INT", allow_negative_numbers = true)]
    pub audit_log_maxsize: i64,
    /// Whether requests wait until they are told: blocking; blocking-strict: those that cannot be told are refused; batch: none waits.
    #[arg(long, default_value = "blocking", value_name = "STRING")]
    pub audit_log_mode: String,
    /// The file to which requests are told; - is the standard output.
    #[arg(long, default_value = "", value_name = "FILE")]
    pub audit_log_path: String,
    /// Whether objects are left out of events that would be too large.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub audit_log_truncate_enabled: bool,
    /// How many bytes events may have before objects are left out of them.
    #[arg(long, default_value = "102400", value_name = "INT", allow_negative_numbers = true)]
    pub audit_log_truncate_max_event_size: i64,
    /// The API version of events.
    #[arg(long, default_value = VERSION, value_name = "STRING")]
    pub audit_log_version: String,
    /// The policy (audit.k8s.io/v1) that says what is told of which requests; without one nothing is told.
    #[arg(long, value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
}

impl AuditFlags {
    /// What is wrong with them. Of a log that is not written nothing is.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.audit_log_path.is_empty() {
            return errors;
        }
        let (mode, format) = (&*self.audit_log_mode, &*self.audit_log_format);
        if !MODES.contains(&mode) {
            let modes = MODES.join(",");
            errors.push(format!("invalid audit log mode {mode}, allowed modes are {modes:?}"));
        } else if mode == "batch" && self.audit_log_batch_buffer_size <= 0 {
            errors.push(format!(
                "invalid audit batch log buffer size {}, must be a positive number",
                self.audit_log_batch_buffer_size
            ));
        }
        if self.audit_log_truncate_max_event_size <= 0 {
            errors.push(format!(
                "invalid audit truncate log max event size {}, must be a positive number",
                self.audit_log_truncate_max_event_size
            ));
        }
        if self.audit_log_version != VERSION {
            errors.push(format!("invalid group version, allowed versions are [{VERSION:?}]"));
        }
        if !FORMATS.contains(&format) {
            errors.push(format!(
                "invalid audit log format {format}, allowed formats are [\"legacy\" \"json\"]"
            ));
        }
        for (flag, value) in [
            ("maxage", self.audit_log_maxage),
            ("maxbackup", self.audit_log_maxbackup),
            ("maxsize", self.audit_log_maxsize),
        ] {
            if value < 0 {
                errors.push(format!("--audit-log-{flag} {value} can't be a negative number"));
            }
        }
        errors
    }
}
