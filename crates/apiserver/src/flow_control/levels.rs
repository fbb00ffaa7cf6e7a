//! All levels of priority of a server, and what time does to them: seats are divided anew every ten seconds, and seats that are taken for longer than
//! their request come free.
//!
//! Nothing here runs by itself. Whoever comes tells what time it is, and what should have happened meanwhile is made up for, in its order and at its
//! times; so a server without requests costs nothing. Only while requests wait somebody must come in time ([`Levels::next`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::metrics::Text;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::config::{Config, Excess, LevelSpec};
use super::counts::{Families, FlowCounts, KindCounts, Uses};
use super::demand::{History, PERIOD};
use super::estimate::Work;
use super::queues::{Change, Entry, Left, Lingering, Queues, Refusal};
use super::refusals::Refusals;
use super::request::Asked;
use super::shares::{Bounds, Claim, divide};

/// How much of its seats one request of a level may take.
const PART_OF_ONE: f64 = 0.15;

/// The levels of a server.
#[derive(Debug)]
pub(super) struct Levels {
    /// How many seats there are.
    total: usize,
    config: Arc<Config>,
    levels: BTreeMap<Arc<str>, Level>,
    /// The sum of what shares give: some more than there are.
    nominal: usize,
    /// When seats are divided the next time.
    next_division: Instant,
    /// The fraction of its demand that each level got the last time.
    fraction: f64,
    ends: BTreeMap<(Instant, u64), End>,
    /// How many numbers were given out.
    numbered: u64,
    reading: KindCounts,
    changing: KindCounts,
    /// Whether somebody comes in time while requests wait.
    pub(super) is_kept: bool,
}

/// What comes to an end at a known time.
#[derive(Debug)]
enum End {
    /// Seats that were taken for longer than their request.
    Lingering {
        level: Arc<str>,
        schema: Arc<str>,
        seats: Lingering,
    },
    /// A request that keeps its seats for no longer.
    Overdue(Place),
}

#[derive(Debug)]
pub(super) struct Level {
    pub(super) spec: LevelSpec,
    /// Whether it is configured no more, and stays until it is empty.
    pub(super) leaving: bool,
    pub(super) queues: Queues,
    bounds: Bounds,
    history: History,
    target: f64,
    /// Whether it was told how many seats it has.
    has_limit: bool,
    /// How many seats one request may take, if that is bounded.
    most_of_one: Option<usize>,
    flows: BTreeMap<Arc<str>, FlowCounts>,
    refusals: Refusals,
    uses: Uses,
}

/// Where a request is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    asked: Arc<Asked>,
    id: u64,
    queue: Option<usize>,
    /// When it loses its seats.
    overdue: Option<Instant>,
}

/// How a request was taken in.
pub(super) enum Entered {
    /// It is served, or waits to be: then it is told when it is its turn.
    In(Place, Option<oneshot::Receiver<()>>),
    /// It is refused, and may come again after so many seconds.
    Refused(u64),
}

impl Levels {
    /// A server's, with so many seats.
    pub(super) fn new(total: usize, now: Instant) -> Self {
        Self {
            total,
            config: Arc::default(),
            levels: BTreeMap::new(),
            nominal: 0,
            next_division: now + PERIOD,
            fraction: 0.0,
            ends: BTreeMap::new(),
            numbered: 0,
            reading: KindCounts::new(now),
            changing: KindCounts::new(now),
            is_kept: false,
        }
    }

    /// Takes in another configuration.
    pub(super) fn configure(&mut self, config: Arc<Config>, now: Instant) {
        self.advance(now);
        self.config = config;
        self.reconfigure(now);
    }

