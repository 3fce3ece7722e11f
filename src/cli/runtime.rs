//! The runtime of asynchronous tasks.

/// Builds a runtime with one thread: dormouse mainly moves bytes, which needs no more threads.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Builds a runtime that serves hosts on this number of threads; 0 for as many as there are
/// processors.
pub(super) fn runtime_of_service(threads: u16) -> anyhow::Result<tokio::runtime::Runtime> {
    if threads == 1 {
        return runtime();
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if threads > 1 {
        builder.worker_threads(threads.into());
    }
    Ok(builder.enable_all().build()?)
}

/// Builds a runtime whose threads for blocking work write to this log.
#[cfg(unix)]
pub(super) fn runtime_with_log(log: &tracing::Dispatch) -> anyhow::Result<tokio::runtime::Runtime> {
    let log = log.clone();
    let set_log = move || {
        // The log is that of the thread until the thread ends.
        std::mem::forget(tracing::dispatcher::set_default(&log));
    };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().on_thread_start(set_log).build()?)
}
