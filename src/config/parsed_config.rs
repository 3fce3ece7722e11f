//! The result of reading a config file.

use std::collections::BTreeSet;

use super::{Problem, ServerConfig, Settings};

/// A validated config, which later code never checks again.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub settings: Settings,
    /// The servers in the order of the file, which is their order of precedence.
    pub servers: Vec<ServerConfig>,
}

/// A config, and the warnings about the file that it was read from.
#[derive(Clone, Debug, Default)]
pub struct ParsedConfig {
    pub config: Config,
    /// The parts of the file that dormouse ignores or treats differently.
    pub warnings: Vec<Problem>,
    pub compatibility: Compatibility,
}

/// The behaviour of another system that no key of dormouse has. A config of dormouse has the
/// default.
#[derive(Clone, Debug, Default)]
pub struct Compatibility {
    /// Names of the servers whose idle timeouts take precedence over the command line.
    pub kept_idle_timeouts: BTreeSet<String>,
    /// True if the endpoints of single servers are also at `/<name>/…`.
    pub serves_at_root: bool,
}
