//! The entry for dormouse itself, in the format of each app.

use serde_json::{Value, json};

/// The name of dormouse's entry in the files of apps.
pub(super) const ENTRY_NAME: &str = "dormouse";

/// The transport by which an app reaches dormouse: a command to launch or a URL.
#[derive(Clone, Debug, PartialEq)]
pub enum DormouseTransport {
    Launch { command: String, args: Vec<String> },
    Url { url: String, token: Option<String> },
}

/// The format in which an app writes the entry of a server.
#[derive(Clone, Copy, Debug)]
pub(super) enum EntryFormat {
    /// `command` and `args`, or a URL under the key `url`.
    Plain {
        url: &'static str,
    },
    /// As `Plain` with the key `url`, but with headers under `http_headers`.
    Codex,
    /// `command` and `args` only: the app cannot use a URL.
    LocalOnly,
    /// As `Plain`, with the name of the transport under `type`.
    Typed {
        local: &'static str,
        http: &'static str,
    },
    /// As `Typed`, with the list of allowed tools under `tools`.
    Copilot,
    OpenCode,
    Goose,
    /// An element of Continue's list.
    Continue,
}

impl EntryFormat {
    /// Returns the entry for dormouse, or `None` if the app cannot use this transport.
    pub(super) fn entry(self, transport: &DormouseTransport) -> Option<Value> {
        match transport {
            DormouseTransport::Launch { command, args } => Some(self.launch(command, args)),
            DormouseTransport::Url { url, token } => self.remote(url, token.as_deref()),
        }
    }

    fn launch(self, command: &str, args: &[String]) -> Value {
        match self {
            Self::Plain { .. } | Self::Codex | Self::LocalOnly => {
                json!({"command": command, "args": args})
            }
            Self::Typed { local, .. } => json!({"type": local, "command": command, "args": args}),
            Self::Copilot => {
                json!({"type": "local", "command": command, "args": args, "tools": ["*"]})
            }
            Self::OpenCode => {
                let words: Vec<&str> =
                    [command].into_iter().chain(args.iter().map(String::as_str)).collect();
                json!({"type": "local", "command": words, "enabled": true})
            }
            Self::Goose => {
                let timeout = GOOSE_TIMEOUT;
                json!({
                    "enabled": true, "type": "stdio", "name": ENTRY_NAME, "cmd": command,
                    "args": args, "timeout": timeout,
                })
            }
            Self::Continue => json!({"name": ENTRY_NAME, "command": command, "args": args}),
        }
    }

    fn remote(self, url: &str, token: Option<&str>) -> Option<Value> {
        let mut entry = match self {
            Self::LocalOnly => return None,
            Self::Plain { url: key } => json!({key: url}),
            Self::Codex => json!({"url": url}),
            Self::Typed { http, .. } => json!({"type": http, "url": url}),
            Self::Copilot => json!({"type": "http", "url": url, "tools": ["*"]}),
            Self::OpenCode => json!({"type": "remote", "url": url, "enabled": true}),
            Self::Goose => {
                let timeout = GOOSE_TIMEOUT;
                json!({
                    "enabled": true, "type": "streamable_http", "name": ENTRY_NAME, "uri": url,
                    "timeout": timeout,
                })
            }
            Self::Continue => json!({"name": ENTRY_NAME, "type": "streamable-http", "url": url}),
        };
        if let Some(token) = token {
            let headers = json!({"Authorization": format!("Bearer {token}")});
            match self {
                Self::Codex => entry["http_headers"] = headers,
                Self::Continue => entry["requestOptions"] = json!({"headers": headers}),
                _ => entry["headers"] = headers,
            }
        }
        Some(entry)
    }
}

/// Timeout in dormouse's entry for Goose, in seconds: the same as dormouse's own limit for calls to
/// servers.
const GOOSE_TIMEOUT: u32 = 600;
