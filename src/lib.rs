//! dormouse: one MCP server in front of many, which sleep until an agent wakes them.
//!
//! # Code map
//!
//! From the outside in. A layer may use what stands below it, never what stands above; the test
//! `imports` holds it to that. `docs/ARCHITECTURE.md` has the pictures and the invariants.
//!
//! - [`cli`]: one file a command, and the only wiring of all the parts.
//! - [`demo`]: the embedded servers and the client of `dormouse demo`.
//! - [`control`]: what a running dormouse can be asked and told, over a socket of its user's own and over HTTP.
//! - [`apps`]: AI tools, and the files in which each has its servers.
//! - [`downstream`]: hosts that are connected. One session each, whatever it is connected by: standard input and output, or HTTP.
//! - [`proxy`]: the fleet of servers with the one live snapshot, the routing of requests, the relay of
//!   notifications and questions.
//! - [`surface`]: what the host sees, as a pure function of snapshot, settings and request.
//! - [`upstream`]: one server's life: the pure state machine, the actor that performs it, and what carries its
//!   connection, a process or HTTP.
//! - [`peer`]: a JSON-RPC peer over any wire.
//! - [`auth`]: logins: how tokens for servers are got, kept and renewed.
//! - [`protocol`]: MCP's two eras as pure functions.
//! - [`wire`]: a message as an envelope and raw JSON text; framing by lines and by events, and writing.
//! - [`base`]: what every layer may use: work that blocks, and errors of the machine.
//!
//! [`catalog`] (what servers have, as immutable values) and [`config`] know none of these but `protocol`
//! and `wire`, and most may use them.

pub mod apps;
pub mod auth;
pub mod base;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod control;
pub mod demo;
pub mod downstream;
pub mod peer;
pub mod protocol;
pub mod proxy;
pub mod surface;
pub mod upstream;
pub mod wire;
