//! Names and addresses of the API server: DNS records, advertised addresses [CP-5], [CP-F10..14].

use std::time::Duration;

use gardener_apis::constants::task;
use gardener_apis::core::v1beta1::ShootAdvertisedAddress;
use gardener_apis::extensions::v1alpha1::DNSRecord;
use gardener_controller::Read;
use gardener_flow::TaskError;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use serde_json::json;

use super::{Botanist, Domain, Done, issuers};
use crate::components::kube_apiserver;
use crate::extension::{self, Ask, Timing};
use gardener_rules::shoot_operation::OperationType;

/// Which record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Internal,
    External,
}

impl Record {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::External => "external",
        }
    }

    fn task(self) -> &'static str {
        match self {
            Self::Internal => task::DEPLOY_DNS_RECORD_INTERNAL,
            Self::External => task::DEPLOY_DNS_RECORD_EXTERNAL,
        }
    }
}

fn record_type(value: &str) -> &'static str {
    match value.parse() {
        Ok(std::net::IpAddr::V4(_)) => "A",
        Ok(std::net::IpAddr::V6(_)) => "AAAA",
        Err(_) => "CNAME",
    }
}

impl Botanist {
    /// The Service in front of the API server [CP-F10].
    pub(crate) async fn deploy_api_server_service(&self) -> Done {
        self.apply(&[kube_apiserver::service(&self.view().cluster())]).await
    }

    /// Finds the address of the entrance: the LoadBalancer's if the seed has one [CP-F11].
    pub(crate) async fn wait_for_address(&self) -> Done {
        let api: Api<Service> = Api::namespaced(self.seed_client().clone(), "istio-ingress");
        let found = api.read_opt("istio-ingressgateway").await?;
        let address = match found {
            None => self.config.settings.ingress.address.clone(),
            Some(_) => {
                let patience = gardener_controller::wait::Patience::of(Duration::from_secs(600));
                gardener_controller::wait::wait_for(&api, "istio-ingressgateway", patience, |service| {
                    use gardener_controller::wait::Verdict;
                    let ingress = service
                        .and_then(|one| one.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?.first())
                        .and_then(|one| one.ip.clone().or_else(|| one.hostname.clone()));
                    match ingress {
                        Some(address) => Verdict::Ready(address),
                        None => Verdict::Pending(
                            "load balancer istio-ingress/istio-ingressgateway has no address yet".to_owned(),
                        ),
                    }
                })
                .await?
            }
        };
        self.state.write().address = Some(address);
        Ok(())
    }

    fn url(&self, host: &str) -> String {
        match self.config.settings.ingress.port {
            443 => format!("https://{host}"),
            port => format!("https://{host}:{port}"),
        }
    }

    /// The URL under which nodes and gardenlet reach the API server.
    pub(crate) fn server_url(&self) -> String {
        let host = self.external_host().unwrap_or_else(|| self.internal_host());
        self.url(&host)
    }

    /// `https://…` by the internal name.
    pub(crate) fn internal_url(&self) -> String {
        self.url(&self.internal_host())
    }

    /// `status.advertisedAddresses` [CP-F12].
    pub(crate) async fn advertise_addresses(&self) -> Done {
        let address = |name: &str, url: String| ShootAdvertisedAddress {
            name: name.to_owned(),
            url,
            application: None,
        };
        let mut addresses = Vec::new();
        if let Some(host) = self.external_host() {
            addresses.push(address("external", self.url(&host)));
        }
        if self.internal.is_some() {
            addresses.push(address("internal", self.internal_url()));
        }
        // who has no name at all is reached by the address
        let known = self.state.read().address.clone();
        if let Some(known) = known.filter(|_| addresses.is_empty()) {
            addresses.push(address("unmanaged", self.url(&known)));
        }
        let issuer = issuers(&self.shoot(), &self.internal_host()).into_iter().next();
        addresses.extend(issuer.map(|issuer| address("service-account-issuer", issuer)));
        self.patch_status(|shoot| shoot.status.advertised_addresses = addresses.clone())
            .await
    }

    fn domain(&self, record: Record) -> Option<&Domain> {
        match record {
            Record::Internal => self.internal.as_ref(),
            Record::External => self.external.as_ref(),
        }
    }

    pub(crate) fn record_name(&self, record: Record) -> String {
        format!("{}-{}", self.shoot_name(), record.as_str())
    }

    /// Makes a DNS record point to the API server, and waits for it [CP-F13], [CP-F14].
    pub(crate) async fn deploy_record(&self, record: Record) -> Done {
        let api: Api<DNSRecord> = self.seed_api();
        let name = self.record_name(record);
        let host = match record {
            Record::Internal => Some(self.internal_host()),
            Record::External => self.external_host(),
        };
        let (Some(domain), Some(host)) = (self.domain(record).cloned(), host) else {
            return self.destroy_record(record).await;
        };
        let address = self.state.read().address.clone();
        let address = address.ok_or_else(|| TaskError::new("the address of the API server is not known yet"))?;
        let secret = format!("dnsrecord-{name}");
        self.apply(&[json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": secret, "namespace": self.namespace}, "data": domain.credentials,
        })])
        .await?;
        let kind = record_type(&address);
        let current = api.read_opt(&name).await?;
        if current.is_some_and(|current| current.spec.record_type != kind) {
            // The type cannot be changed [EXT-50].
            self.destroy_record(record).await?;
        }
        let mut initial = DNSRecord::default();
        initial.metadata.name = Some(name.clone());
        initial.metadata.namespace = Some(self.namespace.clone());
        let is_first = matches!(self.operation, OperationType::Restore);
        let ask = if self.has_task(record.task()) || is_first {
            Ask::Always
        } else {
            Ask::IfChanged
        };
        let ttl = self.config.settings.shoot.dns_entry_ttl_seconds;
        extension::deploy(&api, initial, ask, &self.config.clock, |object| {
            object.spec.r#type.clone_from(&domain.provider);
            object.spec.secret_ref.name = Some(secret.clone());
            object.spec.secret_ref.namespace = Some(self.namespace.clone());
            object.spec.zone.clone_from(&domain.zone);
            object.spec.name.clone_from(&host);
            object.spec.record_type = kind.to_owned();
            object.spec.values = vec![address.clone()];
            object.spec.ttl = Some(ttl);
        })
        .await?;
        extension::wait_ready(&api, &name, Timing::DNS).await?;
        self.remove_task(record.task()).await
    }

    /// Removes a DNS record, and waits until it is gone.
    pub(crate) async fn destroy_record(&self, record: Record) -> Done {
        let api: Api<DNSRecord> = self.seed_api();
        let name = self.record_name(record);
        extension::delete(&api, &name, &self.config.clock).await?;
        extension::wait_gone(&api, &name, Timing::DNS).await
    }
}
