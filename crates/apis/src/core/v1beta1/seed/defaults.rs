//! Defaults of seeds, [DEF-42], and their canonical labels, [GAPI-38].

use std::collections::BTreeMap;

use super::*;
use crate::constants::label;

/// Fills in what the user left out.
pub fn default_seed(seed: &mut Seed) {
    let spec = &mut seed.spec;
    if spec.networks.ip_families.is_empty() {
        spec.networks.ip_families.push("IPv4".into());
    }
    let settings = spec.settings.get_or_insert_default();
    let reservation = settings.excess_capacity_reservation.get_or_insert_default();
    if reservation.enabled.unwrap_or(true) && reservation.configs.is_empty() {
        reservation.configs.push(SeedSettingExcessCapacityReservationConfig {
            resources: BTreeMap::from([
                ("cpu".to_owned(), Quantity("2".into())),
                ("memory".to_owned(), Quantity("6Gi".into())),
            ]),
            ..SeedSettingExcessCapacityReservationConfig::default()
        });
    }
    settings
        .scheduling
        .get_or_insert(SeedSettingScheduling { visible: true });
    settings
        .vertical_pod_autoscaler
        .get_or_insert_with(|| SeedSettingVerticalPodAutoscaler {
            enabled: true,
            ..Default::default()
        });
    let watchdog = settings.dependency_watchdog.get_or_insert_default();
    watchdog
        .weeder
        .get_or_insert(SeedSettingDependencyWatchdogWeeder { enabled: true });
    watchdog
        .prober
        .get_or_insert(SeedSettingDependencyWatchdogProber { enabled: true });
    settings.topology_aware_routing.get_or_insert_default();
    settings.persistent_volume_claim_autoscaler.get_or_insert_default();
    settings
        .load_balancer_services
        .get_or_insert_default()
        .zonal_ingress
        .get_or_insert(SeedSettingLoadBalancerServicesZonalIngress { enabled: Some(true) });
}

/// The form in which a seed is stored, after validation.
pub fn canonicalize_seed(seed: &mut Seed) {
    let labels = seed.metadata.labels.get_or_insert_default();
    labels.insert(label::SEED_PROVIDER.into(), seed.spec.provider.r#type.clone());
    labels.insert(label::SEED_REGION.into(), seed.spec.provider.region.clone());
}
