use gardener_apimachinery::field;

use super::*;

const GOOD: &str = "issuer: {url: 'https://i', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}";

/// What is wrong with a configuration of these authenticators.
fn wrong(jwt: &str, more: &str) -> Result<usize, String> {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
    let text = format!("{head}jwt: [{jwt}]\n{more}\n");
    let configuration = Configuration::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let disallowed = ["https://z".to_owned(), "https://own".to_owned()];
    let validated = validate(&configuration, &disallowed);
    validated
        .map(|compiled| compiled.len())
        .map_err(|errors| field::aggregate(&errors))
}

fn issuer(members: &str) -> String {
    format!("{{issuer: {{{members}}}, claimMappings: {{username: {{claim: sub, prefix: ''}}}}}}")
}

fn mappings(members: &str) -> String {
    format!("{{issuer: {{url: 'https://i', audiences: [a]}}, claimMappings: {{{members}}}}}")
}

fn extra(members: &str) -> String {
    mappings(&format!("username: {{claim: sub, prefix: ''}}, extra: [{members}]"))
}

fn rules(members: &str) -> String {
    format!("{{{GOOD}, claimValidationRules: [{members}]}}")
}

fn user_rules(members: &str) -> String {
    format!("{{{GOOD}, userValidationRules: [{members}]}}")
}

#[test]
fn what_can_be_used_is() {
    let by_email = "username: {expression: 'claims.email'}, extra: [{key: 'a.b/c', valueExpression: 'string(claims.email_verified)'}]";
    for (jwt, more) in [
        (
            String::new(),
            "anonymous: {enabled: true, conditions: [{path: /livez}]}",
        ),
        (format!("{{{GOOD}}}"), "anonymous: {enabled: false}"),
        (
            issuer("url: 'https://i/', discoveryURL: 'https://i/x', audiences: [a, b], audienceMatchPolicy: MatchAny"),
            "",
        ),
        (mappings(by_email), ""),
        (
            mappings(
                "username: {expression: 'claims[\"email\"]'}, uid: {claim: sub}, groups: {expression: claims.roles}",
            ),
            "",
        ),
        (
            rules("{claim: a, requiredValue: b}, {claim: c}, {expression: 'claims.a == \"b\"', message: m}"),
            "",
        ),
        (user_rules("{expression: \"!user.username.startsWith('system:')\"}"), ""),
    ] {
        let found = wrong(&jwt, more);
        assert!(found.is_ok(), "{jwt}: {found:?}");
    }
    assert_eq!(wrong(&format!("{{{GOOD}}}"), ""), Ok(1));
}

