//! Leader election by a `coordination.k8s.io` Lease: of several processes with the same lease one leads.
//!
//! Whether another holder is alive is judged by how long its record has not changed here, never by comparing clocks.

use std::time::Duration;

use gardener_apimachinery::clock::Clock;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

/// Which lease, who asks, and how fast.
#[derive(Clone, Debug)]
pub struct Election {
    /// The lease's namespace.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// Who asks; unique among the processes.
    pub identity: String,
    /// How long others wait after the last renewal before they take over.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it gives up; shorter than the lease.
    pub renew_deadline: Duration,
    /// How long to wait between attempts.
    pub retry_period: Duration,
}

impl Election {
    /// With Kubernetes' defaults: 15 s, 10 s, 2 s.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// How an election ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was canceled; the lease, if held, was given back.
    Canceled,
    /// The lease could not be renewed in time. Somebody else may lead now.
    Lost,
    /// The work ended by itself; the lease was given back.
    Finished,
}

/// Waits until this process leads, does `work`, and renews the lease meanwhile. `work` gets a token that is canceled when it must
/// end; it is dropped right after.
pub async fn lead<F, W>(client: Client, clock: &Clock, election: &Election, cancel: &CancellationToken, work: F) -> End
where
    F: FnOnce(CancellationToken) -> W,
    W: Future<Output = ()>,
{
    let mut candidate = Candidate {
        leases: Api::namespaced(client, &election.namespace),
        clock,
        election,
        seen: None,
    };
    let acquired = cancel.run_until_cancelled(async {
        while !candidate.attempt().await {
            sleep(election.retry_period).await;
        }
    });
    if acquired.await.is_none() {
        return End::Canceled;
    }
    tracing::info!(lease = election.name, identity = election.identity, "leading");
    let token = cancel.child_token();
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => End::Canceled,
        () = candidate.keep() => End::Lost,
        () = work(token.clone()) => End::Finished,
    };
    token.cancel();
    if end == End::Lost {
        tracing::error!(lease = election.name, "the lease could not be renewed in time");
    } else {
        candidate.release().await;
    }
    end
}

struct Candidate<'a> {
    leases: Api<Lease>,
    clock: &'a Clock,
    election: &'a Election,
    /// The last record seen of another holder, and since when it has been so.
    seen: Option<(LeaseSpec, Instant)>,
}

/// What a record allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// The lease is ours.
    Renew,
    /// The lease is nobody's or its holder is silent.
    Take,
    /// Its holder is alive.
    Wait,
}

/// What to do about a lease that has looked like this for `unchanged`.
fn decide(spec: &LeaseSpec, identity: &str, unchanged: Duration, own: Duration) -> Decision {
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let duration = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map_or(own, Duration::from_secs);
    if holder == identity {
        Decision::Renew
    } else if holder.is_empty() || unchanged >= duration {
        Decision::Take
    } else {
        Decision::Wait
    }
}

/// The record after taking or renewing.
fn record(old: &LeaseSpec, decision: Decision, election: &Election, now: MicroTime) -> LeaseSpec {
    let seconds = i32::try_from(election.lease_duration.as_secs()).unwrap_or(i32::MAX);
    let taken = decision == Decision::Take;
    let transitions = old.lease_transitions.unwrap_or_default();
    LeaseSpec {
        holder_identity: Some(election.identity.clone()),
        lease_duration_seconds: Some(seconds),
        acquire_time: if taken {
            Some(now.clone())
        } else {
            old.acquire_time.clone()
        },
        renew_time: Some(now),
        lease_transitions: Some(transitions.saturating_add(i32::from(taken))),
        ..old.clone()
    }
}

impl Candidate<'_> {
    /// Tries once to get or renew the lease; whether it is ours afterwards.
    async fn attempt(&mut self) -> bool {
        match self.try_once().await {
            Ok(ours) => ours,
            Err(error) => {
                tracing::debug!(lease = self.election.name, %error, "cannot get the lease");
                false
            }
        }
    }

    async fn try_once(&mut self) -> Result<bool, kube::Error> {
        let now = self.clock.micro_time();
        let Some(mut lease) = self.leases.get_opt(&self.election.name).await? else {
            let mut spec = record(&LeaseSpec::default(), Decision::Take, self.election, now);
            spec.lease_transitions = Some(0);
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.election.name.clone()),
                    namespace: Some(self.election.namespace.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(spec),
            };
            self.leases.create(&PostParams::default(), &lease).await?;
            return Ok(true);
        };
        let old = lease.spec.take().unwrap_or_default();
        let since = match &self.seen {
            Some((seen, since)) if *seen == old => *since,
            _ => Instant::now(),
        };
        self.seen = Some((old.clone(), since));
        let own = self.election.lease_duration;
        let decision = decide(&old, &self.election.identity, since.elapsed(), own);
        if decision == Decision::Wait {
            return Ok(false);
        }
        lease.spec = Some(record(&old, decision, self.election, now));
        // The resource version in `lease` lets only one of several candidates win.
        self.leases
            .replace(&self.election.name, &PostParams::default(), &lease)
            .await?;
        Ok(true)
    }

    /// Renews the lease until that fails for too long.
    async fn keep(&mut self) {
        let mut deadline = Instant::now() + self.election.renew_deadline;
        loop {
            sleep(self.election.retry_period).await;
            match timeout_at(deadline, self.attempt()).await {
                Ok(true) => deadline = Instant::now() + self.election.renew_deadline,
                Ok(false) if Instant::now() < deadline => {}
                _ => return,
            }
        }
    }

    /// Gives the lease back, so that nobody has to wait for its end.
    async fn release(&self) {
        let released = async {
            let Some(mut lease) = self.leases.get_opt(&self.election.name).await? else {
                return Ok(());
            };
            let Some(spec) = &mut lease.spec else {
                return Ok(());
            };
            if spec.holder_identity.as_deref() != Some(&self.election.identity) {
                return Ok(());
            }
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(self.clock.micro_time());
            self.leases
                .replace(&self.election.name, &PostParams::default(), &lease)
                .await
                .map(|_| ())
        };
        let released: Result<Result<(), kube::Error>, _> =
            tokio::time::timeout(self.election.retry_period, released).await;
        if !matches!(released, Ok(Ok(()))) {
            tracing::debug!(lease = self.election.name, "cannot give the lease back");
        }
    }
}

#[cfg(test)]
mod tests;
