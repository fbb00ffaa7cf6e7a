//! Findings in upstream's words and order, to the letter.

use serde_json::json;

use super::*;

fn annotated(now: &str, later: &str) -> Value {
    json!({"metadata": {"annotations": {"gardener.cloud/operation": now, "maintenance.gardener.cloud/operation": later}}})
}

#[track_caller]
fn says(rule: &str, patch: Value, expected: &[&str]) {
    let found = texts(&validate_shoot(&shoot(patch.clone())));
    assert_eq!(found, expected, "{rule} {patch}");
}

#[test]
fn val_o_words_of_upstream() {
    let now = "metadata.annotations[gardener.cloud/operation]";
    let later = "metadata.annotations[maintenance.gardener.cloud/operation]";
    let state = json!({"status": {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}}});
    let with = |patch: Value| {
        let mut whole = state.clone();
        merge(&mut whole, &patch);
        whole
    };
    says(
        "VAL-O1",
        annotated("x;y", "z"),
        &[&format!(
            "{now}: Unsupported value: \"x\": supported values: \"force-in-place-update\", \"maintain\", \"reconcile\", \"retry\", \"rollout-workers\", \"rotate-ca-complete\", \"rotate-ca-start\", \"rotate-ca-start-without-workers-rollout\", \"rotate-credentials-complete\", \"rotate-credentials-start\", \"rotate-credentials-start-without-workers-rollout\", \"rotate-etcd-encryption-key\", \"rotate-etcd-encryption-key-complete\", \"rotate-etcd-encryption-key-start\", \"rotate-observability-credentials\", \"rotate-rollout-workers\", \"rotate-serviceaccount-key-complete\", \"rotate-serviceaccount-key-start\", \"rotate-serviceaccount-key-start-without-workers-rollout\", \"rotate-ssh-keypair\""
        )],
    );
    says(
        "VAL-O2",
        annotated("", "reconcile;retry"),
        &[&format!(
            "{later}: Forbidden: operation 'retry' is not permitted to be run in parallel with other operations"
        )],
    );
    says(
        "VAL-O3",
        annotated("reconcile", "reconcile"),
        &[&format!(
            "metadata.annotations: Forbidden: annotations {now} and {later} must not have any equal operations"
        )],
    );
    says(
        "VAL-O4",
        with(annotated(
            "",
            "rotate-credentials-start;rotate-ca-start-without-workers-rollout",
        )),
        &[&format!(
            "{later}: Forbidden: operation 'rotate-credentials-start' is not permitted to be run together with rotate-ca-start-without-workers-rollout, rotate-serviceaccount-key-start-without-workers-rollout, rotate-credentials-start-without-workers-rollout maintenance operations"
        )],
    );
    says(
        "VAL-O5",
        annotated("rotate-etcd-encryption-key-complete", ""),
        &[
            &format!(
                "{now}: Forbidden: for Kubernetes versions >= 1.34, operation 'rotate-etcd-encryption-key-complete' is no longer supported, please use 'rotate-etcd-encryption-key' instead, which performs a complete etcd encryption key rotation"
            ),
            &format!(
                "{now}: Forbidden: cannot complete ETCD encryption key rotation if .status.credentials.rotation.etcdEncryptionKey.phase is not 'Prepared'"
            ),
        ],
    );
    says(
        "VAL-O8",
        with(annotated(
            "rotate-ca-start;rotate-serviceaccount-key-start",
            "rotate-credentials-start",
        )),
        &[&format!(
            "{now}: Forbidden: operation 'rotate-ca-start, rotate-serviceaccount-key-start' is not permitted when maintenance operation is 'rotate-credentials-start'"
        )],
    );
    says(
        "VAL-O9",
        annotated("rotate-credentials-complete", ""),
        &[
            &format!(
                "{now}: Forbidden: cannot complete rotation of all credentials if .status.credentials.rotation.certificateAuthorities.phase is not 'Prepared'"
            ),
            &format!(
                "{now}: Forbidden: cannot complete rotation of all credentials if .status.credentials.rotation.serviceAccountKey.phase is not 'Prepared'"
            ),
        ],
    );
    says(
        "VAL-O11",
        annotated("rollout-workers=w,w,", ""),
        &[
            &format!(
                "{now}: Required value: must provide either '*' or at least one pool name via rollout-workers=<poolName1>[,<poolName2>,...]"
            ),
            &format!("{now}: Duplicate value: \"pool name w was specified multiple times\""),
            &format!("{now}: Invalid value: \"\": worker pool name  does not exist in .spec.provider.workers[]"),
        ],
    );
    let mut in_place = worker(json!({"updateStrategy": "AutoInPlaceUpdate"}));
    merge(&mut in_place, &annotated("rollout-workers=*", ""));
    says(
        "VAL-O11",
        in_place,
        &[&format!(
            "{now}: Invalid value: \"w\": worker pool w is using in-place update strategy; manual worker pool rollout is not supported for such pools"
        )],
    );
}