    fn reconfigure(&mut self, now: Instant) {
        let wanted = &self.config.levels;
        self.levels
            .retain(|name, level| wanted.contains_key(name) || !level.queues.is_empty());
        for (name, level) in &mut self.levels {
            level.leaving = !wanted.contains_key(name);
        }
        for (name, spec) in wanted {
            match self.levels.get_mut(name) {
                Some(level) => level.spec = spec.clone(),
                None => {
                    self.levels.insert(Arc::clone(name), Level::new(spec.clone(), now));
                }
            }
        }
        let shares = self.levels.values().map(|level| u64::from(level.spec.share.shares));
        let shares: u64 = shares.sum();
        self.nominal = 0;
        let mut places = 0;
        for level in self.levels.values_mut() {
            level.bounds = level.spec.share.bounds(self.total, shares);
            self.nominal += level.bounds.nominal;
            level.most_of_one = None;
            if let Excess::Queued { queues, hand, length } = level.spec.excess {
                places += queues * length;
                let nominal = level.bounds.nominal;
                let part = (nominal as f64 * PART_OF_ONE).ceil() as usize;
                level.most_of_one = Some(part.min(nominal / hand.max(1)).max(1));
            }
            level.end_period(now);
            if !level.has_limit {
                // where no division can be made it begins with this
                let Bounds { nominal, lower, .. } = level.bounds;
                level.limit(nominal - (nominal - lower) / 2, self.total, now);
            }
        }
        for kind in [&mut self.reading, &mut self.changing] {
            kind.of(places, self.nominal, now);
        }
        self.divide(now);
    }

    /// Divides the seats by what the last period told.
    fn divide(&mut self, now: Instant) {
        let mut left = self.nominal as f64;
        let (mut lower, mut least) = (0, 0);
        let mut claims = Vec::new();
        for level in self.levels.values_mut() {
            let own = level.least();
            level.target = (own as f64).max(level.history.smoothed);
            if level.is_exempt() {
                left -= own as f64;
                continue;
            }
            lower += level.bounds.lower;
            least += own;
            claims.push(Claim {
                lower: own as f64,
                upper: level.bounds.upper as f64,
                target: level.target,
            });
        }
        let (lower, least) = (lower as f64, least as f64);
        // who may not be held up leaves less than the others need
        let is_short = left <= least;
        let part = match left > lower {
            true => (left - lower) / (least - lower),
            false => 0.0,
        };
        let divided = (!is_short).then(|| divide(self.nominal, &claims)).flatten();
        self.fraction = divided.as_ref().map_or(0.0, |(_, fraction)| *fraction);
        let mut divided = divided.map(|(given, _)| given.into_iter());
        for level in self.levels.values_mut() {
            let (lower, least) = (level.bounds.lower, level.least());
            let limit = if level.is_exempt() {
                least
            } else if is_short {
                lower + (least.saturating_sub(lower) as f64 * part).round() as usize
            } else {
                let given = divided.as_mut().and_then(Iterator::next);
                given.map_or(level.queues.limit(), |given| given.round() as usize)
            };
            level.limit(limit, self.total, now);
        }
        self.settle(now);
    }

    /// Makes up for all that should have happened by now.
    pub(super) fn advance(&mut self, now: Instant) {
        loop {
            let end = self.ends.first_key_value().map(|((at, _), _)| *at);
            if end.is_some_and(|at| at <= now && at < self.next_division) {
                if let Some(((at, _), end)) = self.ends.pop_first() {
                    self.end(end, at);
                }
                continue;
            }
            let at = self.next_division;
            if at > now {
                return;
            }
            for level in self.levels.values_mut() {
                level.end_period(at);
            }
            self.divide(at);
            // nothing changes before the next end
            let until = end.map_or(now, |end| end.min(now));
            let still = until.saturating_duration_since(at).as_nanos() / PERIOD.as_nanos();
            let still = u32::try_from(still).unwrap_or(u32::MAX);
            let last = at + PERIOD * still;
            if still > 0 {
                for level in self.levels.values_mut() {
                    let Level { history, queues, .. } = level;
                    history.add_still(&mut queues.demand, u64::from(still), last);
                }
                self.divide(last);
            }
            self.next_division = last + PERIOD;
        }
    }

