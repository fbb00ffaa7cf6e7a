//! Sequences made of nothing: several managers apply, patch and replace parts of one object, by chance. Who owns what after each step follows from
//! all steps before, so that few such sequences were ever written by hand.

use gardener_apimachinery::chance::Chance;
use serde_json::{Map, Value, json};

use super::{Variation, pick};
use crate::sequence::{Sequence, Step};

/// An object that is walked over.
struct Ground {
    /// The ways in which it is told.
    forms: Vec<Form>,
    /// Members that an element of a list is told apart by, and others that an object is none without.
    kept: &'static [&'static str],
    /// Whether there are strategic merge patches of it.
    is_built_in: bool,
    /// Requests that come first.
    before: Vec<Value>,
}

/// An object in one version.
struct Form {
    /// The group, version and plural in its path.
    path: &'static str,
    /// What no part of it goes without.
    identity: Value,
    /// All that may be said of it. Lists whose elements are told apart by keys have them as the first member of each element.
    all: Value,
    /// All that may be said of its status, if that has a path of its own.
    status: Option<Value>,
}

const MANAGERS: [&str; 3] = ["one", "two", "three"];
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// Makes a walk.
pub fn walk(chance: &Chance) -> Option<Variation> {
    let grounds = [
        config_map(),
        deployment(),
        service(),
        pod(),
        autoscaler(),
        custom_resource(&["v1"]),
        custom_resource(&["v1", "v2"]),
    ];
    let ground = pick(&grounds, chance)?;
    let mut steps = ground.before.clone();
    let count = 6 + chance.below(8);
    for _ in 0..count {
        let form = pick(&ground.forms, chance)?;
        steps.push(ground.step(form, chance)?);
    }
    for form in &ground.forms {
        steps.push(json!({"request": format!("GET /{}/a", form.path)}));
    }
    let steps: Vec<Step> = serde_json::from_value(steps.into()).ok()?;
    let told = steps.iter().skip(ground.before.len()).map(told).collect();
    let sequence = Sequence {
        name: format!("a walk over {}", ground.forms.first()?.path),
        webhooks: Default::default(),
        steps,
    };
    Some(Variation {
        sequence,
        changes: told,
    })
}

fn told(step: &Step) -> String {
    let body = step.body.as_ref().map(Value::to_string).unwrap_or_default();
    format!("{} {}", step.request, body)
}

