//! A check of a script that does not run it. It takes place in a worker, since the parser reads
//! what others may have written.

use std::time::Duration;

use super::{Bounds, Failure, FromWorker, ToWorker, ToolUse, WorkerError, WorkerProcess};

/// Maximum time for the check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
/// The memory of the worker, in bytes.
const MEMORY: usize = 256_000_000;

/// The reason that a script was not checked, or cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("the check takes longer than {CHECK_TIMEOUT:?}")]
    TimedOut,
    #[error("{}", .0.message)]
    Script(Failure),
}

/// Returns the calls of tools that a script contains.
///
/// # Errors
/// If the script cannot be run, or not be checked.
pub(crate) async fn check_script(code: String) -> Result<Vec<ToolUse>, CheckError> {
    let mut worker = WorkerProcess::start()?;
    let own_time_ms = u64::try_from(CHECK_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    let bounds = Bounds { memory: MEMORY, own_time_ms, output: 0, at_once: 0 };
    worker.send(&ToWorker::Check { code, bounds });
    let answer = async {
        loop {
            match worker.next().await? {
                FromWorker::Checked { uses } => return Ok(uses),
                FromWorker::Failed(failure) => return Err(CheckError::Script(failure)),
                FromWorker::Ready => {}
                _ => return Err(WorkerError::Unexpected.into()),
            }
        }
    };
    tokio::time::timeout(CHECK_TIMEOUT, answer).await.unwrap_or(Err(CheckError::TimedOut))
}