    /// When somebody must come, if requests wait.
    pub(super) fn next(&self) -> Option<Instant> {
        let waits = self.levels.values().any(|level| level.queues.waiting > 0);
        let end = self.ends.first_key_value().map(|((at, _), _)| *at);
        waits.then(|| end.map_or(self.next_division, |end| end.min(self.next_division)))
    }

    fn end(&mut self, end: End, now: Instant) {
        match end {
            End::Lingering { level, schema, seats } => {
                let Some(own) = self.levels.get_mut(&level) else { return };
                own.queues.give_back(&seats, now);
                if let Some(flow) = own.flows.get_mut(&schema) {
                    flow.gave_back(seats.seats);
                }
                self.settle_level(&level, now);
            }
            End::Overdue(place) => {
                self.take_out(&place, now);
            }
        }
    }

    /// Takes in a request; `flow` is the number of its flow. None, if its level is not there any more.
    pub(super) fn enter(
        &mut self,
        asked: Arc<Asked>,
        (work, flow): (Work, u64),
        now: Instant,
        second: i64,
    ) -> Option<Entered> {
        self.advance(now);
        self.numbered += 1;
        let id = self.numbered;
        let name = Arc::clone(&asked.schema.level);
        let level = self.levels.get_mut(&name)?;
        let estimate = work.estimate(level.most_of_one);
        let is_exempt = level.is_exempt();
        let flows = level.flows.entry(Arc::clone(&asked.schema.name)).or_default();
        flows.came(estimate.seats());
        if let Work::Changes(watches) = work {
            flows.watched(watches);
        }
        let entry = Entry {
            asked: Arc::clone(&asked),
            estimate,
            arrived: now,
        };
        let begun = match level.queues.begin(id, entry, flow, now) {
            Ok(begun) => begun,
            Err(why) => {
                if !is_exempt {
                    flows.decided(false, Duration::ZERO);
                }
                flows.refused(why);
                return Some(Entered::Refused(level.refusals.add(second)));
            }
        };
        if begun.queue.is_some() {
            flows.queued(begun.length);
        }
        let mut woken = None;
        if let Some(queue) = begun.queue.filter(|_| !begun.served) {
            flows.waits(estimate.seats());
            woken = level.queues.wake(id, queue);
            self.kind(&asked).waits(true, now);
        }
        let place = Place {
            asked,
            id,
            queue: begun.queue,
            overdue: None,
        };
        self.settle_level(&name, now);
        Some(Entered::In(place, woken))
    }

    /// Ends a request, wherever it is. If it waited, it is refused, and may come again after so many seconds.
    pub(super) fn leave(&mut self, place: &Place, now: Instant, second: i64) -> Option<u64> {
        self.advance(now);
        if let Some(overdue) = place.overdue {
            self.ends.remove(&(overdue, place.id));
        }
        let waited = self.take_out(place, now);
        let level = self.levels.get_mut(&place.asked.schema.level)?;
        waited.then(|| level.refusals.add(second))
    }

    /// Whether a request waits.
    pub(super) fn waits(&self, place: &Place) -> bool {
        let level = self.levels.get(&place.asked.schema.level);
        level.is_some_and(|level| level.queues.waits(place.id, place.queue))
    }

    /// Has a request lose its seats at a time, if it still has them then.
    pub(super) fn keep_until(&mut self, place: &mut Place, until: Instant) {
        if place.overdue.is_some() {
            return;
        }
        place.overdue = Some(until);
        self.ends.insert((until, place.id), End::Overdue(place.clone()));
    }

