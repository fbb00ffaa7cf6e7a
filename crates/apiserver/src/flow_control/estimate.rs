//! How much work a request will be, as far as can be told before: lists by the bytes they read, watches by what they begin with, changes by the
//! watches that are told of them.

use std::collections::BTreeMap;
use std::time::Duration;

use gardener_store::{ListOptions, Store, Topic};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::work::Estimate;
use crate::authz::Attributes;
use crate::cluster::LogicalCluster;
use crate::request::Query;

/// The most seats that a list takes, and a change.
const MOST_OF_LISTS: usize = 100;
const MOST_OF_CHANGES: usize = 10;
/// How many bytes of a list are one seat's.
const BYTES_OF_SEAT: u64 = 100_000;
/// The most bytes that count of a list that comes from memory: it is sent piece by piece.
const MOST_BYTES_AT_ONCE: u64 = 1_000_000;
/// How many watches are one seat's, and for how long a change keeps it.
const WATCHES_OF_SEAT: usize = 10;
const TIME_OF_CHANGE: Duration = Duration::from_millis(5);
/// How long it is believed how large a kind's objects are.
const KEPT: Duration = Duration::from_secs(60);
/// How many of them are looked at for that.
const SAMPLE: usize = 16;

/// What a request does that is more or less work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing of that.
    Plain,
    /// It reads what so many seats read.
    Reads(usize),
    /// It makes a change that so many watches may be told of.
    Changes(usize),
}

impl Work {
    /// The work of a request, of a level in which one may have so many seats at most.
    pub(super) fn estimate(self, most: Option<usize>) -> Estimate {
        let most = |all: usize| most.unwrap_or(all).clamp(1, all);
        match self {
            Self::Plain => Estimate::of(1),
            Self::Reads(seats) => Estimate::of(seats.clamp(1, most(MOST_OF_LISTS))),
            Self::Changes(watches) if watches < WATCHES_OF_SEAT => Estimate::of(1),
            Self::Changes(watches) => {
                let wide = Estimate {
                    initial: 1,
                    last: watches.div_ceil(WATCHES_OF_SEAT),
                    lingers: TIME_OF_CHANGE,
                };
                wide.within(most(MOST_OF_CHANGES))
            }
        }
    }
}

/// How many objects of a kind there are, and about how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    number: u64,
    /// In bytes, on average.
    of_one: u64,
}

/// Sizes of the kinds that were listed.
#[derive(Default)]
pub(super) struct Sizes(Mutex<BTreeMap<Topic, (Instant, Size)>>);

impl Sizes {
    /// What a list or watch of a kind reads; nothing of a kind that is not stored here.
    pub(super) fn read(&self, cluster: &LogicalCluster, request: &Attributes<'_>, query: &Query) -> Work {
        let options = match Options::read(request, query) {
            Ok(Some(options)) => options,
            Ok(None) => return Work::Plain,
            // it is refused further on
            Err(()) => return Work::Reads(usize::MAX),
        };
        let Some(definition) = cluster.find(request.group, request.resource) else {
            return Work::Plain;
        };
        let now = Instant::now();
        let known = self.0.lock().get(&definition.topic).copied();
        let size = match known.filter(|(since, _)| now.saturating_duration_since(*since) < KEPT) {
            Some((_, size)) => size,
            None => {
                let size = Size::of(&**cluster.store(), &definition.topic, &cluster.path("", ""));
                self.0.lock().insert(definition.topic.clone(), (now, size));
                size
            }
        };
        Work::Reads(options.seats(size))
    }
}

impl Size {
    fn of(store: &dyn Store, topic: &Topic, prefix: &str) -> Self {
        let number = store.count(topic, prefix) as u64;
        let options = ListOptions {
            limit: Some(SAMPLE),
            ..ListOptions::default()
        };
        let listing = store.list(topic, prefix, &options);
        let entries = listing.map(|listing| listing.entries).unwrap_or_default();
        let bytes: usize = entries.iter().map(|entry| entry.value().len()).sum();
        Self {
            number,
            of_one: bytes.checked_div(entries.len()).unwrap_or_default() as u64,
        }
    }
}

/// What of a list's options is more or less work.
#[derive(Clone, Copy, Debug)]
struct Options {
    is_one: bool,
    selects: bool,
    from_memory: bool,
    limit: u64,
}

