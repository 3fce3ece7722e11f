//! The reasons that a request has no answer from its server.

use super::denial::Denial;
use crate::{peer::CallError, upstream::LoadError, wire::Raw};

/// The reason that a request has no answer from its server.
#[derive(Clone, Debug, thiserror::Error)]
pub(in crate::proxy) enum ForwardError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("server {server:?} ended before it answered; the request may have been executed")]
    Died { server: String },
    #[error("the {feature} of server {server:?} are disabled in the config of dormouse")]
    SwitchedOff { server: String, feature: &'static str },
    #[error("server {server:?}: {cause}")]
    Call { server: String, cause: CallError },
    /// The policy does not permit the call, or a user has not.
    #[error("{0}")]
    Denied(Box<Denial>),
    /// The request resolved to a different action when the server was awake; nothing was sent.
    #[error("the request has to be evaluated again")]
    Superseded,
    /// The host has to ask its user first, with this result.
    #[error("the user has to be asked first")]
    Asks(Raw),
    /// A user was asked to log in and has not.
    #[error(
        "server {server:?} requires a login, which was not completed ({why}): {remedy}, then try \
            again"
    )]
    NotLoggedIn { server: String, why: String, remedy: String },
}

impl From<Denial> for ForwardError {
    fn from(denial: Denial) -> Self {
        Self::Denied(Box::new(denial))
    }
}

impl ForwardError {
    pub(in crate::proxy) fn new(server: String, cause: CallError) -> Self {
        match cause {
            CallError::Closed => Self::Died { server },
            cause => Self::Call { server, cause },
        }
    }
}
