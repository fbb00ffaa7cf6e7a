//! Rows of the core group, leases, priority and runtime classes.

use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, containers, count, created, items, joined, labels, name, name_and_age, number, or, since};
use crate::meta;

pub(in crate::kubernetes) fn config_map(now: Timestamp, map: &Value) -> Vec<Value> {
    let size = |member: &str| {
        map.get(member)
            .and_then(Value::as_object)
            .map_or(0, serde_json::Map::len)
    };
    vec![
        name(map),
        json!(size("data") + size("binaryData")),
        age(now, map).into(),
    ]
}

pub(in crate::kubernetes) fn secret(now: Timestamp, secret: &Value) -> Vec<Value> {
    vec![
        name(secret),
        meta::text(secret, "/type").into(),
        count(secret, "/data"),
        age(now, secret).into(),
    ]
}

pub(in crate::kubernetes) fn service_account(now: Timestamp, account: &Value) -> Vec<Value> {
    name_and_age(now, account)
}

pub(in crate::kubernetes) fn namespace(now: Timestamp, namespace: &Value) -> Vec<Value> {
    vec![
        name(namespace),
        meta::text(namespace, "/status/phase").into(),
        age(now, namespace).into(),
    ]
}

pub(in crate::kubernetes) fn component_status(_: Timestamp, component: &Value) -> Vec<Value> {
    let mut conditions = items(component, "/conditions");
    let health = conditions.find(|condition| meta::text(condition, "/type") == "Healthy");
    let status = match health.map(|health| meta::text(health, "/status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let told = |at: &str| health.map_or("", |health| meta::text(health, at));
    vec![
        name(component),
        status.into(),
        told("/message").into(),
        told("/error").into(),
    ]
}

pub(in crate::kubernetes) fn lease(now: Timestamp, lease: &Value) -> Vec<Value> {
    vec![
        name(lease),
        meta::text(lease, "/spec/holderIdentity").into(),
        age(now, lease).into(),
    ]
}

pub(in crate::kubernetes) fn priority_class(now: Timestamp, class: &Value) -> Vec<Value> {
    let default = class.get("globalDefault").and_then(Value::as_bool).unwrap_or(false);
    vec![
        name(class),
        json!(number(class, "/value")),
        json!(default),
        age(now, class).into(),
        meta::text(class, "/preemptionPolicy").into(),
    ]
}

pub(in crate::kubernetes) fn runtime_class(now: Timestamp, class: &Value) -> Vec<Value> {
    vec![
        name(class),
        meta::text(class, "/handler").into(),
        age(now, class).into(),
    ]
}

pub(in crate::kubernetes) fn limit_range(_: Timestamp, range: &Value) -> Vec<Value> {
    vec![name(range), created(range)]
}

pub(in crate::kubernetes) fn resource_quota(now: Timestamp, quota: &Value) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in quota
        .at("/status/hard")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let used = quota
            .at("/status/used")
            .and_then(|used| used.get(resource))
            .and_then(Value::as_str)
            .unwrap_or("0");
        let text = format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default());
        if resource.starts_with("limits.") {
            limits.push(text)
        } else {
            requests.push(text)
        }
    }
    vec![
        name(quota),
        requests.join(", ").into(),
        limits.join(", ").into(),
        age(now, quota).into(),
    ]
}

pub(in crate::kubernetes) fn pod_template(_: Timestamp, template: &Value) -> Vec<Value> {
    let [names, images] = containers(template, "/template/spec/containers");
    vec![
        name(template),
        names,
        images,
        labels(template.at("/template/metadata/labels")).into(),
    ]
}

