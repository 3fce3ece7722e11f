//! The clock of the machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time since the beginning of 1970 (UTC).
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the seconds since the beginning of 1970 (UTC).
pub(crate) fn now_seconds() -> u64 {
    since_1970().as_secs()
}
