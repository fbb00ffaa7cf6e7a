//! Validation of seeds, [VAL-SD1] – [VAL-SD19].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::{meta, names};
use ipnet::IpNet;

use super::*;
use crate::constants::operation;
use crate::core::v1beta1::shoot::validation::spec_parts;
use crate::validation::{
    Credentials, cidr, credentials_ref, family, immutable, invalid_each, ip_families, non_negative_quantity,
    object_meta, object_meta_update, operation_annotation, overlap,
};

const OPERATIONS: [&str; 4] = [
    operation::RECONCILE,
    "renew-garden-access-secrets",
    "renew-kubeconfig",
    "renew-workload-identity-tokens",
];

/// Ranges that no seed may use, [VAL-SD3].
const RESERVED: [(&str, &str); 6] = [
    ("fd8f:6d53:b97a:1::/96", "default vpn network"),
    ("240.0.0.0/8", "reserved kube-apiserver mapping range"),
    ("241.0.0.0/8", "reserved seed pod network mapping range"),
    ("242.0.0.0/8", "reserved shoot node network mapping range"),
    ("243.0.0.0/8", "reserved shoot service network mapping range"),
    ("244.0.0.0/8", "reserved shoot pod network mapping range"),
];

/// The reserved range that a range touches, with its name, [VAL-SD3], [ADM-30].
pub fn reserved_range(net: &IpNet) -> Option<String> {
    RESERVED.iter().find_map(|(range, name)| {
        let reserved: IpNet = range.parse().ok()?;
        overlap(net, &reserved).then(|| format!("{name} ({range})"))
    })
}

/// Checks a seed that is to be created or stored again.
pub fn validate_seed(seed: &Seed) -> ErrorList {
    let mut errors = object_meta(&seed.metadata, false, gardener_apimachinery::names::dns_label);
    errors.extend(operation_annotation(&seed.metadata, None, &OPERATIONS));
    errors.extend(validate_seed_spec(&seed.spec, false, &Path::new("spec")));
    errors
}

/// Checks a seed's spec. `in_template`: the spec stands in a gardenlet's configuration, where more may be left out.
pub fn validate_seed_spec(spec: &SeedSpec, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let provider = path.child("provider");
    if spec.provider.r#type.is_empty() && !in_template {
        errors.push(Error::required(&provider.child("type"), "must provide a provider type"));
    }
    if spec.provider.region.is_empty() && !in_template {
        errors.push(Error::required(
            &provider.child("region"),
            "must provide a provider region",
        ));
    }
    let zones = &spec.provider.zones;
    for (i, zone) in zones.iter().enumerate() {
        if zones.iter().take(i).any(|earlier| earlier == zone) {
            errors.push(Error::duplicate(&provider.child("zones").index(i), zone.as_str()));
        }
    }
    errors.extend(networks(&spec.networks, in_template, &path.child("networks")));
    if let Some(config) = &spec.backup {
        errors.extend(backup(config, spec, &path.child("backup")));
    }
    let mut seen = BTreeSet::new();
    for (i, taint) in spec.taints.iter().enumerate() {
        let at = path.child("taints").index(i);
        if taint.key.is_empty() {
            errors.push(Error::required(&at.child("key"), "cannot be empty"));
        }
        if !seen.insert((taint.key.clone(), taint.value.clone())) {
            let id = match &taint.value {
                Some(value) => format!("{}={value}", taint.key),
                None => taint.key.clone(),
            };
            errors.push(Error::duplicate(&at, id));
        }
    }
    errors.extend(volume(spec, &path.child("volume")));
    if let Some(config) = &spec.settings {
        errors.extend(settings(config, zones, &path.child("settings")));
    }
    errors.extend(ingress(spec, in_template, &path.child("ingress")));
    errors.extend(dns(spec, in_template, &path.child("dns")));
    errors.extend(spec_parts::extensions(&spec.extensions, &path.child("extensions")));
    errors.extend(spec_parts::resources(&spec.resources, &path.child("resources"), true));
    errors
}

