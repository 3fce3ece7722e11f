//! Fleets with servers in memory, for tests.

use std::sync::Arc;

use super::{Fleet, Storage};
use crate::{
    auth::{Auth, LoginCommand, LoginStore},
    config::{Environment, parse},
    upstream::Opener,
};

pub(crate) use crate::upstream::memory_server::MemoryServer;

/// Creates a fleet that keeps nothing on disk, with the servers of a config in memory. `config` is
/// a valid file, and each of its servers is given.
pub(crate) fn fleet_in_memory(
    config: &str,
    servers: impl IntoIterator<Item = Arc<MemoryServer>>,
) -> Arc<Fleet> {
    let parsed = parse(config, "dormouse.json".as_ref(), &Environment::default());
    let auth = Auth::new(LoginStore::new(None, false), LoginCommand::default());
    let opener = Opener::in_memory(servers);
    let config = parsed.expect("a valid config").config;
    Fleet::with_opener(config, opener, Storage::default(), auth)
}
