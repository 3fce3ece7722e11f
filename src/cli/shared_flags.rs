//! The flags that all commands share.

use std::{path::PathBuf, time::Duration};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use crate::config::{Startup, Surface, parse_duration};

#[derive(Clone, Debug, Default, Args)]
pub(super) struct Options {
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help = "The config file [env: DORMOUSE_CONFIG]"
    )]
    pub(super) config: Option<PathBuf>,
    /// A file with variables for ${VAR} in the config; by default `.env` next to it
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) env_file: Option<PathBuf>,
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help = "The profile whose servers and tools are shown [env: DORMOUSE_PROFILE]"
    )]
    pub(super) profile: Option<String>,
    /// The form in which hosts see the servers
    #[arg(long, global = true, value_parser = surface_parser())]
    pub(super) surface: Option<Surface>,
    /// Let agents run scripts that call many tools
    #[arg(long, global = true)]
    pub(super) scripts: bool,
    #[command(flatten)]
    pub(super) startup: StartupFlags,
    /// Put servers to sleep after this time without use: `90s`, `5m`; 0 for never
    #[arg(long, global = true, value_name = "DURATION", value_parser = parse_duration)]
    pub(super) idle_timeout: Option<Duration>,
    /// Serve hosts over HTTP on this address: `127.0.0.1:8080`; `:8080` means loopback, port 0 any
    /// free port
    #[arg(long, global = true, value_name = "ADDR")]
    pub(super) http: Option<String>,
    /// With HTTP, also serve a host on standard input and output
    #[arg(long, global = true)]
    pub(super) stdio: bool,
    /// Serve the host in this process, even if a daemon could do it
    #[arg(long, global = true)]
    pub(super) no_daemon: bool,
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        help = "The log level: error, warn, info, debug or trace; also `target=level,…` [env: \
            DORMOUSE_LOG]"
    )]
    pub(super) log_level: Option<String>,
    /// The format of the log on standard error
    #[arg(long, global = true, default_value = "pretty", value_name = "FORMAT")]
    pub(super) log_format: LogFormat,
}

/// At most one of them, for all servers.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct StartupFlags {
    /// Connect every server at the start
    #[arg(long, global = true, group = "startup", alias = "eager-startup")]
    pub(super) eager: bool,
    /// Connect every server on first use
    #[arg(long, global = true, group = "startup", alias = "pure-lazy")]
    pub(super) lazy: bool,
    /// Connect every server once to read its tools, then on use
    #[arg(long, global = true, group = "startup", alias = "hybrid-lazy")]
    pub(super) hybrid: bool,
}

impl StartupFlags {
    /// Returns the flag of the command line.
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

/// Returns the parser of `--surface`, which lists the surfaces in the help.
fn surface_parser() -> impl TypedValueParser<Value = Surface> {
    let values =
        Surface::ALL.map(|surface| PossibleValue::new(surface.name()).help(surface.meaning()));
    PossibleValuesParser::new(values)
        .map(|name| Surface::named(&name).expect("the parser accepts only names of surfaces"))
}
