use std::time::Duration as Std;

use gardener_garden_apiserver::Feature;

use super::*;

const HOUR: Std = Std::from_secs(3600);

fn read(text: &str) -> Result<(Flags, Vec<String>), FlagError> {
    parse(text.split(' ').map(str::to_owned))
}

const NEEDED: &str =
    "--etcd-servers=http://127.0.0.1:2379 --cluster-identity=g --tls-cert-file=c --tls-private-key-file=k";

#[test]
fn flags_are_read_as_upstream_reads_them() {
    // what Gardener's operator gives
    let (flags, without_effect) = read(&format!(
        "{NEEDED} --authorization-always-allow-paths=/healthz --authentication-kubeconfig=k --authorization-kubeconfig=k --kubeconfig=k \
         --log-level=info --log-format=json --secure-port=8443 --shoot-admin-kubeconfig-max-expiration=1h0m0s --goaway-chance=0.001500 \
         --workload-identity-token-issuer=https://issuer --http2-max-streams-per-connection=1000 \
         --etcd-cafile=ca --etcd-certfile=c --etcd-keyfile=k --livez-grace-period=1m --profiling=false --shutdown-delay-duration=15s \
         --tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 --tls-min-version=VersionTLS12 --feature-gates=InPlaceNodeUpdates=true,WatchList=false --audit-policy-file=p -v 2"
    ))
    .unwrap();
    assert_eq!(flags.serving.secure_port, 8443);
    assert_eq!(flags.etcd.etcd_prefix, "/registry-gardener");
    assert_eq!(flags.authorization_always_allow_paths, ["/healthz"]);
    assert_eq!(flags.garden.shoot_admin_kubeconfig_max_expiration.to_std(), HOUR);
    assert_eq!(flags.garden.shoot_viewer_kubeconfig_max_expiration.to_std(), 24 * HOUR);
    assert_eq!(flags.callers.requestheader_username_headers, ["x-remote-user"]);
    assert!(flags.garden.features().unwrap().0.has(Feature::InPlaceNodeUpdates));
    assert!(
        without_effect.iter().any(|own| own == "--profiling"),
        "{without_effect:?}"
    );
    for flag in [
        "--audit-policy-file",
        "--audit-log-path",
        "--tls-cipher-suites",
        "--tls-min-version",
    ] {
        assert!(!without_effect.iter().any(|own| own == flag), "{flag}");
    }
    // what its tests give
    let (flags, without_effect) = read(&format!(
        "{NEEDED} --bind-address=127.0.0.1 --secure-port=34567 --disable-admission-plugins=ShootValidator,ShootManagedSeed"
    ))
    .unwrap();
    assert_eq!(
        flags.authorization_always_allow_paths,
        ["/healthz", "/readyz", "/livez"]
    );
    assert_eq!(flags.admission.disable_admission_plugins.len(), 2);
    assert!(without_effect.is_empty());
}

#[test]
fn what_is_wrong_is_told() {
    let table = [
        (String::new(), "--cluster-identity must be specified"),
        (String::new(), "--etcd-servers must be specified"),
        (
            String::new(),
            "must specify both --tls-cert-file and --tls-private-key-file",
        ),
        (
            format!("{NEEDED} --enable-admission-plugins=Nonsense"),
            "plugin \"Nonsense\" is unknown",
        ),
        (
            format!("{NEEDED} --disable-admission-plugins=ServiceAccount"),
            "plugin \"ServiceAccount\" is unknown",
        ),
        (
            format!("{NEEDED} --shoot-viewer-kubeconfig-max-expiration=10m"),
            "--shoot-viewer-kubeconfig-max-expiration must be between 1 hour and 2^32 seconds",
        ),
        (
            format!("{NEEDED} --tls-cipher-suites=a"),
            "Cipher suite a not supported or doesn't exist",
        ),
        (format!("{NEEDED} --log-level=loud"), "loud"),
        (format!("{NEEDED} --feature-gates=A"), "missing bool value for A"),
        (format!("{NEEDED} --feature-gates=A=x"), "invalid value of A=x"),
        (
            format!("{NEEDED} --storage-media-type=application/vnd.kubernetes.protobuf"),
            "application/json",
        ),
        (
            format!("{NEEDED} --etcd-servers-overrides=events#https://x"),
            "--etcd-servers-overrides invalid, must be of format",
        ),
        (
            format!("{NEEDED} --service-cluster-ip-range=10.0.0.0/24"),
            "'--service-cluster-ip-range'",
        ),
    ];
    for (arguments, expected) in table {
        let error = read(&arguments).unwrap_err().to_string();
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}
