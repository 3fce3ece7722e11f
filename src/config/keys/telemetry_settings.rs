//! The keys for telemetry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeyGroup, key_class::AT_NEXT_START};

/// The settings for telemetry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TelemetrySettings {
    /// The content of the log of calls: nothing, the calls, or also their arguments and results.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub call_log: CallLogging,
}

impl KeyGroup for TelemetrySettings {}

/// How much of each call the log keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallLogging {
    /// Nothing is written.
    Off,
    /// Time, host, server, tool, duration, sizes and outcome of each call.
    #[default]
    Calls,
    /// Also the arguments and the result, without the secrets in the server's entry.
    Contents,
}
