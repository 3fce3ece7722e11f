//! The writer of rules that users agree to, which the owner of the config provides.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::{config::RuleException, policy::NoException};

/// Maximum time for rules to be written and to be in force.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes rules into the config.
pub(crate) trait RuleWriter: Send + Sync {
    /// Adds exceptions to rules of the config. Resolves when they are in force.
    fn add(&self, exceptions: Vec<RuleException>)
    -> BoxFuture<'static, Result<(), RuleNotWritten>>;
}

/// The reason that a rule was not written, or is not in force.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuleNotWritten {
    #[error("it is not in force after {WRITE_TIMEOUT:?}")]
    TimedOut,
    #[error("there is no config")]
    NoConfig,
    #[error(transparent)]
    NoException(#[from] NoException),
    /// The config cannot be changed, with the reason.
    #[error("{0}")]
    Config(String),
}
