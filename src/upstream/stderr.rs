//! A server's standard error: logged within limits as it arrives, and kept to explain a failure.

use std::{
    collections::VecDeque,
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use tokio::{process::ChildStderr, task::AbortHandle};

use crate::{
    base::{Lock, Recent, visible},
    config::Mask,
    wire::{Line, LineReader},
};

/// Maximum number of lines of a server that are kept over all of its processes.
const MAX_RECENT_LINES: usize = 200;
/// Maximum size of these lines, in bytes.
const MAX_RECENT_BYTES: usize = 64 * 1024;
/// Number of lines that are kept of the beginning, and of the end.
const MAX_KEPT_LINES: usize = 20;
/// Maximum number of lines that an error quotes.
const MAX_QUOTED_LINES: usize = 5;
/// Maximum length of a quoted line, in characters.
const MAX_QUOTED_CHARS: usize = 300;
/// Length above which a line is counted and not kept, in bytes.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// Maximum number of bytes of one server that are logged in each `LOG_INTERVAL`.
const MAX_LOGGED_BYTES: usize = 64 * 1024;
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The last lines of a server, oldest first.
pub(crate) type RecentLines = Arc<Recent<String>>;

/// The last lines of a server over all of its processes, or those that the pool has of it.
pub(super) struct StderrTail(ArcSwap<Recent<String>>);

impl StderrTail {
    pub(super) fn new() -> Self {
        Self(ArcSwap::from_pointee(Recent::new(MAX_RECENT_LINES, MAX_RECENT_BYTES)))
    }

    pub(super) fn lines(&self) -> RecentLines {
        self.0.load_full()
    }

    /// Has the tail be that of a server of the pool.
    pub(super) fn follow(&self, lines: RecentLines) {
        self.0.store(lines);
    }
}

/// The lines of one process.
pub(super) struct StderrReader {
    lines: Arc<Lock<StderrLines>>,
    listener: AbortHandle,
}

/// The receiver of the lines, and the secrets that it does not get.
pub(super) struct StderrOutput {
    /// Removes secrets that the server repeats.
    pub(super) mask: Mask,
    pub(super) recent: RecentLines,
}

/// The first lines and the last ones.
#[derive(Default)]
struct StderrLines {
    first: Vec<String>,
    last: VecDeque<String>,
}

impl StderrReader {
    /// Starts to read.
    pub(super) fn listen(server: String, stderr: ChildStderr, targets: StderrOutput) -> Self {
        let lines = Arc::<Lock<StderrLines>>::default();
        // Aborted on drop, since a grandchild may keep the pipe open forever.
        let listener = tokio::spawn(listen(server, stderr, targets, lines.clone())).abort_handle();
        Self { lines, listener }
    }

    /// Returns the lines that explain a failure best, as the end of a sentence; empty if there are
    /// none.
    pub(super) fn quote(&self) -> String {
        let quoted = lock(&self.lines).relevant_lines();
        if quoted.is_empty() {
            return String::new();
        }
        format!("; stderr: {}", quoted.join(" | "))
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl StderrLines {
    fn push(&mut self, line: String) {
        if self.first.len() < MAX_KEPT_LINES {
            self.first.push(line);
            return;
        }
        if self.last.len() == MAX_KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// Returns the lines that name an error, or else the last ones, without notices of package
    /// managers.
    fn relevant_lines(&self) -> Vec<String> {
        let all: Vec<&str> = self.first.iter().chain(&self.last).map(String::as_str).collect();
        let all: Vec<&str> = all.into_iter().filter(|line| !is_notice(line)).collect();
        let errors: Vec<&str> = all.iter().copied().filter(|line| names_error(line)).collect();
        let quoted = match errors.len() {
            0 => &all[all.len().saturating_sub(MAX_QUOTED_LINES)..],
            // The first error is the cause; the others are its consequences.
            count => &errors[..count.min(MAX_QUOTED_LINES)],
        };
        quoted.iter().map(|line| line.chars().take(MAX_QUOTED_CHARS).collect()).collect()
    }
}

/// Returns whether this is a line in which npm and others report updates, funding and log files.
fn is_notice(line: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    let beginnings =
        ["npm notice", "npm warn", "npm info", "npm http", "[notice]", "npm error a complete log"];
    line.is_empty()
        || ["npm error", "npm err!"].contains(&line.trim_end())
        || beginnings.iter().any(|beginning| line.starts_with(beginning))
}

fn names_error(line: &str) -> bool {
    let lower = line.to_lowercase();
    line.contains("ERR!")
        || ["error", "exception", "fatal", "panicked", "cannot find", "not found"]
            .iter()
            .any(|word| lower.contains(word))
}

async fn listen(
    server: String,
    stderr: ChildStderr,
    targets: StderrOutput,
    kept: Arc<Lock<StderrLines>>,
) {
    let StderrOutput { mask, recent } = targets;
    let mut lines = LineReader::new(stderr, MAX_LINE_BYTES);
    let mut allowance = LogAllowance::new();
    while let Ok(Some(line)) = lines.next().await {
        let text = match line {
            Line::Text(text) => visible(&mask.masked(String::from_utf8_lossy(&text).trim_end())),
            Line::Oversized(summary) => format!("(a line of {} bytes)", summary.size),
        };
        match allowance.take(text.len() + LINE_OVERHEAD) {
            LogDecision::Yes => tracing::info!(server, "stderr: {text}"),
            LogDecision::AfterSilence(dropped) => {
                tracing::info!(server, dropped, "stderr: {text}");
            }
            LogDecision::LastForNow => {
                tracing::warn!(server, "too much output on stderr; some lines are not logged");
            }
            LogDecision::No => {}
        }
        recent.push(text.clone(), text.len());
        lock(&kept).push(text);
    }
}

/// Bytes of a log line in addition to the server's text.
const LINE_OVERHEAD: usize = 64;

/// The share of a server's output that is logged.
struct LogAllowance {
    since: Instant,
    logged: usize,
    dropped: usize,
}

#[derive(Debug, PartialEq)]
enum LogDecision {
    Yes,
    /// This many lines before it were not logged.
    AfterSilence(usize),
    /// The lines that follow in this interval are not logged.
    LastForNow,
    No,
}

impl LogAllowance {
    fn new() -> Self {
        Self { since: Instant::now(), logged: 0, dropped: 0 }
    }

    fn take(&mut self, bytes: usize) -> LogDecision {
        if self.since.elapsed() >= LOG_INTERVAL {
            let dropped = self.dropped;
            *self = Self { logged: bytes, ..Self::new() };
            return if dropped == 0 {
                LogDecision::Yes
            } else {
                LogDecision::AfterSilence(dropped)
            };
        }
        self.logged += bytes;
        if self.logged <= MAX_LOGGED_BYTES {
            return LogDecision::Yes;
        }
        self.dropped += 1;
        if self.dropped == 1 { LogDecision::LastForNow } else { LogDecision::No }
    }
}

fn lock(lines: &Lock<StderrLines>) -> MutexGuard<'_, StderrLines> {
    lines.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relevant_lines(lines: &[&str]) -> Vec<String> {
        let mut kept = StderrLines::default();
        for line in lines {
            kept.push((*line).to_owned());
        }
        kept.relevant_lines()
    }

    #[test]
    fn npm_errors_are_quoted_without_notices() {
        let said = relevant_lines(&[
            "npm error code E404",
            "npm error 404 Not Found - GET https://registry.example/no-such-server",
            "npm error A complete log of this run can be found in: /root/.npm/_logs/x.log",
            "npm notice",
            "npm notice New major version of npm available! 10.8.2 -> 11.0.0",
            "npm notice To update run: npm install -g npm@11.0.0",
        ]);
        assert_eq!(
            said,
            [
                "npm error code E404",
                "npm error 404 Not Found - GET https://registry.example/no-such-server"
            ]
        );
    }

    #[test]
    fn early_error_survives_later_output() {
        let mut lines = vec!["Error: no token"];
        lines.extend(std::iter::repeat_n("    at somewhere", 200));
        assert_eq!(relevant_lines(&lines), ["Error: no token"]);
        assert_eq!(
            relevant_lines(&["one", "two"]),
            ["one", "two"],
            "without an error the last lines"
        );
    }

    #[test]
    fn excess_output_is_not_logged() {
        let mut allowance = LogAllowance::new();
        assert_eq!(allowance.take(MAX_LOGGED_BYTES), LogDecision::Yes);
        assert_eq!(allowance.take(1), LogDecision::LastForNow);
        assert_eq!(allowance.take(1), LogDecision::No);
    }
}
