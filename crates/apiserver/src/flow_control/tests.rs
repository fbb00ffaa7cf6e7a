//! Priority and fairness as clients meet it, in virtual time.

mod fairness;
mod schemas;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::*;
use crate::handle::Caller;
use crate::respond::Body;
use crate::testing::Api;
use crate::user::MASTERS;

const GROUP_PATH: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

/// A server with so many seats, on which jane's requests are of a level with this specification.
async fn open(number: usize, limited: Value) -> Api {
    let seats = Seats {
        number,
        ..Seats::default()
    };
    let api = Api::open_with(|config| config.seats = seats).await;
    add_level(&api, "tiny", "jane", limited).await;
    api
}

async fn add_level(api: &Api, name: &str, user: &str, limited: Value) {
    let level = json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}});
    let levels = format!("{GROUP_PATH}/prioritylevelconfigurations");
    api.create(&levels, &level).await.unwrap();
    let all = json!(["*"]);
    let rules = json!([{
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "resourceRules": [{"verbs": all, "apiGroups": all, "resources": all, "namespaces": all, "clusterScope": true}],
        "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}],
    }]);
    let spec = json!({
        "matchingPrecedence": 100, "priorityLevelConfiguration": {"name": name}, "rules": rules,
        "distinguisherMethod": {"type": "ByNamespace"},
    });
    let schema = json!({"metadata": {"name": name}, "spec": spec});
    api.create(&format!("{GROUP_PATH}/flowschemas"), &schema).await.unwrap();
}

/// A level of one seat.
fn one_seat() -> Value {
    let queuing = json!({"queues": 1, "handSize": 1, "queueLengthLimit": 1});
    json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": {"type": "Queue", "queuing": queuing}})
}

/// What becomes of a request that comes now.
fn enter(api: &Api, user: &str) -> Entered {
    let user = Arc::new(UserInfo::new(user, &[]));
    let incoming = Incoming {
        asks: &Attributes::of_resource(&user, "get", "", "pods", "default", "x"),
        query: &Query::default(),
        method: &Method::GET,
        uri: &Uri::from_static("/api/v1/namespaces/default/pods/x"),
        user: &user,
    };
    let (_, entered) = api
        .cluster
        .flow_control()
        .unwrap()
        .enter(&api.cluster, &incoming)
        .unwrap();
    entered
}

fn served(entered: Entered) -> Seat {
    match entered {
        Entered::Served(seat) => seat,
        Entered::Waits(_) => panic!("it waits"),
        Entered::Refused(_) => panic!("it is refused"),
    }
}

fn waits(entered: Entered) -> Waiting {
    match entered {
        Entered::Waits(waiting) => waiting,
        Entered::Served(_) => panic!("it is served"),
        Entered::Refused(_) => panic!("it is refused"),
    }
}

