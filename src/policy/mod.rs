//! Policies: from the rules of a config and a call of a tool to a verdict. Pure.
//!
//! This module does not know how a call reached dormouse, nor how a user is asked.

mod decision;
mod rule_lists;
mod rule_place;
mod tool_call;

pub(crate) use decision::{Decider, Decision, changed_tool_message};
pub(crate) use rule_lists::{NoException, RuleLists};
pub(crate) use rule_place::{RuleList, RulePlace};
pub(crate) use tool_call::{MalformedCall, ToolCall};