    /// Ends a request; whether it waited.
    fn take_out(&mut self, place: &Place, now: Instant) -> bool {
        let asked = &place.asked;
        let (name, schema) = (&asked.schema.level, &asked.schema.name);
        let Some(level) = self.levels.get_mut(name) else {
            return false;
        };
        let is_exempt = level.is_exempt();
        let Some(left) = level.queues.end(place.id, place.queue, now) else {
            return false;
        };
        let mut flow = level.flows.get_mut(schema);
        let waited = matches!(left, Left::Waited(_));
        match left {
            Left::Waited(entry) => {
                if let Some(flow) = &mut flow {
                    flow.waited(entry.estimate.seats());
                    flow.refused(Refusal::TimeOut);
                    if !is_exempt {
                        flow.decided(true, now.saturating_duration_since(entry.arrived));
                    }
                }
                self.kind(asked).waits(false, now);
            }
            Left::Served { entry, lasted, lingers } => {
                if let Some(flow) = &mut flow {
                    flow.ended(asked.watches, lasted);
                }
                match lingers {
                    Some(seats) => {
                        self.numbered += 1;
                        let end = End::Lingering {
                            level: Arc::clone(name),
                            schema: Arc::clone(schema),
                            seats,
                        };
                        self.ends.insert((seats.until, self.numbered), end);
                    }
                    None => {
                        if let Some(flow) = flow {
                            flow.gave_back(entry.estimate.seats());
                        }
                    }
                }
                self.kind(asked).serves(false, now);
            }
        }
        self.settle_level(name, now);
        waited
    }

    fn kind(&mut self, asked: &Asked) -> &mut KindCounts {
        match asked.changes {
            true => &mut self.changing,
            false => &mut self.reading,
        }
    }

    /// Counts what happened in all levels.
    fn settle(&mut self, now: Instant) {
        for level in self.levels.values_mut() {
            level.settle((&mut self.reading, &mut self.changing), now);
        }
    }

    /// Counts what happened in a level, and forgets it if it is to be no more.
    fn settle_level(&mut self, name: &Arc<str>, now: Instant) {
        let Some(level) = self.levels.get_mut(name) else { return };
        level.settle((&mut self.reading, &mut self.changing), now);
        if level.leaving && level.queues.is_empty() {
            self.reconfigure(now);
        }
    }

    /// The levels by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Level)> {
        self.levels.iter().map(|(name, level)| (&**name, level))
    }

    /// How many requests wait that read, and others.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.reading.waiting, self.changing.waiting)
    }

    /// Writes what was counted in Prometheus' text form.
    pub(super) fn tell(&mut self, out: &mut Text, now: Instant) {
        self.advance(now);
        let mut families = Families::default();
        for (name, level) in &mut self.levels {
            level.tell(name, &mut families, now);
        }
        families.kind("readOnly", &mut self.reading, now);
        families.kind("mutating", &mut self.changing, now);
        let help = "The fraction of what they could use that all levels get.";
        families.gauge("seat_fair_frac", help, "", self.fraction);
        families.tell(out);
    }
}

impl Level {
    fn new(spec: LevelSpec, now: Instant) -> Self {
        Self {
            queues: Queues::new(spec.excess, now),
            spec,
            leaving: false,
            bounds: Bounds::default(),
            history: History::default(),
            target: 0.0,
            has_limit: false,
            most_of_one: None,
            flows: BTreeMap::new(),
            refusals: Refusals::default(),
            uses: Uses::new(now),
        }
    }

    fn is_exempt(&self) -> bool {
        self.spec.excess == Excess::Served
    }

    /// Ends a period of its demand.
    fn end_period(&mut self, now: Instant) {
        self.history.add(self.queues.demand.end(now));
    }

    /// How many seats it is to have at least: those that it needed in the last period, as far as they are its own.
    fn least(&self) -> usize {
        let Bounds { nominal, lower, .. } = self.bounds;
        let needed = self.history.last.most;
        lower.max(if self.is_exempt() { needed } else { needed.min(nominal) })
    }

