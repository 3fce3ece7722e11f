//! The result of reading a config file.

use super::{Config, Problem};

/// A config, and the warnings about the file that it was read from.
#[derive(Clone, Debug, Default)]
pub struct ParsedConfig {
    pub config: Config,
    /// The parts of the file that dormouse ignores or treats differently.
    pub warnings: Vec<Problem>,
}
