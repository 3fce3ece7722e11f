//! The servers that hosts of one daemon may share, and what makes two of them the same.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Launch, ServerConfig, Transport,
    keys::{Isolation, Pin, Protocol, ResultLimit, Startup},
};

/// A server that keeps nothing for one client, as it is published.
struct KnownServer {
    /// The name of the package, the image or the program.
    name: &'static str,
    reason: &'static str,
}

/// Well-known servers that can be shared safely. A server that asks for roots, or whose tools
/// depend on earlier calls, is not among them.
const KNOWN_SERVERS: [KnownServer; 13] = [
    KnownServer { name: "@upstash/context7-mcp", reason: "looks up documentation" },
    KnownServer { name: "mcp-server-fetch", reason: "fetches each page again" },
    KnownServer { name: "mcp-server-time", reason: "tells the time" },
    KnownServer {
        name: "@modelcontextprotocol/server-memory",
        reason: "keeps one graph for all clients, in a file",
    },
    KnownServer { name: "@modelcontextprotocol/server-brave-search", reason: "searches the web" },
    KnownServer { name: "@brave/brave-search-mcp-server", reason: "searches the web" },
    KnownServer { name: "tavily-mcp", reason: "searches the web" },
    KnownServer { name: "exa-mcp-server", reason: "searches the web" },
    KnownServer { name: "firecrawl-mcp", reason: "fetches pages through a service" },
    KnownServer { name: "@modelcontextprotocol/server-github", reason: "calls an API" },
    KnownServer { name: "github-mcp-server", reason: "calls an API" },
    KnownServer { name: "@notionhq/notion-mcp-server", reason: "calls an API" },
    KnownServer { name: "@modelcontextprotocol/server-slack", reason: "calls an API" },
];

/// Programs that start another program, which their first argument after flags names.
const LAUNCHERS: [&str; 4] = ["npx", "bunx", "pnpx", "uvx"];
/// Flags of launchers that do not change what is started.
const HARMLESS_FLAGS: [&str; 5] = ["-y", "--yes", "-q", "--quiet", "--offline"];
/// The flag with which a call of one client changes the tools of all.
const DYNAMIC_TOOLS_FLAG: &str = "--dynamic-toolsets";
/// The variable that has the effect of [`DYNAMIC_TOOLS_FLAG`].
const DYNAMIC_TOOLS_VARIABLE: &str = "GITHUB_DYNAMIC_TOOLSETS";

/// The variable that does not decide what a server does.
const INDECISIVE_VARIABLE: &str = "TERM";
/// Variables that do not decide what a well-known server does.
const INDECISIVE_FOR_KNOWN: [&str; 6] = ["PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "LOGNAME"];

/// The facts that decide what a process of a server is. Two servers with the same facts can be one
/// process.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LaunchIdentity {
    program: PathBuf,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    directory: Option<PathBuf>,
    variables: BTreeMap<OsString, OsString>,
    protocol: Protocol,
    load_timeout: Duration,
    /// The name of the server if only the user says that it can be shared.
    name: Option<String>,
}

impl ServerConfig {
    /// Returns the identity under which hosts share the server; `None` if each has its own.
    pub(crate) fn shared_identity(&self) -> Option<LaunchIdentity> {
        let Ok(Transport::Stdio(launch)) = &self.transport else { return None };
        let is_known = reason_to_share(launch).is_some();
        let is_shared = match self.connecting.isolation {
            Isolation::Session => false,
            Isolation::Shared => true,
            Isolation::Auto => is_known,
        };
        if !is_shared {
            return None;
        }
        let is_decisive = |name: &OsStr| {
            let is_without_effect = || INDECISIVE_FOR_KNOWN.iter().any(|other| name == *other);
            launch.inherit_env || name != INDECISIVE_VARIABLE && !(is_known && is_without_effect())
        };
        let inherited = launch.inherited_variables().into_iter();
        let variables = inherited.filter(|(name, _)| is_decisive(name));
        Some(LaunchIdentity {
            program: program_of(launch),
            args: launch.args.clone(),
            env: launch.env.clone(),
            // A launcher may find another program, or secrets, in another directory.
            directory: launch.starting_directory(),
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            protocol: self.connecting.protocol,
            load_timeout: self.settings.timeouts.load,
            name: (!is_known).then(|| self.name.clone()),
        })
    }

    /// Returns why hosts share the server although its config does not say so: "it" and a verb.
    pub(crate) fn reason_to_share(&self) -> Option<&'static str> {
        match &self.transport {
            Ok(Transport::Stdio(launch)) if self.connecting.isolation == Isolation::Auto => {
                reason_to_share(launch)
            }
            _ => None,
        }
    }

    /// Returns whether each host has its own process of the server only because it is not known
    /// whether hosts can share one.
    pub(crate) fn may_be_shareable(&self) -> bool {
        let is_local = matches!(self.transport, Ok(Transport::Stdio(_)));
        let is_undecided = self.connecting.isolation == Isolation::Auto;
        is_local && is_undecided && self.reason_to_share().is_none()
    }

    /// Returns the config with which the process of all hosts is run: without rules that each host
    /// has for itself.
    pub(crate) fn pooled(&self) -> Self {
        let transport = self.transport.clone();
        let mut pooled = Self { transport, ..Self::bare(self.name.clone()) };
        pooled.startup = Startup::Lazy;
        pooled.connecting.protocol = self.connecting.protocol;
        pooled.settings.pin = Pin::Off;
        pooled.settings.idle_timeout = None;
        pooled.settings.max_result_bytes = ResultLimit::Off;
        pooled.settings.timeouts.load = self.settings.timeouts.load;
        // Each host has timeouts of its own.
        pooled.settings.timeouts.call = Duration::ZERO;
        pooled.settings.timeouts.request = Duration::ZERO;
        pooled
    }
}

