//! Results of tools that are too long for a host: cut to a preview, kept for the session that made
//! the call, and read in parts. It does not know the fleet.

mod content;
mod findings;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;
mod grep;
mod json_path;
mod json_shape;
mod kept_result;
mod kept_results;
mod pages;
mod path_search;
mod preview;
mod result_table;

pub(super) use kept_result::Excerpt;
pub(super) use kept_results::{Cut, KeptResults, RemovedResults};
pub(super) use preview::{PreviewRules, URI_PREFIX};
