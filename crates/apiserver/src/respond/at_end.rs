//! Bodies whose end matters to somebody.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use super::Body;

/// A body that does something at its end.
struct AtEnd<F> {
    body: Body,
    end: Option<F>,
}

impl<F: FnOnce() + Unpin> http_body::Body for AtEnd<F> {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None))
            && let Some(end) = self.end.take()
        {
            end();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Does something when a body comes to its end. Of a body that goes before that, what `end` holds goes with it.
pub(crate) fn at_end(body: Body, end: impl FnOnce() + Send + Unpin + 'static) -> Body {
    let end = Some(end);
    AtEnd { body, end }.boxed_unsync()
}
