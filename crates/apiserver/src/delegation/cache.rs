//! Answers that are kept for some time.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many answers are kept; as upstream.
const LIMIT: usize = 8192;

/// The key of a question that is not to stay in memory itself: no two lists of texts have the same.
pub(crate) fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> [u8; 32] {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for text in texts {
        context.update(&text.len().to_be_bytes());
        context.update(text.as_bytes());
    }
    let mut key = [0; 32];
    // it has as many bytes
    key.copy_from_slice(context.finish().as_ref());
    key
}

/// What was answered, by question.
pub(crate) struct Cache<K, V> {
    answers: Mutex<BTreeMap<K, (Instant, V)>>,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self {
            answers: Mutex::default(),
        }
    }
}

impl<K: Ord, V: Clone> Cache<K, V> {
    /// An answer that is still good.
    pub(crate) fn get(&self, question: &K) -> Option<V> {
        let answers = self.answers.lock();
        let (until, answer) = answers.get(question)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    /// Keeps an answer.
    pub(crate) fn put(&self, question: K, answer: V, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        let now = Instant::now();
        let mut answers = self.answers.lock();
        if answers.len() >= LIMIT {
            answers.retain(|_, (until, _)| now < *until);
        }
        if answers.len() >= LIMIT {
            // whoever asks so much asks again
            answers.clear();
        }
        answers.insert(question, (now + keep, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_end_and_are_few() {
        let cache = Cache::default();
        cache.put(0, "a", Duration::from_secs(10));
        cache.put(1, "b", Duration::ZERO);
        assert_eq!((cache.get(&0), cache.get(&1)), (Some("a"), None));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(cache.get(&0), None);
        for question in 0..=LIMIT {
            cache.put(question, "c", Duration::from_secs(10));
        }
        assert!(cache.answers.lock().len() <= LIMIT);
        assert_eq!(cache.get(&LIMIT), Some("c"));
    }
}
