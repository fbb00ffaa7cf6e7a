//! Sets right which IPAddresses there are for services: this server makes both at once, but others may have written only one of them, such as
//! servers from before there were IPAddresses. From pkg/registry/core/service/ipallocator/controller/repairip.go of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apiserver::kubernetes::{MADE_FOR_SERVICES, address_family, ip_address_labels};
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::informer::Watched;
use gardener_controller::reference::object_reference;
use gardener_controller::{Informer, apply};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::{IPAddress, IPAddressSpec, ParentReference, ServiceCIDR};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a request may take: so long the other half of what it writes may be missing.
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// How soon after a change all is looked at: many come together.
const SOON: Duration = Duration::from_secs(1);
/// How often all is looked at that nobody has changed: what was too young may have been left behind.
const LOOK: Duration = Duration::from_secs(60);
const COMPONENT: &str = "ipallocator-repair-controller";

/// Repairs again and again, until it is told to stop.
pub(crate) async fn run(client: Client, clock: Clock, stop: CancellationToken) {
    let changed = Arc::new(Notify::new());
    let services: Informer<Service> = start(&client, &changed, &stop);
    let addresses: Informer<IPAddress> = start(&client, &changed, &stop);
    let ranges: Informer<ServiceCIDR> = start(&client, &changed, &stop);
    let recorder = Recorder::new(client.clone(), clock.clone(), COMPONENT);
    let repairs = async {
        tokio::join!(services.synced(), addresses.synced(), ranges.synced());
        let mut told = BTreeSet::new();
        loop {
            let found = findings(&services.list(), &addresses.list(), &ranges.list(), clock.now());
            tell(&found, &recorder, &mut told).await;
            for finding in found {
                if let Err(error) = repair(&client, finding.repair).await {
                    tracing::warn!(%error, "the addresses of services cannot be set right now");
                }
            }
            // what it does not hear of in time comes with the next look
            let _ = tokio::time::timeout(LOOK, changed.notified()).await;
            tokio::time::sleep(SOON).await;
        }
    };
    stop.run_until_cancelled(repairs).await;
}

fn start<K: Watched<DynamicType = ()>>(
    client: &Client,
    changed: &Arc<Notify>,
    stop: &CancellationToken,
) -> Informer<K> {
    let informer = Informer::start(Api::all(client.clone()), watcher::Config::default(), stop);
    let changed = Arc::clone(changed);
    informer.on_change(move |_: &gardener_controller::Change<K>| changed.notify_one());
    informer
}

