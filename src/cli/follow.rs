//! Follows the config of a running dormouse: each change of the file takes effect at once.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{config_source::ConfigSource, edit};
use crate::{
    base::run_blocking,
    config::{ConfigEdit, ConfigError, Unchanged, Watch},
    control::{AppliedChange, ChangeError, ChangeRequest, ConfigChange},
    proxy::{Fleet, Reloaded},
};

const WATCH_DELAY: Duration = Duration::from_millis(200);
/// Interval at which the config is checked while it cannot be watched.
const POLL_DELAY: Duration = Duration::from_secs(5);

/// Applies each change of the config file until `stop`, reloads the file on each hangup signal, and
/// makes the changes that other commands request.
pub(super) async fn follow(
    fleet: Arc<Fleet>,
    source: ConfigSource,
    mut wanted: mpsc::Receiver<ChangeRequest>,
    stop: CancellationToken,
) {
    tokio::select! {
        () = stop.cancelled() => return,
        // Lets the first request be answered before the watch is set up.
        () = tokio::time::sleep(WATCH_DELAY) => {}
    }
    let files = source.paths();
    let mut watch = Watch::new(files.clone())
        .inspect_err(|error| {
            let period = POLL_DELAY;
            tracing::warn!(%error, "cannot watch the config; checking it every {period:?}");
        })
        .ok();
    let mut hangups = Hangups::new();
    let mut follower = Follower { fleet, seen: source.content(), source, logged: None };
    // The file may have changed between the start of the process and that of the watch.
    let mut reason = ReloadReason::Changed;
    loop {
        let working = run_blocking(move || {
            follower.handle(reason);
            follower
        });
        let Some(after) = working.await else { return };
        follower = after;
        let changed = async {
            if let Some(watch) = &mut watch {
                watch.changed().await;
            } else {
                tokio::time::sleep(POLL_DELAY).await;
                watch = Watch::new(files.clone()).ok();
            }
        };
        reason = tokio::select! {
            () = stop.cancelled() => return,
            () = changed => ReloadReason::Changed,
            () = hangups.next() => ReloadReason::Hangup,
            Some(wanted) = wanted.recv() => ReloadReason::Wanted(wanted),
        };
    }
}

/// A reason to read the config file again.
enum ReloadReason {
    /// One of the config's files may have changed.
    Changed,
    Hangup,
    /// Another command requests a change or a reload.
    Wanted(ChangeRequest),
}

struct Follower {
    fleet: Arc<Fleet>,
    source: ConfigSource,
    /// The content that was last read, valid or invalid.
    seen: Vec<u8>,
    /// The last message about a problem, or about keys that take effect at the next start.
    logged: Option<String>,
}

impl Follower {
    fn handle(&mut self, reason: ReloadReason) {
        match reason {
            ReloadReason::Changed => {
                let now = self.source.read_again();
                let is_new = |now: &ConfigSource| now.content() != self.seen;
                if now.as_ref().map_or(true, is_new) {
                    // `reload` has logged the error.
                    let _ = self.reload(now);
                }
            }
            ReloadReason::Hangup => {
                self.logged = None;
                let _ = self.reload(self.source.read_again());
            }
            ReloadReason::Wanted(ChangeRequest { change, answer }) => {
                let made = match &change {
                    ConfigChange::Reload => Ok(()),
                    ConfigChange::Edit(edit) => self.make(edit),
                };
                // The requester may have disconnected.
                let _ = answer.send(made.and_then(|()| self.reload(self.source.read_again())));
            }
        }
    }

    fn make(&self, edit: &ConfigEdit) -> Result<(), ChangeError> {
        let now = self.source.file.read_again().map_err(Unchanged::from)?;
        edit::make(&self.source.options, now, edit)
    }

    fn reload(
        &mut self,
        now: Result<ConfigSource, ConfigError>,
    ) -> Result<AppliedChange, ChangeError> {
        self.seen = now.as_ref().map(ConfigSource::content).unwrap_or_default();
        match now.and_then(|now| self.take(&now)) {
            Ok(reloaded) => {
                self.tell(&reloaded);
                Ok(changed(reloaded))
            }
            Err(error) => {
                let problem = format!(
                    "cannot use the changed config, the earlier one stays in force: {error}"
                );
                if self.is_new(&problem) {
                    tracing::error!("{problem}");
                }
                Err(ChangeError::Invalid(error))
            }
        }
    }

    fn take(&self, now: &ConfigSource) -> Result<Reloaded, ConfigError> {
        now.check_trust()?;
        let parsed = now.parse()?;
        for warning in &parsed.warnings {
            tracing::warn!("{warning}");
        }
        Ok(self.fleet.reload(parsed.config))
    }

    fn tell(&mut self, reloaded: &Reloaded) {
        if reloaded.is_change() {
            tell(reloaded);
        }
        let keys = reloaded.at_next_start.join(", ");
        if keys.is_empty() {
            self.logged = None;
            return;
        }
        let note = format!("these keys take effect at the next start: {keys}");
        if self.is_new(&note) {
            tracing::info!("{note}");
        }
    }

    /// Returns whether a message differs from the last one, and keeps it as the last one.
    fn is_new(&mut self, message: &str) -> bool {
        let is_new = self.logged.as_deref() != Some(message);
        self.logged = Some(message.to_owned());
        is_new
    }
}

fn changed(reloaded: Reloaded) -> AppliedChange {
    let Reloaded { added, changed, shown_differently, removed, at_next_start, .. } = reloaded;
    AppliedChange { added, restarted: changed, shown_differently, removed, at_next_start }
}

fn tell(reloaded: &Reloaded) {
    let Reloaded { added, changed, shown_differently, removed, are_settings_new, .. } = reloaded;
    let list = |names: &[String]| names.join(", ");
    tracing::info!(
        added = list(added),
        changed = list(changed),
        shown_differently = list(shown_differently),
        removed = list(removed),
        settings = are_settings_new,
        "config reloaded"
    );
}

/// SIGHUP, which asks a daemon to reload its config.
struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    #[cfg(unix)]
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self { signal: signal(SignalKind::hangup()).ok() }
    }

    #[cfg(not(unix))]
    fn new() -> Self {
        Self {}
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
