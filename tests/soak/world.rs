//! The directory, the configs and the processes of one soak.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Mutex,
    time::Duration,
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    arguments::Arguments, daemon::DaemonChanges, guarded::Guarded, processes,
    server_kind::ServerKind,
};

/// The token that opens the API of the service.
const API_TOKEN: &str = "soak-operator";

pub struct World {
    directory: TempDir,
    program: PathBuf,
    guarded: Guarded,
    /// The processes of dormouse that run.
    running: Mutex<BTreeSet<u32>>,
    pub daemon_changes: DaemonChanges,
}

/// The form of the entry that is edited while dormouse runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    Original,
    Environment(u64),
    Described(u64),
    Removed,
}

impl World {
    pub async fn new(arguments: &Arguments) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("dormouse-soak-").tempdir()?;
        let journals = directory.path().join("journals");
        std::fs::create_dir(&journals)?;
        let guarded = Guarded::start(&journals).await?;
        let world = Self {
            directory,
            program: arguments.program.clone(),
            guarded,
            running: Mutex::default(),
            daemon_changes: DaemonChanges::default(),
        };
        world.write_config(Edit::Original)?;
        let config = world.config(Edit::Original, None);
        std::fs::write(world.path("hosts.json"), config.to_string())?;
        std::fs::write(world.path("daemon.json"), of_daemon(config).to_string())?;
        world.write_daemon_program().await?;
        Ok(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn journals(&self) -> PathBuf {
        self.path("journals")
    }

    /// Writes the config of the service.
    pub fn write_config(&self, edit: Edit) -> io::Result<()> {
        let (path, new) = (self.path("service.json"), self.path("service.json.new"));
        std::fs::write(&new, self.config(edit, Some(API_TOKEN)).to_string())?;
        std::fs::rename(new, path)
    }

    fn config(&self, edit: Edit, api_token: Option<&str>) -> Value {
        let mut servers = Map::new();
        for kind in ServerKind::ALL {
            if kind == ServerKind::Edited && edit == Edit::Removed {
                continue;
            }
            servers.insert(kind.name().to_owned(), self.entry(kind, edit));
        }
        let mut config = json!({
            "idleTimeout": 3,
            "timeouts": {"call": 20, "load": 20, "request": 20},
            "sessionTimeout": 10,
            "maxResultBytes": 0,
            "mcpServers": servers,
        });
        if let Some(token) = api_token {
            config["apiTokens"] = json!([token]);
        }
        config
    }

    fn entry(&self, kind: ServerKind, edit: Edit) -> Value {
        let mut entry = kind.settings();
        entry["description"] = json!(format!("The {} server of the soak.", kind.name()));
        if kind == ServerKind::Guarded {
            entry["url"] = json!(self.guarded.url());
            entry["oauth"] = json!({
                "grant": "client_credentials", "clientId": "soak", "clientSecret": "soak-secret",
            });
            return entry;
        }
        entry["command"] = json!(std::env::current_exe().unwrap_or_default());
        entry["args"] = json!(["server", kind.name(), self.journals()]);
        match edit {
            Edit::Environment(number) if kind == ServerKind::Edited => {
                entry["env"] = json!({"SOAK_EDIT": number.to_string()});
            }
            Edit::Described(number) if kind == ServerKind::Edited => {
                entry["description"] = json!(format!("Edited {number} times."));
            }
            _ => {}
        }
        entry
    }

    /// Returns the command of a program with this config, in the home of the soak.
    fn command(&self, program: &Path, config: &str, log: &str) -> io::Result<Command> {
        let mut command = Command::new(program);
        command.arg("--config").arg(self.path(config)).env_clear();
        for (variable, directory) in [
            ("HOME", "home"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_RUNTIME_DIR", "run"),
        ] {
            let path = self.path(directory);
            std::fs::create_dir_all(&path)?;
            command.env(variable, path);
        }
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path(log))?;
        command.stderr(log);
        Ok(command)
    }

    /// Returns the command of a dormouse for one host on standard streams.
    pub fn host_command(&self) -> io::Result<Command> {
        let mut command = self.command(&self.program, "hosts.json", "hosts.log")?;
        command.env("DORMOUSE_DAEMON", "0");
        Ok(command)
    }

    /// Returns a command of the dormouse whose hosts are served by a daemon; without arguments,
    /// that of a host.
    pub fn daemon_command(&self, arguments: &[&str]) -> io::Result<Command> {
        let mut command = self.command(&self.daemon_program(), "daemon.json", "daemon.log")?;
        command.args(arguments);
        Ok(command)
    }

    fn daemon_program(&self) -> PathBuf {
        self.path("dormouse")
    }

    /// Writes the program of the daemon and its hosts. Each has a newer build than the one before.
    pub async fn write_daemon_program(&self) -> io::Result<()> {
        let new = self.path("dormouse.new");
        // A process that is started meanwhile would inherit a file that this one writes.
        let copied = Command::new("cp").arg(&self.program).arg(&new).status().await?;
        if !copied.success() {
            return Err(io::Error::other("the program cannot be copied"));
        }
        std::fs::rename(new, self.daemon_program())
    }

    /// Returns the daemons that run.
    pub fn daemons(&self) -> Vec<u32> {
        processes::of_command(&self.daemon_program(), "daemon")
    }

    /// Returns the directory of the files of daemons.
    pub fn daemon_files(&self) -> PathBuf {
        self.path("run/dormouse/daemon")
    }

    /// Starts the service and waits until it listens.
    pub async fn start_service(&self) -> io::Result<Service> {
        let mut command = self.command(&self.program, "service.json", "service.log")?;
        command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.kill_on_drop(true).spawn()?;
        let process = child.id().unwrap_or_default();
        for _ in 0..500 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let log = self.log("service.log");
            let address = log.lines().find_map(|line| line.split_once("listening on "));
            if let Some((_, url)) = address {
                let origin = url.trim().trim_end_matches("/mcp").to_owned();
                self.note_started(process);
                return Ok(Service { child, process, origin });
            }
        }
        Err(io::Error::other(format!("the service does not listen: {}", self.log("service.log"))))
    }

    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn note_started(&self, process: u32) {
        self.running.lock().expect("no holder panics").insert(process);
    }

