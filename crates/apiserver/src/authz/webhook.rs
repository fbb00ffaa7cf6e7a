//! Authorization by a webhook, which is asked by SubjectAccessReview.

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authorization::v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chain::ChainError;
use super::conditions::{self, Condition};
use super::configuration::{ReviewVersion, WebhookConfiguration};
use super::review::{self, Answers};
use super::{Attributes, Authorizer, Decision, Undecided, Unresolved};
use crate::blocking;
use crate::cluster::LogicalCluster;
use crate::user::UserInfo;
use crate::webhooks::{self, Endpoint, Unanswered, check_kind};
use crate::{meta, retry};

const GROUP: &str = "authorization.k8s.io";
const KIND: &str = "SubjectAccessReview";

/// Asks a webhook who may do what.
pub struct Webhook {
    endpoint: Endpoint,
    timeout: Duration,
    version: ReviewVersion,
    fails_closed: bool,
    conditions: Vec<Condition>,
    answers: Answers,
}

impl Webhook {
    /// A webhook under this name. Reads the kubeconfig that leads to it.
    ///
    /// # Errors
    /// The kubeconfig leads nowhere, or an expression is wrong.
    pub fn new(name: &str, configuration: &WebhookConfiguration) -> Result<Self, ChainError> {
        let path = &configuration.kubeconfig;
        let endpoint = Endpoint::of_kubeconfig(path).map_err(|source| ChainError::Kubeconfig {
            name: name.to_owned(),
            path: path.clone(),
            source,
        })?;
        let conditions = configuration.conditions.iter().map(|own| Condition::new(own));
        let conditions = conditions.collect::<Result<_, _>>();
        Ok(Self {
            endpoint,
            timeout: configuration.timeout,
            version: configuration.version,
            fails_closed: configuration.fails_closed,
            conditions: conditions.map_err(|why| ChainError::Condition {
                name: name.to_owned(),
                why,
            })?,
            answers: Answers::new(configuration.keep_allowed, configuration.keep_others),
        })
    }

    fn undecided(&self, why: String) -> Undecided {
        Undecided {
            why,
            denies: self.fails_closed,
        }
    }

    async fn review(
        &self,
        cluster: &LogicalCluster,
        spec: &SubjectAccessReviewSpec,
    ) -> Result<SubjectAccessReviewStatus, Unanswered> {
        let question = written(self.version, spec);
        let attempt = || webhooks::ask(cluster, &self.endpoint, self.timeout, &question);
        let answer = retry::repeated(attempt, |unanswered| unanswered.passing).await?;
        read(self.version, &answer).map_err(Unanswered::lasting)
    }
}

#[async_trait]
impl Authorizer for Webhook {
    fn authorize(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        // conditions are looked at first: they cost no time, and what is known is known of questions that were asked
        let answered = blocking::wait(self.timeout, self.ask(cluster, attributes));
        let answered = answered.unwrap_or_else(|| Err(self.undecided("the webhook did not answer in time".to_owned())));
        answered.unwrap_or_else(Undecided::decision)
    }

