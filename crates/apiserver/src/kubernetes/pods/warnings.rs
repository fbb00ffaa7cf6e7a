//! What clients are warned of in pods and their templates: what does not work any more, and what will surprise.

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Path, go_quote};
use gardener_apimachinery::names;
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::annotations::{APP_ARMOR, SECCOMP, SECCOMP_OF_POD};
use crate::kubernetes::checks::{list, map, number, spec_of, text};
use crate::kubernetes::{addresses, claims};
use crate::meta;

/// Labels of nodes that are no more.
const OLD_LABELS: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

/// Annotations without effect.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Sources of volumes that are no more, in the order in which upstream looks at them.
pub(in crate::kubernetes) const OLD_SOURCES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Why a label of nodes is not to be used any more, if so.
pub(in crate::kubernetes) fn of_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(own, _)| *own == key).map(|(_, why)| *why)
}

/// Warns of a name that pods' hosts would have. `whose` tells what it is used in.
pub(in crate::kubernetes) fn of_name(object: &Value, whose: &str, found: &mut Vec<String>) {
    let wrong = meta::dns1123_label(meta::name(object));
    if !wrong.is_empty() {
        found.push(format!(
            "metadata.name: this is used in {whose}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

/// What to warn of in a new pod.
pub(super) fn of_pod(pod: &Value) -> Vec<String> {
    let mut found = Vec::new();
    of_name(pod, "the Pod's hostname", &mut found);
    of(pod, None, &mut found);
    found
}

/// What to warn of in a workload: its name when it is new, and its template when it is new or of another generation, which a Deployment is by its
/// annotations, too.
pub(in crate::kubernetes) fn of_workload(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    match old {
        None => of_name(object, "Pod names and hostnames", &mut found),
        Some(old) if old.at("/metadata/generation") == object.at("/metadata/generation") => return found,
        Some(_) => {}
    }
    let path = Path::new("spec").child("template");
    of_template(spec_of(object).get("template"), &path, &mut found);
    found
}

/// What to warn of in a template at a path.
pub(in crate::kubernetes) fn of_template(template: Option<&Value>, path: &Path, found: &mut Vec<String>) {
    if let Some(template) = template {
        of(template, Some(path), found);
    }
}

/// `path` is where a template is; pods are at the root.
fn of(pod: &Value, path: Option<&Path>, found: &mut Vec<String>) {
    let root = path.cloned().unwrap_or_else(Path::root);
    let (spec, at) = (spec_of(pod), root.child("spec"));
    let annotations = pod.at("/metadata/annotations").unwrap_or(&Value::Null);
    let annotation = |key: &str| root.child("metadata").child("annotations").key(key);
    of_scheduling(spec, &at, found);
    for (key, why) in OLD_ANNOTATIONS {
        if annotations.get(key).is_some() {
            found.push(format!("{}: {why}", annotation(key)));
        }
    }
    of_volumes(spec, &at, found);
    for (key, member, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let elements = list(spec, key);
        let mut seen = BTreeSet::new();
        for (index, own) in elements.iter().enumerate() {
            let value = text(own, member);
            if !seen.insert(value) {
                let at = at.child(key).index(index).child(member);
                found.push(format!("{at}: duplicate {what} {}", go_quote(value)));
            }
        }
    }
    for (index, own) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(own, "name").is_empty() {
            let at = at.child("imagePullSecrets").index(index).child("name");
            found.push(format!("{at}: invalid empty name \"\""));
        }
    }
    fractions(spec.get("overhead"), &at.child("overhead"), found);
    let profile = |of: &Value, key: &str| of.at(&format!("/securityContext/{key}")).cloned();
    if profile(spec, "seccompProfile").is_none() && annotations.get(SECCOMP_OF_POD).is_some() {
        let why = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
        found.push(format!("{}: {why}", annotation(SECCOMP_OF_POD)));
    }
    let containers: Vec<(Path, &Value)> = ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|key| {
            let path = at.child(key);
            let all = list(spec, key).iter().enumerate();
            all.map(move |(index, own)| (path.index(index), own))
        })
        .collect();
    for (at, container) in &containers {
        let key = format!("{SECCOMP}{}", text(container, "name"));
        if profile(container, "seccompProfile").is_none() && annotations.get(&key).is_some() {
            let why = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
            found.push(format!("{}: {why}", annotation(&key)));
        }
        let key = format!("{APP_ARMOR}{}", text(container, "name"));
        let of_annotation = annotations.get(&key).and_then(Value::as_str);
        let is_told = path.is_some() || meta::text(spec, "/os/name") != "windows";
        if let Some(named) = of_annotation.filter(|_| is_told)
            && profile(container, "appArmorProfile").is_none()
            && profile(spec, "appArmorProfile").is_none_or(|own| app_armor(&own) != named)
        {
            let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            found.push(format!("{}: {why}", annotation(&key)));
        }
        for key in ["limits", "requests"] {
            let amounts = container.at(&format!("/resources/{key}"));
            fractions(amounts, &at.child("resources").child(key), found);
        }
        hidden_variables(container, at, found);
    }
    of_ports(&containers, found);
    if number(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let at = at.child("terminationGracePeriodSeconds");
        found.push(format!(
            "{at}: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    of_affinity(spec, &at, found);
    let servers = at.child("dnsConfig").child("nameservers");
    for (index, server) in meta::elements(spec, "/dnsConfig/nameservers").iter().enumerate() {
        found.extend(addresses::unusual(
            server.as_str().unwrap_or_default(),
            &servers.index(index),
        ));
    }
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let at = at.child("hostAliases").index(index).child("ip");
        found.extend(addresses::unusual(text(alias, "ip"), &at));
    }
}

/// A profile as the annotation names it.
fn app_armor(profile: &Value) -> String {
    match text(profile, "type") {
        "RuntimeDefault" => "runtime/default".to_owned(),
        "Unconfined" => "unconfined".to_owned(),
        _ => format!("localhost/{}", text(profile, "localhostProfile")),
    }
}

/// Memory and storage have no fractions of bytes.
fn fractions(amounts: Option<&Value>, path: &Path, found: &mut Vec<String>) {
    for key in ["memory", "ephemeral-storage"] {
        let value = amounts.and_then(|amounts| amounts.get(key));
        if let Some(shown) = value.and_then(claims::fraction) {
            let at = path.key(key);
            found.push(format!(
                "{at}: fractional byte value {} is invalid, must be an integer",
                go_quote(&shown)
            ));
        }
    }
}

/// Warns of labels that are no more in a term that selects nodes, and of values that no label has.
pub(in crate::kubernetes) fn of_terms(term: &Value, with_values: bool, path: &Path, found: &mut Vec<String>) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let at = path.child("matchExpressions").index(index);
        let key = text(requirement, "key");
        if let Some(why) = of_label(key) {
            found.push(format!("{}: {key} is {why}", at.child("key")));
        }
        for (index, value) in list(requirement, "values").iter().enumerate().filter(|_| with_values) {
            let value = value.as_str().unwrap_or_default();
            let at = at.child("values").index(index);
            let wrong = names::label_value(value);
            found.extend(wrong.iter().map(|why| format!("{at}: {value} is invalid, {why}")));
        }
    }
}

fn of_scheduling(spec: &Value, path: &Path, found: &mut Vec<String>) {
    for (key, _) in map(spec, "nodeSelector") {
        if let Some(why) = of_label(key) {
            found.push(format!("{}: {why}", path.child("nodeSelector").key(key)));
        }
    }
    let affinity = spec.at("/affinity/nodeAffinity").unwrap_or(&Value::Null);
    let at = path.child("affinity").child("nodeAffinity");
    let (required, preferred) = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    );
    let terms = affinity.get(required).unwrap_or(&Value::Null);
    for (index, term) in list(terms, "nodeSelectorTerms").iter().enumerate() {
        let at = at.child(required).child("nodeSelectorTerms").index(index);
        of_terms(term, false, &at, found);
    }
    for (index, term) in list(affinity, preferred).iter().enumerate() {
        let at = at.child(preferred).index(index).child("preference");
        of_terms(term.get("preference").unwrap_or(&Value::Null), true, &at, found);
    }
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let at = path.child("topologySpreadConstraints").index(index);
        let key = text(constraint, "topologyKey");
        if let Some(why) = of_label(key) {
            found.push(format!("{}: {key} is {why}", at.child("topologyKey")));
        }
        selects_nothing(constraint, &at, found);
    }
}

