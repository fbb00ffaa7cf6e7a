//! What a cluster's objects say: the schemas in the order in which they are tried, and the levels of priority that they name. Those that every server
//! has, `exempt` and `catch-all`, are there even if nobody has stored them.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_store::Entry;
use http::HeaderValue;
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, QueuingConfiguration,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::schema::Schema;
use super::shares::Share;
use super::shuffle;
use crate::authz::Attributes;
use crate::cluster::LogicalCluster;
use crate::flow_schemas::{GROUP, LEVELS, SCHEMAS};
use crate::followed::Followed;
use crate::{kubernetes, object};

/// The level of those whom nobody holds up, and the schema that leads to it.
pub(super) const EXEMPT: &str = "exempt";
/// The level of those whom nobody else wants, and the schema that leads to it.
const CATCH_ALL: &str = "catch-all";
/// Shares and queues of a level that tells none.
const SHARES: u32 = 30;
const QUEUES: (usize, usize, usize) = (64, 8, 50);

/// A level of priority, as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LevelSpec {
    pub(super) uid: HeaderValue,
    pub(super) share: Share,
    pub(super) excess: Excess,
}

/// What becomes of requests that find no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// There are none: as many as come are served.
    Served,
    /// They are refused.
    Refused,
    /// They wait in queues.
    Queued {
        /// How many queues there are.
        queues: usize,
        /// How many of these each flow may use.
        hand: usize,
        /// How many requests each holds.
        length: usize,
    },
}

/// Schemas and levels of a cluster.
#[derive(Debug, Default)]
pub(super) struct Config {
    schemas: Vec<Arc<Schema>>,
    pub(super) levels: BTreeMap<Arc<str>, LevelSpec>,
}

/// Where a cluster's configuration comes from, and what was made of it last.
#[derive(Default)]
pub(super) struct Source {
    schemas: Followed<Vec<Arc<Schema>>>,
    levels: Followed<BTreeMap<Arc<str>, LevelSpec>>,
    config: Option<Arc<Config>>,
}

impl Source {
    /// The configuration as it is now, and whether it is another one than the last.
    pub(super) fn current(&mut self, cluster: &LogicalCluster) -> (Arc<Config>, bool) {
        let before = (self.schemas.last(), self.levels.last());
        let schemas = self.schemas.current(cluster, (GROUP, SCHEMAS), |entries| {
            let schemas = entries.iter().filter_map(|entry| Schema::read(object::parse(entry)?));
            schemas.map(Arc::new).collect()
        });
        let levels = self.levels.current(cluster, (GROUP, LEVELS), levels_of);
        let is_same = Arc::ptr_eq(&before.0, &schemas) && Arc::ptr_eq(&before.1, &levels);
        match &self.config {
            Some(config) if is_same => (Arc::clone(config), false),
            _ => {
                let config = Arc::new(Config::of(&schemas, &levels));
                self.config = Some(Arc::clone(&config));
                (config, true)
            }
        }
    }
}

fn levels_of(entries: &[Arc<Entry>]) -> BTreeMap<Arc<str>, LevelSpec> {
    let levels = entries
        .iter()
        .filter_map(|entry| LevelSpec::read(object::parse(entry)?));
    levels.collect()
}

/// What tells a uid; nothing where there is none.
pub(super) fn header(uid: Option<String>) -> Option<HeaderValue> {
    HeaderValue::try_from(uid?).ok()
}

/// One of the objects that every server has.
fn mandatory<T: DeserializeOwned>(resource: &str, name: &str) -> Option<T> {
    let spec = kubernetes::recorded_spec(GROUP, resource, name)?;
    let object = json!({"metadata": {"name": name, "uid": ""}, "spec": spec});
    serde_json::from_value(object).ok()
}

impl Config {
    /// Schemas come by name, which decides between those of one precedence. Those whose level is not there mean nothing.
    pub(super) fn of(schemas: &[Arc<Schema>], levels: &BTreeMap<Arc<str>, LevelSpec>) -> Self {
        let mut levels = levels.clone();
        let mut schemas: Vec<Arc<Schema>> = schemas
            .iter()
            .filter(|schema| levels.contains_key(&schema.level))
            .cloned()
            .collect();
        schemas.sort_by_key(|schema| schema.precedence);
        let imagined = |name: &str| {
            let is_there = schemas.iter().any(|schema| &*schema.name == name);
            let schema = || mandatory::<FlowSchema>(SCHEMAS, name).and_then(Schema::read);
            (!is_there).then(schema).flatten().map(Arc::new)
        };
        let (first, last) = (imagined(EXEMPT), imagined(CATCH_ALL));
        let schemas = first.into_iter().chain(schemas).chain(last).collect();
        for name in [EXEMPT, CATCH_ALL] {
            if !levels.contains_key(name) {
                let level = mandatory::<PriorityLevelConfiguration>(LEVELS, name);
                levels.extend(level.and_then(LevelSpec::read));
            }
        }
        Self { schemas, levels }
    }

