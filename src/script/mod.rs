//! Code mode: scripts of agents, run by a process of their own (docs/design/scripts.md).
//!
//! [`WorkerProcess`] starts this program again as a worker, which runs one script in a sandbox and
//! asks for everything that it needs from outside by messages. The layer knows neither tools nor
//! hosts: whoever owns the process answers its requests.

mod message;
mod process;
mod worker;

pub(crate) use message::{FromWorker, Place, Request, Start, ToWorker};
pub(crate) use process::{WorkerError, WorkerProcess};
pub(crate) use worker::{ARGUMENT, run_worker};
