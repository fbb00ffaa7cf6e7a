use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

/// A shoot with pools: name, minimum and version.
fn shoot(pools: &[(&str, i32, &str)]) -> Shoot {
    let pools: Vec<Value> = pools
        .iter()
        .map(|(name, minimum, version)| json!({"name": name, "minimum": minimum, "maximum": 9, "kubernetes": {"version": version}}))
        .collect();
    serde_json::from_value(json!({"spec": {"provider": {"workers": pools}, "kubernetes": {"version": "1.35.0"}}}))
        .unwrap()
}

/// A node of pool `p` that is well, but for the changes: members of metadata, conditions by type, or `kubelet`.
fn node(name: &str, changes: Value) -> Node {
    let mut conditions = vec![json!({"type": "Ready", "status": "True"})];
    let mut metadata = json!({"name": name, "labels": {POOL: "p"}});
    let (mut kubelet, mut spec) = (json!("v1.35.0"), json!({}));
    for (key, value) in changes.as_object().unwrap() {
        match key.as_str() {
            "labels" | "annotations" => {
                for (own, text) in value.as_object().unwrap() {
                    metadata[key][own] = text.clone();
                }
            }
            "kubelet" => kubelet = value.clone(),
            "taints" => spec["taints"] = value.clone(),
            kind => {
                conditions.retain(|own| own["type"] != kind);
                if let Some(status) = value.get("status") {
                    let of = |key: &str| value.get(key).cloned().unwrap_or_default();
                    conditions.push(
                        json!({"type": kind, "status": status, "reason": of("reason"), "message": of("message")}),
                    );
                }
            }
        }
    }
    let info = json!({
        "kubeletVersion": kubelet, "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
        "kubeProxyVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
    });
    serde_json::from_value(
        json!({"metadata": metadata, "spec": spec, "status": {"conditions": conditions, "nodeInfo": info}}),
    )
    .unwrap()
}

fn preserved(name: &str) -> Node {
    node(
        name,
        json!({"NodePreserved": {"status": "True"}, "Ready": {"status": "Unknown", "reason": "r", "message": "m"}}),
    )
}

fn lease(name: &str, renewed: &str) -> Lease {
    serde_json::from_value(json!({
        "metadata": {"name": name}, "spec": {"leaseDurationSeconds": 40, "renewTime": format!("2026-03-01T{renewed}.000000Z")},
    }))
    .unwrap()
}