pub(in crate::kubernetes) fn event(now: Timestamp, event: &Value) -> Vec<Value> {
    let text = |core: &str, new: &str| {
        let own = meta::text(event, core);
        if own.is_empty() { meta::text(event, new) } else { own }.to_owned()
    };
    let about = event
        .get("involvedObject")
        .or_else(|| event.get("regarding"))
        .cloned()
        .unwrap_or(Value::Null);
    let first = text("/firstTimestamp", "/deprecatedFirstTimestamp");
    let last = text("/lastTimestamp", "/deprecatedLastTimestamp");
    let micro = meta::text(event, "/eventTime").to_owned();
    let first = if first.is_empty() { micro.clone() } else { first };
    let series = meta::text(event, "/series/lastObservedTime");
    let last = if !series.is_empty() {
        series.to_owned()
    } else if last.is_empty() {
        first.clone()
    } else {
        last
    };
    let times = event
        .at("/series/count")
        .or_else(|| event.get("count"))
        .or_else(|| event.get("deprecatedCount"))
        .and_then(Value::as_i64)
        .unwrap_or(1);
    let component = match text("/source/component", "/deprecatedSource/component") {
        component if component.is_empty() => text("/reportingComponent", "/reportingController"),
        component => component,
    };
    let host = match text("/source/host", "/deprecatedSource/host") {
        host if host.is_empty() => meta::text(event, "/reportingInstance").to_owned(),
        host => host,
    };
    let source = if host.is_empty() {
        component
    } else {
        format!("{component}, {host}")
    };
    let kind = meta::text(&about, "/kind").to_lowercase();
    vec![
        since(now, &last).into(),
        meta::text(event, "/type").into(),
        meta::text(event, "/reason").into(),
        match meta::text(&about, "/name") {
            "" => kind,
            name => format!("{kind}/{name}"),
        }
        .into(),
        meta::text(&about, "/fieldPath").into(),
        source.into(),
        text("/message", "/note").trim().into(),
        since(now, &first).into(),
        json!(times),
        name(event),
    ]
}

pub(in crate::kubernetes) fn endpoints(now: Timestamp, endpoints: &Value) -> Vec<Value> {
    let mut addresses = Vec::new();
    for subset in items(endpoints, "/subsets") {
        let ports: Vec<i64> = items(subset, "/ports").map(|port| number(port, "/port")).collect();
        for address in items(subset, "/addresses") {
            let ip = meta::text(address, "/ip");
            if ports.is_empty() {
                addresses.push(ip.to_owned());
            }
            addresses.extend(ports.iter().map(|port| {
                if ip.contains(':') {
                    format!("[{ip}]:{port}")
                } else {
                    format!("{ip}:{port}")
                }
            }));
        }
    }
    vec![name(endpoints), some_of(addresses).into(), age(now, endpoints).into()]
}

/// The first three of a list, and how many more.
pub(in crate::kubernetes) fn some_of(list: Vec<String>) -> String {
    if list.is_empty() {
        return "<none>".into();
    }
    let more = list.len().saturating_sub(3);
    let shown = list.into_iter().take(3).collect::<Vec<_>>().join(",");
    if more > 0 {
        format!("{shown} + {more} more...")
    } else {
        shown
    }
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    items(object, pointer)
        .filter_map(Value::as_str)
        .map(short)
        .collect::<Vec<_>>()
        .join(",")
}

fn class(object: &Value) -> String {
    let annotated = object
        .at("/metadata/annotations/volume.beta.kubernetes.io~1storage-class")
        .and_then(Value::as_str);
    annotated
        .unwrap_or_else(|| meta::text(object, "/spec/storageClassName"))
        .to_owned()
}

pub(in crate::kubernetes) fn persistent_volume_claim(now: Timestamp, claim: &Value) -> Vec<Value> {
    let bound = !meta::text(claim, "/spec/volumeName").is_empty();
    let phase = if meta::is_deleting(claim) {
        "Terminating"
    } else {
        meta::text(claim, "/status/phase")
    };
    vec![
        name(claim),
        phase.into(),
        meta::text(claim, "/spec/volumeName").into(),
        if bound {
            or(meta::text(claim, "/status/capacity/storage"), "0")
        } else {
            ""
        }
        .into(),
        if bound {
            access_modes(claim, "/status/accessModes")
        } else {
            String::new()
        }
        .into(),
        class(claim).into(),
        or(meta::text(claim, "/spec/volumeAttributesClassName"), "<unset>").into(),
        age(now, claim).into(),
        or(meta::text(claim, "/spec/volumeMode"), "<unset>").into(),
    ]
}

