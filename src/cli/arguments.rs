//! What can be typed.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;

use super::complete;
use crate::config::{Startup, Surface, parse_duration};

/// One MCP server in front of all of yours: they sleep until an agent wakes them.
#[derive(Debug, Parser)]
#[command(name = "dormouse", version, max_term_width = 100)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) options: Options,
    /// Wrap this one server, without a config
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) wrapped: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve a host on standard input and output (the default), or hosts over HTTP
    #[command(alias = "start")]
    Serve,
    /// Validate the config and print every problem
    Check {
        #[arg(long)]
        json: bool,
    },
    /// Write an empty config: your own, or the one that --config names
    Init,
    /// Add a server to the config: `add NAME COMMAND ARGS…`, `add NAME URL`, or a pasted JSON snippet
    Add(AddArguments),
    /// Take servers out of the config
    Remove(EditedServers),
    /// Switch servers on that are switched off in the config
    Enable(EditedServers),
    /// Switch servers off without deleting their entries
    Disable(EditedServers),
    /// Take the servers of AI tools, or of another proxy's config, into the config; without arguments, show what there is
    Import(ImportArguments),
    /// Put dormouse into the configs of AI tools; with --http by that URL. Without arguments, show where it is
    Connect(ConnectArguments),
    /// Take dormouse out of the configs of AI tools, which are then as they were
    Disconnect(DisconnectArguments),
    /// Allow a config found in the working directory to run its commands
    Trust {
        /// The config; by default the one in the working directory
        path: Option<PathBuf>,
    },
    /// Take a server's tools as they are now, though they are not what they were when first seen
    Approve(ApproveArguments),
    /// Show the tools of each server, as far as they are known: shown, hidden, stale
    List {
        /// These alone; by default all
        #[arg(add = ArgValueCandidates::new(complete::servers))]
        servers: Vec<String>,
        #[arg(long)]
        json: bool,
    },
    /// Show the entry of a server as it stands in the config, without its secrets
    Get {
        #[arg(add = ArgValueCandidates::new(complete::servers))]
        server: String,
        #[arg(long)]
        json: bool,
    },
    /// Show how each server is and what it would cost; asks the running dormouse where there is one
    Status {
        #[arg(long)]
        json: bool,
    },
    /// Log in to a server that wants it, in a browser
    Login(LoginArguments),
    /// Log out of a server: its tokens are revoked, and forgotten
    Logout {
        #[arg(add = ArgValueCandidates::new(complete::servers))]
        server: String,
    },
    /// Load servers in the dormouse that runs, for all its hosts
    Load(NamedServers),
    /// Put servers of the dormouse that runs to sleep
    Sleep(NamedServers),
    /// Have the dormouse that runs forget that servers have failed
    Reset(NamedServers),
    /// Learn again what servers have; where the config lists their tools, bring it up to date
    Refresh(RefreshArguments),
    /// Connect servers, time it, and say what is wrong
    Test {
        /// These alone; by default all
        #[arg(add = ArgValueCandidates::new(complete::servers))]
        servers: Vec<String>,
        /// Print what was found as JSON, at the end
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        limit: TimeLimit,
    },
    /// Call a tool as an agent would
    Call {
        #[arg(add = ArgValueCandidates::new(complete::servers))]
        server: String,
        tool: String,
        /// What to call it with, as JSON; `-` reads standard input
        #[arg(value_name = "JSON")]
        input: Option<String>,
        /// Print the whole result as the server gave it
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        limit: TimeLimit,
    },
    /// Print the JSON schema of the config
    Schema {
        /// Print the tables of docs/config.md instead
        #[arg(long, hide = true)]
        reference: bool,
    },
    /// Print a script that completes what is typed, for a shell
    Completions { shell: clap_complete::Shell },
    /// Write manual pages into a directory
    Man { directory: PathBuf },
    /// Show what an agent would see, on embedded servers
    Demo {
        /// Print the steps as JSON
        #[arg(long)]
        json: bool,
    },
}

