//! What is told of requests, and where: from flags, and the files they name.
//!
//! What is told of which requests is known to `gardener_apiserver::audit`, which also sends events to other servers; what is written to files is known
//! to `log`.

use std::path::PathBuf;
use std::sync::Arc;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::LogicalCluster;
use gardener_apiserver::audit::{Audit, Batching, Delivery, Policy, PolicyError, Sink, webhook};
use gardener_apiserver::webhooks::KubeconfigError;
use tokio_util::sync::CancellationToken;

use crate::access::{FileError, read};
use crate::flags::AuditFlags;

mod log;
mod rotation;

use log::Log;

const POLICY_FLAG: &str = "audit-policy-file";

/// Why nothing is told of requests where something should be.
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
    /// The webhook cannot be found.
    #[error("--audit-webhook-config-file: {}: {source}", path.display())]
    Webhook {
        /// The kubeconfig.
        path: PathBuf,
        /// What is wrong with it.
        source: KubeconfigError,
    },
}

/// What is told of requests, and who delivers it.
#[derive(Default)]
pub struct Auditing {
    audit: Option<Arc<Audit>>,
    delivery: Option<Delivery>,
}

impl Auditing {
    /// What flags want.
    ///
    /// # Errors
    /// [`AuditError`].
    pub fn open(flags: &AuditFlags, clock: &Clock) -> Result<Self, AuditError> {
        let Some(path) = &flags.audit_policy_file else {
            if flags.tells() {
                tracing::warn!("nothing is told of requests without an --{POLICY_FLAG}");
            }
            return Ok(Self::default());
        };
        let policy = Policy::parse(&read(POLICY_FLAG, path)?).map_err(|reason| AuditError::Policy {
            path: path.clone(),
            reason,
        })?;
        if !flags.tells() {
            let why = "nothing is told of requests without an --audit-log-path or an --audit-webhook-config-file";
            tracing::warn!("{why}");
            return Ok(Self::default());
        }
        let mut sinks: Vec<Arc<dyn Sink>> = Vec::new();
        if !flags.audit_log_path.is_empty() {
            sinks.push(Arc::new(Log::open(flags, clock)?));
        }
        let mut delivery = None;
        if let Some(path) = &flags.audit_webhook_config_file {
            let opened = webhook(path, batching(flags));
            let (sink, own) = opened.map_err(|source| AuditError::Webhook {
                path: path.clone(),
                source,
            })?;
            sinks.push(sink);
            delivery = Some(own);
        }
        Ok(Self {
            audit: Some(Arc::new(Audit::new(policy, sinks))),
            delivery,
        })
    }

    /// What is told of requests, if anything.
    pub fn audit(&self) -> Option<Arc<Audit>> {
        self.audit.clone()
    }

    /// Delivers what is told of the cluster's requests until `stop` is cancelled, and what is left then.
    pub async fn deliver(self, cluster: Arc<LogicalCluster>, stop: CancellationToken) {
        if let Some(delivery) = self.delivery {
            delivery.run(cluster, stop).await;
        }
    }
}

/// A number that was found not to be negative.
fn counted(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

fn batching(flags: &AuditFlags) -> Batching {
    Batching {
        buffer: counted(flags.audit_webhook_batch_buffer_size),
        size: counted(flags.audit_webhook_batch_max_size),
        wait: flags.audit_webhook_batch_max_wait.to_std(),
        backoff: flags.audit_webhook_initial_backoff.to_std(),
        longest: flags
            .audit_webhook_truncate_enabled
            .then(|| counted(flags.audit_webhook_truncate_max_event_size)),
    }
}

#[cfg(test)]
mod tests;
