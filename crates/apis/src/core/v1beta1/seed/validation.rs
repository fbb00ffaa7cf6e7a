//! Validation of seeds, [VAL-SD1] – [VAL-SD19].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::{meta, names};
use ipnet::IpNet;

use super::*;
use crate::constants::operation;
use crate::core::v1beta1::shoot::validation::spec_parts;
use crate::validation::{
    Credentials, Range, credentials_ref, go_json, go_members, immutable, invalid_each, ip_families,
    non_negative_quantity, object_meta, object_meta_update, operation_annotation, overlap, overlapping,
    resource_amount,
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
    reserved_ranges(net).next()
}

/// The reserved ranges that a range touches, with their names.
fn reserved_ranges(net: &IpNet) -> impl Iterator<Item = String> {
    RESERVED.iter().filter_map(|(range, name)| {
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
    if !in_template && spec.provider.r#type.is_empty() {
        errors.push(Error::required(&provider.child("type"), "must provide a provider type"));
    }
    if !in_template && spec.provider.region.is_empty() {
        errors.push(Error::required(
            &provider.child("region"),
            "must provide a provider region",
        ));
    }
    let zones = &spec.provider.zones;
    let mut seen = BTreeSet::new();
    for (i, zone) in zones.iter().enumerate() {
        if !seen.insert(zone) {
            errors.push(Error::duplicate(&provider.child("zones").index(i), zone.as_str()));
            break;
        }
    }
    errors.extend(networks(&spec.networks, in_template, &path.child("networks")));
    if let Some(config) = &spec.backup {
        errors.extend(backup(config, spec, &path.child("backup")));
    }
    // [VAL-SD6], [TOL-5]
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
    errors.extend(dns(spec, &path.child("dns")));
    errors.extend(spec_parts::extensions(&spec.extensions, &path.child("extensions")));
    errors.extend(spec_parts::resources(&spec.resources, &path.child("resources"), true));
    errors
}

/// [VAL-SD3], [VAL-SD4].
fn networks(networks: &SeedNetworks, in_template: bool, path: &Path) -> ErrorList {
    let mut errors = ip_families(&networks.ip_families, &path.child("ipFamilies"));
    if !errors.is_empty() {
        return errors;
    }
    let given = |text: &&String| !in_template || !text.is_empty();
    let defaults = networks.shoot_defaults.as_ref();
    let texts = [
        ("pods", Some(&networks.pods).filter(given), "pod"),
        ("services", Some(&networks.services).filter(given), "service"),
        ("nodes", networks.nodes.as_ref(), "node"),
        ("shootDefaults.pods", defaults.and_then(|own| own.pods.as_ref()), "pod"),
        (
            "shootDefaults.services",
            defaults.and_then(|own| own.services.as_ref()),
            "service",
        ),
    ];
    let texts = texts
        .iter()
        .filter_map(|(name, text, what)| Some((*name, text.as_ref()?.as_str(), *what)));
    let mut ranges: Vec<(&str, &str, Range<'_>)> = Vec::new();
    let mut unreadable = ErrorList::new();
    for (name, text, what) in texts {
        let path = path.child(name);
        match Range::parse(text, path) {
            Err(error) => unreadable.push(error),
            Ok(range) => {
                let net = &range.net;
                if name == "services" && net.addr().is_ipv4() && net.prefix_len() < 8 {
                    errors.push(Error::invalid(&range.path, net.to_string(), "cannot be larger than /8"));
                }
                ranges.push((name, what, range));
            }
        }
    }
    errors.extend(unreadable);
    let primary = networks.ip_families.first().map_or("IPv4", String::as_str);
    if networks.ip_families.len() != 2 {
        errors.extend(ranges.iter().filter_map(|(_, _, range)| range.of_other_family(primary)));
    }
    if !errors.is_empty() {
        return errors;
    }
    let of = |defaults: bool| {
        let ranges = ranges.iter();
        let ranges = ranges.filter(move |(name, _, _)| name.starts_with("shootDefaults") == defaults);
        ranges.map(|(_, _, range)| range).collect::<Vec<_>>()
    };
    let own = of(false);
    let (defaults, defaults_v6): (Vec<_>, Vec<_>) = of(true).into_iter().partition(|range| range.net.addr().is_ipv4());
    errors.extend(overlapping(&own));
    errors.extend(overlapping(&defaults));
    errors.extend(overlapping(&defaults_v6));
    for range in own {
        errors.extend(range.overlapped_by(defaults_v6.iter().copied()));
    }
    for (_, what, range) in &ranges {
        for reserved in reserved_ranges(&range.net) {
            let why = format!("{what} network intersects with {reserved}");
            errors.push(Error::invalid(&range.path, range.text, why));
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
    }
    if backup.provider != spec.provider.r#type && backup.region.as_deref().unwrap_or_default().is_empty() {
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
            Credentials::AnySecretOrWorkloadIdentity,
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
    let mut seen = BTreeSet::new();
    for (i, provider) in volume.providers.iter().enumerate() {
        let at = path.child("providers").index(i);
        if provider.purpose.is_empty() {
            errors.push(Error::required(&at.child("purpose"), "cannot be empty"));
        }
        if provider.name.is_empty() {
            errors.push(Error::required(&at.child("name"), "cannot be empty"));
        }
        if !seen.insert(&provider.purpose) {
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
                errors.extend(resource_amount(name, quantity, &at.child("resources").child(name)));
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
        if let Some(class) = &balancers.class {
            errors.extend(invalid_each(&at.child("class"), class, names::qualified_name(class)));
        }
        errors.extend(traffic_policy(balancers.external_traffic_policy.as_ref(), &at));
        let at = at.child("zones");
        if !balancers.zones.is_empty() && zones.len() <= 1 {
            errors.push(Error::forbidden(
                &at,
                "zone-specific load balancer settings only allowed with at least two zones in spec.provider.zones",
            ));
        }
        let zones: BTreeSet<&String> = zones.iter().collect();
        let mut seen = BTreeSet::new();
        for (i, zone) in balancers.zones.iter().enumerate() {
            let at = at.index(i);
            if !zones.contains(&zone.name) {
                errors.push(Error::not_found(&at.child("name"), zone.name.as_str()));
            }
            if !seen.insert(&zone.name) {
                errors.push(Error::duplicate(&at.child("name"), zone.name.as_str()));
            }
            errors.extend(meta::validate_annotations(&zone.annotations, &at.child("annotations")));
            errors.extend(traffic_policy(zone.external_traffic_policy.as_ref(), &at));
        }
    }
    if let Some(autoscaler) = &settings.vertical_pod_autoscaler {
        errors.extend(spec_parts::vpa_max_allowed(
            &autoscaler.max_allowed,
            &path.child("verticalPodAutoscaler.maxAllowed"),
        ));
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
                &["Prefer", "Enforce"],
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
        errors.extend(spec_parts::vpa_feature_gates(
            &autoscaler.feature_gates,
            &path.child("verticalPodAutoscaler.featureGates"),
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
        let effect = toleration.effect.as_deref().unwrap_or_default();
        if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
            errors.push(Error::invalid(
                &at.child("effect"),
                effect,
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ));
        }
        let value = toleration.value.as_deref().unwrap_or_default();
        match operator {
            "" | "Equal" => {
                let found = names::label_value(value);
                if !found.is_empty() {
                    errors.push(Error::invalid(&at.child("operator"), value, found.join(";")));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    errors.push(Error::literal(
                        &at.child("operator"),
                        shown_toleration(toleration),
                        "value must be empty when `operator` is 'Exists'",
                    ));
                }
            }
            other => errors.push(Error::not_supported(&at.child("operator"), other, &["Equal", "Exists"])),
        }
        const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            errors.push(Error::not_supported(&at.child("effect"), effect, &EFFECTS));
        }
    }
    errors
}

/// A toleration with its members in the order that the API has.
fn shown_toleration(toleration: &k8s_openapi::api::core::v1::Toleration) -> String {
    let texts = [
        ("key", &toleration.key),
        ("operator", &toleration.operator),
        ("value", &toleration.value),
        ("effect", &toleration.effect),
    ];
    let texts = texts
        .into_iter()
        .filter(|(_, text)| text.as_ref().is_some_and(|text| !text.is_empty()));
    let mut members: Vec<(&str, String)> = texts.map(|(name, text)| (name, go_json(text))).collect();
    if let Some(seconds) = toleration.toleration_seconds {
        members.push(("tolerationSeconds", seconds.to_string()));
    }
    go_members(&members)
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
        errors.push(Error::required(&path.child("domain"), "cannot be empty"));
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
fn dns(spec: &SeedSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("provider");
    match &spec.dns.provider {
        None if spec.ingress.is_some() => {
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
                    Credentials::AnySecretOrWorkloadIdentity,
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
    let mut seen = BTreeSet::new();
    for (i, config) in spec.dns.defaults.iter().enumerate() {
        let at = path.child("defaults").index(i);
        errors.extend(dns_config(config, &at));
        if !seen.insert(&config.domain) {
            errors.push(Error::duplicate(&at.child("domain"), config.domain.as_str()));
        }
    }
    errors
}

fn dns_config(config: &SeedDNSProviderConfig, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if config.domain.is_empty() {
        errors.push(Error::required(&path.child("domain"), "cannot be empty"));
    } else {
        errors.extend(invalid_each(
            &path.child("domain"),
            &config.domain,
            names::dns_subdomain(&config.domain),
        ));
    }
    if config.r#type.is_empty() {
        errors.push(Error::required(&path.child("type"), "cannot be empty"));
    }
    errors.extend(credentials_ref(
        &config.credentials_ref,
        Credentials::AnySecretOrWorkloadIdentity,
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
    errors.extend(validate_seed_spec_update(&new.spec, &old.spec, &Path::new("spec")));
    errors.extend(validate_seed(new));
    errors
}

/// Checks a change of a seed's spec, of its own or of a template's.
pub fn validate_seed_spec_update(spec: &SeedSpec, before: &SeedSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let networks = path.child("networks");
    let (now, then) = (&spec.networks, &before.networks);
    errors.extend(immutable(
        &now.ip_families,
        &then.ip_families,
        &networks.child("ipFamilies"),
    ));
    errors.extend(immutable(&now.pods, &then.pods, &networks.child("pods")));
    errors.extend(immutable(&now.services, &then.services, &networks.child("services")));
    if then.nodes.is_some() {
        errors.extend(immutable(&now.nodes, &then.nodes, &networks.child("nodes")));
    }
    if let (Some(ingress), Some(earlier)) = (&spec.ingress, &before.ingress) {
        errors.extend(immutable(
            &ingress.domain,
            &earlier.domain,
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
                "spec.networks.pods: Invalid value: \"fd00::\": must be a valid IPv4 address",
            ),
            (
                json!({"pods": "244.1.0.0/16", "services": "10.1.0.0/16"}),
                "pod network intersects with reserved shoot pod network mapping range (244.0.0.0/8)",
            ),
            (
                json!({"pods": "11.0.0.0/8", "services": "64.0.0.0/7"}),
                "cannot be larger than /8",
            ),
            (
                json!({"pods": "11.0.0.0/8", "services": "fd00::1/64", "ipFamilies": ["IPv4"]}),
                "spec.networks.services: Invalid value: \"fd00::\": must be a valid IPv4 address",
            ),
            (
                json!({"pods": "240.0.0.0/7", "services": "10.1.0.0/16"}),
                "spec.networks.pods: Invalid value: \"240.0.0.0/7\": pod network intersects with reserved seed pod network mapping range (241.0.0.0/8)",
            ),
            (
                json!({"pods": "10.0.0.0/16", "services": "10.1.0.0/16", "ipFamilies": ["IPv5", "IPv5"]}),
                "spec.networks.ipFamilies[1]: Duplicate value: \"IPv5\"",
            ),
            (
                json!({"pods": "10.0.0.0/16", "services": "10.1.0.0/16", "shootDefaults": {"pods": "10.2.0.1/16", "services": "10.2.1.0/24"}}),
                "spec.networks.shootDefaults.services: Invalid value: \"10.2.1.0/24\": must not overlap with \"spec.networks.shootDefaults.pods\" (\"10.2.0.1/16\")",
            ),
        ] {
            let found = check(networks);
            assert!(
                found.iter().any(|text| text.contains(expected)),
                "{expected}: {found:#?}"
            );
        }
    }

    #[test]
    fn val_sd_words_of_upstream() {
        let credentials = json!({"apiVersion": "v1", "kind": "Secret", "name": "a", "namespace": "b"});
        let seed = |members: serde_json::Value| -> Seed {
            let mut seed = json!({"metadata": {"name": "a"}, "spec": {
                "provider": {"type": "p", "region": "r", "zones": ["a", "b"]},
                "networks": {"pods": "10.0.0.0/16", "services": "10.1.0.0/16", "nodes": "10.2.0.0/16"},
                "ingress": {"domain": "i.example.com", "controller": {"kind": "nginx"}},
                "dns": {"provider": {"type": "d", "credentialsRef": credentials},
                    "internal": {"type": "d", "domain": "d.example.com", "credentialsRef": credentials}}}});
            for (pointer, value) in members.as_object().unwrap() {
                seed["spec"][pointer] = value.clone();
            }
            let mut seed = serde_json::from_value(seed).unwrap();
            default_seed(&mut seed);
            seed
        };
        let internal = |reference: serde_json::Value, kind: &str| {
            json!({"provider": {"type": "d", "credentialsRef": credentials},
                "internal": {"type": kind, "domain": "D", "credentialsRef": reference}})
        };
        let settings = |toleration: serde_json::Value| json!({"excessCapacityReservation": {"configs": [{"resources": {"pods": "1500m"}, "tolerations": [toleration]}]}});
        let label = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        let config = "spec.settings.excessCapacityReservation.configs[0]";
        let cases: Vec<(&str, serde_json::Value, Vec<String>)> = vec![
            ("VAL-SD2", json!({"provider": {"type": "p", "region": "r", "zones": ["a", "a", "a"]}}),
                vec!["spec.provider.zones[1]: Duplicate value: \"a\"".into()]),
            ("VAL-SD5", json!({"backup": {"provider": "", "credentialsRef": credentials}}), vec![
                "spec.backup.provider: Required value: must provide a backup cloud provider name".into(),
                "spec.backup.region: Invalid value: \"\": region must be specified for if backup provider is different from seed provider used in `spec.provider.type`".into(),
            ]),
            ("VAL-SD8", json!({"settings": settings(json!({"key": "a", "operator": "Exists", "value": "b", "effect": "x", "tolerationSeconds": 1}))}), vec![
                format!("{config}.resources.pods: Invalid value: \"1500m\": must be an integer"),
                format!("{config}.tolerations[0].effect: Invalid value: \"x\": effect must be 'NoExecute' when `tolerationSeconds` is set"),
                format!("{config}.tolerations[0].operator: Invalid value: {{\"key\":\"a\",\"operator\":\"Exists\",\"value\":\"b\",\"effect\":\"x\",\"tolerationSeconds\":1}}: value must be empty when `operator` is 'Exists'"),
                format!("{config}.tolerations[0].effect: Unsupported value: \"x\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""),
            ]),
            ("VAL-SD9", json!({"settings": {"loadBalancerServices": {"class": "a/b/c"}}}),
                vec!["spec.settings.loadBalancerServices.class: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')".into()]),
            ("VAL-SD10", json!({"settings": {"zoneSelection": {"mode": "x"}}}),
                vec!["spec.settings.zoneSelection.mode: Unsupported value: \"x\": supported values: \"Prefer\", \"Enforce\"".into()]),
            ("VAL-SD15", json!({"dns": internal(json!({"apiVersion": "v1", "kind": "Secret", "name": "a"}), "")}), vec![
                format!("spec.dns.internal.domain: Invalid value: \"D\": {label}"),
                "spec.dns.internal.type: Required value: cannot be empty".into(),
                "spec.dns.internal.credentialsRef.namespace: Required value: must provide a namespace".into(),
                format!("spec.dns.internal.credentialsRef.namespace: Invalid value: \"\": {label}"),
            ]),
            ("VAL-SD15", json!({"dns": internal(json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "InternalSecret", "name": "a", "namespace": "b"}), "d")}),
                vec![format!("spec.dns.internal.domain: Invalid value: \"D\": {label}")]),
        ];
        for (rule, members, expected) in cases {
            assert_eq!(
                texts(&validate_seed(&seed(members.clone()))),
                expected,
                "{rule} {members}"
            );
        }
        let mut without = seed(json!({}));
        without.spec.ingress = None;
        let update = texts(&validate_seed_update(&without, &seed(json!({}))));
        assert_eq!(update, ["spec.ingress: Required value: cannot be empty"], "VAL-SD19");
    }
}
