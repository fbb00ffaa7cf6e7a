//! Whether our API server answers as kube-apiserver does: sequences of requests as data, what the real one answered, and the player that
//! compares. Nothing here is part of the product.
//!
//! - `sequences/<topic>.yaml`: what is asked ([`sequence`]); `recordings/<topic>.json`: what kube-apiserver answered.
//! - [`player`] plays a sequence against any server, [`normalize`] takes out of the answers what differs from run to run.
//! - [`webhook`] is what sequences about webhooks let the server call.
//! - [`vary`] changes sequences by chance; `conformance vary` plays them to both servers, and tells where the answers differ.
//! - `conformance record` makes the recordings anew with the real servers of `reference/` ([`reference`]); it needs Go, the tests do not.
#![forbid(unsafe_code)]

pub mod compare;
pub mod normalize;
pub mod player;
pub mod reference;
pub mod sequence;
pub mod vary;
pub mod webhook;