#[test]
fn val_p_words_of_upstream() {
    let at = "spec.provider.workers[0]";
    says(
        "VAL-P6",
        worker(json!({"maxSurge": 0, "maxUnavailable": "0%"})),
        &[&format!(
            "{at}.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0"
        )],
    );
    says(
        "VAL-P6",
        worker(json!({"maxSurge": "-5%", "maxUnavailable": 0})),
        &[
            &format!("{at}.maxSurge: Invalid value: \"-5%\": must be an integer or percentage (e.g '5%')"),
            &format!("{at}.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"),
        ],
    );
    says(
        "VAL-P6",
        worker(json!({"maxSurge": "5", "maxUnavailable": "101%"})),
        &[
            &format!("{at}.maxSurge: Invalid value: \"5\": must be an integer or percentage (e.g '5%')"),
            &format!("{at}.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"),
        ],
    );
    says(
        "VAL-P22",
        worker(json!({"sysctls": {"a b": ""}})),
        &[
            &format!(
                "{at}.sysctls.a b: Invalid value: \"a b\": sysctl key must must match regex \"^(?:(?:[a-zA-Z0-9-][a-zA-Z0-9_/-]*|\\\\*)\\\\.)*[a-zA-Z0-9_/-]*[a-zA-Z0-9]$\""
            ),
            &format!("{at}.sysctls.a b: Required value: sysctl requires a non-empty value"),
        ],
    );
    let mut own = worker(json!({"maximum": 2, "controlPlane": {
        "backup": {"provider": "other", "credentialsRef": {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "name": "a", "namespace": "b"}},
        "exposure": {"dns": {}, "extension": {"type": "e"}}}}));
    merge(&mut own, &json!({"spec": {"seedName": "s"}}));
    says(
        "VAL-P25",
        own,
        &[
            &format!(
                "{at}.controlPlane.backup.region: Required value: region must be specified for if backup provider is different from shoot provider used in `spec.provider.type`"
            ),
            &format!(
                "{at}.controlPlane.backup.credentialsRef.namespace: Forbidden: must reference credentials in the same namespace as the Shoot"
            ),
            &format!(
                "{at}.controlPlane.backup.credentialsRef: Forbidden: support for WorkloadIdentity as backup credentials is not yet implemented"
            ),
            &format!(
                "{at}.controlPlane.exposure: Invalid value: {{\"Extension\":{{\"Type\":\"e\",\"ProviderConfig\":null}},\"DNS\":{{}}}}: cannot have dns and extension set at the same time"
            ),
            "spec.seedName: Invalid value: \"s\": cannot set seedName for self-hosted shoots",
            "metadata.namespace: Invalid value: \"garden-local\": self-hosted shoots must be in the \"garden\" namespace",
            &format!(
                "{at}.minimum: Invalid value: 1: self-hosted shoots only support minimum=maximum=1 for the control plane worker pool (might change in the future)"
            ),
            &format!(
                "{at}.maximum: Invalid value: 2: control plane worker pool must have maximum=1 when high availability is not configured"
            ),
        ],
    );
}

