//! Code mode: scripts of agents, run by a process of their own (docs/design/scripts.md).
//!
//! [`WorkerProcess`] starts this program again as a worker, which runs one script in a sandbox and
//! asks for everything that it needs from outside by messages. The layer knows neither tools nor
//! hosts: whoever owns the process answers its requests. [`ToolStub`] describes a tool to those who
//! write scripts.

mod check;
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
pub(crate) use spelling::the_only;
pub(crate) use stub::ToolStub;
pub(crate) use type_text::property;
pub(crate) use worker::{ARGUMENT, run_worker};
