//! A running dormouse follows its config: whatever is written into it is in force at once.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{arguments::Options, footprint, settings};
use crate::{
    config::{ConfigError, ConfigFile, Watch},
    proxy::{Fleet, Reloaded},
};

const AFTER_START: Duration = Duration::from_millis(200);

/// Takes over every change of the config until `stop`, and on every hangup what it is then.
pub(super) async fn follow(
    fleet: Arc<Fleet>,
    file: ConfigFile,
    options: Options,
    stop: CancellationToken,
) {
    tokio::select! {
        () = stop.cancelled() => return,
        // Whoever waits for the first answer is served first.
        () = tokio::time::sleep(AFTER_START) => {}
    }
    let beside = file.path.with_file_name(".env");
    let files = [Some(file.path.clone()), Some(beside), options.env_file.clone()];
    let mut watch = Watch::new(files.into_iter().flatten().collect())
        .inspect_err(|error| {
            tracing::warn!(%error, "the config is not followed; say it with SIGHUP");
        })
        .ok();
    footprint::give_back_start();
    let mut hangups = Hangups::new();
    let mut follower =
        Follower { fleet, seen: content(&file, &options), file, options, said: None };
    // It may have been written between the start and the watch.
    let mut is_due = true;
    loop {
        let changed = async {
            match &mut watch {
                Some(watch) => watch.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = std::future::ready(()), if is_due => is_due = false,
            () = changed => {}
            () = hangups.next() => follower.forget(),
        }
        let now = follower.file.read_again();
        if now.as_ref().is_ok_and(|now| content(now, &follower.options) == follower.seen) {
            continue;
        }
        let looking = tokio::task::spawn_blocking(move || {
            follower.look(now);
            follower
        });
        let Ok(after) = looking.await else { return };
        follower = after;
    }
}

struct Follower {
    fleet: Arc<Fleet>,
    file: ConfigFile,
    options: Options,
    /// What was looked at last.
    seen: Vec<u8>,
    /// What is wrong with that, or waits for the next start.
    said: Option<String>,
}

impl Follower {
    /// So that the next look is the first one.
    fn forget(&mut self) {
        self.seen = Vec::new();
        self.said = None;
    }

    fn look(&mut self, now: Result<ConfigFile, ConfigError>) {
        self.seen = now.as_ref().map(|now| content(now, &self.options)).unwrap_or_default();
        match now.and_then(|now| self.take(&now)) {
            Ok(reloaded) => self.tell(&reloaded),
            Err(error) => {
                self.say(format!("the config cannot be used, and stays what it was: {error}"));
            }
        }
    }

    fn take(&self, now: &ConfigFile) -> Result<Reloaded, ConfigError> {
        if let Ok(store) = settings::trust_store() {
            now.check_trust(&store)?;
        }
        let config = settings::parse(now, &self.options)?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        Ok(self.fleet.reload(config))
    }

    fn tell(&mut self, reloaded: &Reloaded) {
        if reloaded.is_change() {
            tell(reloaded);
        }
        let keys = reloaded.at_next_start.join(", ");
        if keys.is_empty() {
            self.said = None;
        } else {
            self.say(format!("in force when dormouse is started anew: {keys}"));
        }
    }

    /// Once.
    fn say(&mut self, problem: String) {
        if self.said.as_ref() != Some(&problem) {
            tracing::error!("{problem}");
            self.said = Some(problem);
        }
    }
}

/// All that the config is made of.
fn content(file: &ConfigFile, options: &Options) -> Vec<u8> {
    let more = options.env_file.as_ref().and_then(|path| std::fs::read(path).ok());
    [file.content(), more.unwrap_or_default()].join(&0)
}

fn tell(reloaded: &Reloaded) {
    let Reloaded { added, changed, shown_otherwise, removed, are_settings_new, .. } = reloaded;
    let list = |names: &[String]| names.join(", ");
    tracing::info!(
        added = list(added),
        changed = list(changed),
        shown_otherwise = list(shown_otherwise),
        removed = list(removed),
        settings = are_settings_new,
        "the config has changed"
    );
}

/// The signal by which daemons are told to read their config.
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
