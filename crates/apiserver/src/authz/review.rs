//! Questions of authorization as SubjectAccessReviews, which are put to other servers, and the answers that are kept.

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apimachinery::selector::{FieldSelector, LabelSelector, Requirement};
use k8s_openapi::api::authorization::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldSelectorRequirement, LabelSelectorRequirement};

use super::{Attributes, Decision, Undecided};
use crate::delegation::cache::Cache;

/// How long a question may be, in bytes that the caller chooses, whose answer is kept: longer ones would only fill the memory.
const LONGEST_KEPT: usize = 10_000;

/// One question: who, verb, group, version, resource, subresource, namespace, name, path, selectors of
/// fields and labels.
type Question = (
    (String, String, Vec<String>, BTreeMap<String, Vec<String>>),
    [String; 10],
);

/// Answers of another server that are still good.
pub(crate) struct Answers {
    keep_allowed: Duration,
    keep_others: Duration,
    kept: Cache<Question, SubjectAccessReviewStatus>,
}

impl Answers {
    /// Keeps what is allowed, and what is not, for so long.
    pub(crate) fn new(keep_allowed: Duration, keep_others: Duration) -> Self {
        Self {
            keep_allowed,
            keep_others,
            kept: Cache::default(),
        }
    }

    /// What is known without asking.
    pub(crate) fn known(&self, attributes: &Attributes<'_>) -> Option<Result<Decision, Undecided>> {
        self.kept.get(&question(attributes)).map(decision)
    }

    /// Takes an answer in.
    pub(crate) fn take(
        &self,
        attributes: &Attributes<'_>,
        answer: SubjectAccessReviewStatus,
    ) -> Result<Decision, Undecided> {
        let question = question(attributes);
        let length: usize = question.1.iter().take(8).map(String::len).sum();
        if length < LONGEST_KEPT {
            let keep = match answer.allowed {
                true => self.keep_allowed,
                false => self.keep_others,
            };
            self.kept.put(question, answer.clone(), keep);
        }
        decision(answer)
    }
}

fn decision(answer: SubjectAccessReviewStatus) -> Result<Decision, Undecided> {
    let reason = answer.reason.unwrap_or_default();
    match (answer.allowed, answer.denied == Some(true)) {
        (true, true) => Err(Undecided {
            why: "webhook subject access review returned both allow and deny response".to_owned(),
            denies: true,
        }),
        (true, false) => Ok(Decision::Allow),
        (false, true) => Ok(Decision::Deny(reason)),
        (false, false) => Ok(Decision::NoOpinion(reason)),
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

/// A question as another server is asked it.
pub(crate) fn spec(attributes: &Attributes<'_>) -> SubjectAccessReviewSpec {
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
        field_selector: of_fields(attributes.field_selector),
        label_selector: of_labels(attributes.label_selector),
    });
    let path = (!attributes.is_resource).then(|| NonResourceAttributes {
        path: given(attributes.path),
        verb: given(attributes.verb),
    });
    SubjectAccessReviewSpec {
        user: given(&user.name),
        uid: given(&user.uid),
        groups: Some(user.groups.clone()).filter(|groups| !groups.is_empty()),
        extra: Some(user.extra.clone()).filter(|extra| !extra.is_empty()),
        resource_attributes: resource,
        non_resource_attributes: path,
    }
}

/// A field selector as its requirements. Selectors only narrow a question: one that cannot be read leaves the wider one.
fn of_fields(text: &str) -> Option<FieldSelectorAttributes> {
    let selector = FieldSelector::parse(text)
        .ok()
        .filter(|selector| !selector.is_empty())?;
    let requirements = selector
        .terms()
        .iter()
        .map(|(key, equal, value)| FieldSelectorRequirement {
            key: key.clone(),
            operator: if *equal { "In" } else { "NotIn" }.to_owned(),
            values: Some(vec![value.clone()]),
        });
    Some(FieldSelectorAttributes {
        raw_selector: None,
        requirements: Some(requirements.collect()),
    })
}

