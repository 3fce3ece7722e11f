//! A running dormouse follows its config: whatever is written into it is in force at once.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{arguments::Options, settings};
use crate::{
    config::{ConfigError, ConfigFile, Watch},
    proxy::{Fleet, Reloaded},
};

/// A file is often written in several steps.
const SETTLED: Duration = Duration::from_millis(100);

/// Takes over every change of the config until `stop`, and on every hangup what it is then.
pub(super) async fn follow(
    fleet: Arc<Fleet>,
    file: ConfigFile,
    options: Options,
    stop: CancellationToken,
) {
    let files =
        [Some(file.path.clone()), Some(file.path.with_file_name(".env")), options.env_file.clone()];
    let mut watch = Watch::new(files.into_iter().flatten().collect())
        .inspect_err(
            |error| tracing::warn!(%error, "the config is not followed; say it with SIGHUP"),
        )
        .ok();
    let mut hangups = Hangups::new();
    let mut said = None;
    // It may have been written between the start and the watch.
    let mut is_due = file.read_again().is_ok_and(|now| now.text() != file.text());
    loop {
        let changed = async {
            match &mut watch {
                Some(watch) => watch.changed().await,
                None => std::future::pending().await,
            }
            tokio::time::sleep(SETTLED).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = std::future::ready(()), if is_due => is_due = false,
            () = changed => {}
            () = hangups.next() => said = None,
        }
        let (fleet, file, options) = (fleet.clone(), file.clone(), options.clone());
        let taking = tokio::task::spawn_blocking(move || take(&fleet, &file, &options));
        let Ok(taken) = taking.await else { return };
        let problem = taken.err().map(|error| error.to_string());
        if let Some(problem) = problem.as_ref().filter(|problem| said.as_ref() != Some(*problem)) {
            tracing::error!("the config cannot be used, and stays what it was: {problem}");
        }
        said = problem;
    }
}

fn take(fleet: &Fleet, file: &ConfigFile, options: &Options) -> Result<(), ConfigError> {
    let now = file.read_again()?;
    if let Ok(store) = settings::trust_store() {
        now.check_trust(&store)?;
    }
    let config = settings::parse(&now, options)?;
    let warnings = config.warnings.clone();
    let reloaded = fleet.reload(config);
    if !reloaded.is_nothing() {
        tell(&reloaded);
        for warning in warnings {
            tracing::warn!("{warning}");
        }
    }
    Ok(())
}

fn tell(reloaded: &Reloaded) {
    let Reloaded { added, changed, shown_otherwise, removed, are_settings_new, at_next_start } =
        reloaded;
    let list = |names: &[String]| names.join(", ");
    tracing::info!(
        added = list(added),
        changed = list(changed),
        shown_otherwise = list(shown_otherwise),
        removed = list(removed),
        settings = are_settings_new,
        "the config has changed"
    );
    if !at_next_start.is_empty() {
        let keys = at_next_start.join(", ");
        tracing::warn!(keys, "these are in force when dormouse is started anew");
    }
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
