//! The reasons that a login cannot be read or stored.

use std::{io, time::Duration};

use super::keychain::KeychainError;

/// Maximum time that another process may hold the lock, to renew a login for example.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginStoreError {
    #[error("cannot use {place}: {cause}")]
    Io { place: String, cause: io::Error },
    #[error("cannot read {0}: not a login of this version of dormouse")]
    Unreadable(String),
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    #[error("another process held {0} for {LOCK_TIMEOUT:?}")]
    Locked(String),
    #[error("cannot determine the directory for logins: HOME is not set")]
    NoDirectory,
    #[error("dormouse is shutting down")]
    ShuttingDown,
}
