//! The servers that hosts of one daemon may share, and what makes two of them the same.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Launch, ServerConfig, Transport,
    keys::{Isolation, Pin, Protocol, Startup},
};

/// A server that keeps nothing for one client, as it is published.
struct KnownServer {
    /// The name of the package, the image or the program.
    name: &'static str,
    reason: &'static str,
}

/// Well-known servers that can be shared safely, whatever directory they are started in. A server
/// that asks for roots, or whose tools depend on earlier calls, is not among them.
const KNOWN_SERVERS: [KnownServer; 14] = [
    KnownServer { name: "@upstash/context7-mcp", reason: "looks up documentation" },
    KnownServer { name: "mcp-server-fetch", reason: "fetches each page anew" },
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
    KnownServer { name: "ghcr.io/github/github-mcp-server", reason: "calls an API" },
    KnownServer { name: "@notionhq/notion-mcp-server", reason: "calls an API" },
    KnownServer { name: "@modelcontextprotocol/server-slack", reason: "calls an API" },
];

/// Programs that start another program, which an argument names.
const LAUNCHERS: [&str; 9] =
    ["npx", "bunx", "pnpx", "pnpm", "uvx", "uv", "pipx", "docker", "podman"];

/// Variables that a process needs, and that do not decide what a server does.
const INDECISIVE_VARIABLES: [&str; 8] =
    ["PATH", "SHELL", "TERM", "TMPDIR", "TEMP", "TMP", "LOGNAME", "NUMBER_OF_PROCESSORS"];

/// The facts that decide what a process of a server is. Two servers with the same facts can be one
/// process.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LaunchIdentity {
    program: PathBuf,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    /// `None` if the directory does not matter.
    directory: Option<PathBuf>,
    variables: BTreeMap<OsString, OsString>,
    protocol: Protocol,
    load_timeout: Duration,
    /// The user's decision counts for this name alone.
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
            launch.inherit_env || !INDECISIVE_VARIABLES.iter().any(|other| name == *other)
        };
        let inherited = launch.inherited_variables().into_iter();
        let variables = inherited.filter(|(name, _)| is_decisive(name));
        let directory = launch.starting_directory();
        Some(LaunchIdentity {
            program: program_of(launch),
            args: launch.args.clone(),
            env: launch.env.clone(),
            directory: directory.filter(|_| !is_known || launch.cwd.is_some()),
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            protocol: self.connecting.protocol,
            load_timeout: self.settings.timeouts.load,
            name: (!is_known).then(|| self.name.clone()),
        })
    }

    /// Returns whether each host has its own process of the server only because it is not known
    /// whether hosts can share one.
    pub(crate) fn may_be_shareable(&self) -> bool {
        match &self.transport {
            Ok(Transport::Stdio(launch)) if self.connecting.isolation == Isolation::Auto => {
                reason_to_share(launch).is_none()
            }
            _ => false,
        }
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
        pooled.settings.max_result_bytes = None;
        pooled.settings.timeouts.load = self.settings.timeouts.load;
        // Each host has timeouts of its own.
        pooled.settings.timeouts.call = Duration::ZERO;
        pooled.settings.timeouts.request = Duration::ZERO;
        pooled
    }
}

/// Returns why a server can be shared although its config does not say so.
pub(crate) fn reason_to_share(launch: &Launch) -> Option<&'static str> {
    let name = published_name(launch)?;
    KNOWN_SERVERS.iter().find(|known| known.name == name).map(|known| known.reason)
}

/// Returns the name of the package, image or program without its version.
fn published_name(launch: &Launch) -> Option<String> {
    let program = Path::new(&launch.command).file_stem()?.to_str()?;
    let name = if LAUNCHERS.contains(&program) {
        // `npx -y NAME`, `uv tool run NAME`, `docker run -i --rm -e A=b NAME`
        let is_name =
            |word: &&String| !word.starts_with('-') && (word.contains('-') || word.contains('/'));
        launch.args.iter().find(is_name)?
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
        let inherited = launch.inherited_variables().into_iter();
        inherited.clone().find(|(name, _)| *name == "PATH").map(|(_, value)| value.to_owned())
    });
    let directories = path.unwrap_or_default();
    let found = std::env::split_paths(&directories).map(|directory| directory.join(command));
    found.into_iter().find(|path| path.is_file()).unwrap_or_else(|| command.to_owned())
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
            (&["docker", "run", "-i", "--rm", "ghcr.io/github/github-mcp-server:v1"], true),
            (&["github-mcp-server", "stdio"], true),
            (&["npx", "-y", "@playwright/mcp"], false),
            (&["npx", "-y", "@modelcontextprotocol/server-filesystem", "mcp-server-time"], false),
            (&["node", "mcp-server-time"], false),
            (&["npx"], false),
        ] {
            assert_eq!(reason_to_share(&launch(words, "/", &[])).is_some(), is_known, "{words:?}");
        }
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
        assert!(same == identity(auto, time, "/two", &[("HOME", "/h"), ("TERM", "dumb")]));
        assert!(same != identity(auto, time, "/one", &[("HOME", "/i")]));
        assert!(same != identity(auto, &["uvx", "mcp-server-time", "--x"], "/one", home));
        let own = &["./server"][..];
        assert!(identity(auto, own, "/one", home).is_none());
        assert!(identity(shared, own, "/one", home).is_some());
        assert!(identity(shared, own, "/one", home) != identity(shared, own, "/two", home));
        assert!(identity(Isolation::Session, time, "/one", home).is_none());
    }
}
