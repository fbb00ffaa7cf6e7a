//! Bodies compressed on their way, by threads that may take their time.

use std::io::{self, Write as _};
use std::mem;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use super::Body;

type Encoder = GzEncoder<Vec<u8>>;

/// A body, compressed frame by frame.
pub(super) fn packed(body: Body) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let frames = stream::try_unfold((body, Some(encoder)), |(body, encoder)| async {
        match encoder {
            Some(encoder) => next(body, encoder).await.map(Some),
            None => Ok(None),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// The next bytes that come out, and what is left: without an encoder these were the last.
async fn next(mut body: Body, mut encoder: Encoder) -> io::Result<(Frame<Bytes>, (Body, Option<Encoder>))> {
    while let Some(frame) = body.frame().await {
        let Ok(plain) = frame?.into_data() else { continue };
        let written = on_own_thread(move || encoder.write_all(&plain).map(|()| encoder));
        encoder = written.await?;
        let packed = mem::take(encoder.get_mut());
        if !packed.is_empty() {
            return Ok((Frame::data(packed.into()), (body, Some(encoder))));
        }
    }
    let packed = on_own_thread(move || encoder.finish()).await?;
    Ok((Frame::data(packed.into()), (body, None)))
}

async fn on_own_thread<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
