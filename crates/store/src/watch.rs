//! A reader of events: a position in its topic's window, with no buffer of its own.

use std::pin::pin;
use std::sync::Arc;

use crate::index::{Index, Listener, Position};
use crate::{Event, ReadError, Revision, Topic};

/// Follows the events of one topic under a prefix. Holds no events: a reader that is slower than the window gets
/// [`ReadError::Compacted`] and lists anew.
#[derive(Debug)]
pub struct Watch {
    index: Arc<Index>,
    topic: Topic,
    prefix: Box<str>,
    position: Position,
    listener: Arc<Listener>,
}

impl Watch {
    pub(crate) fn start(index: &Arc<Index>, topic: &Topic, prefix: &str, after: Revision) -> Result<Self, ReadError> {
        let (listener, position) = index.subscribe(topic, prefix, after)?;
        Ok(Self {
            listener,
            index: Arc::clone(index),
            topic: topic.clone(),
            prefix: prefix.into(),
            position,
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
        let (event, position) = self.look()?;
        self.position = position;
        Ok(event)
    }

    /// This reader has got every event of its topic and prefix up to this revision of the store.
    pub fn caught_up(&self) -> Revision {
        match self.look() {
            Ok((Some(event), _)) => event.revision - 1,
            Ok((None, position)) => position.revision,
            // of one revision only a part may have been given
            Err(_) => self.position.revision.saturating_sub(1),
        }
    }

    fn look(&self) -> Result<(Option<Event>, Position), ReadError> {
        self.index
            .next_event(&self.topic, &self.prefix, &self.listener, self.position)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.index.unsubscribe(&self.topic, &self.prefix);
    }
}