fn selects_nothing(term: &Value, at: &Path, found: &mut Vec<String>) {
    if term.get("labelSelector").is_none_or(Value::is_null) {
        let at = at.child("labelSelector");
        found.push(format!("{at}: a null labelSelector results in matching no pod"));
    }
}

fn of_affinity(spec: &Value, path: &Path, found: &mut Vec<String>) {
    for key in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.at(&format!("/affinity/{key}")) else {
            continue;
        };
        let at = path.child("affinity").child(key);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list(affinity, required).iter().enumerate() {
            selects_nothing(term, &at.child(required).index(index), found);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in list(affinity, preferred).iter().enumerate() {
            let at = at.child(preferred).index(index).child("podAffinityTerm");
            selects_nothing(term.get("podAffinityTerm").unwrap_or(&Value::Null), &at, found);
        }
    }
}

fn of_volumes(spec: &Value, path: &Path, found: &mut Vec<String>) {
    let at = path.child("volumes");
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let at = at.index(index);
        for (source, why) in OLD_SOURCES {
            // claims stand before the two sources that were given up last
            if source == "cephfs"
                && let Some(spec) = volume.at("/ephemeral/volumeClaimTemplate/spec")
            {
                let at = at.child("ephemeral").child("volumeClaimTemplate").child("spec");
                claims::warn_of_fractions(spec, &at, found);
            }
            if volume.get(source).is_some() {
                found.push(format!("{}: {why}", at.child(source)));
            }
        }
    }
    for volume in list(spec, "volumes") {
        overlapping(volume, found);
    }
}

