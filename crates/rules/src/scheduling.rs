//! Which seed a shoot goes to `[SCH-5]`–`[SCH-14]`.

mod distance;

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::selector::{LabelSelector, Requirement};
use gardener_apis::core::v1beta1::{Seed, SeedSelector, SeedTaint, Shoot, Toleration, reserved_range};
use gardener_apis::validation::overlap;
use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as SelectorObject;

pub use distance::region_distance;

/// How candidates are chosen among the seeds that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Provider and region are the shoot's.
    #[default]
    SameRegion,
    /// The region is the nearest one.
    MinimalDistance,
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::SameRegion => "SameRegion",
            Self::MinimalDistance => "MinimalDistance",
        })
    }
}

/// What is known when a shoot is scheduled.
pub struct Landscape<'a> {
    /// All seeds, in the order of their names.
    pub seeds: &'a [Seed],
    /// All shoots.
    pub shoots: &'a [Shoot],
    /// `spec.seedSelector` of the shoot's cloud profile.
    pub profile_selector: Option<&'a SeedSelector>,
    /// Name of the shoot's project.
    pub project: &'a str,
    /// Distances from the shoot's region by region, when an operator configured them `[SCH-12]`.
    pub distances: Option<&'a BTreeMap<String, i64>>,
}

/// Whether the annotation of a region ConfigMap names a cloud profile, which distances are then for `[SCH-12]`, `[MIG-203]`.
pub fn names_profile(annotation: &str, profile: &str) -> bool {
    annotation.split(',').any(|own| own.trim() == profile)
}

/// Whether a seed's taints are tolerated `[TOL-8]` `[TOL-9]`: there are as many tolerations as taints at least, each taint's key is among them, and
/// a taint with a value finds that value at the last toleration of its key, where none is as good as an empty one.
pub fn tolerated(taints: &[SeedTaint], tolerations: &[Toleration]) -> bool {
    let tolerates = |taint: &SeedTaint| {
        let last = tolerations.iter().rev().find(|own| own.key == taint.key);
        last.is_some_and(|own| {
            let wanted = taint.value.as_deref();
            wanted.is_none_or(|wanted| wanted == own.value.as_deref().unwrap_or_default())
        })
    };
    taints.len() <= tolerations.len() && taints.iter().all(tolerates)
}

/// How many shoots a seed has; one that moves counts on both `[SCH-10]`.
pub fn usage(seed: &str, shoots: &[Shoot]) -> usize {
    let is = |name: &Option<String>| name.as_deref() == Some(seed);
    shoots
        .iter()
        .filter(|shoot| is(&shoot.spec.seed_name) || is(&shoot.status.seed_name))
        .count()
}

