//! The severity of log messages (MCP, server/utilities/logging; RFC 5424 section 6.2.1).

use super::Meta;
use crate::wire::{Raw, edit};

/// The severity of a log message, from the most to the least verbose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const NAMES: [(&str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// Reads the level in the `params` of `logging/setLevel` or of a log message.
    pub(crate) fn of_params(params: &Raw) -> Option<Self> {
        Self::from_name(&edit::get_str(params, "level")?)
    }

    /// Reads the minimum level that a modern request asks for in its `_meta`.
    pub(crate) fn of_meta(meta: &Raw) -> Option<Self> {
        Self::from_name(&edit::get_str(meta, Meta::LOG_LEVEL)?)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_named() {
        for (position, (name, level)) in LogLevel::NAMES.into_iter().enumerate() {
            assert_eq!(level as usize, position);
            assert_eq!((level.name(), LogLevel::from_name(name)), (name, Some(level)));
        }
        assert!(LogLevel::Debug < LogLevel::Emergency);
    }
}
