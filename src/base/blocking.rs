//! Runs blocking work off the thread that serves requests.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::task::{JoinHandle, spawn_blocking};

use super::{Lock, exhaustion::no_thread};

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
    if let Some(running) = start(take) {
        return running.await.ok().flatten();
    }
    let work = work.lock().take()?;
    Some(work())
}

/// Resolves a name on a separate thread. The port of the addresses is 0.
///
/// # Errors
/// If there is no such name, it cannot be looked up now, or the system cannot start a thread.
pub(crate) async fn resolve_name(name: String) -> io::Result<Vec<SocketAddr>> {
    let resolve = move || Ok((name.as_str(), 0).to_socket_addrs()?.collect());
    let resolving = start(resolve).ok_or_else(no_thread)?;
    resolving.await.map_err(io::Error::other)?
}

/// Starts work on a separate thread; `None` if the system cannot start one.
fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<JoinHandle<T>> {
    // Tokio panics if it cannot start its first thread for blocking work.
    catch_unwind(AssertUnwindSafe(|| spawn_blocking(work))).ok()
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
