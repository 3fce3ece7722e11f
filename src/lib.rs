//! dormouse: one MCP server in front of many, which sleep until an agent wakes them.
//!
//! # Code map
//!
//! From the outside in. A layer may use those below it, never those above; the test `imports`
//! checks that. `docs/ARCHITECTURE.md` describes the parts and the invariants.
//!
//! - [`cli`]: one file per command, and the only wiring of all parts.
//! - [`demo`]: the embedded servers and the client of `dormouse demo`.
//! - [`control`]: requests to a running dormouse, over its user's socket and over HTTP.
//! - `daemon`: one process for all hosts of a user: how thin clients find, start and leave it.
//! - [`apps`]: AI tools, and the files in which each keeps its servers.
//! - [`downstream`]: connected hosts, with one session each, on standard streams and over HTTP.
//! - [`proxy`]: all servers with the one published snapshot, the routing of requests, the relay of
//!   notifications and questions.
//! - [`surface`]: the tools that a host sees, as a pure function of snapshot, settings and request.
//! - [`policy`]: the verdict of a config's rules on a call of a tool.
//! - [`script`]: scripts of agents, run by a process of their own, and the messages to it.
//! - [`upstream`]: one server's life: the pure state machine, the actor that performs it, and the
//!   process or HTTP exchange that carries its connection.
//! - [`peer`]: a JSON-RPC peer over any wire.
//! - [`auth`]: logins: how tokens for servers are obtained, stored and renewed.
//! - [`identity`]: the people behind hosts over HTTP, by their access tokens.
//! - [`protocol`]: the two eras of MCP as pure functions.
//! - [`wire`]: a message as an envelope and raw JSON text; framing by lines and by events.
//! - [`store`]: what outlives a process: values by name, behind one trait.
//! - [`base`]: helpers for every layer: locks, blocking work, and errors of the machine.
//!
//! Most layers may use [`catalog`] (the lists of servers, as immutable values) and [`config`], of
//! which `catalog` uses `config`, `protocol`, `wire` and those below, and `config` only the latter.

#![cfg_attr(not(fuzzing), warn(unreachable_pub))]
#![cfg_attr(
    fuzzing,
    expect(
        dead_code,
        unused_imports,
        reason = "only the targets are public, so that they are built quickly"
    )
)]

mod apps;
mod auth;
mod base;
mod catalog;
mod cli;
mod config;
mod control;
#[cfg(unix)]
mod daemon;
mod demo;
mod downstream;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod identity;
mod peer;
mod policy;
mod protocol;
mod proxy;
mod script;
mod store;
mod surface;
mod telemetry;
mod upstream;
mod wire;

#[cfg(not(fuzzing))]
pub use cli::run;

/// The items that the bench, the evaluation of the search and the integration tests use. Every
/// other item is private to the crate, so that the compiler finds dead code.
#[doc(hidden)]
#[cfg(not(fuzzing))]
pub mod internals {
    pub mod apps {
        pub use crate::apps::{
            APPS, AppFile, Backups, ConnectedFile, Directories, DormouseTransport, FileScope,
            FoundEntry, FoundServer, OriginalFile, Os, find_servers, server_identity,
        };
    }

    pub mod catalog {
        use std::{path::PathBuf, sync::Arc};

        use crate::store::FileStore;

        pub use crate::catalog::{
            Cache, Item, SearchHit, SearchTarget, ServerCatalog, ServerId, Snapshot, Tool, ToolRef,
        };

        /// Returns the catalogs that are kept as files in a directory.
        pub fn cache_in(directory: impl Into<PathBuf>) -> Cache {
            Cache::new(Arc::new(FileStore::new(directory)))
        }
    }

    pub mod config {
        pub use crate::config::{Environment, Format, parse, place_fingerprint};
    }

    pub mod protocol {
        pub use crate::protocol::{Era, Greeting};
    }

    pub mod wire {
        pub use crate::wire::{Raw, standard_streams};
    }
}