fn condition(seed: &Seed, kind: &str) -> bool {
    seed.status
        .conditions
        .iter()
        .any(|condition| condition.r#type == kind && condition.status == "True")
}

fn is_usable(seed: &Seed) -> bool {
    let visible = seed
        .spec
        .settings
        .as_ref()
        .and_then(|settings| settings.scheduling.as_ref())
        .is_none_or(|scheduling| scheduling.visible);
    seed.metadata.deletion_timestamp.is_none()
        && visible
        && seed.status.last_operation.is_some()
        && condition(seed, "GardenletReady")
        && (seed.spec.backup.is_none() || condition(seed, "BackupBucketsReady"))
}

/// Whether a seed has the labels that a selector wants.
pub fn has_labels(seed: &Seed, own: &SeedSelector) -> bool {
    selector(own).matches(&labels(seed))
}

fn selector(own: &SeedSelector) -> LabelSelector {
    let object = SelectorObject {
        match_labels: Some(own.match_labels.clone()),
        match_expressions: Some(own.match_expressions.clone()),
    };
    LabelSelector::from(&object)
}

/// A selector as Kubernetes writes it.
fn selector_text(selector: &LabelSelector) -> String {
    let list = |values: &[String]| values.join(",");
    let mut texts: Vec<String> = selector
        .requirements()
        .iter()
        .map(|requirement| match requirement {
            Requirement::Exists(key) => key.clone(),
            Requirement::NotExists(key) => format!("!{key}"),
            Requirement::In(key, values) if values.len() == 1 => format!("{key}={}", list(values)),
            Requirement::In(key, values) => format!("{key} in ({})", list(values)),
            Requirement::NotIn(key, values) => format!("{key} notin ({})", list(values)),
            Requirement::GreaterThan(key, number) => format!("{key}>{number}"),
            Requirement::LessThan(key, number) => format!("{key}<{number}"),
        })
        .collect();
    texts.sort();
    texts.join(",")
}

fn labels(seed: &Seed) -> BTreeMap<String, String> {
    seed.metadata.labels.clone().unwrap_or_default()
}

fn name(seed: &Seed) -> &str {
    seed.metadata.name.as_deref().unwrap_or_default()
}

/// Keeps the seeds that pass; fails with the text for the number that came in when none does.
fn keep(
    seeds: Vec<&Seed>,
    pass: impl Fn(&Seed) -> bool,
    why: impl FnOnce(usize) -> String,
) -> Result<Vec<&Seed>, String> {
    let count = seeds.len();
    let kept: Vec<&Seed> = seeds.into_iter().filter(|seed| pass(seed)).collect();
    if kept.is_empty() { Err(why(count)) } else { Ok(kept) }
}

/// The seed for a shoot.
///
/// # Errors
/// Why none fits, in upstream's words `[SCH-5]`.
pub fn determine<'a>(shoot: &Shoot, landscape: &Landscape<'a>, strategy: Strategy) -> Result<&'a Seed, String> {
    let seeds: Vec<&Seed> = landscape.seeds.iter().collect();
    let seeds = keep(seeds, is_usable, |n| {
        format!("none of the {n} seeds is valid for scheduling (not deleting, visible and ready)")
    })?;
    let seeds = by_selector(seeds, landscape.profile_selector, "CloudProfile")?;
    let seeds = by_selector(seeds, shoot.spec.seed_selector.as_ref(), "Shoot")?;
    let own_type = &shoot.spec.provider.r#type;
    let types: &[String] = landscape.profile_selector.map_or(&[], |own| &own.provider_types);
    let fits = |seed: &Seed| {
        let seed_type = &seed.spec.provider.r#type;
        if types.is_empty() {
            seed_type == own_type
        } else {
            types.iter().any(|own| own == "*" || own == seed_type)
        }
    };
    let seeds = keep(seeds, fits, |n| {
        format!("none out of the {n} seeds has a matching provider for {own_type:?}")
    })?;
    let zonal = shoot.spec.failure_tolerance() == Some("zone");
    let seeds = keep(
        seeds,
        |seed| !zonal || seed.spec.provider.zones.len() >= 3,
        |n| {
            format!(
                "none of the {n} seeds has at least 3 zones for hosting a shoot control plane with failure tolerance type 'zone'"
            )
        },
    )?;
    let seeds = if zonal { seeds } else { by_zones(shoot, seeds)? };
    let seeds = keep(
        seeds,
        |seed| supports_restrictions(shoot, seed),
        |n| format!("none of the {n} seeds supports the access restrictions configured in the shoot specification"),
    )?;
    let seeds = by_domain(shoot, seeds, landscape.project)?;
    let stopped = |seed: &Seed| {
        let annotations = seed.metadata.annotations.as_ref();
        annotations
            .and_then(|own| own.get("shoot.gardener.cloud/emergency-stop-reconciliations"))
            .is_some_and(|text| text == "true")
    };
    let seeds = keep(
        seeds,
        |seed| !stopped(seed),
        |n| format!("none of the {n} seeds have enabled shoot reconciliations currently"),
    )?;
    let seeds = candidates(shoot, seeds, landscape.shoots)?;
    let chosen = by_strategy(shoot, seeds, landscape, strategy);
    let least = chosen
        .into_iter()
        .min_by_key(|seed| (usage(name(seed), landscape.shoots), name(seed).to_owned()));
    least.ok_or_else(|| {
        let profile = shoot.spec.cloud_profile.as_ref().map(|own| own.name.clone()).or_else(|| shoot.spec.cloud_profile_name.clone()).unwrap_or_default();
        format!(
            "no matching seed candidate found for Configuration (Cloud Profile '{profile}', Region '{}', SeedDeterminationStrategy '{strategy}')",
            shoot.spec.region
        )
    })
}