/// Returns why a server can be shared although its config does not say so.
fn reason_to_share(launch: &Launch) -> Option<&'static str> {
    let has_word = |word: &str| launch.args.iter().any(|argument| argument.contains(word));
    let is_set = || {
        let inherited = launch.inherited_variables().into_iter();
        let mut inherited = inherited.map(|(name, _)| name);
        launch.env.contains_key(DYNAMIC_TOOLS_VARIABLE)
            || inherited.any(|name| name == DYNAMIC_TOOLS_VARIABLE)
    };
    let has_dynamic_tools =
        || has_word(DYNAMIC_TOOLS_FLAG) || has_word(DYNAMIC_TOOLS_VARIABLE) || is_set();
    let name = published_name(launch)?;
    let known = KNOWN_SERVERS.iter().find(|known| known.name == name)?;
    (!has_dynamic_tools()).then_some(known.reason)
}

/// Returns the name of the package, image or program without its version.
fn published_name(launch: &Launch) -> Option<String> {
    let program = Path::new(&launch.command).file_stem()?.to_str()?;
    let name = if LAUNCHERS.contains(&program) {
        // Any other flag may have a value, or name another package.
        launch.args.iter().find(|word| !HARMLESS_FLAGS.contains(&word.as_str()))?
    } else {
        program
    };
    let start = usize::from(name.starts_with('@'));
    let end = name[start..].find(['@', ':', '=']).map_or(name.len(), |at| start + at);
    Some(name[..end].to_owned())
}

/// Returns the path of the program as the process would find it.
fn program_of(launch: &Launch) -> PathBuf {
    let command = Path::new(&launch.command);
    if command.components().count() > 1 {
        return launch.starting_directory().unwrap_or_default().join(command);
    }
    let path = launch.env.get("PATH").map(OsString::from).or_else(|| {
        let mut inherited = launch.inherited_variables().into_iter();
        inherited.find(|(name, _)| *name == "PATH").map(|(_, value)| value.to_owned())
    });
    let directories = path.unwrap_or_default();
    let mut found = std::env::split_paths(&directories).map(|directory| directory.join(command));
    found.find(|path| path.is_file()).unwrap_or_else(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::LaunchContext;

    fn launch(words: &[&str], directory: &str, variables: &[(&str, &str)]) -> Launch {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let context = LaunchContext::new(Some(directory.into()), variables);
        let args = words[1..].iter().map(|word| (*word).to_owned()).collect();
        Launch { args, ..Launch::new(words[0], Arc::new(context)) }
    }

    fn server(isolation: Isolation, launch: Launch) -> ServerConfig {
        let mut server = ServerConfig::new("s", Transport::Stdio(launch));
        server.connecting.isolation = isolation;
        server
    }

    #[test]
    fn known_servers_are_recognized_in_the_words_that_start_them() {
        for (words, is_known) in [
            (&["npx", "-y", "@upstash/context7-mcp@latest"][..], true),
            (&["/usr/bin/npx", "@modelcontextprotocol/server-memory"], true),
            (&["uvx", "mcp-server-time", "--local-timezone=UTC"], true),
            (&["uvx", "mcp-server-fetch==2025.4.7"], true),
            (&["github-mcp-server", "stdio"], true),
            (&["github-mcp-server", "stdio", "--dynamic-toolsets"], false),
            (&["docker", "run", "--env-file", ".env", "github-mcp-server"], false),
            (&["docker", "run", "--name", "mcp-server-time", "image"], false),
            (&["uv", "run", "mcp-server-time"], false),
            (&["uvx", "--from", "mypkg", "mcp-server-time"], false),
            (&["npx", "-p", "mypkg", "mcp-server-time"], false),
            (&["npx", "-y", "@playwright/mcp"], false),
            (&["npx", "-y", "@modelcontextprotocol/server-filesystem", "mcp-server-time"], false),
            (&["node", "mcp-server-time"], false),
            (&["npx"], false),
        ] {
            assert_eq!(reason_to_share(&launch(words, "/", &[])).is_some(), is_known, "{words:?}");
        }
    }

    #[test]
    fn inherited_variable_that_changes_the_tools_prevents_sharing() {
        let variables = [(DYNAMIC_TOOLS_VARIABLE, "1")];
        let mut launch = launch(&["github-mcp-server", "stdio"], "/", &variables);
        assert!(reason_to_share(&launch).is_some(), "the server does not get the variable");
        launch.inherit_env = true;
        assert_eq!(reason_to_share(&launch), None);
    }

    #[test]
    fn only_what_decides_about_the_process_distinguishes_servers() {
        let identity = |isolation, words: &[&str], directory: &str, variables: &[(&str, &str)]| {
            server(isolation, launch(words, directory, variables)).shared_identity()
        };
        let (auto, shared) = (Isolation::Auto, Isolation::Shared);
        let time = &["uvx", "mcp-server-time"][..];
        let home = &[("HOME", "/h"), ("TERM", "xterm")][..];
        let same = identity(auto, time, "/one", home);
        assert!(same.is_some());
        assert!(same == identity(auto, time, "/one", &[("HOME", "/h"), ("TERM", "dumb")]));
        assert!(same != identity(auto, time, "/two", home));
        assert!(same != identity(auto, time, "/one", &[("HOME", "/i")]));
        assert!(same != identity(auto, &["uvx", "mcp-server-time", "--x"], "/one", home));
        let own = &["./server"][..];
        assert!(identity(auto, own, "/one", home).is_none());
        assert!(identity(shared, own, "/one", home).is_some());
        assert!(identity(shared, own, "/one", home) != identity(shared, own, "/two", home));
        assert!(identity(Isolation::Session, time, "/one", home).is_none());
    }
}
