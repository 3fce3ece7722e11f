//! A user with servers that need logins, and with a browser.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

use super::{Host, PATIENCE, Proxy, dormouse, http_client, words_of};

const NO_KEYCHAIN: &str = "DORMOUSE_NO_KEYCHAIN";
const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

pub struct User {
    pub home: tempfile::TempDir,
    /// The address of the session bus on which there may be a keychain.
    bus: Option<String>,
}

impl User {
    /// Creates a user with one server, `g`.
    pub fn with_server(entry: &Value) -> Self {
        Self::with_config(&json!({"mcpServers": {"g": entry}}))
    }

    /// Creates a user with a lazy server `g` at this URL.
    pub fn with_server_at(url: &str) -> Self {
        Self::with_server(&json!({"url": url, "description": "It wants a login."}))
    }

    /// Creates a user who is logged in to the server `g` at this URL.
    pub async fn logged_in_at(url: &str) -> Self {
        let user = Self::with_server_at(url);
        let (is_in, said) = user.log_in().await;
        assert!(is_in, "{said}");
        user
    }

    pub fn with_config(config: &Value) -> Self {
        let home = tempfile::tempdir().expect("the temporary directory is writable");
        std::fs::write(home.path().join("dormouse.json"), config.to_string()).unwrap();
        Self { home, bus: None }
    }

    /// Lets the user have the keychain on a session bus.
    #[must_use]
    pub fn on_bus(mut self, address: &str) -> Self {
        self.bus = Some(address.to_owned());
        self
    }

    /// Returns the variables that say where the keychain is.
    fn keychain(&self) -> [(&'static str, &str); 2] {
        match &self.bus {
            Some(address) => [(NO_KEYCHAIN, ""), (BUS, address)],
            None => [(NO_KEYCHAIN, "1"), (BUS, "")],
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = dormouse();
        command.arg("--config").arg(self.home.path().join("dormouse.json")).args(arguments);
        command.env("XDG_DATA_HOME", self.home.path().join("data"));
        command.env("XDG_CACHE_HOME", self.home.path().join("cache"));
        command.env("XDG_RUNTIME_DIR", self.home.path()).kill_on_drop(true);
        // The settings of the person who runs the tests must not apply.
        command.envs(self.keychain()).env_remove("BROWSER").env_remove("SSH_CONNECTION");
        command
    }

    /// Runs a command, and returns whether it succeeded and its output.
    pub async fn run(&self, arguments: &[&str]) -> (bool, String) {
        let run = self.command(arguments).stdin(Stdio::null()).output().await;
        let Output { status, stdout, stderr } = run.expect("it runs");
        (status.success(), String::from_utf8([stdout, stderr].concat()).expect("UTF-8"))
    }

    /// Logs in to `g` in a browser; returns whether it succeeded and the output.
    pub async fn log_in(&self) -> (bool, String) {
        self.log_in_with(&[]).await
    }

    pub async fn log_in_with(&self, more: &[&str]) -> (bool, String) {
        let arguments = [&["login", "g", "--no-browser"], more].concat();
        let mut command = self.command(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut said = String::new();
        let mut page = None;
        while let Ok(Ok(Some(line))) = tokio::time::timeout(PATIENCE, lines.next_line()).await {
            said.push_str(&format!("{line}\n"));
            if line.starts_with("  http") {
                let address = line.trim().to_owned();
                page = Some(tokio::spawn(async move { visit(&address).await }));
            }
        }
        if let Some(page) = page {
            let page = page.await.expect("nothing panics");
            said.push_str(&format!("the page: {}\n", words_of(&page)));
        }
        let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let ended = ended.expect("it ends").expect("it ran");
        said.push_str(&String::from_utf8(ended.stdout).expect("UTF-8"));
        (ended.status.success(), said)
    }

    /// Returns a dormouse of this user.
    pub fn proxy(&self) -> Proxy {
        let proxy = Proxy::with_config_at(&self.home.path().join("dormouse.json"));
        let proxy = proxy.at_home(self.home.path()).environment("BROWSER", "");
        self.keychain()
            .into_iter()
            .fold(proxy, |proxy, (name, value)| proxy.environment(name, value))
    }

    /// Starts a dormouse of this user, and returns its host.
    pub async fn host(&self) -> Host {
        self.proxy().serve().await
    }

    /// Returns the texts of the stored logins.
    pub fn stored_logins(&self) -> Vec<String> {
        let logins = std::fs::read_dir(self.home.path().join("data/dormouse/logins"));
        let files = logins.into_iter().flatten().map(|entry| entry.unwrap().path());
        let kept = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        kept.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }
}

/// Returns the page that a browser shows at this address.
pub async fn visit(address: &str) -> String {
    match http_client().get(address).send().await {
        Ok(response) => response.text().await.unwrap_or_default(),
        Err(error) => format!("the browser shows: {error}"),
    }
}
