//! Access to the daemon: private files, other users, and configs that are not trusted.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::support::{DaemonHome, PATIENCE, Server, dormouse, echo};

#[tokio::test]
async fn files_of_the_daemon_are_private() {
    let home = DaemonHome::new();
    let _host = home.proxy([Server::lazy("a")]).serve().await;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.path().join("dormouse/daemon")), 0o700);
    for file in home.files() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn socket_of_another_user_gets_no_greeting() {
    let home = DaemonHome::new();
    // The name of the socket is known from a daemon that has ended.
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    let socket = home.socket();
    assert_eq!(host.end().await, Some(0));
    home.wait_until_nothing_is_left().await;
    fs::set_permissions(socket.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(mut listener) = listener_of_another_user(&socket) else {
        return eprintln!("not tested: another user needs root and Python");
    };
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    host.logged("belongs to another user").await;
    assert!(echo(&mut host, "alone").await.contains("alone"));
    listener.kill().await.unwrap();
    let mut received = String::new();
    let mut output = listener.stdout.take().unwrap();
    tokio::io::AsyncReadExt::read_to_string(&mut output, &mut received).await.unwrap();
    assert_eq!(received, "listening\n", "nothing was sent");
}

/// Starts a process of another user that listens on a socket and prints what it is sent.
fn listener_of_another_user(socket: &Path) -> Option<Child> {
    const LISTEN: &str = "import os, socket, sys
os.setuid(65534)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print('listening', flush=True)
while True:
    client, _ = server.accept()
    text = client.recv(1000)
    if text:
        print(text, flush=True)
";
    let is_root = nix::unistd::geteuid().is_root();
    let mut command = Command::new("python3");
    command.args(["-c", LISTEN]).arg(socket).kill_on_drop(true);
    let listener = command.stdout(Stdio::piped()).spawn().ok().filter(|_| is_root)?;
    for _ in 0..500 {
        if socket.exists() {
            return Some(listener);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Asks a daemon for its state as a user, and returns what it answers.
async fn state_told_to(user: u32, socket: &Path) -> String {
    const ASK: &str = "import os, socket, struct, sys
os.setuid(int(sys.argv[1]))
client = socket.socket(socket.AF_UNIX)
client.settimeout(20)
client.connect(sys.argv[2])
try:
    greeting = sys.argv[3].encode()
    client.sendall(struct.pack('>I', len(greeting)) + greeting)
    print(client.recv(1000))
except ConnectionError:
    print(b'')
";
    let (user, greeting) = (user.to_string(), r#"{"Command":"Status"}"#);
    let mut command = Command::new("python3");
    command.args(["-c", ASK, &user]).arg(socket).arg(greeting);
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn client_of_another_user_is_refused() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    let socket = home.socket();
    if !nix::unistd::geteuid().is_root() {
        return eprintln!("not tested: another user needs root");
    }
    // As if the user had opened the directories and the socket to all.
    let directories = socket.ancestors().skip(1).take_while(|path| path.starts_with(home.path()));
    for path in directories.chain([&*socket]) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    assert!(state_told_to(0, &socket).await.contains("uptime_seconds"));
    assert_eq!(state_told_to(65534, &socket).await, "b''\n");
    let (_, log) = home.command(&["logs"]).await;
    assert!(log.contains("refused a client of another user"), "{log}");
    assert!(echo(&mut host, "served").await.contains("served"));
}

/// Runs dormouse in a directory whose config it finds by itself, until its input ends.
async fn run_in(home: &DaemonHome, arguments: &[&str]) -> Output {
    let mut command = dormouse();
    command.args(arguments).current_dir(home.path()).env("HOME", home.path());
    for variable in ["XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        command.env(variable, home.path());
    }
    command.env("DORMOUSE_DAEMON", "1").stdin(Stdio::null()).output().await.unwrap()
}

#[tokio::test]
async fn config_that_is_not_trusted_starts_no_daemon_and_is_not_served_by_one() {
    let home = DaemonHome::new();
    let config = home.path().join("dormouse.json");
    let ran = home.path().join("ran");
    let touch = json!({"command": "touch", "args": [ran], "startup": "eager"});
    fs::write(&config, json!({"mcpServers": {"a": touch}}).to_string()).unwrap();
    let is_refused = async || {
        let output = run_in(&home, &[]).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("is not trusted"), "{said}");
        assert_eq!(output.status.code(), Some(2));
        assert!(!ran.exists());
    };
    is_refused().await;
    assert!(home.daemons().is_empty() && home.files().is_empty());
    // A daemon that runs already, because the config was named, does not serve it either.
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    assert!(echo(&mut host, "named").await.contains("named"));
    fs::write(&config, json!({"mcpServers": {"a": touch}}).to_string()).unwrap();
    is_refused().await;
    assert_eq!(home.daemons().len(), 1);
}

#[tokio::test]
async fn client_that_does_not_read_slows_no_other_host() {
    let home = DaemonHome::new();
    let shared = || Server::lazy("a").set("isolation", "shared");
    let mut program = home.proxy([shared()]).set("maxResultBytes", 0).start_service();
    let mut stdin = program.take_stdin();
    let mut send = async |message: Value| {
        let line = format!("{message}\n");
        tokio::io::AsyncWriteExt::write_all(&mut stdin, line.as_bytes()).await.unwrap();
    };
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "silent", "version": "1"},
    }}))
    .await;
    let huge = json!({"tool_name": "a/huge", "tool_input": {"bytes": 5_000_000}});
    for id in 2..8 {
        let params = json!({"name": "use_tool", "arguments": huge});
        send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }
    program.server_noted("a", "tools/call").await;
    let mut host = home.proxy([shared()]).serve().await;
    let calls = async {
        for _ in 0..20 {
            assert!(echo(&mut host, "other").await.contains("other"));
        }
    };
    // Waiting for the other host would cost seconds each time.
    tokio::time::timeout(PATIENCE, calls).await.expect("no other host waits");
    assert_eq!(home.daemons().len(), 1);
}
