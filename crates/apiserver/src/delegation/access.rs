//! Authorization by another server.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::Client;

use super::cache::Cache;
use super::review;
use crate::authz::{Attributes, Authorizer, Decision};
use crate::blocking;
use crate::cluster::LogicalCluster;

/// How long an answer is waited for where the thread is blocked meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

/// One question: who, verb, group, version, resource, subresource, namespace, name, path, selectors of
/// fields and labels.
type Question = (
    (String, String, Vec<String>, BTreeMap<String, Vec<String>>),
    [String; 10],
);

/// Asks another server who may do what.
pub struct AccessReviewer {
    client: Client,
    keep_allowed: Duration,
    keep_others: Duration,
    answers: Cache<Question, Decision>,
}

impl AccessReviewer {
    /// Asks by this client; keeps what is allowed, and what is not, for so long.
    pub fn new(client: Client, keep_allowed: Duration, keep_others: Duration) -> Self {
        Self {
            client,
            keep_allowed,
            keep_others,
            answers: Cache::default(),
        }
    }

    async fn answer(&self, attributes: &Attributes<'_>) -> Result<Decision, ApiError> {
        let question = question(attributes);
        if let Some(known) = self.answers.get(&question) {
            return Ok(known);
        }
        let answered = review(&self.client, &access_review(attributes))
            .await
            .map_err(|error| {
                tracing::warn!(%error, "it cannot be asked who may do what");
                ApiError::internal(error)
            })?;
        let status = answered.status.unwrap_or_default();
        let reason = status.reason.unwrap_or_default();
        let (decision, keep) = match (status.allowed, status.denied) {
            (true, Some(true)) => {
                let why = "webhook subject access review returned both allow and deny response";
                return Err(ApiError::internal(why));
            }
            (true, _) => (Decision::Allow, self.keep_allowed),
            (false, Some(true)) => (Decision::Deny(reason), self.keep_others),
            (false, _) => (Decision::NoOpinion(reason), self.keep_others),
        };
        self.answers.put(question, decision.clone(), keep);
        Ok(decision)
    }
}

#[async_trait]
impl Authorizer for AccessReviewer {
    fn authorize(&self, _: &LogicalCluster, attributes: &Attributes<'_>) -> Decision {
        if let Some(known) = self.answers.get(&question(attributes)) {
            return known;
        }
        match blocking::wait(PATIENCE, self.answer(attributes)) {
            Some(Ok(decision)) => decision,
            Some(Err(error)) => Decision::NoOpinion(error.message().to_owned()),
            None => Decision::NoOpinion("the server that knows did not answer in time".to_owned()),
        }
    }

    async fn ask(&self, _: &LogicalCluster, attributes: &Attributes<'_>) -> Result<Decision, ApiError> {
        self.answer(attributes).await
    }
}

fn question(attributes: &Attributes<'_>) -> Question {
    let user = attributes.user;
    let who = (
        user.name.clone(),
        user.uid.clone(),
        user.groups.clone(),
        user.extra.clone(),
    );
    let what = [
        attributes.verb,
        attributes.group,
        attributes.version,
        attributes.resource,
        attributes.subresource,
        attributes.namespace,
        attributes.name,
        attributes.path,
        attributes.field_selector,
        attributes.label_selector,
    ];
    (who, what.map(str::to_owned))
}

fn access_review(attributes: &Attributes<'_>) -> SubjectAccessReview {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let user = attributes.user;
    let resource = attributes.is_resource.then(|| ResourceAttributes {
        namespace: given(attributes.namespace),
        verb: given(attributes.verb),
        group: given(attributes.group),
        version: given(attributes.version),
        resource: given(attributes.resource),
        subresource: given(attributes.subresource),
        name: given(attributes.name),
        // the other server reads them; what it cannot read it leaves out, as upstream would here
        field_selector: given(attributes.field_selector).map(|raw| FieldSelectorAttributes {
            raw_selector: Some(raw),
            requirements: None,
        }),
        label_selector: given(attributes.label_selector).map(|raw| LabelSelectorAttributes {
            raw_selector: Some(raw),
            requirements: None,
        }),
    });
    let path = (!attributes.is_resource).then(|| NonResourceAttributes {
        path: given(attributes.path),
        verb: given(attributes.verb),
    });
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: given(&user.name),
            uid: given(&user.uid),
            groups: Some(user.groups.clone()).filter(|groups| !groups.is_empty()),
            extra: Some(user.extra.clone()).filter(|extra| !extra.is_empty()),
            resource_attributes: resource,
            non_resource_attributes: path,
        },
        ..SubjectAccessReview::default()
    }
}
