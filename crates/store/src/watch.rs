//! A reader of events: a position in its topic's window, with no buffer of its own.

use std::pin::pin;
use std::sync::Arc;

use crate::index::{Index, Listener};
use crate::{Event, ReadError, Revision, Topic};

/// Follows the events of one topic under a prefix. Holds no events: a reader that is slower than the window gets
/// [`ReadError::Compacted`] and lists anew.
#[derive(Debug)]
pub struct Watch {
    index: Arc<Index>,
    topic: Topic,
    prefix: Box<str>,
    position: Revision,
    listener: Arc<Listener>,
}

impl Watch {
    pub(crate) fn start(index: &Arc<Index>, topic: &Topic, prefix: &str, after: Revision) -> Result<Self, ReadError> {
        Ok(Self {
            listener: index.subscribe(topic, prefix, after)?,
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
        let listener = Arc::clone(&self.listener);
        loop {
            // Listens before it looks, so that an event published in between wakes it.
            let mut woken = pin!(listener.woken());
            woken.as_mut().enable();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            woken.await;
        }
    }

    /// The next event if there is one.
    ///
    /// # Errors
    /// [`ReadError::Compacted`]: events were missed.
    pub fn try_next(&mut self) -> Result<Option<Event>, ReadError> {
        match self
            .index
            .next_event(&self.topic, &self.prefix, &self.listener, self.position)?
        {
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
        match self
            .index
            .next_event(&self.topic, &self.prefix, &self.listener, self.position)
        {
            Ok(Ok(event)) => event.revision - 1,
            Ok(Err(seen)) => seen,
            Err(_) => self.position,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.index.unsubscribe(&self.topic, &self.prefix);
    }
}
