//! Between hosts and servers: the fleet of upstreams with the one live snapshot, the routing of
//! requests, and the relay of notifications and questions.
//!
//! It must not know how a host is connected: a host is a [`Host`], made by `downstream`.

mod asking;
mod attachment;
mod audience;
mod board;
mod calls;
mod catalog_memory;
mod catalog_writer;
mod catalogs;
mod consents;
mod declared;
mod endpoint;
mod events;
mod extension_lists;
mod extensions;
mod fleet;
mod for_log;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod host;
mod host_handshake;
mod host_memory;
mod host_recall;
mod in_flight;
mod instance;
mod known_tasks;
mod large_results;
mod launch;
mod learned_shapes;
mod lists;
mod loading;
mod notifications;
mod observer;
mod open_logins;
mod operator;
mod overview;
mod personal_resources;
mod profile_use;
mod publishing;
mod questions;
mod reaper;
mod reload;
mod remembered_loads;
mod replication;
mod request_record;
mod resources;
mod results;
mod router;
mod rule_writer;
mod running_script;
mod script_slots;
mod scripts;
mod servers;
mod span;
mod streams;
mod task_table;
mod tasks;
#[cfg(test)]
pub(crate) mod testing;
mod tool_calls;
mod usage;
mod waiting_catalogs;

pub(crate) use audience::Subscriber;
pub(crate) use endpoint::{Endpoint, EndpointChoice};
pub(crate) use events::{
    Bodies, CallFault, CallSize, EndedCall, EndedRequest, Event, EventSink, SentCall, TimeSpan,
};
pub(crate) use fleet::Fleet;
use host::Viewer;
pub(crate) use host::{Caller, Host, HostId, Principal, User};
pub(crate) use host_memory::HostName;
pub(crate) use launch::Storage;
pub(crate) use operator::{FoundTool, OperateError};
pub(crate) use overview::Overview;
pub(crate) use reload::Reloaded;
pub(crate) use remembered_loads::RememberedLoads;
pub(crate) use rule_writer::{RuleNotWritten, RuleWriter};
pub(crate) use running_script::RunningScript;
pub(crate) use span::Span;
pub(crate) use usage::{Amount, Usage, UsageAccount};
