//! The first run of a YAML config that says nothing of tools writes them into it, to be switched there.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::settings;
use crate::{
    config::{Config, ConfigFile, MergeError},
    proxy::Fleet,
};

/// Servers that are learned soon after each other are written together.
const GATHER: Duration = Duration::from_millis(500);

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
        let writing = tokio::task::spawn_blocking(move || write(&before, &servers, written));
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
    mut written: BTreeSet<String>,
) -> Option<(ConfigFile, BTreeSet<String>)> {
    let mut after = before.clone();
    let known = fleet.known_catalogs();
    let is_everything = known.len() == written.len();
    for (config, catalog) in known {
        let Some(catalog) = catalog.filter(|_| !written.contains(&config.name)) else { continue };
        match after.with_tools(&config.name, &catalog.tool_changes(&config)) {
            Ok(merged) => after = merged,
            Err(error) => tracing::warn!(server = config.name, %error, "its tools are not written"),
        }
        written.insert(config.name.clone());
    }
    if before.text() != after.text() {
        match after.replace(before, settings::trust_store().ok().as_ref()) {
            Ok(()) => {}
            // Another process has written them, or somebody edits it: this is no first run any more.
            Err(MergeError::Changed) => return None,
            Err(error) => {
                tracing::warn!(%error, "the tools of the servers are not written into the config");
                return None;
            }
        }
        tracing::info!(path = %after.path.display(), "wrote the tools of the servers into the config");
    }
    (!is_everything).then_some((after, written))
}
