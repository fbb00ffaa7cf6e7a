//! The calls to etcd: one connection at a time, the next member when one fails.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::codec::Streaming;
use tonic::transport::Channel;
use tonic::{Code, ConnectError, Request, Status};
use tonic_prost::ProstCodec;

use super::config::{EtcdConfig, EtcdError};
use super::wire;

/// How long etcd may take to answer a call. Its own bound on a proposal is seven seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long until a call that did not reach etcd is made again.
const RETRY: Duration = Duration::from_millis(100);
/// What etcd says of a request that is larger than it takes.
const TOO_LARGE: &str = "etcdserver: request is too large";

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// etcd has not done it.
    NotDone(Arc<str>),
    /// etcd may have done it, or do it yet.
    Unknown(Arc<str>),
    /// etcd refused it, and will again.
    Refused(Arc<str>),
    /// The request is larger than etcd takes.
    TooLarge,
    /// History was cut behind what was asked for.
    Compacted,
    /// The value at this place is encrypted and cannot be read.
    Encrypted(Arc<str>, crate::CipherError),
}

impl CallError {
    pub(super) fn reason(&self) -> Arc<str> {
        match self {
            Self::NotDone(reason) | Self::Unknown(reason) | Self::Refused(reason) => Arc::clone(reason),
            Self::TooLarge => TOO_LARGE.into(),
            Self::Compacted => "the history asked for was cut".into(),
            Self::Encrypted(place, reason) => {
                let hint = "start the server with an encryption configuration that has its key";
                format!("{place} cannot be read: {reason}; {hint}").into()
            }
        }
    }
}

/// When a call that failed is made again.
#[derive(Clone, Copy, Debug)]
enum Again {
    /// While it was certainly not done: it may change something.
    Undone,
    /// While etcd may answer another time: it changes nothing, or does no harm twice.
    Harmless,
}

impl Again {
    fn after(self, error: &CallError) -> bool {
        match error {
            CallError::NotDone(_) => true,
            CallError::Unknown(_) => matches!(self, Self::Harmless),
            _ => false,
        }
    }
}

/// An error with all its causes.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = error.to_string();
        if !text.contains(&own) {
            // writing into memory cannot fail
            let _ = write!(text, ": {own}");
        }
        cause = error.source();
    }
    text
}

/// Whether a call failed before it reached anybody.
fn never_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

pub(super) fn classify(status: &Status) -> CallError {
    let message = status.message();
    let reason: Arc<str> = match std::error::Error::source(status).map(told) {
        Some(cause) if cause.contains(message) => cause.into(),
        Some(cause) => format!("{message}: {cause}").into(),
        None if message.is_empty() => status.code().description().into(),
        None => message.into(),
    };
    if never_sent(status) {
        return CallError::NotDone(reason);
    }
    match status.code() {
        Code::InvalidArgument if message == TOO_LARGE => CallError::TooLarge,
        Code::ResourceExhausted if message.contains("message larger than max") => CallError::TooLarge,
        Code::OutOfRange if message.contains("compacted") => CallError::Compacted,
        // told before the request becomes a proposal
        Code::Unavailable if message == "etcdserver: no leader" || message == "etcdserver: not capable" => {
            CallError::NotDone(reason)
        }
        Code::ResourceExhausted if message == "etcdserver: too many requests" => CallError::NotDone(reason),
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Cancelled
        | Code::Unknown
        | Code::Internal
        | Code::Aborted
        | Code::DataLoss => CallError::Unknown(reason),
        _ => CallError::Refused(reason),
    }
}

#[derive(Debug)]
pub(super) struct Client {
    members: Vec<Channel>,
    current: AtomicUsize,
}

impl Client {
    pub(super) fn new(config: &EtcdConfig) -> Result<Self, EtcdError> {
        let members = config
            .ways()?
            .iter()
            .map(tonic::transport::Endpoint::connect_lazy)
            .collect();
        Ok(Self {
            members,
            current: AtomicUsize::new(0),
        })
    }

    /// The member that is asked now, and its number.
    fn member(&self) -> Result<(usize, Channel), CallError> {
        let count = self.members.len().max(1);
        let number = self.current.load(Ordering::Relaxed) % count;
        let channel = self.members.get(number).cloned();
        channel
            .map(|channel| (number, channel))
            .ok_or_else(|| CallError::Refused("there is no etcd server".into()))
    }

