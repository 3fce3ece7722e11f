//! The other systems whose configs are read, and how they read theirs.

use std::borrow::Cow;

use super::Environment;

/// The system that a file belongs to, if it is not dormouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Dynmcp,
    DynamicMcp,
    MultiMcp,
    McpProxy,
}

/// The rules by which its system reads a file, in addition to its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DialectRules {
    pub(super) variables: Variables,
    /// True if a reference to an undefined variable stays as it is written, and the server is used
    /// nevertheless.
    pub(super) keeps_undefined: bool,
    /// True if the endpoints of `/servers/<name>/` are also at `/<name>/`.
    pub(super) servers_at_root: bool,
}

/// The source of `${VAR}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Variables {
    #[default]
    FileAndProcess,
    File,
    Process,
    /// The text is not a reference.
    Nowhere,
}

impl Variables {
    pub(super) fn of(self, environment: &Environment) -> Cow<'_, Environment> {
        match self {
            Self::FileAndProcess | Self::Nowhere => Cow::Borrowed(environment),
            Self::File => Cow::Owned(environment.of_file()),
            Self::Process => Cow::Owned(environment.without_file()),
        }
    }
}
