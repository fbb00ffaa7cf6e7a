//! Flags of the audit log.

use std::path::PathBuf;

use clap::Args;
use gardener_apimachinery::duration::Duration;

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
    /// How many events may wait to be sent.
    #[arg(long, default_value = "10000", value_name = "INT", allow_negative_numbers = true)]
    pub audit_webhook_batch_buffer_size: i64,
    /// How many events are sent at once at most.
    #[arg(long, default_value = "400", value_name = "INT", allow_negative_numbers = true)]
    pub audit_webhook_batch_max_size: i64,
    /// How long events wait for others to be sent with.
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    pub audit_webhook_batch_max_wait: Duration,
    /// The kubeconfig that leads to a server to which requests are told.
    #[arg(long, value_name = "FILE")]
    pub audit_webhook_config_file: Option<PathBuf>,
    /// How long until events are sent for the second time, if that server does not take them.
    #[arg(
        long,
        alias = "audit-webhook-batch-initial-backoff",
        default_value = "10s",
        value_name = "DURATION"
    )]
    pub audit_webhook_initial_backoff: Duration,
    /// Whether requests wait until they are told: batch: none waits. Others are not supported.
    #[arg(long, default_value = "batch", value_name = "STRING")]
    pub audit_webhook_mode: String,
    /// Whether objects are left out of events that would be too large to be sent.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", action = clap::ArgAction::Set, value_name = "BOOL", value_parser = Switch)]
    pub audit_webhook_truncate_enabled: bool,
    /// How many bytes events may have that are sent before objects are left out of them.
    #[arg(long, default_value = "102400", value_name = "INT", allow_negative_numbers = true)]
    pub audit_webhook_truncate_max_event_size: i64,
    /// The API version of events that are sent.
    #[arg(long, default_value = VERSION, value_name = "STRING")]
    pub audit_webhook_version: String,
    /// The policy (audit.k8s.io/v1) that says what is told of which requests; without one nothing is told.
    #[arg(long, value_name = "FILE")]
    pub audit_policy_file: Option<PathBuf>,
}

impl AuditFlags {
    /// Whether there is somewhere to tell of requests.
    pub fn tells(&self) -> bool {
        !self.audit_log_path.is_empty() || self.audit_webhook_config_file.is_some()
    }

    /// What is wrong with them. Of what is not told nothing is.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if !self.audit_log_path.is_empty() {
            self.find_errors_of_log(&mut errors);
        }
        if self.audit_webhook_config_file.is_some() {
            self.find_errors_of_webhook(&mut errors);
        }
        errors
    }

    fn find_errors_of_webhook(&self, errors: &mut Vec<String>) {
        let mode = &*self.audit_webhook_mode;
        if !MODES.contains(&mode) {
            errors.push(unknown_mode("webhook", mode));
        } else if mode != "batch" {
            errors.push(format!("--audit-webhook-mode {mode} is not supported: use batch"));
        }
        for (what, value) in [
            ("batch webhook buffer size", self.audit_webhook_batch_buffer_size),
            ("batch webhook max batch size", self.audit_webhook_batch_max_size),
            (
                "truncate webhook max event size",
                self.audit_webhook_truncate_max_event_size,
            ),
        ] {
            errors.extend(not_positive(what, value));
        }
        if self.audit_webhook_version != VERSION {
            errors.push(unknown_version());
        }
    }

    fn find_errors_of_log(&self, errors: &mut Vec<String>) {
        let (mode, format) = (&*self.audit_log_mode, &*self.audit_log_format);
        if !MODES.contains(&mode) {
            errors.push(unknown_mode("log", mode));
        } else if mode == "batch" {
            errors.extend(not_positive("batch log buffer size", self.audit_log_batch_buffer_size));
        }
        errors.extend(not_positive(
            "truncate log max event size",
            self.audit_log_truncate_max_event_size,
        ));
        if self.audit_log_version != VERSION {
            errors.push(unknown_version());
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
    }
}

fn unknown_mode(of: &str, mode: &str) -> String {
    format!(
        "invalid audit {of} mode {mode}, allowed modes are {:?}",
        MODES.join(",")
    )
}

fn unknown_version() -> String {
    format!("invalid group version, allowed versions are [{VERSION:?}]")
}

fn not_positive(what: &str, value: i64) -> Option<String> {
    (value <= 0).then(|| format!("invalid audit {what} {value}, must be a positive number"))
}