/// [VAL-SD3], [VAL-SD4].
fn networks(networks: &SeedNetworks, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ip_families(&networks.ip_families, &path.child("ipFamilies"));
    let mut ranges: Vec<(String, &str)> = Vec::new();
    if let Some(nodes) = &networks.nodes {
        ranges.push(("nodes".into(), nodes));
    }
    for (name, range) in [("pods", &networks.pods), ("services", &networks.services)] {
        if !range.is_empty() || !in_template {
            ranges.push((name.into(), range));
        }
    }
    if let Some(defaults) = &networks.shoot_defaults {
        for (name, range) in [("pods", &defaults.pods), ("services", &defaults.services)] {
            if let Some(range) = range {
                ranges.push((format!("shootDefaults.{name}"), range));
            }
        }
    }
    let mut nets: Vec<(String, IpNet)> = Vec::new();
    let parse_errors: ErrorList = ranges
        .iter()
        .filter_map(|(name, text)| match cidr(text, &path.child(name)) {
            Ok(net) => {
                nets.push((name.clone(), net));
                None
            }
            Err(error) => Some(error),
        })
        .collect();
    let unreadable = !parse_errors.is_empty();
    errors.extend(parse_errors);
    if unreadable {
        return errors;
    }
    if let [only] = networks.ip_families.as_slice() {
        let wrong: ErrorList = nets
            .iter()
            .filter(|(_, net)| family(net) != only)
            .map(|(name, net)| {
                Error::invalid(
                    &path.child(name),
                    net.to_string(),
                    format!("must be a valid {only} address"),
                )
            })
            .collect();
        let mixed = !wrong.is_empty();
        errors.extend(wrong);
        if mixed {
            return errors;
        }
    }
    let own: Vec<&(String, IpNet)> = nets
        .iter()
        .filter(|(name, _)| !name.starts_with("shootDefaults"))
        .collect();
    for (i, (name, net)) in own.iter().enumerate() {
        for (other_name, other) in own.iter().skip(i + 1) {
            if overlap(net, other) {
                errors.push(Error::invalid(
                    &path.child(other_name),
                    other.to_string(),
                    format!(
                        "must not overlap with {} ({})",
                        go_quote(path.child(name).as_str()),
                        go_quote(&net.to_string())
                    ),
                ));
            }
        }
    }
    for (name, net) in &nets {
        if name.ends_with("services") && net.prefix_len() < 8 {
            errors.push(Error::invalid(
                &path.child(name),
                net.to_string(),
                "cannot be larger than /8",
            ));
        }
        if let Some(range) = reserved_range(net) {
            let what = name.rsplit('.').next().unwrap_or(name).trim_end_matches('s');
            errors.push(Error::invalid(
                &path.child(name),
                net.to_string(),
                format!("{what} network intersects with {range}"),
            ));
        }
    }
    errors
}

/// [VAL-SD5].
fn backup(backup: &Backup, spec: &SeedSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if backup.provider.is_empty() {
        errors.push(Error::required(
            &path.child("provider"),
            "must provide a backup cloud provider name",
        ));
    } else if backup.provider != spec.provider.r#type && backup.region.as_deref().unwrap_or_default().is_empty() {
        errors.push(Error::invalid(
            &path.child("region"),
            "",
            "region must be specified for if backup provider is different from seed provider used in `spec.provider.type`",
        ));
    }
    match &backup.credentials_ref {
        None => errors.push(Error::required(
            &path.child("credentialsRef"),
            "must be set to refer a Secret or WorkloadIdentity",
        )),
        Some(reference) => errors.extend(credentials_ref(
            reference,
            Credentials::SecretOrWorkloadIdentity,
            true,
            &path.child("credentialsRef"),
        )),
    }
    errors
}

/// [VAL-SD7].
fn volume(spec: &SeedSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(volume) = &spec.volume else { return errors };
    if let Some(size) = &volume.minimum_size {
        errors.extend(non_negative_quantity(size, &path.child("minimumSize")));
    }
    for (i, provider) in volume.providers.iter().enumerate() {
        let at = path.child("providers").index(i);
        if provider.purpose.is_empty() {
            errors.push(Error::required(&at.child("purpose"), "cannot be empty"));
        }
        if provider.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "cannot be empty"));
        }
        if volume
            .providers
            .iter()
            .take(i)
            .any(|earlier| earlier.purpose == provider.purpose)
        {
            errors.push(Error::duplicate(&at.child("purpose"), provider.purpose.as_str()));
        }
    }
    errors
}

