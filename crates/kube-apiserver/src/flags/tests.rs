use super::*;

fn read(text: &str) -> Result<Flags, FlagError> {
    parse(text.split(' ').map(str::to_owned))
}

pub(super) const NEEDED: &str = "--etcd-servers=http://127.0.0.1:2379 --service-account-issuer=https://a --service-account-key-file=k --service-account-signing-key-file=k";

#[test]
fn flags_are_read_as_upstream_reads_them() {
    let flags = read(&format!(
        "{NEEDED} --secure-port 7443 --anonymous-auth --allow-privileged=true --enable-bootstrap-token-auth=T --authorization-mode=Node,RBAC \
         --service_cluster_ip_range=10.1.0.0/16,fd00::/108 --etcd-compaction-interval 1m -v=4 --service-account-issuer=https://b  \
         --secure-port=8443 --disable-admission-plugins ServiceAccount --tls-min-version=VersionTLS12 --proxy-client-cert-file=x \
         --requestheader-username-headers=X-Remote-User --requestheader-username-headers=X-User --egress-selector-config-file="
    ))
    .unwrap();
    assert_eq!(flags.serving.secure_port, 8443);
    assert!(flags.serving.in_flight.places().is_none());
    let bounded = read(&format!("{NEEDED} --enable-priority-and-fairness=false")).unwrap();
    assert!(bounded.serving.in_flight.places().is_some());
    assert_eq!(flags.serving.seats(), gardener_apiserver::Seats::default());
    let few = read(&format!(
        "{NEEDED} --max-requests-inflight=7 --max-mutating-requests-inflight=0 --request-timeout=8s"
    ));
    let seats = few.unwrap().serving.seats();
    assert_eq!((seats.number, seats.time_limit.as_secs()), (7, 8));
    assert!(flags.allow_privileged && !read(NEEDED).unwrap().allow_privileged);
    assert_eq!(flags.egress_selector_config_file, None, "no file is named");
    assert!(flags.authentication.anonymous_auth == Some(true) && flags.enable_bootstrap_token_auth);
    assert_eq!(flags.authorization.authorization_mode, ["Node", "RBAC"]);
    assert_eq!(flags.service_cluster_ip_range.len(), 2);
    assert_eq!(flags.etcd.etcd_compaction_interval, Duration::from_secs(60));
    assert_eq!(flags.log_level(), "debug");
    assert_eq!(flags.service_account_issuer, ["https://a", "https://b"]);
    assert_eq!(
        flags.callers.requestheader_username_headers,
        ["X-Remote-User", "X-User"]
    );
    assert_eq!(flags.serving.transport_security(), None);
    assert_eq!(flags.serving.ending.watch_timeout().as_secs(), 1800);
    let told = read(&format!(
        "{NEEDED} --strict-transport-security-directives=max-age=31536000,includeSubDomains --strict-transport-security-directives=preload"
    ));
    assert_eq!(
        told.unwrap().serving.transport_security().unwrap(),
        "max-age=31536000; includeSubDomains; preload"
    );
    let refuses = read(&format!("{NEEDED} --anonymous-auth=false")).unwrap();
    assert_eq!(refuses.authentication.anonymous_auth, Some(false));
}

#[test]
fn flags_are_told_as_upstream_tells_them() {
    let flags = read(&format!(
        "{NEEDED} --enable-bootstrap-token-auth=T --authorization-mode=Node,RBAC --service_cluster_ip_range=10.1.0.0/16,fd00::/108 \
         --runtime-config=api/beta=true --service-account-issuer=https://b --secure-port=7443 --secure-port=8443 --allow-privileged"
    ));
    let told = flags.unwrap().told;
    for (flag, expected) in [
        ("enable-bootstrap-token-auth", "true"),
        ("authorization-mode", "[Node,RBAC]"),
        ("service-cluster-ip-range", "10.1.0.0/16,fd00::/108"),
        ("runtime-config", "api/beta=true"),
        ("service-account-issuer", "[https://a,https://b]"),
        ("secure-port", "8443"),
        ("event-ttl", "1h0m0s"),
        ("egress-selector-config-file", ""),
        ("enable-admission-plugins", "[]"),
        ("version", "false"),
        ("allow-privileged", "true"),
        ("aggregator-reject-forwarding-redirect", "true"),
    ] {
        assert_eq!(told.get(flag).map(String::as_str), Some(expected), "{flag}");
    }
    assert_eq!(
        told.get("enable-logs-handler"),
        None,
        "it does nothing here, and was not given"
    );
}

