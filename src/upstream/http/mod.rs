//! Servers behind a URL: streamable HTTP in both eras, and HTTP+SSE of 2024-11-05.
//!
//! A transport empties the connection's outbox and gives responses to the same reader as a process
//! does. Of MCP it knows only the parts that HTTP requires: sessions, versions, and the headers
//! that repeat parts of a message.

mod http_carrier;
mod http_client;
mod http_endpoint;
mod modern_headers;
mod queue;
mod server_session;
mod sse_transport;
mod standalone;
mod stream_backoff;
mod stream_cursor;
mod streamable;

pub(super) use http_carrier::HttpConnector;
pub(crate) use http_client::HttpClient;