    pub fn note_ended(&self, process: u32) {
        self.running.lock().expect("no holder panics").remove(&process);
    }

    /// Returns the processes of dormouse that run.
    pub fn running(&self) -> Vec<u32> {
        let running = self.running.lock().expect("no holder panics");
        running.iter().copied().chain(self.daemons()).collect()
    }

    /// Keeps the directory for an examination, and returns its path.
    pub fn keep(self) -> PathBuf {
        self.directory.keep()
    }

    /// Returns the number of tokens that the guarded server has given, each good for two seconds.
    pub fn tokens_given(&self) -> u64 {
        self.guarded.tokens_given()
    }
}

/// Returns the config for hosts by the daemon. All of them share most servers, as over HTTP.
fn of_daemon(mut config: Value) -> Value {
    config["daemonIdleTimeout"] = json!("1s");
    for entry in config["mcpServers"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        if entry.get("isolation").is_none() {
            entry["isolation"] = json!("shared");
        }
    }
    config
}

/// The dormouse that serves hosts over HTTP.
pub struct Service {
    child: Child,
    pub process: u32,
    pub origin: String,
}

impl Service {
    /// Returns the report of `GET /api/v1/status`.
    pub async fn status(&self) -> Result<Value, reqwest::Error> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("{}/api/v1/status", self.origin);
        client.get(url).bearer_auth(API_TOKEN).send().await?.json().await
    }

    /// Has the service end, and returns whether it has ended in order.
    pub async fn stop(mut self) -> bool {
        crate::processes::signal(self.process, nix::sys::signal::Signal::SIGTERM);
        let exited = tokio::time::timeout(Duration::from_secs(20), self.child.wait()).await;
        matches!(exited, Ok(Ok(status)) if status.success())
    }
}
