//! The command line: commands, arguments and flags.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use clap_complete::ArgValueCandidates;

use super::{candidates, shared_flags::Options};
use crate::{config::parse_duration, policy::RulePlace};

/// One MCP server in front of many: servers sleep until an agent needs them.
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
    /// Serve hosts on standard input and output (the default) or HTTP
    #[command(alias = "start")]
    Serve,
    /// Check the config and print every problem
    Check {
        /// Print the problems as JSON
        #[arg(long)]
        json: bool,
    },
    /// Write an empty config
    ///
    /// The config is the user's own, or the one that --config names.
    Init,
    /// Add a server to the config
    ///
    /// The arguments are NAME COMMAND ARGS…, NAME URL, or a JSON snippet.
    #[command(after_help = "\
Examples:
  dormouse add time --description 'The time, in any zone.' -- uvx mcp-server-time
  dormouse add docs https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'")]
    Add(AddArguments),
    /// Remove servers from the config
    Remove(EditedServers),
    /// Enable servers that are disabled in the config
    Enable(EditedServers),
    /// Disable servers without deleting their entries
    Disable(EditedServers),
    /// Let all hosts of a daemon use one process of a server
    ///
    /// Sets `isolation` to `shared`. Do so only if the server keeps nothing for one host: no open
    /// page, no current directory, no login of one user.
    Share(ShareArguments),
    /// Import servers of AI tools; without arguments, list them
    ///
    /// Also imports the servers of another proxy's config. Without arguments, lists the tools that
    /// have servers. The files are only read.
    #[command(after_help = "\
Examples:
  dormouse import                    List the tools that have servers
  dormouse import --all --probe      Import from every tool, with descriptions
  dormouse import cursor .mcp.json   Import from one tool and one file")]
    Import(ImportArguments),
    /// Add dormouse to AI tools; without arguments, list them
    ///
    /// Writes dormouse into the config file of each tool: as a command, or with --http by its URL.
    /// Without arguments, lists the tools.
    #[command(after_help = "\
Examples:
  dormouse connect                    List the tools, and which have dormouse
  dormouse connect cursor --replace   Put dormouse in place of Cursor's servers
  dormouse connect --all --dry-run    Show the changes for every tool")]
    Connect(ConnectArguments),
    /// Remove dormouse from AI tools, and restore their servers
    Disconnect(DisconnectArguments),
    /// Check the store that several machines share, or make a key for it
    Store {
        #[command(subcommand)]
        command: StoreSubcommand,
    },
    /// Allow a config in the working directory to run its commands
    Trust {
        /// The config; by default the one in the working directory
        path: Option<PathBuf>,
    },
    /// Accept a server's changed tools
    Approve(ApproveArguments),
    /// Show which rule decides about a call, or allow a tool
    #[command(after_help = "\
