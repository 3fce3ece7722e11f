//! The servers that are searched, with the catalogs that they had.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use anyhow::Context as _;
use dormouse::{
    catalog::{Exposed, ServerCatalog, Snapshot, read_items},
    config::{self, Environment, ServerConfig},
    protocol::{Era, Greeting},
    wire::{Raw, edit},
};

const CONFIG: &str = include_str!("config.json");

/// The servers of the config, none of them loaded, as dormouse knows them in a second run.
///
/// # Errors
/// When a server's catalog is not in the directory.
pub fn snapshot(catalogs: &Path) -> anyhow::Result<Snapshot> {
    let path = Path::new("tests/search/config.json");
    let config = config::parse(CONFIG, path, &Environment::of_process())?;
    let snapshot = Snapshot::new(&config.servers, None);
    let mut known = Vec::new();
    for (at, server) in config.servers.iter().enumerate() {
        let catalog = Arc::new(catalog_of(server, catalogs)?);
        let exposed = Exposed::new(&catalog, server, &BTreeSet::new(), snapshot.naming(at));
        known.push((at, Arc::new(exposed)));
    }
    Ok(snapshot.recalled(known))
}

/// Reads `<server>.json`, an object with the server's `tools`.
fn catalog_of(server: &ServerConfig, catalogs: &Path) -> anyhow::Result<ServerCatalog> {
    let path = catalogs.join(&server.name).with_extension("json");
    let text = fs::read(&path).with_context(|| format!("no catalog {}", path.display()))?;
    let tools = edit::get(&Raw::parse(text)?, "tools").and_then(|tools| edit::elements(&tools));
    let (tools, _) = read_items(&tools.with_context(|| format!("no tools {}", path.display()))?);
    let greeting = Greeting {
        era: Era::Legacy,
        version: "2025-11-25".to_owned(),
        capabilities: Raw::empty_object(),
        instructions: None,
    };
    Ok(ServerCatalog { tools, ..ServerCatalog::empty(greeting) })
}
