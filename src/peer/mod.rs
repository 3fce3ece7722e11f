//! A JSON-RPC peer over any wire: request ids, pending requests, deadlines, cancellation in both
//! directions, and progress in order before its result.
//!
//! The same type serves connections to hosts and to servers, and does not know which one it has. Of
//! MCP's methods it knows only the two notifications that belong to requests themselves:
//! `notifications/progress` and `notifications/cancelled` (MCP, basic utilities).

mod call;
mod call_error;
mod peer_handle;
mod pending;
mod reader;

pub(crate) use call::{CallOptions, PreparedCall};
pub(crate) use call_error::CallError;
pub(crate) use peer_handle::Peer;
pub(crate) use pending::{ProgressSink, Pulse};
pub(crate) use reader::{
    MessageHandler, UnexpectedMessage, read_messages, receive, receive_message,
};
