//! `dormouse daemon`: the commands about the daemon of a config.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use nix::{errno::Errno, unistd::Pid};

use super::{accepting, own_place, thin_client::start_daemon};
use crate::{
    base::{own_program, read_text, visible},
    cli::{arguments::DaemonSubcommand, output, settings, shared_flags::Options},
    daemon::{DaemonCommand, DaemonStatus, Redial, SharedServer, ensure_running, send},
};

/// Maximum time for a daemon to end: longer than it waits for calls in flight.
const END_TIMEOUT: Duration = Duration::from_secs(30);

pub(in crate::cli) fn run(
    options: &Options,
    command: DaemonSubcommand,
) -> anyhow::Result<ExitCode> {
    if let DaemonSubcommand::Run { always } = command {
        return accepting::run(options, always);
    }
    let config = settings::find_path(options)?;
    match command {
        DaemonSubcommand::Status { json } => status(&config, json),
        DaemonSubcommand::Stop => stop(&config),
        DaemonSubcommand::Restart => restart(&config),
        DaemonSubcommand::Logs => logs(&config),
        DaemonSubcommand::Unit => unit(&config),
        DaemonSubcommand::Run { .. } => unreachable!("handled above"),
    }
}

/// The daemons of a config.
#[derive(Default)]
struct Daemons {
    /// The state of each before the command.
    running: Vec<DaemonStatus>,
    /// True if one does not answer, which was reported.
    is_one_silent: bool,
}

impl Daemons {
    /// Sends a command to all daemons of a config.
    fn send(config: &Path, command: DaemonCommand) -> Self {
        let mut daemons = Self::default();
        for place in own_place::places_of(config) {
            match send(&place, command) {
                Ok(state) => daemons.running.extend(state),
                Err(error) => {
                    errln!("dormouse: {error}");
                    daemons.is_one_silent = true;
                }
            }
        }
        daemons
    }

    /// Says so if there are none.
    fn report_absence(&self, config: &Path) {
        if self.running.is_empty() && !self.is_one_silent {
            outln!("no daemon runs for {}", config.display());
        }
    }

    fn exit_code(&self) -> ExitCode {
        if self.is_one_silent { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

fn status(config: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let daemons = Daemons::send(config, DaemonCommand::Status);
    if json {
        outln!("{}", output::json(&daemons.running)?);
        return Ok(daemons.exit_code());
    }
    daemons.report_absence(config);
    for daemon in &daemons.running {
        let DaemonStatus { pid, build, config, uptime_seconds, hosts, shared } = daemon;
        let uptime = humantime::format_duration(Duration::from_secs(*uptime_seconds));
        let (version, config) = (build.version(), config.display());
        outln!("dormouse {version}, process {pid}, with {config}; up {uptime}; hosts: {hosts}");
        for SharedServer { name, users } in shared {
            outln!("  shared: {}, in use by {users}", visible(name));
        }
    }
    Ok(daemons.exit_code())
}

/// Returns the servers that the hosts of a config share now.
pub(in crate::cli) fn shared_servers(config: &Path) -> Vec<SharedServer> {
    let daemons = Daemons::send(config, DaemonCommand::Status);
    daemons.running.into_iter().flat_map(|daemon| daemon.shared).collect()
}

fn stop(config: &Path) -> anyhow::Result<ExitCode> {
    let daemons = Daemons::send(config, DaemonCommand::End(Redial::WhenNeeded));
    daemons.report_absence(config);
    for DaemonStatus { pid, .. } in &daemons.running {
        if !wait_until_ended(*pid) {
            bail!("the daemon (process {pid}) did not end within {END_TIMEOUT:?}; kill it");
        }
        outln!("the daemon (process {pid}) has ended");
    }
    Ok(daemons.exit_code())
}

fn restart(config: &Path) -> anyhow::Result<ExitCode> {
    let place = own_place::place_of(config).context("cannot run a daemon: HOME is not set")?;
    let daemons = Daemons::send(config, DaemonCommand::End(Redial::Replaced));
    if daemons.is_one_silent {
        return Ok(daemons.exit_code());
    }
    let replaced = daemons.running;
    let program = own_program().context("cannot find the path of this program")?;
    // A client may start it first.
    ensure_running(&place, || start_daemon(&place, &program, config))?;
    for DaemonStatus { pid, .. } in &replaced {
        outln!("the daemon (process {pid}) was replaced");
    }
    if replaced.is_empty() {
        outln!("the daemon was started");
    }
    Ok(ExitCode::SUCCESS)
}

fn logs(config: &Path) -> anyhow::Result<ExitCode> {
    let mut places = own_place::places_of(config);
    places.extend(own_place::place_of(config).filter(|_| places.is_empty()));
    for place in places {
        let path = place.log();
        let log = read_text(&path).with_context(|| format!("cannot read {}", path.display()))?;
        outln!("{}", log.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until a process has ended. Returns `false` if it does not.
fn wait_until_ended(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().map(Pid::from_raw) else { return true };
    let begun = Instant::now();
    while begun.elapsed() < END_TIMEOUT {
        if nix::sys::signal::kill(pid, None) == Err(Errno::ESRCH) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
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
