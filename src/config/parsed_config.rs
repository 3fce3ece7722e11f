//! The result of reading a config file.

use std::collections::BTreeSet;

use super::{Config, Dialect, Problem};

/// A config, and the properties of the file that it was read from.
#[derive(Clone, Debug, Default)]
pub struct ParsedConfig {
    pub config: Config,
    /// The system that the file was written for, if it is not dormouse.
    pub dialect: Option<Dialect>,
    /// Servers of such a file whose own idle timeout takes precedence over the command line.
    pub own_idle_timeouts: BTreeSet<String>,
    /// True if the endpoints at `/servers/<name>/` are also at `/<name>/`, as in such a system.
    pub servers_at_root: bool,
    /// The parts of the file that dormouse ignores or treats differently.
    pub warnings: Vec<Problem>,
}
