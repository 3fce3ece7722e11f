//! The reasons that a request has no answer.

use std::time::Duration;

use crate::wire::credentials::CredentialError;

/// The reason that a request has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum CallError {
    /// The request was not sent, and can be sent on another connection.
    #[error("the connection was closed already")]
    NotSent,
    #[error("the connection closed before the answer")]
    Closed,
    /// The exchange was interrupted; other requests are not affected.
    #[error(
        "the connection was interrupted before the answer ({0}); the request may have been executed"
    )]
    Broken(String),
    /// The other side cannot be reached, so that the request was not executed. It is a server,
    /// since hosts connect to dormouse.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// This machine is out of descriptors or memory, so that the request was not executed.
    #[error("the server cannot be reached, since this machine is out of resources: {0}")]
    Exhausted(String),
    /// The other side refused the transport; `detail` is the start of its response.
    #[error("HTTP status {status}{detail}")]
    Refused { status: u16, detail: String },
    /// No authorization is available that the server would accept, so that the request was not
    /// executed.
    #[error(transparent)]
    Unauthorized(#[from] CredentialError),
    #[error("no answer for {0:?}")]
    TimedOut(Duration),
    #[error("the receiver does not read its messages")]
    Congested,
    #[error(
        "the message of {size} bytes exceeds maxMessageBytes ({limit}); raise it in the config"
    )]
    Oversized { size: usize, limit: usize },
    /// The size of an event is known only when it has been read.
    #[error("an event of the answer exceeds maxMessageBytes ({limit}); raise it in the config")]
    OversizedEvent { limit: usize },
    #[error("the answer is not a JSON-RPC response: {0}")]
    Malformed(&'static str),
    /// A question that the server asks before it answers cannot be relayed.
    #[error("{0}")]
    Unaskable(String),
}
