//! What gardenlet deploys, rendered: pure functions from what is known of a cluster to manifests. One file per component.
//!
//! Nothing here reads or writes a cluster, and nothing here decides how many replicas there are.

pub mod access;
pub mod cluster_autoscaler;
pub mod etcd;
pub mod kube_apiserver;
pub mod kube_controller_manager;
pub mod kube_scheduler;
pub mod machine_controller_manager;
pub mod monitoring;
pub mod namespace;
pub mod node_agent;
pub mod operating_system_config;
pub mod resource_manager;
pub mod seed_system;
pub mod shoot_system;
pub mod vertical_pod_autoscaler;
pub mod vpn;
pub mod workload;

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::{Networking, NetworkingStatus, Seed, Shoot};
use gardener_rules::machines::node_limit::Networks;

/// The names of the Secrets that the secrets manager made, by configuration; bundles have the suffix `-bundle`.
pub type SecretNames = BTreeMap<String, String>;

/// The names under which a Service is reached.
pub(crate) fn service_names(name: &str, namespace: &str) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{name}.{namespace}"),
        format!("{name}.{namespace}.svc"),
        format!("{name}.{namespace}.svc.cluster.local"),
    ]
}

/// What the components of one control plane are rendered from.
#[derive(Clone, Debug)]
pub struct Cluster<'a> {
    /// The namespace in the seed: the technical ID.
    pub namespace: &'a str,
    /// The shoot.
    pub shoot: &'a Shoot,
    /// The seed.
    pub seed: &'a Seed,
    /// The Secrets.
    pub secrets: &'a SecretNames,
    /// The name under which the API server is reached from outside, if the shoot has a domain.
    pub external_host: Option<String>,
    /// The name under which the API server is reached between Gardener's components.
    pub internal_host: String,
    /// `https://…` of the service account tokens' issuer, first the one that signs [CP-113].
    pub issuers: Vec<String>,
}

impl Cluster<'_> {
    /// The name of a Secret; a name that cannot exist if it was not made, so that a pod tells what it waits for.
    pub fn secret(&self, config: &str) -> String {
        self.secrets
            .get(config)
            .cloned()
            .unwrap_or_else(|| format!("{config}-missing"))
    }

    /// The Kubernetes version.
    pub fn version(&self) -> &str {
        self.shoot.spec.kubernetes.version.as_deref().unwrap_or_default()
    }

    /// Whether the shoot has no workers [CP-31].
    pub fn is_workerless(&self) -> bool {
        self.shoot.spec.provider.workers.is_empty()
    }

    /// `spec.controlPlane.highAvailability.failureTolerance.type`; empty if none.
    pub fn failure_tolerance(&self) -> &str {
        let plane = self.shoot.spec.control_plane.as_ref();
        let available = plane.and_then(|plane| plane.high_availability.as_ref());
        available.map_or("", |one| one.failure_tolerance.r#type.as_str())
    }

    /// CIDRs as the status tells them, or, as long as it tells none, as the specification wants them.
    fn cidrs(
        &self,
        told: fn(&NetworkingStatus) -> &Vec<String>,
        wanted: fn(&Networking) -> &Option<String>,
    ) -> Vec<String> {
        let known = self.shoot.status.networking.as_ref().map(told);
        match known.filter(|known| !known.is_empty()) {
            Some(known) => known.clone(),
            None => self
                .shoot
                .spec
                .networking
                .as_ref()
                .and_then(|own| wanted(own).clone())
                .into_iter()
                .collect(),
        }
    }

    /// The CIDRs of the services.
    pub fn service_cidrs(&self) -> Vec<String> {
        self.cidrs(|told| &told.services, |wanted| &wanted.services)
    }

    /// The CIDRs of the pods.
    pub fn pod_cidrs(&self) -> Vec<String> {
        self.cidrs(|told| &told.pods, |wanted| &wanted.pods)
    }

    /// The CIDRs of the nodes.
    pub fn node_cidrs(&self) -> Vec<String> {
        self.cidrs(|told| &told.nodes, |wanted| &wanted.nodes)
    }

    /// What of the networks bounds the number of nodes [MCH-126].
    pub fn networks(&self) -> Networks {
        let read = |cidrs: Vec<String>| cidrs.iter().filter_map(|cidr| cidr.parse().ok()).collect();
        let spec = &self.shoot.spec;
        let families = spec
            .networking
            .as_ref()
            .map(|networking| networking.ip_families.as_slice());
        let families = families.unwrap_or_default();
        let masks = spec.kubernetes.kube_controller_manager.as_ref();
        let short = |mask: i32| u8::try_from(mask).ok();
        let own = masks.and_then(|masks| masks.node_cidr_mask_size).and_then(short);
        let v6 = masks.and_then(|masks| masks.node_cidr_mask_size_i_pv6).and_then(short);
        Networks {
            pods: read(self.pod_cidrs()),
            nodes: read(self.node_cidrs()),
            node_mask_v4: own,
            node_mask_v6: v6.or_else(|| own.filter(|_| families == ["IPv6"])),
            is_dual_stack: families.len() == 2,
        }
    }

    /// An address in the first service CIDR: 1 is the API server's, 10 is CoreDNS'.
    pub fn service_address(&self, number: u32) -> Option<std::net::IpAddr> {
        let cidr = self.service_cidrs().first()?.clone();
        let network = cidr.split('/').next()?.parse().ok()?;
        Some(match network {
            std::net::IpAddr::V4(address) => u32::from(address)
                .checked_add(number)
                .map(std::net::Ipv4Addr::from)?
                .into(),
            std::net::IpAddr::V6(address) => u128::from(address)
                .checked_add(u128::from(number))
                .map(std::net::Ipv6Addr::from)?
                .into(),
        })
    }
}

/// Where Secrets for the shoot's API are mounted in every component [CP-101].
pub const SHOOT_KUBECONFIG: &str = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig";
