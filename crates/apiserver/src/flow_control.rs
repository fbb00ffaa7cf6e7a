//! Priority and fairness: each request from outside belongs to a flow, and to a level of priority, by the first FlowSchema that fits it. A level has so
//! many seats; requests that find none wait in its queues, or are refused. Answers tell schema and level by their uids.
//!
//! A cluster is what one kube-apiserver serves, and has seats of its own. Requests from inside the process are not held up: they are the server's own, and
//! one may be made for another that has a seat.

mod config;
mod counts;
mod demand;
mod dump;
mod estimate;
mod levels;
mod queues;
mod refusals;
mod request;
mod schema;
mod seat;
mod shares;
mod shuffle;
mod utilization;
mod watchers;
mod work;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};
use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::metrics::Text;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::config::{Config, Source};
use self::estimate::{Sizes, Work};
use self::levels::{Levels, Place};
use self::request::Asked;
use self::seat::Turn;
pub(crate) use self::seat::{Seat, Waiting};
use self::watchers::Watchers;
use crate::authz::Attributes;
use crate::cluster::LogicalCluster;
use crate::flow_schemas::{GROUP, LEVELS, SCHEMAS};
use crate::request::Query;
use crate::user::UserInfo;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// The longest that a request waits for a seat, whatever it may take.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Which part of the time that a request may take it may wait.
const PART_TO_WAIT: u32 = 4;
/// How often it is looked anew to which level a request belongs, when levels change at the same time.
const ATTEMPTS: usize = 5;

/// What a server has for requests from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seats {
    /// How many requests it serves at once, watches and others that last not counted.
    pub number: usize,
    /// How long a request may take that does not say so itself; a quarter of that it may wait for a seat.
    pub time_limit: Duration,
}

impl Default for Seats {
    /// As kube-apiserver has them where no flag says otherwise.
    fn default() -> Self {
        Self {
            number: 600,
            time_limit: Duration::from_secs(60),
        }
    }
}

/// Until when a request that came now may wait, which may take so long.
pub(crate) fn waits_until(limit: Duration) -> Instant {
    Instant::now() + LONGEST_WAIT.min(limit / PART_TO_WAIT)
}

/// The flows of a cluster.
pub(crate) struct FlowControl {
    clock: Clock,
    seats: Seats,
    source: Mutex<Source>,
    levels: Mutex<Levels>,
    sizes: Sizes,
    watchers: Arc<Watchers>,
    /// Tells who comes in time that it must come sooner.
    sooner: Notify,
}

/// The flow of one request, as its answer tells it.
pub(crate) struct Flow {
    schema: HeaderValue,
    level: HeaderValue,
}

impl Flow {
    /// Has an answer tell the flow, unless another server did.
    pub(crate) fn tell(self, headers: &mut HeaderMap) {
        headers.entry(SCHEMA_UID).or_insert(self.schema);
        headers.entry(LEVEL_UID).or_insert(self.level);
    }
}

/// A request that came.
pub(crate) struct Incoming<'r> {
    pub(crate) asks: &'r Attributes<'r>,
    pub(crate) query: &'r Query,
    pub(crate) method: &'r Method,
    pub(crate) uri: &'r Uri,
    pub(crate) user: &'r Arc<UserInfo>,
}

/// How a request is taken in.
pub(crate) enum Entered {
    /// It is served.
    Served(Seat),
    /// It waits until it is.
    Waits(Waiting),
    /// It is refused, and may come again after so many seconds.
    Refused(u64),
}

impl FlowControl {
    /// That of a cluster; none, where nothing is known of flows.
    pub(crate) fn of(cluster: &LogicalCluster) -> Option<Arc<Self>> {
        cluster.readable(GROUP, SCHEMAS)?;
        cluster.readable(GROUP, LEVELS)?;
        let seats = cluster.config().seats;
        Some(Arc::new(Self {
            clock: cluster.clock().clone(),
            seats,
            source: Mutex::default(),
            levels: Mutex::new(Levels::new(seats.number, Instant::now())),
            sizes: Sizes::default(),
            watchers: Arc::default(),
            sooner: Notify::new(),
        }))
    }

    /// Takes in what objects say now.
    pub(crate) fn refresh(&self, cluster: &LogicalCluster) {
        self.config(cluster);
    }

    fn config(&self, cluster: &LogicalCluster) -> Arc<Config> {
        let mut source = self.source.lock();
        let (config, is_another) = source.current(cluster);
        if is_another {
            // (under both locks, so that the last one taken in is the newest)
            self.levels.lock().configure(Arc::clone(&config), Instant::now());
        }
        config
    }