#[test]
fn val_k_words_of_upstream() {
    let api_server = |config: Value| json!({"spec": {"kubernetes": {"kubeAPIServer": config}}});
    let manager =
        |config: Value| json!({"spec": {"kubernetes": {"version": "1.32.1", "kubeControllerManager": config}}});
    let at = "spec.kubernetes.kubeAPIServer";
    says(
        "VAL-K9",
        api_server(
            json!({"serviceAccountConfig": {"issuer": "http://a:b@c?d#e", "acceptedIssuers": ["http://a:b@c?d#e"]}}),
        ),
        &[
            &format!(
                "{at}.serviceAccountConfig.issuer: Invalid value: \"http://a:b@c?d#e\": must not contain a fragment"
            ),
            &format!(
                "{at}.serviceAccountConfig.issuer: Invalid value: \"http://a:b@c?d#e\": must not contain a username or password"
            ),
            &format!("{at}.serviceAccountConfig.issuer: Invalid value: \"http://a:b@c?d#e\": must not contain a query"),
            &format!("{at}.serviceAccountConfig.issuer: Invalid value: \"http://a:b@c?d#e\": must have https scheme"),
            &format!(
                "{at}.serviceAccountConfig.acceptedIssuers[0]: Invalid value: \"http://a:b@c?d#e\": must not contain a fragment"
            ),
            &format!(
                "{at}.serviceAccountConfig.acceptedIssuers[0]: Invalid value: \"http://a:b@c?d#e\": must not contain a username or password"
            ),
            &format!(
                "{at}.serviceAccountConfig.acceptedIssuers[0]: Invalid value: \"http://a:b@c?d#e\": must not contain a query"
            ),
            &format!(
                "{at}.serviceAccountConfig.acceptedIssuers[0]: Invalid value: \"http://a:b@c?d#e\": must have https scheme"
            ),
            &format!(
                "{at}.serviceAccountConfig.acceptedIssuers[0]: Invalid value: \"http://a:b@c?d#e\": acceptedIssuers cannot contains the issuer field value: http://a:b@c?d#e"
            ),
        ],
    );
    says(
        "VAL-K18",
        api_server(json!({"watchCacheSizes": {"default": -1, "resources": [{"resource": "A.b", "size": 1}]}})),
        &[
            &format!(
                "{at}.watchCacheSizes.default: Forbidden: for Kubernetes versions >= 1.35, configuring the default watch cache size is no longer supported"
            ),
            &format!("{at}.watchCacheSizes.resources[0].resource: Invalid value: \"A.b\": must be lower case"),
            &format!(
                "{at}.watchCacheSizes.resources[0].resource: Invalid value: \"A.b\": must not contain any of the following characters: \",. #\""
            ),
        ],
    );
    says(
        "VAL-K19",
        api_server(json!({"encryptionConfig": {"resources": ["a.extensions", "secrets."]}})),
        &[
            &format!(
                "{at}.encryptionConfig.resources[0]: Invalid value: \"a.extensions\": 'extensions' group has been removed and cannot be used for encryption"
            ),
            &format!(
                "{at}.encryptionConfig.resources[1]: Invalid value: \"secrets.\": resource should not end with '.'"
            ),
            &format!("{at}.encryptionConfig.resources[1]: Forbidden: \"secrets.\" are always encrypted"),
        ],
    );
    let at = "spec.kubernetes.kubeControllerManager";
    let mut small = manager(json!({"nodeCIDRMaskSize": 28}));
    merge(
        &mut small,
        &json!({"spec": {"kubernetes": {"kubelet": {"maxPods": 20}}}}),
    );
    says(
        "VAL-K23",
        small,
        &[&format!(
            "{at}.nodeCIDRMaskSize: Invalid value: 28: kubelet or kube-controller-manager configuration incorrect. Please adjust the nodeCIDRMaskSize to support the highest maxPod on any worker pool. The nodeCIDRMaskSize of 28 (default: 24) only supports 14 IP addresses. The highest maxPod setting is 20 (default: 110). Please choose a nodeCIDRMaskSize that at least supports 20 IP addresses"
        )],
    );
    says(
        "VAL-K24",
        manager(
            json!({"podEvictionTimeout": "0s", "nodeMonitorGracePeriod": "-1ns", "horizontalPodAutoscaler": {"tolerance": 0.0, "syncPeriod": "1ms"}}),
        ),
        &[
            &format!("{at}.podEvictionTimeout: Invalid value: 0: podEvictionTimeout must be larger than 0"),
            &format!("{at}.nodeMonitorGracePeriod: Invalid value: -1: nodeMonitorGracePeriod must be larger than 0"),
            &format!(
                "{at}.horizontalPodAutoscaler.syncPeriod: Invalid value: \"1ms\": syncPeriod must not be less than a second"
            ),
            &format!("{at}.horizontalPodAutoscaler.tolerance: Invalid value: 0: tolerance of must be greater than 0"),
        ],
    );
    let volumes =
        |count: &str| json!({"spec": {"kubernetes": {"version": "1.34.1", "kubeScheduler": {"kubeMaxPDVols": count}}}});
    says(
        "VAL-K26",
        volumes("foo"),
        &[
            "spec.kubernetes.kubeScheduler.kubeMaxPDVols: Invalid value: \"foo\": conversion error: strconv.Atoi: parsing \"foo\": invalid syntax",
        ],
    );
}