Examples:
  dormouse policy check github/delete_repo '{\"repo\": \"acme/x\"}'
  dormouse policy allow github/create_issue")]
    Policy {
        #[command(subcommand)]
        command: PolicySubcommand,
    },
    /// List the known tools of each server: shown, hidden, stale
    List {
        /// Only these servers; by default all
        #[arg(add = ArgValueCandidates::new(candidates::servers))]
        servers: Vec<String>,
        /// Print the tools as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a server's entry in the config, without its secrets
    Get {
        /// The name of the server
        #[arg(add = ArgValueCandidates::new(candidates::servers))]
        server: String,
        /// Print the entry as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the state and context size of each server
    Status {
        /// Print the states as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the calls to servers
    ///
    /// The calls of all hosts, with their duration, size and outcome. `callLog` in the config says
    /// what is kept.
    Log(LogArguments),
    /// Show the servers and their calls live, in the terminal
    Top,
    /// Show the servers and their calls in a browser
    ///
    /// Serves a page on this machine for as long as the command runs. It can wake servers, put them
    /// to sleep, switch tools, and approve changed tools.
    Ui(UiArguments),
    /// Log in to a server that requires it, in a browser
    Login(LoginArguments),
    /// Log out of a server: revoke and delete its tokens
    Logout(LogoutArguments),
    /// Load servers in the running dormouse, for all its hosts
    Load(NamedServers),
    /// Put servers of the running dormouse to sleep
    Sleep(NamedServers),
    /// Clear failed loads in the running dormouse
    Reset(NamedServers),
    /// Read the servers' lists again
    ///
    /// Also updates `tools` in the config, for servers that have it.
    Refresh(RefreshArguments),
    /// Connect servers, measure the time, and report problems
    Test {
        /// Only these servers; by default all
        #[arg(add = ArgValueCandidates::new(candidates::servers))]
        servers: Vec<String>,
        /// Print the results as JSON, at the end
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        limit: TimeLimit,
    },
    /// Call a tool as an agent would
    #[command(after_help = "\
Examples:
  dormouse call time get_current_time '{\"timezone\": \"Europe/Berlin\"}'
  dormouse call files read_file - < arguments.json")]
    Call {
        /// The server that has the tool
        #[arg(add = ArgValueCandidates::new(candidates::servers))]
        server: String,
        /// The name of the tool, as `dormouse list` shows it
        tool: String,
        /// The arguments of the tool as JSON; `-` reads standard input
        #[arg(value_name = "JSON")]
        input: Option<String>,
        /// Print the whole result of the server
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        limit: TimeLimit,
    },
    /// Run or check a script that calls many tools
    #[command(after_help = "\
Examples:
  dormouse script run triage.ts '{\"repo\": \"acme/x\"}'
  dormouse script check triage.ts
  dormouse script types > dormouse.d.ts")]
    Script {
        #[command(subcommand)]
        command: ScriptSubcommand,
    },
    /// Show or end the background process that serves all hosts
    #[cfg(unix)]
    Daemon {
        #[command(subcommand)]
        command: DaemonSubcommand,
    },
    /// Print the JSON schema of the config
    Schema {
        /// Print the tables of the config reference instead
        #[arg(long, hide = true)]
        reference: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages into a directory
    Man {
        /// The directory, which is created if it does not exist
        directory: PathBuf,
    },
    /// Show what an agent sees, on embedded servers
    Demo {
        /// Print the steps as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The commands about the daemon.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum DaemonSubcommand {
    /// Show whether the daemon runs, and for how many hosts
    Status {
        /// Print the state as JSON
        #[arg(long)]
        json: bool,
    },
    /// End the daemon; the next message of a host starts one again
    Stop,
    /// Replace the daemon; sessions continue at the new one
    Restart,
    /// Print the log of the daemon
    Logs,
    /// Print a service unit, for a daemon that always runs
    Unit,
    /// Run the daemon in the foreground
    Run {
        /// Do not end when no host has been served for a time
        #[arg(long)]
        always: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum StoreSubcommand {
    /// Check whether the store can be used, and show what is in it
    ///
    /// Also tells what the store would lose, and what cannot be read.
    Check {
        /// Print the report as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a new key for `storeKeys`
    Key,
}

#[derive(Debug, Subcommand)]
pub(super) enum PolicySubcommand {
    /// Show the verdict on a call, and the rule that decides
    Check {
        /// The tool, as SERVER/TOOL
        tool: String,
        /// The arguments of the tool as JSON
        #[arg(value_name = "JSON")]
        input: Option<String>,
        /// Print the verdict as JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a rule to the config that allows a tool
    Allow {
        /// The tool, as SERVER/TOOL
        tool: String,
        /// The rule to make an exception to, as refusals name it: `policy[0]`; by default, the
        /// rules about a call without arguments
        #[arg(long = "rule", value_name = "RULE")]
        rules: Vec<RulePlace>,
        /// Change nothing; print the changes of the config
        #[arg(long)]
        dry_run: bool,
    },
}

/// The commands about scripts.
#[derive(Debug, Subcommand)]
pub(super) enum ScriptSubcommand {
    /// Run a script, and print what it returns
    Run {
        /// The file with the script, in JavaScript or TypeScript
        file: PathBuf,
        /// The value of `input` as JSON; `-` reads standard input
        #[arg(value_name = "JSON")]
        input: Option<String>,
        /// Print the whole result
        #[arg(long)]
        json: bool,
    },
    /// Check a script without running it: its syntax, and the tools and arguments that it names
    Check {
        /// The file with the script
        file: PathBuf,
        /// Print the problems as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print declarations of the known tools in TypeScript, for editors
    Types,
}

/// The time limit for servers.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct TimeLimit {
    /// Maximum time for each server to start and list its tools: `30s`, `2m`
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(super) timeout: Duration,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct RefreshArguments {
    /// Only these servers; by default all
    #[arg(add = ArgValueCandidates::new(candidates::servers))]
    pub(super) servers: Vec<String>,
    /// Add `tools` to entries of the config that have none
    #[arg(long)]
    pub(super) write: bool,
    /// Add the proposed toolsets to entries of the config
    #[arg(long)]
    pub(super) write_toolsets: bool,
    /// Change nothing; print the changes of the config
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print the results as JSON
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) limit: TimeLimit,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct LogArguments {
    /// Only the calls to this server
    #[arg(add = ArgValueCandidates::new(candidates::servers))]
    pub(super) server: Option<String>,
    /// Maximum number of past calls, or of lines with --stderr
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 50)]
    pub(super) last: usize,
    /// Wait for further calls, and print them as they end
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Only the calls that have not succeeded
    #[arg(long)]
    pub(super) failed: bool,
    /// Print the last lines of the server's standard error instead
    #[arg(long, requires = "server", conflicts_with_all = ["follow", "failed"])]
    pub(super) stderr: bool,
    /// Print each call as a line of JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Servers, at least one.
#[derive(Debug, Args)]
pub(super) struct NamedServers {
    /// The names of the servers
    #[arg(required = true, add = ArgValueCandidates::new(candidates::servers))]
    pub(super) servers: Vec<String>,
}

/// Servers whose entries are edited.
#[derive(Debug, Args)]
pub(super) struct EditedServers {
    #[command(flatten)]
    pub(super) named: NamedServers,
    /// Change nothing; print the changes
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShareArguments {
    #[command(flatten)]
    pub(super) edited: EditedServers,
    /// Give each host a process of its own: set `isolation` to `session`
    #[arg(long)]
    pub(super) no_share: bool,
}

/// The arguments of `claude mcp add`.
#[derive(Debug, Args)]
pub(super) struct AddArguments {
    /// The name of the server; or a JSON snippet that contains it
    pub(super) name: String,
    /// The command and its arguments, after `--` if they begin with a dash; a URL; or the entry as
    /// JSON
    #[arg(value_name = "COMMAND|URL|JSON")]
    pub(super) what: Vec<String>,
    /// stdio, http or sse; default: stdio for a command; http, or sse if that is refused, for a URL
    #[arg(short, long)]
    pub(super) transport: Option<String>,
    /// An environment variable of the server; can be repeated
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(super) env: Vec<String>,
    /// A header for each request to the URL; can be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(super) headers: Vec<String>,
    /// The purpose of the server and when to use it; a server with a description sleeps until it is
    /// needed
    #[arg(short, long)]
    pub(super) description: Option<String>,
    /// The working directory of the server
    #[arg(long)]
    pub(super) cwd: Option<String>,
    /// Replace a server of the same name
    #[arg(long)]
    pub(super) force: bool,
    /// Change nothing; print the changes
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct ImportArguments {
    /// AI tools (`claude-code`, `cursor`, …), or files
    #[arg(value_name = "APP|FILE", add = ArgValueCandidates::new(candidates::apps))]
    pub(super) from: Vec<String>,
    /// Import from every AI tool found
    #[arg(long)]
    pub(super) all: bool,
    /// With --yes, include the files of the project in the working directory
    #[arg(long)]
    pub(super) project: bool,
    /// Connect the servers, and propose descriptions from their own
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) probe: bool,
    /// Move secrets in plain text to the `.env` file next to the config
    #[arg(long)]
    pub(super) move_secrets: bool,
    /// Write a profile for each AI tool if their servers differ
    #[arg(long)]
    pub(super) profiles: bool,
    /// Replace servers of the same name
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) consent: Consent,
    /// Print what was found and done as JSON, without questions
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct UiArguments {
    /// The port of the page; by default a free one
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(super) port: u16,
    /// Print the address of the page, and open no browser
    #[arg(long)]
    pub(super) no_browser: bool,
}

#[derive(Debug, Args)]
pub(super) struct ApproveArguments {
    /// The server whose tools have changed
    #[arg(add = ArgValueCandidates::new(candidates::servers))]
    pub(super) server: String,
    /// Only this tool; by default all that have changed
    pub(super) tool: Option<String>,
    /// Change nothing; print the changed definitions
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct LoginArguments {
    /// The server to log in to
    #[arg(add = ArgValueCandidates::new(candidates::servers))]
    pub(super) server: String,
    /// Log in on another device, with a code, if the server supports it
    #[arg(long, conflicts_with = "no_browser")]
    pub(super) device: bool,
    /// Print the address instead of opening a browser
    #[arg(long)]
    pub(super) no_browser: bool,
    /// Request this scope as well; can be repeated
    #[arg(long, value_name = "SCOPE")]
    pub(super) scope: Vec<String>,
    /// Maximum time to wait for the login
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    pub(super) timeout: Duration,
}

#[derive(Debug, Args)]
pub(super) struct LogoutArguments {
    /// The server to log out of
    #[arg(add = ArgValueCandidates::new(candidates::servers))]
    pub(super) server: String,
    /// End the login of one person, whom the identity provider knows as SUB
    #[arg(long, value_name = "SUB")]
    pub(super) person: Option<String>,
    /// The identity provider of the person, if the config has several
    #[arg(long, value_name = "URL", requires = "person")]
    pub(super) issuer: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ConnectArguments {
    #[command(flatten)]
    pub(super) apps: AppArguments,
    /// Remove servers from the tool that dormouse serves
    #[arg(long)]
    pub(super) replace: bool,
    #[command(flatten)]
    pub(super) consent: Consent,
    /// Print the results as JSON, without questions
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

/// Files of apps.
#[derive(Debug, Args)]
pub(super) struct AppArguments {
    /// AI tools: `claude-code`, `cursor`, …
    #[arg(value_name = "APP", add = ArgValueCandidates::new(candidates::apps))]
    pub(super) names: Vec<String>,
    /// Every AI tool found
    #[arg(long, conflicts_with = "names")]
    pub(super) all: bool,
    /// Use the project's file in the working directory
    #[arg(long)]
    pub(super) project: bool,
}

/// Consent to write the changes; without either flag, the user is asked.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Consent {
    /// Write the changes without asking
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Change nothing; print the changes
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_after_two_dashes_are_the_wrapped_server() {
        let typed = ["dormouse", "--surface", "activate", "--", "npx", "-y", "server", "--eager"];
        let arguments = Arguments::try_parse_from(typed).unwrap();
        assert_eq!(arguments.wrapped, ["npx", "-y", "server", "--eager"]);
        assert!(!arguments.options.startup.eager && arguments.command.is_none());
    }
}
