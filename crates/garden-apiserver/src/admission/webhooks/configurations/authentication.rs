//! Whose tokens a shoot accepts anyway, and what it says of requests without any: what a structured authentication configuration must not
//! contradict. What else kube-apiserver says of one is the API server's own.

use std::collections::BTreeSet;

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::label;
use gardener_apis::core::v1beta1::Shoot;
use gardener_apiserver::definition::Lister;
use gardener_apiserver::meta;

use super::server;
use crate::lookup;

/// The issuers that are the shoot's own, and cannot be somebody else's.
pub(super) fn issuers(shoot: &Shoot) -> BTreeSet<String> {
    const OWN: [&str; 3] = ["service-account-issuer", "internal", "external"];
    let config = server(shoot).and_then(|server| server.service_account_config.as_ref());
    let accepted = config
        .iter()
        .flat_map(|config| config.accepted_issuers.iter().chain(&config.issuer));
    let addresses = shoot.status.advertised_addresses.iter();
    let addresses = addresses.filter(|own| OWN.contains(&own.name.as_str()));
    accepted.chain(addresses.map(|own| &own.url)).cloned().collect()
}

/// The issuers that the garden is for shoots, whether or not they say so yet; none where it is no issuer.
pub(super) fn managed_issuers(shoots: &[Shoot], lister: &dyn Lister) -> Vec<String> {
    let mut managed = shoots.iter().filter(|shoot| shoot.has_managed_issuer()).peekable();
    if managed.peek().is_none() {
        return Vec::new();
    }
    let hostname = lookup::issuer_secret(lister).and_then(|secret| lookup::secret_data(&secret, "hostname"));
    let Some(hostname) = hostname
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|own| !own.is_empty())
    else {
        return Vec::new();
    };
    let issuer = |shoot: &Shoot| {
        let namespace = lister.get("", "namespaces", "", shoot.project_namespace())?;
        let labels = meta::string_map(namespace.at("/metadata/labels"));
        let project = labels.get(label::PROJECT_NAME)?;
        let uid = shoot.metadata.uid.as_deref().filter(|uid| !uid.is_empty())?;
        Some(format!("https://{hostname}/projects/{project}/shoots/{uid}/issuer"))
    };
    managed.filter_map(issuer).collect()
}

/// Whether a shoot says by the older field whether requests without credentials are taken.
pub(super) fn sets_anonymous(shoot: &Shoot) -> bool {
    server(shoot).is_some_and(|server| server.enable_anonymous_authentication.is_some())
}

#[cfg(test)]
mod tests {
    use gardener_apiserver::authn::configuration::Configuration;

    #[test]
    fn adm_73_whose_tokens_are_taken() {
        let check = |text: &str| -> Vec<String> {
            let configuration: Configuration = serde_saphyr::from_str(text).unwrap();
            let errors = configuration.errors(&["https://own".to_owned()]);
            errors.iter().map(ToString::to_string).collect()
        };
        let jwt = |issuer: &str, more: &str| {
            format!("jwt: [{{issuer: {{{issuer}}}, claimMappings: {{username: {{claim: sub, prefix: ''}}}}{more}}}]")
        };
        assert_eq!(check("{}"), Vec::<String>::new());
        assert_eq!(check(&jwt("url: https://a, audiences: [x]", "")), Vec::<String>::new());
        for (text, why) in [
            (jwt("audiences: [x]", ""), "jwt[0].issuer.url: Required value"),
            (jwt("url: http://a, audiences: [x]", ""), "URL scheme must be https"),
            (
                jwt("url: https://own, audiences: [x]", ""),
                "must not overlap with disallowed issuers: [https://own]",
            ),
            (
                jwt("url: https://a?b=c, audiences: [x]", ""),
                "must not contain a query",
            ),
            (jwt("url: https://a", ""), "jwt[0].issuer.audiences: Required value"),
            (
                jwt("url: https://a, audiences: [x, y]", ""),
                "must be MatchAny for multiple audiences",
            ),
            (
                jwt("url: https://a, discoveryURL: https://a/, audiences: [x]", ""),
                "discoveryURL must be different from URL",
            ),
            (
                jwt("url: https://a, audiences: [x]", ", claimValidationRules: [{}]"),
                "claim or expression is required",
            ),
            (
                jwt(
                    "url: https://a, audiences: [x]",
                    ", userValidationRules: [{expression: claims.sub}]",
                ),
                "undeclared reference to 'claims'",
            ),
            (
                "jwt: [{issuer: {url: https://a, audiences: [x]}, claimMappings: {username: {claim: sub}}}]".to_owned(),
                "prefix is required when claim is set",
            ),
            (
                "anonymous: {conditions: [{path: /livez}]}".to_owned(),
                "enabled should be set to true when conditions are defined",
            ),
        ] {
            let found = check(&text);
            assert!(found.len() == 1 && found[0].contains(why), "{text}: {found:?}");
        }
    }
}
