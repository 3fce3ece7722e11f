//! Code mode: scripts of agents, run by a process of their own (docs/design/scripts.md).
//!
//! [`WorkerProcess`] starts this program again as a worker, which runs one script in a sandbox and
//! asks for everything that it needs from outside by messages. The owner of the process answers its
//! requests; the worker knows neither hosts nor servers. [`ToolStub`] writes the declaration of a
//! tool in TypeScript, from its schemas or from the [`ResultShape`] of its results.

mod check;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod json_type;
mod message;
mod process;
mod result_shape;
mod spelling;
mod stub;
mod type_text;
mod worker;

pub(crate) use check::{CheckError, check_script};
pub(crate) use message::{Bounds, Failure, FromWorker, Place, Request, Run, ToWorker, ToolUse};
pub(crate) use process::{WorkerError, WorkerProcess};
pub(crate) use result_shape::ResultShape;
pub(crate) use spelling::find_spelled_alike;
pub(crate) use stub::ToolStub;
pub(crate) use type_text::property;
pub(crate) use worker::{ARGUMENT, run_worker};
