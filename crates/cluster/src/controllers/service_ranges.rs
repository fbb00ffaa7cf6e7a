//! ServiceCIDRs: tells that they are ready to give addresses, and holds those that go until no service has an address that no other one gives.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gardener_apiserver::kubernetes::{MADE_FOR_SERVICES, gives_address};
use gardener_controller::{Action, ObjectRef, Queue, Read, apply};
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

const COMPONENT: &str = "service-cidr-controller";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// How long one that nobody needs stays, so that all API servers know that it goes before it is gone.
const GRACE: Duration = Duration::from_secs(10);
/// Time between two looks whether the addresses of one that is to go are given back.
const LOOK: Duration = Duration::from_secs(10);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let ranges = environment.informers.service_ranges.clone();
    environment.feed(
        &environment.informers.service_ranges,
        &queue,
        Role::ControllerManager,
        move |changed| {
            // another one may give the addresses of one that is to go
            let all = ranges.list_cluster(&changed.cluster);
            let going = all.iter().filter(|own| own.object.meta().deletion_timestamp.is_some());
            let mut keys: Vec<ObjectRef> = going.map(|own| key_of(own.as_ref())).collect();
            keys.push(key_of(changed));
            keys
        },
    );
    environment.reconcile(COMPONENT, Role::ControllerManager, 1, queue, reconcile);
}

/// The ranges of a ServiceCIDR.
fn ranges(cidr: &ServiceCIDR) -> impl Iterator<Item = IpNet> {
    let ranges = cidr.spec.iter().flat_map(|spec| spec.cidrs.iter().flatten());
    ranges.filter_map(|range| range.parse().ok())
}

/// Whether a ServiceCIDR may go: others give whatever it gives, or nobody has an address that only it gives.
fn may_go(going: &ServiceCIDR, others: &[&ServiceCIDR], taken: &[IpAddr]) -> bool {
    let of_others = || others.iter().flat_map(|other| ranges(other));
    let is_within_others = ranges(going).all(|own| of_others().any(|other| other.contains(&own)));
    let needs_it = |address: &IpAddr| {
        ranges(going).any(|own| gives_address(&own, *address))
            && !of_others().any(|other| gives_address(&other, *address))
    };
    is_within_others || !taken.iter().any(needs_it)
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.service_ranges.get(&key) else {
        return Ok(Action::Done);
    };
    let cidr = &found.object;
    let api: Api<ServiceCIDR> = environment.cluster_api(&key.cluster);
    let Some(since) = &cidr.metadata.deletion_timestamp else {
        apply::add_finalizer(&api, cidr, FINALIZER).await?;
        tell(&environment, &api, cidr, "True", "", "Kubernetes Service CIDR is ready").await?;
        return Ok(Action::Done);
    };
    if !apply::has_finalizer(cidr, FINALIZER) {
        return Ok(Action::Done);
    }
    let addresses: Api<IPAddress> = environment.cluster_api(&key.cluster);
    let (label, allocator) = MADE_FOR_SERVICES;
    let those = ListParams::default().labels(&format!("{label}={allocator}"));
    let addresses = addresses.read_list(&those).await?;
    let taken: Vec<IpAddr> = addresses
        .iter()
        .filter_map(|address| address.name_any().parse().ok())
        .collect();
    let all = environment.informers.service_ranges.list_cluster(&key.cluster);
    let others: Vec<&ServiceCIDR> = all
        .iter()
        .map(|other| &other.object)
        .filter(|other| other.name_any() != key.name)
        .collect();
    if !may_go(cidr, &others, &taken) {
        let why =
            "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR";
        tell(&environment, &api, cidr, "False", "Terminating", why).await?;
        return Ok(Action::RequeueAfter(LOOK));
    }
    let left = GRACE.saturating_sub(environment.clock().now().duration_since(since.0).unsigned_abs());
    if !left.is_zero() {
        return Ok(Action::RequeueAfter(left));
    }
    apply::remove_finalizer(&api, cidr, FINALIZER).await?;
    Ok(Action::Done)
}

/// Tells whether a ServiceCIDR is ready, if that is not told yet.
async fn tell(
    environment: &Environment,
    api: &Api<ServiceCIDR>,
    cidr: &ServiceCIDR,
    status: &str,
    reason: &str,
    message: &str,
) -> Result<(), Error> {
    let told = cidr.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut told = told.filter(|condition| condition.type_ == "Ready");
    if told.any(|own| (&*own.status, &*own.reason, &*own.message) == (status, reason, message)) {
        return Ok(());
    }
    let name = cidr.name_any();
    let condition = json!({
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": Time(environment.clock().now()),
    });
    let said = json!({
        "apiVersion": ServiceCIDR::api_version(&()),
        "kind": ServiceCIDR::kind(&()),
        "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let parameters = PatchParams::apply(COMPONENT).force();
    api.patch_status(&name, &parameters, &Patch::Apply(said)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(name: &str, ranges: &[&str]) -> ServiceCIDR {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"cidrs": ranges}})).unwrap()
    }

    #[test]
    fn a_range_goes_when_nobody_needs_it() {
        let going = cidr("more", &["10.1.0.0/28", "fd00::/120"]);
        let addresses =
            |addresses: &[&str]| -> Vec<IpAddr> { addresses.iter().map(|address| address.parse().unwrap()).collect() };
        let none: &[&ServiceCIDR] = &[];
        assert!(may_go(&going, none, &[]));
        assert!(may_go(&going, none, &addresses(&["10.2.0.1", "fd01::1"])));
        assert!(!may_go(&going, none, &addresses(&["10.1.0.1"])));
        assert!(!may_go(&going, none, &addresses(&["fd00::1"])));
        assert!(
            may_go(&going, none, &addresses(&["10.1.0.15"])),
            "no service has it of this range"
        );

        let (four, larger) = (
            cidr("four", &["10.1.0.0/16"]),
            cidr("larger", &["10.1.0.0/16", "fd00::/112"]),
        );
        assert!(
            may_go(&going, &[&four], &addresses(&["10.1.0.1"])),
            "the other one gives it"
        );
        assert!(!may_go(&going, &[&four], &addresses(&["10.1.0.1", "fd00::1"])));
        assert!(may_go(&going, &[&larger], &addresses(&["10.1.0.1", "fd00::1"])));
        let edge = cidr("edge", &["10.1.0.1/32"]);
        assert!(
            !may_go(&going, &[&edge], &addresses(&["10.1.0.1"])),
            "it is the other one's edge"
        );
    }
}
