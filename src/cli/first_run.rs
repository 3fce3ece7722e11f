//! The first run of a YAML config that says nothing of tools writes them into it, to be switched there.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::settings;
use crate::{
    catalog::ServerCatalog,
    config::{Config, ConfigFile, MergeError, ServerConfig},
    proxy::Fleet,
};

/// Servers that are learned soon after each other are written together.
const GATHER: Duration = Duration::from_millis(500);
/// Somebody else may be editing the config at the same time.
const MOST_TRIES: usize = 10;

pub(super) fn is_due(file: &ConfigFile, config: &Config) -> bool {
    file.is_yaml() && config.servers.iter().all(|server| server.tools.is_empty())
}

/// Writes the tools of each server once they are known, until all are written or `stop`.
pub(super) async fn write_tools(fleet: Arc<Fleet>, file: ConfigFile, stop: CancellationToken) {
    let mut file = file;
    let mut written = BTreeSet::new();
    let mut learned = fleet.learned();
    loop {
        let (before, servers) = (file.clone(), fleet.clone());
        let writing = tokio::task::spawn_blocking(move || write(&before, &servers, &written));
        let Ok(Some((after, done))) = writing.await else { return };
        (file, written) = (after, done);
        let more = async {
            if learned.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(GATHER).await;
            learned.mark_unchanged();
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = more => {}
        }
    }
}

/// The file as it is then, and whose tools are in it; `None` where there is nothing more to do.
fn write(
    before: &ConfigFile,
    fleet: &Fleet,
    written: &BTreeSet<String>,
) -> Option<(ConfigFile, BTreeSet<String>)> {
    let mut before = before.clone();
    let known = fleet.known_catalogs();
    if known.iter().all(|(config, _)| written.contains(&config.name)) {
        return None;
    }
    for _ in 0..MOST_TRIES {
        let (after, done) = with_tools(&before, &known, written.clone());
        if before.text() == after.text() {
            return Some((after, done));
        }
        match after.replace(&before, settings::trust_store().ok().as_ref()) {
            Ok(()) => {
                let path = after.path.display();
                tracing::info!(%path, "wrote the tools of the servers into the config");
                return Some((after, done));
            }
            Err(MergeError::Changed) => before = before.read_again().ok()?,
            Err(error) => {
                tracing::warn!(%error, "the tools of the servers are not written into the config");
                return None;
            }
        }
    }
    None
}

type Known = (Arc<ServerConfig>, Option<Arc<ServerCatalog>>);

/// The file with the tools of those servers that are known by now and have not been written. Where somebody has named
/// tools meanwhile, they stay as they are.
fn with_tools(
    before: &ConfigFile,
    known: &[Known],
    mut written: BTreeSet<String>,
) -> (ConfigFile, BTreeSet<String>) {
    let mut after = before.clone();
    // Somebody may be in the middle of editing it.
    let Ok(now) = before.parse(&before.environment()) else { return (after, written) };
    for (config, catalog) in known {
        let Some(catalog) = catalog else { continue };
        let is_new = written.insert(config.name.clone());
        let entry = now.servers.iter().find(|server| server.name == config.name);
        let Some(entry) = entry.filter(|entry| is_new && entry.tools.is_empty()) else { continue };
        match after.with_tools(&config.name, &catalog.tool_changes(entry)) {
            Ok(merged) => after = merged,
            Err(error) => tracing::warn!(server = config.name, %error, "its tools are not written"),
        }
    }
    (after, written)
}
