//! What Gardener and kube-apiserver say of a structured authorization configuration: webhooks only, with the kubeconfigs that the shoot names.

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::core::v1beta1::Shoot;
use gardener_apiserver::authz::configuration::{ConnectionInfo, Document};

use super::server;

/// The only type of authorizers that shoots may have besides their own.
const WEBHOOK: &str = "Webhook";

/// The authorizers for which a shoot names a kubeconfig.
pub(super) fn with_kubeconfig(shoot: &Shoot) -> BTreeSet<&str> {
    let own = server(shoot).and_then(|server| server.structured_authorization.as_ref());
    let kubeconfigs = own.into_iter().flat_map(|own| &own.kubeconfigs);
    kubeconfigs.map(|own| own.authorizer_name.as_str()).collect()
}

/// The names of the webhooks.
pub(super) fn webhooks(configuration: &Document) -> impl Iterator<Item = &str> {
    let all = configuration.authorizers().iter();
    let webhooks = all.filter(|own| own.r#type == WEBHOOK && own.webhook.is_some());
    webhooks.map(|own| own.name.as_str())
}

/// Nobody but Gardener says how the webhooks are reached.
pub(super) fn connections(configuration: &Document) -> ErrorList {
    let all = configuration.authorizers().iter().enumerate();
    let mut wrong = all.filter(|(_, own)| {
        let webhook = own.webhook.as_ref().filter(|_| own.r#type == WEBHOOK);
        webhook.is_some_and(|webhook| webhook.connection_info != ConnectionInfo::default())
    });
    let first = wrong.next().map(|(i, _)| {
        let path = Path::new("authorizers").index(i).child("connectionInfo");
        Error::forbidden(&path, "connectionInfo is not allowed to be set")
    });
    first.into_iter().collect()
}

/// All that is wrong with it, once it is known that it says nothing of connections: Gardener will.
pub(super) fn validate(mut configuration: Document) -> ErrorList {
    for own in configuration.authorizers_mut() {
        if let Some(webhook) = &mut own.webhook {
            webhook.connection_info.r#type = "InClusterConfig".to_owned();
        }
    }
    // so does upstream call the root
    configuration.validate(&[WEBHOOK], &Path::new("[].authorizers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_73_who_may_be_asked() {
        let read = |text: &str| -> Document { serde_saphyr::from_str(text).unwrap() };
        let check = |text: &str| -> Vec<String> {
            let errors = validate(read(text));
            errors.iter().map(ToString::to_string).collect()
        };
        let webhook = |more: &str| {
            format!(
                "authorizers: [{{type: Webhook, name: a, webhook: {{subjectAccessReviewVersion: v1, failurePolicy: Deny{more}}}}}]"
            )
        };
        assert_eq!(
            check(&webhook(
                ", timeout: 3s, authorizedTTL: 5m0s, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: \"request.user != 'a'\"}]"
            )),
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
            (webhook(""), "[].authorizers[0].timeout: Required value"),
            (webhook(", timeout: 31s"), "must be > 0s and <= 30s"),
            (
                webhook(", timeout: 3s, matchConditions: [{expression: 'true'}]"),
                "required if match conditions are specified",
            ),
            (
                webhook(
                    ", timeout: 3s, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: x}]",
                ),
                "[].authorizers[0].matchConditions[0].expression: Invalid value: \"x\": compilation failed",
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
