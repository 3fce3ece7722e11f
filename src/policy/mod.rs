//! Policies: from the rules of a config and a call of a tool to a verdict. Pure.
//!
//! This module does not know how a call reached dormouse, nor how a user is asked.

mod decision;
mod rule_addition;
mod rule_lists;
mod tool_call;

pub(crate) use decision::{Decider, Decision, RuleList, RulePlace};
pub(crate) use rule_addition::{NoAddition, RuleAddition};
pub(crate) use rule_lists::RuleLists;
pub(crate) use tool_call::{MalformedCall, ToolCall};