#[test]
fn val_d_m_n_words_of_upstream() {
    let reference = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "name": name});
    let dns = |providers: Value| json!({"spec": {"dns": {"domain": "a.b", "providers": providers}}});
    says(
        "VAL-D2",
        dns(json!([{"type": "d", "secretName": "a", "credentialsRef": reference("Secret", "a")}])),
        &[
            "spec.dns.providers[0].secretName: Forbidden: for Kubernetes versions >= 1.35, secretName field is no longer supported",
        ],
    );
    says(
        "VAL-D3",
        dns(json!([{"type": "d", "credentialsRef": reference("Bar", "a")}])),
        &[
            "spec.dns.providers[0].credentialsRef: Unsupported value: \"&ObjectReference{Kind:Bar,Namespace:,Name:a,UID:,APIVersion:v1,ResourceVersion:,FieldPath:,}\": supported values: \"/v1, Kind=Secret\", \"core.gardener.cloud/v1beta1, Kind=InternalSecret\", \"security.gardener.cloud/v1alpha1, Kind=WorkloadIdentity\"",
        ],
    );
    let same = json!({"type": "d", "credentialsRef": reference("Secret", "a")});
    says(
        "VAL-D4",
        dns(json!([same, same])),
        &[
            "spec.dns.providers[1]: Invalid value: {\"providerType\":\"d\",\"gvk\":\"v1/Secret\",\"name\":\"a\"}: combination of .credentialsRef and .type must be unique across dns providers",
        ],
    );
    says(
        "VAL-M2",
        json!({"spec": {"maintenance": {"timeWindow": {"begin": "220000+0000", "end": "221000+0000"}}}}),
        &["spec.maintenance.timeWindow: Invalid value: 600000000000: time window must not be smaller than 30m0s"],
    );
    says(
        "VAL-M1",
        json!({"spec": {"maintenance": {"timeWindow": {"begin": "<", "end": ""}}}}),
        &[
            "spec.maintenance.timeWindow.begin/end: Invalid value: {\"Begin\":\"\\u003c\",\"End\":\"\"}: could not parse begin time: could not parse the value into the maintenanceTime format: parsing time \"<\" as \"150405-0700\": cannot parse \"<\" as \"15\"",
        ],
    );
    says(
        "VAL-N3",
        json!({"spec": {"networking": {"pods": "fd00::1/64"}}}),
        &[
            "spec.networking.pods: Invalid value: \"fd00::\": must be a valid IPv4 address",
            "spec.networking.pods: Invalid value: \"fd00::1/64\": must be valid canonical CIDR",
        ],
    );
    says(
        "VAL-A1",
        json!({"spec": {"purpose": "evaluation", "kubernetes": {"version": "1.34.1"}, "addons": {"nginxIngress": {"enabled": true, "loadBalancerSourceRanges": ["x"]}}}}),
        &[
            "spec.addons.nginxIngress.loadBalancerSourceRanges[0]: Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ],
    );
}

