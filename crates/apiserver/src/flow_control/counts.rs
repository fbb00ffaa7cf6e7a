//! What is counted of flows and levels, under kube-apiserver's names.

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_apimachinery::metrics::{Durations, Text};
use tokio::time::Instant;

use super::queues::{Queues, Refusal};
use super::utilization::Utilization;

/// What all of these names begin with.
const PREFIX: &str = "apiserver_flowcontrol_";

/// Upper bounds of the steps in which things are counted: seconds, lengths of queues, watches, seats.
const SECONDS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const LENGTHS: [f64; 8] = [0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const WATCHES: [f64; 6] = [0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0];
const SEATS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
/// The same for ratios: of seats, of requests, of requests that read or change, and of demand.
const OF_SEATS: [f64; 13] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const OF_REQUESTS: [f64; 10] = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const OF_KINDS: [f64; 15] = [
    0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0,
];
const OF_DEMAND: [f64; 12] = [0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];

/// The counts of one schema's requests in one level.
#[derive(Debug, Default)]
pub(super) struct FlowCounts {
    refused: BTreeMap<Refusal, u64>,
    dispatched: u64,
    found_no_room: u64,
    waiting: usize,
    seats_awaited: usize,
    serving: usize,
    seats: usize,
    lengths: Durations<{ LENGTHS.len() }>,
    /// Of those that were refused at once, and of all others.
    waits: [Durations<{ SECONDS.len() }>; 2],
    /// Of watches, and of all others.
    lasted: [Durations<{ SECONDS.len() }>; 2],
    watches: Durations<{ WATCHES.len() }>,
    estimated: Durations<{ SEATS.len() }>,
}

impl FlowCounts {
    /// A request came that will take so many seats.
    pub(super) fn came(&mut self, seats: usize) {
        self.estimated.add_value(&SEATS, seats as f64);
    }

    /// A change came that so many watches may be told of.
    pub(super) fn watched(&mut self, watches: usize) {
        self.watches.add_value(&WATCHES, watches as f64);
    }

    /// It went to a queue that is so long then.
    pub(super) fn queued(&mut self, length: usize) {
        self.lengths.add_value(&LENGTHS, length as f64);
    }

    /// It waits there.
    pub(super) fn waits(&mut self, seats: usize) {
        self.waiting += 1;
        self.seats_awaited += seats;
    }

    /// It waits no more.
    pub(super) fn waited(&mut self, seats: usize) {
        self.waiting = self.waiting.saturating_sub(1);
        self.seats_awaited = self.seats_awaited.saturating_sub(seats);
    }

    /// It was served or refused after so long; `is_in` tells whether it had got into a queue or was served.
    pub(super) fn decided(&mut self, is_in: bool, after: Duration) {
        let [refused, others] = &mut self.waits;
        let own = if is_in { others } else { refused };
        own.add(&SECONDS, after);
    }

    pub(super) fn refused(&mut self, why: Refusal) {
        *self.refused.entry(why).or_default() += 1;
    }

    pub(super) fn began(&mut self, seats: usize) {
        self.dispatched += 1;
        self.serving += 1;
        self.seats += seats;
    }

    pub(super) fn found_no_room(&mut self) {
        self.found_no_room += 1;
    }

    /// It was served for so long; its seats may be taken for longer.
    pub(super) fn ended(&mut self, watches: bool, lasted: Duration) {
        self.serving = self.serving.saturating_sub(1);
        let [of_watches, others] = &mut self.lasted;
        let own = if watches { of_watches } else { others };
        own.add(&SECONDS, lasted);
    }

    pub(super) fn gave_back(&mut self, seats: usize) {
        self.seats = self.seats.saturating_sub(seats);
    }
}

/// How much of a level is used, over time.
#[derive(Debug)]
pub(super) struct Uses {
    seats: Utilization<{ OF_SEATS.len() }>,
    serving: Utilization<{ OF_REQUESTS.len() }>,
    waiting: Utilization<{ OF_REQUESTS.len() }>,
    demand: Utilization<{ OF_DEMAND.len() }>,
}

impl Uses {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            seats: Utilization::new(now),
            serving: Utilization::new(now),
            waiting: Utilization::new(now),
            demand: Utilization::new(now),
        }
    }

    /// Takes in how much there is from now on: seats, and places in queues.
    pub(super) fn of(&mut self, seats: usize, places: usize, now: Instant) {
        self.seats.of(&OF_SEATS, seats, now);
        self.serving.of(&OF_REQUESTS, seats, now);
        self.waiting.of(&OF_REQUESTS, places, now);
        self.demand.of(&OF_DEMAND, seats, now);
    }

    /// Takes in how much is used from now on.
    pub(super) fn set(&mut self, queues: &Queues, now: Instant) {
        self.seats.set(&OF_SEATS, queues.seats_taken, now);
        self.serving.set(&OF_REQUESTS, queues.served.len(), now);
        self.waiting.set(&OF_REQUESTS, queues.waiting, now);
        self.demand.set(&OF_DEMAND, queues.demand.seats(), now);
    }
}