#[test]
fn what_is_wrong_is_told() {
    let table = [
        ("--secure-port=6443".to_owned(), "--etcd-servers must be specified"),
        (format!("{NEEDED} --etcd-servres=x"), "'--etcd-servers'"),
        (format!("{NEEDED} stray"), "'stray'"),
        (format!("{NEEDED} --anonymous-auth false"), "'false'"),
        (format!("{NEEDED} --secure-port=0"), "cannot be turned off with 0"),
        (format!("{NEEDED} --secure-port=x"), "--secure-port"),
        (format!("{NEEDED} --tls-min-version=1.2"), "unknown tls version \"1.2\""),
        (
            format!("{NEEDED} --tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_X"),
            "Cipher suite TLS_X not supported",
        ),
        (
            format!("{NEEDED} --cors-allowed-origins=example.com"),
            "does not pin to start/end of host",
        ),
        (
            format!("{NEEDED} --service-account-jwks-uri=http://keys"),
            "--service-account-jwks-uri requires the https scheme",
        ),
        (
            format!("{NEEDED} --service-node-port-range=5-4"),
            "end port cannot be less than start port",
        ),
        (
            format!("{NEEDED} --emulated-version=1.35"),
            "--emulated-version is not supported yet",
        ),
        (
            format!("{NEEDED} --enable-admission-plugins=Nonsense"),
            "\"Nonsense\" is unknown",
        ),
        (
            format!("{NEEDED} --encryption-provider-config=x --encryption-provider-config-automatic-reload"),
            "automatic-reload is not supported yet",
        ),
        (
            format!("{NEEDED} --goaway-chance=0.03"),
            "--goaway-chance can not be less than 0 or greater than 0.02",
        ),
        (
            format!("{NEEDED} --goaway-chance=-1"),
            "--goaway-chance can not be less than 0 or greater than 0.02",
        ),
        (
            format!("{NEEDED} --max-requests-inflight=0 --max-mutating-requests-inflight=0"),
            "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive",
        ),
        (
            format!("{NEEDED} --max-requests-inflight=-1"),
            "--max-requests-inflight can not be negative value",
        ),
        (
            format!("{NEEDED} --min-request-timeout=-1"),
            "--min-request-timeout can not be negative value",
        ),
        (
            format!("{NEEDED} --shutdown-delay-duration=-1s"),
            "--shutdown-delay-duration can not be negative value",
        ),
        (
            format!("{NEEDED} --strict-transport-security-directives=max-age=1,,preload"),
            "empty value in strict-transport-security-directives",
        ),
        (
            format!("{NEEDED} --strict-transport-security-directives=max-age=1,Preload"),
            "invalid, allowed values: max-age=expireTime, includeSubDomains, preload",
        ),
        (format!("{NEEDED} --tls-cert-file=x"), "go together"),
        (format!("{NEEDED} --storage-backend=etcd2"), "etcd3"),
        (
            format!("{NEEDED} --service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24"),
            "one of each family",
        ),
        (
            format!("{NEEDED} --bind-address=10.2.0.1 --service-cluster-ip-range=fd00::/108,10.0.0.0/24"),
            "must match public address family \"10.2.0.1\"",
        ),
    ];
    for (arguments, expected) in table {
        let error = read(&arguments).unwrap_err().to_string();
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

#[test]
fn help_names_every_flag_on_a_line_of_its_own() {
    let help = command().render_long_help().to_string();
    for flag in [
        "--etcd-servers",
        "--allow-privileged",
        "--oidc-issuer-url",
        "--anonymous-auth",
    ] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(flag)), "{flag}");
    }
    for heading in ["Accepted without effect", "Known, but refused"] {
        assert!(help.contains(heading), "{heading}");
    }
    // envtest looks for it to tell old versions from new ones
    assert!(!help.contains("--insecure-port"));
}

#[test]
fn certificates_are_for_names() {
    let named = |text: &str| text.parse::<NamedCertificate>();
    let plain = named("a.crt,a.key").unwrap();
    assert_eq!(
        (plain.certificate.display().to_string(), plain.names.len()),
        ("a.crt".to_owned(), 0)
    );
    assert_eq!(
        named("a.crt,a.key:*.foo.com, foo.com").unwrap().names,
        ["*.foo.com", "foo.com"]
    );
    for wrong in ["", "a.crt", "a,b,c", "a,:x"] {
        assert!(named(wrong).is_err(), "{wrong}");
    }
}