    /// The schema of a request, with its level. Who fits none is anybody.
    pub(super) fn schema_of(&self, request: &Attributes<'_>) -> Option<(&Arc<Schema>, &LevelSpec)> {
        let mut schemas = self.schemas.iter();
        let schema = schemas.find(|schema| schema.fits(request)).or_else(|| {
            let mut schemas = self.schemas.iter();
            schemas.find(|schema| &*schema.name == CATCH_ALL)
        })?;
        Some((schema, self.levels.get(&schema.level)?))
    }
}

impl LevelSpec {
    /// The level that an object describes. None, if it contradicts itself.
    pub(super) fn read(level: PriorityLevelConfiguration) -> Option<(Arc<str>, Self)> {
        let name = level.metadata.name?;
        let (share, excess) = read(level.spec, &name)?;
        let uid = header(level.metadata.uid)?;
        Some((name.into(), Self { uid, share, excess }))
    }

    /// Between how many queues a flow may choose, if there is a choice.
    pub(super) fn queues(&self) -> Option<(usize, usize)> {
        match self.excess {
            Excess::Queued { queues, hand, .. } if queues > 1 => Some((queues, hand)),
            _ => None,
        }
    }
}

fn read(spec: PriorityLevelConfigurationSpec, name: &str) -> Option<(Share, Excess)> {
    let percent = |percent: Option<i32>| percent.and_then(|percent| u32::try_from(percent).ok());
    if (spec.type_ == "Exempt") != (name == EXEMPT) {
        return None;
    }
    match (spec.exempt, spec.limited) {
        (exempt, None) if spec.type_ == "Exempt" => {
            let exempt = exempt.unwrap_or_default();
            let share = Share {
                shares: percent(exempt.nominal_concurrency_shares).unwrap_or_default(),
                lendable: percent(exempt.lendable_percent).unwrap_or_default(),
                borrowing: None,
            };
            Some((share, Excess::Served))
        }
        (None, Some(limited)) => {
            let share = Share {
                shares: percent(limited.nominal_concurrency_shares).unwrap_or(SHARES),
                lendable: percent(limited.lendable_percent).unwrap_or_default(),
                borrowing: percent(limited.borrowing_limit_percent),
            };
            let response = limited.limit_response;
            let excess = match response.type_.as_str() {
                "Queue" => queued(&response.queuing.unwrap_or_default())?,
                _ => Excess::Refused,
            };
            Some((share, excess))
        }
        _ => None,
    }
}

fn queued(queuing: &QueuingConfiguration) -> Option<Excess> {
    let number = |own: Option<i32>, default: usize| {
        let own = own.and_then(|own| usize::try_from(own).ok());
        own.filter(|own| *own > 0).unwrap_or(default)
    };
    let queues = number(queuing.queues, QUEUES.0);
    let hand = number(queuing.hand_size, QUEUES.1);
    let length = number(queuing.queue_length_limit, QUEUES.2);
    shuffle::can_deal(queues, hand).then_some(Excess::Queued { queues, hand, length })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn read(name: &str, spec: Value) -> Option<LevelSpec> {
        let object = json!({"metadata": {"name": name, "uid": "u"}, "spec": spec});
        LevelSpec::read(serde_json::from_value(object).unwrap()).map(|(_, level)| level)
    }

    #[test]
    fn levels_say_what_becomes_of_too_many() {
        let share = |shares, lendable, borrowing| Share {
            shares,
            lendable,
            borrowing,
        };
        let queued = |queues, hand, length| Excess::Queued { queues, hand, length };
        for (name, spec, expected) in [
            (
                EXEMPT,
                json!({"type": "Exempt", "exempt": {"lendablePercent": 50}}),
                Some((share(0, 50, None), Excess::Served)),
            ),
            (EXEMPT, json!({"type": "Limited", "limited": {}}), None),
            ("a", json!({"type": "Exempt", "exempt": {}}), None),
            ("a", json!({"type": "Limited"}), None),
            (
                "a",
                json!({"type": "Limited", "limited": {"borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}}),
                Some((share(30, 0, Some(0)), Excess::Refused)),
            ),
            (
                "a",
                json!({"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Queue",
                    "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 9}}}}),
                Some((share(5, 0, None), queued(16, 4, 9))),
            ),
            (
                "a",
                json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}),
                Some((share(30, 0, None), queued(64, 8, 50))),
            ),
            (
                "a",
                json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 2, "handSize": 3}}}}),
                None,
            ),
        ] {
            let found = read(name, spec.clone()).map(|level| (level.share, level.excess));
            assert_eq!(found, expected, "{name}: {spec}");
        }
    }

    #[test]
    fn some_are_there_even_if_nobody_has_stored_them() {
        let config = Config::of(&[], &BTreeMap::new());
        let names: Vec<&str> = config.levels.keys().map(|name| &**name).collect();
        assert_eq!(names, [CATCH_ALL, EXEMPT]);
        assert_eq!(config.levels[CATCH_ALL].excess, Excess::Refused);
        let names: Vec<&str> = config.schemas.iter().map(|schema| &*schema.name).collect();
        assert_eq!(names, [EXEMPT, CATCH_ALL]);
    }
}