    async fn ask(&self, cluster: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, Undecided> {
        let spec = review::spec(attributes);
        match conditions::hold(&self.conditions, &spec) {
            Ok(true) => {}
            Ok(false) => return Ok(Decision::NoOpinion(String::new())),
            Err(why) => return Err(self.undecided(why)),
        }
        if let Some(known) = self.answers.known(attributes) {
            return known;
        }
        let answer = self.review(cluster, &spec).await.map_err(|unanswered| {
            tracing::warn!(error = unanswered.why, "an authorization webhook did not answer");
            self.undecided(unanswered.why)
        })?;
        self.answers.take(attributes, answer)
    }

    fn rules(&self, _: &LogicalCluster, _: &UserInfo, _: &str, _: &mut dyn FnMut(&PolicyRule)) -> Vec<Unresolved> {
        vec![Unresolved::silent(
            "webhook authorizer does not support user rule resolution",
        )]
    }
}

/// A question in the version that the webhook reads.
fn written(version: ReviewVersion, spec: &SubjectAccessReviewSpec) -> Value {
    let mut spec = json!(spec);
    if let (ReviewVersion::V1Beta1, Value::Object(spec)) = (version, &mut spec)
        && let Some(groups) = spec.remove("groups")
    {
        spec.insert("group".to_owned(), groups);
    }
    json!({
        "kind": KIND,
        "apiVersion": format!("{GROUP}/{}", version.name()),
        "metadata": {},
        "spec": spec,
        "status": {"allowed": false},
    })
}

/// The answer to a question of this version.
fn read(version: ReviewVersion, answer: &Value) -> Result<SubjectAccessReviewStatus, String> {
    let (api_version, kind) = (meta::text(answer, "/apiVersion"), meta::text(answer, "/kind"));
    check_kind((GROUP, KIND), version.name(), api_version, kind)?;
    match answer.get("status") {
        None | Some(Value::Null) => Ok(SubjectAccessReviewStatus::default()),
        Some(status) => SubjectAccessReviewStatus::deserialize(status).map_err(|why| format!("json: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::super::Union;
    use super::super::chain::Always;
    use super::*;
    use crate::testing::Answering;

    struct Case {
        cluster: Arc<LogicalCluster>,
        transport: Arc<Answering>,
        webhook: Arc<Webhook>,
    }

    impl Case {
        fn of(answers: Vec<Result<(u16, Value), String>>, change: impl FnOnce(&mut WebhookConfiguration)) -> Self {
            let cluster = LogicalCluster::in_memory();
            let (transport, file) = Answering::of(&cluster, answers);
            let mut configuration = WebhookConfiguration {
                timeout: Duration::from_millis(1500),
                keep_allowed: Duration::from_secs(10),
                keep_others: Duration::ZERO,
                version: ReviewVersion::V1,
                fails_closed: false,
                kubeconfig: file.path().to_owned(),
                conditions: Vec::new(),
            };
            change(&mut configuration);
            Self {
                cluster,
                transport,
                webhook: Arc::new(Webhook::new("a", &configuration).unwrap()),
            }
        }

        async fn ask(&self, verb: &str) -> Result<Decision, Undecided> {
            let user = UserInfo::new("alice", &["dev"]);
            let question = Attributes::of_resource(&user, verb, "apps", "deployments/scale", "ns", "n");
            self.webhook.ask(&self.cluster, &question).await
        }

        fn asked(&self) -> usize {
            self.transport.asked().len()
        }
    }

    fn status(status: Value) -> Result<(u16, Value), String> {
        let answer = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status});
        Ok((201, answer))
    }

    #[tokio::test(start_paused = true)]
    async fn questions_are_put_in_the_version_of_the_webhook() {
        let case = Case::of(vec![status(json!({"allowed": true}))], |_| {});
        assert_eq!(case.ask("update").await, Ok(Decision::Allow));
        let (url, asked) = case.transport.asked()[0].clone();
        assert_eq!(url, "https://h/asked");
        let resource = json!({
            "group": "apps", "name": "n", "namespace": "ns", "resource": "deployments", "subresource": "scale", "verb": "update", "version": "*",
        });
        let groups = json!(["dev", "system:authenticated"]);
        let mut expected = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
            "spec": {"user": "alice", "groups": groups, "resourceAttributes": resource}, "status": {"allowed": false},
        });
        assert_eq!(asked, expected);
        let old = json!({"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview", "status": {"allowed": true}});
        let case = Case::of(vec![Ok((200, old))], |own| own.version = ReviewVersion::V1Beta1);
        assert_eq!(case.ask("update").await, Ok(Decision::Allow));
        expected["apiVersion"] = "authorization.k8s.io/v1beta1".into();
        expected["spec"] = json!({"user": "alice", "group": groups, "resourceAttributes": resource});
        assert_eq!(case.transport.asked()[0].1, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_decide_and_those_that_allow_are_kept() {
        let allowed = Case::of(vec![status(json!({"allowed": true}))], |_| {});
        for _ in 0..2 {
            assert_eq!(allowed.ask("get").await, Ok(Decision::Allow));
        }
        assert_eq!(allowed.asked(), 1);
        assert_eq!(allowed.ask("list").await, Ok(Decision::Allow));
        assert_eq!(allowed.asked(), 2);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(allowed.ask("get").await, Ok(Decision::Allow));
        assert_eq!(allowed.asked(), 3);
        for (answer, expected) in [
            (
                json!({"allowed": false, "denied": true, "reason": "no"}),
                Decision::Deny("no".into()),
            ),
            (
                json!({"allowed": false, "reason": "who knows"}),
                Decision::NoOpinion("who knows".into()),
            ),
            (Value::Null, Decision::NoOpinion(String::new())),
        ] {
            let case = Case::of(vec![status(answer)], |_| {});
            for _ in 0..2 {
                assert_eq!(case.ask("get").await, Ok(expected.clone()));
            }
            assert_eq!(case.asked(), 2);
        }
        let both = Case::of(vec![status(json!({"allowed": true, "denied": true}))], |_| {});
        assert!(both.ask("get").await.unwrap_err().denies);
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_asked_again_and_what_lasts_is_told() {
        let busy = Ok((
            503,
            json!({"kind": "Status", "status": "Failure", "reason": "InternalError", "message": "busy"}),
        ));
        let reset = Err("read: connection reset by peer".to_owned());
        let case = Case::of(vec![busy.clone(), reset, status(json!({"allowed": true}))], |_| {});
        let begun = Instant::now();
        assert_eq!(case.ask("get").await, Ok(Decision::Allow));
        assert_eq!((case.asked(), begun.elapsed()), (3, Duration::from_millis(1250)));
        let case = Case::of(vec![busy], |_| {});
        let undecided = case.ask("get").await.unwrap_err();
        assert_eq!(
            (undecided.why.as_str(), undecided.denies, case.asked()),
            ("busy", false, 5)
        );
        let other = json!({"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview"});
        for (answer, expected) in [
            (
                Err("dial tcp h:443: connect: connection refused".to_owned()),
                "Post \"https://h/asked?timeout=1.5s\": dial tcp h:443: connect: connection refused",
            ),
            (Ok((404, json!({}))), "the server could not find the requested resource"),
            (
                Ok((200, other)),
                "converting (v1beta1.SubjectAccessReview) to (v1.SubjectAccessReview): unknown conversion",
            ),
        ] {
            let case = Case::of(vec![answer], |own| own.fails_closed = true);
            let undecided = case.ask("get").await.unwrap_err();
            assert_eq!(
                (undecided.why.as_str(), undecided.denies, case.asked()),
                (expected, true, 1)
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn conditions_keep_questions_away() {
        let answers = || vec![status(json!({"allowed": true}))];
        let with = |condition: &str, fails_closed: bool| {
            Case::of(answers(), |own| {
                own.conditions = vec![condition.to_owned()];
                own.fails_closed = fails_closed;
            })
        };
        let only_gets = with("request.resourceAttributes.verb == 'get'", true);
        assert_eq!(only_gets.ask("get").await, Ok(Decision::Allow));
        assert_eq!(only_gets.ask("list").await, Ok(Decision::NoOpinion(String::new())));
        assert_eq!(only_gets.asked(), 1);
        for fails_closed in [true, false] {
            let fails = with("request.nonResourceAttributes.path == ''", fails_closed);
            assert_eq!(fails.ask("get").await.unwrap_err().denies, fails_closed);
            assert_eq!(fails.asked(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_fails_open_leaves_it_to_others() {
        let refused = || Err("dial tcp h:443: connect: connection refused".to_owned());
        let user = UserInfo::new("alice", &[]);
        let question = Attributes::of_resource(&user, "get", "", "pods", "ns", "n");
        for (fails_closed, after, allowed) in [
            (false, Decision::Allow, Some(Decision::Allow)),
            (false, Decision::NoOpinion(String::new()), None),
            (true, Decision::Allow, None),
        ] {
            let case = Case::of(vec![refused()], |own| own.fails_closed = fails_closed);
            let union = Union(vec![case.webhook.clone(), Arc::new(Always(after))]);
            let decided = union.ask(&case.cluster, &question).await;
            assert_eq!(decided.as_ref().ok(), allowed.as_ref());
            if let Err(undecided) = decided {
                assert_eq!(undecided.denies, fails_closed);
            }
            let rules = union.rules(&case.cluster, &user, "ns", &mut |_| {});
            assert_eq!(
                rules,
                [Unresolved::silent(
                    "webhook authorizer does not support user rule resolution"
                )]
            );
        }
    }
}
