//! Services' endpoints: EndpointSlices, and the older Endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_controller::reference::object_reference;
use gardener_controller::{Action, Change, Clustered, ObjectRef, Queue, apply};
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort as OldPort, EndpointSubset, Endpoints, ObjectReference, Pod, Service, ServicePort,
};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, ResourceExt};

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;
use crate::pods;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Most endpoints of one slice.
const MOST: usize = 100;

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.services, &queue, role, |service| vec![key_of(service)]);
    environment.feed_if(
        &informers.endpoint_slices,
        &queue,
        role,
        |change| matches!(change, Change::Deleted(_)),
        |slice| {
            let service = slice.object.labels().get(SERVICE_NAME).cloned();
            let namespace = slice.object.namespace().unwrap_or_default();
            service
                .map(|name| ObjectRef::new(namespace, name).in_cluster(&slice.cluster))
                .into_iter()
                .collect()
        },
    );
    let services = informers.services.clone();
    environment.feed_if(&informers.pods, &queue, role, matters, move |pod| {
        let namespace = pod.object.namespace().unwrap_or_default();
        let around = services.list_cluster_namespace(&pod.cluster, &namespace);
        around
            .iter()
            .filter(|service| selects(&service.object, &pod.object))
            .map(|own| key_of(own.as_ref()))
            .collect()
    });
    environment.reconcile("endpointslice", role, 8, queue, reconcile);
}

/// A change of a pod that services notice.
fn matters(change: &Change<Clustered<Pod>>) -> bool {
    let Change::Applied { old: Some(old), new } = change else {
        return true;
    };
    let view = |pod: &Pod| {
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        (
            ip,
            pods::is_ready(pod),
            pods::is_deleting(pod),
            pods::has_ended(pod),
            pod.metadata.labels.clone(),
        )
    };
    view(&old.object) != view(&new.object)
}

fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service
        .spec
        .as_ref()
        .and_then(|spec| spec.selector.as_ref())
        .filter(|own| !own.is_empty());
    selector.is_some_and(|own| own.iter().all(|(key, value)| pod.labels().get(key) == Some(value)))
}

/// The number of a service's port on a pod.
fn target(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match port.target_port.as_ref() {
        None | Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            ports
                .find(|own| own.name.as_deref() == Some(name))
                .map(|own| own.container_port)
        }
    }
}

/// Ports and their endpoints, ordered so that equal states give equal slices.
type Groups = Vec<(Vec<EndpointPort>, Vec<Endpoint>)>;

fn groups(service: &Service, around: &[Arc<Clustered<Pod>>], zone: &dyn Fn(&str) -> Option<String>) -> Groups {
    let spec = service.spec.clone().unwrap_or_default();
    let publish = spec.publish_not_ready_addresses.unwrap_or(false);
    let mut groups: Groups = Vec::new();
    for pod in around
        .iter()
        .map(|pod| &pod.object)
        .filter(|pod| selects(service, pod) && !pods::has_ended(pod))
    {
        let Some(ip) = pod.status.as_ref().and_then(|status| status.pod_ip.clone()) else {
            continue;
        };
        let ports: Vec<EndpointPort> = spec
            .ports
            .iter()
            .flatten()
            .filter_map(|port| {
                Some(EndpointPort {
                    name: Some(port.name.clone().unwrap_or_default()),
                    port: Some(target(port, pod)?),
                    protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
                    app_protocol: port.app_protocol.clone(),
                })
            })
            .collect();
        let (serving, terminating) = (pods::is_ready(pod), pods::is_deleting(pod));
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let hostname = pod.spec.as_ref().and_then(|own| {
            let named = own.subdomain.as_deref() == service.metadata.name.as_deref();
            own.hostname.clone().filter(|_| named)
        });
        let endpoint = Endpoint {
            addresses: vec![ip],
            conditions: Some(EndpointConditions {
                ready: Some(publish || (serving && !terminating)),
                serving: Some(serving),
                terminating: Some(terminating),
            }),
            zone: node.as_deref().and_then(zone),
            node_name: node,
            hostname,
            target_ref: Some(reference(pod)),
            ..Endpoint::default()
        };
        match groups.iter_mut().find(|(own, _)| *own == ports) {
            Some((_, list)) => list.push(endpoint),
            None => groups.push((ports, vec![endpoint])),
        }
    }
    groups
}

fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: None,
        resource_version: None,
        ..object_reference(pod, &())
    }
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let informers = &environment.informers;
    let existing: Vec<Arc<Clustered<EndpointSlice>>> = informers
        .endpoint_slices
        .list_cluster_namespace(&key.cluster, &key.namespace)
        .into_iter()
        .filter(|slice| {
            let labels = slice.object.labels();
            labels.get(SERVICE_NAME) == Some(&key.name) && labels.get(MANAGED_BY).map(String::as_str) == Some(MANAGER)
        })
        .collect();
    let service = informers.services.get(&key).filter(|service| {
        let spec = service.object.spec.as_ref();
        let selects = spec.is_some_and(|spec| spec.selector.as_ref().is_some_and(|own| !own.is_empty()));
        selects && spec.and_then(|spec| spec.type_.as_deref()) != Some("ExternalName")
    });
    let Some(service) = service else {
        // what belongs to a service that is gone is collected by its owner reference
        return Ok(Action::Done);
    };
    let service = &service.object;
    if service.metadata.deletion_timestamp.is_some() || environment.is_ending(&key) {
        return Ok(Action::Done);
    }
    let zone = |node: &str| {
        let place = ObjectRef::cluster_scoped(node).in_cluster(&key.cluster);
        let node = informers.nodes.get(&place)?;
        node.object.labels().get("topology.kubernetes.io/zone").cloned()
    };
    let around = informers.pods.list_cluster_namespace(&key.cluster, &key.namespace);
    let groups = groups(service, &around, &zone);
    write_slices(&environment, &key, service, &existing, &groups).await?;
    write_endpoints(&environment, &key, service, &groups).await?;
    Ok(Action::Done)
}

fn slice_labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels().clone();
    labels.insert(SERVICE_NAME.to_owned(), service.name_any());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    if service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels
}

async fn write_slices(
    environment: &Environment,
    key: &ObjectRef,
    service: &Service,
    existing: &[Arc<Clustered<EndpointSlice>>],
    groups: &Groups,
) -> Result<(), Error> {
    let api: Api<EndpointSlice> = environment.api(key);
    let mut wanted: Vec<(Vec<EndpointPort>, Vec<Endpoint>)> = groups
        .iter()
        .flat_map(|(ports, endpoints)| endpoints.chunks(MOST).map(|chunk| (ports.clone(), chunk.to_vec())))
        .collect();
    if wanted.is_empty() {
        // a service without pods has one empty slice
        wanted.push((Vec::new(), Vec::new()));
    }
    let labels = slice_labels(service);
    let mut free = existing.iter();
    for (ports, endpoints) in wanted {
        let set = |slice: &mut EndpointSlice| {
            slice.ports = (!ports.is_empty()).then(|| ports.clone());
            slice.endpoints = (!endpoints.is_empty()).then(|| endpoints.clone());
            slice.metadata.labels = Some(labels.clone());
        };
        match free.next() {
            Some(slice) => {
                apply::patch_locked(&api, &slice.object, set).await?;
            }
            None => {
                let mut slice = EndpointSlice {
                    address_type: "IPv4".to_owned(),
                    metadata: ObjectMeta {
                        name: Some(super::replicas::generated_name(environment, &key.name)),
                        generate_name: Some(format!("{}-", key.name)),
                        namespace: Some(key.namespace.clone()),
                        owner_references: Some(vec![pods::controller_reference(service)]),
                        ..ObjectMeta::default()
                    },
                    ..EndpointSlice::default()
                };
                set(&mut slice);
                let asking = super::replicas::asking("Service", key);
                let place = ObjectRef {
                    name: slice.name_any(),
                    ..key.clone()
                };
                if !environment.slice_expectations.are_met(&asking) {
                    continue;
                }
                environment.slice_expectations.creation(&asking, &place);
                if let Err(error) = api.create(&PostParams::default(), &slice).await {
                    environment.slice_expectations.failed(&place);
                    return Err(error.into());
                }
            }
        }
    }
    for surplus in free {
        apply::delete(&api, &surplus.object.name_any()).await?;
    }
    Ok(())
}