fn by_selector<'a>(seeds: Vec<&'a Seed>, own: Option<&SeedSelector>, of: &str) -> Result<Vec<&'a Seed>, String> {
    let Some(own) = own else { return Ok(seeds) };
    let selector = selector(own);
    keep(
        seeds,
        |seed| selector.matches(&labels(seed)),
        |n| {
            format!(
                "none out of the {n} seeds has the matching labels required by seed selector of '{of}' (selector: '{}')",
                selector_text(&selector)
            )
        },
    )
}

/// `[SCH-7]`.
fn by_zones<'a>(shoot: &Shoot, seeds: Vec<&'a Seed>) -> Result<Vec<&'a Seed>, String> {
    let wanted = shoot
        .spec
        .control_plane
        .as_ref()
        .map(|own| own.zones.clone())
        .unwrap_or_default();
    if !wanted.is_empty() {
        return keep(
            seeds,
            |seed| wanted.iter().all(|zone| seed.spec.provider.zones.contains(zone)),
            |n| {
                format!(
                    "none of the {n} seeds contains all requested control plane zones [{}]",
                    wanted.join(" ")
                )
            },
        );
    }
    let zones: BTreeSet<&String> = shoot
        .spec
        .provider
        .workers
        .iter()
        .flat_map(|worker| &worker.zones)
        .collect();
    let overlaps = |seed: &Seed| seed.spec.provider.zones.iter().any(|zone| zones.contains(zone));
    let mode = |seed: &Seed| {
        seed.spec
            .settings
            .as_ref()
            .and_then(|own| own.zone_selection.as_ref())
            .map(|own| own.mode.clone())
            .unwrap_or_default()
    };
    let seeds = keep(
        seeds,
        |seed| mode(seed) != "Enforce" || zones.is_empty() || overlaps(seed),
        |n| {
            format!(
                "none of the {n} seeds has any zone overlap with the shoot's worker pool zones (zone selection mode: Enforce)"
            )
        },
    )?;
    if zones.is_empty() {
        return Ok(seeds);
    }
    let preferred: Vec<&Seed> = seeds
        .iter()
        .copied()
        .filter(|seed| mode(seed) != "Prefer" || overlaps(seed))
        .collect();
    Ok(if preferred.is_empty() { seeds } else { preferred })
}

/// Whether a seed supports all access restrictions of a shoot `[SCH-13]`.
pub fn supports_restrictions(shoot: &Shoot, seed: &Seed) -> bool {
    let (wanted, offered) = (&shoot.spec.access_restrictions, &seed.spec.access_restrictions);
    wanted.len() <= offered.len()
        && wanted
            .iter()
            .all(|own| offered.iter().any(|other| other.name == own.name))
}

/// `[SCH-8]`.
fn by_domain<'a>(shoot: &Shoot, seeds: Vec<&'a Seed>, project: &str) -> Result<Vec<&'a Seed>, String> {
    let Some(domain) = shoot.spec.dns.as_ref().and_then(|dns| dns.domain.clone()) else {
        return Ok(seeds);
    };
    let below = |seed: &Seed| {
        seed.spec
            .dns
            .defaults
            .iter()
            .any(|own| domain.ends_with(&format!(".{}", own.domain)))
    };
    if !seeds.iter().any(|seed| below(seed)) {
        return Ok(seeds);
    }
    let prefix = format!("{}.{project}.", shoot.metadata.name.as_deref().unwrap_or_default());
    keep(
        seeds,
        |seed| {
            seed.spec
                .dns
                .defaults
                .iter()
                .any(|own| domain == format!("{prefix}{}", own.domain))
        },
        |n| format!("none of the {n} seeds support the domain {domain:?} configured in the shoot specification"),
    )
}

