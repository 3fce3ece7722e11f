//! The actions and visible events of the model-based test of sessions.

use crate::protocol::{Era, LogLevel};

/// A time or a delay, in milliseconds since the start of a sequence.
pub(super) type Millis = u64;

/// The number of hosts that can be attached at once.
const SLOTS: u8 = 4;

/// The server that stays awake, and the one that sleeps when hosts do not need it.
pub(super) const SERVERS: [&str; 2] = ["a", "b"];
/// The resources of each server: the delay of the answer to a subscription in milliseconds, one
/// that is refused, and one that is never answered.
pub(super) const RESOURCES: [&str; 8] =
    ["a:0", "a:300", "a:refused", "a:hangs", "b:0", "b:300", "b:refused", "b:hangs"];

/// An action after a delay.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) after: Millis,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Attach {
        slot: u8,
        era: Era,
        drops: bool,
    },
    /// `initialize` of a legacy host.
    Initialize {
        slot: u8,
    },
    /// `notifications/initialized`
    Initialized {
        slot: u8,
    },
    Ping {
        slot: u8,
    },
    /// A tool call that is answered after `delay`. `is_repeated`: with the id of the last request.
    Call {
        slot: u8,
        server: usize,
        delay: Millis,
        level: Option<LogLevel>,
        is_repeated: bool,
    },
    Subscribe {
        slot: u8,
        resource: usize,
    },
    Unsubscribe {
        slot: u8,
        resource: usize,
    },
    SetLevel {
        slot: u8,
        level: LogLevel,
    },
    Listen {
        slot: u8,
        tools: bool,
        resources: bool,
        uris: Vec<usize>,
    },
    /// The host cancels the request or stream at this position.
    Cancel {
        slot: u8,
        position: u8,
    },
    /// The host stops reading, or reads again.
    Stall {
        slot: u8,
    },
    Read {
        slot: u8,
    },
    Detach {
        slot: u8,
    },
    ChangeTools {
        server: usize,
    },
    ChangeResources {
        server: usize,
    },
    Update {
        resource: usize,
    },
    Log {
        server: usize,
        level: LogLevel,
        count: u32,
    },
    /// The server that sleeps exits.
    Die,
    /// The config gives a server another environment, so that a new instance replaces it.
    Reload {
        server: usize,
    },
}

/// A message to a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// The answer to the request of this id: the text of a tool's result, empty for others; `None`
    /// for an error.
    Answer {
        id: u64,
        text: Option<String>,
    },
    ToolsChanged {
        stream: Option<u64>,
    },
    ResourcesChanged {
        stream: Option<u64>,
    },
    Updated {
        number: u64,
        stream: Option<u64>,
    },
    Logged {
        number: u64,
    },
    Acknowledged {
        stream: u64,
        uris: Vec<String>,
    },
}

impl Item {
    pub(super) fn is_notification(&self) -> bool {
        !matches!(self, Self::Answer { .. })
    }

    /// Returns whether the item announces a changed list, whose moment is not defined to the
    /// millisecond.
    pub(super) fn is_of_lists(&self) -> bool {
        matches!(self, Self::ToolsChanged { .. } | Self::ResourcesChanged { .. })
    }
}

pub(super) fn generate_step(rng: &mut fastrand::Rng) -> Step {
    let (slot, server) = (rng.u8(..SLOTS), rng.usize(..SERVERS.len()));
    let resource = rng.usize(..RESOURCES.len());
    let levels = [LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error];
    let level = levels[rng.usize(..levels.len())];
    let action = match rng.u8(..66) {
        0..8 => {
            let era = if rng.bool() { Era::Legacy } else { Era::Modern };
            Action::Attach { slot, era, drops: rng.u8(..4) == 0 }
        }
        8..13 => Action::Initialize { slot },
        13..17 => Action::Initialized { slot },
        17..18 => Action::Ping { slot },
        18..26 => Action::Call {
            slot,
            server,
            delay: [0, 10, 300, 1000][rng.usize(..4)],
            level: rng.bool().then_some(level),
            is_repeated: rng.u8(..8) == 0,
        },
        26..32 => Action::Subscribe { slot, resource },
        32..35 => Action::Unsubscribe { slot, resource },
        35..37 => Action::SetLevel { slot, level },
        37..42 => {
            let uris = (0..rng.usize(..4)).map(|_| rng.usize(..RESOURCES.len())).collect();
            Action::Listen { slot, tools: rng.bool(), resources: rng.bool(), uris }
        }
        42..46 => Action::Cancel { slot, position: rng.u8(..6) },
        46..48 => Action::Stall { slot },
        48..50 => Action::Read { slot },
        50..52 => Action::Detach { slot },
        52..54 => Action::ChangeTools { server },
        54..55 => Action::ChangeResources { server },
        55..60 => Action::Update { resource },
        60..63 => Action::Log { server, level, count: [1, 1, 60][rng.usize(..3)] },
        63 => Action::Die,
        _ => Action::Reload { server },
    };
    Step { after: [1, 5, 20, 120, 400, 2500][rng.usize(..6)], action }
}
