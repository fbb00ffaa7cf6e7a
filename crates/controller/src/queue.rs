//! The work queue of a controller: each key at most once, never handed out twice at a time, later or after a back-off.
//!
//! Delays use tokio's time and no task of their own, so that a paused runtime runs them in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How long a key may wait for more of what it is about to change: what happens to many objects at once is then one piece of work.
pub const GATHERING: Duration = Duration::from_millis(1);

/// How long a key that keeps failing waits: `base · 2^failures`, at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// After the first failure.
    pub base: Duration,
    /// At most.
    pub max: Duration,
}

impl Default for RateLimit {
    /// 5 ms to 16 min 40 s, as client-go's default.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(5),
            max: Duration::from_secs(1000),
        }
    }
}

impl RateLimit {
    /// The wait after `failures` failures before this one.
    pub fn delay(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }
}

/// A queue of keys. Clones are handles on the same queue.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

struct Shared<K> {
    state: Mutex<State<K>>,
    limit: RateLimit,
    wake: Notify,
}

struct State<K> {
    /// What is to be handed out, in order.
    order: VecDeque<K>,
    /// What is in `order`, or is to be put there when the one at work is done.
    dirty: BTreeSet<K>,
    working: BTreeSet<K>,
    /// What comes later, by time and then by order of asking.
    later: BTreeMap<(Instant, u64), K>,
    due: BTreeMap<K, (Instant, u64)>,
    asked: u64,
    failures: BTreeMap<K, u32>,
    closed: bool,
}

impl<K: Ord + Clone> State<K> {
    fn add(&mut self, key: K) {
        if self.closed || !self.dirty.insert(key.clone()) {
            return;
        }
        if !self.working.contains(&key) {
            self.order.push_back(key);
        }
    }

    fn add_at(&mut self, key: K, at: Instant) {
        if self.closed {
            return;
        }
        if let Some(scheduled) = self.due.get(&key) {
            if scheduled.0 <= at {
                return;
            }
            self.later.remove(scheduled);
        }
        self.asked += 1;
        let slot = (at, self.asked);
        self.later.insert(slot, key.clone());
        self.due.insert(key, slot);
    }

    /// Moves what is due into the queue.
    fn ripen(&mut self, now: Instant) {
        while let Some(first) = self.later.first_entry()
            && first.key().0 <= now
        {
            let key = first.remove();
            self.due.remove(&key);
            self.add(key);
        }
    }
}

impl<K: Ord + Clone> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone> Queue<K> {
    /// An empty queue with client-go's back-off.
    pub fn new() -> Self {
        Self::with_limit(RateLimit::default())
    }

