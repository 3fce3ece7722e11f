//! The apps that dormouse knows. `docs/hosts.md` links to the documentation of each.

use super::{
    own::Form,
    places::{Os, PROJECT, Place, Root, Scope, Ways},
    variables::Syntax,
};

/// An AI tool that uses MCP servers.
#[derive(Debug)]
pub struct App {
    /// Name on the command line.
    pub id: &'static str,
    /// Alternative names on the command line.
    pub aliases: &'static [&'static str],
    pub name: &'static str,
    /// Files of all scopes. dormouse writes to the first existing file of a scope, or to the
    /// scope's first file if none exists.
    pub(super) places: &'static [Place],
    pub(super) servers: Ways,
    /// Key paths to lists of the names of disabled servers.
    pub(super) switched_off: Ways,
    pub(super) variables: Syntax,
    /// Unit of a numeric `timeout` in an entry. `None` if the app's `timeout` does not limit calls.
    pub(super) timeout: Option<Unit>,
    pub(super) form: Form,
    /// Members that a new file needs in addition to its servers.
    pub(super) preamble: &'static [(&'static str, &'static str)],
    /// Advice for the user after `dormouse connect`.
    pub hint: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

const MCP_SERVERS: Ways = &[&["mcpServers"]];
const LINUX_AND_MAC: &[Os] = &[Os::Linux, Os::Mac];
const WINDOWS: &[Os] = &[Os::Windows];

/// The values that most apps share.
const USUAL: App = App {
    id: "",
    aliases: &[],
    name: "",
    places: &[],
    servers: MCP_SERVERS,
    switched_off: &[],
    variables: Syntax::Braces,
    timeout: Some(Unit::Milliseconds),
    form: Form::Plain { url: "url" },
    preamble: &[],
    hint: None,
};

/// The pseudo app for files that belong to no known app.
pub(super) static ANY: App = App {
    id: "file",
    name: "file",
    servers: &[
        &["mcpServers"],
        &["servers"],
        &["context_servers"],
        &["mcp_servers"],
        &["extensions"],
        &["mcp", "servers"],
        &["mcp"],
    ],
    ..USUAL
};