#[test]
fn what_is_wrong_with_issuers_is_told() {
    let many: Vec<String> = (0..65).map(|_| format!("{{{GOOD}}}")).collect();
    for (jwt, more, expected) in [
        (many.join(", "), "", "jwt: Too many: 65: must have at most 64 items"),
        (
            String::new(),
            "anonymous: {conditions: [{path: /a}]}",
            "anonymous.conditions: Invalid value: [{\"Path\":\"/a\"}]: enabled should be set to true when conditions are defined",
        ),
        (
            format!("{{{GOOD}}}, {{{GOOD}}}"),
            "",
            "jwt[1].issuer.url: Duplicate value: \"https://i\"",
        ),
        (
            format!(
                "{}, {}",
                issuer("url: 'https://a', discoveryURL: 'https://d', audiences: [a]"),
                issuer("url: 'https://b', discoveryURL: 'https://d', audiences: [a]")
            ),
            "",
            "jwt[1].issuer.discoveryURL: Duplicate value: \"https://d\"",
        ),
        (issuer("audiences: [a]"), "", "jwt[0].issuer.url: Required value"),
        (
            issuer("url: 'https://own', audiences: [a]"),
            "",
            "jwt[0].issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: [https://own https://z]",
        ),
        (
            issuer("url: 'http://u:p@h?q#f', audiences: [a]"),
            "",
            "[jwt[0].issuer.url: Invalid value: \"http://u:p@h?q#f\": URL scheme must be https, \
             jwt[0].issuer.url: Invalid value: \"http://u:p@h?q#f\": URL must not contain a username or password, \
             jwt[0].issuer.url: Invalid value: \"http://u:p@h?q#f\": URL must not contain a query, \
             jwt[0].issuer.url: Invalid value: \"http://u:p@h?q#f\": URL must not contain a fragment]",
        ),
        (
            issuer("url: 'https://a b', audiences: [a]"),
            "",
            "jwt[0].issuer.url: Invalid value: \"https://a b\": parse \"https://a b\": invalid character \" \" in host name",
        ),
        (
            issuer("url: 'https://i', discoveryURL: 'https://i/', audiences: [a]"),
            "",
            "jwt[0].issuer.discoveryURL: Invalid value: \"https://i/\": discoveryURL must be different from URL",
        ),
        (
            issuer("url: 'https://i', discoveryURL: 'http://d', audiences: [a]"),
            "",
            "jwt[0].issuer.discoveryURL: Invalid value: \"http://d\": URL scheme must be https",
        ),
        (
            issuer("url: 'https://i'"),
            "",
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
        (
            issuer("url: 'https://i', audiences: ['', a, a]"),
            "",
            "[jwt[0].issuer.audiences[0]: Required value, jwt[0].issuer.audiences[2]: Duplicate value: \"a\", \
             jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences]",
        ),
        (
            issuer("url: 'https://i', audiences: [a], audienceMatchPolicy: X"),
            "",
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"X\": audienceMatchPolicy must be empty or MatchAny for single audience",
        ),
        (
            issuer("url: 'https://i', audiences: [a], certificateAuthority: x"),
            "",
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA certificates",
        ),
        (
            issuer(
                "url: 'https://i', audiences: [a], certificateAuthority: \"-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----\\n\"",
            ),
            "",
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": x509: malformed certificate",
        ),
        (
            issuer("url: 'https://i', audiences: [a], egressSelectorType: x"),
            "",
            "jwt[0].issuer.egressSelectorType: Invalid value: \"x\": egress selector must be either controlplane or cluster",
        ),
    ] {
        let found = wrong(&jwt, more).unwrap_err();
        assert_eq!(found, expected, "{jwt}");
    }
}

#[test]
fn what_is_wrong_with_mappings_and_rules_is_told() {
    let needs_verified = "jwt[0].claimMappings.username.expression: Invalid value: \"claims.?email.orValue('')\": claims.email_verified must be used in \
        claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
        claimMappings.username.expression";
    for (jwt, expected) in [
        (
            mappings(""),
            "jwt[0].claimMappings.username: Required value: claim or expression is required",
        ),
        (
            mappings("username: {claim: sub}"),
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing",
        ),
        (
            mappings("username: {claim: sub, expression: claims.sub}"),
            "jwt[0].claimMappings.username: Invalid value: \"\": claim and expression can't both be set",
        ),
        (
            mappings("username: {prefix: '', expression: claims.sub}"),
            "jwt[0].claimMappings.username.prefix: Invalid value: \"\": may not be specified when expression is set",
        ),
        (
            mappings("username: {expression: claims.sub}, groups: {claim: g}, uid: {claim: a, expression: b}"),
            "[jwt[0].claimMappings.groups.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing, \
             jwt[0].claimMappings.uid: Invalid value: \"\": claim and expression can't both be set]",
        ),
        (
            mappings("username: {expression: claims.}"),
            "jwt[0].claimMappings.username.expression: Invalid value: \"claims.\": compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n | claims.\n | .......^",
        ),
        (
            mappings("username: {expression: \"claims.?email.orValue('')\"}"),
            needs_verified,
        ),
        (
            extra(
                "{valueExpression: claims.a}, {key: a, valueExpression: claims.a}, {key: 'A.b/c', valueExpression: claims.a}",
            ),
            "[jwt[0].claimMappings.extra[0].key: Required value, \
             jwt[0].claimMappings.extra[1].key: Invalid value: \"a\": must be a domain-prefixed path (such as \"acme.io/foo\"), \
             jwt[0].claimMappings.extra[2].key: Invalid value: \"A.b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), \
             jwt[0].claimMappings.extra[2].key: Invalid value: \"A.b/c\": must be lowercase]",
        ),
        (
            extra(
                "{key: x.k8s.io/a, valueExpression: claims.a}, {key: kubernetes.io/a, valueExpression: claims.a}, {key: xk8s.io/a, valueExpression: claims.a}",
            ),
            "[jwt[0].claimMappings.extra[0].key: Invalid value: \"x.k8s.io/a\": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use, \
             jwt[0].claimMappings.extra[1].key: Invalid value: \"kubernetes.io/a\": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use]",
        ),
        (
            extra("{key: a.b/c}, {key: a.b/c, valueExpression: x}, {key: a.b/d, valueExpression: x}"),
            "[jwt[0].claimMappings.extra[0].valueExpression: Required value, jwt[0].claimMappings.extra[1].key: Duplicate value: \"a.b/c\", \
             jwt[0].claimMappings.extra[2].valueExpression: Invalid value: \"x\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x\n | ^]",
        ),
        (
            rules(
                "{}, {claim: a, expression: b}, {claim: a, message: m}, {claim: a}, {expression: 'true', requiredValue: x}, {expression: 'true'}, {expression: claims.a}",
            ),
            "[jwt[0].claimValidationRules[0]: Required value: claim or expression is required, \
             jwt[0].claimValidationRules[1]: Invalid value: \"a\": claim and expression can't both be set, \
             jwt[0].claimValidationRules[2].message: Invalid value: \"m\": may not be specified when claim is set, \
             jwt[0].claimValidationRules[3].claim: Duplicate value: \"a\", \
             jwt[0].claimValidationRules[4].requiredValue: Invalid value: \"x\": may not be specified when expression is set, \
             jwt[0].claimValidationRules[5].expression: Duplicate value: \"true\", \
             jwt[0].claimValidationRules[6].expression: Invalid value: \"claims.a\": must evaluate to bool]",
        ),
        (
            user_rules(
                "{message: m}, {expression: user.username}, {expression: user.username}, {expression: claims.a}",
            ),
            "[jwt[0].userValidationRules[0].expression: Required value, \
             jwt[0].userValidationRules[1].expression: Invalid value: \"user.username\": must evaluate to bool, \
             jwt[0].userValidationRules[2].expression: Duplicate value: \"user.username\", \
             jwt[0].userValidationRules[3].expression: Invalid value: \"claims.a\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'claims' (in container '')\n | claims.a\n | ^]",
        ),
    ] {
        let found = wrong(&jwt, "").unwrap_err();
        assert_eq!(found, expected, "{jwt}");
    }
}