#[test]
fn st_57_nodes_and_versions() {
    let pool = |version: &str| shoot(&[("p", 1, version)]);
    let version = |kubelet: &str| node("n", json!({"kubelet": kubelet}));
    let pressed =
        json!({"Ready": {"status": "False", "reason": "KubeletNotReady", "message": "no: KubeletHasDiskPressure"}});
    let disk = json!({"DiskPressure": {"status": "True", "reason": "r", "message": "m"}});
    let unhealthy = |why: &str| format!("Node \"n\" in worker group \"p\" is unhealthy: {why}");
    type Case<'a> = (&'a str, Shoot, Node, Option<(&'a str, String, bool)>);
    let table: [Case<'_>; 9] = [
        (
            "W-N1",
            pool("1.35.0"),
            node("n", json!({"Ready": {}})),
            Some(("NodeUnhealthy", unhealthy("condition \"Ready\" is missing"), false)),
        ),
        (
            "W-N2",
            pool("1.35.0"),
            node("n", pressed),
            Some((
                "NodeUnhealthy",
                unhealthy("condition \"Ready\" has invalid status False (expected True) due to KubeletNotReady: no: KubeletHasDiskPressure"),
                true,
            )),
        ),
        (
            "ST-61",
            pool("1.35.0"),
            node("n", disk),
            Some(("NodeUnhealthy", unhealthy("condition \"DiskPressure\" has invalid status True (expected False) due to r: m"), false)),
        ),
        (
            "W-N3",
            pool("1.30.4"),
            version("v1.30.2"),
            Some((
                "KubeletVersionMismatch",
                "The kubelet version for node \"n\" (v1.30.2) does not match the desired Kubernetes version (v1.30.4)".to_owned(),
                false,
            )),
        ),
        ("W-N4", pool("1.31.1"), version("v1.30.2"), None),
        ("newer", pool("1.30.2"), version("v1.30.4"), None),
        ("equal", pool("1.30.2"), version("v1.30.2"), None),
        (
            "unreadable",
            pool("1.30.2"),
            version("one"),
            Some((
                "VersionParseError",
                "Error checking for same major minor Kubernetes version for node \"n\": unexpected character 'o' while parsing major version number"
                    .to_owned(),
                false,
            )),
        ),
        ("nobody's", shoot(&[("q", 0, "1.35.0")]), node("n", json!({"Ready": {}})), None),
    ];
    for (id, shoot, node, expected) in table {
        let nodes = [node];
        let expected = expected.map(|(reason, message, is_users)| Finding {
            codes: is_users
                .then(|| "ERR_CONFIGURATION_PROBLEM".to_owned())
                .into_iter()
                .collect(),
            ..Finding::new(reason, message)
        });
        assert_eq!(Nodes::new(&nodes).are_well(&shoot).err(), expected, "{id}");
    }
}

#[test]
fn st_57_pools_are_looked_at_one_after_the_other() {
    let two = [node("a", json!({})), node("b", json!({}))];
    let found = Nodes::new(&two).are_well(&shoot(&[("p", 3, "1.35.0")])).unwrap_err();
    assert_eq!(found.reason, "MissingNodes", "W-N5");
    let text = "Not enough worker nodes registered in worker pool \"p\" to meet minimum desired machine count. (2/3).";
    assert_eq!(found.message, text, "W-N5");
    let other = node("c", json!({"labels": {POOL: "q"}, "Ready": {}}));
    let nodes = [two[0].clone(), other];
    for (pools, expected) in [
        (&[("p", 2, "1.35.0"), ("q", 1, "1.35.0")][..], "MissingNodes"),
        (&[("q", 1, "1.35.0"), ("p", 2, "1.35.0")], "NodeUnhealthy"),
        (&[("p", 1, "1.35.0"), ("q", 1, "1.35.0")], "NodeUnhealthy"),
    ] {
        let found = Nodes::new(&nodes).are_well(&shoot(pools)).unwrap_err();
        assert_eq!(found.reason, expected, "{pools:?}");
    }
}

#[test]
fn st_60_preserved_nodes_are_told_last() {
    let shoot = shoot(&[("p", 1, "1.35.0")]);
    let nodes = [preserved("kept"), node("n", json!({}))];
    let buffered = Nodes::new(&nodes).are_well(&shoot).unwrap().unwrap();
    assert_eq!(buffered.reason, "NodeUnhealthy");
    assert!(
        buffered.message.starts_with("Node \"kept\" in worker group"),
        "{buffered:?}"
    );
    assert!(
        buffered
            .message
            .ends_with(": m (node and backing machine preserved by MCM)"),
        "{buffered:?}"
    );
    let nodes = [preserved("kept"), node("n", json!({"Ready": {}}))];
    let found = Nodes::new(&nodes).are_well(&shoot).unwrap_err();
    assert!(found.message.contains("Node \"n\""), "{found:?}");
    // one that works is not meant
    assert!(!is_preserved(&node("n", json!({"NodePreserved": {"status": "True"}}))));
}

#[test]
fn st_57_configs() {
    let secret = |name: &str, pool: &str| -> ObjectMeta {
        serde_json::from_value(json!({"name": name, "labels": {POOL: pool}, "annotations": {DESIRED_CHECKSUM: "new"}}))
            .unwrap()
    };
    let secrets = [secret("key-p", "p")];
    let shoot = shoot(&[("p", 1, "1.35.0")]);
    let pools = &shoot.spec.provider.workers;
    let with = |checksum: &str| node("n", json!({"annotations": {APPLIED_CHECKSUM: checksum}}));
    let taint = |effect: &str| node("n", json!({"taints": [{"key": REPLACED, "effect": effect}]}));
    let missing = "the last successfully applied operating system config on node \"n\" hasn't been reported yet";
    let outdated =
        "the last successfully applied operating system config on node \"n\" is outdated (current: old, desired: new)";
    for (node, expected) in [
        (with("new"), None),
        (with("old"), Some(outdated)),
        (node("n", json!({})), Some(missing)),
        (taint("PreferNoSchedule"), None),
        (taint("NoSchedule"), Some(missing)),
        (node("n", json!({"labels": {SECRET_NAME: "key-old"}})), None),
        (node("n", json!({"labels": {SECRET_NAME: "key-p"}})), Some(missing)),
        (preserved("n"), None),
    ] {
        let nodes = [node];
        let expected = expected.map(|why| {
            Finding::new(
                "OperatingSystemConfigOutdated",
                format!("1 error occurred:\n\t* {why}\n\n"),
            )
        });
        assert_eq!(
            Nodes::new(&nodes).have_configs(pools, &secrets).err(),
            expected,
            "{:?}",
            nodes[0]
        );
    }
    let nodes = [with("old"), node("m", json!({}))];
    let found = Nodes::new(&nodes).have_configs(pools, &secrets).unwrap_err();
    assert!(
        found.message.starts_with("2 errors occurred:\n\t* the last"),
        "{found:?}"
    );
    let found = Nodes::new(&nodes)
        .have_configs(pools, &[secret("key-q", "q")])
        .unwrap_err();
    assert!(
        found
            .message
            .contains("* missing operating system config secret metadata for worker pool \"p\"\n"),
        "{found:?}"
    );
}

#[test]
fn st_57_node_agents() {
    let lease = |renewed: &str| lease("gardener-node-agent-n", renewed);
    let unmanaged = node("n", json!({"annotations": {NOT_MANAGED: "1"}}));
    let managed = node("n", json!({"annotations": {NOT_MANAGED: "0"}}));
    let (absent, stopped) = (
        "gardener-node-agent is not running on node \"n\"",
        "gardener-node-agent stopped running on node \"n\"",
    );
    for (id, node, leases, expected) in [
        ("lives", managed.clone(), vec![lease("09:59:20")], None),
        ("stopped", managed.clone(), vec![lease("09:59:19")], Some(stopped)),
        ("absent", managed, vec![], Some(absent)),
        ("W-N11", unmanaged, vec![], None),
        ("preserved", preserved("n"), vec![], None),
    ] {
        let nodes = [node];
        let expected = expected.map(|text| Finding::new("NodeAgentUnhealthy", text));
        assert_eq!(Nodes::new(&nodes).have_agents(&leases, now()).err(), expected, "{id}");
    }
}

#[test]
fn st_57_units() {
    let units = |name: &str, status: &str| node(name, json!({"SystemdUnitsReady": {"status": status, "message": "m"}}));
    let nodes = [
        units("a", "False"),
        units("b", "True"),
        node("c", json!({})),
        units("d", "Unknown"),
    ];
    let found = Nodes::new(&nodes).have_units().unwrap_err();
    assert_eq!(
        found,
        Finding::new(
            "SystemdUnitsNotReady",
            "systemd units are not healthy on node \"a\": m; node \"d\": m"
        )
    );
    assert!(Nodes::new(&nodes[1..3]).have_units().is_ok());
}

#[test]
fn st_57_expired_leases() {
    let names: Vec<String> = (0..11).map(|own| format!("n{own}")).collect();
    let nodes: Vec<Node> = names.iter().map(|name| node(name, json!({}))).collect();
    let nodes = Nodes::new(&nodes);
    let leases = |count: usize, expired: usize| -> Vec<Lease> {
        let renewed = |own: usize| if own < expired { "09:59:19" } else { "09:59:20" };
        (0..count).map(|own| lease(&names[own], renewed(own))).collect()
    };
    let found = nodes.have_leases(&leases(10, 2), now()).unwrap_err();
    assert_eq!(found.reason, "TooManyExpiredNodeLeases", "W-N12");
    assert!(found.message.starts_with("20% of all Leases"), "W-N12 {found:?}");
    assert!(nodes.have_leases(&leases(11, 2), now()).is_ok(), "W-N13");
    assert!(nodes.have_leases(&[], now()).is_ok());
    assert!(nodes.have_leases(&[lease("gone", "09:00:00")], now()).is_ok());
    assert!(Nodes::new(&[]).have_leases(&leases(10, 2), now()).is_ok());
}
