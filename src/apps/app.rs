//! The apps that dormouse knows. `docs/reference/apps.md` lists them with their files.

use std::sync::LazyLock;

use super::{
    dormouse_entry::EntryFormat,
    locations::{BaseDir, FileLocation, FileScope, KeyPaths, Os, PROJECT_KEY},
    variables::VariableSyntax,
};
use crate::config::AppFileNames;

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
    pub(super) locations: &'static [FileLocation],
    pub(super) servers: KeyPaths,
    /// Key paths to lists of the names of disabled servers.
    pub(super) switched_off: KeyPaths,
    pub(super) variable_syntax: VariableSyntax,
    /// Unit of a numeric `timeout` in an entry. `None` if the app's `timeout` does not limit calls.
    pub(super) timeout: Option<TimeUnit>,
    pub(super) entry_format: EntryFormat,
    pub(super) connecting: ConnectingNotes,
}

/// The peculiarities of adding dormouse to an app.
#[derive(Debug)]
pub(super) struct ConnectingNotes {
    /// Members that a new file needs in addition to its servers.
    pub(super) preamble: &'static [(&'static str, &'static str)],
    /// Advice for the user after `dormouse connect`.
    hint: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Seconds,
    Milliseconds,
}

const MCP_SERVERS: KeyPaths = &[&["mcpServers"]];
const LINUX_AND_MAC: &[Os] = &[Os::Linux, Os::Mac];
const WINDOWS: &[Os] = &[Os::Windows];

/// The values that most apps share.
const COMMON: App = App {
    id: "",
    aliases: &[],
    name: "",
    locations: &[],
    servers: MCP_SERVERS,
    switched_off: &[],
    variable_syntax: VariableSyntax::Braces,
    timeout: Some(TimeUnit::Milliseconds),
    entry_format: EntryFormat::Plain { url: "url" },
    connecting: ConnectingNotes { preamble: &[], hint: None },
};

/// The pseudo app for files that belong to no known app.
pub(super) static UNKNOWN_APP: App = App {
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
    ..COMMON
};