#[test]
fn val_u_words_of_upstream() {
    let old = json!({"spec": {"seedName": "s"}, "status": {"credentials": {"encryptionAtRest": {"resources": [], "provider": {"type": "aescbc"}}}}});
    let changed = |base: &Value, patch: Value| {
        texts(&validate_shoot_update(
            &shoot_with(&[base.clone(), patch]),
            &shoot_with(std::slice::from_ref(base)),
        ))
    };
    assert_eq!(
        changed(&old, json!({"spec": {"controlPlane": {"zones": ["z"]}}})),
        ["spec.controlPlane.zones: Forbidden: field is immutable"],
        "VAL-U16"
    );
    assert_eq!(
        changed(&old, json!({"spec": {"networking": null}})),
        [
            "spec.networking.type: Invalid value: null: field is immutable",
            "spec.networking.pods: Invalid value: null: field is immutable",
            "spec.networking.type: Required value: networking type must be provided",
        ],
        "VAL-U3"
    );
    let in_place =
        json!({"spec": worker(json!({"updateStrategy": "AutoInPlaceUpdate", "volume": {"size": "20Gi"}}))["spec"]});
    let larger = worker(json!({"updateStrategy": "AutoInPlaceUpdate", "volume": {"size": "30Gi", "name": "v"}}));
    assert_eq!(
        changed(&in_place, larger),
        [
            "spec.provider.workers[0].volume: Invalid value: {\"Name\":\"v\",\"Type\":null,\"VolumeSize\":\"30Gi\",\"Encrypted\":null}: volume cannot be changed if update strategy is AutoInPlaceUpdate/ManualInPlaceUpdate"
        ],
        "VAL-U10"
    );
    assert_eq!(
        changed(&old, worker(json!({"kubernetes": {"version": ""}}))),
        [
            "spec.provider.workers[0].kubernetes.version: Invalid value: \"\": cannot validate kubernetes version upgrade because it is unset"
        ],
        "VAL-U2"
    );
}

/// A list of images that may be used without credentials is looked at only where the policy asks for one; an empty one is one, too. Of the
/// grace periods upstream looks at that of images' inodes twice, and at that of nodes' never.
#[test]
fn val_l_words_of_upstream() {
    let kubelet = |config: Value| json!({"spec": {"kubernetes": {"version": "1.35.0", "kubelet": config}}});
    let at = "spec.kubernetes.kubelet";
    let misplaced = format!(
        "{at}.preloadedImagesVerificationAllowlist: Forbidden: preloadedImagesVerificationAllowlist may only be set when imagePullCredentialsVerificationPolicy is set to NeverVerifyAllowlistedImages"
    );
    for list in [json!([]), json!(["a", "b*"])] {
        says(
            "VAL-L8",
            kubelet(json!({"preloadedImagesVerificationAllowlist": list})),
            &[&misplaced],
        );
    }
    says(
        "VAL-L8",
        kubelet(
            json!({"imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages",
            "preloadedImagesVerificationAllowlist": ["a", "b*"]}),
        ),
        &[&format!(
            "{at}.preloadedImagesVerificationAllowlist[1]: Invalid value: \"b*\": not a valid wildcard pattern, only patterns ending with '/*' are allowed"
        )],
    );
    let negative =
        format!("{at}.evictionSoftGracePeriod.imagefsInodesFree: Invalid value: \"-1s\": must be non-negative");
    says(
        "VAL-L3",
        kubelet(json!({"evictionSoftGracePeriod": {"imageFSInodesFree": "-1s", "nodeFSInodesFree": "-1s"}})),
        &[&negative, &negative],
    );
}