impl Options {
    /// None for a watch that begins with nothing; an error for what is none.
    fn read(request: &Attributes<'_>, query: &Query) -> Result<Option<Self>, ()> {
        let limit = query.number::<i64>("limit").map_err(drop)?;
        query.number::<i64>("timeoutSeconds").map_err(drop)?;
        let revision = query.get("resourceVersion").unwrap_or_default();
        let watches = request.verb == "watch";
        if watches && query.optional_flag("sendInitialEvents") != Some(true) && !matches!(revision, "" | "0") {
            return Ok(None);
        }
        let limit = limit.and_then(|limit| u64::try_from(limit).ok()).unwrap_or_default();
        // what upstream reads from etcd, and not from its cache
        let from_etcd = match query.get("resourceVersionMatch") {
            Some("NotOlderThan") => false,
            Some(_) => true,
            None => query.get("continue").is_some() || limit > 0 && !matches!(revision, "" | "0"),
        };
        Ok(Some(Self {
            is_one: !request.name.is_empty(),
            selects: !request.field_selector.is_empty() || !request.label_selector.is_empty(),
            from_memory: watches || !from_etcd,
            limit,
        }))
    }

    fn seats(self, size: Size) -> usize {
        let asked = match self.limit {
            0 => size.number,
            limit => limit.min(size.number),
        };
        let read = match self {
            Self { is_one: true, .. } => 1,
            Self {
                selects: true,
                from_memory: false,
                ..
            } => asked.max(size.number / 2),
            _ => asked,
        };
        let mut bytes = read.saturating_mul(size.of_one);
        if self.from_memory {
            bytes = bytes.min(MOST_BYTES_AT_ONCE);
        }
        usize::try_from(bytes.div_ceil(BYTES_OF_SEAT)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserInfo;

    #[test]
    fn lists_take_seats_by_what_they_read() {
        let user = UserInfo::anonymous();
        let list = |name: &'static str| Attributes::of_resource(&user, "list", "", "pods", "", name);
        let watch = Attributes::of_resource(&user, "watch", "", "pods", "", "");
        let selecting = Attributes {
            label_selector: "a=b",
            ..list("")
        };
        let size = Size {
            number: 1000,
            of_one: 10_000,
        };
        let seats = |request: &Attributes<'_>, query: &str| {
            let options = Options::read(request, &Query::parse(query));
            options.map(|options| options.map(|options| options.seats(size)))
        };
        for (query, expected) in [
            ("", 10),
            ("resourceVersion=0&limit=5", 1),
            ("limit=50", 5),
            ("resourceVersion=7&limit=500", 50),
            ("resourceVersion=7&resourceVersionMatch=Exact", 100),
            ("resourceVersion=7&resourceVersionMatch=NotOlderThan", 10),
            ("continue=x&limit=30", 3),
        ] {
            assert_eq!(seats(&list(""), query), Ok(Some(expected)), "{query}");
        }
        assert_eq!(seats(&selecting, "continue=x&limit=30"), Ok(Some(50)));
        assert_eq!(seats(&list("a"), "limit=30"), Ok(Some(1)));
        assert_eq!(seats(&list(""), "limit=x"), Err(()));
        assert_eq!(seats(&watch, "resourceVersion=7"), Ok(None));
        assert_eq!(seats(&watch, ""), Ok(Some(10)));
        assert_eq!(seats(&watch, "resourceVersion=7&sendInitialEvents=true"), Ok(Some(10)));
    }

    #[test]
    fn a_level_bounds_what_one_request_takes() {
        let seats = |work: Work, most: Option<usize>| work.estimate(most).seats();
        assert_eq!(seats(Work::Plain, Some(9)), 1);
        assert_eq!(seats(Work::Reads(0), None), 1);
        assert_eq!(seats(Work::Reads(usize::MAX), None), 100);
        assert_eq!(seats(Work::Reads(20), Some(7)), 7);
        assert_eq!(seats(Work::Changes(9), None), 1);
        let change = Work::Changes(95).estimate(None);
        assert_eq!((change.initial, change.last, change.lingers.as_millis()), (1, 10, 5));
        let change = Work::Changes(95).estimate(Some(2));
        assert_eq!((change.initial, change.last, change.lingers.as_millis()), (1, 2, 25));
        assert_eq!(seats(Work::Changes(1000), None), 10);
    }
}