/// A label selector as its requirements, but for comparisons of numbers, for which reviews have no word. Sorted by key, as upstream's.
fn of_labels(text: &str) -> Option<LabelSelectorAttributes> {
    let selector = LabelSelector::parse(text).ok()?;
    let requirement = |key: &String, operator: &str, values: Option<&Vec<String>>| LabelSelectorRequirement {
        key: key.clone(),
        operator: operator.to_owned(),
        values: values.cloned(),
    };
    let told = selector.requirements().iter().filter_map(|own| match own {
        Requirement::Exists(key) => Some(requirement(key, "Exists", None)),
        Requirement::NotExists(key) => Some(requirement(key, "DoesNotExist", None)),
        Requirement::In(key, values) => Some(requirement(key, "In", Some(values))),
        Requirement::NotIn(key, values) => Some(requirement(key, "NotIn", Some(values))),
        Requirement::GreaterThan(..) | Requirement::LessThan(..) => None,
    });
    let mut requirements: Vec<_> = told.collect();
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    (!requirements.is_empty()).then_some(LabelSelectorAttributes {
        raw_selector: None,
        requirements: Some(requirements),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::user::UserInfo;

    #[test]
    fn selectors_are_told_as_requirements() {
        let user = UserInfo::new("a", &["g"]);
        let mut attributes = Attributes::of_resource(&user, "list", "", "pods", "ns", "");
        attributes.field_selector = "spec.nodeName=n,status.phase!=Failed";
        attributes.label_selector = "z in (y,x),a,!b,n>1";
        let told = serde_json::to_value(spec(&attributes).resource_attributes).unwrap();
        assert_eq!(
            told["fieldSelector"],
            json!({"requirements": [
                {"key": "spec.nodeName", "operator": "In", "values": ["n"]},
                {"key": "status.phase", "operator": "NotIn", "values": ["Failed"]},
            ]})
        );
        assert_eq!(
            told["labelSelector"],
            json!({"requirements": [
                {"key": "a", "operator": "Exists"},
                {"key": "b", "operator": "DoesNotExist"},
                {"key": "z", "operator": "In", "values": ["x", "y"]},
            ]})
        );
        attributes.field_selector = "nonsense";
        attributes.label_selector = "n>1";
        let told = serde_json::to_value(spec(&attributes).resource_attributes).unwrap();
        assert!(told.get("fieldSelector").is_none() && told.get("labelSelector").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_by_what_they_say() {
        let answers = Answers::new(Duration::from_secs(10), Duration::ZERO);
        let user = UserInfo::new("a", &[]);
        let (get, list) = (
            Attributes::of_resource(&user, "get", "", "pods", "ns", "x"),
            Attributes::of_resource(&user, "list", "", "pods", "ns", ""),
        );
        let answer = |allowed: bool, denied: bool| SubjectAccessReviewStatus {
            allowed,
            denied: Some(denied),
            reason: Some("r".into()),
            evaluation_error: None,
        };
        assert_eq!(answers.take(&get, answer(true, false)), Ok(Decision::Allow));
        assert_eq!(
            answers.take(&list, answer(false, false)),
            Ok(Decision::NoOpinion("r".into()))
        );
        assert_eq!(answers.known(&get), Some(Ok(Decision::Allow)));
        assert_eq!(answers.known(&list), None);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(answers.known(&get), None);
        assert_eq!(answers.take(&list, answer(false, true)), Ok(Decision::Deny("r".into())));
        assert!(answers.take(&list, answer(true, true)).unwrap_err().denies);
        let long = "n".repeat(LONGEST_KEPT);
        let get = Attributes::of_resource(&user, "get", "", "pods", "ns", &long);
        assert_eq!(answers.take(&get, answer(true, false)), Ok(Decision::Allow));
        assert_eq!(answers.known(&get), None);
    }
}
