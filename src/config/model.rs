//! A validated config. Code further in never checks again.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub use super::file::{AlwaysLoad, Listing, Protocol, Startup, Surface};

#[derive(Clone, Debug)]
pub struct Config {
    pub settings: Settings,
    /// In the order of the file, which is the order of precedence between servers.
    pub servers: Vec<ServerConfig>,
}

/// What holds for all servers.
#[derive(Clone, Debug)]
pub struct Settings {
    pub surface: Surface,
    pub listing: Listing,
    pub always_load: AlwaysLoad,
    /// Bytes of UTF-8 that a composed description may take; `None` for no limit.
    pub description_budget: Option<usize>,
    /// How long a load's result waits for the host to fetch the new list.
    pub settle: Duration,
    /// How long lists wait for eager servers, counted from the start of the process.
    pub startup_wait: Duration,
    pub max_message_bytes: usize,
    /// One wrapped server: its names are bare, and what is unknown passes.
    pub single_server: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            surface: Surface::Discover,
            listing: Listing::Growing,
            always_load: AlwaysLoad::Meta,
            description_budget: Some(2048),
            settle: Duration::from_millis(250),
            startup_wait: Duration::from_secs(5),
            max_message_bytes: 64 * 1024 * 1024,
            single_server: false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub name: String,
    /// Never blank.
    pub description: Option<String>,
    pub enabled: bool,
    pub startup: Startup,
    /// `None` means that the server is never put to sleep.
    pub idle_timeout: Option<Duration>,
    pub timeouts: Timeouts,
    pub protocol: Protocol,
    /// How to start it, or why that cannot be.
    pub launch: Result<Launch, Unavailable>,
}

/// A child process that speaks MCP on its standard streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
    pub inherit_env: bool,
}

/// Why a server's entry cannot be used, though the file is valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unavailable {
    #[error("undefined: {}; set what is missing in the environment or in .env", .0.join(", "))]
    Undefined(Vec<String>),
    #[error("its command is blank once its variables are expanded")]
    BlankCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For spawn, handshake and catalog together.
    pub load: Duration,
    /// Of silence in a tool call; progress starts it anew.
    pub call: Duration,
    /// For every other request.
    pub request: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            load: Duration::from_mins(2),
            call: Duration::from_mins(10),
            request: Duration::from_mins(1),
        }
    }
}

impl ServerConfig {
    /// A server with nothing said of it but how to start it.
    pub fn new(name: impl Into<String>, launch: Launch) -> Self {
        Self {
            name: name.into(),
            description: None,
            enabled: true,
            startup: Startup::Eager,
            idle_timeout: Some(Self::IDLE_TIMEOUT),
            timeouts: Timeouts::default(),
            protocol: Protocol::Auto,
            launch: Ok(launch),
        }
    }

    pub(super) const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
}
