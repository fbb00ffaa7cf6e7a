//! A forecast as a calendar file by RFC 5545. Written here: the crate for it (`icalendar`) brings chrono, which stays out.

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;

use crate::{Change, Entry, Forecast, Outcome};

/// The most octets of a line, its end not counted (section 3.1).
const LINE: usize = 75;

/// Writes the calendar: one event for each maintenance that does something or cannot, in its window, as nobody can tell where in the window a garden's
/// own chance puts it; and one without length for what comes at its own time.
pub fn calendar(forecast: &Forecast) -> String {
    let mut out = String::new();
    line(&mut out, "BEGIN:VCALENDAR");
    line(&mut out, "VERSION:2.0");
    line(&mut out, "PRODID:-//gardener.cloud//gardener forecast//EN");
    line(&mut out, "CALSCALE:GREGORIAN");
    for entry in &forecast.entries {
        event(&mut out, entry, forecast.from);
    }
    if forecast.entries.is_empty() {
        nothing(&mut out, forecast);
    }
    line(&mut out, "END:VCALENDAR");
    out
}

/// A calendar has at least one component (section 3.6): here that nothing of these days is taken.
fn nothing(out: &mut String, forecast: &Forecast) {
    let (begin, end) = (time(forecast.from), time(forecast.until));
    line(out, "BEGIN:VFREEBUSY");
    line(out, &format!("UID:{begin}.{end}@forecast.gardener.cloud"));
    line(out, &format!("DTSTAMP:{begin}"));
    line(out, &format!("DTSTART:{begin}"));
    line(out, &format!("DTEND:{end}"));
    line(out, "END:VFREEBUSY");
}

fn event(out: &mut String, entry: &Entry, stamp: Timestamp) {
    let shoot = format!("{}/{}", entry.namespace, entry.shoot);
    let begin = time(entry.window_begin);
    line(out, "BEGIN:VEVENT");
    // the same maintenance in a later forecast is the same event; a turn at that time is another one
    let kind = match entry.outcome {
        Outcome::Hibernated => ".sleep",
        Outcome::WokenUp => ".wake",
        Outcome::Deleted => ".end",
        Outcome::Updated | Outcome::Failed | Outcome::Recovered => "",
    };
    line(
        out,
        &format!(
            "UID:{begin}.{}.{}{kind}@forecast.gardener.cloud",
            entry.namespace, entry.shoot
        ),
    );
    line(out, &format!("DTSTAMP:{}", time(stamp)));
    line(out, &format!("DTSTART:{begin}"));
    if entry.window_end > entry.window_begin {
        line(out, &format!("DTEND:{}", time(entry.window_end)));
    }
    line(out, &format!("SUMMARY:{}", escape(&summary(&shoot, entry))));
    line(out, &format!("DESCRIPTION:{}", escape(&description(entry))));
    let category = match (entry.outcome, entry.forced) {
        (Outcome::Failed, _) => "FAILURE",
        (Outcome::Hibernated | Outcome::WokenUp, _) => "HIBERNATION",
        (Outcome::Deleted, _) => "END",
        (_, true) => "FORCED UPDATE",
        _ => "UPDATE",
    };
    line(out, &format!("CATEGORIES:{category}"));
    line(out, "TRANSP:TRANSPARENT");
    line(out, "END:VEVENT");
}

fn summary(shoot: &str, entry: &Entry) -> String {
    let done: Vec<String> = entry.changes.iter().map(Change::to_string).collect();
    let done = match (entry.outcome, done.is_empty()) {
        (Outcome::Failed, true) => "maintenance fails".to_owned(),
        (Outcome::Failed, false) => format!("maintenance fails in part; {}", done.join(", ")),
        (Outcome::Hibernated, _) => "hibernates".to_owned(),
        (Outcome::WokenUp, _) => "wakes up".to_owned(),
        (Outcome::Deleted, _) => "is deleted".to_owned(),
        (_, true) => "maintenance".to_owned(),
        (_, false) if entry.forced => format!("forced update: {}", done.join(", ")),
        (_, false) => done.join(", "),
    };
    format!("{shoot}: {done}")
}

fn description(entry: &Entry) -> String {
    match &entry.failure_reason {
        Some(why) => format!("{}\n{why}", entry.description),
        None => entry.description.clone(),
    }
}

/// A date and time in UTC (section 3.3.5, form 2).
fn time(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// A text value (section 3.3.11). Control characters other than line ends have no place in it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\\' | ';' | ',' => {
                out.push('\\');
                out.push(character);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push('\t'),
            other if other.is_control() => {}
            other => out.push(other),
        }
    }
    out
}

/// Writes a content line, folded where it is too long, but not within a character.
fn line(out: &mut String, text: &str) {
    let mut width = 0;
    for character in text.chars() {
        if width + character.len_utf8() > LINE {
            out.push_str("\r\n ");
            width = 1;
        }
        out.push(character);
        width += character.len_utf8();
    }
    out.push_str("\r\n");
}

