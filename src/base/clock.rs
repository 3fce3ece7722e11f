//! The clock of the machine, since the beginning of 1970 (UTC).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns a time in seconds since 1970.
pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the present time in seconds since 1970.
pub(crate) fn now_seconds() -> u64 {
    unix_seconds(SystemTime::now())
}

/// Returns the time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