impl Ground {
    fn of_built_in(forms: Vec<Form>, kept: &'static [&'static str]) -> Self {
        Self {
            forms,
            kept,
            is_built_in: true,
            before: Vec::new(),
        }
    }

    fn step(&self, form: &Form, chance: &Chance) -> Option<Value> {
        let manager = pick(&MANAGERS, chance)?;
        let collection = format!("/{}", form.path);
        let object = format!("{collection}/a");
        let status = form.status.as_ref().filter(|_| chance.below(4) == 0);
        let (path, of) = match status {
            Some(status) => (format!("{object}/status"), json!({"status": status})),
            None => (object.clone(), form.all.clone()),
        };
        let whole = |part: Value| {
            let mut whole = form.identity.clone();
            merge(&mut whole, part);
            whole
        };
        let part = self.part(&of, chance);
        let dry_run = if chance.below(12) == 0 { "&dryRun=All" } else { "" };
        let asked = |method: &str, path: &str| format!("{method} {path}?fieldManager={manager}{dry_run}");
        Some(match chance.below(26) {
            0 => {
                let policy = pick(&["Background", "Foreground", "Orphan"], chance)?;
                json!({"request": format!("DELETE {object}?propagationPolicy={policy}")})
            }
            1 => json!({"request": format!("GET {object}")}),
            2..=9 => json!({"request": asked("PATCH", &path), "content_type": APPLY, "body": whole(part)}),
            10..=13 => {
                let request = format!("{}&force=true", asked("PATCH", &path));
                json!({"request": request, "content_type": APPLY, "body": whole(part)})
            }
            14 | 15 => json!({"request": asked("POST", &collection), "body": whole(part)}),
            16 | 17 => json!({"request": asked("PUT", &path), "body": whole(part)}),
            18 | 19 if self.is_built_in => {
                json!({"request": asked("PATCH", &path), "content_type": STRATEGIC, "body": part})
            }
            20 | 21 => {
                let mut places = Vec::new();
                super::body::gather(&part, "", &mut places);
                let place = pick(&places, chance)?;
                json!({"request": asked("PATCH", &path), "content_type": JSON_PATCH, "body": [{"op": "remove", "path": place}]})
            }
            _ => {
                let mut part = part;
                empty_some(&mut part, chance);
                json!({"request": asked("PATCH", &path), "content_type": MERGE, "body": part})
            }
        })
    }

    /// A part of a value: about half of its members, and of the elements of its lists.
    fn part(&self, value: &Value, chance: &Chance) -> Value {
        match value {
            Value::Object(members) => {
                let is_kept = |key: &String| self.kept.contains(&key.as_str()) || chance.below(5) < 3;
                let members = members.iter().filter(|(key, _)| is_kept(key));
                members
                    .map(|(key, value)| (key.clone(), self.part(value, chance)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            Value::Array(elements) => {
                let elements = elements.iter().filter(|_| chance.below(5) < 3);
                elements.map(|value| self.part(value, chance)).collect()
            }
            // texts that may be one thing or another are told with a bar
            Value::String(text) => match text.split('|').collect::<Vec<_>>().as_slice() {
                [] => Value::Null,
                texts => pick(texts, chance).map_or(Value::Null, |text| json!(text)),
            },
            Value::Number(number) => match number.as_i64() {
                Some(number) if chance.below(3) == 0 => json!(number.saturating_add(1)),
                _ => value.clone(),
            },
            other => other.clone(),
        }
    }
}

/// Sets some members to null.
fn empty_some(value: &mut Value, chance: &Chance) {
    if let Value::Object(members) = value {
        for member in members.values_mut() {
            match chance.below(6) {
                0 => *member = Value::Null,
                _ => empty_some(member, chance),
            }
        }
    }
}

/// Adds what `part` has to `whole`.
fn merge(whole: &mut Value, part: Value) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                merge(whole.entry(key).or_insert(Value::Null), value);
            }
        }
        (whole, part) => *whole = part,
    }
}

fn metadata() -> Value {
    json!({
        "labels": {"a": "b|c", "d": "e|f", "g": "h"},
        "annotations": {"a": "b|c", "d": "e"},
        "finalizers": ["example.com/a", "example.com/b"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-3333-4444-555555555555"},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "11111111-2222-3333-4444-666666666666"},
        ],
    })
}

fn config_map() -> Ground {
    Ground::of_built_in(
        vec![Form {
            path: "api/v1/namespaces/${ns}/configmaps",
            identity: json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
            all: json!({
                "metadata": metadata(),
                "data": {"a": "b|c", "d": "e|f", "g": "h|i"},
                "binaryData": {"x": "eA==|eQ==", "y": "eA=="},
            }),
            status: None,
        }],
        &["apiVersion", "kind", "name", "uid"],
    )
}

fn deployment() -> Ground {
    let container = |name: &str| {
        json!({
            "name": name, "image": "x|y", "args": ["a", "b|c"], "command": ["c"],
            "env": [{"name": "A", "value": "b|c"}, {"name": "B", "value": "c|d"}, {"name": "C", "value": "d"}],
            "ports": [{"containerPort": 80, "protocol": "TCP|UDP", "name": "p"}, {"containerPort": 90, "name": "q"}],
            "resources": {"limits": {"cpu": "1|1000m", "memory": "1Gi"}, "requests": {"cpu": "100m|0.1"}},
            "volumeMounts": [{"mountPath": "/a", "name": "v"}, {"mountPath": "/b", "name": "w"}],
        })
    };
    Ground::of_built_in(
        vec![Form {
            path: "apis/apps/v1/namespaces/${ns}/deployments",
            identity: json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"},
                "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}},
            }),
            all: json!({
                "metadata": metadata(),
                "spec": {
                    "replicas": 2, "paused": true, "minReadySeconds": 3,
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%|20%"}},
                    "template": {"spec": {
                        "containers": [container("c"), container("d")],
                        "initContainers": [container("i")],
                        "nodeSelector": {"a": "b|c", "d": "e"},
                        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
                        "imagePullSecrets": [{"name": "s"}, {"name": "t"}],
                        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m", "items": [{"key": "k", "path": "p|q"}]}}],
                        "securityContext": {"runAsUser": 5, "supplementalGroups": [1, 2]},
                        "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}],
                    }},
                },
            }),
            status: Some(json!({
                "replicas": 1, "observedGeneration": 1,
                "conditions": [{"type": "Available", "status": "True|False"}, {"type": "Progressing", "status": "True", "reason": "a|b"}],
            })),
        }],
        &[
            "apiVersion",
            "kind",
            "name",
            "uid",
            "spec",
            "template",
            "containers",
            "containerPort",
            "mountPath",
            "type",
            "status",
        ],
    )
}

