//! Times of stored logins.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a time in seconds since 1970.
pub(super) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