    /// This member failed: the next one is asked from now on.
    pub(super) fn leave(&self, number: usize) {
        let next = (number + 1) % self.members.len().max(1);
        // another caller may have left it already
        let _ = self
            .current
            .compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    async fn once<Q, A>(&self, path: &'static str, request: Q, deadline: Instant) -> Result<A, CallError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + Send + 'static,
    {
        let (number, channel) = self.member()?;
        let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
        let call = async {
            grpc.ready()
                .await
                .map_err(|error| CallError::NotDone(told(&error).into()))?;
            let codec = ProstCodec::<Q, A>::default();
            let answer = grpc
                .unary(Request::new(request), PathAndQuery::from_static(path), codec)
                .await;
            answer
                .map(tonic::Response::into_inner)
                .map_err(|status| classify(&status))
        };
        let answered = timeout_at(deadline, call).await;
        let answered = answered.unwrap_or_else(|_| Err(CallError::Unknown("etcd did not answer in time".into())));
        if matches!(answered, Err(CallError::NotDone(_) | CallError::Unknown(_))) {
            self.leave(number);
        }
        answered
    }

    /// A call that is made again while it may be.
    async fn call<Q, A>(&self, path: &'static str, request: Q, again: Again) -> Result<A, CallError>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + Send + 'static,
    {
        let deadline = Instant::now() + CALL_TIMEOUT;
        loop {
            match self.once(path, request.clone(), deadline).await {
                Err(error) if again.after(&error) && Instant::now() + RETRY < deadline => sleep(RETRY).await,
                other => return other,
            }
        }
    }

    pub(super) async fn range(&self, request: wire::RangeRequest) -> Result<wire::RangeResponse, CallError> {
        self.call("/etcdserverpb.KV/Range", request, Again::Harmless).await
    }

    pub(super) async fn txn(&self, request: wire::TxnRequest) -> Result<wire::TxnResponse, CallError> {
        self.call("/etcdserverpb.KV/Txn", request, Again::Undone).await
    }

    pub(super) async fn compact(&self, revision: crate::Revision) -> Result<(), CallError> {
        let request = wire::CompactionRequest {
            revision: wire::signed(revision),
        };
        let path = "/etcdserverpb.KV/Compact";
        let compacted: Result<wire::CompactionResponse, _> = self.call(path, request, Again::Harmless).await;
        match compacted {
            // it was cut there or behind already
            Ok(_) | Err(CallError::Compacted) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A new lease; its id.
    pub(super) async fn grant(&self, time_to_live: Duration) -> Result<i64, CallError> {
        let request = wire::LeaseGrantRequest {
            ttl: wire::signed(time_to_live.as_secs()),
        };
        let path = "/etcdserverpb.Lease/LeaseGrant";
        let granted: wire::LeaseGrantResponse = self.call(path, request, Again::Harmless).await?;
        Ok(granted.id)
    }

    /// A stream of watches: what is sent into `requests` goes to etcd.
    pub(super) async fn watch(
        &self,
        mut requests: mpsc::UnboundedReceiver<wire::WatchRequest>,
    ) -> Result<(usize, Streaming<wire::WatchResponse>), CallError> {
        let (number, channel) = self.member()?;
        let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
        let open = async {
            grpc.ready()
                .await
                .map_err(|error| CallError::NotDone(told(&error).into()))?;
            let mut request = Request::new(futures::stream::poll_fn(move |context| requests.poll_recv(context)));
            // a member that is cut off from the others ends the watch instead of being silent
            request
                .metadata_mut()
                .insert("hasleader", tonic::metadata::MetadataValue::from_static("true"));
            let codec = ProstCodec::<wire::WatchRequest, wire::WatchResponse>::default();
            let answer = grpc
                .streaming(request, PathAndQuery::from_static("/etcdserverpb.Watch/Watch"), codec)
                .await;
            answer
                .map(tonic::Response::into_inner)
                .map_err(|status| classify(&status))
        };
        let opened = tokio::time::timeout(CALL_TIMEOUT, open).await;
        let opened = opened.unwrap_or_else(|_| Err(CallError::NotDone("etcd did not answer in time".into())));
        if opened.is_err() {
            self.leave(number);
        }
        opened.map(|stream| (number, stream))
    }
}
