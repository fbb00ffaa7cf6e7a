//! The requests of one level of priority: those that are served, and those that wait for that in queues. Each queue is given the same part of the
//! level's seats ("fair queuing for server requests" of the enhancement KEP-1040).
//!
//! A meter tells how much work each queue that is not empty could have had done since the beginning. A queue's next request is begun where the meter
//! stood when the queue's work began, and the work of those that were taken from it since; the queue whose next request would end first comes first.
//! How long a request lasts is guessed when it begins, and set right when it ended.
//!
//! No I/O and no clock: whoever calls tells what time it is. Who may wait for how long is not known here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::config::Excess;
use super::demand::Demand;
use super::request::Asked;
use super::shuffle::Hand;
use super::work::{Estimate, GUESS, SeatSeconds};

/// A request in a level.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) asked: Arc<Asked>,
    pub(super) estimate: Estimate,
    pub(super) arrived: Instant,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: u64,
    pub(super) entry: Entry,
    /// Where the meter stood when it came.
    arrived_at: SeatSeconds,
    /// Who is told when it is served.
    wakes: Option<oneshot::Sender<()>>,
}

/// A request that is served.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) entry: Entry,
    pub(super) queue: Option<usize>,
    pub(super) begun: Instant,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Waiting>,
    /// How many are served.
    pub(super) served: usize,
    /// The seats that these take, and those that took some before and whose work is not over.
    pub(super) seats: usize,
    /// Where its next request is begun.
    pub(super) next: SeatSeconds,
}

/// The sums of what waits in a queue: seats while it is served, seats in all, and work.
pub(super) type Sums = (usize, usize, SeatSeconds);

impl Queue {
    /// What all that waits in it comes to.
    pub(super) fn sums(&self) -> Sums {
        let none = (0, 0, SeatSeconds::default());
        self.waiting.iter().fold(none, |(initial, seats, work), waiting| {
            let own = waiting.entry.estimate;
            (initial + own.initial, seats + own.seats(), work + own.work())
        })
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.served == 0
    }

    /// Nothing begins before it came: who had nothing to do saves nothing up.
    fn catch_up(&mut self) {
        if let Some(oldest) = self.waiting.front() {
            self.next = self.next.max(oldest.arrived_at);
        }
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// All seats are taken, and nobody waits here.
    NoSeat,
    /// Its queue is full.
    QueueFull,
    /// It waited for too long, or nobody waits for the answer any more.
    TimeOut,
}

impl Refusal {
    /// How metrics name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NoSeat => "concurrency-limit",
            Self::QueueFull => "queue-full",
            Self::TimeOut => "time-out",
        }
    }
}

/// What became of a request that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Begun {
    /// The queue that it went to, if there are queues.
    pub(super) queue: Option<usize>,
    /// How long that was then.
    pub(super) length: usize,
    /// Whether it is served already.
    pub(super) served: bool,
}

/// What became of requests since somebody looked last; what is counted of it is the level's.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// It began to be served; it may have waited for that.
    Began { entry: Entry, waited: bool },
    /// It could be served next, but needs more seats than are free.
    FoundNoRoom(Entry),
}

/// What is left of a request that ended.
#[derive(Clone, Debug)]
pub(super) enum Left {
    /// It waited, and is served no more.
    Waited(Entry),
    /// It was served; if what it causes takes longer, its seats are to be given back later.
    Served {
        entry: Entry,
        lasted: Duration,
        lingers: Option<Lingering>,
    },
}

/// Seats that are taken for some more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lingering {
    pub(super) queue: Option<usize>,
    pub(super) seats: usize,
    pub(super) until: Instant,
}

/// The last time a request was taken from a queue: where the meter and that queue stood, and where the next requests of all queues did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatch {
    pub(super) meter: SeatSeconds,
    pub(super) taken: SeatSeconds,
    pub(super) least: SeatSeconds,
    pub(super) most: SeatSeconds,
    /// The same, without what is taken to be under way.
    pub(super) least_discounted: SeatSeconds,
    pub(super) most_discounted: SeatSeconds,
}

