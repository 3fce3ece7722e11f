//! The command line: parses the arguments and runs one command. Only this module wires all parts
//! together.

#[macro_use]
mod output;
mod policy;

mod approve;
mod arguments;
mod ask;
mod call;
mod candidates;
mod check;
mod complete;
mod config_rules;
mod config_source;
mod connect;
#[cfg(unix)]
mod daemon;
mod demo;
mod describe;
mod edit;
mod failure;
mod first_run;
mod follow;
mod get;
mod help;
mod http_socket;
mod import;
mod instances;
mod joint_report;
mod lineage;
mod list;
mod log;
mod logging;
mod login;
mod one_call;
mod operate;
mod options;
mod probe;
mod problems;
mod program;
mod reach;
mod refresh;
mod runtime;
mod schema;
mod script_check;
mod script_commands;
mod script_tools;
mod script_types;
mod serve;
mod served_fleet;
mod served_replica;
mod settings;
mod shared_flags;
mod shared_pool;
mod sharing_report;
mod signals;
mod state_stores;
mod status;
mod store;
mod table;
mod test;
mod top;
mod trust;
mod ui;
mod usage_error;
mod wanted_tool;

pub use program::run;

use runtime::runtime;
use usage_error::UsageError;
