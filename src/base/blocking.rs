//! Work that blocks, kept off the thread that serves.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::task::{JoinHandle, spawn_blocking};

use super::Lock;

/// Runs `work` on a thread of its own; on this thread where the system starts no more threads.
///
/// `None` when `work` panics, or when the runtime ends before it has begun.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let work = Arc::new(Lock::new(Some(work)));
    let on_thread = work.clone();
    let take = move || {
        let work = on_thread.lock().take();
        work.map(|work| work())
    };
    // Tokio panics where it cannot start its first thread for blocking work.
    let started: Result<JoinHandle<Option<T>>, _> =
        catch_unwind(AssertUnwindSafe(|| spawn_blocking(take)));
    if let Ok(running) = started {
        return running.await.ok().flatten();
    }
    let work = work.lock().take()?;
    Some(work())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_gives_its_value_and_a_panic_gives_none() {
        assert_eq!(run_blocking(|| 7).await, Some(7));
        assert_eq!(run_blocking(|| -> u8 { panic!("on purpose") }).await, None);
    }
}
