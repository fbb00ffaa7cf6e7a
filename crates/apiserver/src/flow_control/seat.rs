//! What a request has of its level, and gives back when it goes, however it ends.

use std::sync::Arc;

use http::Response;
use http_body::Body as _;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::FlowControl;
use super::levels::Place;
use super::watchers::Watcher;
use crate::respond::{self, Body};

/// A request's place, in a queue or at its seats; it leaves with this value.
pub(super) struct Turn {
    control: Arc<FlowControl>,
    place: Place,
}

impl Turn {
    pub(super) fn new(control: Arc<FlowControl>, place: Place) -> Self {
        Self { control, place }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.control.leave(&self.place);
    }
}

/// The seats of a request. Of a watch also what counts it, for as long as it lasts.
pub(crate) struct Seat {
    turn: Option<Turn>,
    _watcher: Option<Watcher>,
}

impl Seat {
    pub(super) fn new(turn: Turn, watcher: Option<Watcher>) -> Self {
        Self {
            turn: Some(turn),
            _watcher: watcher,
        }
    }

    /// Gives the seats back: a watch told what it begins with, or another server serves it.
    pub(crate) fn has_begun(&mut self) {
        self.turn = None;
    }

    /// Has the seats be given back at a time at the latest; if none is told, after as long as a request may take that does not say so. Others whom the
    /// request waits for, or its client, may be slow.
    pub(crate) fn expires(&mut self, at: Option<Instant>) {
        if let Some(Turn { control, place }) = &mut self.turn {
            control.keep_until(place, at);
        }
    }

    /// Keeps the seats for as long as an answer comes piece by piece; others are there.
    pub(crate) fn hold(mut self, response: Response<Body>, until: Option<Instant>) -> Response<Body> {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        self.expires(until);
        response.map(|body| respond::at_end(body, move || drop(self)))
    }
}

/// A request that waits for its seats.
pub(crate) struct Waiting {
    seat: Seat,
    woken: oneshot::Receiver<()>,
}

impl Waiting {
    pub(super) fn new(seat: Seat, woken: oneshot::Receiver<()>) -> Self {
        Self { seat, woken }
    }

    /// Waits for the seats, until a time, or until nobody waits for the answer any more.
    ///
    /// # Errors
    /// There were none; after so many seconds they may be asked for again.
    pub(crate) async fn seat(self, until: Instant, gone: Option<&CancellationToken>) -> Result<Seat, u64> {
        let Self { seat, woken } = self;
        let is_gone = async {
            match gone {
                Some(gone) => gone.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = is_gone => {}
            served = woken => if served.is_ok() {
                return Ok(seat);
            },
            () = tokio::time::sleep_until(until) => {}
        }
        let refused = seat.turn.as_ref().and_then(|turn| turn.control.give_up(&turn.place));
        // it may have been served at this very moment
        refused.map_or(Ok(seat), Err)
    }
}
