//! Who is measured: the upstream itself, the two relays, and dormouse.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::client::Client;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    Direct,
    Relay,
    RelayParse,
    Dormouse,
}

impl Contender {
    pub const ALL: [Self; 4] = [Self::Direct, Self::Relay, Self::RelayParse, Self::Dormouse];
    pub const PROXIES: [Self; 3] = [Self::Relay, Self::RelayParse, Self::Dormouse];

    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::RelayParse => "relay-parse",
            Self::Dormouse => "dormouse",
        }
    }

    /// A client that is connected to an upstream of two tools, which is running.
    pub fn connect(self) -> Client {
        let upstream = upstream(2, 0);
        let command = match self {
            Self::Direct => upstream,
            Self::Relay => [vec![this_program(), "relay".to_owned()], upstream].concat(),
            Self::RelayParse => [vec![this_program(), "relay-parse".to_owned()], upstream].concat(),
            Self::Dormouse => dormouse(&config(&[server(1, 2, 0)])),
        };
        let mut client = Client::spawn(&command);
        client.initialize();
        if self == Self::Dormouse {
            client.request(
                "tools/call",
                &json!({"name": "load_mcp", "arguments": {"mcp_name": "server-1"}}),
            );
        }
        client
    }

    /// The `params` of a call of `tool`: through dormouse in its default surface.
    pub fn call(self, tool: &str, arguments: &Value) -> String {
        match self {
            Self::Dormouse => json!({
                "name": "use_tool",
                "arguments": {"tool_name": format!("server-1/{tool}"), "tool_input": arguments},
            }),
            _ => json!({"name": tool, "arguments": arguments}),
        }
        .to_string()
    }
}

pub fn this_program() -> String {
    std::env::current_exe().expect("it exists").to_string_lossy().into_owned()
}

/// The command of an upstream with so many tools that takes so long to start.
pub fn upstream(tools: usize, delay_ms: u64) -> Vec<String> {
    vec![this_program(), "upstream".to_owned(), tools.to_string(), delay_ms.to_string()]
}

pub fn dormouse(config: &Path) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_dormouse").to_owned();
    let config = config.to_string_lossy().into_owned();
    vec![program, "--config".to_owned(), config, "--log-level".to_owned(), "warn".to_owned()]
}

/// One lazy server of a config, with a description of ordinary length.
pub fn server(number: usize, tools: usize, delay_ms: u64) -> (String, Value) {
    let mut command = upstream(tools, delay_ms);
    // Which the upstream does not look at: no two servers are the same.
    command.push(number.to_string());
    let entry = json!({
        "description": "Does a certain kind of work. Use when a task needs it.",
        "command": command[0],
        "args": command[1..],
    });
    (format!("server-{number}"), entry)
}

/// Writes a config of these servers.
pub fn config(servers: &[(String, Value)]) -> PathBuf {
    let servers: serde_json::Map<_, _> = servers.iter().cloned().collect();
    let text = json!({"idleTimeout": "200ms", "mcpServers": servers}).to_string();
    let name = format!("dormouse-bench-{}-{}.json", std::process::id(), text.len());
    let path = std::env::temp_dir().join(name);
    let mut file = std::fs::File::create(&path).expect("the temporary directory is writable");
    file.write_all(text.as_bytes()).expect("the temporary directory is writable");
    path
}
