//! The reasons that a config was not changed.

use std::path::PathBuf;

use super::ConfigError;
use crate::base::ReplaceError;

/// The reason that a config was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unchanged {
    #[error("unknown server {0:?}")]
    Unknown(String),
    #[error("server {0:?} exists already")]
    Exists(String),
    #[error("this is a config of {0}, which dormouse does not edit; `dormouse import` converts it")]
    NotOurs(&'static str),
    #[error(
        "{} belongs to another program, and dormouse does not edit it; `dormouse import` copies \
            its servers into your config",
        .0.display()
    )]
    OfAnotherProgram(PathBuf),
    #[error("cannot edit the entry of {what:?}: {reason}; edit it by hand")]
    ByHand { what: String, reason: String },
    #[error("cannot add the rule: {reason}; {rule}")]
    RuleByHand { reason: String, rule: String },
    #[error("{0} no longer has the rule that the addition would precede")]
    RuleGone(String),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Unchanged {
    pub(super) fn by_hand(what: &str, reason: &impl ToString) -> Self {
        Self::ByHand { what: what.to_owned(), reason: reason.to_string() }
    }
}