/// Networks, taints and capacity; the first reason of each seed is told.
fn candidates<'a>(shoot: &Shoot, seeds: Vec<&'a Seed>, shoots: &[Shoot]) -> Result<Vec<&'a Seed>, String> {
    let count = seeds.len();
    let (mut kept, mut reasons) = (Vec::new(), BTreeMap::new());
    for seed in seeds {
        let network_errors = disjointedness(shoot, seed);
        if !network_errors.is_empty() {
            let bodies: Vec<String> = network_errors.iter().map(Error::body).collect();
            reasons.insert(
                name(seed).to_owned(),
                format!("invalid networks: [{}]", bodies.join(" ")),
            );
        } else if !tolerated(&seed.spec.taints, &shoot.spec.tolerations) {
            reasons.insert(
                name(seed).to_owned(),
                "shoot does not tolerate the seed's taints".to_owned(),
            );
        } else if is_full(seed, shoots) {
            reasons.insert(
                name(seed).to_owned(),
                "seed does not have available capacity for shoots".to_owned(),
            );
        } else {
            kept.push(seed);
        }
    }
    if kept.is_empty() {
        let reasons: Vec<String> = reasons
            .into_iter()
            .map(|(seed, reason)| format!("{seed} => {reason}"))
            .collect();
        return Err(format!(
            "0/{count} seed cluster candidate(s) are eligible for scheduling: {{{}}}",
            reasons.join(", ")
        ));
    }
    Ok(kept)
}

/// How many shoots a seed takes, if that is limited `[SCH-10]`.
pub fn allocatable_shoots(seed: &Seed) -> Option<usize> {
    let quantity = seed.status.allocatable.get("shoots")?;
    let quantity: gardener_apimachinery::quantity::Amount = quantity.0.parse().ok()?;
    usize::try_from(quantity.value()).ok()
}

fn is_full(seed: &Seed, shoots: &[Shoot]) -> bool {
    allocatable_shoots(seed).is_some_and(|allowed| usage(name(seed), shoots) >= allowed)
}

/// What stands against a network of a shoot (`kind` is node, pod or service) on a seed `[SCH-9]`. IPv4 networks may overlap with the seed's: the VPN
/// maps them.
pub fn touched(kind: &str, net: &IpNet, seed: &Seed) -> Vec<String> {
    let networks = &seed.spec.networks;
    let theirs = [
        ("service", Some(&networks.services)),
        ("pod", Some(&networks.pods)),
        ("node", networks.nodes.as_ref()),
    ];
    let touches = |text: &String| {
        let own = text.parse::<IpNet>();
        matches!(net, IpNet::V6(_)) && own.is_ok_and(|own| overlap(&own, net))
    };
    let seeds = theirs.into_iter().filter(|(_, own)| own.is_some_and(touches));
    let seeds = seeds.map(|(theirs, _)| format!("shoot {kind} network intersects with seed {theirs} network"));
    let reserved = reserved_range(net).map(|range| format!("{kind} network intersects with {range}"));
    seeds.chain(reserved).collect()
}

