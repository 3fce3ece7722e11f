//! At the first run with a YAML config that names no tools, writes the tools of all servers into
//! it, so that the user can switch them on and off there.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::settings;
use crate::{
    base::{ReplaceError, run_blocking},
    catalog::ServerCatalog,
    config::{ConfigFile, Dialect, ParsedConfig, ServerConfig, Unchanged},
    proxy::{Event, Fleet},
};

/// Delay after a catalog becomes known, so that several catalogs are written together.
const GATHER_DELAY: Duration = Duration::from_millis(500);
/// Maximum number of attempts, since another program may be editing the config at the same time.
const MAX_TRIES: usize = 10;
/// Delay before the next attempt, during which an edit by the user may become valid.
const RETRY_DELAY: Duration = Duration::from_secs(2);

pub(super) fn is_due(file: &ConfigFile, parsed: &ParsedConfig) -> bool {
    file.is_yaml()
        && parsed.config.servers.iter().all(|server| server.offer.tools.is_empty())
        && file.dialect().is_none_or(Dialect::has_tools)
}

/// Writes the tools of each server once its catalog is known. Returns when all are written, or at
/// `stop`.
pub(super) async fn write_tools(fleet: Arc<Fleet>, file: ConfigFile, stop: CancellationToken) {
    let mut written = BTreeSet::new();
    let mut events = fleet.operator().events();
    loop {
        let (path, servers, done) = (file.clone(), fleet.clone(), written.clone());
        let writing = run_blocking(move || write(&path, &servers, &done));
        let Some(progress) = writing.await else { return };
        let is_later = matches!(progress, Progress::Later);
        match progress {
            Progress::Done => return,
            Progress::Later => {}
            Progress::Written(done) => written = done,
        }
        let more = async {
            if is_later {
                return tokio::time::sleep(RETRY_DELAY).await;
            }
            next_catalog(&mut events).await;
            tokio::time::sleep(GATHER_DELAY).await;
            // Catalogs that were read during the pause are written now.
            events = events.resubscribe();
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = more => {}
        }
    }
}

/// Waits until a catalog is new or has changed.
async fn next_catalog(events: &mut broadcast::Receiver<Event>) {
    loop {
        match events.recv().await {
            Ok(Event::CatalogLearned) | Err(RecvError::Lagged(_)) => return,
            Ok(_) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

enum Progress {
    /// The tools of these servers are in the file.
    Written(BTreeSet<String>),
    /// The file cannot be edited at the moment.
    Later,
    /// All tools are written, or writing has failed for good.
    Done,
}

fn write(file: &ConfigFile, fleet: &Fleet, written: &BTreeSet<String>) -> Progress {
    let known = fleet.operator().known_catalogs();
    if known.iter().all(|(config, _)| written.contains(&config.name)) {
        return Progress::Done;
    }
    let failed = |error: &dyn std::error::Error| {
        tracing::warn!(%error, "cannot write the tools of the servers into the config");
        Progress::Done
    };
    for _ in 0..MAX_TRIES {
        let before = match file.read_again() {
            Ok(before) => before,
            Err(error) => return failed(&error),
        };
        let Some((after, done)) = with_tools(&before, &known, written.clone()) else {
            return Progress::Later;
        };
        if before.text() == after.text() {
            return Progress::Written(done);
        }
        match after.replace(&before, settings::trust_store().ok().as_ref()) {
            Ok(()) => {
                let path = after.path.display();
                tracing::info!(%path, "wrote the tools of the servers into the config");
                return Progress::Written(done);
            }
            Err(Unchanged::Replace(ReplaceError::Changed)) => {}
            Err(error) => return failed(&error),
        }
    }
    Progress::Later
}

type Known = (Arc<ServerConfig>, Option<Arc<ServerCatalog>>);

/// Returns the file with the tools of those servers whose catalogs are known and not yet written.
/// Tools that the user has named in the meantime stay unchanged. Returns `None` while the file is
/// invalid, for example during an edit by the user.
fn with_tools(
    before: &ConfigFile,
    known: &[Known],
    mut written: BTreeSet<String>,
) -> Option<(ConfigFile, BTreeSet<String>)> {
    let mut after = before.clone();
    let now = before.parse(&before.environment()).ok()?;
    for (config, catalog) in known {
        let Some(catalog) = catalog else { continue };
        let is_new = written.insert(config.name.clone());
        let entry = now.config.servers.iter().find(|server| server.name == config.name);
        let Some(entry) = entry.filter(|entry| is_new && entry.offer.tools.is_empty()) else {
            continue;
        };
        match after.with_tools(&config.name, &catalog.tool_changes(entry)) {
            Ok(merged) => after = merged,
            Err(error) => tracing::warn!(server = config.name, %error, "cannot write the tools of \
                a server into the config"),
        }
    }
    Some((after, written))
}
