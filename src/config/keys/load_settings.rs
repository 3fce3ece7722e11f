//! The keys about loads and connections.

use std::time::Duration;

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

/// The rules for loads and connections.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadSettings {
    /// The hosts for which a load counts: all, or only the session that requested it.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub loads: Loads,
    /// `true` loads the servers again that were loaded when dormouse last ended.
    #[schemars(extend("x-class" = AT_NEXT_START))]
    pub remember_loads: bool,
    /// Maximum age of the stored catalog of a hybrid server before it is read again; 0 for no
    /// limit.
    #[serde(with = "duration::or_never")]
    #[schemars(with = "DurationText", extend("x-class" = AT_NEXT_START))]
    pub catalog_ttl: Option<Duration>,
    /// Maximum time for which the result of a load waits until the host has fetched the new tool
    /// list.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText", extend("x-class" = AT_ONCE))]
    pub settle: Duration,
    /// Maximum time for which lists wait for eager and hybrid servers, counted from the start of
    /// dormouse.
    #[serde(with = "duration::text")]
    #[schemars(with = "DurationText", extend("x-class" = AT_NEXT_START))]
    pub startup_wait: Duration,
    /// `true` lets dormouse open the browser when a server that is needed now demands a login.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub interactive: bool,
}

impl Default for LoadSettings {
    fn default() -> Self {
        Self {
            loads: Loads::Process,
            remember_loads: false,
            catalog_ttl: Some(Duration::from_hours(24)),
            settle: Duration::from_millis(250),
            startup_wait: Duration::from_secs(5),
            interactive: false,
        }
    }
}

impl KeyGroup for LoadSettings {
    fn problems(&self, _written: &Value) -> Vec<KeyProblem> {
        if !self.remember_loads || self.loads != Loads::Session {
            return Vec::new();
        }
        let message = "with \"loads\": \"session\" there are no loads to remember: sessions end \
            with their hosts";
        vec![(vec![Step::Key("rememberLoads".to_owned())], message.to_owned())]
    }
}

/// The scope of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Loads {
    /// All hosts see what one host loads.
    Process,
    /// Each session of a host sees only its own loads.
    Session,
}
