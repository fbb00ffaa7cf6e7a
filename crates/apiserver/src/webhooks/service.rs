//! Where the Services of a cluster lead.

use std::sync::Arc;

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::call::ServiceReference;
use crate::cluster::LogicalCluster;
use crate::definition::Lister;
use crate::meta;

/// Finds the address behind a Service.
pub trait ServiceResolver: Send + Sync + 'static {
    /// `host:port` to connect to.
    ///
    /// # Errors
    /// Why there is none, as messages tell it.
    fn resolve(&self, cluster: &LogicalCluster, service: &ServiceReference) -> Result<String, String>;
}

/// Goes to the endpoints of Services: cluster IPs lead nowhere outside of nodes.
pub struct EndpointResolver;

impl ServiceResolver for EndpointResolver {
    fn resolve(&self, cluster: &LogicalCluster, service: &ServiceReference) -> Result<String, String> {
        let name = go_quote(&service.name);
        let found = cluster
            .get("", "services", &service.namespace, &service.name)
            .ok_or_else(|| format!("service {name} not found"))?;
        if meta::text(&found, "/spec/type") == "ExternalName" {
            return Ok(join(meta::text(&found, "/spec/externalName"), u64::from(service.port)));
        }
        let port = port(&found, service.port)
            .ok_or_else(|| format!("no service port {} found for service {name}", service.port))?;
        let mut slices = slices(cluster, service);
        if let [_, _, ..] = *slices {
            // of one that has addresses of two families, those of its own first
            let family = meta::elements(&found, "/spec/ipFamilies").first();
            let is_second = |slice: &Value| family.is_some_and(|own| Some(own) != slice.get("addressType"));
            slices.sort_by_cached_key(|slice| (is_second(slice), cluster.chance().number()));
        }
        slices
            .iter()
            .find_map(|slice| any_address(slice, meta::text(port, "/name"), cluster.chance()))
            .ok_or_else(|| format!("no endpoints available for service {name}"))
    }
}

/// The port of a Service with this number.
pub(crate) fn port(service: &Value, number: u16) -> Option<&Value> {
    let mut ports = meta::elements(service, "/spec/ports").iter();
    ports.find(|port| port.get("port").and_then(Value::as_u64) == Some(u64::from(number)))
}

/// Where an EndpointSlice tells its Service.
pub(crate) const OF_SLICE: &str = "/metadata/labels/kubernetes.io~1service-name";

/// The EndpointSlices of a Service.
pub(crate) fn slices(cluster: &LogicalCluster, service: &ServiceReference) -> Vec<Arc<Value>> {
    let mut slices = cluster.list("discovery.k8s.io", "endpointslices", Some(&service.namespace));
    slices.retain(|slice| meta::text(slice, OF_SLICE) == service.name);
    slices
}

/// The ready addresses of a slice, at the port of this name.
fn addresses(slice: &Value, port: &str) -> Vec<String> {
    let mut ports = meta::elements(slice, "/ports")
        .iter()
        .filter(|own| meta::text(own, "/name") == port);
    let Some(port) = ports.find_map(|own| own.get("port").and_then(Value::as_u64)) else {
        return Vec::new();
    };
    let is_ready = |endpoint: &&Value| endpoint.at("/conditions/ready").and_then(Value::as_bool) != Some(false);
    let ready = meta::elements(slice, "/endpoints").iter().filter(is_ready);
    let first = ready.filter_map(|endpoint| meta::elements(endpoint, "/addresses").first()?.as_str());
    first.map(|address| join(address, port)).collect()
}

/// Whether a slice has a ready address at the port of this name.
pub(crate) fn has_address(slice: &Value, port: &str) -> bool {
    !addresses(slice, port).is_empty()
}

/// One of the ready addresses of a slice, at the port of this name. Of several any one, so that all of them are asked.
fn any_address(slice: &Value, port: &str, chance: &Chance) -> Option<String> {
    let mut addresses = addresses(slice, port);
    let at = match addresses.len() {
        0 => return None,
        1 => 0,
        count => usize::try_from(chance.below(u64::try_from(count).ok()?)).ok()?,
    };
    Some(addresses.swap_remove(at))
}

fn join(host: &str, port: u64) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn all_that_are_ready_are_asked_in_turn() {
        let endpoint =
            |address: &str, ready: Value| json!({"addresses": [address, "9.9.9.9"], "conditions": {"ready": ready}});
        let slice = json!({
            "ports": [{"name": "other", "port": 1}, {"name": "https", "port": 443}],
            "endpoints": [
                endpoint("1.1.1.1", json!(true)), endpoint("2.2.2.2", json!(false)), endpoint("::3", Value::Null),
            ],
        });
        let chance = Chance::seeded(1);
        let found: BTreeSet<String> = (0..50).filter_map(|_| any_address(&slice, "https", &chance)).collect();
        assert_eq!(Vec::from_iter(found), ["1.1.1.1:443", "[::3]:443"]);
        assert_eq!(any_address(&slice, "none", &chance), None);
        assert!(has_address(&slice, "https") && !has_address(&slice, "none"));
        // where there is no choice nothing is left to chance
        let (one, before) = (
            json!({"ports": slice["ports"], "endpoints": [slice["endpoints"][0]]}),
            Chance::seeded(2),
        );
        any_address(&one, "https", &before);
        assert_eq!(before.number(), Chance::seeded(2).number());
    }
}
