//! A reader of events: a position in its topic's window, with no buffer of its own.

use std::sync::Arc;

use tokio::sync::watch as signal;

use crate::index::Index;
use crate::{Event, ReadError, Revision, Topic};

/// Follows the events of one topic under a prefix. Holds no events: a reader that is slower than the window gets
/// [`ReadError::Compacted`] and lists anew.
#[derive(Debug)]
pub struct Watch {
    index: Arc<Index>,
    topic: Topic,
    prefix: Box<str>,
    position: Revision,
    wake: signal::Receiver<()>,
}

impl Watch {
    pub(crate) fn start(index: &Arc<Index>, topic: &Topic, prefix: &str, after: Revision) -> Result<Self, ReadError> {
        Ok(Self {
            wake: index.subscribe(topic, after)?,
            index: Arc::clone(index),
            topic: topic.clone(),
            prefix: prefix.into(),
            position: after,
        })
    }

    /// Waits for the next event. Cancel safe: a dropped future loses no event.
    ///
    /// # Errors
    /// [`ReadError::Compacted`]: events were missed.
    pub async fn next(&mut self) -> Result<Event, ReadError> {
        loop {
            // Seen before looking, so that an event published in between wakes again.
            self.wake.borrow_and_update();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.wake.changed().await.is_err() {
                // The sender lives in the index that this watch keeps alive.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The next event if there is one.
    ///
    /// # Errors
    /// [`ReadError::Compacted`]: events were missed.
    pub fn try_next(&mut self) -> Result<Option<Event>, ReadError> {
        match self.index.next_event(&self.topic, &self.prefix, self.position)? {
            Ok(event) => {
                self.position = event.revision;
                Ok(Some(event))
            }
            Err(seen) => {
                self.position = seen;
                Ok(None)
            }
        }
    }

    /// This reader has got every event of its topic and prefix up to this revision of the store.
    pub fn caught_up(&self) -> Revision {
        match self.index.next_event(&self.topic, &self.prefix, self.position) {
            Ok(Ok(event)) => event.revision - 1,
            Ok(Err(seen)) => seen,
            Err(_) => self.position,
        }
    }
}
