//! The rules by which a config file is read that no key of it states.

use std::borrow::Cow;

use super::Environment;

/// The rules by which a file is read, in addition to its keys. A config of dormouse has the
/// default rules; the translation of another system's config states those of that system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadingRules {
    pub(super) variables: Variables,
    /// True if a reference to an undefined variable stays as it is written, and the server is used
    /// nevertheless.
    pub(super) keeps_undefined: bool,
    /// True if the idle timeout of a server's entry takes precedence over the command line.
    pub(super) keeps_idle_timeouts: bool,
    /// True if the endpoints of single servers are also at `/<name>/…`.
    pub(super) serves_at_root: bool,
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
