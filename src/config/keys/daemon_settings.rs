//! The keys about the daemon.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KeyGroup, key_class::AT_NEXT_START};
use crate::config::duration::{self, DurationText};

/// The rules for the process that serves all hosts of the user with this config.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSettings {
    /// `false` serves each host in a process of its own, not all in one background process.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub daemon: bool,
    /// Time after which the background process ends if it serves no host; 0 for never.
    #[serde(with = "duration::or_never")]
    #[schemars(with = "DurationText", extend("x-class" = AT_NEXT_START))]
    pub daemon_idle_timeout: Option<Duration>,
}

impl Default for DaemonSettings {
    fn default() -> Self {
        Self { daemon: true, daemon_idle_timeout: Some(Duration::from_mins(1)) }
    }
}

impl KeyGroup for DaemonSettings {}