impl std::fmt::Display for Change {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(pool) = &self.pool {
            write!(formatter, "pool {pool:?}: ")?;
        }
        write!(formatter, "{} {} → {}", self.what, self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines as a reader unfolds them.
    fn unfolded(calendar: &str) -> Vec<String> {
        let text = calendar.strip_suffix("\r\n").unwrap().replace("\r\n ", "");
        text.split("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn events_are_escaped_and_folded() {
        let entry = Entry {
            time: "2026-01-02T03:20:00Z".parse().unwrap(),
            window_begin: "2026-01-02T03:00:00Z".parse().unwrap(),
            window_end: "2026-01-02T03:45:00Z".parse().unwrap(),
            namespace: "garden-dev".into(),
            shoot: "one".into(),
            outcome: Outcome::Failed,
            forced: true,
            changes: vec![Change {
                pool: Some("a".into()),
                what: "os".into(),
                from: "1.0.0".into(),
                to: "1.1.0".into(),
                reason: String::new(),
                forced: false,
            }],
            description: "one; two, three\\four äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü".into(),
            failure_reason: Some("why\u{7}".into()),
            warnings: Vec::new(),
        };
        let forecast = Forecast {
            from: "2026-01-01T12:00:00.5Z".parse().unwrap(),
            until: "2026-01-03T12:00:00Z".parse().unwrap(),
            seed_number: 1,
            shoots: 1,
            entries: vec![entry],
        };
        let written = calendar(&forecast);
        assert!(written.split("\r\n").all(|line| line.len() <= LINE), "{written}");
        assert!(!written.replace("\r\n", "").contains(['\r', '\n']));
        assert_eq!(
            unfolded(&written),
            [
                "BEGIN:VCALENDAR",
                "VERSION:2.0",
                "PRODID:-//gardener.cloud//gardener forecast//EN",
                "CALSCALE:GREGORIAN",
                "BEGIN:VEVENT",
                "UID:20260102T030000Z.garden-dev.one@forecast.gardener.cloud",
                "DTSTAMP:20260101T120000Z",
                "DTSTART:20260102T030000Z",
                "DTEND:20260102T034500Z",
                "SUMMARY:garden-dev/one: maintenance fails in part\\; pool \"a\": os 1.0.0 → 1.1.0",
                "DESCRIPTION:one\\; two\\, three\\\\four äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü\\nwhy",
                "CATEGORIES:FAILURE",
                "TRANSP:TRANSPARENT",
                "END:VEVENT",
                "END:VCALENDAR",
            ]
        );
    }

    /// A text as a reader takes it out of a line.
    fn unescaped(text: &str) -> String {
        let mut out = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match (character, character == '\\') {
                (_, true) => match characters.next() {
                    Some('n') => out.push('\n'),
                    Some(other @ ('\\' | ';' | ',')) => out.push(other),
                    other => panic!("{other:?} is escaped in {text}"),
                },
                (';' | ',', false) => panic!("{character} is not escaped in {text}"),
                (other, false) => out.push(other),
            }
        }
        out
    }

    proptest::proptest! {
        /// Whatever a text says, its lines are short, and who reads them gets the text.
        #[test]
        fn texts_come_back(text in "(?s).{0,200}") {
            let mut written = String::new();
            line(&mut written, &format!("DESCRIPTION:{}", escape(&text)));
            proptest::prop_assert!(written.split("\r\n").all(|line| line.len() <= LINE));
            let read = unfolded(&written);
            proptest::prop_assert_eq!(read.len(), 1);
            let kept = |character: &char| !character.is_control() || matches!(character, '\n' | '\t');
            let expected: String = text.replace("\r\n", "\n").chars().filter(kept).collect();
            proptest::prop_assert_eq!(unescaped(read[0].strip_prefix("DESCRIPTION:").unwrap()), expected);
        }
    }

    #[test]
    fn a_calendar_without_events_is_one_all_the_same() {
        let forecast = Forecast {
            from: "2026-01-01T12:00:00Z".parse().unwrap(),
            until: "2026-01-03T12:00:00Z".parse().unwrap(),
            seed_number: 1,
            shoots: 0,
            entries: Vec::new(),
        };
        assert_eq!(
            unfolded(&calendar(&forecast))[4..],
            [
                "BEGIN:VFREEBUSY",
                "UID:20260101T120000Z.20260103T120000Z@forecast.gardener.cloud",
                "DTSTAMP:20260101T120000Z",
                "DTSTART:20260101T120000Z",
                "DTEND:20260103T120000Z",
                "END:VFREEBUSY",
                "END:VCALENDAR",
            ]
        );
    }
}
