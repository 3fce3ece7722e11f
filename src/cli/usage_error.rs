//! Errors in the use of a command.

/// Exit code for errors in the arguments or in the config.
pub(super) const USAGE_EXIT_CODE: u8 = 2;

/// An error in the arguments that the argument parser cannot detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);