/// The requests of a level.
#[derive(Debug)]
pub(super) struct Queues {
    excess: Excess,
    /// How many seats may be taken.
    limit: usize,
    /// Made when they are needed for the first time. More than there should be, while what is left in them drains.
    queues: Vec<Option<Box<Queue>>>,
    meter: SeatSeconds,
    metered: Instant,
    /// The queue that a request was taken from last.
    last: usize,
    /// How many requests came.
    came: usize,
    pub(super) waiting: usize,
    pub(super) served: BTreeMap<u64, Served>,
    pub(super) seats_taken: usize,
    seats_awaited: usize,
    /// Of queues: how many are not idle, and the seats that are taken from them.
    busy: usize,
    seats_of_queues: usize,
    pub(super) demand: Demand,
    pub(super) dispatch: Option<Dispatch>,
    /// How many were served, refused and given up so far.
    pub(super) dispatched: u64,
    pub(super) refused: u64,
    pub(super) given_up: u64,
    pub(super) changes: Vec<Change>,
}

impl Queues {
    /// Nothing yet, and no seat.
    pub(super) fn new(excess: Excess, now: Instant) -> Self {
        Self {
            excess,
            limit: 0,
            queues: Vec::new(),
            meter: SeatSeconds::default(),
            metered: now,
            last: 0,
            came: 0,
            waiting: 0,
            served: BTreeMap::new(),
            seats_taken: 0,
            seats_awaited: 0,
            busy: 0,
            seats_of_queues: 0,
            demand: Demand::new(now),
            dispatch: None,
            dispatched: 0,
            refused: 0,
            given_up: 0,
            changes: Vec::new(),
        }
    }

    /// Takes in what becomes of requests that find no seat from now on, and how many seats there are.
    pub(super) fn configure(&mut self, excess: Excess, limit: usize, now: Instant) {
        self.pass(now);
        self.excess = excess;
        self.limit = limit;
        self.drop_excess();
        self.dispatch_all(now);
    }

    /// How many queues there are to be.
    fn wanted(&self) -> usize {
        match self.excess {
            Excess::Queued { queues, .. } => queues,
            Excess::Served | Excess::Refused => 0,
        }
    }

    /// All queues: as many as there are to be, and those that still drain. Those that nobody needed yet are none.
    pub(super) fn all(&self) -> impl Iterator<Item = Option<&Queue>> {
        let number = self.wanted().max(self.queues.len());
        (0..number).map(|index| self.queues.get(index)?.as_deref())
    }

    /// How many seats there are.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Where the meter stands.
    pub(super) fn meter(&self) -> SeatSeconds {
        self.meter
    }

