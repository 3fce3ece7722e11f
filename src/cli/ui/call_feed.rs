//! The calls that the page shows, numbered in the order in which they were read, and what was saved
//! in each hour.

use std::{collections::BTreeMap, sync::Arc, time::UNIX_EPOCH};

use serde::Serialize;

use crate::{
    base::{Lock, Recent},
    telemetry::{CallLogDirectory, CallRecord, FollowedLog, LogEntry, TurnRecord},
};

/// Maximum number of calls that are kept, and that one answer has.
const MAX_CALLS: usize = 500;
/// Maximum size of the arguments and results that are kept, in bytes.
const MAX_CONTENT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of hours with turns that are kept.
const MAX_HOURS: usize = 24 * 366;
const SECONDS_PER_HOUR: u64 = 3600;

/// The last calls of all processes that serve the config.
pub(super) struct CallFeed(Lock<Reading>);

struct Reading {
    /// `None` without a home directory.
    log: Option<FollowedLog>,
    calls: Recent<Arc<CallRecord>>,
    /// The number of the last call.
    last: u64,
    /// By the beginning of the hour, in seconds since 1970.
    hours: BTreeMap<u64, SavedInHour>,
}

/// What was saved in an hour.
#[derive(Clone, Copy, Default, Serialize)]
struct SavedInHour {
    turns: u64,
    tokens: u64,
}

/// The calls after a number.
#[derive(Serialize)]
pub(super) struct NextCalls {
    /// The number of the last call.
    next: u64,
    /// Oldest first.
    calls: Vec<Arc<CallRecord>>,
}

/// An hour with turns, and what was saved in it.
#[derive(Serialize)]
pub(super) struct SavedHour {
    /// Its beginning, in seconds since 1970.
    start: u64,
    #[serde(flatten)]
    saved: SavedInHour,
}

impl CallFeed {
    pub(super) fn new(log: Option<CallLogDirectory>) -> Self {
        Self(Lock::new(Reading {
            log: log.map(FollowedLog::new),
            calls: Recent::new(MAX_CALLS, MAX_CONTENT_BYTES),
            last: 0,
            hours: BTreeMap::new(),
        }))
    }

    /// Returns the calls with numbers above `after`, as far as they are kept. Reads from disk.
    pub(super) fn after(&self, after: u64) -> NextCalls {
        let mut reading = self.0.lock();
        reading.read();
        let Reading { calls, last, .. } = &*reading;
        let wanted = usize::try_from(last.saturating_sub(after)).unwrap_or(usize::MAX);
        let mut calls = calls.items();
        calls.drain(..calls.len().saturating_sub(wanted));
        NextCalls { next: *last, calls }
    }

    /// Returns the hours with turns, as far back as the log goes. Reads from disk.
    pub(super) fn saved_hours(&self) -> Vec<SavedHour> {
        let mut reading = self.0.lock();
        reading.read();
        let hours = reading.hours.iter();
        hours.map(|(start, saved)| SavedHour { start: *start, saved: *saved }).collect()
    }
}

impl Reading {
    /// Reads what is new in the log.
    fn read(&mut self) {
        for entry in self.log.as_mut().map(FollowedLog::next_entries).unwrap_or_default() {
            match entry {
                LogEntry::Call(call) => {
                    self.last += 1;
                    let bytes = call.content_bytes();
                    self.calls.push(call, bytes);
                }
                LogEntry::Turn(turn) => self.count(&turn),
            }
        }
        while self.hours.len() > MAX_HOURS {
            self.hours.pop_first();
        }
    }

    fn count(&mut self, turn: &TurnRecord) {
        let Ok(at) = humantime::parse_rfc3339(&turn.at) else { return };
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let hour = self.hours.entry(at - at % SECONDS_PER_HOUR).or_default();
        hour.turns += 1;
        hour.tokens = hour.tokens.saturating_add(turn.saved_tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a log of lines. Returns its directory.
    fn log_of(lines: &[String]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("1.jsonl"), lines.join("\n") + "\n").unwrap();
        directory
    }

    fn call(name: &str) -> String {
        format!(
            "{{\"at\":\"2026-01-01T00:00:00.000Z\",\"pid\":1,\"host\":1,\"server\":\"s\",\
            \"method\":\"tools/call\",\"name\":\"{name}\",\"tookMs\":1.0,\"bytesIn\":1,\
            \"bytesOut\":1,\"tokensIn\":1,\"tokensOut\":1,\"outcome\":\"succeeded\"}}"
        )
    }

    #[test]
    fn later_answers_have_only_new_calls() {
        let log = log_of(&[call("a"), call("b")]);
        let feed = CallFeed::new(Some(CallLogDirectory::new(log.path())));
        let names = |next: &NextCalls| {
            let names = next.calls.iter().filter_map(|call| call.name.clone());
            names.collect::<Vec<_>>().join(" ")
        };
        let first = feed.after(0);
        assert_eq!((first.next, names(&first)), (2, "a b".to_owned()));
        std::fs::write(log.path().join("2.jsonl"), call("c") + "\n").unwrap();
        assert_eq!(names(&feed.after(first.next)), "c");
        assert_eq!(names(&feed.after(u64::MAX)), "");
    }

    #[test]
    fn oldest_calls_are_dropped() {
        let log = log_of(&(0..MAX_CALLS + 5).map(|n| call(&n.to_string())).collect::<Vec<_>>());
        let feed = CallFeed::new(Some(CallLogDirectory::new(log.path())));
        let calls = feed.after(0).calls;
        assert_eq!(calls.len(), MAX_CALLS);
        assert_eq!(calls[0].name.as_deref(), Some("5"));
    }

    #[test]
    fn turns_are_counted_by_the_hour() {
        let turn = |at: &str, tokens: u64| {
            format!("{{\"at\":\"2026-01-01T{at}.000Z\",\"pid\":1,\"savedTokens\":{tokens}}}")
        };
        let log = log_of(&[turn("10:00:00", 5), turn("10:59:59", 7), turn("12:30:00", u64::MAX)]);
        let feed = CallFeed::new(Some(CallLogDirectory::new(log.path())));
        let hours = feed.saved_hours();
        let found: Vec<_> =
            hours.iter().map(|hour| (hour.start % 86_400 / 3600, hour.saved.turns)).collect();
        assert_eq!(found, [(10, 2), (12, 1)]);
        assert_eq!(hours[0].saved.tokens, 12);
    }
}
