//! How each host writes the entry of one server: ours.

use serde_json::{Value, json};

/// The name of our entry.
pub(super) const NAME: &str = "dormouse";

/// How a host is to reach dormouse.
#[derive(Clone, Debug, PartialEq)]
pub enum Way {
    Launch { command: String, args: Vec<String> },
    Url { url: String, token: Option<String> },
}

/// How an entry is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// A command and its arguments, or a URL under this key.
    Plain {
        url: &'static str,
    },
    /// The same with headers under another name.
    Codex,
    /// A command alone.
    LocalOnly,
    /// With the name of the transport.
    Typed {
        local: &'static str,
        http: &'static str,
    },
    /// And with the tools that may be used.
    Copilot,
    OpenCode,
    Goose,
    /// An element of Continue's list.
    Continue,
}

impl Form {
    /// `None` where it cannot say this.
    pub(super) fn entry(self, way: &Way) -> Option<Value> {
        match way {
            Way::Launch { command, args } => Some(self.launch(command, args)),
            Way::Url { url, token } => self.remote(url, token.as_deref()),
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
                json!({"enabled": true, "type": "stdio", "name": NAME, "cmd": command, "args": args, "timeout": timeout})
            }
            Self::Continue => json!({"name": NAME, "command": command, "args": args}),
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
                json!({"enabled": true, "type": "streamable_http", "name": NAME, "uri": url, "timeout": timeout})
            }
            Self::Continue => json!({"name": NAME, "type": "streamable-http", "url": url}),
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

/// In seconds: as long as dormouse gives its servers.
const GOOSE_TIMEOUT: u32 = 600;