/// A path in a volume, and where what lies there comes from.
#[derive(Clone, PartialEq)]
struct Placed {
    path: String,
    source: String,
}

impl std::fmt::Display for Placed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&go_quote(&self.path))?;
        match self.source.as_str() {
            "" => Ok(()),
            source => write!(formatter, " ({source})"),
        }
    }
}

impl Placed {
    fn hides(&self, other: &Self) -> bool {
        let inside = |outer: &str, inner: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (inside(&self.path, &other.path) || inside(&other.path, &self.path))
    }
}

fn items(source: &Value, of: &str) -> Vec<Placed> {
    let placed = |item: &Value| Placed {
        path: text(item, "path").to_owned(),
        source: of.to_owned(),
    };
    list(source, "items").iter().map(placed).collect()
}

/// Warns of files of a volume that hide each other.
fn overlapping(volume: &Value, found: &mut Vec<String>) {
    let name = go_quote(text(volume, "name"));
    let mut warn = |what: &str, placed: Vec<Placed>, there: &mut Vec<Placed>| {
        for mut own in placed {
            own.path.truncate(own.path.trim_end_matches('/').len());
            for other in there.iter().filter(|other| own.hides(other)) {
                found.push(format!("volume {name} ({what}): overlapping paths: {own} with {other}"));
            }
            there.push(own);
        }
    };
    for (key, member, what) in [
        ("configMap", "name", "ConfigMap"),
        ("secret", "secretName", "Secret"),
        ("downwardAPI", "", "DownwardAPI"),
    ] {
        let Some(source) = volume.get(key) else { continue };
        let what = match member {
            "" => what.to_owned(),
            member => format!("{what} {}", go_quote(text(source, member))),
        };
        warn(&what, items(source, ""), &mut Vec::new());
    }
    let (mut there, mut without) = (Vec::new(), 0);
    for source in volume.get("projected").map_or(&[][..], |own| list(own, "sources")) {
        let Some((key, own)) = source.as_object().and_then(|members| members.iter().next()) else {
            without += 1;
            continue;
        };
        let named = |what: &str| format!("{what} {}", go_quote(text(own, "name")));
        let at = |path: &str, source: &str| Placed {
            path: text(own, path).to_owned(),
            source: source.to_owned(),
        };
        let placed = match key.as_str() {
            "configMap" => items(own, &named("ConfigMap")),
            "secret" => items(own, &named("Secret")),
            "downwardAPI" => items(own, "DownwardAPI"),
            "serviceAccountToken" => vec![at("path", "ServiceAccountToken")],
            "clusterTrustBundle" => {
                let name = own.get("name").or_else(|| own.get("signerName"));
                let name = go_quote(name.and_then(Value::as_str).unwrap_or_default());
                vec![at("path", &format!("ClusterTrustBundle {name}"))]
            }
            "podCertificate" => {
                let mut placed = vec![
                    at("certificateChainPath", "PodCertificate chain"),
                    at("keyPath", "PodCertificate key"),
                    at("credentialBundlePath", "PodCertificate credential bundle"),
                ];
                placed.retain(|own| !own.path.is_empty());
                placed
            }
            _ => Vec::new(),
        };
        warn("Projected", placed, &mut there);
    }
    for _ in 0..without {
        found.push(format!("volume {name} (Projected) has no sources provided"));
    }
}

