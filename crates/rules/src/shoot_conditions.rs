//! Conditions of shoots that the garden writes: those of the seed that a shoot is [GCM-45].

use gardener_apis::core::v1beta1::{Condition, Shoot};

/// The types of conditions of shoots themselves. Those of nodes are for shoots with workers.
const TYPES: [&str; 5] = [
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    EVERY_NODE_READY,
    "SystemComponentsHealthy",
];
const EVERY_NODE_READY: &str = "EveryNodeReady";

/// The types of conditions that a shoot has of itself.
pub fn types(shoot: &Shoot) -> impl Iterator<Item = &'static str> {
    let workerless = shoot.is_workerless();
    TYPES
        .into_iter()
        .filter(move |own| !(workerless && *own == EVERY_NODE_READY))
}

/// A shoot's own conditions, and behind them all those of the seed that it is, if it is one. Any other are dropped.
pub fn with_those_of_the_seed(own: &[Condition], seed: Option<&[Condition]>) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = own
        .iter()
        .filter(|own| TYPES.contains(&own.r#type.as_str()))
        .cloned()
        .collect();
    for condition in seed.unwrap_or_default() {
        match conditions.iter_mut().find(|own| own.r#type == condition.r#type) {
            Some(own) => own.clone_from(condition),
            None => conditions.push(condition.clone()),
        }
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn gcm_45_own_conditions_and_the_seeds() {
        let list = |types: &[(&str, &str)]| -> Vec<Condition> {
            let conditions = types
                .iter()
                .map(|(kind, status)| json!({"type": kind, "status": status}));
            serde_json::from_value(conditions.collect()).unwrap()
        };
        let told = |list: Vec<Condition>| {
            let told = list.into_iter().map(|own| format!("{}={}", own.r#type, own.status));
            told.collect::<Vec<_>>().join(" ")
        };
        let own = list(&[
            ("GardenletReady", "False"),
            ("EveryNodeReady", "True"),
            ("Mine", "True"),
            ("APIServerAvailable", "Unknown"),
        ]);
        let seed = list(&[("GardenletReady", "True"), ("ExtensionsReady", "False")]);
        for (seed, expected) in [
            (None, "EveryNodeReady=True APIServerAvailable=Unknown"),
            (
                Some(&seed[..]),
                "EveryNodeReady=True APIServerAvailable=Unknown GardenletReady=True ExtensionsReady=False",
            ),
            (Some(&[]), "EveryNodeReady=True APIServerAvailable=Unknown"),
        ] {
            assert_eq!(told(with_those_of_the_seed(&own, seed)), expected);
        }
        let once = with_those_of_the_seed(&own, Some(&seed));
        assert_eq!(with_those_of_the_seed(&once, Some(&seed)), once);
        let mut shoot = Shoot::default();
        assert_eq!(types(&shoot).count(), 4);
        shoot.spec.provider.workers.push(Default::default());
        assert_eq!(types(&shoot).count(), 5);
    }
}
