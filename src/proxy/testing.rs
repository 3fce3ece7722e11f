//! Fleets with servers in memory, for tests.

use std::sync::Arc;

use super::{Fleet, Storage};
use crate::{
    auth::{Auth, Browser, LoginStore},
    config::{Config, Environment, UserCommands, parse},
    upstream::Opener,
};

pub(crate) use crate::upstream::memory_server::MemoryServer;

/// Creates a fleet that keeps nothing on disk, with the servers of a config in memory. `config` is
/// a valid file, and each of its servers is given.
pub(crate) fn fleet_in_memory(
    config: &str,
    servers: impl IntoIterator<Item = Arc<MemoryServer>>,
) -> Arc<Fleet> {
    let auth = Auth::new(LoginStore::new(None, false), UserCommands::default(), Browser::Here);
    let opener = Opener::in_memory(servers);
    Fleet::with_opener(parse_config(config), opener, Storage::default(), auth)
}

/// Reads the text of a valid config file.
pub(crate) fn parse_config(config: &str) -> Config {
    let parsed = parse(config, "dormouse.json".as_ref(), &Environment::default());
    parsed.expect("a valid config").config
}
