//! The servers that the hosts of a running daemon share, for commands that use them.

use std::sync::Arc;

use super::shared_flags::Options;
use crate::{
    config::{ConfigFile, Settings},
    upstream::ServerPool,
};

/// Returns the servers of the running daemon for a config, which commands use if hosts share them.
#[cfg(unix)]
pub(super) fn shared_pool(
    file: &ConfigFile,
    options: &Options,
    settings: &Settings,
) -> Option<Arc<dyn ServerPool>> {
    super::daemon::remote_pool(file, options, settings)
}

/// There is no daemon on this system.
#[cfg(not(unix))]
pub(super) fn shared_pool(
    _: &ConfigFile,
    _: &Options,
    _: &Settings,
) -> Option<Arc<dyn ServerPool>> {
    None
}
