//! The servers of the soak, and what may happen to each.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// Connected from the start to the end.
    Steady,
    /// Goes to sleep after each second without use.
    Sleeper,
    /// Asks its host a question in the middle of a call; each session has an instance.
    Asking,
    /// Replaces its tools.
    Changing,
    /// Speaks 2026-07-28 only.
    Modern,
    /// Is behind HTTP, and demands tokens that expire every two seconds. The driver serves it.
    Guarded,
    /// Exits in the middle of calls, and is killed.
    Mortal,
    /// Never answers some calls, and is stopped for seconds.
    Frozen,
    /// Is changed, removed and added in the config.
    Edited,
}

impl ServerKind {
    pub const ALL: [Self; 9] = [
        Self::Steady,
        Self::Sleeper,
        Self::Asking,
        Self::Changing,
        Self::Modern,
        Self::Guarded,
        Self::Mortal,
        Self::Frozen,
        Self::Edited,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Sleeper => "sleeper",
            Self::Asking => "asking",
            Self::Changing => "changing",
            Self::Modern => "modern",
            Self::Guarded => "guarded",
            Self::Mortal => "mortal",
            Self::Frozen => "frozen",
            Self::Edited => "edited",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether a call may fail because of what the driver does to the server. A call of any
    /// other server has to succeed.
    pub fn may_fail(self) -> bool {
        matches!(self, Self::Mortal | Self::Frozen | Self::Edited)
    }

    /// Returns the settings of the server's entry in the config.
    pub fn settings(self) -> Value {
        match self {
            Self::Steady | Self::Changing => json!({"startup": "eager"}),
            Self::Sleeper => json!({"startup": "lazy", "idleTimeout": 1}),
            Self::Asking => json!({"startup": "lazy", "isolation": "session"}),
            Self::Frozen => json!({"startup": "hybrid", "timeouts": {"call": 4}}),
            Self::Modern | Self::Guarded | Self::Mortal | Self::Edited => {
                json!({"startup": "lazy", "idleTimeout": 3})
            }
        }
    }
}