    fn limit(&mut self, limit: usize, total: usize, now: Instant) {
        // a level without seats is told in relation to a tenth of all
        let seats = match limit {
            0 => (total as f64 / 10.0).round() as usize,
            limit => limit,
        };
        let places = match self.spec.excess {
            Excess::Queued { queues, length, .. } => queues * length,
            Excess::Served | Excess::Refused => 1,
        };
        self.has_limit = true;
        self.uses.of(seats, places, now);
        self.queues.configure(self.spec.excess, limit, now);
    }

    /// Counts what happened.
    fn settle(&mut self, (reading, changing): (&mut KindCounts, &mut KindCounts), now: Instant) {
        let is_exempt = self.is_exempt();
        for change in self.queues.changes.drain(..) {
            let (Change::Began { entry, .. } | Change::FoundNoRoom(entry)) = &change;
            let Some(flow) = self.flows.get_mut(&entry.asked.schema.name) else {
                continue;
            };
            let seats = entry.estimate.seats();
            match change {
                Change::FoundNoRoom(_) => flow.found_no_room(),
                Change::Began { entry, waited } => {
                    let kind = match entry.asked.changes {
                        true => &mut *changing,
                        false => &mut *reading,
                    };
                    if waited {
                        flow.waited(seats);
                        kind.waits(false, now);
                    }
                    if !is_exempt {
                        flow.decided(true, now.saturating_duration_since(entry.arrived));
                    }
                    flow.began(seats);
                    kind.serves(true, now);
                }
            }
        }
        self.uses.set(&self.queues, now);
    }

    fn tell(&mut self, name: &str, families: &mut Families, now: Instant) {
        let labels = format!("priority_level=\"{name}\"");
        let Bounds { nominal, lower, upper } = self.bounds;
        let period = self.history.last;
        let mut gauge = |name, help, value: f64| families.gauge(name, help, &labels, value);
        gauge(
            "nominal_limit_seats",
            "Seats that a level's shares give.",
            nominal as f64,
        );
        gauge("lower_limit_seats", "Seats that a level keeps.", lower as f64);
        gauge(
            "upper_limit_seats",
            "Seats that a level has with all it may borrow.",
            upper as f64,
        );
        gauge(
            "current_limit_seats",
            "Seats that a level has now.",
            self.queues.limit() as f64,
        );
        let help = "The most seats that a level could have used in the last period.";
        gauge("demand_seats_high_watermark", help, period.most as f64);
        let help = "Seats that a level could have used in the last period, on average.";
        gauge("demand_seats_average", help, period.average);
        let help = "The standard deviation of the seats that a level could have used in the last period.";
        gauge("demand_seats_stdev", help, period.deviation);
        let help = "Seats that a level is taken to be able to use.";
        gauge("demand_seats_smoothed", help, self.history.smoothed);
        gauge(
            "target_seats",
            "Seats that a level is to have, if there are.",
            self.target,
        );
        let help = "Work that each queue could have had done, in seconds of a seat.";
        gauge("current_r", help, self.queues.meter().as_f64());
        if let Some(last) = self.queues.dispatch {
            let help = "The same when a request was taken from a queue for the last time.";
            gauge("dispatch_r", help, last.meter.as_f64());
            let help = "Where that request's queue stood then.";
            gauge("latest_s", help, last.taken.as_f64());
            let mut bounds = |name, help, least: f64, most: f64| {
                for (bound, value) in [("max", most), ("min", least)] {
                    families.gauge(name, help, &format!("bound=\"{bound}\",{labels}"), value);
                }
            };
            let help = "Where queues stood whose requests could have been taken then.";
            bounds("next_s_bounds", help, last.least.as_f64(), last.most.as_f64());
            let help = "The same without the work that was under way.";
            let (least, most) = (last.least_discounted.as_f64(), last.most_discounted.as_f64());
            bounds("next_discounted_s_bounds", help, least, most);
        }
        let has_queues = matches!(self.spec.excess, Excess::Queued { .. });
        for (schema, counts) in &self.flows {
            families.flow((name, schema), has_queues, counts);
        }
        families.uses(name, &mut self.uses, now);
    }
}
