//! The programs that are compared: the upstream server without a proxy, two relays, and dormouse.

use std::{
    env::VarError,
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

    /// Starts the contender with an upstream server of two tools, and returns a connected client.
    /// Behind dormouse the server is loaded.
    pub fn connect(self) -> Client {
        let upstream = upstream(2, 0);
        let command = match self {
            Self::Direct => upstream,
            Self::Relay => [vec![bench_program(), "relay".to_owned()], upstream].concat(),
            Self::RelayParse => {
                [vec![bench_program(), "relay-parse".to_owned()], upstream].concat()
            }
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

    /// Returns the `params` of a call of `tool`. For dormouse they use its default surface.
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

pub fn bench_program() -> String {
    std::env::current_exe().expect("it exists").to_string_lossy().into_owned()
}

/// Returns the command of an upstream server with `tools` tools, which needs `delay_ms` to start.
pub fn upstream(tools: usize, delay_ms: u64) -> Vec<String> {
    vec![bench_program(), "upstream".to_owned(), tools.to_string(), delay_ms.to_string()]
}

/// Returns the command of dormouse. `DORMOUSE_PROGRAM` names the program; the default is the build
/// of this bench.
pub fn dormouse(config: &Path) -> Vec<String> {
    let program = match std::env::var("DORMOUSE_PROGRAM") {
        Ok(program) => program,
        Err(VarError::NotPresent) => env!("CARGO_BIN_EXE_dormouse").to_owned(),
        Err(error) => panic!("DORMOUSE_PROGRAM: {error}"),
    };
    let config = config.to_string_lossy().into_owned();
    vec![program, "--config".to_owned(), config, "--log-level".to_owned(), "warn".to_owned()]
}

/// Returns the config entry of a lazy server, with a description of ordinary length.
pub fn server(number: usize, tools: usize, delay_ms: u64) -> (String, Value) {
    let mut command = upstream(tools, delay_ms);
    // The upstream ignores this argument; it makes the servers distinct.
    command.push(number.to_string());
    let entry = json!({
        "description": "Does a certain kind of work. Use when a task needs it.",
        "command": command[0],
        "args": command[1..],
    });
    (format!("server-{number}"), entry)
}

/// Writes a config with these servers, and returns its path.
pub fn config(servers: &[(String, Value)]) -> PathBuf {
    config_with(&json!({}), servers)
}

/// Writes a config with these settings and servers, and returns its path.
pub fn config_with(settings: &Value, servers: &[(String, Value)]) -> PathBuf {
    let servers: serde_json::Map<_, _> = servers.iter().cloned().collect();
    let mut config = settings.clone();
    config["idleTimeout"] = json!("200ms");
    // Relays pass on every result as it is.
    config["maxResultBytes"] = json!(0);
    config["mcpServers"] = json!(servers);
    let text = config.to_string();
    let name = format!("dormouse-bench-{}-{}.json", std::process::id(), text.len());
    let path = std::env::temp_dir().join(name);
    let mut file = std::fs::File::create(&path).expect("the temporary directory is writable");
    file.write_all(text.as_bytes()).expect("the temporary directory is writable");
    path
}