/// Warns of variables that another one of the same name hides, unless it builds on it.
fn hidden_variables(container: &Value, path: &Path, found: &mut Vec<String>) {
    let variables = list(container, "env");
    let mut seen = BTreeSet::new();
    for (index, own) in variables.iter().enumerate() {
        let name = text(own, "name");
        if seen.insert(name) {
            continue;
        }
        let (reference, value) = (format!("$({name})"), text(own, "value"));
        if own.get("valueFrom").is_some() || value == reference || !value.contains(&reference) {
            let at = path.child("env").index(index);
            found.push(format!(
                "{at}: hides previous definition of {}, which may be dropped when using apply",
                go_quote(name)
            ));
        }
    }
}

fn of_ports(containers: &[(Path, &Value)], found: &mut Vec<String>) {
    let ports: Vec<(Path, &Value)> = containers
        .iter()
        .flat_map(|(path, container)| {
            let at = path.child("ports");
            let all = list(container, "ports").iter().enumerate();
            all.map(move |(index, port)| (at.index(index), port))
        })
        .collect();
    let mut of_number: BTreeMap<(i64, &str), Vec<(&Path, &Value)>> = BTreeMap::new();
    for (at, port) in &ports {
        let (host, host_port) = (text(port, "hostIP"), number(port, "hostPort").unwrap_or(0));
        let (inner, protocol) = (number(port, "containerPort").unwrap_or(0), text(port, "protocol"));
        if !host.is_empty() && host_port == 0 {
            found.push(format!(
                "{at}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{inner} Protocol:{protocol} HostIP:{host}}}",
                text(port, "name")
            ));
        }
        let others = of_number.entry((inner, protocol)).or_default();
        for (other_at, other) in others.iter() {
            let (other_host, other_port) = (text(other, "hostIP"), number(other, "hostPort").unwrap_or(0));
            let what = if host == other_host && host_port == other_port {
                "duplicate"
            } else if host_port == 0 || other_port == 0 {
                "overlapping"
            } else if host_port == other_port && host.is_empty() != other_host.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            found.push(format!("{at}: {what} port definition with {other_at}"));
        }
        others.push((at, port));
    }
    let mut named: BTreeMap<&str, &Path> = BTreeMap::new();
    for (at, port) in ports.iter().filter(|(_, port)| !text(port, "name").is_empty()) {
        let name = text(port, "name");
        match named.get(name) {
            Some(first) => found.push(format!(
                "{at}: duplicate port name {} with {first}, services and probes that select ports by name will use {first}",
                go_quote(name)
            )),
            None => {
                named.insert(name, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_will_surprise_is_told() {
        for (spec, expected) in [
            (
                json!({"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}),
                vec![],
            ),
            (
                json!({"nodeSelector": {"beta.kubernetes.io/os": "linux"}}),
                vec![
                    "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                ],
            ),
            (
                json!({"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}]}]}),
                vec![
                    "spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when using apply",
                ],
            ),
            (
                json!({"containers": [{"name": "c", "resources": {"requests": {"memory": "100m"}}}]}),
                vec![
                    "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" is invalid, must be an integer",
                ],
            ),
            (
                json!({"containers": [{"ports": [{"name": "a", "containerPort": 80, "protocol": "TCP"}]}, {"ports": [{"name": "a", "containerPort": 80, "protocol": "TCP", "hostPort": 8}]}]}),
                vec![
                    "spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[0]",
                    "spec.containers[1].ports[0]: duplicate port name \"a\" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]",
                ],
            ),
            (
                json!({"volumes": [{"name": "v", "configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/b"}]}}, {"name": "g", "gitRepo": {}}]}),
                vec![
                    "spec.volumes[1].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                    "volume \"v\" (ConfigMap \"m\"): overlapping paths: \"a/b\" with \"a\"",
                ],
            ),
            (
                json!({"hostAliases": [{"ip": "1.2.3.04"}], "terminationGracePeriodSeconds": -1}),
                vec![
                    "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
                    "spec.hostAliases[0].ip: non-standard IP address \"1.2.3.04\" is invalid: use \"1.2.3.4\"",
                ],
            ),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "spec": spec});
            assert_eq!(of_pod(&pod), expected, "{pod}");
        }
    }

    #[test]
    fn unchanged_workloads_are_warned_of_once() {
        let object = json!({"metadata": {"name": "a.b", "generation": 2}, "spec": {"template": {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "x"}}}}});
        assert_eq!(of_workload(&object, None).len(), 2);
        assert!(of_workload(&object, Some(&object)).is_empty());
        let mut before = object.clone();
        before["metadata"]["generation"] = json!(1);
        assert_eq!(of_workload(&object, Some(&before)).len(), 1);
    }
}
