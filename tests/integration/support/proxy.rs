//! A builder of a dormouse with its own config.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::{Host, Program, Server, daemon::by_daemon, server::fixture};

/// A dormouse before it is started.
#[must_use]
pub struct Proxy {
    pub directory: TempDir,
    /// The directory of files that outlive the run, if not `directory`.
    home: Option<PathBuf>,
    servers: Vec<Server>,
    config: Map<String, Value>,
    /// The name and the text of a config that the test gives.
    config_text: Option<(String, String)>,
    /// The path of an existing config.
    existing_config: Option<PathBuf>,
    arguments: Vec<String>,
    log_level: &'static str,
    environment: Vec<(String, String)>,
    /// Commands of a shell that becomes dormouse after them.
    shell_setup: Vec<String>,
    wrapped: Vec<String>,
    program: PathBuf,
    working_directory: Option<PathBuf>,
    may_daemon_fail: bool,
}

/// Returns the program under test, independent of the environment of the test process.
pub fn dormouse() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dormouse"));
    independent(&mut command);
    command
}

/// Makes a command independent of the environment of the test process.
fn independent(command: &mut Command) {
    for name in ["DORMOUSE_CONFIG", "DORMOUSE_LOG", "DORMOUSE_PROFILE", "CI"] {
        command.env_remove(name);
    }
    command.env("DORMOUSE_DAEMON", if by_daemon() { "1" } else { "0" });
}

impl Proxy {
    pub fn with(servers: impl IntoIterator<Item = Server>) -> Self {
        Self {
            directory: tempfile::tempdir().expect("the temporary directory is writable"),
            home: None,
            servers: servers.into_iter().collect(),
            config: Map::new(),
            config_text: None,
            existing_config: None,
            arguments: Vec::new(),
            log_level: "debug",
            environment: Vec::new(),
            shell_setup: Vec::new(),
            wrapped: Vec::new(),
            program: env!("CARGO_BIN_EXE_dormouse").into(),
            working_directory: None,
            may_daemon_fail: false,
        }
    }

    /// Uses this text as the config, with `DORMOUSE` replaced by the path of the program.
    pub fn reading(name: &str, text: &str) -> Self {
        let text = text.replace("DORMOUSE", env!("CARGO_BIN_EXE_dormouse"));
        Self { config_text: Some((name.to_owned(), text)), ..Self::with([]) }
    }

    /// Builds `dormouse -- <fixture>`.
    pub fn wrapping(script: &Value) -> Self {
        let mut proxy = Self::with([]);
        proxy.wrapped = vec![fixture().to_string_lossy().into_owned(), script.to_string()];
        proxy
    }

    /// Uses a home with files of earlier runs.
    pub fn at_home(mut self, home: &Path) -> Self {
        self.home = Some(home.to_owned());
        self
    }

    fn home(&self) -> &Path {
        self.home.as_deref().unwrap_or(self.directory.path())
    }

    /// Sets a member of the config.
    pub fn set(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.config.insert(member.to_owned(), value.into());
        self
    }

    /// Adds an argument of the command line.
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Logs at the lowest level.
    pub fn log_everything(mut self) -> Self {
        self.log_level = "trace";
        self
    }

    /// Sets a variable of the environment.
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Limits the open descriptors.
    pub fn descriptors(self, limit: u32) -> Self {
        self.after(&format!("ulimit -n {limit}"))
    }

    /// Runs a command in the shell that becomes dormouse.
    pub fn after(mut self, command: &str) -> Self {
        self.shell_setup.push(command.to_owned());
        self
    }

    /// Runs another build of the program.
    pub fn running(self, program: &Path) -> Self {
        Self { program: program.to_owned(), ..self }
    }

    /// Starts it in this working directory.
    pub fn within(self, directory: &Path) -> Self {
        Self { working_directory: Some(directory.to_owned()), ..self }
    }

    /// Expects that the host is served without a daemon although one is wanted.
    pub fn where_a_daemon_fails(self) -> Self {
        Self { may_daemon_fail: true, ..self }
    }

    fn command(&self) -> Command {
        if self.shell_setup.is_empty() {
            let mut command = Command::new(&self.program);
            independent(&mut command);
            return command;
        }
        let mut command = Command::new("sh");
        let script = format!("{}; exec \"$0\" \"$@\"", self.shell_setup.join("; "));
        command.args(["-c", &script, env!("CARGO_BIN_EXE_dormouse")]);
        independent(&mut command);
        command
    }

    /// Uses an existing config.
    pub fn with_config_at(path: &Path) -> Self {
        Self { existing_config: Some(path.to_owned()), ..Self::with([]) }
    }

    fn write_config(&self) -> PathBuf {
        if let Some(path) = &self.existing_config {
            return path.clone();
        }
        if let Some((name, text)) = &self.config_text {
            let path = self.home().join(name);
            std::fs::write(&path, text).expect("it is writable");
            return path;
        }
        let servers: Map<String, Value> = self
            .servers
            .iter()
            .map(|server| (server.name.clone(), server.entry(self.home())))
            .collect();
        let mut config = self.config.clone();
        config.insert("mcpServers".to_owned(), Value::Object(servers));
        if by_daemon() {
            // The daemon does not outlive the test for long.
            config.insert("daemonIdleTimeout".to_owned(), json!("1s"));
        }
        let path = self.home().join("dormouse.json");
        // The file is replaced in one step, since other instances may start with the same home.
        let mut file = tempfile::NamedTempFile::new_in(self.home()).expect("it is writable");
        file.write_all(json!(config).to_string().as_bytes()).expect("it is writable");
        file.persist(&path).expect("it is writable");
        path
    }

    /// Starts it on stdio, without a handshake.
    pub fn start(self) -> Host {
        self.start_with(true)
    }

    fn start_with(self, reads_log: bool) -> Host {
        Host::on_pipes(self.run(reads_log))
    }

    /// Starts it as an HTTP service on a free port.
    pub fn start_http(self) -> Program {
        self.argument("--http").argument("127.0.0.1:0").start_service()
    }

    /// Starts it as a service with the given arguments.
    pub fn start_service(self) -> Program {
        self.run(true)
    }

    fn run(self, reads_log: bool) -> Program {
        let mut command = self.command();
        command.args(&self.arguments).args(["--log-level", self.log_level]);
        // The test leaves no files behind.
        command.env("XDG_CACHE_HOME", self.home().join("cache"));
        command.env("XDG_RUNTIME_DIR", self.home());
        command.env("XDG_DATA_HOME", self.home().join("data"));
        if let Some(directory) = &self.working_directory {
            command.current_dir(directory);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.wrapped.is_empty() {
            command.arg("--config").arg(self.write_config());
        } else {
            command.arg("--").args(&self.wrapped);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().expect("dormouse starts");
        let logs = self.servers.iter();
        let logs = logs.map(|server| (server.name.clone(), server.log(self.home()))).collect();
        let home = self.home().to_owned();
        let mut program = Program::new(child, self.directory, home, logs, reads_log);
        if self.may_daemon_fail {
            program.expect_failing_daemon();
        }
        program
    }

    /// Starts it with a host that never reads its standard error.
    pub fn start_without_reading_the_log(self) -> Host {
        self.start_with(false)
    }

    /// Starts it, and shakes hands as a legacy host with every capability.
    pub async fn serve(self) -> Host {
        let mut host = self.start();
        host.initialize(json!({"roots": {}, "sampling": {}, "elicitation": {}})).await;
        host
    }
}
