//! The reasons that a server could not be connected.

use std::{io, sync::Arc, time::Duration};

use rmcp::model::ErrorCode;

use crate::{
    base::is_exhaustion,
    config::{Mask, Unavailable},
    peer::CallError,
    protocol::{error, method},
    wire::{Raw, credentials::CredentialError},
};

/// The reason that one attempt to connect failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("command not found: {command:?}; check that it is installed and on PATH")]
    CommandNotFound { command: String },
    #[error("cannot start {command:?}: {source}")]
    Spawn { command: String, source: io::Error },
    #[error("the server exited{status} during {phase}{output}")]
    Exited { phase: &'static str, status: String, output: String },
    #[error("{phase} timed out after {limit:?}{output}")]
    TimedOut { phase: &'static str, limit: Duration, output: String },
    #[error("{phase} failed: {cause}")]
    Call { phase: &'static str, cause: CallError },
    #[error("{phase} was refused: {message}")]
    /// The server refused. `code` is that of the JSON-RPC error.
    Refused { phase: &'static str, code: i64, message: String },
    #[error(transparent)]
    Unauthorized(#[from] CredentialError),
    #[error("{0}")]
    Incompatible(String),
    #[error("the server does not speak 2026-07-28")]
    NotModern,
    #[error("cannot make HTTP requests: {0}")]
    Http(String),
    #[error("dormouse is shutting down")]
    ShuttingDown,
}

impl AttemptError {
    /// Returns the error without secrets that the server has repeated.
    pub(super) fn masked(self, mask: &Mask) -> Self {
        match self {
            Self::Exited { phase, status, output } => {
                Self::Exited { phase, status, output: mask.masked(&output) }
            }
            Self::TimedOut { phase, limit, output } => {
                Self::TimedOut { phase, limit, output: mask.masked(&output) }
            }
            Self::Refused { phase, code, message } => {
                Self::Refused { phase, code, message: bounded(&mask.masked(&message)) }
            }
            Self::Incompatible(message) => Self::Incompatible(bounded(&mask.masked(&message))),
            other => other,
        }
    }

    /// Returns whether the server was reached and refused the connection.
    pub(super) fn is_refusal(&self) -> bool {
        let is_http = matches!(self, Self::Call { cause: CallError::Refused { .. }, .. });
        is_http || matches!(self, Self::Refused { .. })
    }

    /// Returns whether a server that speaks only another era answers the handshake in this way.
    pub(super) fn is_of_other_era(&self) -> bool {
        let unknown_method = i64::from(ErrorCode::METHOD_NOT_FOUND.0);
        match self {
            Self::NotModern => true,
            Self::Refused { phase, code, .. } => {
                *phase == method::INITIALIZE && *code == unknown_method
            }
            _ => false,
        }
    }

    /// Returns the error with which the server answered `initialize`.
    pub(crate) fn refused_handshake(&self) -> Option<Raw> {
        match self {
            Self::Refused { phase, code, message } if *phase == method::INITIALIZE => {
                let code = i32::try_from(*code).unwrap_or(ErrorCode::INTERNAL_ERROR.0);
                Some(error::error(ErrorCode(code), message))
            }
            _ => None,
        }
    }

    /// Returns whether a user only has to log in.
    pub(super) fn wants_login(&self) -> bool {
        matches!(self, Self::Unauthorized(CredentialError::LoginRequired { .. }))
    }

    /// Returns whether the failure is due to access rights or to this machine, and not to the
    /// server.
    pub(super) fn is_no_strike(&self) -> bool {
        match self {
            Self::Unauthorized(_) | Self::Call { cause: CallError::Exhausted(_), .. } => true,
            Self::Spawn { source, .. } => is_exhaustion(source),
            _ => false,
        }
    }

    /// Returns the error without the server's output (`output`): for texts that a model reads
    /// unasked, and that are stable as long as the cause is.
    pub(super) fn in_short(&self) -> String {
        match self {
            Self::Exited { phase, status, .. } => {
                format!("the server exited{status} during {phase}")
            }
            Self::TimedOut { phase, limit, .. } => format!("{phase} timed out after {limit:?}"),
            other => other.to_string(),
        }
    }
}

/// Returns the beginning of a server's text, for logs and for errors that models read.
fn bounded(message: &str) -> String {
    const MAX_SAID: usize = 500;
    message.chars().take(MAX_SAID).collect()
}

/// The error for callers that cannot have a server.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// A load failed; `attempts_left` more may be tried.
    #[error("failed to load {server:?}: {cause} ({attempts_left} {} \
        left)", if *.attempts_left == 1 { "attempt" } else { "attempts" })]
    Failed { server: String, cause: Arc<AttemptError>, attempts_left: u8 },
    /// The third consecutive load failed.
    #[error(
        "failed to load {server:?} after 3 attempts; the server will no longer be offered. \
            Underlying error: {cause}"
    )]
    GivenUp { server: String, cause: Arc<AttemptError> },
    /// A server that is eager, or whose catalog is known, cannot be reached now.
    #[error("server {server:?} cannot be reached: {cause}")]
    Unreachable { server: String, cause: Arc<AttemptError> },
    /// A user has to log in first.
    #[error("server {server:?} is not connected: {cause}")]
    LoginRequired { server: String, cause: Arc<AttemptError> },
    /// The server was evicted or switched off before.
    #[error("server {server:?} is not available")]
    Gone { server: String },
}

impl LoadError {
    /// Returns the reason that the last attempt failed, if one was made.
    pub(crate) fn cause(&self) -> Option<&AttemptError> {
        match self {
            Self::Failed { cause, .. }
            | Self::GivenUp { cause, .. }
            | Self::LoginRequired { cause, .. }
            | Self::Unreachable { cause, .. } => Some(cause),
            Self::Gone { .. } => None,
        }
    }
}