fn traffic_policy(policy: Option<&String>, path: &Path) -> ErrorList {
    match policy {
        Some(policy) if !matches!(policy.as_str(), "Cluster" | "Local") => {
            vec![Error::not_supported(
                &path.child("externalTrafficPolicy"),
                policy.as_str(),
                &["Cluster", "Local"],
            )]
        }
        _ => ErrorList::new(),
    }
}

/// [VAL-SD8] – [VAL-SD12].
fn settings(settings: &SeedSettings, zones: &[String], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(reservation) = &settings.excess_capacity_reservation {
        for (i, config) in reservation.configs.iter().enumerate() {
            let at = path.child("excessCapacityReservation.configs").index(i);
            if config.resources.is_empty() {
                errors.push(Error::required(&at.child("resources"), "cannot be empty"));
            }
            for (name, quantity) in &config.resources {
                errors.extend(non_negative_quantity(quantity, &at.child("resources").child(name)));
            }
            errors.extend(pod_tolerations(&config.tolerations, &at.child("tolerations")));
        }
    }
    if let Some(balancers) = &settings.load_balancer_services {
        let at = path.child("loadBalancerServices");
        errors.extend(meta::validate_annotations(
            &balancers.annotations,
            &at.child("annotations"),
        ));
        errors.extend(traffic_policy(balancers.external_traffic_policy.as_ref(), &at));
        let at = at.child("zones");
        if !balancers.zones.is_empty() && zones.len() <= 1 {
            errors.push(Error::forbidden(
                &at,
                "zone-specific load balancer settings only allowed with at least two zones in spec.provider.zones",
            ));
        }
        for (i, zone) in balancers.zones.iter().enumerate() {
            let at = at.index(i);
            if !zones.contains(&zone.name) {
                errors.push(Error::not_found(&at.child("name"), zone.name.as_str()));
            }
            if balancers.zones.iter().take(i).any(|earlier| earlier.name == zone.name) {
                errors.push(Error::duplicate(&at.child("name"), zone.name.as_str()));
            }
            errors.extend(meta::validate_annotations(&zone.annotations, &at.child("annotations")));
            errors.extend(traffic_policy(zone.external_traffic_policy.as_ref(), &at));
        }
    }
    if let Some(selection) = &settings.zone_selection {
        let at = path.child("zoneSelection");
        if zones.is_empty() {
            errors.push(Error::forbidden(
                &at,
                "zone selection can only be configured when spec.provider.zones is non-empty",
            ));
        }
        if !matches!(selection.mode.as_str(), "Prefer" | "Enforce") {
            errors.push(Error::not_supported(
                &at.child("mode"),
                selection.mode.as_str(),
                &["Enforce", "Prefer"],
            ));
        }
    }
    if settings
        .topology_aware_routing
        .as_ref()
        .is_some_and(|routing| routing.enabled)
        && zones.len() <= 1
    {
        errors.push(Error::forbidden(
            &path.child("topologyAwareRouting.enabled"),
            "topology-aware routing can only be enabled on multi-zone Seed clusters (with at least two zones in spec.provider.zones)",
        ));
    }
    if let Some(autoscaler) = &settings.vertical_pod_autoscaler {
        let at = path.child("verticalPodAutoscaler");
        errors.extend(spec_parts::vpa_max_allowed(
            &autoscaler.max_allowed,
            &at.child("maxAllowed"),
        ));
        errors.extend(spec_parts::vpa_feature_gates(
            &autoscaler.feature_gates,
            &at.child("featureGates"),
        ));
    }
    errors
}

/// The rules that Kubernetes has for tolerations of pods.
fn pod_tolerations(tolerations: &[k8s_openapi::api::core::v1::Toleration], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, toleration) in tolerations.iter().enumerate() {
        let at = path.index(i);
        let key = toleration.key.as_deref().unwrap_or_default();
        let operator = toleration.operator.as_deref().unwrap_or_default();
        if !key.is_empty() {
            errors.extend(invalid_each(&at.child("key"), key, names::qualified_name(key)));
        } else if operator != "Exists" {
            errors.push(Error::invalid(
                &at.child("operator"),
                operator,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
            ));
        }
        let value = toleration.value.as_deref().unwrap_or_default();
        match operator {
            "" | "Equal" => errors.extend(invalid_each(&at.child("operator"), value, names::label_value(value))),
            "Exists" => {
                if !value.is_empty() {
                    errors.push(Error::invalid(
                        &at.child("operator"),
                        value,
                        "value must be empty when `operator` is 'Exists'",
                    ));
                }
            }
            other => errors.push(Error::not_supported(&at.child("operator"), other, &["Equal", "Exists"])),
        }
    }
    errors
}