fn service() -> Ground {
    Ground::of_built_in(
        vec![Form {
            path: "api/v1/namespaces/${ns}/services",
            identity: json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "None"}}),
            all: json!({
                "metadata": metadata(),
                "spec": {
                    "selector": {"a": "b|c", "d": "e"},
                    "ports": [
                        {"port": 80, "name": "a", "protocol": "TCP", "targetPort": "x|y"},
                        {"port": 80, "name": "b", "protocol": "UDP", "targetPort": 5},
                        {"port": 90, "name": "c"},
                    ],
                    "externalIPs": ["1.2.3.4", "1.2.3.5"],
                    "sessionAffinity": "None|ClientIP",
                    "publishNotReadyAddresses": true,
                },
            }),
            status: Some(json!({
                "conditions": [{"type": "a", "status": "True|False", "reason": "r", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}],
                "loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "a.b"}]},
            })),
        }],
        &[
            "apiVersion",
            "kind",
            "name",
            "uid",
            "port",
            "protocol",
            "type",
            "status",
            "reason",
            "message",
            "lastTransitionTime",
        ],
    )
}

fn pod() -> Ground {
    Ground::of_built_in(
        vec![Form {
            path: "api/v1/namespaces/${ns}/pods",
            identity: json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0},
            }),
            all: json!({
                "metadata": metadata(),
                "spec": {
                    "activeDeadlineSeconds": 60,
                    "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists", "effect": "NoExecute"}],
                    "schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/b"}],
                },
            }),
            status: Some(json!({
                "phase": "Running|Pending", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "hostIP": "10.1.2.4",
                "conditions": [{"type": "Ready", "status": "True|False"}, {"type": "example.com/a", "status": "True"}],
                "containerStatuses": [{"name": "c", "image": "i", "imageID": "j", "ready": true, "restartCount": 1, "state": {"running": {}}}],
            })),
        }],
        &[
            "apiVersion",
            "kind",
            "name",
            "uid",
            "type",
            "status",
            "image",
            "imageID",
            "ready",
            "restartCount",
            "key",
            "operator",
            "ip",
        ],
    )
}

/// (Where somebody owns fields in the other version, kube-apiserver keeps what is given up of fields that have another name there.)
fn autoscaler() -> Ground {
    let identity = |version: &str| {
        json!({
            "apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}},
        })
    };
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}});
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "m|n"}, "target": {"type": "AverageValue", "averageValue": "10|1k"}}});
    let v1 = Form {
        path: "apis/autoscaling/v1/namespaces/${ns}/horizontalpodautoscalers",
        identity: identity("v1"),
        all: json!({"metadata": metadata(), "spec": {"minReplicas": 2, "maxReplicas": 6, "targetCPUUtilizationPercentage": 50}}),
        status: Some(json!({"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 30})),
    };
    let v2 = Form {
        path: "apis/autoscaling/v2/namespaces/${ns}/horizontalpodautoscalers",
        identity: identity("v2"),
        all: json!({"metadata": metadata(), "spec": {
            "minReplicas": 2, "maxReplicas": 6, "metrics": [cpu, pods],
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5, "selectPolicy": "Max|Min", "policies": [{"type": "Pods", "value": 2, "periodSeconds": 15}]}},
        }}),
        status: Some(json!({
            "currentReplicas": 1, "desiredReplicas": 2,
            "conditions": [{"type": "AbleToScale", "status": "True|False"}, {"type": "ScalingActive", "status": "True"}],
        })),
    };
    Ground::of_built_in(
        vec![v1, v2],
        &[
            "apiVersion",
            "kind",
            "name",
            "uid",
            "type",
            "status",
            "resource",
            "pods",
            "metric",
            "target",
            "averageUtilization",
            "averageValue",
            "value",
            "periodSeconds",
            "maxReplicas",
            "currentReplicas",
            "desiredReplicas",
            "conditions",
        ],
    )
}