/// Requests of one kind: those that read, or the others.
#[derive(Debug)]
pub(super) struct KindCounts {
    pub(super) waiting: usize,
    serving: usize,
    while_waiting: Utilization<{ OF_KINDS.len() }>,
    while_served: Utilization<{ OF_KINDS.len() }>,
}

impl KindCounts {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            waiting: 0,
            serving: 0,
            while_waiting: Utilization::new(now),
            while_served: Utilization::new(now),
        }
    }

    /// Takes in how many may wait and be served from now on.
    pub(super) fn of(&mut self, places: usize, seats: usize, now: Instant) {
        self.while_waiting.of(&OF_KINDS, places, now);
        self.while_served.of(&OF_KINDS, seats, now);
    }

    /// One begins to wait, or ceases to.
    pub(super) fn waits(&mut self, begins: bool, now: Instant) {
        self.waiting = step(self.waiting, begins);
        self.while_waiting.set(&OF_KINDS, self.waiting, now);
    }

    /// One begins to be served, or ceases to.
    pub(super) fn serves(&mut self, begins: bool, now: Instant) {
        self.serving = step(self.serving, begins);
        self.while_served.set(&OF_KINDS, self.serving, now);
    }
}

fn step(number: usize, up: bool) -> usize {
    match up {
        true => number + 1,
        false => number.saturating_sub(1),
    }
}

