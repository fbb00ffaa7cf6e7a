//! Bearer tokens that a webhook reads, which is asked by TokenReview.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenReviewStatus;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::authz::configuration::ReviewVersion;
use crate::cluster::LogicalCluster;
use crate::delegation::cache::{Cache, digest};
use crate::user::UserInfo;
use crate::webhooks::{self, Endpoint, KubeconfigError, Unanswered, check_kind};
use crate::{meta, retry};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenReview";
/// How long all questions about one token may take; as upstream.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why no webhook can be asked.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct TokenWebhookError {
    /// The kubeconfig that should lead to it.
    path: PathBuf,
    /// What is wrong with that.
    source: KubeconfigError,
}

/// Whom a token stands for, and for which audiences it is good.
type Known = (UserInfo, Vec<String>);

/// Asks a webhook whose a bearer token is.
pub struct TokenWebhook {
    endpoint: Endpoint,
    version: ReviewVersion,
    keep: Duration,
    /// By the digest of the token and of the audiences that it should be for. None for tokens that nobody has.
    answers: Cache<[u8; 32], Option<Known>>,
}

impl TokenWebhook {
    /// The webhook that a kubeconfig leads to, which reads this version of TokenReview; answers are kept for so long.
    ///
    /// # Errors
    /// The kubeconfig leads nowhere.
    pub fn new(kubeconfig: &Path, version: ReviewVersion, keep: Duration) -> Result<Self, TokenWebhookError> {
        let endpoint = Endpoint::of_kubeconfig(kubeconfig).map_err(|source| TokenWebhookError {
            path: kubeconfig.to_owned(),
            source,
        })?;
        Ok(Self {
            endpoint,
            version,
            keep,
            answers: Cache::default(),
        })
    }

    /// Whom a token stands for that should be for one of the audiences `wanted`, if there are any; one of which nothing else is said is for `own`.
    /// Nothing, if nobody has it.
    ///
    /// # Errors
    /// The webhook says why it does not know, or does not answer. Neither is kept.
    pub(super) async fn user(
        &self,
        cluster: &LogicalCluster,
        token: &str,
        wanted: &[String],
        own: &[String],
    ) -> Result<Option<Known>, String> {
        let key = digest([token].into_iter().chain(wanted.iter().map(String::as_str)));
        if let Some(known) = self.answers.get(&key) {
            return Ok(known);
        }
        let question = written(self.version, token, wanted);
        let attempt = || webhooks::ask(cluster, &self.endpoint, PATIENCE, &question);
        let asked = retry::repeated(attempt, |unanswered: &Unanswered| unanswered.passing);
        let answered = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(answered) => answered.map_err(|unanswered| unanswered.why),
            Err(_) => Err("context deadline exceeded".to_owned()),
        };
        let answer = answered.inspect_err(|error| tracing::warn!(error, "a token webhook did not answer"))?;
        let found = judged(read(self.version, &answer)?, wanted, own)?;
        self.answers.put(key, found.clone(), self.keep);
        Ok(found)
    }
}

/// A question in the version that the webhook reads.
fn written(version: ReviewVersion, token: &str, audiences: &[String]) -> Value {
    let mut spec = json!({"token": token});
    if !audiences.is_empty() {
        spec["audiences"] = json!(audiences);
    }
    json!({
        "kind": KIND,
        "apiVersion": format!("{GROUP}/{}", version.name()),
        "metadata": {},
        "spec": spec,
        "status": {"user": {}},
    })
}

/// The answer to a question of this version.
fn read(version: ReviewVersion, answer: &Value) -> Result<TokenReviewStatus, String> {
    let (api_version, kind) = (meta::text(answer, "/apiVersion"), meta::text(answer, "/kind"));
    check_kind((GROUP, KIND), version.name(), api_version, kind)?;
    match answer.get("status") {
        None | Some(Value::Null) => Ok(TokenReviewStatus::default()),
        Some(status) => TokenReviewStatus::deserialize(status).map_err(|why| format!("json: {why}")),
    }
}

