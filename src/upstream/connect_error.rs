//! Why a server could not be connected.

use std::{io, sync::Arc, time::Duration};

use rmcp::model::ErrorCode;

use crate::{
    base::is_exhaustion,
    config::{Mask, Unavailable},
    peer::CallError,
    protocol::{error, method},
    wire::{Raw, credentials::CredentialError},
};

/// Why one attempt to connect failed.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("command not found: {command:?}; is it installed, and on PATH?")]
    CommandNotFound { command: String },
    #[error("cannot start {command:?}: {source}")]
    Spawn { command: String, source: io::Error },
    #[error("it ended{status} during {phase}{said}")]
    Exited { phase: &'static str, status: String, said: String },
    #[error("{phase} did not end within {limit:?}{said}")]
    TimedOut { phase: &'static str, limit: Duration, said: String },
    #[error("{phase} failed: {cause}")]
    Call { phase: &'static str, cause: CallError },
    #[error("{phase} was refused: {message}")]
    /// `code`: of the JSON-RPC error.
    Refused { phase: &'static str, code: i64, message: String },
    #[error(transparent)]
    Unauthorized(#[from] CredentialError),
    #[error("{0}")]
    Incompatible(String),
    #[error("cannot make HTTP requests: {0}")]
    Http(String),
    #[error("dormouse is shutting down")]
    ShuttingDown,
}

impl AttemptError {
    /// The same without what the server was given and repeats.
    pub(super) fn masked(self, mask: &Mask) -> Self {
        match self {
            Self::Exited { phase, status, said } => {
                Self::Exited { phase, status, said: mask.masked(&said) }
            }
            Self::TimedOut { phase, limit, said } => {
                Self::TimedOut { phase, limit, said: mask.masked(&said) }
            }
            Self::Refused { phase, code, message } => {
                Self::Refused { phase, code, message: bounded(&mask.masked(&message)) }
            }
            Self::Incompatible(message) => Self::Incompatible(bounded(&mask.masked(&message))),
            other => other,
        }
    }

    /// Whether the server was reached, and would not have us.
    pub(super) fn is_refusal(&self) -> bool {
        let is_http = matches!(self, Self::Call { cause: CallError::Refused { .. }, .. });
        is_http || matches!(self, Self::Refused { .. })
    }

    /// The error with which the server has answered `initialize`.
    pub fn refused_handshake(&self) -> Option<Raw> {
        match self {
            Self::Refused { phase, code, message } if *phase == method::INITIALIZE => {
                let code = i32::try_from(*code).unwrap_or(ErrorCode::INTERNAL_ERROR.0);
                Some(error::error(ErrorCode(code), message))
            }
            _ => None,
        }
    }

    /// Whether nothing is wrong but that somebody has to log in.
    pub(super) fn wants_login(&self) -> bool {
        matches!(self, Self::Unauthorized(CredentialError::LoginRequired { .. }))
    }

    /// Whether it says nothing of the server itself, but of who may use it or of this machine.
    pub(super) fn is_no_strike(&self) -> bool {
        match self {
            Self::Unauthorized(_) | Self::Call { cause: CallError::Exhausted(_), .. } => true,
            Self::Spawn { source, .. } => is_exhaustion(source),
            _ => false,
        }
    }

    /// Without what the server said on the way, which is in `said`: for texts that a model reads unasked, and
    /// that stay the same as long as the cause does.
    pub(super) fn in_short(&self) -> String {
        match self {
            Self::Exited { phase, status, .. } => format!("it ended{status} during {phase}"),
            Self::TimedOut { phase, limit, .. } => format!("{phase} did not end within {limit:?}"),
            other => other.to_string(),
        }
    }
}

/// The beginning of what a server says: it stands in logs and in errors for models.
fn bounded(message: &str) -> String {
    const MAX_SAID: usize = 500;
    message.chars().take(MAX_SAID).collect()
}

/// What those who wanted a server are told when they cannot have it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// A load failed; `attempts_left` more may be tried.
    #[error("failed to load {server:?}: {cause} ({attempts_left} {} left)", if *.attempts_left == 1 { "attempt" } else { "attempts" })]
    Failed { server: String, cause: Arc<AttemptError>, attempts_left: u8 },
    /// The third load in a row failed.
    #[error(
        "failed to load {server:?} after 3 attempts; the server will no longer be offered. Underlying error: {cause}"
    )]
    GivenUp { server: String, cause: Arc<AttemptError> },
    /// A server whose catalog is known, or an eager one, cannot be reached now.
    #[error("server {server:?} cannot be reached: {cause}")]
    Unreachable { server: String, cause: Arc<AttemptError> },
    /// Somebody has to log in first.
    #[error("server {server:?} is not connected: {cause}")]
    LoginRequired { server: String, cause: Arc<AttemptError> },
    /// It was evicted or switched off before.
    #[error("server {server:?} is not available")]
    Gone { server: String },
}

impl LoadError {
    /// Why the last attempt failed, where one was made.
    pub fn cause(&self) -> Option<&AttemptError> {
        match self {
            Self::Failed { cause, .. }
            | Self::GivenUp { cause, .. }
            | Self::LoginRequired { cause, .. }
            | Self::Unreachable { cause, .. } => Some(cause),
            Self::Gone { .. } => None,
        }
    }
}