    /// Takes in a request, and tells its flow. None, where there is no level for it.
    pub(crate) fn enter(
        self: &Arc<Self>,
        cluster: &Arc<LogicalCluster>,
        incoming: &Incoming<'_>,
    ) -> Option<(Flow, Entered)> {
        let (asks, query) = (incoming.asks, incoming.query);
        let watches = asks.verb == "watch";
        let work = self.work(cluster, incoming);
        for _ in 0..ATTEMPTS {
            let config = self.config(cluster);
            let (schema, level) = config.schema_of(asks)?;
            let queues = level.queues();
            let flow = queues.map_or(0, |_| {
                let distinguisher = schema.distinguishes.by(asks.user, asks.namespace);
                shuffle::number(&schema.name, distinguisher)
            });
            let asked = Arc::new(Asked {
                schema: Arc::clone(schema),
                user: Arc::clone(incoming.user),
                method: incoming.method.clone(),
                uri: incoming.uri.clone(),
                is_of_flow: queues.is_some(),
                watches,
                changes: !matches!(asks.verb, "get" | "list" | "watch"),
            });
            let told = Flow {
                schema: schema.uid.clone(),
                level: level.uid.clone(),
            };
            let mut levels = self.levels.lock();
            let Some(entered) = levels.enter(asked, (work, flow), Instant::now(), self.second()) else {
                continue;
            };
            let keeps = levels.next().is_some() && !std::mem::replace(&mut levels.is_kept, true);
            drop(levels);
            if keeps {
                tokio::spawn(keep(Arc::clone(self), Arc::downgrade(cluster)));
            }
            let (place, woken) = match entered {
                levels::Entered::Refused(after) => return Some((told, Entered::Refused(after))),
                levels::Entered::In(place, woken) => (place, woken),
            };
            let turn = Turn::new(Arc::clone(self), place);
            let watcher = watches.then(|| self.watchers.add(asks, query)).flatten();
            let seat = Seat::new(turn, watcher);
            let entered = match woken {
                None => Entered::Served(seat),
                Some(woken) => Entered::Waits(Waiting::new(seat, woken)),
            };
            return Some((told, entered));
        }
        None
    }

    fn work(&self, cluster: &LogicalCluster, incoming: &Incoming<'_>) -> Work {
        let asks = incoming.asks;
        match asks.verb {
            _ if !asks.is_resource => Work::Plain,
            "list" | "watch" => self.sizes.read(cluster, asks, incoming.query),
            // nobody is told of a token
            "create" if asks.resource == "serviceaccounts" && asks.subresource == "token" => Work::Plain,
            "create" | "update" | "patch" | "delete" => Work::Changes(self.watchers.of(asks)),
            _ => Work::Plain,
        }
    }

    /// The second of Unix's time.
    fn second(&self) -> i64 {
        self.clock.now().as_second()
    }

    /// Ends a request, wherever it is.
    fn leave(&self, place: &Place) -> Option<u64> {
        let mut levels = self.levels.lock();
        let before = levels.is_kept.then(|| levels.next());
        let after = levels.leave(place, Instant::now(), self.second());
        if before.is_some_and(|before| before != levels.next()) {
            self.sooner.notify_one();
        }
        after
    }

    /// Refuses a request if it waits; None, if it is served already.
    fn give_up(&self, place: &Place) -> Option<u64> {
        let mut levels = self.levels.lock();
        let waits = levels.waits(place);
        waits.then(|| levels.leave(place, Instant::now(), self.second()).unwrap_or(1))
    }

    /// Has a request lose its seats when it takes longer than it may.
    fn keep_until(&self, place: &mut Place, until: Option<Instant>) {
        let until = until.unwrap_or_else(|| Instant::now() + self.seats.time_limit);
        let mut levels = self.levels.lock();
        levels.keep_until(place, until);
        if levels.is_kept {
            self.sooner.notify_one();
        }
    }

    /// Writes what was counted in Prometheus' text form.
    pub(crate) fn tell(&self, out: &mut Text) {
        let mut levels = self.levels.lock();
        levels.tell(out, Instant::now());
        let (reading, changing) = levels.waiting();
        let name = "apiserver_current_inqueue_requests";
        out.family(name, "gauge", "Requests that wait.");
        for (kind, waiting) in [("mutating", changing), ("readOnly", reading)] {
            out.sample(name, &format!("request_kind=\"{kind}\""), waiting);
        }
    }

    /// What people are told of levels, queues and requests; none for other paths.
    pub(crate) fn page(&self, cluster: &LogicalCluster, path: &str, query: &Query) -> Option<String> {
        let page = path.strip_prefix(dump::PREFIX)?;
        self.refresh(cluster);
        let details = query.get("includeRequestDetails").is_some();
        let mut levels = self.levels.lock();
        levels.advance(Instant::now());
        dump::page(&levels, &self.clock, page, details)
    }
}

/// Comes in time for as long as requests wait.
async fn keep(control: Arc<FlowControl>, cluster: Weak<LogicalCluster>) {
    loop {
        let next = {
            let mut levels = control.levels.lock();
            levels.advance(Instant::now());
            let next = levels.next();
            levels.is_kept = next.is_some();
            next
        };
        let Some(next) = next else { return };
        tokio::select! {
            biased;
            () = control.sooner.notified() => {}
            () = tokio::time::sleep_until(next) => {}
        }
        // others may have changed the levels
        if let Some(cluster) = cluster.upgrade() {
            control.refresh(&cluster);
        }
    }
}
