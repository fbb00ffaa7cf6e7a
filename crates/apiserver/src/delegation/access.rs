//! Authorization by another server.

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Client;

use super::review;
use crate::authz::review::{Answers, spec};
use crate::authz::{Attributes, Authorizer, Decision, Undecided};
use crate::blocking;
use crate::cluster::LogicalCluster;

/// How long an answer is waited for where the thread is blocked meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks another server who may do what.
pub struct AccessReviewer {
    client: Client,
    answers: Answers,
}

impl AccessReviewer {
    /// Asks by this client; keeps what is allowed, and what is not, for so long.
    pub fn new(client: Client, keep_allowed: Duration, keep_others: Duration) -> Self {
        Self {
            client,
            answers: Answers::new(keep_allowed, keep_others),
        }
    }
}

#[async_trait]
impl Authorizer for AccessReviewer {
    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        let answered = match self.answers.known(attributes) {
            Some(known) => Some(known),
            None => blocking::wait(PATIENCE, self.ask(cluster, attributes)),
        };
        match answered {
            Some(answered) => answered.unwrap_or_else(Undecided::decision),
            None => Decision::NoOpinion("the server that knows did not answer in time".to_owned()),
        }
    }

    async fn ask(&self, _: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, Undecided> {
        if let Some(known) = self.answers.known(attributes) {
            return known;
        }
        let question = SubjectAccessReview {
            spec: spec(attributes),
            ..SubjectAccessReview::default()
        };
        let answered = review(&self.client, &question).await.map_err(|error| {
            tracing::warn!(%error, "it cannot be asked who may do what");
            Undecided {
                why: error.to_string(),
                denies: false,
            }
        })?;
        self.answers.take(attributes, answered.status.unwrap_or_default())
    }
}