/// [VAL-SD13].
fn ingress(spec: &SeedSpec, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(ingress) = &spec.ingress else {
        if !in_template {
            errors.push(Error::required(path, "cannot be empty"));
        }
        return errors;
    };
    if ingress.domain.is_empty() {
        if !in_template {
            errors.push(Error::required(&path.child("domain"), "cannot be empty"));
        }
    } else {
        errors.extend(invalid_each(
            &path.child("domain"),
            &ingress.domain,
            names::dns_subdomain(&ingress.domain),
        ));
    }
    if ingress.controller.kind != "nginx" {
        errors.push(Error::not_supported(
            &path.child("controller.kind"),
            ingress.controller.kind.as_str(),
            &["nginx"],
        ));
    }
    errors
}

/// [VAL-SD14] – [VAL-SD16].
fn dns(spec: &SeedSpec, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("provider");
    match &spec.dns.provider {
        None if spec.ingress.is_some() && !in_template => {
            errors.push(Error::required(
                &at,
                "ingress controller requires dns.provider to be set",
            ));
        }
        None => {}
        Some(provider) => {
            if provider.r#type.is_empty() {
                errors.push(Error::required(&at.child("type"), "DNS provider type must be set"));
            }
            match &provider.credentials_ref {
                None => errors.push(Error::required(
                    &at.child("credentialsRef"),
                    "must be set to refer a Secret or WorkloadIdentity",
                )),
                Some(reference) => errors.extend(credentials_ref(
                    reference,
                    Credentials::SecretOrWorkloadIdentity,
                    true,
                    &at.child("credentialsRef"),
                )),
            }
        }
    }
    match &spec.dns.internal {
        None => errors.push(Error::required(
            &path.child("internal"),
            "internal DNS configuration is required",
        )),
        Some(config) => errors.extend(dns_config(config, &path.child("internal"))),
    }
    for (i, config) in spec.dns.defaults.iter().enumerate() {
        let at = path.child("defaults").index(i);
        errors.extend(dns_config(config, &at));
        if spec
            .dns
            .defaults
            .iter()
            .take(i)
            .any(|earlier| earlier.domain == config.domain)
        {
            errors.push(Error::duplicate(&at.child("domain"), config.domain.as_str()));
        }
    }
    errors
}

fn dns_config(config: &SeedDNSProviderConfig, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if config.r#type.is_empty() {
        errors.push(Error::required(&path.child("type"), "cannot be empty"));
    }
    if config.domain.is_empty() {
        errors.push(Error::required(&path.child("domain"), "cannot be empty"));
    } else {
        errors.extend(invalid_each(
            &path.child("domain"),
            &config.domain,
            names::dns_subdomain(&config.domain),
        ));
    }
    errors.extend(credentials_ref(
        &config.credentials_ref,
        Credentials::SecretOrWorkloadIdentity,
        true,
        &path.child("credentialsRef"),
    ));
    errors
}

