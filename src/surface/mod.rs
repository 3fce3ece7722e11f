//! The tools and instructions that a host sees: pure functions from a snapshot, a view and a
//! request to a list or an action (see `docs/design/surfaces.md`).
//!
//! This module does not know how a server is reached, nor which host makes the request.

mod action;
mod activate;
mod argument_problems;
mod budget;
mod definition;
mod direct;
mod discover;
mod evaluation;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod groups;
mod load;
mod mcp_apps;
mod name_list;
mod near_misses;
mod own_tools;
mod read_result;
mod result_part;
mod run_script;
mod saved_scripts;
mod section;
mod text;
mod toolsets;
mod view;
mod wanted_script;

pub(crate) use action::{Action, failed};
pub(crate) use argument_problems::ArgumentProblems;
pub(crate) use near_misses::near_misses;
pub(crate) use own_tools::{
    calling_tool, calls_another, through_use_tool, to_discover_tool, to_run_script,
};
pub(crate) use read_result::ReadForm;
pub(crate) use result_part::ResultPart;
pub(crate) use view::{Apps, View};
pub(crate) use wanted_script::{MAX_CODE_BYTES, ScriptSource, WantedScript};
