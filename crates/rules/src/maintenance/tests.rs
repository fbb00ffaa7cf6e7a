use super::*;
use serde_json::{Value, json};

use crate::testing::merge;

fn shoot(patch: Value) -> Shoot {
    let mut whole = json!({
        "metadata": {"name": "one", "namespace": "garden-dev"},
        "spec": {
            "kubernetes": {"version": "1.31.1"},
            "maintenance": {"autoUpdate": {"kubernetesVersion": true, "machineImageVersion": true}},
            "provider": {"type": "local", "workers": [
                {"name": "pool", "machine": {"type": "large", "architecture": "amd64", "image": {"name": "os", "version": "1.0.0"}}},
            ]},
        },
        "status": {"lastOperation": {"type": "Reconcile", "state": "Succeeded"}},
    });
    merge(&mut whole, &patch);
    serde_json::from_value(whole).unwrap()
}

fn profile(kubernetes: &str, images: Value) -> CloudProfileSpec {
    let versions: Vec<Value> = crate::versions::tests::members(kubernetes);
    serde_json::from_value(json!({
        "kubernetes": {"versions": versions},
        "machineImages": images,
        "machineTypes": [{"name": "large"}],
    }))
    .unwrap()
}

fn os(versions: &str, strategy: &str) -> Value {
    let mut versions = crate::versions::tests::members(versions);
    for version in &mut versions {
        merge(
            version,
            &json!({"cri": [{"name": "containerd"}], "architectures": ["amd64"]}),
        );
    }
    json!([{"name": "os", "updateStrategy": strategy, "versions": versions}])
}

fn planned(shoot: &Shoot, profile: &CloudProfileSpec) -> Plan {
    plan(
        shoot,
        &Surroundings {
            profile,
            credentials_bindings: &[],
            secret_binding: None,
            settings: Settings::default(),
            now: "2026-06-01T00:00:00Z".parse().unwrap(),
        },
    )
}

fn image_of(plan: &Plan, pool: usize) -> &str {
    let worker = &plan.shoot.spec.provider.workers[pool];
    worker.machine.image.as_ref().unwrap().version.as_deref().unwrap()
}

#[test]
fn vc_7_10_nothing_without_need() {
    let off =
        json!({"spec": {"maintenance": {"autoUpdate": {"kubernetesVersion": false, "machineImageVersion": false}}}});
    let stays = planned(&shoot(off), &profile("1.31.2 1.31.1", os("1.0.0 1.5.3", "major")));
    assert_eq!(stays.shoot.spec.kubernetes_version(), "1.31.1");
    assert_eq!(image_of(&stays, 0), "1.0.0");
    assert!(stays.report.is_empty(), "{:?}", stays.report);
}

#[test]
fn vc_16_17_pools_follow_within_the_control_plane() {
    let pinned = |control_plane: &str, automatic: bool| {
        let mut shoot = shoot(json!({"spec": {"kubernetes": {"version": control_plane},
            "maintenance": {"autoUpdate": {"kubernetesVersion": automatic}}}}));
        shoot.spec.provider.workers[0].kubernetes = serde_json::from_value(json!({"version": "1.30.4"})).unwrap();
        shoot
    };
    let version = |plan: &Plan| {
        plan.shoot.spec.provider.workers[0]
            .kubernetes
            .clone()
            .unwrap()
            .version
            .unwrap()
    };
    let capped = planned(
        &pinned("1.31.2", false),
        &profile("1.31.5 1.31.2 1.30.4†", os("1.0.0", "major")),
    );
    assert_eq!(
        (capped.shoot.spec.kubernetes_version(), version(&capped).as_str()),
        ("1.31.2", "1.31.2"),
        "VC-16"
    );
    let both = planned(
        &pinned("1.30.4", false),
        &profile("1.31.4 1.30.4†", os("1.0.0", "major")),
    );
    assert_eq!(
        (both.shoot.spec.kubernetes_version(), version(&both).as_str()),
        ("1.31.4", "1.31.4"),
        "VC-17"
    );
}

