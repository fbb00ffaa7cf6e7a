use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::fake::Fake;

const SECOND: Duration = Duration::from_secs(1);
const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/garden/leases/lock";

type Log = Arc<Mutex<Vec<(String, u64)>>>;

struct Process {
    cancel: CancellationToken,
    running: tokio::task::JoinHandle<End>,
}

fn start(fake: &Fake, identity: &'static str, log: &Log) -> Process {
    let (client, log, cancel) = (fake.client(), Arc::clone(log), CancellationToken::new());
    let token = cancel.clone();
    let begin = Instant::now();
    let running = tokio::spawn(async move {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let election = Election::new("garden", "lock", identity);
        lead(client, &clock, &election, &token, |_| async {
            log.lock().push((identity.to_owned(), begin.elapsed().as_secs()));
            std::future::pending().await
        })
        .await
    });
    Process { cancel, running }
}

#[test]
fn a_lease_is_taken_when_it_is_free_or_its_holder_is_silent() {
    let spec = |holder: &str, seconds| LeaseSpec {
        holder_identity: Some(holder.into()),
        lease_duration_seconds: seconds,
        ..LeaseSpec::default()
    };
    let table = [
        (spec("me", Some(15)), 99, Decision::Renew),
        (spec("", Some(1)), 0, Decision::Take),
        (LeaseSpec::default(), 0, Decision::Take),
        (spec("other", Some(15)), 14, Decision::Wait),
        (spec("other", Some(15)), 15, Decision::Take),
        (spec("other", Some(30)), 15, Decision::Wait),
        (spec("other", None), 15, Decision::Take),
    ];
    for (spec, unchanged, expected) in table {
        let decision = decide(&spec, "me", SECOND * unchanged, SECOND * 15);
        assert_eq!(decision, expected, "{spec:?} after {unchanged} s");
    }
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_next_follows_when_it_lets_go() {
    let fake = Fake::new();
    let log = Log::default();
    let first = start(&fake, "first", &log);
    sleep(SECOND).await;
    let second = start(&fake, "second", &log);
    sleep(SECOND * 100).await;
    assert_eq!(*log.lock(), [("first".to_owned(), 0)]);
    first.cancel.cancel();
    assert_eq!(first.running.await.unwrap(), End::Canceled);
    sleep(SECOND * 3).await;
    assert_eq!(log.lock().len(), 2, "a lease given back is taken at the next attempt");
    second.cancel.cancel();
    second.running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_replaced_after_the_lease() {
    let fake = Fake::new();
    let log = Log::default();
    let first = start(&fake, "first", &log);
    sleep(SECOND).await;
    first.running.abort();
    let second = start(&fake, "second", &log);
    sleep(SECOND * 60).await;
    let taken = log.lock()[1].clone();
    // Looked at every two seconds, first seen at once.
    assert_eq!(taken, ("second".to_owned(), 16));
    second.cancel.cancel();
    second.running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_gives_up() {
    let fake = Fake::new();
    let log = Log::default();
    let begin = Instant::now();
    let first = start(&fake, "first", &log);
    sleep(SECOND).await;
    let stolen = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}});
    fake.put(PATH, stolen);
    assert_eq!(first.running.await.unwrap(), End::Lost);
    assert!(begin.elapsed() <= SECOND * 10 + SECOND * 2);
}