/// Checks a change of a seed, [VAL-SD19].
pub fn validate_seed_update(new: &Seed, old: &Seed) -> ErrorList {
    let mut errors = object_meta_update(&new.metadata, &old.metadata);
    errors.extend(
        operation_annotation(&new.metadata, Some(&old.metadata), &OPERATIONS)
            .into_iter()
            .filter(|error| error.detail.starts_with("must not overwrite")),
    );
    let path = Path::new("spec");
    let (spec, before) = (&new.spec, &old.spec);
    let networks = path.child("networks");
    errors.extend(immutable(
        &spec.networks.pods,
        &before.networks.pods,
        &networks.child("pods"),
    ));
    errors.extend(immutable(
        &spec.networks.services,
        &before.networks.services,
        &networks.child("services"),
    ));
    if before.networks.nodes.is_some() {
        errors.extend(immutable(
            &spec.networks.nodes,
            &before.networks.nodes,
            &networks.child("nodes"),
        ));
    }
    if !before.networks.ip_families.is_empty() {
        errors.extend(immutable(
            &spec.networks.ip_families,
            &before.networks.ip_families,
            &networks.child("ipFamilies"),
        ));
    }
    if let Some(earlier) = &before.ingress {
        let domain = spec
            .ingress
            .as_ref()
            .map(|ingress| ingress.domain.as_str())
            .unwrap_or_default();
        errors.extend(immutable(
            &domain,
            &earlier.domain.as_str(),
            &path.child("ingress.domain"),
        ));
    }
    if let Some(earlier) = &before.backup {
        let at = path.child("backup");
        match &spec.backup {
            None => errors.push(Error::invalid(
                &at,
                serde_json::Value::Null,
                crate::validation::IMMUTABLE,
            )),
            Some(backup) => {
                errors.extend(immutable(&backup.provider, &earlier.provider, &at.child("provider")));
                errors.extend(immutable(&backup.region, &earlier.region, &at.child("region")));
            }
        }
    }
    if !before.dns.defaults.is_empty() && spec.dns.defaults.is_empty() {
        errors.push(Error::forbidden(
            &path.child("dns.defaults"),
            "removing defaults DNS configuration is not allowed",
        ));
    }
    errors.extend(validate_seed(new));
    errors
}

/// Checks a change of a seed's status, [VAL-SD19].
pub fn validate_seed_status_update(new: &Seed, old: &Seed) -> ErrorList {
    if old.status.cluster_identity.is_some() {
        immutable(
            &new.status.cluster_identity,
            &old.status.cluster_identity,
            &Path::new("status.clusterIdentity"),
        )
    } else {
        ErrorList::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts(errors: &[Error]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn val_sd_recorded_refusal() {
        let mut seed: Seed = serde_json::from_value(json!({"metadata": {"name": "bad"}, "spec": {
            "provider": {"type": "", "region": ""}, "networks": {"pods": "10.0.0.0/8", "services": "10.1.0.0/16", "nodes": "nope"},
            "dns": {}, "taints": [{"key": ""}], "backup": {"provider": ""},
            "settings": {"excessCapacityReservation": {"configs": [{"resources": {"cpu": "-1"}}]}}}}))
        .unwrap();
        default_seed(&mut seed);
        assert_eq!(
            texts(&validate_seed(&seed)),
            [
                "spec.provider.type: Required value: must provide a provider type",
                "spec.provider.region: Required value: must provide a provider region",
                "spec.networks.nodes: Invalid value: \"nope\": invalid CIDR address: nope",
                "spec.backup.provider: Required value: must provide a backup cloud provider name",
                "spec.backup.credentialsRef: Required value: must be set to refer a Secret or WorkloadIdentity",
                "spec.taints[0].key: Required value: cannot be empty",
                "spec.settings.excessCapacityReservation.configs[0].resources.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                "spec.ingress: Required value: cannot be empty",
                "spec.dns.internal: Required value: internal DNS configuration is required",
            ]
        );
    }

    #[test]
    fn val_sd3_ranges() {
        let check = |networks: serde_json::Value| {
            let mut seed = Seed::default();
            seed.spec.networks = serde_json::from_value(networks).unwrap();
            default_seed(&mut seed);
            texts(&super::networks(
                &seed.spec.networks,
                false,
                &Path::new("spec.networks"),
            ))
        };
        assert!(check(json!({"pods": "10.0.0.0/16", "services": "10.1.0.0/16"})).is_empty());
        for (networks, expected) in [
            (
                json!({"pods": "10.0.0.0/8", "services": "10.1.0.0/16"}),
                "must not overlap with \"spec.networks.pods\"",
            ),
            (
                json!({"pods": "fd00::/64", "services": "10.1.0.0/16"}),
                "spec.networks.pods: Invalid value: \"fd00::/64\": must be a valid IPv4 address",
            ),
            (
                json!({"pods": "244.1.0.0/16", "services": "10.1.0.0/16"}),
                "pod network intersects with reserved shoot pod network mapping range (244.0.0.0/8)",
            ),
            (
                json!({"pods": "11.0.0.0/8", "services": "64.0.0.0/7"}),
                "cannot be larger than /8",
            ),
        ] {
            let found = check(networks);
            assert!(
                found.iter().any(|text| text.contains(expected)),
                "{expected}: {found:#?}"
            );
        }
    }
}