/// How long to wait for servers.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct TimeLimit {
    /// How long each server may take to start and to list what it has: `30s`, `2m`
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(super) timeout: Duration,
}

#[derive(Debug, Args)]
pub(super) struct RefreshArguments {
    /// These alone; by default all
    #[arg(add = ArgValueCandidates::new(complete::servers))]
    pub(super) servers: Vec<String>,
    /// Write `tools` into the config also where it has none yet
    #[arg(long)]
    pub(super) write: bool,
    /// Change nothing; print what would change in the config
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print what was found as JSON
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) limit: TimeLimit,
}

/// Servers, at least one.
#[derive(Debug, Args)]
pub(super) struct NamedServers {
    #[arg(required = true, add = ArgValueCandidates::new(complete::servers))]
    pub(super) servers: Vec<String>,
}

/// Servers whose entries are changed.
#[derive(Debug, Args)]
pub(super) struct EditedServers {
    #[command(flatten)]
    pub(super) named: NamedServers,
    /// Change nothing; print what would change
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// As of `claude mcp add`.
#[derive(Debug, Args)]
pub(super) struct AddArguments {
    /// What to call it; or a JSON snippet that names it
    pub(super) name: String,
    /// The command and its arguments, after `--` if they begin with a dash; a URL; or the entry as JSON
    #[arg(value_name = "COMMAND|URL|JSON")]
    pub(super) what: Vec<String>,
    /// stdio, http or sse; by default stdio for a command and http, or sse where that is refused, for a URL
    #[arg(short, long)]
    pub(super) transport: Option<String>,
    /// A variable for the server; as often as there are any
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(super) env: Vec<String>,
    /// A header for each request to the URL; as often as there are any
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(super) headers: Vec<String>,
    /// What it is for and when to use it: the server sleeps until an agent asks for it
    #[arg(short, long)]
    pub(super) description: Option<String>,
    /// The directory to start it in
    #[arg(long)]
    pub(super) cwd: Option<String>,
    /// Put it in the place of one of that name
    #[arg(long)]
    pub(super) force: bool,
    /// Change nothing; print what would change
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct ImportArguments {
    /// AI tools (`claude-code`, `cursor`, …), or files
    #[arg(value_name = "APP|FILE", add = ArgValueCandidates::new(complete::apps))]
    pub(super) from: Vec<String>,
    /// All AI tools that are found
    #[arg(long)]
    pub(super) all: bool,
    /// With --yes, also from the files of the project in the working directory, whoever has written them
    #[arg(long)]
    pub(super) project: bool,
    /// Connect the servers, and let them say what they are for
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) probe: bool,
    /// Put secrets that stand in plain text into `.env` beside the config
    #[arg(long)]
    pub(super) move_secrets: bool,
    /// Replace servers of the same name
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) consent: Consent,
    /// Print what was found and done as JSON; asks nothing
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ApproveArguments {
    #[arg(add = ArgValueCandidates::new(complete::servers))]
    pub(super) server: String,
    /// This tool alone; by default all that have changed
    pub(super) tool: Option<String>,
    /// Change nothing; print what has changed
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct LoginArguments {
    #[arg(add = ArgValueCandidates::new(complete::servers))]
    pub(super) server: String,
    /// On another device: type a code in there. Where the server offers that
    #[arg(long, conflicts_with = "no_browser")]
    pub(super) device: bool,
    /// Print the address, and open nothing
    #[arg(long)]
    pub(super) no_browser: bool,
    /// Ask for this scope too; may be given several times
    #[arg(long, value_name = "SCOPE")]
    pub(super) scope: Vec<String>,
    /// How long to wait for the login
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub(super) timeout: Duration,
}

#[derive(Debug, Args)]
pub(super) struct ConnectArguments {
    #[command(flatten)]
    pub(super) apps: AppArguments,
    /// Take the servers out that dormouse has
    #[arg(long)]
    pub(super) replace: bool,
    #[command(flatten)]
    pub(super) consent: Consent,
    /// Print what was done as JSON; asks nothing
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DisconnectArguments {
    #[command(flatten)]
    pub(super) apps: AppArguments,
    #[command(flatten)]
    pub(super) consent: Consent,
}

/// Files of hosts.
#[derive(Debug, Args)]
pub(super) struct AppArguments {
    /// AI tools: `claude-code`, `cursor`, …
    #[arg(value_name = "APP", add = ArgValueCandidates::new(complete::apps))]
    pub(super) names: Vec<String>,
    /// All AI tools that are found
    #[arg(long, conflicts_with = "names")]
    pub(super) all: bool,
    /// In the file of the project in the working directory
    #[arg(long)]
    pub(super) project: bool,
}

/// Whether to write what was shown; without either, that is asked.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Consent {
    /// Ask nothing, and write
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Change nothing; print what would change
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct Options {
    /// The config file [env: `DORMOUSE_CONFIG`]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// More variables for ${VAR} in the config; by default `.env` beside it
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) env_file: Option<PathBuf>,
    /// Of the config's profiles, the one whose servers and tools to show
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) profile: Option<String>,
    /// The form in which the servers are shown to the host
    #[arg(long, global = true)]
    pub(super) surface: Option<Surface>,
    #[command(flatten)]
    pub(super) startup: StartupFlags,
    /// After how long without use servers go to sleep: `90s`, `5m`; 0 for never
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) idle_timeout: Option<Duration>,
    /// Serve hosts over HTTP on this address: `127.0.0.1:8080`, `:8080` for loopback, port 0 for a free one
    #[arg(long, global = true, value_name = "ADDR")]
    pub(super) http: Option<String>,
    /// Where hosts are served over HTTP: serve one on standard input and output as well
    #[arg(long, global = true)]
    pub(super) stdio: bool,
    /// error, warn, info, debug or trace; also `target=level,…` [env: `DORMOUSE_LOG`]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(super) log_level: Option<String>,
    /// The form of the log on standard error
    #[arg(long, global = true, default_value = "pretty", value_name = "FORMAT")]
    pub(super) log_format: LogFormat,
}

