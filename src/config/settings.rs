//! A validated config, which later code never checks again.

use super::{
    Profiles, ServerConfig,
    keys::{HttpSettings, Limits, ListSettings, LoadSettings},
};

#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    /// The servers in the order of the file, which is their order of precedence.
    pub servers: Vec<ServerConfig>,
}

/// The settings for all servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub lists: ListSettings,
    pub loading: LoadSettings,
    pub limits: Limits,
    pub http: HttpSettings,
    pub profiles: Profiles,
    /// The mark by which a dormouse detects an ancestor that serves the same config; `None` without
    /// a config.
    pub lineage: Option<String>,
    pub wrapping: Wrapping,
    pub server_paths: ServerPaths,
}

/// Whether dormouse serves a config, or wraps the one server of its command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrapping {
    #[default]
    None,
    /// The server's names have no prefix, and requests with unknown methods pass to it.
    Shared,
    /// As `Shared`, and its only host reads the server's lists itself: dormouse requests none.
    Exclusive,
}

/// The paths of the endpoints of single servers over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerPaths {
    /// `/servers/<name>/…`
    #[default]
    Prefixed,
    /// Also `/<name>/…`.
    AlsoAtRoot,
}