async fn write_endpoints(
    environment: &Environment,
    key: &ObjectRef,
    service: &Service,
    groups: &Groups,
) -> Result<(), Error> {
    let subsets: Vec<EndpointSubset> = groups
        .iter()
        .filter_map(|(ports, endpoints)| subset(ports, endpoints))
        .collect();
    let api: Api<Endpoints> = environment.api(key);
    let set = |endpoints: &mut Endpoints| {
        let mut labels = service.labels().clone();
        labels.insert(
            "endpoints.kubernetes.io/managed-by".to_owned(),
            "endpoint-controller".to_owned(),
        );
        endpoints.metadata.labels = Some(labels);
        endpoints.metadata.owner_references = Some(vec![pods::controller_reference(service)]);
        endpoints.subsets = (!subsets.is_empty()).then_some(subsets.clone());
    };
    if let Some(known) = environment.informers.endpoints.get(key) {
        apply::patch_locked(&api, &known.object, set).await?;
        return Ok(());
    }
    let mut endpoints = Endpoints {
        metadata: ObjectMeta {
            name: Some(key.name.clone()),
            namespace: Some(key.namespace.clone()),
            ..ObjectMeta::default()
        },
        subsets: None,
    };
    set(&mut endpoints);
    api.create(&PostParams::default(), &endpoints).await?;
    Ok(())
}

fn subset(ports: &[EndpointPort], endpoints: &[Endpoint]) -> Option<EndpointSubset> {
    let flag = |own: &Endpoint, of: fn(&EndpointConditions) -> Option<bool>| {
        own.conditions.as_ref().and_then(of).unwrap_or(false)
    };
    let addresses = |ready: bool| -> Option<Vec<EndpointAddress>> {
        let list: Vec<EndpointAddress> = endpoints
            .iter()
            .filter(|own| !flag(own, |own| own.terminating) && flag(own, |own| own.ready) == ready)
            .map(|own| EndpointAddress {
                ip: own.addresses.first().cloned().unwrap_or_default(),
                hostname: own.hostname.clone(),
                node_name: own.node_name.clone(),
                target_ref: own.target_ref.clone(),
            })
            .collect();
        (!list.is_empty()).then_some(list)
    };
    let (ready, not_ready) = (addresses(true), addresses(false));
    if ready.is_none() && not_ready.is_none() {
        return None;
    }
    let ports: Vec<OldPort> = ports
        .iter()
        .map(|port| OldPort {
            name: port.name.clone().filter(|name| !name.is_empty()),
            port: port.port.unwrap_or(0),
            protocol: port.protocol.clone(),
            app_protocol: port.app_protocol.clone(),
        })
        .collect();
    Some(EndpointSubset {
        addresses: ready,
        not_ready_addresses: not_ready,
        ports: (!ports.is_empty()).then_some(ports),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn endpoints_are_grouped_by_their_ports() {
        let service: Service = serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": {
            "selector": {"app": "x"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]}}))
        .unwrap();
        let pod = |name: &str, port: i32, ready: &str| -> Arc<Clustered<Pod>> {
            let object = serde_json::from_value(json!({
                "metadata": {"name": name, "labels": {"app": "x"}},
                "spec": {"nodeName": "a", "containers": [{"name": "m", "ports": [{"name": "web", "containerPort": port}]}]},
                "status": {"podIP": format!("10.0.0.{port}"), "conditions": [{"type": "Ready", "status": ready}]},
            }));
            let (cluster, object) = ("c".to_owned(), object.unwrap());
            Arc::new(Clustered { cluster, object })
        };
        let around = [pod("a", 1, "True"), pod("b", 2, "False"), pod("c", 1, "False")];
        let groups = groups(&service, &around, &|_| Some("z".into()));
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].0[0].port, groups[0].1.len()), (Some(1), 2));
        let subset = subset(&groups[0].0, &groups[0].1).unwrap();
        assert_eq!(
            (
                subset.addresses.unwrap().len(),
                subset.not_ready_addresses.unwrap().len()
            ),
            (1, 1)
        );
        assert_eq!(groups[1].1[0].zone.as_deref(), Some("z"));
    }
}