/// One pool, whose machine and runtime are `worker`, on images with `versions`; what it comes to.
fn image_case(worker: Value, versions: Value, patch: Value, definitions: Value) -> String {
    let mut shoot = shoot(patch);
    let mut own = serde_json::to_value(&shoot.spec.provider.workers[0]).unwrap();
    merge(&mut own, &worker);
    shoot.spec.provider.workers[0] = serde_json::from_value(own).unwrap();
    let mut profile = profile(
        "1.31.1",
        json!([{"name": "os", "updateStrategy": "major", "versions": versions}]),
    );
    profile.machine_capabilities =
        serde_json::from_value(definitions["machineCapabilities"].clone()).unwrap_or_default();
    if let Some(capabilities) = definitions.get("capabilities") {
        profile.machine_types[0].capabilities = serde_json::from_value(capabilities.clone()).unwrap();
    }
    image_of(&planned(&shoot, &profile), 0).to_owned()
}

#[test]
fn vi_20_to_27_only_what_suits_the_pool() {
    let containerd = json!([{"name": "containerd"}]);
    let version = |version: &str, more: Value| {
        let mut own = json!({"version": version, "cri": containerd, "architectures": ["amd64"]});
        merge(&mut own, &more);
        own
    };
    let none = json!({});
    let arm = json!({"machine": {"architecture": "arm64"}});
    let versions = json!([
        version("1.0.0", json!({})),
        version("1.1.2", json!({"architectures": ["arm64"]})),
        version("1.7.1", json!({}))
    ]);
    assert_eq!(image_case(arm, versions, none.clone(), none.clone()), "1.1.2", "VI-20");
    let versions = json!([
        version("1.0.0", json!({})),
        version("1.5.3", json!({"cri": [{"name": "other"}]}))
    ]);
    assert_eq!(
        image_case(none.clone(), versions, none.clone(), none.clone()),
        "1.0.0",
        "VI-21"
    );
    let gvisor = json!([{"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}]);
    let versions = json!([version("1.0.0", json!({"cri": gvisor})), version("1.5.3", json!({}))]);
    let wants = json!({"cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}});
    assert_eq!(
        image_case(wants, versions, none.clone(), none.clone()),
        "1.0.0",
        "VI-22"
    );
    let versions = json!([
        version("1.0.0", json!({})),
        version("1.5.3", json!({"kubeletVersionConstraint": "< 1.26"}))
    ]);
    let at = json!({"spec": {"kubernetes": {"version": "1.26.0"}}});
    assert_eq!(
        image_case(none.clone(), versions, at.clone(), none.clone()),
        "1.0.0",
        "VI-23"
    );
    let versions = json!([
        version("1.0.0", json!({})),
        version("1.5.3", json!({"kubeletVersionConstraint": ">= 1.26"}))
    ]);
    let pinned = json!({"kubernetes": {"version": "1.25.0"}});
    assert_eq!(
        image_case(pinned, versions.clone(), at.clone(), none.clone()),
        "1.0.0",
        "VI-24"
    );
    assert_eq!(
        image_case(none.clone(), versions, at, none.clone()),
        "1.5.3",
        "a constraint that holds"
    );
    let flavored =
        |text: &str, values: Value| json!({"version": text, "cri": containerd, "capabilityFlavors": [{"cap": values}]});
    let defined = |value: &str| {
        json!({"machineCapabilities": [{"name": "architecture", "values": ["amd64"]},
            {"name": "cap", "values": ["value1", "value2", "value3"]}], "capabilities": {"cap": [value]}})
    };
    let versions = json!([
        {"version": "1.0.0", "cri": containerd},
        flavored("1.4.2", json!(["value1", "value2"])),
        flavored("1.5.3", json!(["value2"])),
    ]);
    assert_eq!(
        image_case(none.clone(), versions.clone(), none.clone(), defined("value1")),
        "1.4.2",
        "VI-25"
    );
    assert_eq!(
        image_case(none.clone(), versions, none.clone(), defined("value3")),
        "1.0.0",
        "VI-26"
    );
    let versions = json!([
        version("1.0.0-inplace", json!({"inPlaceUpdates": {"supported": true}})),
        version(
            "1.5.3-inplace",
            json!({"inPlaceUpdates": {"supported": true, "minVersionForUpdate": "1.0.0-inplace"}})
        ),
        version("1.5.3", json!({})),
    ]);
    let in_place = json!({"updateStrategy": "AutoInPlaceUpdate", "machine": {"image": {"version": "1.0.0-inplace"}}});
    assert_eq!(
        image_case(in_place, versions, none.clone(), none),
        "1.5.3-inplace",
        "VI-27"
    );
}

#[test]
fn vi_28_one_fails_one_succeeds() {
    let mut shoot = shoot(json!({"spec": {"maintenance": {"autoUpdate": {"kubernetesVersion": false}}}}));
    let mut other = shoot.spec.provider.workers[0].clone();
    other.name = "old".into();
    other.machine.image.as_mut().unwrap().version = Some("2.0.0".into());
    shoot.spec.provider.workers.push(other);
    let both = planned(&shoot, &profile("1.31.1", os("1.0.0 1.0.2 2.0.0†", "major")));
    assert_eq!((image_of(&both, 0), image_of(&both, 1)), ("1.0.2", "2.0.0"));
    assert_eq!(
        both.report.description(),
        "(1/2) maintenance operations successful. Worker pool \"pool\": Updated machine image \"os\" from \"1.0.0\" to \"1.0.2\". Reason: Automatic update of the machine image version is configured (image update strategy: major), Worker pool \"old\": machine image version maintenance failed. Reason for update: Machine image version expired - force update required (image update strategy: major)"
    );
    let why = both.report.failure_reason().unwrap();
    assert!(
        why.starts_with(
            "Worker pool \"old\": failed to update machine image \"os\": failed to determine the target version"
        ),
        "{why}"
    );
    assert_eq!(both.report.events().len(), 2);
}

#[test]
fn ver_78_an_unknown_image_ends_the_images_only() {
    let mut shoot = shoot(json!({}));
    shoot.spec.provider.workers[0].machine.image.as_mut().unwrap().name = "gone".into();
    let plan = planned(&shoot, &profile("1.31.2 1.31.1", os("1.0.0", "major")));
    assert!(plan.images_left_out.unwrap().contains("\"gone\""));
    assert_eq!(plan.shoot.spec.kubernetes_version(), "1.31.2");
    assert_eq!(
        plan.report.description(),
        "All maintenance operations successful. Control Plane: Updated Kubernetes version from \"1.31.1\" to \"1.31.2\". Reason: Automatic update of Kubernetes version configured"
    );
}

#[test]
fn ver_82_83_fields_of_older_versions_go() {
    let shoot = shoot(json!({"spec": {
        "kubernetes": {"version": "1.32.1",
            "kubeControllerManager": {"podEvictionTimeout": "2m"},
            "kubeAPIServer": {"featureGates": {"AppArmor": true, "AllAlpha": true},
                "admissionPlugins": [{"name": "PodNodeSelector"}, {"name": "PersistentVolumeLabel"}]}},
    }}));
    let plan = planned(&shoot, &profile("1.33.2 1.32.1†", os("1.0.0", "major")));
    let kubernetes = &plan.shoot.spec.kubernetes;
    assert_eq!(kubernetes.version.as_deref(), Some("1.33.2"));
    assert_eq!(
        kubernetes
            .kube_controller_manager
            .as_ref()
            .unwrap()
            .pod_eviction_timeout,
        None
    );
    let server = kubernetes.kube_api_server.as_ref().unwrap();
    assert_eq!(server.feature_gates.keys().collect::<Vec<_>>(), ["AllAlpha"]);
    assert_eq!(server.admission_plugins.len(), 1);
    let starts = [
        ".spec.kubernetes.kubeControllerManager.podEvictionTimeout is set to nil. Reason: ",
        "Removed feature gates from \"spec.kubernetes.kubeAPIServer.featureGates\" because they are not supported in Kubernetes version \"1.33.2\": AppArmor",
        "Removed admission plugins from \"spec.kubernetes.kubeAPIServer.admissionPlugins\" because they are not supported in Kubernetes version \"1.33.2\": PersistentVolumeLabel",
    ];
    assert_eq!(plan.report.messages.len(), starts.len(), "{:?}", plan.report.messages);
    for (message, start) in plan.report.messages.iter().zip(starts) {
        assert!(message.starts_with(start), "{message}");
    }
}

/// [VER-82]: each field goes when its version is crossed, and not before or after.
#[test]
fn ver_82_each_field_goes_at_its_version() {
    let fields = json!({"spec": {
        "credentialsBindingName": "my",
        "addons": {"nginxIngress": {"enabled": true}},
        "dns": {"providers": [{"type": "a"}, {"type": "b", "secretName": "s"}, {"type": "c", "secretName": "t"}]},
        "kubernetes": {
            "kubeAPIServer": {"enableAnonymousAuthentication": false, "watchCacheSizes": {"default": 5, "resources": []}},
            "kubeScheduler": {"kubeMaxPDVols": "20"},
            "kubeControllerManager": {"podEvictionTimeout": "2m"},
            "clusterAutoscaler": {"maxEmptyBulkDelete": 3},
        },
    }});
    let brought = |from: &str, to: &str| {
        let mut shoot = shoot(fields.clone());
        shoot.spec.kubernetes.version = Some(from.to_owned());
        let listed = match from == to {
            true => from.to_owned(),
            false => format!("{to} {from}†"),
        };
        let plan = planned(&shoot, &profile(&listed, os("1.0.0", "major")));
        assert_eq!(plan.shoot.spec.kubernetes_version(), to);
        let starts = plan
            .report
            .messages
            .iter()
            .map(|message| match message.split_once(". Reason: ") {
                Some((start, _)) => start.to_owned(),
                None => message.clone(),
            });
        (starts.collect::<Vec<_>>(), plan)
    };
    let (told, plan) = brought("1.32.0", "1.33.0");
    assert_eq!(
        told,
        [
            ".spec.kubernetes.kubeControllerManager.podEvictionTimeout is set to nil",
            ".spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete is set to nil",
        ]
    );
    let kubernetes = &plan.shoot.spec.kubernetes;
    assert!(
        kubernetes
            .cluster_autoscaler
            .as_ref()
            .unwrap()
            .max_empty_bulk_delete
            .is_none()
    );
    assert!(plan.shoot.spec.addons.is_some() && kubernetes.kube_scheduler.as_ref().unwrap().kube_max_pd_vols.is_some());
    let (told, plan) = brought("1.34.0", "1.35.0");
    assert_eq!(
        told,
        [
            ".spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication was removed",
            ".spec.kubernetes.kubeScheduler.kubeMaxPDVols was removed",
            ".spec.kubernetes.kubeAPIServer.watchCacheSizes.default was removed",
            ".spec.addons was removed",
            ".spec.dns.providers[1].secretName was removed",
            ".spec.dns.providers[2].secretName was removed",
        ]
    );
    let spec = &plan.shoot.spec;
    assert!(spec.addons.is_none());
    let server = spec.kubernetes.kube_api_server.as_ref().unwrap();
    assert!(
        server.enable_anonymous_authentication.is_none()
            && server.watch_cache_sizes.as_ref().unwrap().default.is_none()
    );
    assert!(
        spec.kubernetes
            .kube_scheduler
            .as_ref()
            .unwrap()
            .kube_max_pd_vols
            .is_none()
    );
    assert!(
        spec.dns
            .as_ref()
            .unwrap()
            .providers
            .iter()
            .all(|provider| provider.secret_name.is_none())
    );
    for (from, to) in [
        ("1.33.0", "1.34.0"),
        ("1.34.0", "1.34.1"),
        ("1.35.0", "1.36.0"),
        ("1.35.0", "1.35.0"),
    ] {
        assert_eq!(brought(from, to).0, Vec::<String>::new(), "{from} {to}");
    }
}

/// [VER-83]: gates of each component, of pools by the version that they come to; on every run.
#[test]
fn ver_83_gates_of_every_component() {
    // gone with 1.33; known to all
    let gates = json!({"featureGates": {"AppArmor": true, "AllAlpha": true}});
    let mut shoot = shoot(json!({"spec": {"kubernetes": {
        "version": "1.33.1", "kubeAPIServer": gates, "kubeControllerManager": gates, "kubeScheduler": gates,
        "kubeProxy": gates, "kubelet": gates,
    }}}));
    let mut old = shoot.spec.provider.workers[0].clone();
    old.name = "old".into();
    for (worker, version) in [(&mut shoot.spec.provider.workers[0], None), (&mut old, Some("1.32.1"))] {
        worker.kubernetes = serde_json::from_value(json!({"version": version, "kubelet": gates})).unwrap();
    }
    shoot.spec.provider.workers.push(old);
    let plan = planned(&shoot, &profile("1.33.1 1.32.1", os("1.0.0", "major")));
    let told = |path: &str| {
        format!(
            "Removed feature gates from \"spec.{path}.featureGates\" because they are not supported in Kubernetes version \"1.33.1\": AppArmor"
        )
    };
    let expected = [
        "kubernetes.kubeAPIServer",
        "kubernetes.kubeControllerManager",
        "kubernetes.kubeScheduler",
        "kubernetes.kubeProxy",
        "kubernetes.kubelet",
        "provider.workers[0].kubernetes.kubelet",
    ];
    assert_eq!(plan.report.messages, expected.map(told), "the second pool has 1.32");
    let gates = |at: usize| {
        let kubernetes = plan.shoot.spec.provider.workers[at].kubernetes.as_ref().unwrap();
        kubernetes.kubelet.as_ref().unwrap().feature_gates.len()
    };
    assert_eq!((gates(0), gates(1)), (1, 2));
}

/// [VER-86].
#[test]
fn ver_86_the_nginx_ingress_is_taken_away_where_the_landscape_says_so() {
    for (given, disables, expected) in [
        (json!({"nginxIngress": {"enabled": true}}), true, Some(false)),
        (json!({"nginxIngress": {"enabled": true}}), false, Some(true)),
        (json!({"nginxIngress": {"enabled": false}}), true, Some(false)),
        (json!({}), true, None),
    ] {
        let profile = profile("1.33.1", os("1.0.0", "major"));
        let own = shoot(json!({"spec": {"kubernetes": {"version": "1.33.1"}, "addons": given}}));
        let around = Surroundings {
            profile: &profile,
            credentials_bindings: &[],
            secret_binding: None,
            settings: Settings {
                disable_nginx_ingress: disables,
                ..Settings::default()
            },
            now: "2026-06-01T00:00:00Z".parse().unwrap(),
        };
        let plan = plan(&own, &around);
        let found = plan
            .shoot
            .spec
            .addons
            .as_ref()
            .and_then(|own| own.nginx_ingress.as_ref());
        assert_eq!(found.map(|own| own.enabled), expected, "{given} {disables}");
        let changed = disables && given["nginxIngress"]["enabled"] == true;
        assert_eq!(plan.report.messages.len(), usize::from(changed), "{given} {disables}");
    }
}

#[test]
fn ver_82_secret_bindings_become_credentials_bindings() {
    let shoot = shoot(json!({"spec": {"kubernetes": {"version": "1.33.1"}, "secretBindingName": "my"}}));
    let profile = profile("1.34.0 1.33.1†", os("1.0.0", "major"));
    let secret: SecretBinding = serde_json::from_value(json!({"metadata": {"name": "my", "namespace": "garden-dev"},
        "secretRef": {"name": "key", "namespace": "garden-dev"}, "provider": {"type": "local"}}))
    .unwrap();
    let binding = |name: &str, secret: &str| -> CredentialsBinding {
        serde_json::from_value(json!({"metadata": {"name": name}, "provider": {"type": "local"},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": secret, "namespace": "garden-dev"}}))
        .unwrap()
    };
    let with = |bindings: &[CredentialsBinding]| {
        plan(
            &shoot,
            &Surroundings {
                profile: &profile,
                credentials_bindings: bindings,
                secret_binding: Some(&secret),
                settings: Settings::default(),
                now: "2026-06-01T00:00:00Z".parse().unwrap(),
            },
        )
    };
    let made = with(&[binding("another", "other")]);
    assert_eq!(
        made.shoot.spec.credentials_binding_name.as_deref(),
        Some("force-migrated-my")
    );
    assert_eq!(made.shoot.spec.secret_binding_name, None);
    assert_eq!(made.new_binding.unwrap().credentials_ref.name.as_deref(), Some("key"));
    let found = with(&[binding("b", "key"), binding("a", "key")]);
    assert_eq!(found.shoot.spec.credentials_binding_name.as_deref(), Some("a"));
    assert!(found.new_binding.is_none());
    let taken = with(&[binding("force-migrated-my", "other")]);
    assert_eq!(taken.shoot.spec.secret_binding_name.as_deref(), Some("my"));
    assert!(
        taken.report.messages[0].starts_with("Failed to migrate from secretBindingName to credentialsBindingName: ")
    );
}

#[test]
fn ver_85_87_operations_and_tasks() {
    let annotations = |plan: &Plan, key: &str| plan.shoot.annotation(key).unwrap_or_default().to_owned();
    let case = |given: Value, state: Value| {
        let shoot = shoot(json!({"metadata": {"annotations": given}, "status": {"lastOperation": state}}));
        planned(&shoot, &profile("1.31.1", os("1.0.0", "major")))
    };
    let operation = "gardener.cloud/operation";
    let later = "maintenance.gardener.cloud/operation";
    let good = json!({"type": "Reconcile", "state": "Succeeded"});
    let failed = json!({"type": "Reconcile", "state": "Failed"});
    let plain = case(json!({operation: "maintain"}), good.clone());
    assert_eq!(annotations(&plain, operation), "reconcile");
    assert!(plain.report.is_empty());
    let asked = case(json!({later: "rotate-ssh-keypair"}), good);
    assert_eq!(annotations(&asked, operation), "rotate-ssh-keypair;reconcile");
    assert_eq!(asked.shoot.annotation(later), None);
    assert_eq!(
        asked.report.messages,
        ["Added \"rotate-ssh-keypair;reconcile\" operation annotation"]
    );
    let stuck = case(json!({later: "rotate-ssh-keypair"}), failed.clone());
    assert_eq!(
        (stuck.shoot.annotation(operation), stuck.shoot.annotation(later)),
        (None, Some("rotate-ssh-keypair"))
    );
    let marked = case(
        json!({"maintenance.shoot.gardener.cloud/needs-retry-operation": "true", later: "reconcile"}),
        failed,
    );
    assert_eq!(annotations(&marked, operation), "retry");
    assert_eq!(annotations(&marked, later), "reconcile");
    assert_eq!(
        marked
            .shoot
            .annotation("maintenance.shoot.gardener.cloud/needs-retry-operation"),
        None
    );
    let new = case(json!({}), Value::Null);
    assert_eq!(new.shoot.annotation(operation), None);
    assert_eq!(
        annotations(&new, "shoot.gardener.cloud/tasks"),
        "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress,restartControlPlanePods"
    );
}

const ROTATE_ALL: [(&str, &str); 3] = [
    ("sshKeypair", "168h"),
    ("observability", "168h"),
    ("etcdEncryptionKey", "672h"),
];

/// A shoot of which these credentials are rotated by themselves; it was made so long ago.
fn rotating(wanted: &[(&str, &str)], created: &str, patch: &Value) -> Shoot {
    let periods: serde_json::Map<String, Value> = wanted
        .iter()
        .map(|(name, period)| ((*name).to_owned(), json!({"rotationPeriod": period})))
        .collect();
    let mut whole = json!({
        "metadata": {"creationTimestamp": created},
        "spec": {"maintenance": {"autoRotation": {"credentials": periods}}},
    });
    merge(&mut whole, patch);
    shoot(whole)
}

/// What becomes of a shoot whose versions are fine: the operation that is asked for, description and failure.
fn rotated(shoot: &Shoot) -> (String, String, Option<String>) {
    let plan = planned(shoot, &profile("1.31.1", os("1.0.0", "major")));
    assert!(plan.report.events().is_empty(), "[VER-90] knows no events of rotations");
    let operation = plan.shoot.annotation("gardener.cloud/operation").unwrap_or_default();
    let description = match plan.report.is_empty() {
        true => String::new(),
        false => plan.report.description(),
    };
    (operation.to_owned(), description, plan.report.failure_reason())
}

#[test]
fn ver_84_85_89_credentials_whose_time_has_come() {
    let all = rotating(&ROTATE_ALL, "2026-01-01T00:00:00Z", &json!({}));
    assert_eq!(
        rotated(&all),
        (
            "reconcile;rotate-ssh-keypair;rotate-observability-credentials;rotate-etcd-encryption-key".to_owned(),
            "All maintenance operations successful. \
             Credentials \"rotate-ssh-keypair\": SSH keypair rotation started. Reason: Automatic rotation of SSH keypair configured, \
             Credentials \"rotate-observability-credentials\": Observability passwords rotation started. Reason: Automatic rotation of observability passwords configured, \
             Credentials \"rotate-etcd-encryption-key\": ETCD Encryption key rotation started. Reason: Automatic rotation of etcd encryption key configured, \
             Added \"reconcile;rotate-ssh-keypair;rotate-observability-credentials;rotate-etcd-encryption-key\" operation annotation"
                .to_owned(),
            None
        )
    );
    // now it is 2026-06-01T00:00:00Z
    let quiet = ("reconcile".to_owned(), String::new(), None);
    let young = rotating(&ROTATE_ALL, "2026-05-25T00:00:00Z", &json!({}));
    assert_eq!(rotated(&young), quiet, "a week is not over at its end");
    let older = rotating(&ROTATE_ALL, "2026-05-24T23:59:59Z", &json!({}));
    assert_eq!(
        rotated(&older).0,
        "reconcile;rotate-ssh-keypair;rotate-observability-credentials"
    );
    let never = rotating(
        &[
            ("sshKeypair", "0s"),
            ("observability", "0s"),
            ("etcdEncryptionKey", "0s"),
        ],
        "2020-01-01T00:00:00Z",
        &json!({}),
    );
    assert_eq!(rotated(&never), quiet);
    let since = |name: &str, time: &str| json!({"status": {"credentials": {"rotation": {name: {"phase": "Completed", "lastInitiationTime": time, "lastCompletionTime": time}}}}});
    let done = rotating(
        &ROTATE_ALL,
        "2026-01-01T00:00:00Z",
        &since("sshKeypair", "2026-05-31T00:00:00Z"),
    );
    assert_eq!(
        rotated(&done).0,
        "reconcile;rotate-observability-credentials;rotate-etcd-encryption-key"
    );
}

#[test]
fn ver_84_who_cannot_be_rotated() {
    let quiet = ("reconcile".to_owned(), String::new(), None);
    let old = "2026-01-01T00:00:00Z";
    let no_ssh = json!({"spec": {"provider": {"workersSettings": {"sshAccess": {"enabled": false}}}}});
    assert_eq!(rotated(&rotating(&ROTATE_ALL[..1], old, &no_ssh)), quiet);
    let asleep = json!({"spec": {"hibernation": {"enabled": true}}});
    assert_eq!(rotated(&rotating(&ROTATE_ALL[2..], old, &asleep)), quiet);
    assert_eq!(
        rotated(&rotating(&ROTATE_ALL[..2], old, &asleep)).0,
        "reconcile;rotate-ssh-keypair;rotate-observability-credentials"
    );
    for state in ["Preparing", "Prepared", "Completing"] {
        let busy = json!({"status": {"credentials": {"rotation": {"etcdEncryptionKey": {"phase": state}}}}});
        assert_eq!(
            rotated(&rotating(&ROTATE_ALL[2..], old, &busy)),
            (
                "reconcile".to_owned(),
                "(0/1) maintenance operations successful. Credentials \"rotate-etcd-encryption-key\": Automatic rotation failed. \
                 Reason for update: ETCD encryption key rotation is already in progress"
                    .to_owned(),
                Some(
                    "Credentials \"rotate-etcd-encryption-key\": Automatic rotation failure due to: Could not start ETCD encryption key rotation"
                        .to_owned()
                )
            ),
            "{state}"
        );
    }
    // of whom gardenlet cannot be asked anything, nothing is told either
    let failed = json!({"status": {"lastOperation": {"type": "Reconcile", "state": "Failed"}}});
    assert_eq!(
        rotated(&rotating(&ROTATE_ALL, old, &failed)),
        (String::new(), String::new(), None)
    );
    let fresh = json!({"status": {"lastOperation": null}});
    assert_eq!(
        rotated(&rotating(&ROTATE_ALL, old, &fresh)),
        (String::new(), String::new(), None)
    );
}

#[test]
fn ver_85_rotations_stand_behind_what_was_asked_for() {
    let old = "2026-01-01T00:00:00Z";
    for (wanted, expected) in [
        (
            "rotate-ca-start",
            "rotate-ca-start;reconcile;rotate-ssh-keypair;rotate-observability-credentials;rotate-etcd-encryption-key",
        ),
        (
            "rotate-ssh-keypair;reconcile",
            "rotate-ssh-keypair;reconcile;rotate-observability-credentials;rotate-etcd-encryption-key",
        ),
        (
            "rotate-etcd-encryption-key-start",
            "rotate-etcd-encryption-key-start;reconcile;rotate-ssh-keypair;rotate-observability-credentials",
        ),
    ] {
        let asked = json!({"metadata": {"annotations": {"maintenance.gardener.cloud/operation": wanted}}});
        assert_eq!(rotated(&rotating(&ROTATE_ALL, old, &asked)).0, expected, "{wanted}");
    }
}

#[test]
fn the_next_rotation_is_a_change_to_come() {
    let next = |shoot: &Shoot, now: &str| {
        let found = next_change(shoot, &profile("1.31.1", os("1.0.0", "major")), now.parse().unwrap());
        found.map(|time| time.to_string())
    };
    let created = "2026-01-01T00:00:00Z";
    let all = rotating(&ROTATE_ALL[1..], created, &json!({}));
    assert_eq!(
        next(&all, "2026-01-02T00:00:00Z").as_deref(),
        Some("2026-01-08T00:00:00Z")
    );
    assert_eq!(
        next(&all, "2026-01-08T00:00:00Z").as_deref(),
        Some("2026-01-08T00:00:00Z"),
        "not due at that moment"
    );
    assert_eq!(
        next(&all, "2026-01-09T00:00:00Z").as_deref(),
        Some("2026-01-29T00:00:00Z")
    );
    assert_eq!(next(&all, "2026-02-09T00:00:00Z"), None);
    let asleep = json!({"spec": {"hibernation": {"enabled": true}}});
    assert_eq!(
        next(&rotating(&ROTATE_ALL[2..], created, &asleep), "2026-01-02T00:00:00Z"),
        None
    );
    let wakes = json!({"spec": {"hibernation": {"enabled": true, "schedules": [{"end": "0 6 * * *"}]}}});
    let wakes = rotating(&ROTATE_ALL[2..], created, &wakes);
    assert_eq!(
        next(&wakes, "2026-01-02T00:00:00Z").as_deref(),
        Some("2026-01-29T00:00:00Z")
    );
    assert_eq!(
        next(&wakes, "2026-02-02T00:00:00Z").as_deref(),
        Some("2026-02-02T00:00:00Z")
    );
}
