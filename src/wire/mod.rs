//! The wire: one JSON-RPC message is an envelope with raw JSON text inside.
//!
//! This layer frames, parses and writes messages. It knows neither MCP's methods and eras nor the
//! program at the other end.

pub(crate) mod credentials;
pub(crate) mod edit;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod http;
mod json_node;
mod lines;
mod message;
mod outbox;
mod raw;
mod raw_key;
mod skim;
pub(crate) mod sse;
pub mod standard_streams;

pub(crate) use http::http_client_builder;
pub(crate) use json_node::{Child, JsonKind, JsonNode};
pub(crate) use lines::{Line, LineReader};
pub(crate) use message::{
    Id, InvalidMessage, Message, Notification, Outcome, Request, Response, on_one_line, parse_line,
};
pub(crate) use outbox::{Outbox, write_messages};
pub use raw::Raw;
pub(crate) use skim::LineSummary;
pub(crate) use standard_streams::HostStreams;
