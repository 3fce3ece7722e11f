//! Progress for hosts that wait while a server is started or a user logs in.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;

use crate::proxy::Caller;

/// The interval at which a waiting host is told that its request goes on.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Waits for `work`, and sends a host that wants progress a message at each interval.
pub(in crate::proxy) async fn with_beats<T>(
    caller: &Caller,
    message: &str,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        if let Ok(done) = tokio::time::timeout(HEARTBEAT_INTERVAL, &mut work).await {
            return done;
        }
        beat(caller, message);
    }
}

/// Sends progress. The values rise from -1 towards 0, so that those of the server still rise after
/// them. A script counts all its progress.
fn beat(caller: &Caller, message: &str) {
    let progress = if let Some(script) = &caller.script {
        json!(script.next_progress())
    } else {
        let beats = caller.beats.fetch_add(1, Ordering::Relaxed) + 1;
        json!(-1.0 / f64::from(beats))
    };
    caller.tell_progress(&progress, message);
}