fn in_seconds(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

fn ask(
    api: &Api,
    user: &str,
    method: &str,
    path: &str,
    limit: Option<u64>,
) -> impl Future<Output = Response<Body>> + use<> {
    let groups: &[&str] = if user == "admin" { &[MASTERS] } else { &[] };
    let caller = Caller {
        cluster: "c".to_owned(),
        user: Some(UserInfo::new(user, groups)),
        outside: true,
        ..Caller::default()
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let server = api.server.clone();
    async move { server.serve(caller, request, limit.map(Duration::from_secs)).await }
}

async fn text(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a level tells of its requests: how many wait, are served, were served, refused and gave up.
async fn numbers(api: &Api, level: &str) -> [usize; 5] {
    let control = api.cluster.flow_control().unwrap();
    let path = "/debug/api_priority_and_fairness/dump_priority_levels";
    let page = control.page(&api.cluster, path, &Query::default()).unwrap();
    let row = page.lines().find(|row| row.starts_with(&format!("{level},"))).unwrap();
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    [4, 5, 6, 7, 9].map(|place: usize| cells[place].parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_seat_waits_for_one() {
    let api = open(1, one_seat()).await;
    let first = served(enter(&api, "jane"));
    let second = waits(enter(&api, "jane"));
    assert!(matches!(enter(&api, "jane"), Entered::Refused(1)));
    assert_eq!(numbers(&api, "tiny").await, [1, 1, 1, 1, 0]);
    // others have seats of their own
    add_level(&api, "other", "joe", one_seat()).await;
    drop(served(enter(&api, "joe")));
    let begun = Instant::now();
    let frees = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        drop(first);
    };
    let (seat, ()) = futures::join!(second.seat(in_seconds(15), None), frees);
    let seat = seat.unwrap_or_else(|_| panic!("it is refused"));
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 2, 1, 0]);
    drop(seat);
    assert_eq!(numbers(&api, "tiny").await, [0, 0, 2, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let api = open(1, one_seat()).await;
    let first = served(enter(&api, "jane"));
    let begun = Instant::now();
    let refused = waits(enter(&api, "jane")).seat(in_seconds(15), None).await;
    assert_eq!(refused.err(), Some(1));
    assert_eq!(begun.elapsed(), Duration::from_secs(15));
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 1, 1, 1]);
    // a quarter of what the request may take
    for (limit, waited) in [(Some(8), 2), (Some(3600), 60), (None, 15)] {
        let begun = Instant::now();
        let response = ask(&api, "jane", "GET", "/api/v1/pods", limit).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(begun.elapsed(), Duration::from_secs(waited), "{limit:?}");
    }
    // and of a write, which may take less
    let begun = Instant::now();
    let response = ask(&api, "jane", "POST", "/api/v1/namespaces/default/pods", Some(60)).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(begun.elapsed(), Duration::from_secs(15));
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_leaves_the_queue() {
    let api = open(1, one_seat()).await;
    let first = served(enter(&api, "jane"));
    let asking = ask(&api, "jane", "GET", "/api/v1/pods", None);
    let gone = tokio::time::timeout(Duration::from_secs(1), asking).await;
    assert!(gone.is_err());
    tokio::task::yield_now().await;
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 1, 1, 1]);
    // also one that is served in the moment in which it goes
    let mut second = Box::pin(waits(enter(&api, "jane")).seat(in_seconds(15), None));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 2, 1, 1]);
    drop(second);
    assert_eq!(numbers(&api, "tiny").await, [0, 0, 2, 1, 1]);
    // and one that did not begin to wait, or whose time was over when it was served
    let first = served(enter(&api, "jane"));
    drop(waits(enter(&api, "jane")));
    let late = waits(enter(&api, "jane"));
    drop(first);
    assert!(late.seat(Instant::now(), None).await.is_ok());
    assert_eq!(numbers(&api, "tiny").await, [0, 0, 4, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_is_told_when_to_come_again() {
    let api = open(1, one_seat()).await;
    let first = served(enter(&api, "jane"));
    let waiting = waits(enter(&api, "jane"));
    let refused = ask(&api, "jane", "GET", "/api/v1/pods", Some(60)).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let told = |name: &str| refused.headers()[name].to_str().unwrap().to_owned();
    let uid = async |plural: &str| {
        let object = api
            .ask("GET", &format!("{GROUP_PATH}/{plural}/tiny"), &Value::Null)
            .await;
        object.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    assert_eq!(told("retry-after"), "1");
    assert_eq!(told("content-type"), "text/plain; charset=utf-8");
    assert_eq!(told("x-content-type-options"), "nosniff");
    assert_eq!(told("cache-control"), "no-cache, private");
    assert_eq!(told("x-kubernetes-pf-flowschema-uid"), uid("flowschemas").await);
    assert_eq!(
        told("x-kubernetes-pf-prioritylevel-uid"),
        uid("prioritylevelconfigurations").await
    );
    assert_eq!(text(refused).await, "Too many requests, please try again later.\n");
    // of the many it is asked to stay away for longer
    for _ in 0..9 {
        ask(&api, "jane", "GET", "/api/v1/pods", Some(60)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let refused = ask(&api, "jane", "GET", "/api/v1/pods", Some(60)).await;
    assert_eq!(refused.headers()["retry-after"], "2");
    // who may do everything is not held up, nor are requests from inside
    let metrics = text(ask(&api, "admin", "GET", "/metrics", Some(60)).await).await;
    let of = "flow_schema=\"tiny\",priority_level=\"tiny\"";
    for line in [
        format!("apiserver_flowcontrol_rejected_requests_total{{{of},reason=\"queue-full\"}} 11"),
        format!("apiserver_flowcontrol_dispatched_requests_total{{{of}}} 1"),
        format!("apiserver_flowcontrol_current_inqueue_requests{{{of}}} 1"),
        format!("apiserver_flowcontrol_current_executing_seats{{{of}}} 1"),
        format!("apiserver_flowcontrol_request_wait_duration_seconds_count{{execute=\"false\",{of}}} 11"),
        format!("apiserver_flowcontrol_request_queue_length_after_enqueue_sum{{{of}}} 2"),
        format!("apiserver_flowcontrol_work_estimated_seats_count{{{of}}} 13"),
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"tiny\"} 1".to_owned(),
        "apiserver_flowcontrol_current_limit_seats{priority_level=\"tiny\"} 1".to_owned(),
        "apiserver_flowcontrol_upper_limit_seats{priority_level=\"tiny\"} 1".to_owned(),
        "apiserver_flowcontrol_demand_seats_bucket{priority_level=\"tiny\",le=\"1.7\"} 0".to_owned(),
        "apiserver_flowcontrol_demand_seats_bucket{priority_level=\"tiny\",le=\"2\"} 1000000000".to_owned(),
        "apiserver_current_inqueue_requests{request_kind=\"readOnly\"} 1".to_owned(),
    ] {
        assert!(
            metrics.lines().any(|own| own == line),
            "{line} is missing in\n{metrics}"
        );
    }
    let counted =
        "apiserver_request_terminations_total{code=\"429\",verb=\"LIST\",group=\"\",version=\"v1\",resource=\"pods\"";
    assert!(metrics.contains(counted), "{metrics}");
    drop((first, waiting));
}

#[tokio::test(start_paused = true)]
async fn people_are_told_who_waits() {
    let api = open(1, one_seat()).await;
    let _first = served(enter(&api, "jane"));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let _second = waits(enter(&api, "jane"));
    let path = |page: &str| format!("/debug/api_priority_and_fairness/{page}");
    let page = async |page: &str| text(ask(&api, "admin", "GET", &path(page), None).await).await;
    let requests = page("dump_requests?includeRequestDetails=1").await;
    let expected = [
        "PriorityLevelName, FlowSchemaName, QueueIndex, RequestIndexInQueue, FlowDistingsher, ArriveTime,             InitialSeats, FinalSeats, AdditionalLatency, StartTime,              UserName, Verb,   APIPath,                                        Namespace, Name,   APIVersion, Resource, SubResource",
        "exempt,            exempt,         -1,         -1,                  ,                1970-01-01T00:00:01.5Z, 1,            0,          0s,                1970-01-01T00:00:01.5Z, admin,    get,    /debug/api_priority_and_fairness/dump_requests, ,          ,       ,           ,         ",
        "tiny,              tiny,           0,          0,                   ,                1970-01-01T00:00:01.5Z, 1,            0,          0s,                0001-01-01T00:00:00Z,   jane,     get,    /api/v1/namespaces/default/pods/x,              default,   x,      v1,         pods,     ",
        "tiny,              tiny,           0,          -1,                  ,                1970-01-01T00:00:00Z,   1,            0,          0s,                1970-01-01T00:00:00Z,   jane,     get,    /api/v1/namespaces/default/pods/x,              default,   x,      v1,         pods,     ",
    ];
    assert_eq!(requests.lines().collect::<Vec<_>>(), expected);
    let queues = page("dump_queues").await;
    let rows: Vec<&str> = queues
        .lines()
        .filter(|row| row.starts_with('P') || row.starts_with('t'))
        .collect();
    let expected = [
        "PriorityLevelName, Index,  PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, InitialSeatsSum, MaxSeatsSum, TotalWorkSum",
        "tiny,              0,      1,               1,                 1,          1.50000000ss,  1,               1,           0.00300000ss",
    ];
    assert_eq!(rows, expected);
    let levels = page("dump_priority_levels").await;
    let rows: Vec<&str> = levels.lines().take(2).collect();
    let expected = [
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests",
        "catch-all,         0,            true,   false,       0,               0,                 0,                  0,                0,                0",
    ];
    assert_eq!(rows, expected);
    for (user, page, status) in [("admin", "dump", 404), ("joe", "dump_queues", 403)] {
        let response = ask(&api, user, "GET", &path(page), None).await;
        assert_eq!(response.status(), status, "{user}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_its_seat_only_while_it_begins() {
    let api = open(1, one_seat()).await;
    allow(&api, "jane").await;
    let response = ask(&api, "jane", "GET", "/api/v1/namespaces?watch=true", None).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 1, 0, 0]);
    let mut body = response.into_body();
    assert!(body.frame().await.is_some());
    assert!(futures::poll!(body.frame()).is_pending());
    assert_eq!(numbers(&api, "tiny").await, [0, 0, 1, 0, 0]);
    // it is counted for as long as it is there
    let watchers = &api.cluster.flow_control().unwrap().watchers;
    let anybody = UserInfo::anonymous();
    let change = Attributes::of_resource(&anybody, "update", "", "namespaces", "", "default");
    assert_eq!(watchers.of(&change), 1);
    drop(body);
    assert_eq!(watchers.of(&change), 0);
    // one whose client takes nothing has it for no longer than others
    let response = ask(&api, "jane", "GET", "/api/v1/namespaces?watch=true", None).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 2, 0, 0]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(numbers(&api, "tiny").await, [0, 0, 2, 0, 0]);
    drop(response);
}

/// Lets somebody do everything.
async fn allow(api: &Api, user: &str) {
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    api.create(path, &binding).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_has_its_seats_until_it_was_taken() {
    let api = open(6, one_seat()).await;
    allow(&api, "jane").await;
    for number in 0..4 {
        let object = json!({"metadata": {"name": format!("m{number}")}, "data": {"x": "y".repeat(150_000)}});
        api.create("/api/v1/namespaces/default/configmaps", &object)
            .await
            .unwrap();
    }
    let list = || ask(&api, "jane", "GET", "/api/v1/configmaps", Some(60));
    let response = list().await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 1, 0, 0]);
    assert!(text(response).await.len() > 600_000);
    assert_eq!(numbers(&api, "tiny").await, [0, 0, 1, 0, 0]);
    // its client may take its time, but no more than it has
    let response = list().await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 2, 0, 0]);
    let next = tokio::spawn(list());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(numbers(&api, "tiny").await, [0, 1, 3, 0, 0]);
    drop(response);
    drop(next.await.unwrap());
    assert_eq!(numbers(&api, "tiny").await, [0, 0, 3, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_when_its_level_gets_more_seats() {
    let api = open(1, one_seat()).await;
    let first = served(enter(&api, "jane"));
    let second = waits(enter(&api, "jane"));
    let begun = Instant::now();
    let path = format!("{GROUP_PATH}/prioritylevelconfigurations/tiny");
    let more = json!({"spec": {"limited": {"borrowingLimitPercent": null, "limitResponse": {"type": "Reject", "queuing": null}}}});
    let changes = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        api.ask("PATCH", &path, &more).await.unwrap();
        // the demand of two is known at once, and others lend
        begun.elapsed()
    };
    let (seat, _) = futures::join!(second.seat(in_seconds(15), None), changes);
    assert!(seat.is_ok());
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
    // a level that goes is there until nobody needs it
    api.ask("DELETE", &path, &Value::Null).await.unwrap();
    assert_eq!(numbers(&api, "tiny").await[1], 2);
    drop((first, seat));
    let page = text(
        ask(
            &api,
            "admin",
            "GET",
            "/debug/api_priority_and_fairness/dump_priority_levels",
            None,
        )
        .await,
    )
    .await;
    assert!(!page.contains("tiny"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn levels_borrow_what_others_do_not_use() {
    let limited = |lendable: u32| {
        let queuing = json!({"queues": 1, "handSize": 1, "queueLengthLimit": 50});
        json!({"nominalConcurrencyShares": 245, "lendablePercent": lendable, "limitResponse": {"type": "Queue", "queuing": queuing}})
    };
    let api = open(12, limited(0)).await;
    add_level(&api, "lends", "joe", limited(50)).await;
    let limit = |level: &str| {
        let control = api.cluster.flow_control().unwrap();
        control.refresh(&api.cluster);
        let levels = control.levels.lock();
        let found = levels.all().find(|(name, _)| *name == level);
        found.map(|(_, level)| level.queues.limit()).unwrap()
    };
    // each has a third, and what the other one lends is divided by demand
    let before = limit("tiny");
    assert!(before >= 4 && limit("lends") >= 2, "{before} {}", limit("lends"));
    let seats: Vec<Seat> = (0..before).map(|_| served(enter(&api, "jane"))).collect();
    let waiting = waits(enter(&api, "jane"));
    let begun = Instant::now();
    let seat = waiting.seat(in_seconds(60), None).await;
    assert!(seat.is_ok());
    // nothing but time made that happen
    assert!(begun.elapsed() <= Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(limit("tiny") > before);
    drop((seats, seat));
    // after a while without demand all is as it was
    tokio::time::sleep(Duration::from_secs(36_000)).await;
    drop(served(enter(&api, "jane")));
    assert_eq!(limit("tiny"), before);
}

#[tokio::test(start_paused = true)]
async fn some_are_never_held_up() {
    let api = open(1, one_seat()).await;
    let master = Arc::new(UserInfo::new("admin", &[MASTERS]));
    let control = api.cluster.flow_control().unwrap();
    let seats: Vec<Entered> = (0..50)
        .map(|_| {
            let incoming = Incoming {
                asks: &Attributes::of_resource(&master, "list", "", "pods", "", ""),
                query: &Query::default(),
                method: &Method::GET,
                uri: &Uri::from_static("/api/v1/pods"),
                user: &master,
            };
            control.enter(&api.cluster, &incoming).unwrap().1
        })
        .collect();
    assert!(seats.iter().all(|entered| matches!(entered, Entered::Served(_))));
    // what lasts as long as what it is about needs no seat, and is told no flow
    let _first = served(enter(&api, "jane"));
    let response = ask(&api, "jane", "GET", "/api/v1/namespaces/default/pods/x/log", None).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key(SCHEMA_UID));
}

#[tokio::test(start_paused = true)]
async fn many_requests_at_once_are_all_answered() {
    let api = open(
        4,
        json!({"nominalConcurrencyShares": 245, "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 50}}}),
    )
    .await;
    allow(&api, "jane").await;
    let all: Vec<_> = (0..200)
        .map(|number| {
            let path = format!("/api/v1/namespaces/n{}/configmaps", number % 9);
            tokio::spawn(ask(&api, "jane", "GET", &path, Some(60)))
        })
        .collect();
    for (number, one) in all.into_iter().enumerate() {
        // some clients go away
        if number % 7 == 0 {
            one.abort();
            continue;
        }
        assert_eq!(one.await.unwrap().status(), StatusCode::OK);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let [waiting, serving, ..] = numbers(&api, "tiny").await;
    assert_eq!((waiting, serving), (0, 0));
}