    /// An empty queue with the given back-off.
    pub fn with_limit(limit: RateLimit) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    order: VecDeque::new(),
                    dirty: BTreeSet::new(),
                    working: BTreeSet::new(),
                    later: BTreeMap::new(),
                    due: BTreeMap::new(),
                    asked: 0,
                    failures: BTreeMap::new(),
                    closed: false,
                }),
                limit,
                wake: Notify::new(),
            }),
        }
    }

    /// Puts a key at the end, unless it waits already. A key at work comes again when its work is done.
    pub fn add(&self, key: K) {
        self.shared.state.lock().add(key);
        self.shared.wake.notify_one();
    }

    /// Puts a key at the end after `delay`; asked twice, the earlier time counts. If it is handed out before, that was it.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let at = Instant::now() + delay;
        self.shared.state.lock().add_at(key, at);
        self.shared.wake.notify_one();
    }

    /// Puts a key at the end after its back-off, which doubles each time until [`Queue::forget`]. Returns the back-off.
    pub fn add_rate_limited(&self, key: K) -> Duration {
        let delay = {
            let mut state = self.shared.state.lock();
            let failures = state.failures.entry(key.clone()).or_default();
            let delay = self.shared.limit.delay(*failures);
            *failures = failures.saturating_add(1);
            delay
        };
        self.add_after(key, delay);
        delay
    }

    /// Ends a key's back-off: the next failure counts as its first.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().failures.remove(key);
    }

    /// How often a key failed since it was last forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        let state = self.shared.state.lock();
        state.failures.get(key).copied().unwrap_or_default()
    }

    /// How many keys wait to be handed out now.
    pub fn len(&self) -> usize {
        let mut state = self.shared.state.lock();
        state.ripen(Instant::now());
        state.order.len()
    }

    /// Whether no key waits to be handed out now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no key waits now or later and none is at work: there is nothing left to do.
    pub fn is_idle(&self) -> bool {
        let state = self.shared.state.lock();
        state.order.is_empty() && state.later.is_empty() && state.working.is_empty()
    }

    /// Hands out the next key; [`Queue::done`] must follow. None once the queue is closed. Cancel safe.
    pub async fn next(&self) -> Option<K> {
        loop {
            let wake = self.shared.wake.notified();
            let soonest = {
                let mut state = self.shared.state.lock();
                if state.closed {
                    drop(state);
                    // One wake-up may stand for several readers.
                    self.shared.wake.notify_one();
                    return None;
                }
                state.ripen(Instant::now());
                if let Some(key) = state.order.pop_front() {
                    state.dirty.remove(&key);
                    // What was to come later comes now; whoever works on it says when it is to come again.
                    if let Some(slot) = state.due.remove(&key) {
                        state.later.remove(&slot);
                    }
                    state.working.insert(key.clone());
                    let more = !state.order.is_empty();
                    drop(state);
                    if more {
                        self.shared.wake.notify_one();
                    }
                    return Some(key);
                }
                state.later.first_key_value().map(|((at, _), _)| *at)
            };
            match soonest {
                Some(at) => tokio::select! {
                    biased;
                    () = wake => {}
                    () = sleep_until(at) => {}
                },
                None => wake.await,
            }
        }
    }

    /// Says that the work on a key is done; if it was added meanwhile, it waits again.
    pub fn done(&self, key: &K) {
        let mut state = self.shared.state.lock();
        state.working.remove(key);
        if state.dirty.contains(key) {
            state.order.push_back(key.clone());
            drop(state);
            self.shared.wake.notify_one();
        }
    }

    /// Ends the queue: nothing is handed out or taken in any more.
    pub fn close(&self) {
        self.shared.state.lock().closed = true;
        self.shared.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn now<K: Ord + Clone>(queue: &Queue<K>) -> Option<K> {
        queue.next().now_or_never().flatten()
    }

    #[tokio::test(start_paused = true)]
    async fn keys_wait_once_and_are_never_handed_out_twice() {
        let queue = Queue::new();
        for key in ["a", "b", "a"] {
            queue.add(key);
        }
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.next().await, Some("a"));
        queue.add("a");
        assert_eq!(queue.next().await, Some("b"));
        assert_eq!(now(&queue), None, "a is at work");
        queue.done(&"b");
        queue.done(&"a");
        assert_eq!(now(&queue), Some("a"));
        queue.done(&"a");
        assert!(queue.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn delays_keep_the_earliest_time_and_the_order_of_asking() {
        let queue = Queue::new();
        let start = Instant::now();
        queue.add_after("late", SECOND * 9);
        queue.add_after("b", SECOND * 2);
        queue.add_after("a", SECOND * 2);
        queue.add_after("late", SECOND * 3);
        queue.add_after("late", SECOND * 5);
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let key = queue.next().await.unwrap();
            queue.done(&key);
            seen.push((key, start.elapsed().as_secs()));
        }
        assert_eq!(seen, [("b", 2), ("a", 2), ("late", 3)]);
        assert!(queue.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_exponentially_until_forgotten() {
        let queue = Queue::with_limit(RateLimit {
            base: SECOND,
            max: SECOND * 5,
        });
        let delays: Vec<u64> = (0..4).map(|_| queue.add_rate_limited("a").as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 5]);
        assert_eq!(queue.failures(&"a"), 4);
        queue.forget(&"a");
        assert_eq!(queue.add_rate_limited("a"), SECOND);
        let limit = RateLimit::default();
        assert_eq!(limit.delay(0), Duration::from_millis(5));
        assert_eq!(limit.delay(17), Duration::from_millis(655_360));
        assert_eq!(limit.delay(18), SECOND * 1000);
        assert_eq!(limit.delay(500), SECOND * 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_wakes_all_readers() {
        let queue: Queue<u8> = Queue::new();
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for reader in readers {
            assert_eq!(reader.await.unwrap(), None);
        }
        queue.add(1);
        assert_eq!(queue.next().await, None);
    }
}
