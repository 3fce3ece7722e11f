//! `dormouse daemon`: the commands about the daemon of a config.

use std::{
    io::{ErrorKind, Read as _},
    os::unix::net::UnixStream,
    path::Path,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;

use super::{accepting, choice, own_place, thin_client::start_daemon};
use crate::{
    base::{own_program, read_text, visible},
    cli::{arguments::DaemonSubcommand, output, settings, shared_flags::Options},
    daemon::{
        AnsweredCommand, DaemonCommand, DaemonStatus, DialError, EndReason, SharedProcess,
        ensure_running, send,
    },
};

/// Time after which a user is told why a command takes long.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum time for a daemon to end: longer than it waits for calls in flight.
const END_TIMEOUT: Duration = Duration::from_secs(30);

pub(in crate::cli) fn run(
    options: &Options,
    command: DaemonSubcommand,
) -> anyhow::Result<ExitCode> {
    let config = || settings::find_path(options);
    match command {
        DaemonSubcommand::Status { json } => status(&config()?, json),
        DaemonSubcommand::Stop => Ok(stop(&config()?)),
        DaemonSubcommand::Restart => restart(options),
        DaemonSubcommand::Logs => logs(&config()?),
        DaemonSubcommand::Unit => unit(&config()?),
        DaemonSubcommand::Run { always } => accepting::run(options, always),
    }
}

/// The daemons of a config.
#[derive(Default)]
struct Daemons {
    running: Vec<AnsweredCommand>,
    /// True if one could not be reached, which was reported.
    has_failed: bool,
}

impl Daemons {
    /// Sends a command to all daemons of a config.
    fn send(config: &Path, command: DaemonCommand) -> Self {
        let mut daemons = Self::default();
        for place in own_place::places_of(config) {
            match send(&place, command) {
                Ok(answered) => daemons.running.extend(answered),
                Err(error) => daemons.report(&error),
            }
        }
        daemons
    }

    fn report(&mut self, error: &DialError) {
        errln!("dormouse: {error}");
        self.has_failed = true;
    }

    fn states(&self) -> impl Iterator<Item = &DaemonStatus> {
        self.running.iter().map(|answered| &answered.status)
    }

    /// Says so if there are none.
    fn report_absence(&self, config: &Path) {
        if self.running.is_empty() && !self.has_failed {
            outln!("no daemon runs for {}", config.display());
        }
    }

    fn exit_code(&self) -> ExitCode {
        if self.has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

fn status(config: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let daemons = Daemons::send(config, DaemonCommand::Status);
    if json {
        outln!("{}", output::json(&daemons.states().collect::<Vec<_>>())?);
        return Ok(daemons.exit_code());
    }
    daemons.report_absence(config);
    for daemon in daemons.states() {
        let DaemonStatus { pid, build, config, uptime_seconds, hosts, shared } = daemon;
        let uptime = humantime::format_duration(Duration::from_secs(*uptime_seconds));
        let (version, config) = (build.version(), config.display());
        outln!("dormouse {version}, process {pid}, with {config}; up {uptime}; hosts: {hosts}");
        for SharedProcess { server, users, .. } in shared {
            outln!("  shared: {}, in use by {users}", visible(server));
        }
    }
    Ok(daemons.exit_code())
}

/// Returns the processes that the hosts of a config share now.
pub(in crate::cli) fn shared_processes(config: &Path) -> Vec<SharedProcess> {
    let daemons = Daemons::send(config, DaemonCommand::Status);
    daemons.running.into_iter().flat_map(|daemon| daemon.status.shared).collect()
}

fn stop(config: &Path) -> ExitCode {
    let mut daemons = Daemons::send(config, DaemonCommand::End(EndReason::Stopped));
    daemons.report_absence(config);
    for AnsweredCommand { status, connection } in std::mem::take(&mut daemons.running) {
        let pid = status.pid;
        let is_quick = is_closed_within(PATIENCE, &connection);
        if !is_quick {
            errln!("waiting for the calls and servers of the daemon (process {pid})");
        }
        if is_quick || is_closed_within(END_TIMEOUT, &connection) {
            outln!("the daemon (process {pid}) has ended");
        } else {
            errln!("the daemon (process {pid}) did not end within {END_TIMEOUT:?}; kill it");
            daemons.has_failed = true;
        }
    }
    daemons.exit_code()
}

/// Replaces the daemon of this environment, if the next one can serve the config.
fn restart(options: &Options) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    let settings = settings::parse(&file, options)?.settings;
    if !choice::is_for_daemon(options, &settings, |name| std::env::var(name).ok()) {
        errln!("the daemon is turned off here: hosts like this command are served without it");
    }
    let config = &*std::path::absolute(&file.path)?;
    let place = own_place::place_of(config).context("cannot run a daemon: HOME is not set")?;
    let replaced = send(&place, DaemonCommand::End(EndReason::Replaced))?;
    let program = own_program().context("cannot find the path of this program")?;
    // A client may start it first.
    ensure_running(&place, || start_daemon(&place, &program, config))?;
    match replaced {
        Some(AnsweredCommand { status, .. }) => {
            outln!("the daemon (process {}) was replaced", status.pid);
        }
        None => outln!("the daemon was started"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until the other end of a connection has been closed. Returns `false` if it stays open.
fn is_closed_within(timeout: Duration, mut connection: &UnixStream) -> bool {
    let timeout = connection.set_read_timeout(Some(timeout));
    match timeout.and_then(|()| connection.read(&mut [0])) {
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        Ok(_) => true,
    }
}

fn logs(config: &Path) -> anyhow::Result<ExitCode> {
    let mut places = own_place::places_of(config);
    places.extend(own_place::place_of(config).filter(|_| places.is_empty()));
    if !places.iter().any(|place| place.log().exists()) {
        outln!("no daemon has run for {}", config.display());
        return Ok(ExitCode::SUCCESS);
    }
    for place in places {
        let path = place.log();
        let log = read_text(&path).with_context(|| format!("cannot read {}", path.display()))?;
        outln!("{}", log.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the unit of a service manager for a daemon that always runs.
fn unit(config: &Path) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let (program, config) = (program.display().to_string(), config.display().to_string());
    if cfg!(target_os = "macos") {
        outln!("{}", launchd_unit(&program, &config));
    } else {
        outln!("{}", systemd_unit(&program, &config));
    }
    Ok(ExitCode::SUCCESS)
}

fn systemd_unit(program: &str, config: &str) -> String {
    // In a unit, `%` begins a specifier and `$` a variable (systemd.unit(5), systemd.service(5)).
    let quoted = |text: &str| {
        let text = text.replace('\\', r"\\").replace('"', "\\\"");
        format!("\"{}\"", text.replace('%', "%%").replace('$', "$$"))
    };
    let (program, config) = (quoted(program), quoted(config));
    format!(
        "\
# Save as ~/.config/systemd/user/dormouse.service, then run:
#   systemctl --user enable --now dormouse
[Unit]
Description=MCP servers for all AI tools

[Service]
ExecStart={program} daemon run --always --config {config}
Restart=on-failure

[Install]
WantedBy=default.target"
    )
}

fn launchd_unit(program: &str, config: &str) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (program, config) = (escaped(program), escaped(config));
    format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!-- Save as ~/Library/LaunchAgents/io.dormouse.daemon.plist, then run:
     launchctl load ~/Library/LaunchAgents/io.dormouse.daemon.plist -->
<plist version=\"1.0\">
<dict>
  <key>Label</key><string>io.dormouse.daemon</string>
  <key>ProgramArguments</key>
  <array>
    <string>{program}</string>
    <string>daemon</string><string>run</string><string>--always</string>
    <string>--config</string><string>{config}</string>
  </array>
  <key>RunAtLoad</key><true/>
</dict>
</plist>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_run_the_daemon_whatever_its_path_contains() {
        let (program, config) = ("/opt/a b/dormouse", "/home/x/100% <\"$HOME\">.json");
        insta::assert_snapshot!(format!(
            "{}\n---\n{}",
            systemd_unit(program, config),
            launchd_unit(program, config)
        ));
    }
}
