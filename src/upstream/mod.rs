//! One MCP server: its life, its connections, and its lists.
//!
//! `server_state` is the life of a server as a pure function; `actor` is the one task that performs
//! its effects; all other code holds an [`Upstream`] handle. This layer must not know hosts or how
//! a catalog is shown: it tells a [`ServerObserver`].

mod activity;
mod actor;
mod attempt;
mod carrier;
mod command;
mod connect_error;
mod connect_timing;
mod connection;
mod context;
mod era_choice;
mod failure_log;
mod fetch;
mod freshness;
mod greet;
mod handle;
mod http;
mod inbound;
mod lease;
mod listen;
#[cfg(test)]
pub(crate) mod memory_server;
mod noise;
mod opener;
mod process;
#[cfg(unix)]
mod process_group;
mod process_memory;
mod question;
mod server_observer;
mod server_pool;
mod server_state;
mod server_status;
mod server_subscriptions;
mod shared_server;
mod stale_lists;
mod stderr;
mod strays;
pub(crate) mod watchdog;

pub(crate) use attempt::declared_names;
pub(crate) use connect_error::{AttemptError, LoadError};
pub(crate) use connect_timing::ConnectTiming;
pub(crate) use context::Context;
pub(crate) use fetch::offerable;
pub(crate) use handle::Upstream;
pub(crate) use lease::Lease;
pub(crate) use opener::Opener;
pub(crate) use process::LINEAGE_VARIABLE;
pub(crate) use process_memory::GroupMemory;
pub(crate) use question::Question;
pub(crate) use server_observer::{ChangeAudience, Recalled, ServerObserver};
pub(crate) use server_pool::{
    JoinedServer, Joining, PoolFuture, PoolStream, ProcessServices, ServerPool,
};
pub(crate) use server_status::{Phase, Status, StaysAwake};
pub(crate) use stale_lists::ListKinds;
pub(crate) use stderr::RecentLines;
pub(crate) use watchdog::Watchdog;