/// Families of metrics with their samples, as they are put together level by level.
#[derive(Default)]
pub(super) struct Families(BTreeMap<&'static str, Family>);

struct Family {
    kind: &'static str,
    help: &'static str,
    samples: Text,
}

impl Families {
    fn family(&mut self, name: &'static str, kind: &'static str, help: &'static str) -> (String, &mut Text) {
        let family = self.0.entry(name).or_insert_with(|| Family {
            kind,
            help,
            samples: Text::default(),
        });
        (format!("{PREFIX}{name}"), &mut family.samples)
    }

    /// A number that holds at this moment.
    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str, labels: &str, value: f64) {
        let (name, out) = self.family(name, "gauge", help);
        out.sample(&name, labels, value);
    }

    fn counter(&mut self, name: &'static str, help: &'static str, labels: &str, value: u64) {
        if value > 0 {
            let (name, out) = self.family(name, "counter", help);
            out.sample(&name, labels, value);
        }
    }

    fn durations<const N: usize>(
        &mut self,
        (name, help): (&'static str, &'static str),
        labels: &str,
        steps: &[f64; N],
        durations: &Durations<N>,
    ) {
        if durations.number() > 0 {
            let (name, out) = self.family(name, "histogram", help);
            out.durations(&name, labels, steps, durations);
        }
    }

    /// What was counted of a schema's requests in a level.
    pub(super) fn flow(&mut self, (level, schema): (&str, &str), has_queues: bool, counts: &FlowCounts) {
        let labels = format!("flow_schema=\"{schema}\",priority_level=\"{level}\"");
        let mut gauge = |name, help, value: usize| self.gauge(name, help, &labels, value as f64);
        if has_queues {
            gauge("current_inqueue_requests", "Requests that wait.", counts.waiting);
            gauge(
                "current_inqueue_seats",
                "Seats that requests wait for.",
                counts.seats_awaited,
            );
        }
        gauge(
            "current_executing_requests",
            "Requests that are served.",
            counts.serving,
        );
        gauge("current_executing_seats", "Seats that requests take.", counts.seats);
        self.counter(
            "dispatched_requests_total",
            "Requests that were served.",
            &labels,
            counts.dispatched,
        );
        let name = "request_dispatch_no_accommodation_total";
        let help = "How often the next request needed more seats than were free.";
        self.counter(name, help, &labels, counts.found_no_room);
        for (why, number) in &counts.refused {
            let labels = format!("{labels},reason=\"{}\"", why.name());
            let help = "Requests that were refused, by why.";
            self.counter("rejected_requests_total", help, &labels, *number);
        }
        let about = (
            "request_queue_length_after_enqueue",
            "How many waited in a request's queue with it.",
        );
        self.durations(about, &labels, &LENGTHS, &counts.lengths);
        let about = ("request_wait_duration_seconds", "How long requests waited, in seconds.");
        for (waits, executes) in counts.waits.iter().zip(["false", "true"]) {
            let labels = format!("execute=\"{executes}\",{labels}");
            self.durations(about, &labels, &SECONDS, waits);
        }
        let about = (
            "request_execution_seconds",
            "How long requests were served, of watches how long they took to begin, in seconds.",
        );
        for (lasted, kind) in counts.lasted.iter().zip(["watch", "regular"]) {
            self.durations(about, &format!("{labels},type=\"{kind}\""), &SECONDS, lasted);
        }
        let about = ("watch_count_samples", "How many watches changes may have been told to.");
        self.durations(about, &labels, &WATCHES, &counts.watches);
        let about = ("work_estimated_seats", "How many seats requests were taken to need.");
        self.durations(about, &labels, &SEATS, &counts.estimated);
    }

    /// How much of a level was used.
    pub(super) fn uses(&mut self, level: &str, uses: &mut Uses, now: Instant) {
        let labels = format!("priority_level=\"{level}\"");
        let executing = format!("phase=\"executing\",{labels}");
        let help = "For how many nanoseconds how much of its seats a level could use.";
        let (name, out) = self.family("demand_seats", "histogram", help);
        uses.demand.tell(out, &name, &labels, &OF_DEMAND, now);
        let help = "For how many nanoseconds how much of its seats a level used.";
        let (name, out) = self.family("priority_level_seat_utilization", "histogram", help);
        uses.seats.tell(out, &name, &executing, &OF_SEATS, now);
        let help = "For how many nanoseconds how many requests a level had, in relation to those it may have.";
        let (name, out) = self.family("priority_level_request_utilization", "histogram", help);
        uses.serving.tell(out, &name, &executing, &OF_REQUESTS, now);
        let waiting = format!("phase=\"waiting\",{labels}");
        uses.waiting.tell(out, &name, &waiting, &OF_REQUESTS, now);
    }

    /// How many requests of a kind there were.
    pub(super) fn kind(&mut self, kind: &str, counts: &mut KindCounts, now: Instant) {
        let help = "For how many nanoseconds how many requests there were, in relation to those there may be.";
        let (name, out) = self.family("read_vs_write_current_requests", "histogram", help);
        for (phase, own) in [
            ("executing", &mut counts.while_served),
            ("waiting", &mut counts.while_waiting),
        ] {
            let labels = format!("phase=\"{phase}\",request_kind=\"{kind}\"");
            own.tell(out, &name, &labels, &OF_KINDS, now);
        }
    }

    /// Writes them all.
    pub(super) fn tell(self, out: &mut Text) {
        for (name, family) in self.0 {
            out.family(&format!("{PREFIX}{name}"), family.kind, family.help);
            out.append(&family.samples);
        }
    }
}
