//! The range of a cluster's service addresses, and the service `kubernetes` with its first one, which leads to the API.

use gardener_apimachinery::clock::Clock;
use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::api::networking::v1::{ServiceCIDR, ServiceCIDRSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// The name of both.
const NAME: &str = "kubernetes";
/// As whom upstream tells that the range is ready.
const CIDR_CONTROLLER: &str = "kubernetes-service-cidr-controller";

/// Makes what is missing of both, and tells that the range is ready. The port is the one that the API listens on, where there is one.
///
/// # Errors
/// When the API refuses.
pub async fn provide(client: &Client, ranges: &[String], port: Option<i32>, clock: &Clock) -> Result<(), kube::Error> {
    if !ranges.is_empty() {
        provide_range(&Api::all(client.clone()), ranges, clock).await?;
    }
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    if services.get_opt(NAME).await?.is_none() {
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
                name: Some(NAME.into()),
                labels: Some(labels.into_iter().collect()),
                ..ObjectMeta::default()
            },
            spec: Some(ServiceSpec {
                cluster_ip: ranges.first().and_then(|range| first_address(range)),
                ip_family_policy: Some("SingleStack".into()),
                ports: Some(vec![port]),
                ..ServiceSpec::default()
            }),
            status: None,
        };
        ignore_existing(services.create(&PostParams::default(), &service).await)?;
    }
    Ok(())
}

/// Makes the range, if it is missing, or adds that of another family; and tells that it is ready unless that, or something else, is told already.
async fn provide_range(cidrs: &Api<ServiceCIDR>, ranges: &[String], clock: &Clock) -> Result<(), kube::Error> {
    let found = match cidrs.get_opt(NAME).await? {
        Some(mut found) => {
            let there = found.spec.iter().flat_map(|spec| spec.cidrs.iter().flatten());
            if ranges.len() == 2 && there.eq(ranges.first()) {
                found.spec.get_or_insert_default().cidrs = Some(ranges.to_vec());
                found = cidrs.replace(NAME, &PostParams::default(), &found).await?;
            }
            found
        }
        None => {
            let mut cidr = ServiceCIDR::default();
            cidr.metadata.name = Some(NAME.into());
            cidr.spec = Some(ServiceCIDRSpec {
                cidrs: Some(ranges.to_vec()),
            });
            ignore_existing(cidrs.create(&PostParams::default(), &cidr).await)?;
            cidr
        }
    };
    let told = found.status.and_then(|status| status.conditions).unwrap_or_default();
    if told.iter().any(|condition| condition.type_ == "Ready") {
        return Ok(());
    }
    let ready = json!({
        "apiVersion": ServiceCIDR::API_VERSION,
        "kind": ServiceCIDR::KIND,
        "metadata": {"name": NAME},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "message": "Kubernetes default Service CIDR is ready", "lastTransitionTime": Time(clock.now()),
        }]},
    });
    let parameters = PatchParams::apply(CIDR_CONTROLLER).force();
    cidrs.patch_status(NAME, &parameters, &Patch::Apply(ready)).await?;
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
    use gardener_apiserver::UserInfo;
    use gardener_testkit::cluster::MemoryClusters;

    use super::*;

    #[test]
    fn the_first_address_is_the_api_servers() {
        assert_eq!(first_address("10.4.0.0/16").as_deref(), Some("10.4.0.1"));
        assert_eq!(first_address("fd00::/108").as_deref(), Some("fd00::1"));
        assert_eq!(first_address("nonsense"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_range_is_told_to_be_ready_once_and_the_server_owns_what_it_makes() {
        let clusters = MemoryClusters::new();
        clusters.open("c").await;
        let client = clusters.server.client("c", UserInfo::apiserver());
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let ranges = ["10.4.0.0/16".to_owned()];
        provide(&client, &ranges, None, &clock).await.unwrap();
        let cidrs: Api<ServiceCIDR> = Api::all(client.clone());
        let cidr = cidrs.get(NAME).await.unwrap();
        let managers = |metadata: &ObjectMeta| {
            let entries = metadata.managed_fields.clone().unwrap_or_default().into_iter();
            entries.filter_map(|entry| entry.manager).collect::<Vec<_>>()
        };
        assert_eq!(managers(&cidr.metadata), [CIDR_CONTROLLER, "kube-apiserver"]);
        let conditions = cidr.status.clone().unwrap().conditions.unwrap();
        assert_eq!((&*conditions[0].type_, &*conditions[0].status), ("Ready", "True"));
        let services: Api<Service> = Api::namespaced(client.clone(), "default");
        let service = services.get(NAME).await.unwrap();
        assert_eq!(managers(&service.metadata), ["kube-apiserver"]);
        assert_eq!(service.spec.unwrap().cluster_ip.as_deref(), Some("10.4.0.1"));
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        provide(&client, &ranges, None, &clock).await.unwrap();
        assert_eq!(cidrs.get(NAME).await.unwrap(), cidr, "nothing is told again");

        let ranges_of = |cidr: ServiceCIDR| cidr.spec.unwrap().cidrs.unwrap();
        let others = ["10.8.0.0/16".to_owned(), "fd00::/108".to_owned()];
        provide(&client, &others, None, &clock).await.unwrap();
        assert_eq!(ranges_of(cidrs.get(NAME).await.unwrap()), ranges);
        let both = [ranges[0].clone(), "fd00::/108".to_owned()];
        provide(&client, &both, None, &clock).await.unwrap();
        assert_eq!(ranges_of(cidrs.get(NAME).await.unwrap()), both);
    }
}