fn custom_resource(versions: &[&str]) -> Ground {
    let text = json!({"type": "string"});
    let inner = json!({"type": "object", "properties": {"x": text, "y": {"type": "integer", "default": 7}, "z": {"type": "array", "items": text}}});
    let entry = json!({"type": "object", "required": ["k"], "properties": {"k": text, "l": {"type": "string", "default": "m"}, "v": text, "in": inner}});
    let spec = json!({"type": "object", "properties": {
        "text": text,
        "number": {"type": "integer"},
        "default": {"type": "string", "default": "d"},
        "nullable": {"type": "string", "nullable": true},
        "granular": {"type": "object", "additionalProperties": text},
        "atomic": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "nested": inner,
        "whole": {"type": "object", "properties": {"x": text, "y": text}, "x-kubernetes-map-type": "atomic"},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": entry},
        "map": {"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
        "pairs": {"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"]},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
    }});
    let status = json!({"type": "object", "properties": {
        "phase": text,
        "conditions": {"type": "array", "items": entry, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    }});
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        })
    };
    let versions_told: Value = versions.iter().map(version).collect();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "walks.${ns}.example.com"},
        "spec": {
            "group": "${ns}.example.com", "scope": "Namespaced", "versions": versions_told,
            "names": {"plural": "walks", "singular": "walk", "kind": "Walk"},
        },
    });
    let entry = |k: &str, l: &str| json!({"k": k, "l": l, "v": "v|w", "in": {"x": "x|y", "y": 1, "z": ["a", "b|c"]}});
    let form = |version: &&str| Form {
        path: match *version {
            "v1" => "apis/${ns}.example.com/v1/namespaces/${ns}/walks",
            _ => "apis/${ns}.example.com/v2/namespaces/${ns}/walks",
        },
        identity: json!({"apiVersion": format!("${{ns}}.example.com/{version}"), "kind": "Walk", "metadata": {"name": "a"}}),
        all: json!({
            "metadata": metadata(),
            "spec": {
                "text": "a|b", "number": 3, "default": "d|e", "nullable": "n|o",
                "granular": {"a": "b|c", "d": "e"}, "atomic": {"a": "b|c", "d": "e"},
                "nested": {"x": "x|y", "y": 1, "z": ["a", "b"]}, "whole": {"x": "x|y", "y": "z"},
                "set": ["a", "b", "c"], "list": [entry("a", "m"), entry("b", "m")],
                "map": [entry("a", "m"), entry("b", "m"), entry("c", "n")],
                "pairs": [entry("a", "m"), entry("a", "n"), entry("b", "m")],
                "free": {"a": {"b": "c|d", "e": ["f", "g"]}, "h": "i|j"}, "either": "5|6",
            },
        }),
        status: Some(json!({"phase": "a|b", "conditions": [entry("a", "m"), entry("b", "m")]})),
    };
    Ground {
        forms: versions.iter().map(form).collect(),
        kept: &["apiVersion", "kind", "name", "uid", "k"],
        is_built_in: false,
        before: vec![
            json!({"request": "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", "body": definition}),
            json!({"request": "GET /apis/${ns}.example.com/v1/namespaces/${ns}/walks", "until": 200, "tells": ["Content-Type"]}),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_makes_one_walk() {
        let walked = |number| walk(&Chance::seeded(number)).map(|walk| walk.changes);
        assert_eq!(walked(3), walked(3));
        assert_ne!(walked(3), walked(4));
        assert!(walked(3).is_some_and(|steps| steps.len() > 6));
    }
}
