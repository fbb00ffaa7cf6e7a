//! The range of a cluster's service addresses, and the service `kubernetes` with its first one, which leads to the API.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::networking::v1::{ServiceCIDR, ServiceCIDRSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::PostParams;
use kube::{Api, Client};

/// Makes what is missing of both. The port is the one that the API listens on, where there is one.
///
/// # Errors
/// When the API refuses.
pub async fn provide(client: &Client, ranges: &[String], port: Option<i32>) -> Result<(), kube::Error> {
    let cidrs: Api<ServiceCIDR> = Api::all(client.clone());
    if cidrs.get_opt("kubernetes").await?.is_none() && !ranges.is_empty() {
        let metadata = ObjectMeta {
            name: Some("kubernetes".into()),
            ..ObjectMeta::default()
        };
        let cidr = ServiceCIDR {
            metadata,
            spec: Some(ServiceCIDRSpec {
                cidrs: Some(ranges.to_vec()),
            }),
            status: None,
        };
        ignore_existing(cidrs.create(&PostParams::default(), &cidr).await)?;
    }
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    if services.get_opt("kubernetes").await?.is_none() {
        let labels = [("component", "apiserver"), ("provider", "kubernetes")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let port = ServicePort {
            name: Some("https".into()),
            port: 443,
            target_port: port.map(IntOrString::Int),
            protocol: Some("TCP".into()),
            ..ServicePort::default()
        };
        let service = Service {
            metadata: ObjectMeta {
                name: Some("kubernetes".into()),
                labels: Some(labels.into_iter().collect()),
                ..ObjectMeta::default()
            },
            spec: Some(ServiceSpec {
                cluster_ip: ranges.first().and_then(|range| first_address(range)),
                ports: Some(vec![port]),
                ..ServiceSpec::default()
            }),
            status: None,
        };
        ignore_existing(services.create(&PostParams::default(), &service).await)?;
    }
    Ok(())
}

/// Two replicas may start at once: what the other one created is as good.
fn ignore_existing<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(error) => Err(error),
    }
}

/// The first address of a range that a service can have.
pub fn first_address(range: &str) -> Option<String> {
    let (base, _) = range.split_once('/')?;
    match base.parse().ok()? {
        std::net::IpAddr::V4(ip) => Some(std::net::Ipv4Addr::from(u32::from(ip).checked_add(1)?).to_string()),
        std::net::IpAddr::V6(ip) => Some(std::net::Ipv6Addr::from(u128::from(ip).checked_add(1)?).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_is_the_api_servers() {
        assert_eq!(first_address("10.4.0.0/16").as_deref(), Some("10.4.0.1"));
        assert_eq!(first_address("fd00::/108").as_deref(), Some("fd00::1"));
        assert_eq!(first_address("nonsense"), None);
    }
}