pub static APPS: [App; 17] = [
    App {
        id: "claude-code",
        aliases: &["claude"],
        name: "Claude Code",
        places: &[
            Place::user(Root::Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json"),
            Place::user(Root::Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json")
                .local(&[&["projects", PROJECT, "mcpServers"]]),
            Place::project(".mcp.json"),
        ],
        switched_off: &[
            &["projects", PROJECT, "disabledMcpServers"],
            &["projects", PROJECT, "disabledMcpjsonServers"],
        ],
        form: Form::Typed { local: "stdio", http: "http" },
        ..USUAL
    },
    App {
        id: "claude-desktop",
        name: "Claude Desktop",
        places: &[
            Place::user(Root::Application, "Claude/claude_desktop_config.json"),
            Place::user(
                Root::LocalApplication,
                "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            )
            .on(WINDOWS),
        ],
        variables: Syntax::Literal,
        form: Form::LocalOnly,
        ..USUAL
    },
    App {
        id: "codex",
        name: "Codex",
        places: &[
            Place::user(Root::Variable("CODEX_HOME", ".codex"), "config.toml"),
            Place::project(".codex/config.toml"),
        ],
        servers: &[&["mcp_servers"]],
        variables: Syntax::Literal,
        timeout: Some(Unit::Seconds),
        form: Form::Codex,
        ..USUAL
    },
    App {
        id: "gemini",
        aliases: &["gemini-cli"],
        name: "Gemini CLI",
        places: &[
            Place::user(Root::Home, ".gemini/settings.json"),
            Place::project(".gemini/settings.json"),
        ],
        switched_off: &[&["mcp", "excluded"]],
        variables: Syntax::Dollar,
        form: Form::Plain { url: "httpUrl" },
        ..USUAL
    },
    App {
        id: "opencode",
        name: "OpenCode",
        places: &[
            Place::user(Root::Config, "opencode/opencode.json"),
            Place::user(Root::Config, "opencode/opencode.jsonc"),
            Place::project("opencode.json"),
            Place::project("opencode.jsonc"),
            Place::project(".opencode/opencode.json"),
            Place::project(".opencode/opencode.jsonc"),
        ],
        servers: &[&["mcp", "servers"], &["mcp"]],
        timeout: None,
        form: Form::OpenCode,
        ..USUAL
    },
    App {
        id: "cursor",
        name: "Cursor",
        places: &[
            Place::user(Root::Home, ".cursor/mcp.json"),
            Place::project(".cursor/mcp.json"),
        ],
        ..USUAL
    },
    App {
        id: "vscode",
        aliases: &["code", "vs-code"],
        name: "VS Code",
        places: &[
            Place::user(Root::Application, "Code/User/mcp.json"),
            Place::user(Root::Application, "Code - Insiders/User/mcp.json"),
            Place::user(Root::Application, "Code/User/profiles/*/mcp.json").only_read(),
            Place::project(".vscode/mcp.json"),
        ],
        servers: &[&["servers"]],
        form: Form::Typed { local: "stdio", http: "http" },
        ..USUAL
    },
    App {
        id: "windsurf",
        name: "Windsurf",
        places: &[
            Place::user(Root::Home, ".codeium/windsurf/mcp_config.json"),
            Place::project(".windsurf/mcp_config.json"),
        ],
        form: Form::Plain { url: "serverUrl" },
        ..USUAL
    },
    App {
        id: "zed",
        name: "Zed",
        places: &[
            Place::user(Root::Config, "zed/settings.json").on(LINUX_AND_MAC),
            Place::user(Root::Application, "Zed/settings.json").on(WINDOWS),
            Place::project(".zed/settings.json"),
        ],
        servers: &[&["context_servers"]],
        variables: Syntax::Literal,
        ..USUAL
    },
    App {
        id: "goose",
        name: "Goose",
        places: &[
            Place::user(Root::Config, "goose/config.yaml").on(LINUX_AND_MAC),
            Place::user(Root::Application, "Block/goose/config/config.yaml").on(WINDOWS),
        ],
        servers: &[&["extensions"]],
        variables: Syntax::Dollar,
        timeout: Some(Unit::Seconds),
        form: Form::Goose,
        ..USUAL
    },
    App {
        id: "cline",
        name: "Cline",
        places: &[
            Place::user(
                Root::Application,
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            Place::user(Root::Home, ".cline/data/settings/cline_mcp_settings.json"),
            Place::project(".cline/mcp.json"),
        ],
        timeout: Some(Unit::Seconds),
        form: Form::Typed { local: "stdio", http: "streamableHttp" },
        ..USUAL
    },
    App {
        id: "roo",
        aliases: &["roo-code"],
        name: "Roo Code",
        places: &[
            Place::user(
                Root::Application,
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            Place::project(".roo/mcp.json"),
        ],
        timeout: Some(Unit::Seconds),
        form: Form::Typed { local: "stdio", http: "streamable-http" },
        ..USUAL
    },
    App {
        id: "kilo",
        aliases: &["kilocode", "kilo-code"],
        name: "Kilo Code",
        places: &[
            Place::user(Root::Config, "kilo/kilo.jsonc"),
            Place::user(Root::Config, "kilo/kilo.json"),
            Place::user(
                Root::Application,
                "Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
            )
            .only_read(),
            Place::user(Root::Home, ".kilocode/cli/global/settings/mcp_settings.json").only_read(),
            Place::project("kilo.jsonc"),
            Place::project("kilo.json"),
            Place::project(".kilo/kilo.jsonc"),
            Place::project(".kilo/kilo.json"),
            Place::project(".kilocode/mcp.json").only_read(),
        ],
        // Kilo Code has two generations of files: `mcpServers` is the older, `mcp` the newer. The
        // last path is used for new files.
        servers: &[&["mcpServers"], &["mcp"]],
        timeout: None,
        form: Form::OpenCode,
        ..USUAL
    },
    App {
        id: "continue",
        name: "Continue",
        places: &[
            Place::user(Root::Home, ".continue/config.yaml"),
            Place::user(Root::Home, ".continue/mcpServers/*.yaml").only_read(),
            Place::user(Root::Home, ".continue/mcpServers/*.json").only_read(),
            Place::project(".continue/mcpServers/*.yaml").only_read(),
            Place::project(".continue/mcpServers/*.json").only_read(),
        ],
        form: Form::Continue,
        preamble: &[("name", "Local"), ("version", "1.0.0"), ("schema", "v1")],
        ..USUAL
    },
    App {
        id: "copilot",
        aliases: &["copilot-cli", "github-copilot"],
        name: "Copilot CLI",
        places: &[
            Place::user(Root::Variable("COPILOT_HOME", ".copilot"), "mcp-config.json"),
            Place::project(".github/mcp.json"),
        ],
        variables: Syntax::Dollar,
        form: Form::Copilot,
        ..USUAL
    },
    App {
        id: "antigravity",
        name: "Antigravity",
        places: &[
            Place::user(Root::Home, ".gemini/config/mcp_config.json"),
            Place::user(Root::Home, ".gemini/antigravity/mcp_config.json"),
            Place::user(Root::Home, ".gemini/antigravity-cli/mcp_config.json"),
            Place::project(".agents/mcp_config.json"),
            Place::project(".agent/mcp_config.json"),
        ],
        form: Form::Plain { url: "serverUrl" },
        ..USUAL
    },
    App {
        id: "librechat",
        name: "LibreChat",
        places: &[Place::project("librechat.yaml")],
        form: Form::Typed { local: "stdio", http: "streamable-http" },
        hint: Some("LibreChat reads its file at its start; a URL must be among mcpSettings.allowedDomains"),
        ..USUAL
    },
];

impl App {
    /// Returns the app with this id or alias, in any case.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.to_lowercase();
        APPS.iter().find(|app| app.id == name || app.aliases.contains(&name.as_str()))
    }

    /// Returns whether the app keeps its servers in a list instead of a mapping (Continue).
    pub(super) fn has_list(&self) -> bool {
        matches!(self.form, Form::Continue)
    }

    pub(super) fn places_of(&self, scope: Scope) -> impl Iterator<Item = &'static Place> {
        self.places.iter().filter(move |place| place.scope == scope)
    }
}
