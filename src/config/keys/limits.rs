//! The keys that bound what dormouse accepts, and what scripts may use.

use std::{ops::RangeInclusive, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    KeyGroup, KeyProblem,
    key_class::{AT_NEXT_START, AT_ONCE},
};
use crate::config::{
    duration::{self, DurationText},
    key_path::Step,
};

/// Minimum of `maxMessageBytes`: with less, no handshake would pass.
const MIN_MESSAGE_BYTES: usize = 1024;
/// The memory of a script, in MB: no less than the interpreter needs by itself.
const SCRIPT_MEMORY: RangeInclusive<usize> = 4..=1024;

/// Maximum value of `scriptOutput`: what fits into one message of a script's process.
const MAX_SCRIPT_OUTPUT: usize = 2_500_000;

/// Bounds of what dormouse accepts, and of what scripts may use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Maximum size of a message, in bytes; a larger one fails its request.
    #[schemars(range(min = MIN_MESSAGE_BYTES), extend("x-class" = AT_NEXT_START))]
    pub max_message_bytes: usize,
    /// Maximum time for which a script may run, without its waiting for tools and people.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText", extend("x-class" = AT_ONCE))]
    pub script_time: Duration,
    /// Maximum memory of a script's values, in MB.
    #[schemars(
        range(min = *SCRIPT_MEMORY.start(), max = *SCRIPT_MEMORY.end()),
        extend("x-class" = AT_ONCE)
    )]
    pub script_memory: usize,
    /// Maximum number of calls that a script may make.
    #[schemars(range(min = 1), extend("x-class" = AT_ONCE))]
    pub script_calls: usize,
    /// Maximum number of characters that a script may return, and that it may log.
    #[schemars(range(min = 1, max = MAX_SCRIPT_OUTPUT), extend("x-class" = AT_ONCE))]
    pub script_output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 64 * 1024 * 1024,
            script_time: Duration::from_mins(1),
            script_memory: 64,
            script_calls: 200,
            script_output: 1_000_000,
        }
    }
}

impl KeyGroup for Limits {
    fn problems(&self, _written: &Value) -> Vec<KeyProblem> {
        let mut problems = Vec::new();
        let mut add = |key: &str, message: String| {
            problems.push((vec![Step::Key(key.to_owned())], message));
        };
        if self.max_message_bytes < MIN_MESSAGE_BYTES {
            add("maxMessageBytes", format!("must be {MIN_MESSAGE_BYTES} or more"));
        }
        let zeros = [
            ("scriptTime", self.script_time.is_zero()),
            ("scriptCalls", self.script_calls == 0),
            ("scriptOutput", self.script_output == 0),
        ];
        for (key, _) in zeros.into_iter().filter(|(_, is_zero)| *is_zero) {
            add(key, "must be more than 0".to_owned());
        }
        if self.script_output > MAX_SCRIPT_OUTPUT {
            add("scriptOutput", format!("must be at most {MAX_SCRIPT_OUTPUT}"));
        }
        if !SCRIPT_MEMORY.contains(&self.script_memory) {
            let (least, most) = (SCRIPT_MEMORY.start(), SCRIPT_MEMORY.end());
            add("scriptMemory", format!("must be from {least} to {most} (MB)"));
        }
        problems
    }
}