/// Where the networks of a shoot and a seed touch `[SCH-9]`. IPv4 networks may overlap: the VPN maps them.
fn disjointedness(shoot: &Shoot, seed: &Seed) -> ErrorList {
    let Some(networking) = &shoot.spec.networking else {
        return Vec::new();
    };
    let families = shoot.spec.ip_families();
    let of_seed = |own: &Option<String>| {
        let family = |net: &IpNet| if matches!(net, IpNet::V4(_)) { "IPv4" } else { "IPv6" };
        own.clone()
            .filter(|text| text.parse::<IpNet>().is_ok_and(|net| families.contains(&family(&net))))
    };
    let defaults = seed.spec.networks.shoot_defaults.as_ref();
    let pods = networking.pods.clone().or_else(|| {
        defaults
            .and_then(|own| of_seed(&own.pods))
            .filter(|_| !shoot.is_workerless())
    });
    let services = networking
        .services
        .clone()
        .or_else(|| defaults.and_then(|own| of_seed(&own.services)));
    let mut wanted: Vec<(&str, String)> = Vec::new();
    wanted.extend(networking.nodes.clone().map(|net| ("node", net)));
    wanted.extend(services.map(|net| ("service", net)));
    wanted.extend(pods.map(|net| ("pod", net)));
    if let Some(status) = &shoot.status.networking {
        wanted.extend(status.nodes.iter().map(|net| ("node", net.clone())));
        wanted.extend(status.services.iter().map(|net| ("service", net.clone())));
        wanted.extend(status.pods.iter().map(|net| ("pod", net.clone())));
    }
    let mut errors = Vec::new();
    for (kind, text) in &wanted {
        let path = Path::new("spec").child("networking");
        let Ok(net) = text.parse::<IpNet>() else {
            errors.push(Error::invalid(&path, text.as_str(), "the network is no CIDR"));
            continue;
        };
        let against = touched(kind, &net, seed).into_iter();
        errors.extend(against.map(|why| Error::invalid(&path, text.as_str(), why)));
    }
    errors.dedup();
    errors
}