/// Something that is not as it should be.
#[derive(Debug, PartialEq)]
struct Finding {
    /// The service that it is about, and what is said of it: reason and message of an event.
    told: Option<(Arc<Service>, &'static str, String)>,
    repair: Option<Repair>,
}

/// What sets it right.
#[derive(Debug, PartialEq)]
enum Repair {
    Create(Box<IPAddress>),
    Delete(Arc<IPAddress>),
}

/// Says as events what was not found at the last look, and keeps what was found now, by service.
async fn tell(found: &[Finding], recorder: &Recorder, told: &mut BTreeSet<(String, String)>) {
    let mut now = BTreeSet::new();
    for (service, reason, message) in found.iter().filter_map(|finding| finding.told.as_ref()) {
        let own = (service.uid().unwrap_or_default(), message.clone());
        if !told.contains(&own) {
            let about = object_reference(service.as_ref(), &());
            recorder.publish(&about, Severity::Warning, reason, message).await;
        }
        now.insert(own);
    }
    *told = now;
}

/// Does it. What somebody else has done meanwhile is as good.
async fn repair(client: &Client, repair: Option<Repair>) -> Result<(), kube::Error> {
    let api: Api<IPAddress> = Api::all(client.clone());
    let done = match repair {
        None => Ok(()),
        Some(Repair::Create(address)) => api.create(&PostParams::default(), &address).await.map(drop),
        Some(Repair::Delete(address)) => apply::delete_locked(&api, &address).await.map(drop),
    };
    match done {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        done => done,
    }
}

/// The cluster IPs of a service.
fn cluster_ips(service: &Service) -> impl Iterator<Item = &String> {
    let spec = service.spec.as_ref().and_then(|spec| spec.cluster_ips.as_ref());
    spec.into_iter().flatten().filter(|address| *address != "None")
}

/// The service that an IPAddress is for: namespace and name.
fn parent(address: &IPAddress) -> Option<(&str, &str)> {
    let parent = &address.spec.parent_ref;
    let is_service = parent.group.as_deref().unwrap_or_default().is_empty() && parent.resource == "services";
    is_service.then(|| (parent.namespace.as_deref().unwrap_or_default(), parent.name.as_str()))
}

/// The IPAddress of a service.
fn made_for(service: &Service, address: IpAddr) -> IPAddress {
    let labels = ip_address_labels(address);
    IPAddress {
        metadata: ObjectMeta {
            name: Some(address.to_string()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        },
        spec: IPAddressSpec {
            parent_ref: ParentReference {
                group: None,
                resource: "services".to_owned(),
                namespace: service.namespace(),
                name: service.name_any(),
            },
        },
    }
}

/// What is not as it should be. An IPAddress that is made anew is deleted first, and missed at the next look.
fn findings(
    services: &[Arc<Service>],
    addresses: &[Arc<IPAddress>],
    ranges: &[Arc<ServiceCIDR>],
    now: Timestamp,
) -> Vec<Finding> {
    let by_name: BTreeMap<String, &Arc<IPAddress>> = addresses.iter().map(|own| (own.name_any(), own)).collect();
    let by_place: BTreeMap<(String, String), &Arc<Service>> = services
        .iter()
        .map(|service| ((service.namespace().unwrap_or_default(), service.name_any()), service))
        .collect();
    let ranges: Vec<IpNet> = ranges
        .iter()
        .flat_map(|range| range.spec.iter().flat_map(|spec| spec.cidrs.iter().flatten()))
        .filter_map(|range| range.parse().ok())
        .collect();
    let service_at = |(namespace, name): (&str, &str)| by_place.get(&(namespace.to_owned(), name.to_owned())).copied();
    let of_services = services.iter().flat_map(|service| {
        let (by_name, ranges) = (&by_name, &ranges);
        cluster_ips(service).filter_map(move |own| of_service(service, own, by_name, ranges, &service_at))
    });
    let left_behind = addresses.iter().filter(|address| {
        let (label, allocator) = MADE_FOR_SERVICES;
        let is_managed = address.labels().get(label).is_some_and(|by| by == allocator);
        let created = address.metadata.creation_timestamp.as_ref();
        let is_old = created.is_none_or(|created| now.duration_since(created.0) > GRACE);
        is_managed && is_left_behind(address, is_old, &service_at)
    });
    let left_behind = left_behind.map(|address| Finding {
        told: None,
        repair: Some(Repair::Delete(Arc::clone(address))),
    });
    of_services.chain(left_behind).collect()
}

/// Whether no service has an address that was made for one. Of a young one the service may be on its way.
fn is_left_behind<'s>(
    address: &IPAddress,
    is_old: bool,
    service_at: &impl Fn((&str, &str)) -> Option<&'s Arc<Service>>,
) -> bool {
    let Some(place) = parent(address) else { return true };
    let name = address.name_any();
    let has = |service: &Arc<Service>| {
        cluster_ips(service).any(|own| own.parse::<IpAddr>().is_ok_and(|own| own.to_string() == name))
    };
    is_old && !service_at(place).is_some_and(has)
}

/// What is wrong with an address of a service.
fn of_service<'s>(
    service: &Arc<Service>,
    own: &str,
    by_name: &BTreeMap<String, &Arc<IPAddress>>,
    ranges: &[IpNet],
    service_at: &impl Fn((&str, &str)) -> Option<&'s Arc<Service>>,
) -> Option<Finding> {
    let told = |reason, message: String| Some((Arc::clone(service), reason, message));
    let Ok(address) = own.parse::<IpAddr>() else {
        let message = format!("Cluster IP {own} is not a valid IP; please recreate Service");
        return Some(Finding {
            told: told("ClusterIPNotValid", message),
            repair: None,
        });
    };
    let family = address_family(address);
    if !ranges.iter().any(|range| range.contains(&address)) {
        let message = format!(
            "Cluster IP [{family}]: {address} is not within any configured Service CIDR; please recreate service"
        );
        return Some(Finding {
            told: told("ClusterIPOutOfRange", message),
            repair: None,
        });
    }
    let Some(found) = by_name.get(&address.to_string()) else {
        let message = format!("Cluster IP [{family}]: {address} is not allocated; repairing");
        return Some(Finding {
            told: told("ClusterIPNotAllocated", message),
            repair: Some(Repair::Create(Box::new(made_for(service, address)))),
        });
    };
    let place = (service.namespace().unwrap_or_default(), service.name_any());
    let parent = parent(found);
    if parent != Some((place.0.as_str(), place.1.as_str())) {
        let other = parent.and_then(service_at);
        if other.is_some_and(|other| cluster_ips(other).any(|theirs| theirs == own)) {
            let message =
                format!("Cluster IP [{family}]:{address} was assigned to multiple services; please recreate service");
            return Some(Finding {
                told: told("ClusterIPAlreadyAllocated", message),
                repair: None,
            });
        }
        let message = format!(
            "the ClusterIP [{family}]: {address} for Service {}/{} has a wrong reference; repairing",
            place.0, place.1
        );
        return Some(Finding {
            told: told("ClusterIPNotAllocated", message),
            repair: Some(Repair::Delete(Arc::clone(found))),
        });
    }
    let is_labelled = ip_address_labels(address)
        .iter()
        .all(|(key, value)| found.labels().get(*key).is_some_and(|own| own == value));
    (!is_labelled).then(|| Finding {
        told: None,
        repair: Some(Repair::Delete(Arc::clone(found))),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-06-15T12:00:00Z";

    fn service(name: &str, address: &str) -> Value {
        json!({"metadata": {"namespace": "n", "name": name, "uid": name}, "spec": {"clusterIPs": [address]}})
    }

    fn address(name: &str, service: &str, created: &str) -> Value {
        json!({
            "metadata": {
                "name": name, "creationTimestamp": created,
                "labels": {"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"},
            },
            "spec": {"parentRef": {"resource": "services", "namespace": "n", "name": service}},
        })
    }

    /// Reasons of events, and what is done.
    #[track_caller]
    fn found(services: &[Value], addresses: &[Value]) -> Vec<String> {
        fn all<K: serde::de::DeserializeOwned>(values: &[Value]) -> Vec<Arc<K>> {
            let read = |value: &Value| Arc::new(serde_json::from_value(value.clone()).unwrap());
            values.iter().map(read).collect()
        }
        let range = json!({"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.0.0.0/24"]}});
        let found = findings(&all(services), &all(addresses), &all(&[range]), NOW.parse().unwrap());
        let told = |finding: Finding| {
            let reason = finding.told.map_or("", |(_, reason, _)| reason);
            match finding.repair {
                None => reason.to_owned(),
                Some(Repair::Create(address)) => {
                    assert_eq!(address.spec.parent_ref.namespace.as_deref(), Some("n"));
                    format!("{reason} create {}", address.metadata.name.unwrap())
                }
                Some(Repair::Delete(address)) => format!("{reason} delete {}", address.name_any()),
            }
        };
        found.into_iter().map(told).collect()
    }

    #[test]
    fn services_get_the_addresses_that_they_lack() {
        let old = "2026-06-15T11:00:00Z";
        let own = [service("a", "10.0.0.5")];
        assert!(found(&own, &[address("10.0.0.5", "a", old)]).is_empty());
        assert!(found(&[service("a", "None")], &[]).is_empty());
        assert_eq!(found(&own, &[]), ["ClusterIPNotAllocated create 10.0.0.5"]);
        assert_eq!(found(&[service("a", "10.0.1.5")], &[]), ["ClusterIPOutOfRange"]);
        assert_eq!(found(&[service("a", "ten")], &[]), ["ClusterIPNotValid"]);
        let of_another = [address("10.0.0.5", "b", NOW)];
        assert_eq!(found(&own, &of_another), ["ClusterIPNotAllocated delete 10.0.0.5"]);
        assert_eq!(
            found(&[service("a", "10.0.0.5"), service("b", "10.0.0.5")], &of_another),
            ["ClusterIPAlreadyAllocated"]
        );
        let mut unlabelled = address("10.0.0.5", "a", old);
        unlabelled["metadata"]["labels"] = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
        assert_eq!(found(&own, &[unlabelled]), [" delete 10.0.0.5"]);
    }

    #[test]
    fn addresses_that_are_left_behind_go() {
        let (old, young) = ("2026-06-15T11:58:59Z", "2026-06-15T11:59:01Z");
        assert_eq!(found(&[], &[address("10.0.0.5", "a", old)]), [" delete 10.0.0.5"]);
        assert!(found(&[], &[address("10.0.0.5", "a", young)]).is_empty());
        let own = [service("a", "10.0.0.6")];
        let addresses = [address("10.0.0.5", "a", old), address("10.0.0.6", "a", old)];
        assert_eq!(found(&own, &addresses), [" delete 10.0.0.5"]);
        let mut of_others = address("10.0.0.5", "a", old);
        of_others["metadata"]["labels"] = json!({});
        assert!(found(&[], &[of_others]).is_empty());
        let mut of_no_service = address("10.0.0.5", "a", young);
        of_no_service["spec"]["parentRef"]["resource"] = json!("pods");
        assert_eq!(found(&[], &[of_no_service]), [" delete 10.0.0.5"]);
    }
}