pub static APPS: [App; 17] = [
    App {
        id: "claude-code",
        aliases: &["claude"],
        name: "Claude Code",
        locations: &[
            FileLocation::user(BaseDir::Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json"),
            FileLocation::user(BaseDir::Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json")
                .local(&[&["projects", PROJECT_KEY, "mcpServers"]]),
            FileLocation::project(".mcp.json"),
        ],
        switched_off: &[
            &["projects", PROJECT_KEY, "disabledMcpServers"],
            &["projects", PROJECT_KEY, "disabledMcpjsonServers"],
        ],
        entry_format: EntryFormat::Typed { local: "stdio", http: "http" },
        ..COMMON
    },
    App {
        id: "claude-desktop",
        name: "Claude Desktop",
        locations: &[
            FileLocation::user(BaseDir::Application, "Claude/claude_desktop_config.json"),
            FileLocation::user(
                BaseDir::LocalApplication,
                concat!(
                    "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/",
                    "Claude/claude_desktop_config.json"
                ),
            )
            .on(WINDOWS),
        ],
        variable_syntax: VariableSyntax::Literal,
        entry_format: EntryFormat::LocalOnly,
        ..COMMON
    },
    App {
        id: "codex",
        name: "Codex",
        locations: &[
            FileLocation::user(BaseDir::Variable("CODEX_HOME", ".codex"), "config.toml"),
            FileLocation::project(".codex/config.toml"),
        ],
        servers: &[&["mcp_servers"]],
        variable_syntax: VariableSyntax::Literal,
        timeout: Some(TimeUnit::Seconds),
        entry_format: EntryFormat::Codex,
        ..COMMON
    },
    App {
        id: "gemini",
        aliases: &["gemini-cli"],
        name: "Gemini CLI",
        locations: &[
            FileLocation::user(BaseDir::Home, ".gemini/settings.json"),
            FileLocation::project(".gemini/settings.json"),
        ],
        switched_off: &[&["mcp", "excluded"]],
        variable_syntax: VariableSyntax::Dollar,
        entry_format: EntryFormat::Plain { url: "httpUrl" },
        ..COMMON
    },
    App {
        id: "opencode",
        name: "OpenCode",
        locations: &[
            FileLocation::user(BaseDir::Config, "opencode/opencode.json"),
            FileLocation::user(BaseDir::Config, "opencode/opencode.jsonc"),
            FileLocation::project("opencode.json"),
            FileLocation::project("opencode.jsonc"),
            FileLocation::project(".opencode/opencode.json"),
            FileLocation::project(".opencode/opencode.jsonc"),
        ],
        servers: &[&["mcp", "servers"], &["mcp"]],
        timeout: None,
        entry_format: EntryFormat::OpenCode,
        ..COMMON
    },
    App {
        id: "cursor",
        name: "Cursor",
        locations: &[
            FileLocation::user(BaseDir::Home, ".cursor/mcp.json"),
            FileLocation::project(".cursor/mcp.json"),
        ],
        ..COMMON
    },
    App {
        id: "vscode",
        aliases: &["code", "vs-code"],
        name: "VS Code",
        locations: &[
            FileLocation::user(BaseDir::Application, "Code/User/mcp.json"),
            FileLocation::user(BaseDir::Application, "Code - Insiders/User/mcp.json"),
            FileLocation::user(BaseDir::Application, "Code/User/profiles/*/mcp.json").read_only(),
            FileLocation::project(".vscode/mcp.json"),
        ],
        servers: &[&["servers"]],
        entry_format: EntryFormat::Typed { local: "stdio", http: "http" },
        ..COMMON
    },
    App {
        id: "windsurf",
        name: "Windsurf",
        locations: &[
            FileLocation::user(BaseDir::Home, ".codeium/windsurf/mcp_config.json"),
            FileLocation::project(".windsurf/mcp_config.json"),
        ],
        entry_format: EntryFormat::Plain { url: "serverUrl" },
        ..COMMON
    },
    App {
        id: "zed",
        name: "Zed",
        locations: &[
            FileLocation::user(BaseDir::Config, "zed/settings.json").on(LINUX_AND_MAC),
            FileLocation::user(BaseDir::Application, "Zed/settings.json").on(WINDOWS),
            FileLocation::project(".zed/settings.json"),
        ],
        servers: &[&["context_servers"]],
        variable_syntax: VariableSyntax::Literal,
        ..COMMON
    },
    App {
        id: "goose",
        name: "Goose",
        locations: &[
            FileLocation::user(BaseDir::Config, "goose/config.yaml").on(LINUX_AND_MAC),
            FileLocation::user(BaseDir::Application, "Block/goose/config/config.yaml").on(WINDOWS),
        ],
        servers: &[&["extensions"]],
        variable_syntax: VariableSyntax::Dollar,
        timeout: Some(TimeUnit::Seconds),
        entry_format: EntryFormat::Goose,
        ..COMMON
    },
    App {
        id: "cline",
        name: "Cline",
        locations: &[
            FileLocation::user(
                BaseDir::Application,
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            FileLocation::user(BaseDir::Home, ".cline/data/settings/cline_mcp_settings.json"),
            FileLocation::project(".cline/mcp.json"),
        ],
        timeout: Some(TimeUnit::Seconds),
        entry_format: EntryFormat::Typed { local: "stdio", http: "streamableHttp" },
        ..COMMON
    },
    App {
        id: "roo",
        aliases: &["roo-code"],
        name: "Roo Code",
        locations: &[
            FileLocation::user(
                BaseDir::Application,
                "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            ),
            FileLocation::project(".roo/mcp.json"),
        ],
        timeout: Some(TimeUnit::Seconds),
        entry_format: EntryFormat::Typed { local: "stdio", http: "streamable-http" },
        ..COMMON
    },
    App {
        id: "kilo",
        aliases: &["kilocode", "kilo-code"],
        name: "Kilo Code",
        locations: &[
            FileLocation::user(BaseDir::Config, "kilo/kilo.jsonc"),
            FileLocation::user(BaseDir::Config, "kilo/kilo.json"),
            FileLocation::user(
                BaseDir::Application,
                "Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
            )
            .read_only(),
            FileLocation::user(BaseDir::Home, ".kilocode/cli/global/settings/mcp_settings.json")
                .read_only(),
            FileLocation::project("kilo.jsonc"),
            FileLocation::project("kilo.json"),
            FileLocation::project(".kilo/kilo.jsonc"),
            FileLocation::project(".kilo/kilo.json"),
            FileLocation::project(".kilocode/mcp.json").read_only(),
        ],
        // Kilo Code has two generations of files: `mcpServers` is the older, `mcp` the newer. The
        // last path is used for new files.
        servers: &[&["mcpServers"], &["mcp"]],
        timeout: None,
        entry_format: EntryFormat::OpenCode,
        ..COMMON
    },
    App {
        id: "continue",
        name: "Continue",
        locations: &[
            FileLocation::user(BaseDir::Home, ".continue/config.yaml"),
            FileLocation::user(BaseDir::Home, ".continue/mcpServers/*.yaml").read_only(),
            FileLocation::user(BaseDir::Home, ".continue/mcpServers/*.json").read_only(),
            FileLocation::project(".continue/mcpServers/*.yaml").read_only(),
            FileLocation::project(".continue/mcpServers/*.json").read_only(),
        ],
        entry_format: EntryFormat::Continue,
        connecting: ConnectingNotes {
            preamble: &[("name", "Local"), ("version", "1.0.0"), ("schema", "v1")],
            hint: None,
        },
        ..COMMON
    },
    App {
        id: "copilot",
        aliases: &["copilot-cli", "github-copilot"],
        name: "Copilot CLI",
        locations: &[
            FileLocation::user(BaseDir::Variable("COPILOT_HOME", ".copilot"), "mcp-config.json"),
            FileLocation::project(".github/mcp.json"),
        ],
        variable_syntax: VariableSyntax::Dollar,
        entry_format: EntryFormat::Copilot,
        ..COMMON
    },
    App {
        id: "antigravity",
        name: "Antigravity",
        locations: &[
            FileLocation::user(BaseDir::Home, ".gemini/config/mcp_config.json"),
            FileLocation::user(BaseDir::Home, ".gemini/antigravity/mcp_config.json"),
            FileLocation::user(BaseDir::Home, ".gemini/antigravity-cli/mcp_config.json"),
            FileLocation::project(".agents/mcp_config.json"),
            FileLocation::project(".agent/mcp_config.json"),
        ],
        entry_format: EntryFormat::Plain { url: "serverUrl" },
        ..COMMON
    },
    App {
        id: "librechat",
        name: "LibreChat",
        locations: &[FileLocation::project("librechat.yaml")],
        entry_format: EntryFormat::Typed { local: "stdio", http: "streamable-http" },
        connecting: ConnectingNotes {
            preamble: &[],
            hint: Some(
                "LibreChat reads its file at its start; the URL must match \
            mcpSettings.allowedDomains",
            ),
        },
        ..COMMON
    },
];

/// Returns the names of the files in which apps keep their servers. Names that programs of every
/// kind use, such as `config.yaml`, are left out.
pub(crate) fn app_file_names() -> AppFileNames {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let mut names: Vec<&str> = Vec::new();
        for location in APPS.iter().flat_map(|app| app.locations) {
            let name = location.path.rsplit('/').next().unwrap_or_default();
            let tells_nothing = name.contains('*') || name.starts_with("config.");
            if !tells_nothing && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    });
    AppFileNames(&NAMES)
}

impl App {
    /// Returns advice for the user after `dormouse connect`.
    pub fn hint(&self) -> Option<&'static str> {
        self.connecting.hint
    }

    /// Returns the app with this id or alias, in any case.
    pub fn named(name: &str) -> Option<&'static Self> {
        let name = name.to_lowercase();
        APPS.iter().find(|app| app.id == name || app.aliases.contains(&name.as_str()))
    }

    /// Returns whether the app keeps its servers in a list instead of a mapping (Continue).
    pub(super) fn has_list(&self) -> bool {
        matches!(self.entry_format, EntryFormat::Continue)
    }

    pub(super) fn locations_of(
        &self,
        scope: FileScope,
    ) -> impl Iterator<Item = &'static FileLocation> {
        self.locations.iter().filter(move |location| location.scope == scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_belong_to_apps_alone() {
        let mut names = app_file_names().0.to_vec();
        names.sort_unstable();
        insta::assert_snapshot!(names.join("\n"));
    }
}
