//! The directory in which a demo keeps everything, so that the user's files stay unchanged.

use std::{io, path::PathBuf, process::Stdio};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{SERVER_ARGUMENT, server_table::EmbeddedServer};

/// Environment variables that name the directories of a user's caches, data and sockets.
const DIRECTORY_VARIABLES: [&str; 6] = [
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "LOCALAPPDATA",
    "APPDATA",
];

/// A temporary directory with a config of the embedded servers; removed on drop.
pub(super) struct Scratch {
    directory: TempDir,
}

impl Scratch {
    /// Creates the directory and writes the config.
    pub(super) fn new(servers: &[EmbeddedServer]) -> io::Result<Self> {
        let scratch = Self { directory: TempDir::new()? };
        let program = std::env::current_exe()?;
        let entry = |server: &EmbeddedServer| {
            let entry = json!({
                "description": server.description,
                "command": program,
                "args": [SERVER_ARGUMENT, server.name],
                "idleTimeout": "1s",
            });
            (server.name.clone(), entry)
        };
        let entries: Map<String, Value> = servers.iter().map(entry).collect();
        std::fs::write(scratch.config(), json!({"mcpServers": entries}).to_string())?;
        Ok(scratch)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.directory.path().join("demo.json")
    }

    /// Returns a command of this same program whose files are in this directory, and whose standard
    /// streams are pipes.
    pub(super) fn command(&self, arguments: &[&str]) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(arguments)
            .envs(DIRECTORY_VARIABLES.map(|name| (name, self.directory.path())))
            // No process is left when the demo ends.
            .env("DORMOUSE_DAEMON", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(command)
    }
}
