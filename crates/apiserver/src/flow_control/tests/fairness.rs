//! What becomes of requests within a level, told what time it is.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::super::config::Excess;
use super::super::queues::{Begun, Entry, Left, Lingering, Queues, Refusal};
use super::super::schema::Schema;
use super::super::work::Estimate;
use super::*;

fn asked() -> Arc<Asked> {
    let object = json!({"metadata": {"name": "s", "uid": "s"}, "spec": {"priorityLevelConfiguration": {"name": "l"}}});
    Arc::new(Asked {
        schema: Arc::new(Schema::read(serde_json::from_value(object).unwrap()).unwrap()),
        user: Arc::new(UserInfo::anonymous()),
        method: Method::GET,
        uri: Uri::from_static("/"),
        is_of_flow: true,
        watches: false,
        changes: false,
    })
}

/// A level, and what time it is in it.
struct Own {
    queues: Queues,
    asked: Arc<Asked>,
    now: Instant,
    came: u64,
}

const QUEUED: Excess = Excess::Queued {
    queues: 64,
    hand: 6,
    length: 50,
};

impl Own {
    fn new(excess: Excess, limit: usize) -> Self {
        let now = Instant::now();
        let mut queues = Queues::new(excess, now);
        queues.configure(excess, limit, now);
        Self {
            queues,
            asked: asked(),
            now,
            came: 0,
        }
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn come(&mut self, flow: &str, estimate: Estimate) -> (u64, Result<Begun, Refusal>) {
        self.came += 1;
        let entry = Entry {
            asked: Arc::clone(&self.asked),
            estimate,
            arrived: self.now,
        };
        let flow = shuffle::number("s", flow);
        (self.came, self.queues.begin(self.came, entry, flow, self.now))
    }

    fn come_in(&mut self, flow: &str, seats: usize) -> (u64, Option<usize>, bool) {
        let (id, begun) = self.come(flow, Estimate::of(seats));
        let begun = begun.unwrap();
        (id, begun.queue, begun.served)
    }

    fn end(&mut self, id: u64, queue: Option<usize>) -> Option<Lingering> {
        match self.queues.end(id, queue, self.now) {
            Some(Left::Served { lingers, .. }) => lingers,
            _ => None,
        }
    }

    /// What is served for the longest time.
    fn oldest(&self) -> Option<u64> {
        let served = self.queues.served.iter();
        served.min_by_key(|(id, one)| (one.begun, **id)).map(|(id, _)| *id)
    }

    fn is_served(&self, id: u64) -> bool {
        self.queues.served.contains_key(&id)
    }
}

#[test]
fn without_queues_who_finds_no_seat_is_refused() {
    let mut own = Own::new(Excess::Refused, 2);
    let (first, queue, served) = own.come_in("a", 1);
    assert!(served && queue.is_none());
    assert!(own.come_in("a", 1).2);
    assert_eq!(own.come("b", Estimate::of(1)).1.unwrap_err(), Refusal::NoSeat);
    own.end(first, None);
    assert!(own.come_in("b", 1).2);
    let mut exempt = Own::new(Excess::Served, 0);
    assert!((0..99).all(|_| exempt.come_in("a", 5).2));
}

#[test]
fn queues_hold_only_so_many() {
    let excess = Excess::Queued {
        queues: 1,
        hand: 1,
        length: 2,
    };
    let mut own = Own::new(excess, 1);
    assert_eq!([own.come_in("a", 1).2, own.come_in("a", 1).2], [true, false]);
    assert!(!own.come_in("b", 1).2);
    assert_eq!(own.come("c", Estimate::of(1)).1.unwrap_err(), Refusal::QueueFull);
    assert_eq!((own.queues.waiting, own.queues.refused), (2, 1));
}

#[test]
fn a_flow_of_few_requests_does_not_wait_for_one_of_many() {
    let mut own = Own::new(QUEUED, 2);
    let mut places = BTreeMap::new();
    for number in 0..120 {
        let flow = if number < 100 { "many" } else { "few" };
        let (id, queue, _) = own.come_in(flow, 1);
        places.insert(id, queue);
    }
    let few = |id: &u64| *id > 100;
    let mut ended = Vec::new();
    while let Some(id) = own.oldest() {
        own.pass(5);
        own.end(id, places[&id]);
        ended.push(id);
    }
    assert_eq!(ended.len(), 120);
    let last = ended.iter().rposition(few).unwrap();
    // many have six queues, few at least as many of their own or shared
    assert!(last < 60, "the last of few came as number {last}");
    // within a flow's queue nobody overtakes
    let mut by_queue: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for id in ended {
        by_queue.entry(places[&id]).or_default().push(id);
    }
    assert!(by_queue.values().all(|ids| ids.is_sorted()));
}

#[test]
fn flows_that_take_longer_are_served_less_often() {
    let excess = Excess::Queued {
        queues: 2,
        hand: 1,
        length: 500,
    };
    // flows of both queues
    let flow = |queue: usize| {
        let mut names = (0..).map(|number: u32| number.to_string());
        let own = names.find(|name| {
            shuffle::Hand::deal(shuffle::number("s", name), 2, 1)
                .from(0)
                .eq([queue])
        });
        own.unwrap()
    };
    let (slow, quick) = (flow(0), flow(1));
    let mut own = Own::new(excess, 1);
    let mut places = BTreeMap::new();
    for _ in 0..200 {
        for flow in [&slow, &quick] {
            let (id, queue, _) = own.come_in(flow, 1);
            places.insert(id, queue);
        }
    }
    let (mut served, mut spent) = (BTreeMap::<usize, u32>::new(), 0);
    while spent < 600 {
        let id = own.oldest().unwrap();
        let queue = places[&id].unwrap();
        let takes = if queue == 0 { 20 } else { 5 };
        own.pass(takes);
        spent += takes;
        own.end(id, Some(queue));
        *served.entry(queue).or_default() += 1;
    }
    // each gets half of the time
    assert!((14..=16).contains(&served[&0]), "{served:?}");
    assert!((57..=63).contains(&served[&1]), "{served:?}");
}

#[test]
fn wide_requests_get_their_turn() {
    let mut own = Own::new(QUEUED, 4);
    let (first, queue, _) = own.come_in("a", 3);
    let (wide, wide_queue, served) = own.come_in("b", 4);
    assert!(!served);
    own.pass(10);
    // there is a seat, but the wide one is next
    assert!(!own.come_in("c", 1).2);
    own.end(first, queue);
    assert!(own.is_served(wide) && own.queues.waiting == 1);
    own.end(wide, wide_queue);
    assert_eq!(own.queues.waiting, 0);
    // one that is wider than the level is served when nothing else is
    let mut own = Own::new(QUEUED, 2);
    let (first, queue, _) = own.come_in("a", 1);
    let (wide, ..) = own.come_in("b", 9);
    assert!(!own.is_served(wide));
    own.end(first, queue);
    assert!(own.is_served(wide));
}

#[test]
fn seats_are_kept_for_what_a_change_causes() {
    let mut own = Own::new(QUEUED, 3);
    let change = Estimate {
        initial: 1,
        last: 3,
        lingers: Duration::from_millis(20),
    };
    let (id, begun) = own.come("a", change);
    let (next, _, served) = own.come_in("b", 1);
    assert!(!served);
    let lingers = own.end(id, begun.unwrap().queue).unwrap();
    assert_eq!((lingers.seats, lingers.until - own.now), (3, change.lingers));
    assert!(!own.is_served(next) && !own.queues.is_empty());
    own.pass(20);
    own.queues.give_back(&lingers, own.now);
    assert!(own.is_served(next));
    // no more than there are
    let mut own = Own::new(QUEUED, 2);
    let (id, begun) = own.come("a", change);
    let lingers = own.end(id, begun.unwrap().queue).unwrap();
    assert_eq!((lingers.seats, lingers.until - own.now), (2, Duration::from_millis(30)));
}

#[test]
fn who_gives_up_leaves_no_trace() {
    let mut own = Own::new(QUEUED, 1);
    let (first, queue, _) = own.come_in("a", 1);
    let (second, second_queue, _) = own.come_in("a", 1);
    let mut woken = own.queues.wake(second, second_queue.unwrap()).unwrap();
    assert!(matches!(
        own.queues.end(second, second_queue, own.now),
        Some(Left::Waited(_))
    ));
    assert!(woken.try_recv().is_err());
    assert!(own.queues.end(second, second_queue, own.now).is_none());
    own.end(first, queue);
    assert!(own.queues.is_empty() && own.queues.given_up == 1);
}

#[test]
fn queues_that_are_to_be_no_more_drain() {
    let mut own = Own::new(QUEUED, 1);
    let ids: Vec<_> = (0..9).map(|number| own.come_in(&number.to_string(), 1)).collect();
    let fewer = Excess::Queued {
        queues: 1,
        hand: 1,
        length: 50,
    };
    own.queues.configure(fewer, 1, own.now);
    assert_eq!(own.come_in("x", 1).1, Some(0));
    own.queues.configure(Excess::Refused, 99, own.now);
    assert_eq!(own.queues.served.len(), 10);
    for (id, queue, _) in ids {
        own.end(id, queue);
    }
    own.end(10, Some(0));
    assert!(own.queues.is_empty());
    assert_eq!(own.queues.all().count(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Come { flow: u8, seats: usize, last: usize },
    End(usize),
    Pass(u64),
    Limit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u8..4, 1usize..4, 0usize..4).prop_map(|(flow, seats, last)| Step::Come { flow, seats, last }),
        3 => (0usize..50).prop_map(Step::End),
        2 => (0u64..30).prop_map(Step::Pass),
        1 => (3usize..9).prop_map(Step::Limit),
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    #[test]
    fn no_more_seats_are_taken_than_there_are_and_nobody_is_lost(steps in steps(), limit in 3usize..9, queues in 1usize..5) {
        let excess = Excess::Queued { queues, hand: 1, length: 3 };
        let mut own = Own::new(excess, limit);
        let mut there: Vec<(u64, Option<usize>, Option<tokio::sync::oneshot::Receiver<()>>)> = Vec::new();
        let mut lingering: Vec<Lingering> = Vec::new();
        let (mut refused, mut ended) = (0u64, 0u64);
        // when the limit sinks those that are served stay
        let mut most = limit;
        for step in steps.into_iter().chain((0..300).flat_map(|_| [Step::End(0), Step::Pass(50)])) {
            match step {
                Step::Come { flow, seats, last } => {
                    let estimate = Estimate { initial: seats, last, lingers: Duration::from_millis(5 * last as u64) };
                    let (id, begun) = own.come(&flow.to_string(), estimate);
                    match begun {
                        Err(_) => refused += 1,
                        Ok(begun) => {
                            prop_assert_eq!(begun.served, own.is_served(id));
                            let woken = (!begun.served).then(|| own.queues.wake(id, begun.queue.unwrap()).unwrap());
                            there.push((id, begun.queue, woken));
                        }
                    }
                }
                Step::End(which) if !there.is_empty() => {
                    let (id, queue, woken) = there.remove(which % there.len());
                    let was_served = own.is_served(id);
                    if let Some(mut woken) = woken {
                        // who waits knows when that is over
                        prop_assert_eq!(woken.try_recv().is_ok(), was_served);
                    }
                    match own.queues.end(id, queue, own.now) {
                        Some(Left::Served { lingers, .. }) => {
                            prop_assert!(was_served);
                            lingering.extend(lingers);
                        }
                        Some(Left::Waited(_)) => prop_assert!(!was_served),
                        None => prop_assert!(false, "{} is lost", id),
                    }
                    ended += 1;
                }
                Step::End(_) => {}
                Step::Pass(millis) => {
                    own.pass(millis);
                    let over: Vec<_> = lingering.iter().copied().filter(|one| one.until <= own.now).collect();
                    lingering.retain(|one| one.until > own.now);
                    for one in over {
                        own.queues.give_back(&one, own.now);
                    }
                }
                Step::Limit(limit) => own.queues.configure(excess, limit, own.now),
            }
            let taken = own.queues.seats_taken;
            let limit = own.queues.limit();
            prop_assert!(taken <= limit.max(most), "{} of {} seats", taken, limit);
            most = taken;
            let served: usize = own.queues.served.values().map(|one| one.entry.estimate.seats()).sum();
            let kept: usize = lingering.iter().map(|one| one.seats).sum();
            prop_assert_eq!(taken, served + kept);
            prop_assert_eq!(own.queues.waiting + own.queues.served.len(), there.len());
            // nobody waits where there is nothing else
            prop_assert!(own.queues.waiting == 0 || taken > 0);
        }
        prop_assert!(own.queues.is_empty());
        prop_assert_eq!(refused + ended, own.came);
    }
}
