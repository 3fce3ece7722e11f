//! Runs blocking work off the thread that serves requests.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::task::{JoinHandle, spawn_blocking};

use super::Lock;

/// Runs `work` on a separate thread, or on the current thread if the system cannot start one.
///
/// Returns `None` if `work` panics, or if the runtime shuts down before `work` has started.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let work = Arc::new(Lock::new(Some(work)));
    let on_thread = work.clone();
    let take = move || {
        let work = on_thread.lock().take();
        work.map(|work| work())
    };
    // Tokio panics if it cannot start its first thread for blocking work.
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

    #[test]
    fn work_that_starts_after_the_runtime_has_shut_down_gives_none() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ended = runtime();
        let handle = ended.handle().clone();
        drop(ended);
        let outcome = runtime().block_on(async {
            let _ended = handle.enter();
            run_blocking(|| 7).await
        });
        assert_eq!(outcome, None);
    }

    #[tokio::test]
    async fn a_panic_of_the_work_gives_none() {
        assert_eq!(run_blocking(|| 7).await, Some(7));
        assert_eq!(run_blocking(|| -> u8 { panic!("on purpose") }).await, None);
    }
}