pub(in crate::kubernetes) fn persistent_volume(now: Timestamp, volume: &Value) -> Vec<Value> {
    let claim = volume
        .at("/spec/claimRef")
        .map(|claim| format!("{}/{}", meta::text(claim, "/namespace"), meta::text(claim, "/name")))
        .unwrap_or_default();
    let phase = if meta::is_deleting(volume) {
        "Terminating"
    } else {
        meta::text(volume, "/status/phase")
    };
    vec![
        name(volume),
        meta::text(volume, "/spec/capacity/storage").into(),
        access_modes(volume, "/spec/accessModes").into(),
        meta::text(volume, "/spec/persistentVolumeReclaimPolicy").into(),
        phase.into(),
        claim.into(),
        class(volume).into(),
        or(meta::text(volume, "/spec/volumeAttributesClassName"), "<unset>").into(),
        meta::text(volume, "/status/reason").into(),
        age(now, volume).into(),
        or(meta::text(volume, "/spec/volumeMode"), "<unset>").into(),
    ]
}

pub(in crate::kubernetes) fn service(now: Timestamp, service: &Value) -> Vec<Value> {
    let kind = meta::text(service, "/spec/type");
    let ingress: Vec<String> = items(service, "/status/loadBalancer/ingress")
        .map(|ingress| {
            let ip = meta::text(ingress, "/ip");
            if ip.is_empty() {
                meta::text(ingress, "/hostname")
            } else {
                ip
            }
            .to_owned()
        })
        .collect();
    let own: Vec<String> = items(service, "/spec/externalIPs")
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let external = match kind {
        "LoadBalancer" => {
            let all: Vec<String> = ingress.into_iter().chain(own).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => meta::text(service, "/spec/externalName").to_owned(),
        "" => "<unknown>".to_owned(),
        _ => joined(own),
    };
    let ports = joined(items(service, "/spec/ports").map(|port| {
        let node = number(port, "/nodePort");
        let protocol = meta::text(port, "/protocol");
        if node > 0 {
            format!("{}:{node}/{protocol}", number(port, "/port"))
        } else {
            format!("{}/{protocol}", number(port, "/port"))
        }
    }));
    vec![
        name(service),
        kind.into(),
        or(meta::text(service, "/spec/clusterIP"), "<none>").into(),
        external.into(),
        ports.into(),
        age(now, service).into(),
        labels(service.at("/spec/selector")).into(),
    ]
}

pub(in crate::kubernetes) fn node(now: Timestamp, node: &Value) -> Vec<Value> {
    let ready = items(node, "/status/conditions").find(|condition| meta::text(condition, "/type") == "Ready");
    let mut status = match ready.map(|condition| meta::text(condition, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node.at("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<String> = meta::string_map(node.at("/metadata/labels"))
        .into_iter()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => Some(role.to_owned()),
            _ if key == "kubernetes.io/role" && !value.is_empty() => Some(value),
            _ => None,
        })
        .collect();
    roles.sort();
    let address = |kind: &str| {
        items(node, "/status/addresses")
            .find(|own| meta::text(own, "/type") == kind)
            .map(|own| meta::text(own, "/address"))
            .unwrap_or_default()
    };
    let info = |key: &str| or(meta::text(node, &format!("/status/nodeInfo/{key}")), "<unknown>").to_owned();
    let kernel = match (info("kernelVersion"), meta::text(node, "/status/nodeInfo/architecture")) {
        (kernel, "") => kernel,
        (kernel, architecture) => format!("{kernel} ({architecture})"),
    };
    vec![
        name(node),
        status.into(),
        joined(roles).into(),
        age(now, node).into(),
        meta::text(node, "/status/nodeInfo/kubeletVersion").into(),
        or(address("InternalIP"), "<none>").into(),
        or(address("ExternalIP"), "<none>").into(),
        info("osImage").into(),
        kernel.into(),
        info("containerRuntimeVersion").into(),
    ]
}

pub(in crate::kubernetes) fn pod(now: Timestamp, pod: &Value) -> Vec<Value> {
    let total = items(pod, "/spec/containers").count();
    let mut ready = 0;
    let mut restarts = 0;
    let mut last_restart = String::new();
    let reason = meta::text(pod, "/status/reason");
    let mut status = if reason.is_empty() {
        meta::text(pod, "/status/phase")
    } else {
        reason
    }
    .to_owned();
    let gated = items(pod, "/status/conditions").any(|condition| {
        meta::text(condition, "/type") == "PodScheduled" && meta::text(condition, "/reason") == "SchedulingGated"
    });
    if gated {
        status = "SchedulingGated".into();
    }
    let init_total = items(pod, "/spec/initContainers").count();
    let mut initializing = false;
    for (index, container) in items(pod, "/status/initContainerStatuses").enumerate() {
        if number(container, "/state/terminated/exitCode") == 0 && container.at("/state/terminated").is_some() {
            continue;
        }
        let waiting = meta::text(container, "/state/waiting/reason");
        status = if let Some(terminated) = container.at("/state/terminated") {
            let reason = meta::text(terminated, "/reason");
            if reason.is_empty() {
                format!("Init:ExitCode:{}", number(terminated, "/exitCode"))
            } else {
                format!("Init:{reason}")
            }
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{init_total}")
        };
        initializing = true;
        break;
    }
    let mut any_running = false;
    for container in items(pod, "/status/containerStatuses")
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        restarts += number(container, "/restartCount");
        let finished = meta::text(container, "/lastState/terminated/finishedAt");
        if finished > last_restart.as_str() {
            last_restart = finished.to_owned();
        }
        let is_ready = container.get("ready").and_then(Value::as_bool) == Some(true);
        let running = container.at("/state/running").is_some();
        if is_ready && running {
            ready += 1;
        }
        if initializing {
            continue;
        }
        let waiting = meta::text(container, "/state/waiting/reason");
        if !waiting.is_empty() {
            status = waiting.to_owned();
        } else if let Some(terminated) = container.at("/state/terminated") {
            let reason = meta::text(terminated, "/reason");
            status = if !reason.is_empty() {
                reason.to_owned()
            } else if number(terminated, "/signal") != 0 {
                format!("Signal:{}", number(terminated, "/signal"))
            } else {
                format!("ExitCode:{}", number(terminated, "/exitCode"))
            };
        } else if is_ready && running {
            any_running = true;
        }
    }
    if !initializing && status == "Completed" && any_running {
        let pod_ready = items(pod, "/status/conditions")
            .any(|condition| meta::text(condition, "/type") == "Ready" && meta::text(condition, "/status") == "True");
        status = if pod_ready { "Running" } else { "NotReady" }.into();
    }
    if meta::is_deleting(pod) {
        status = if reason == "NodeLost" {
            "Unknown".into()
        } else if matches!(meta::text(pod, "/status/phase"), "Succeeded" | "Failed") {
            status
        } else {
            "Terminating".into()
        };
    }
    let restarts = if restarts > 0 && !last_restart.is_empty() {
        format!("{restarts} ({} ago)", since(now, &last_restart))
    } else {
        restarts.to_string()
    };
    let ip = items(pod, "/status/podIPs")
        .next()
        .map(|ip| meta::text(ip, "/ip"))
        .unwrap_or_else(|| meta::text(pod, "/status/podIP"));
    let gates: Vec<&str> = items(pod, "/spec/readinessGates")
        .map(|gate| meta::text(gate, "/conditionType"))
        .collect();
    let gates = if gates.is_empty() {
        "<none>".to_owned()
    } else {
        let met = gates
            .iter()
            .filter(|gate| {
                items(pod, "/status/conditions")
                    .any(|c| meta::text(c, "/type") == **gate && meta::text(c, "/status") == "True")
            })
            .count();
        format!("{met}/{}", gates.len())
    };
    vec![
        name(pod),
        format!("{ready}/{total}").into(),
        status.into(),
        restarts.into(),
        age(now, pod).into(),
        or(ip, "<none>").into(),
        or(meta::text(pod, "/spec/nodeName"), "<none>").into(),
        or(meta::text(pod, "/status/nominatedNodeName"), "<none>").into(),
        gates.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_show_what_kubectl_shows() {
        let now = Timestamp::from_second(1000).unwrap();
        let status = |pod: Value| pod_cell(now, &pod);
        assert_eq!(status(json!({"status": {"phase": "Pending"}})), "Pending");
        assert_eq!(
            status(
                json!({"status": {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}})
            ),
            "ContainerCreating"
        );
        assert_eq!(
            status(
                json!({"status": {"phase": "Running", "containerStatuses": [{"ready": true, "state": {"running": {}}}]}})
            ),
            "Running"
        );
        assert_eq!(
            status(json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}, "status": {"phase": "Running"}})),
            "Terminating"
        );
        assert_eq!(
            status(json!({"status": {"phase": "Failed", "reason": "Evicted"}})),
            "Evicted"
        );
    }

    fn pod_cell(now: Timestamp, object: &Value) -> String {
        pod(now, object)[2].as_str().unwrap().to_owned()
    }
}
