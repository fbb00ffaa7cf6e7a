//! What people are told who look for a mistake: levels, queues and requests, as tables with commas. From apf_controller_debug.go of Kubernetes' API
//! server library.

use gardener_apimachinery::clock::Clock;
use gardener_apimachinery::duration::Duration as GoDuration;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::levels::Levels;
use super::queues::Entry;

/// Where all of these pages lie.
pub(super) const PREFIX: &str = "/debug/api_priority_and_fairness/";

const LEVELS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];
const QUEUES: [&str; 9] = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];
const REQUESTS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAILS: [&str; 8] = [
    "UserName",
    "Verb",
    "APIPath",
    "Namespace",
    "Name",
    "APIVersion",
    "Resource",
    "SubResource",
];
/// How Go writes a time that is not set.
const NEVER: &str = "0001-01-01T00:00:00Z";
/// The narrowest column.
const NARROWEST: usize = 8;

type Row = Vec<String>;

/// One of the pages, by the last part of its path.
pub(super) fn page(levels: &Levels, clock: &Clock, page: &str, details: bool) -> Option<String> {
    match page {
        "dump_priority_levels" => Some(table(&LEVELS, of_levels(levels))),
        "dump_queues" => Some(table(&QUEUES, of_queues(levels))),
        "dump_requests" => {
            let columns = REQUESTS.iter().chain(DETAILS.iter().filter(|_| details));
            let columns: Vec<&str> = columns.copied().collect();
            Some(table(&columns, of_requests(levels, clock, details)))
        }
        _ => None,
    }
}

/// Columns are as wide as their widest cell, a comma and a blank; the last one is as it is.
fn table(columns: &[&str], rows: Vec<Row>) -> String {
    let head = columns.iter().map(|column| (*column).to_owned()).collect();
    let rows: Vec<Row> = std::iter::once(head).chain(rows).collect();
    let width = |place: usize| {
        let cells = rows.iter().filter_map(|row| row.get(place));
        let widest = cells.map(|cell| cell.chars().count()).max();
        NARROWEST.max(widest.unwrap_or_default() + 2)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match place + 1 == columns.len() {
                true => out.push_str(cell),
                false => out.push_str(&format!("{:width$}", format!("{cell},"))),
            }
        }
        out.push('\n');
    }
    out
}

fn of_levels(levels: &Levels) -> Vec<Row> {
    let row = |(name, level): (&str, &super::levels::Level)| {
        let queues = &level.queues;
        let active = queues.all().flatten().filter(|queue| !queue.waiting.is_empty()).count();
        let cells: [&dyn ToString; 10] = [
            &name,
            &active,
            &queues.is_idle(),
            &level.leaving,
            &queues.waiting,
            &queues.served.len(),
            &queues.dispatched,
            &queues.refused,
            &0,
            &queues.given_up,
        ];
        cells.iter().map(|cell| cell.to_string()).collect()
    };
    levels.all().map(row).collect()
}

fn of_queues(levels: &Levels) -> Vec<Row> {
    let mut rows = Vec::new();
    let nothing = super::queues::Queue::default();
    for (name, level) in levels.all() {
        for (index, queue) in level.queues.all().enumerate() {
            let queue = queue.unwrap_or(&nothing);
            let (initial, seats, work) = queue.sums();
            let cells: [&dyn ToString; 9] = [
                &name,
                &index,
                &queue.waiting.len(),
                &queue.served,
                &queue.seats,
                &queue.next,
                &initial,
                &seats,
                &work,
            ];
            rows.push(cells.iter().map(|cell| cell.to_string()).collect());
        }
    }
    rows
}

fn of_requests(levels: &Levels, clock: &Clock, details: bool) -> Vec<Row> {
    let (instant, time) = (Instant::now(), clock.now());
    let told = |at: Instant| {
        let ago = SignedDuration::try_from(instant.saturating_duration_since(at)).unwrap_or_default();
        time.checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
    };
    let row = |level: &str, place: (Option<usize>, Option<usize>), entry: &Entry, begun: Option<Instant>| {
        let asked = entry.asked.details();
        let number = |number: Option<usize>| number.map_or_else(|| "-1".to_owned(), |number| number.to_string());
        let lingers = i64::try_from(entry.estimate.lingers.as_nanos()).unwrap_or(i64::MAX);
        let mut row = vec![
            level.to_owned(),
            entry.asked.schema.name.to_string(),
            number(place.0),
            number(place.1),
            asked.distinguisher,
            told(entry.arrived),
            entry.estimate.initial.to_string(),
            entry.estimate.last.to_string(),
            GoDuration::from_nanos(lingers).to_string(),
            begun.map_or_else(|| NEVER.to_owned(), told),
        ];
        if details {
            let user = entry.asked.user.name.clone();
            row.extend([user, asked.verb, asked.path, asked.namespace, asked.name]);
            row.extend([asked.version, asked.resource, asked.subresource]);
        }
        row
    };
    let mut rows = Vec::new();
    for (name, level) in levels.all() {
        let queues = &level.queues;
        for (index, queue) in queues.all().enumerate() {
            let waiting = queue.iter().flat_map(|queue| queue.waiting.iter()).enumerate();
            rows.extend(waiting.map(|(place, one)| row(name, (Some(index), Some(place)), &one.entry, None)));
            let served = queues.served.values().filter(|served| served.queue == Some(index));
            rows.extend(served.map(|one| row(name, (Some(index), None), &one.entry, Some(one.begun))));
        }
        let served = queues.served.values().filter(|served| served.queue.is_none());
        rows.extend(served.map(|one| row(name, (None, None), &one.entry, Some(one.begun))));
    }
    rows
}
