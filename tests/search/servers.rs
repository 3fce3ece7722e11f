//! The servers of the evaluation, with their stored catalogs.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use anyhow::Context as _;
use dormouse::internals::{
    catalog::{ServerId, Snapshot, cache_in},
    config::{self, Environment},
};

const CONFIG: &str = include_str!("config.json");

/// Returns the first `count` servers of the config, unloaded and with their stored catalogs.
///
/// # Errors
/// A server has no stored catalog.
pub fn snapshot(catalogs: &Path, count: usize) -> anyhow::Result<Snapshot> {
    let path = Path::new("tests/search/config.json");
    let config = config::parse(CONFIG, path, &Environment::of_process())?.config;
    let servers = &config.servers[..count];
    let snapshot = Snapshot::new(Arc::default(), &ServerId::number(servers));
    let cache = cache_in(catalogs);
    let mut known = Vec::new();
    for (server, offer) in servers.iter().zip(&snapshot.offers) {
        let (record, _) =
            cache.last(server).with_context(|| format!("nothing is known of {}", server.name))?;
        let catalog = Arc::new(record.catalog);
        known.push((offer.id, offer.expose(&catalog, &BTreeSet::new())));
    }
    Ok(snapshot.recalled(known))
}
