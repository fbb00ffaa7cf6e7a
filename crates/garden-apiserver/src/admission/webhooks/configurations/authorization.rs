//! What Gardener and kube-apiserver say of a structured authorization configuration: webhooks only, with the kubeconfigs that the shoot names.

use std::collections::BTreeSet;

use gardener_apimachinery::duration::Duration;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use gardener_apis::core::v1beta1::Shoot;
use serde::Deserialize;
use serde_json::Value;

use super::server;

/// `AuthorizationConfiguration`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Configuration {
    authorizers: Vec<Authorizer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Authorizer {
    r#type: String,
    name: String,
    webhook: Option<Webhook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Webhook {
    #[serde(rename = "authorizedTTL")]
    authorized_ttl: Option<Duration>,
    #[serde(rename = "unauthorizedTTL")]
    unauthorized_ttl: Option<Duration>,
    timeout: Option<Duration>,
    subject_access_review_version: String,
    match_condition_subject_access_review_version: String,
    failure_policy: String,
    connection_info: Option<Value>,
    match_conditions: Vec<MatchCondition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MatchCondition {
    expression: String,
}

/// The authorizers for which a shoot names a kubeconfig.
pub(super) fn with_kubeconfig(shoot: &Shoot) -> BTreeSet<&str> {
    let own = server(shoot).and_then(|server| server.structured_authorization.as_ref());
    let kubeconfigs = own.into_iter().flat_map(|own| &own.kubeconfigs);
    kubeconfigs.map(|own| own.authorizer_name.as_str()).collect()
}

/// The names of the webhooks.
pub(super) fn webhooks(configuration: &Configuration) -> impl Iterator<Item = &str> {
    let all = configuration.authorizers.iter();
    let webhooks = all.filter(|own| own.r#type == "Webhook" && own.webhook.is_some());
    webhooks.map(|own| own.name.as_str())
}

/// Nobody but Gardener says how the webhooks are reached.
pub(super) fn connections(configuration: &Configuration) -> ErrorList {
    let says = |info: &Value| info.as_object().is_some_and(|info| !info.is_empty());
    let all = configuration.authorizers.iter().enumerate();
    let mut wrong = all.filter(|(_, own)| {
        let webhook = own.webhook.as_ref().filter(|_| own.r#type == "Webhook");
        webhook
            .and_then(|webhook| webhook.connection_info.as_ref())
            .is_some_and(says)
    });
    let first = wrong.next().map(|(i, _)| {
        let path = Path::new("authorizers").index(i).child("connectionInfo");
        Error::forbidden(&path, "connectionInfo is not allowed to be set")
    });
    first.into_iter().collect()
}

/// All that is wrong with it. Expressions are not compiled here: a shoot's kube-apiserver does that.
pub(super) fn validate(configuration: &Configuration) -> ErrorList {
    let root = Path::new("authorizers");
    let all = &configuration.authorizers;
    if all.is_empty() {
        return vec![Error::required(
            &root,
            "at least one authorization mode must be defined",
        )];
    }
    let mut errors = ErrorList::new();
    for (i, own) in all.iter().enumerate() {
        let path = root.index(i);
        match own.r#type.as_str() {
            "" => {
                errors.push(Error::required(&path.child("type"), ""));
                continue;
            }
            "Webhook" => {}
            other => {
                errors.push(Error::not_supported(&path.child("type"), other, &["Webhook"]));
                continue;
            }
        }
        let at = path.child("name");
        let wrong = names::dns_subdomain(&own.name);
        if own.name.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if all.iter().take(i).any(|before| before.name == own.name) {
            errors.push(Error::duplicate(&at, own.name.as_str()));
        } else if !wrong.is_empty() {
            let why = format!("authorizer name is invalid: {}", wrong.join(", "));
            errors.push(Error::invalid(&at, own.name.as_str(), why));
        }
        match &own.webhook {
            Some(own) => errors.extend(webhook(own, &path)),
            None => errors.push(Error::required(&path.child("webhook"), "required when type=Webhook")),
        }
    }
    errors
}

fn webhook(own: &Webhook, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value, most) in [
        ("timeout", own.timeout, Some(30)),
        ("authorizedTTL", own.authorized_ttl, None),
        ("unauthorizedTTL", own.unauthorized_ttl, None),
    ] {
        let at = path.child(name);
        // what is not said is as upstream's default
        let Some(value) = value.filter(|value| !value.to_std().is_zero()) else {
            continue;
        };
        if most.is_some_and(|most| value.to_std().as_secs_f64() > f64::from(most)) {
            errors.push(Error::invalid(&at, value.to_string(), "must be > 0s and <= 30s"));
        }
    }
    let mut one_of = |name: &str, value: &str, known: &[&str], needed: Option<&str>| {
        let at = path.child(name);
        match (value, needed) {
            ("", Some(why)) => errors.push(Error::required(&at, why)),
            ("", None) => {}
            (value, _) if !known.contains(&value) => errors.push(Error::not_supported(&at, value, known)),
            _ => {}
        }
    };
    let version = own.subject_access_review_version.as_str();
    one_of("subjectAccessReviewVersion", version, &["v1", "v1beta1"], Some(""));
    let conditional = (!own.match_conditions.is_empty()).then_some("required if match conditions are specified");
    one_of(
        "matchConditionSubjectAccessReviewVersion",
        &own.match_condition_subject_access_review_version,
        &["v1"],
        conditional,
    );
    one_of("failurePolicy", &own.failure_policy, &["NoOpinion", "Deny"], Some(""));
    let (at, conditions) = (path.child("matchConditions"), &own.match_conditions);
    if conditions.len() > 64 {
        errors.push(Error::too_many(&at, conditions.len(), 64));
        return errors;
    }
    for (i, condition) in conditions.iter().enumerate() {
        let at = at.index(i).child("expression");
        let expression = condition.expression.as_str();
        if expression.trim().is_empty() {
            errors.push(Error::required(&at, ""));
        } else if conditions.iter().take(i).any(|before| before.expression == expression) {
            errors.push(Error::duplicate(&at, expression));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_73_who_may_be_asked() {
        let read = |text: &str| -> Configuration { serde_saphyr::from_str(text).unwrap() };
        let check = |text: &str| -> Vec<String> {
            let errors = validate(&read(text));
            errors.iter().map(ToString::to_string).collect()
        };
        let webhook = |more: &str| {
            format!(
                "authorizers: [{{type: Webhook, name: a, webhook: {{subjectAccessReviewVersion: v1, failurePolicy: Deny{more}}}}}]"
            )
        };
        assert_eq!(
            check(&webhook(", timeout: 3s, authorizedTTL: 5m0s")),
            Vec::<String>::new()
        );
        for (text, why) in [
            ("{}".to_owned(), "at least one authorization mode must be defined"),
            (
                "authorizers: [{type: RBAC, name: a}]".to_owned(),
                "Unsupported value: \"RBAC\": supported values: \"Webhook\"",
            ),
            (
                "authorizers: [{type: Webhook, name: a}]".to_owned(),
                "required when type=Webhook",
            ),
            (webhook(", timeout: 31s"), "must be > 0s and <= 30s"),
            (
                webhook(", matchConditions: [{expression: x}]"),
                "required if match conditions are specified",
            ),
        ] {
            let found = check(&text);
            assert!(found.len() == 1 && found[0].contains(why), "{text}: {found:?}");
        }
        let own = connections(&read(&webhook(", connectionInfo: {type: InCluster}")));
        assert_eq!(own.len(), 1);
        assert!(connections(&read(&webhook(""))).is_empty());
    }
}