/// `[SCH-11]` `[SCH-12]`.
fn by_strategy<'a>(
    shoot: &Shoot,
    seeds: Vec<&'a Seed>,
    landscape: &Landscape<'_>,
    strategy: Strategy,
) -> Vec<&'a Seed> {
    let (region, own_type) = (&shoot.spec.region, &shoot.spec.provider.r#type);
    if shoot.spec.purpose() == "testing" {
        return seeds
            .into_iter()
            .filter(|seed| seed.spec.provider.r#type == *own_type)
            .collect();
    }
    match strategy {
        Strategy::SameRegion => seeds
            .into_iter()
            .filter(|seed| seed.spec.provider.r#type == *own_type && seed.spec.provider.region == *region)
            .collect(),
        Strategy::MinimalDistance => {
            if let Some(distances) = landscape.distances {
                let distance = |seed: &Seed| {
                    let own = &seed.spec.provider.region;
                    distances.get(own).copied().or((own == region).then_some(0))
                };
                let nearest: Vec<&Seed> = nearest(&seeds, distance);
                if !nearest.is_empty() {
                    return nearest;
                }
            }
            nearest(&seeds, |seed| {
                let other = if seed.spec.provider.r#type == *own_type { 0 } else { 2 };
                i64::try_from(region_distance(&seed.spec.provider.region, region))
                    .ok()
                    .map(|own| own + other)
                    .filter(|own| *own < 1000)
            })
        }
    }
}

fn nearest<'a>(seeds: &[&'a Seed], distance: impl Fn(&Seed) -> Option<i64>) -> Vec<&'a Seed> {
    let least = seeds.iter().filter_map(|seed| distance(seed)).min();
    seeds
        .iter()
        .copied()
        .filter(|seed| least.is_some() && distance(seed) == least)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gardener_apis::core::v1beta1::{Condition, LastOperation};

    fn seed(own_name: &str, region: &str) -> Seed {
        let mut seed = Seed::default();
        seed.metadata.name = Some(own_name.into());
        seed.spec.provider.r#type = "p".into();
        seed.spec.provider.region = region.into();
        seed.status.last_operation = Some(LastOperation::default());
        seed.status.conditions = vec![Condition {
            r#type: "GardenletReady".into(),
            status: "True".into(),
            ..Condition::default()
        }];
        seed
    }

    fn shoot(region: &str) -> Shoot {
        let mut shoot = Shoot::default();
        shoot.metadata.name = Some("s".into());
        shoot.spec.provider.r#type = "p".into();
        shoot.spec.region = region.into();
        shoot.spec.cloud_profile_name = Some("cp".into());
        shoot
    }

    fn place(own: &Shoot, seeds: &[Seed], shoots: &[Shoot], strategy: Strategy) -> Result<String, String> {
        let landscape = Landscape {
            seeds,
            shoots,
            profile_selector: None,
            project: "dev",
            distances: None,
        };
        determine(own, &landscape, strategy).map(|seed| name(seed).to_owned())
    }

    #[test]
    fn wc_48_same_region() {
        assert_eq!(
            place(&shoot("x"), &[seed("a", "r")], &[], Strategy::SameRegion),
            Err("no matching seed candidate found for Configuration (Cloud Profile 'cp', Region 'x', SeedDeterminationStrategy 'SameRegion')".into())
        );
        assert_eq!(
            place(&shoot("r"), &[seed("a", "r")], &[], Strategy::SameRegion),
            Ok("a".into())
        );
    }

    #[test]
    fn wc_49_wc_50_minimal_distance() {
        let seeds = [
            seed("asia", "asia-south1"),
            seed("north", "europe-north1"),
            seed("west", "europe-west1"),
        ];
        assert_eq!(
            place(&shoot("europe-west3"), &seeds, &[], Strategy::MinimalDistance),
            Ok("west".into())
        );
        let seeds = [
            seed("200", "eu-de-200"),
            seed("2111", "eu-de-2111"),
            seed("nl", "eu-nl-1"),
        ];
        assert_eq!(
            place(&shoot("eu-de-20"), &seeds, &[], Strategy::MinimalDistance),
            Ok("200".into())
        );
    }

    #[test]
    fn sch_5_usable_seeds_only() {
        let mut hidden = seed("a", "r");
        hidden.status.conditions.clear();
        assert_eq!(
            place(&shoot("r"), &[hidden], &[], Strategy::SameRegion),
            Err("none of the 1 seeds is valid for scheduling (not deleting, visible and ready)".into())
        );
        assert_eq!(
            place(&shoot("r"), &[], &[], Strategy::SameRegion),
            Err("none of the 0 seeds is valid for scheduling (not deleting, visible and ready)".into())
        );
        let mut other = shoot("r");
        other.spec.provider.r#type = "q".into();
        assert_eq!(
            place(&other, &[seed("a", "r")], &[], Strategy::SameRegion),
            Err("none out of the 1 seeds has a matching provider for \"q\"".into())
        );
    }

    #[test]
    fn sch_10_tol_8_capacity_and_taints() {
        let mut full = seed("full", "r");
        full.status.allocatable.insert(
            "shoots".into(),
            k8s_openapi::apimachinery::pkg::api::resource::Quantity("1".into()),
        );
        let mut tainted = seed("tainted", "r");
        tainted.spec.taints = vec![SeedTaint {
            key: "k".into(),
            value: None,
        }];
        let mut there = shoot("r");
        there.spec.seed_name = Some("full".into());
        let error = place(&shoot("r"), &[full, tainted], &[there], Strategy::SameRegion).unwrap_err();
        assert_eq!(
            error,
            "0/2 seed cluster candidate(s) are eligible for scheduling: {full => seed does not have available capacity for shoots, tainted => shoot does not tolerate the seed's taints}"
        );
    }

    #[test]
    fn sch_14_the_seed_with_least_shoots() {
        let mut there = shoot("r");
        there.spec.seed_name = Some("a".into());
        assert_eq!(
            place(
                &shoot("r"),
                &[seed("a", "r"), seed("b", "r")],
                &[there],
                Strategy::SameRegion
            ),
            Ok("b".into())
        );
    }
}
