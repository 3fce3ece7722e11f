//! The numbers of calls and connections of each server.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{base::Lock, proxy::EndedCall};

/// Counts by the name of the server; names are those of the config.
#[derive(Default)]
pub(super) struct ServerCounts(Lock<HashMap<String, ServerTally>>);

/// The numbers of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerTally {
    /// Requests of hosts to it that have ended.
    pub calls: u64,
    /// The part of these that has not succeeded.
    pub failed_calls: u64,
    /// Connections.
    pub wakes: u64,
}

impl ServerTally {
    /// Adds what was counted in another fleet.
    pub(crate) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.failed_calls += other.failed_calls;
        self.wakes += other.wakes;
    }
}

impl ServerCounts {
    pub(super) fn called(&self, call: &EndedCall) {
        let mut counts = self.0.lock();
        let tally = counts.entry(call.server.clone()).or_default();
        tally.calls += 1;
        tally.failed_calls += u64::from(call.fault.is_some());
    }

    pub(super) fn woke(&self, server: &str) {
        self.0.lock().entry(server.to_owned()).or_default().wakes += 1;
    }

    pub(super) fn of(&self, server: &str) -> ServerTally {
        self.0.lock().get(server).copied().unwrap_or_default()
    }
}
