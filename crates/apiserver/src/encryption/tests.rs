use super::*;

fn configured(lists: &str) -> Result<Encryption, EncryptionConfigError> {
    parse(&format!("apiVersion: {API_VERSION}\nkind: {KIND}\nresources:\n{lists}"))
}

fn key(size: usize) -> String {
    STANDARD.encode(vec![1; size])
}

fn with_keys(resources: &str) -> String {
    let secret = key(32);
    format!(
        "- resources: {resources}\n  providers: [{{secretbox: {{keys: [{{name: a, secret: {secret}}}]}}}}, {{identity: {{}}}}]\n"
    )
}

#[test]
fn resources_and_wildcards_are_understood() {
    let text =
        with_keys("[secrets, configmaps]") + &with_keys("['*.apps']") + &with_keys("['*.']") + &with_keys("['*.*']");
    configured(&text).unwrap();
    type Resources = [(&'static str, &'static str)];
    let table: [(&str, &Resources, &Resources); 4] = [
        (
            "[secrets, pandas.bears.example]",
            &[("", "secrets"), ("bears.example", "pandas")],
            &[("", "pods"), ("bears.example", "secrets")],
        ),
        (
            "['*.apps']",
            &[("apps", "deployments")],
            &[("", "deployments"), ("batch", "jobs")],
        ),
        ("['*.']", &[("", "secrets")], &[("apps", "deployments")]),
        ("['*.*']", &[("", "secrets"), ("a.b", "cs")], &[]),
    ];
    for (resources, encrypted, others) in table {
        let encryption = configured(&with_keys(resources)).unwrap();
        for (group, resource) in encrypted {
            assert!(
                encryption.knows(&Topic::new(group, resource)),
                "{resources} {resource}.{group}"
            );
        }
        for (group, resource) in others {
            assert!(
                !encryption.knows(&Topic::new(group, resource)),
                "{resources} {resource}.{group}"
            );
        }
    }
}

#[test]
fn what_is_wrong_is_told_as_upstream_tells_it() {
    let provider = |provider: &str| format!("- resources: [secrets]\n  providers: [{provider}]\n");
    let keyed = |kind: &str, name: &str, secret: &str| {
        provider(&format!("{{{kind}: {{keys: [{{name: {name}, secret: {secret}}}]}}}}"))
    };
    let table = [
        (
            " []\n".to_owned(),
            "resources: Required value: at least one resources is required",
        ),
        (
            "- {}\n".to_owned(),
            "[resources[0].resources: Required value: at least one resources[0].resources is required, resources[0].providers: Required value: at least one resources[0].providers is required]",
        ),
        (provider("{}"), "does not contain any of the expected providers"),
        (
            provider("{identity: {}, secretbox: {keys: []}}"),
            "more than one provider specified in a single element",
        ),
        (
            provider("{aesgcm: {}}"),
            "resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required",
        ),
        (
            keyed("aescbc", "''", &key(32)),
            "resources[0].providers[0].aescbc.keys[0].name: Required value: name is a mandatory field for a key",
        ),
        (
            keyed("aescbc", "a", "''"),
            "secret: Required value: secret is a mandatory field for a key",
        ),
        (
            keyed("aescbc", "a", "'!'"),
            "Invalid value: \"REDACTED\": secrets must be base64 encoded",
        ),
        (
            keyed("aescbc", "a", &key(31)),
            "secret is not of the expected length, got 31, expected one of [16 24 32]",
        ),
        (
            keyed("secretbox", "a", &key(16)),
            "resources[0].providers[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 16, expected one of [32]",
        ),
        (keyed("secretbox", "a", &key(16)), "got 16"),
        (keyed("rot13", "a", &key(16)), "rot13"),
        (
            provider("{kms: {apiVersion: v2, name: x, endpoint: 'unix:///x'}}"),
            "resources[0].providers[0].kms: kms providers are not supported yet",
        ),
        (
            with_keys("[Secrets]"),
            "resources[0].resources[0]: Invalid value: \"Secrets\": resource name should not contain capital letters",
        ),
        (
            with_keys("['*']"),
            "use '*.' to encrypt all the resources from core API group",
        ),
        (with_keys("[events.events.k8s.io]"), "Use 'events' instead"),
        (
            with_keys("[ingresses.extensions]"),
            "'extensions' group has been removed",
        ),
        (with_keys("[serviceipallocations]"), "do not have REST API"),
        (with_keys("['secrets.*']"), "across groups is not supported"),
        (
            with_keys("[secrets, secrets]"),
            "the same resource cannot be specified multiple times",
        ),
        (with_keys("[secrets, '*.']"), "using overlapping resources"),
        (with_keys("['*.*', deployments.apps]"), "using overlapping resources"),
        (
            with_keys("['*.']") + &with_keys("[secrets]"),
            "resource \"secrets\" is masked by earlier rule \"*.\"",
        ),
        (
            with_keys("['*.*']") + &with_keys("[deployments.apps]"),
            "resource \"deployments.apps\" is masked by earlier rule \"*.*\"",
        ),
    ];
    for (lists, expected) in table {
        let error = configured(&lists).unwrap_err().to_string();
        assert!(error.contains(expected), "{lists}: {error}");
        assert!(!error.contains(&key(31)) && !error.contains(&key(16)), "{error}");
    }
    for leak in [
        "- resources: [secrets]\n  providers: [{secretbox: {keys: [c2VjcmV0]}}]\n",
        "- providers: [\n  secret: c2VjcmV0\n",
    ] {
        let error = configured(leak).unwrap_err().to_string();
        assert!(!error.contains("c2VjcmV0"), "{error}");
    }
    assert!(matches!(parse(""), Err(EncryptionConfigError::Empty)));
    assert!(matches!(parse("a: ["), Err(EncryptionConfigError::Malformed(_))));
    assert!(matches!(
        parse("kind: Pod\napiVersion: v1\n"),
        Err(EncryptionConfigError::OtherKind(_))
    ));
}

#[test]
fn a_generated_configuration_is_one() {
    let key = SecretKey {
        name: "key1".to_owned(),
        secret: vec![7; 32].into(),
    };
    let encryption = parse(&generate(&["secrets", "shootstates.core.gardener.cloud"], &key)).unwrap();
    assert!(encryption.knows(&Topic::new("", "secrets")));
    assert!(encryption.knows(&Topic::new("core.gardener.cloud", "shootstates")));
}