fn judged(status: TokenReviewStatus, wanted: &[String], own: &[String]) -> Result<Option<Known>, String> {
    let told = status.audiences.filter(|told| !told.is_empty());
    let told = told.as_deref().unwrap_or(own);
    let good_for: Vec<String> = wanted
        .iter()
        .filter(|audience| told.contains(audience))
        .cloned()
        .collect();
    if !wanted.is_empty() && good_for.is_empty() {
        return Ok(None);
    }
    if status.authenticated != Some(true) {
        return match status.error.filter(|error| !error.is_empty()) {
            Some(error) => Err(error),
            None => Ok(None),
        };
    }
    let user = status.user.unwrap_or_default();
    let mut user = UserInfo {
        name: user.username.unwrap_or_default(),
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    };
    user.admit();
    Ok(Some((user, good_for)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::Answering;

    struct Case {
        cluster: Arc<LogicalCluster>,
        transport: Arc<Answering>,
        webhook: TokenWebhook,
    }

    impl Case {
        fn of(version: ReviewVersion, statuses: &[Value]) -> Self {
            let cluster = LogicalCluster::in_memory();
            let answers = statuses.iter().map(|status| match status.get("kind") {
                Some(_) => Ok((500, status.clone())),
                None => {
                    let api_version = format!("{GROUP}/{}", version.name());
                    Ok((200, json!({"apiVersion": api_version, "kind": KIND, "status": status})))
                }
            });
            let (transport, file) = Answering::of(&cluster, answers.collect());
            Self {
                cluster,
                transport,
                webhook: TokenWebhook::new(file.path(), version, Duration::from_secs(60)).unwrap(),
            }
        }

        async fn ask(&self, wanted: &[&str]) -> Result<Option<Known>, String> {
            let wanted: Vec<String> = wanted.iter().map(|own| (*own).to_owned()).collect();
            self.webhook
                .user(&self.cluster, "t", &wanted, &["api".to_owned()])
                .await
        }

        fn asked(&self) -> usize {
            self.transport.asked().len()
        }
    }

    fn alice() -> Value {
        let user = json!({"username": "alice", "uid": "1", "groups": ["dev"], "extra": {"a": ["b"]}});
        json!({"authenticated": true, "user": user})
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_by_token_and_audiences() {
        for version in [ReviewVersion::V1, ReviewVersion::V1Beta1] {
            let case = Case::of(version, &[alice()]);
            for _ in 0..2 {
                let (user, audiences) = case.ask(&["x", "api"]).await.unwrap().unwrap();
                assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", "1"));
                assert_eq!(user.groups, ["dev", "system:authenticated"]);
                assert_eq!(
                    (user.extra["a"].as_slice(), audiences.as_slice()),
                    (&["b".to_owned()][..], &["api".to_owned()][..])
                );
            }
            assert_eq!(case.asked(), 1);
            let asked = case.transport.asked()[0].1.clone();
            let expected = json!({
                "apiVersion": format!("authentication.k8s.io/{}", version.name()), "kind": "TokenReview", "metadata": {},
                "spec": {"token": "t", "audiences": ["x", "api"]}, "status": {"user": {}},
            });
            assert_eq!(asked, expected);
            assert!(case.ask(&["other"]).await.unwrap().is_none(), "it is for the API alone");
            assert!(case.ask(&[]).await.unwrap().is_some());
            assert_eq!(case.asked(), 3);
            tokio::time::advance(Duration::from_secs(60)).await;
            assert!(case.ask(&["other"]).await.unwrap().is_none());
            assert_eq!(case.asked(), 4);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_kept_and_errors_are_not() {
        let nobody = Case::of(ReviewVersion::V1, &[json!({"authenticated": false})]);
        let error = Case::of(ReviewVersion::V1, &[json!({"error": "who knows"})]);
        for _ in 0..2 {
            assert_eq!(nobody.ask(&["api"]).await, Ok(None));
            assert_eq!(error.ask(&["api"]).await, Err("who knows".to_owned()));
        }
        assert_eq!((nobody.asked(), error.asked()), (1, 2));
        let mut told = alice();
        told["audiences"] = json!(["vault"]);
        let elsewhere = Case::of(ReviewVersion::V1, &[told]);
        assert_eq!(elsewhere.ask(&["api"]).await, Ok(None));
        assert_eq!(elsewhere.ask(&["vault"]).await.unwrap().unwrap().1, ["vault"]);
        let busy = json!({"kind": "Status", "status": "Failure", "reason": "InternalError", "message": "busy"});
        let passing = Case::of(ReviewVersion::V1, &[busy.clone(), alice()]);
        assert!(passing.ask(&["api"]).await.unwrap().is_some());
        assert_eq!(passing.asked(), 2);
        let failing = Case::of(ReviewVersion::V1, &[busy]);
        assert_eq!(failing.ask(&["api"]).await, Err("busy".to_owned()));
        assert_eq!(failing.asked(), 5);
    }
}
