//! The standard error of a thin client, on which the host may read the log.

use std::{
    io::{self, Write as _},
    sync::mpsc::{self, SyncSender},
    thread,
    time::Duration,
};

/// Maximum number of texts that wait to be written. Further ones are dropped: a host that does not
/// read standard error must not block the protocol.
const MAX_WAITING: usize = 1024;
/// Maximum time to write the last lines.
const LAST_LINES_TIMEOUT: Duration = Duration::from_millis(500);

/// The texts for standard error, which a thread writes.
pub(super) struct HostLog(SyncSender<LogItem>);

enum LogItem {
    Lines(String),
    /// Told once all earlier items have been written.
    End(SyncSender<()>),
}

impl HostLog {
    pub(super) fn start() -> Self {
        let (log, items) = mpsc::sync_channel(MAX_WAITING);
        thread::spawn(move || {
            for item in items {
                // A host that has closed standard error still gets its answers, and a client that
                // has waited long enough is not told.
                let _ = match item {
                    LogItem::Lines(text) => io::stderr().write_all(text.as_bytes()).ok(),
                    LogItem::End(written) => written.try_send(()).ok(),
                };
            }
        });
        Self(log)
    }

    /// Has lines written. They are dropped if the host does not read standard error.
    pub(super) fn write(&self, lines: impl Into<String>) {
        let _ = self.0.try_send(LogItem::Lines(lines.into()));
    }

    /// Waits until everything has been written, for a short time if the host does not read it.
    pub(super) fn wait(&self) {
        let (end, written) = mpsc::sync_channel(1);
        if self.0.try_send(LogItem::End(end)).is_ok() {
            // After the timeout the rest is lost.
            let _ = written.recv_timeout(LAST_LINES_TIMEOUT);
        }
    }
}
