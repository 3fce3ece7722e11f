//! The keys that can be given for all servers and for one.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    KeyGroup,
    key_class::{AT_ONCE, RECONNECTS},
    result_limit::ResultLimit,
};
use crate::config::duration::{self, DurationText};

/// Settings of a server, which it takes from the file as a whole unless its entry has its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerSettings {
    /// Maximum size of a tool's result, in bytes; the rest can be read in parts. Images do not
    /// count. 0 for no limit. Without a value 100,000, or no limit on the surface `direct` and at
    /// endpoints of one server.
    #[schemars(with = "Option<usize>", extend("x-class" = AT_ONCE))]
    pub max_result_bytes: ResultLimit,
    /// The reaction to a tool whose definition has changed since it was first seen.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub pin: Pin,
    /// Time without use after which a lazy or hybrid server goes to sleep; 0 for never.
    #[serde(with = "duration::or_never")]
    #[schemars(with = "DurationText", extend("x-class" = RECONNECTS))]
    pub idle_timeout: Option<Duration>,
    /// The deadlines of loads and requests.
    #[schemars(extend("x-class" = RECONNECTS))]
    pub timeouts: Timeouts,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            max_result_bytes: ResultLimit::Default,
            pin: Pin::Warn,
            idle_timeout: Some(Duration::from_mins(5)),
            timeouts: Timeouts::default(),
        }
    }
}

impl KeyGroup for ServerSettings {}

impl ServerSettings {
    /// Returns whether long results are cut even where fidelity is promised.
    pub(crate) fn cuts_everywhere(&self) -> bool {
        matches!(self.max_result_bytes, ResultLimit::Bytes(_))
    }

    /// Completes the keys of a server's entry with these settings.
    pub(in crate::config) fn complete(&self, own: &mut Value) {
        inherit(own, &serde_json::to_value(self).unwrap_or_default());
    }
}

/// Adds the members of `general` that `own` lacks, at every depth.
fn inherit(own: &mut Value, general: &Value) {
    match (own, general) {
        (Value::Object(own), Value::Object(general)) => {
            for (key, value) in general {
                inherit(own.entry(key).or_insert(Value::Null), value);
            }
        }
        (own @ Value::Null, general) => *own = general.clone(),
        _ => {}
    }
}

/// Deadlines of loads and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Timeouts {
    /// For a load: start, handshake and catalog together; 0 for no limit.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText")]
    pub load: Duration,
    /// For silence in a tool call, which each progress notification ends; 0 for no limit.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText")]
    pub call: Duration,
    /// For any other request; 0 for no limit.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText")]
    pub request: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            load: Duration::from_mins(2),
            call: Duration::from_mins(10),
            request: Duration::from_mins(1),
        }
    }
}

/// The reaction to a tool that changes after it was first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// None.
    Off,
    /// The change is logged, and shown by `dormouse status`.
    Warn,
    /// The tool cannot be called until `dormouse approve` is run.
    Block,
}
