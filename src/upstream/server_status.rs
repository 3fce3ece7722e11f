//! The status of a server, for reports.

use std::time::{Instant, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ConnectTiming,
    server_state::{AttemptPurpose, MAX_STRIKES, ServerState},
};

/// The state of a server as reported. A server that is retiring counts as awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    Unloaded,
    Loading,
    Awake,
    Asleep,
    BackingOff,
    AwaitingLogin,
    Evicted,
    Disabled,
}

impl Phase {
    /// Returns the word of reports and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unloaded => "unloaded",
            Self::Loading => "loading",
            Self::Awake => "awake",
            Self::Asleep => "asleep",
            Self::BackingOff => "backing-off",
            Self::AwaitingLogin => "awaiting-login",
            Self::Evicted => "evicted",
            Self::Disabled => "disabled",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub phase: Phase,
    /// Consecutive failed loads.
    pub strikes: u8,
    /// The time of the last connection, and how long connecting took.
    pub last_wake: Option<(SystemTime, ConnectTiming)>,
    /// True if the last connection was to the server of a pool.
    pub is_pooled: bool,
    /// The process group of the last connection, if it was to a process of this one.
    pub process_group: Option<u32>,
    /// The reason that the server could not be connected, or how it ended, since the last
    /// connection.
    pub last_error: Option<String>,
    /// Output since the last connection that was not a message.
    pub noise: Option<String>,
    /// The time of the next attempt.
    pub retry_at: Option<Instant>,
}

impl Status {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Unloaded,
            strikes: 0,
            last_wake: None,
            is_pooled: false,
            process_group: None,
            last_error: None,
            noise: None,
            retry_at: None,
        }
    }

    /// Notes a new state. A server that has ended keeps its phase and strikes.
    pub(super) fn update<C>(&mut self, state: &ServerState<C>) {
        self.retry_at = None;
        self.phase = match state {
            ServerState::Ended { .. } => self.phase,
            ServerState::Unloaded { strikes }
            | ServerState::Loading(
                AttemptPurpose::Load { strikes } | AttemptPurpose::Learn { strikes },
            ) => {
                self.strikes = *strikes;
                match state {
                    ServerState::Unloaded { .. } => Phase::Unloaded,
                    _ => Phase::Loading,
                }
            }
            ServerState::Loading(_) => Phase::Loading,
            ServerState::Awake { .. } | ServerState::Retiring { .. } => {
                self.strikes = 0;
                Phase::Awake
            }
            ServerState::Asleep { .. } => {
                self.strikes = 0;
                Phase::Asleep
            }
            ServerState::BackingOff { until, .. } => {
                self.retry_at = Some(*until);
                Phase::BackingOff
            }
            ServerState::AwaitingLogin { .. } => Phase::AwaitingLogin,
            ServerState::Evicted => {
                self.strikes = MAX_STRIKES;
                Phase::Evicted
            }
            ServerState::Disabled => Phase::Disabled,
        };
    }
}

/// The reason that a server cannot be put to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StaysAwake {
    #[error("it is eager, and eager servers are always awake")]
    Eager,
    #[error("hosts subscribe to its resources")]
    Subscribed,
    #[error("requests are in flight")]
    InUse,
    #[error("it is being connected")]
    Loading,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_whose_catalog_is_recalled_has_no_strikes() {
        let mut status = Status::new();
        status.update::<()>(&ServerState::Unloaded { strikes: 2 });
        assert_eq!((status.phase, status.strikes), (Phase::Unloaded, 2));
        status.update::<()>(&ServerState::Asleep { last_failure: None });
        assert_eq!((status.phase, status.strikes), (Phase::Asleep, 0));
    }
}