/// One of them at most, for all servers.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct StartupFlags {
    /// Connect every server at start
    #[arg(long, global = true, group = "startup", alias = "eager-startup")]
    pub(super) eager: bool,
    /// Connect every server on first use
    #[arg(long, global = true, group = "startup", alias = "pure-lazy")]
    pub(super) lazy: bool,
    /// Connect every server once to learn what it has, then on use
    #[arg(long, global = true, group = "startup", alias = "hybrid-lazy")]
    pub(super) hybrid: bool,
}

impl StartupFlags {
    /// What was typed.
    pub(super) fn chosen(&self) -> Option<Startup> {
        let typed = [
            (self.eager, Startup::Eager),
            (self.lazy, Startup::Lazy),
            (self.hybrid, Startup::Hybrid),
        ];
        typed.into_iter().find(|(is_typed, _)| *is_typed).map(|(_, startup)| startup)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    #[default]
    Pretty,
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn help_says_what_can_be_typed() {
        Arguments::command().debug_assert();
        let mut command = Arguments::command().term_width(80);
        insta::assert_snapshot!(command.render_long_help().to_string());
    }

    #[test]
    fn what_follows_two_dashes_is_the_wrapped_server() {
        let typed = ["dormouse", "--surface", "activate", "--", "npx", "-y", "server", "--eager"];
        let arguments = Arguments::try_parse_from(typed).unwrap();
        assert_eq!(arguments.wrapped, ["npx", "-y", "server", "--eager"]);
        assert!(!arguments.options.startup.eager && arguments.command.is_none());
    }
}