    /// Whether nothing waits or is served.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.served.is_empty()
    }

    /// Whether nothing is left of any request.
    pub(super) fn is_empty(&self) -> bool {
        self.is_idle() && self.seats_taken == 0
    }

    /// Moves the meter on: what is there now was there since it was moved last.
    fn pass(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.metered);
        self.metered = self.metered.max(now);
        if self.busy > 0 {
            let seats = (self.seats_of_queues + self.seats_awaited).min(self.limit);
            self.meter += SeatSeconds::at_rate(seats as f64 / self.busy as f64, passed);
        }
    }

    fn note_demand(&mut self, now: Instant) {
        self.demand.set(self.seats_taken + self.seats_awaited, now);
    }

    /// Whether a request of so many seats finds them. One that is too wide for the level is served when nothing else is.
    fn has_room(&self, seats: usize) -> bool {
        match self.excess {
            Excess::Served => true,
            _ if seats > self.limit => self.served.is_empty(),
            _ => self.seats_taken + seats <= self.limit,
        }
    }

    /// Takes in a request; `id` is a number that none had before, and `flow` its flow's.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn begin(&mut self, id: u64, entry: Entry, flow: u64, now: Instant) -> Result<Begun, Refusal> {
        self.pass(now);
        let Excess::Queued { queues, hand, length } = self.excess else {
            if !self.has_room(entry.estimate.seats()) {
                self.refused += 1;
                return Err(Refusal::NoSeat);
            }
            self.serve((id, entry), None, false, now);
            return Ok(Begun {
                queue: None,
                length: 0,
                served: true,
            });
        };
        let index = self.choose(&Hand::deal(flow, queues, hand));
        let (meter, is_full) = (self.meter, self.seats_taken >= self.limit);
        let Some(queue) = self.queue_for(index) else {
            self.refused += 1;
            return Err(Refusal::QueueFull);
        };
        if is_full && queue.waiting.len() >= length {
            self.refused += 1;
            return Err(Refusal::QueueFull);
        }
        let was_idle = queue.is_idle();
        if was_idle {
            queue.next = meter;
        }
        let seats = entry.estimate.seats();
        queue.waiting.push_back(Waiting {
            id,
            entry,
            arrived_at: meter,
            wakes: None,
        });
        queue.catch_up();
        let length = queue.waiting.len();
        self.busy += usize::from(was_idle);
        self.waiting += 1;
        self.seats_awaited += seats;
        self.note_demand(now);
        // where nobody else waits it need not be looked for who is next
        let only = (self.waiting == 1).then_some(index);
        self.dispatch_from(only, now);
        Ok(Begun {
            queue: Some(index),
            length,
            served: self.served.contains_key(&id),
        })
    }

    /// The queue of a hand in which the least work waits.
    fn choose(&mut self, hand: &Hand) -> usize {
        let turn = self.came;
        self.came = self.came.wrapping_add(1);
        let work = |index: &usize| match self.queues.get(*index) {
            Some(Some(queue)) => queue.sums().2,
            _ => SeatSeconds::default(),
        };
        hand.from(turn).min_by_key(work).unwrap_or_default()
    }

    fn queue_for(&mut self, index: usize) -> Option<&mut Queue> {
        if self.queues.len() <= index {
            self.queues.resize_with(index + 1, || None);
        }
        self.queues
            .get_mut(index)
            .map(|queue| &mut **queue.get_or_insert_default())
    }

    fn queue(&mut self, index: Option<usize>) -> Option<&mut Queue> {
        self.queues.get_mut(index?)?.as_deref_mut()
    }

    /// Forgets queues that are to be no more, and that are empty.
    fn drop_excess(&mut self) {
        let wanted = self.wanted();
        while self.queues.len() > wanted {
            match self.queues.last() {
                Some(Some(queue)) if !queue.is_idle() || queue.seats > 0 => return,
                _ => self.queues.pop(),
            };
        }
    }

    /// Has whoever waits for a request told when it is served. None, if it does not wait.
    pub(super) fn wake(&mut self, id: u64, queue: usize) -> Option<oneshot::Receiver<()>> {
        let mut waiting = self.queue(Some(queue))?.waiting.iter_mut();
        let waiting = waiting.find(|waiting| waiting.id == id)?;
        let (wakes, woken) = oneshot::channel();
        waiting.wakes = Some(wakes);
        Some(woken)
    }

    /// Whether a request waits in a queue.
    pub(super) fn waits(&self, id: u64, queue: Option<usize>) -> bool {
        let queue = queue.and_then(|index| self.queues.get(index)?.as_deref());
        queue.is_some_and(|queue| queue.waiting.iter().any(|waiting| waiting.id == id))
    }

    fn serve(&mut self, (id, entry): (u64, Entry), queue: Option<usize>, waited: bool, now: Instant) {
        let seats = entry.estimate.seats();
        if let Some(queue) = self.queue(queue) {
            queue.served += 1;
            queue.seats += seats;
            queue.next += entry.estimate.work();
            queue.catch_up();
            self.seats_of_queues += seats;
        }
        self.seats_taken += seats;
        self.dispatched += 1;
        self.note_demand(now);
        self.changes.push(Change::Began {
            entry: entry.clone(),
            waited,
        });
        self.served.insert(
            id,
            Served {
                entry,
                queue,
                begun: now,
            },
        );
    }

    /// Serves as many requests as there is room for.
    fn dispatch_all(&mut self, now: Instant) {
        self.dispatch_from(None, now);
    }

    /// As [`Self::dispatch_all`]; where requests wait in one queue only, that may be told.
    fn dispatch_from(&mut self, only: Option<usize>, now: Instant) {
        while self.waiting > 0 && self.seats_taken < self.limit && self.dispatch_one(only, now) {}
    }

    /// Serves the request that would end first; whether there was room for it.
    fn dispatch_one(&mut self, only: Option<usize>, now: Instant) -> bool {
        let Some((index, dispatch)) = self.next(only) else {
            return false;
        };
        let oldest = self.queue(Some(index)).and_then(|queue| queue.waiting.front());
        let Some(mut entry) = oldest.map(|oldest| oldest.entry.clone()) else {
            return false;
        };
        let seats = entry.estimate.seats();
        if !self.has_room(seats) {
            self.changes.push(Change::FoundNoRoom(entry));
            return false;
        }
        let taken = self.queue(Some(index)).and_then(|queue| queue.waiting.pop_front());
        let Some(Waiting { id, wakes, .. }) = taken else {
            return false;
        };
        self.waiting -= 1;
        self.seats_awaited -= seats;
        self.last = index;
        self.dispatch = Some(dispatch);
        entry.estimate = entry.estimate.within(self.limit);
        self.serve((id, entry), Some(index), wakes.is_some(), now);
        if let Some(wakes) = wakes {
            // who does not wait any more gives the seat back
            let _ = wakes.send(());
        }
        true
    }

    /// The queue whose oldest request would end first. Of several, the one that comes first after the queue that was chosen last.
    fn next(&self, only: Option<usize>) -> Option<(usize, Dispatch)> {
        let number = self.queues.len();
        let steps = if only.is_some() { 1..=1 } else { 1..=number };
        let mut chosen: Option<(SeatSeconds, usize, SeatSeconds)> = None;
        let (mut least, mut least_discounted) = (SeatSeconds::MOST, SeatSeconds::MOST);
        let (mut most, mut most_discounted) = (SeatSeconds::default(), SeatSeconds::default());
        for step in steps {
            let index = only.unwrap_or((self.last + step) % number.max(1));
            let Some(Some(queue)) = self.queues.get(index) else {
                continue;
            };
            let Some(oldest) = queue.waiting.front() else { continue };
            let discounted = queue.next - SeatSeconds::of(queue.seats, GUESS);
            (least, most) = (least.min(queue.next), most.max(queue.next));
            least_discounted = least_discounted.min(discounted);
            most_discounted = most_discounted.max(discounted);
            let ends = queue.next + oldest.entry.estimate.work();
            if chosen.is_none_or(|(before, ..)| ends < before) {
                chosen = Some((ends, index, queue.next));
            }
        }
        let (_, index, taken) = chosen?;
        let dispatch = Dispatch {
            meter: self.meter,
            taken,
            least,
            most,
            least_discounted,
            most_discounted,
        };
        Some((index, dispatch))
    }

    /// Ends a request, whether it waits or is served, and serves those that find room then. None, if it has ended.
    pub(super) fn end(&mut self, id: u64, queue: Option<usize>, now: Instant) -> Option<Left> {
        self.pass(now);
        let Some(served) = self.served.remove(&id) else {
            return self.give_up(id, queue?, now).map(Left::Waited);
        };
        let (estimate, queue) = (served.entry.estimate, served.queue);
        let lasted = now.saturating_duration_since(served.begun);
        if let Some(own) = self.queue(queue) {
            own.served -= 1;
            // it was taken to last as long as was guessed
            own.next = own.next + SeatSeconds::of(estimate.initial, lasted) - SeatSeconds::of(estimate.initial, GUESS);
            own.catch_up();
            let is_idle = own.is_idle();
            self.busy -= usize::from(is_idle);
        }
        let lingering = Lingering {
            queue,
            seats: estimate.seats(),
            until: now + estimate.lingers,
        };
        let lingers = (!estimate.lingers.is_zero()).then_some(lingering);
        match lingers {
            // whoever is served next must wait for the seats
            Some(_) => self.dispatch_all(now),
            None => self.give_back(&lingering, now),
        }
        Some(Left::Served {
            entry: served.entry,
            lasted,
            lingers,
        })
    }

    /// Gives seats back that were taken for longer than their request, and serves those that find room then.
    pub(super) fn give_back(&mut self, lingering: &Lingering, now: Instant) {
        self.pass(now);
        self.seats_taken = self.seats_taken.saturating_sub(lingering.seats);
        if let Some(queue) = self.queue(lingering.queue) {
            queue.seats = queue.seats.saturating_sub(lingering.seats);
            self.seats_of_queues = self.seats_of_queues.saturating_sub(lingering.seats);
        }
        self.note_demand(now);
        self.drop_excess();
        self.dispatch_all(now);
    }

    fn give_up(&mut self, id: u64, index: usize, now: Instant) -> Option<Entry> {
        let queue = self.queue(Some(index))?;
        let place = queue.waiting.iter().position(|waiting| waiting.id == id)?;
        let waiting = queue.waiting.remove(place)?;
        queue.catch_up();
        let is_idle = queue.is_idle();
        self.busy -= usize::from(is_idle);
        self.waiting -= 1;
        self.seats_awaited -= waiting.entry.estimate.seats();
        self.refused += 1;
        self.given_up += 1;
        self.note_demand(now);
        self.drop_excess();
        // what stood behind it may find room at once
        self.dispatch_all(now);
        Some(waiting.entry)
    }
}
