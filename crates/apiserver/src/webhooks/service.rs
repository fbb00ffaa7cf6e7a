//! Where the Services of a cluster lead.

use std::sync::Arc;

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
        slices(cluster, service)
            .iter()
            .find_map(|slice| address(slice, meta::text(port, "/name")))
            .ok_or_else(|| format!("no endpoints available for service {name}"))
    }
}

/// The port of a Service with this number.
pub(crate) fn port(service: &Value, number: u16) -> Option<&Value> {
    let mut ports = meta::elements(service, "/spec/ports").iter();
    ports.find(|port| port.get("port").and_then(Value::as_u64) == Some(u64::from(number)))
}

/// The EndpointSlices of a Service.
pub(crate) fn slices(cluster: &LogicalCluster, service: &ServiceReference) -> Vec<Arc<Value>> {
    let mut slices = cluster.list("discovery.k8s.io", "endpointslices", Some(&service.namespace));
    slices.retain(|slice| meta::text(slice, "/metadata/labels/kubernetes.io~1service-name") == service.name);
    slices
}

/// The first ready address of a slice, at the port of this name.
pub(crate) fn address(slice: &Value, port: &str) -> Option<String> {
    let ports = meta::elements(slice, "/ports").iter();
    let port = ports
        .filter(|own| meta::text(own, "/name") == port)
        .find_map(|own| own.get("port").and_then(Value::as_u64))?;
    let mut endpoints = meta::elements(slice, "/endpoints").iter();
    let ready = endpoints.find(|endpoint| endpoint.at("/conditions/ready").and_then(Value::as_bool) != Some(false))?;
    let address = meta::elements(ready, "/addresses").first()?.as_str()?;
    Some(join(address, port))
}

fn join(host: &str, port: u64) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}
