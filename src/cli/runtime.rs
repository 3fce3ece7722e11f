//! The runtime of asynchronous tasks.

/// Builds a runtime with one thread: dormouse mainly moves bytes, which needs no more threads.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
