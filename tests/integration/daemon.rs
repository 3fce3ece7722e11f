//! One daemon for all hosts: how it is found, started, left and replaced.

use std::{
    collections::HashMap,
    fs,
    io::Write as _,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{DaemonHome, Host, Server, dormouse, echo, eventually, is_alive, text_of};

fn signal(process: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(process).expect("a process id")), signal).expect("it runs");
}

#[tokio::test]
async fn hosts_have_one_daemon_and_servers_of_their_own() {
    let home = DaemonHome::new();
    let mut one = home.proxy([Server::lazy("a")]).serve().await;
    let mut two = home.proxy([Server::lazy("a")]).serve().await;
    assert_eq!(home.daemons().len(), 1);
    one.load("a").await;
    let listed = two.notifications().len();
    assert_eq!(listed, 0, "the load of another host");
    assert!(echo(&mut one, "of one").await.contains("of one"));
    assert!(echo(&mut two, "of two").await.contains("of two"));
    assert_eq!(one.started("a").len(), 2, "one instance for each");
    assert!(two.notifications().len() > listed, "its own load has changed its lists");
    assert_eq!(one.end().await, Some(0));
    assert!(echo(&mut two, "still").await.contains("still"));
    assert_eq!(two.end().await, Some(0));
    home.wait_until_nothing_is_left().await;
}

#[tokio::test]
async fn variable_of_the_client_chooses_the_profile_at_the_daemon() {
    let home = DaemonHome::new();
    let proxy = |variable: &str| {
        let servers = [Server::lazy("a"), Server::lazy("b")];
        let profiles = json!({"p": {"servers": {"a": []}}, "q": {"servers": {"b": []}}});
        let proxy = home.proxy(servers).set("profiles", profiles);
        proxy.environment("DORMOUSE_PROFILE", variable)
    };
    let mut p = proxy("p").serve().await;
    let mut q = proxy("q").serve().await;
    let mut typed = proxy("p").argument("--profile").argument("q").serve().await;
    assert_eq!(home.daemons().len(), 1);
    for (host, own, other) in [(&mut p, "a", "b"), (&mut q, "b", "a"), (&mut typed, "b", "a")] {
        assert!(host.load(own).await["isError"].is_null(), "{own}");
        assert_eq!(host.load(other).await["isError"], true, "{other}");
    }
}

#[tokio::test]
async fn racing_starts_make_one_daemon() {
    const HOSTS: usize = 40;
    let home = DaemonHome::new();
    home.proxy([Server::lazy("a")]).serve().await.end().await;
    home.wait_until_nothing_is_left().await;
    let hosts: Vec<Host> = (0..HOSTS).map(|_| home.proxy([Server::lazy("a")]).start()).collect();
    let greeted = hosts.into_iter().map(async |mut host| {
        host.initialize(json!({})).await;
        host
    });
    let hosts = futures_util::future::join_all(greeted).await;
    assert_eq!(home.daemons().len(), 1);
    let (_, status) = home.command(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status[0]["hosts"], HOSTS, "{status}");
    for host in &hosts {
        assert!(!host.log().iter().any(|line| line.contains("without the daemon")));
    }
}

/// Returns how often the server has executed a call with each text.
fn executions(host: &Host) -> HashMap<String, usize> {
    let mut executed = HashMap::new();
    for line in host.server_log("a").iter().filter(|line| line.starts_with("tools/call ")) {
        if let Some(at) = line.find("call-") {
            let text = line[at..].split('"').next().expect("the text ends").to_owned();
            *executed.entry(text).or_default() += 1;
        }
    }
    executed
}

#[tokio::test]
async fn killed_daemon_loses_no_unsent_call_and_repeats_none() {
    const CALLS: usize = 300;
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let mut ids = Vec::new();
    for number in 0..CALLS {
        if number % 100 == 50 {
            eventually("a daemon runs", || !home.daemons().is_empty()).await;
            // A busy machine may be slow to answer, and few calls are to be in flight at a kill.
            for id in &ids[..number - 25] {
                host.answer(*id).await;
            }
            signal(home.daemons()[0], Signal::SIGKILL);
        }
        let call =
            json!({"tool_name": "a/echo", "tool_input": {"text": format!("call-{number}-")}});
        ids.push(host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (mut answered, mut failed) = (0, 0);
    for (number, id) in ids.into_iter().enumerate() {
        let answer = host.answer(id).await;
        if answer["error"].is_null() {
            let text = text_of(&answer["result"]);
            assert!(text.contains(&format!("call-{number}-")), "{text}");
            answered += 1;
        } else {
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("may have been executed"), "{message}");
            failed += 1;
        }
    }
    assert_eq!(answered + failed, CALLS);
    assert!(answered > CALLS / 2, "{answered} of {CALLS} calls were answered");
    let executed = executions(&host);
    assert!(executed.values().all(|times| *times == 1), "{executed:?}");
    assert!(executed.len() >= answered);
}

#[tokio::test]
async fn killed_daemon_is_named_in_the_log_and_leaves_no_sockets() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    echo(&mut host, "before").await;
    let controls = || {
        let entries = std::fs::read_dir(home.path().join("dormouse/run")).unwrap().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let before = controls();
    assert_eq!(before.len(), 1);
    home.kill_daemon().await;
    host.logged("the daemon has ended unexpectedly; connecting to another").await;
    echo(&mut host, "after").await;
    eventually("the sockets of the killed daemon are removed", || {
        let now = controls();
        now.len() == 1 && now != before
    })
    .await;
}

#[tokio::test]
async fn session_continues_after_the_daemon_was_killed() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    host.notification("notifications/tools/list_changed").await;
    let loaded = host.description().await;
    let hung = host
        .send(
            "tools/call",
            json!({"name": "use_tool", "arguments": {"tool_name": "a/hang", "tool_input": {}}}),
        )
        .await;
    host.server_noted("a", "tools/call").await;
    let changes = host.notifications().len();
    signal(home.daemons()[0], Signal::SIGKILL);
    insta::assert_snapshot!(host.answer(hung).await["error"]["message"].as_str().unwrap());
    eventually("what was loaded is loaded again", || host.notifications().len() > changes).await;
    assert_eq!(host.description().await, loaded);
    assert!(echo(&mut host, "again").await.contains("again"));
    let repeated = host.received().iter().filter(|line| line.contains("serverInfo")).count();
    assert_eq!(repeated, 1, "the host sees no second answer to its handshake");
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn loads_continue_after_the_daemon_was_killed_without_a_stored_catalog() {
    let home = DaemonHome::new();
    // A file in place of the directory of catalogs: nothing can be stored.
    fs::create_dir_all(home.path().join("cache/dormouse")).unwrap();
    fs::write(home.path().join("cache/dormouse/catalogs"), "").unwrap();
    let mut host = home.proxy([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    host.notification("notifications/tools/list_changed").await;
    let loaded = host.description().await;
    let changes = host.notifications().len();
    home.kill_daemon().await;
    eventually("what was loaded is loaded again", || host.notifications().len() > changes).await;
    assert_eq!(host.description().await, loaded);
    assert_eq!((host.started("a").len(), host.started("b").len()), (2, 0));
}

#[tokio::test]
async fn streams_of_a_modern_host_continue_after_the_daemon_was_killed() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).start().into_modern();
    let stream = host.listen(json!({"toolsListChanged": true})).await;
    home.kill_daemon().await;
    host.call("load_mcp", json!({"mcp_name": "a"})).await;
    let is_of_stream = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == stream
    };
    host.0.message("notifications/tools/list_changed", is_of_stream).await;
}

#[tokio::test]
async fn question_of_a_killed_daemon_is_withdrawn() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    let ask = json!({"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}});
    let ask = json!({"name": "use_tool", "arguments": {"tool_name": "a/ask", "tool_input": ask}});
    host.send("tools/call", ask.clone()).await;
    let first = host.message("elicitation/create", |_| true).await;
    signal(home.daemons()[0], Signal::SIGKILL);
    host.message("notifications/cancelled", |it| it["params"]["requestId"] == first["id"]).await;
    let id = host.send("tools/call", ask).await;
    let second = host.message("elicitation/create", |it| it["id"] != first["id"]).await;
    host.reply(&first, json!({"action": "accept", "content": {"name": "late"}})).await;
    host.reply(&second, json!({"action": "accept", "content": {"name": "right"}})).await;
    let answer = host.answer(id).await;
    assert!(text_of(&answer["result"]).contains("right"), "{answer}");
}

/// Returns a copy of the program, which counts as a newer build.
fn newer_program(directory: &Path) -> PathBuf {
    let path = directory.join("newer-dormouse");
    fs::copy(env!("CARGO_BIN_EXE_dormouse"), &path).unwrap();
    let later = std::time::SystemTime::now() + Duration::from_mins(1);
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    path
}

#[tokio::test]
async fn newer_build_takes_over_and_calls_in_flight_finish() {
    let home = DaemonHome::new();
    let mut old = home.proxy([Server::lazy("a")]).serve().await;
    old.load("a").await;
    let slow = json!({"name": "use_tool", "arguments": {"tool_name": "a/slow", "tool_input": {"ms": 1500}}});
    let slow = old.send("tools/call", slow).await;
    old.server_noted("a", "tools/call").await;
    let before = home.daemons();
    let program = newer_program(home.path());
    let mut new = home.proxy([Server::lazy("a")]).running(&program).serve().await;
    let calls: Vec<u64> = {
        let mut ids = Vec::new();
        for number in 0..50 {
            let call =
                json!({"tool_name": "a/echo", "tool_input": {"text": format!("call-{number}-")}});
            ids.push(old.send("tools/call", json!({"name": "use_tool", "arguments": call})).await);
        }
        ids
    };
    for id in calls {
        assert!(old.answer(id).await["error"].is_null());
    }
    let answer = old.answer(slow).await;
    assert!(answer["error"].is_null(), "the old daemon has answered: {answer}");
    assert!(echo(&mut new, "new").await.contains("new"));
    assert!(echo(&mut old, "old").await.contains("old"));
    eventually("the old daemon ends", || !is_alive(before[0])).await;
    assert_eq!(home.daemons().len(), 1);
    let executed = executions(&old);
    assert!(executed.values().all(|times| *times == 1), "{executed:?}");
}

#[tokio::test]
async fn hosts_of_an_older_build_do_not_start_it_again() {
    let home = DaemonHome::new();
    let mut older = Vec::new();
    for _ in 0..3 {
        older.push(home.proxy([Server::lazy("a")]).serve().await);
    }
    let program = newer_program(home.path());
    let mut newer = home.proxy([Server::lazy("a")]).running(&program).serve().await;
    for host in older.iter_mut().chain([&mut newer]) {
        assert!(echo(host, "served").await.contains("served"));
    }
    let (_, log) = home.command(&["logs"]).await;
    assert_eq!(log.matches("the daemon accepts hosts").count(), 2, "{log}");
    let newer_daemon = home.daemons();
    assert_eq!(newer_daemon.len(), 1);
    let running = fs::read_link(format!("/proc/{}/exe", newer_daemon[0])).unwrap();
    assert_eq!(running, program);
}

#[tokio::test]
async fn stopped_daemon_is_started_by_the_next_message() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let (code, said) = home.command(&["stop"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(home.daemons().is_empty());
    assert!(home.files().is_empty());
    assert!(echo(&mut host, "again").await.contains("again"));
    assert_eq!(home.daemons().len(), 1);
    let (_, said) = home.command(&["restart"]).await;
    assert!(said.contains("was replaced"), "{said}");
    assert!(echo(&mut host, "and again").await.contains("and again"));
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn suspended_daemon_does_not_keep_a_host_from_its_servers() {
    let home = DaemonHome::new();
    let mut first = home.proxy([Server::lazy("a")]).serve().await;
    let daemon = home.daemons()[0];
    signal(daemon, Signal::SIGSTOP);
    let mut second = home.proxy([Server::lazy("a")]).where_a_daemon_fails().start();
    second.initialize(json!({})).await;
    assert!(echo(&mut second, "alone").await.contains("alone"));
    second.logged("serving the host without the daemon").await;
    assert_eq!(home.daemons(), [daemon], "no second daemon is started");
    let (code, said) = home.command(&["status"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("the daemon (process {daemon})")), "{said}");
    assert!(!said.contains("no daemon runs"), "{said}");
    signal(daemon, Signal::SIGCONT);
    assert!(echo(&mut first, "continued").await.contains("continued"));
}

#[tokio::test]
async fn client_that_sends_no_greeting_disturbs_no_other() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    let silent = UnixStream::connect(home.socket()).unwrap();
    let mut partial = UnixStream::connect(home.socket()).unwrap();
    partial.write_all(&[0, 0, 1, 0, b'{']).unwrap();
    let mut wrong = UnixStream::connect(home.socket()).unwrap();
    wrong.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    drop(partial);
    assert!(echo(&mut host, "calm").await.contains("calm"));
    let mut other = home.proxy([Server::lazy("a")]).serve().await;
    assert!(echo(&mut other, "calm").await.contains("calm"));
    drop((silent, wrong));
}

#[tokio::test]
async fn daemon_whose_files_were_removed_is_replaced() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let before = home.daemons();
    fs::remove_dir_all(home.path().join("dormouse/daemon")).unwrap();
    eventually("another daemon takes over", || !is_alive(before[0])).await;
    assert!(echo(&mut host, "moved").await.contains("moved"));
    assert_eq!(home.daemons().len(), 1);
}

#[tokio::test]
async fn files_of_a_killed_daemon_do_not_delay_the_next() {
    let home = DaemonHome::new();
    let host = home.proxy([Server::lazy("a")]).serve().await;
    signal(host.id(), Signal::SIGKILL);
    signal(home.daemons()[0], Signal::SIGKILL);
    eventually("the daemon is gone", || home.daemons().is_empty()).await;
    assert!(!home.files().is_empty(), "as after a reboot");
    let mut next = home.proxy([Server::lazy("a")]).serve().await;
    assert!(echo(&mut next, "at once").await.contains("at once"));
    assert_eq!(home.daemons().len(), 1);
}

#[tokio::test]
async fn host_is_served_without_a_daemon_if_there_can_be_none() {
    let home = DaemonHome::new();
    fs::write(home.path().join("dormouse"), "a file in place of the directory").unwrap();
    let mut host = home.proxy([Server::lazy("a")]).where_a_daemon_fails().serve().await;
    assert!(echo(&mut host, "alone").await.contains("alone"));
    insta::assert_snapshot!(host.logged_at("WARN", "without the daemon").await);
    assert!(home.daemons().is_empty());
}

#[tokio::test]
async fn each_host_has_its_own_directory_and_variables() {
    let home = DaemonHome::new();
    let report = r#"printf '%s %s %s' "$PWD" "$GIVEN" "$ASKED" > "$PWD/seen""#;
    let report = Server::lazy("a")
        .after(report)
        .set("env", json!({"ASKED": "${OF_HOST}"}))
        .set("inheritEnv", true);
    let mut hosts = Vec::new();
    for name in ["one", "two"] {
        let directory = home.path().join(name);
        fs::create_dir(&directory).unwrap();
        let proxy = home.proxy([report.clone()]).within(&directory);
        let proxy = proxy.environment("GIVEN", name).environment("OF_HOST", &format!("of {name}"));
        let mut host = proxy.serve().await;
        assert!(echo(&mut host, name).await.contains(name));
        let seen = fs::read_to_string(directory.join("seen")).unwrap();
        assert_eq!(seen, format!("{} {name} of {name}", directory.display()));
        hosts.push(host);
    }
    assert_eq!(home.daemons().len(), 1);
}

#[tokio::test]
async fn each_host_has_its_own_env_file_and_roots() {
    let home = DaemonHome::new();
    let server = Server::lazy("a")
        .after(r#"printf '%s' "$ASKED" > "$PWD/seen""#)
        .set("env", json!({"ASKED": "${OF_PROJECT}"}));
    let mut hosts = Vec::new();
    for name in ["one", "two"] {
        let directory = home.path().join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("own.env"), format!("OF_PROJECT={name}")).unwrap();
        let proxy = home.proxy([server.clone()]).within(&directory);
        let mut host = proxy.argument("--env-file").argument("own.env").start();
        host.initialize(json!({"roots": {}})).await;
        hosts.push((name, directory, host));
    }
    let ask = json!({"tool_name": "a/ask", "tool_input": {"method": "roots/list"}});
    let ask = json!({"name": "use_tool", "arguments": ask});
    for (name, directory, host) in &mut hosts {
        let id = host.send("tools/call", ask.clone()).await;
        let question = host.message("roots/list", |_| true).await;
        let root = format!("file://{}", directory.display());
        host.reply(&question, json!({"roots": [{"uri": root}]})).await;
        let answer = host.answer(id).await;
        assert!(text_of(&answer["result"]).contains(&root), "{answer}");
        let seen = fs::read_to_string(directory.join("seen")).unwrap();
        assert_eq!(seen, *name);
    }
    assert_eq!(home.daemons().len(), 1);
}

#[tokio::test]
async fn signals_reach_the_session() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    host.load("a").await;
    let server = host.started("a")[0];
    let config = home.path().join("dormouse.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("Use when testing", "Use when signalled")).unwrap();
    host.signal(Signal::SIGHUP);
    host.logged("config reloaded").await;
    assert!(host.description().await.contains("signalled"));
    host.signal(Signal::SIGTERM);
    assert_eq!(host.exit().await, Some(0));
    assert!(!is_alive(server), "the server has ended before the client");
}

#[tokio::test]
async fn session_outlives_a_config_that_is_invalid_for_a_while() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    let config = home.path().join("dormouse.json");
    let valid = fs::read_to_string(&config).unwrap();
    fs::write(&config, "{").unwrap();
    signal(home.daemons()[0], Signal::SIGKILL);
    let call = json!({"name": "use_tool", "arguments": {"tool_name": "a/echo", "tool_input": {}}});
    let mut refusals = 0;
    while refusals < 2 {
        let id = host.send("tools/call", call.clone()).await;
        let message = host.answer(id).await["error"]["message"].clone();
        let message = message.as_str().expect("an error");
        // The first call may have reached the daemon that was killed.
        assert!(refusals == 0 || message.contains("dormouse.json"), "{message}");
        refusals += usize::from(message.contains("dormouse.json"));
    }
    fs::write(&config, valid).unwrap();
    assert!(echo(&mut host, "valid").await.contains("valid"));
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn session_continues_after_the_program_was_replaced() {
    let home = DaemonHome::new();
    let program = newer_program(home.path());
    let mut host = home.proxy([Server::lazy("a")]).running(&program).serve().await;
    let update = home.path().join("update");
    // It counts as older, as after a return to an earlier version.
    fs::copy(&program, &update).unwrap();
    fs::rename(&update, &program).unwrap();
    home.kill_daemon().await;
    assert!(echo(&mut host, "updated").await.contains("updated"));
    fs::remove_file(&program).unwrap();
    home.kill_daemon().await;
    assert!(echo(&mut host, "removed").await.contains("removed"));
    assert_eq!(host.end().await, Some(0));
}

#[tokio::test]
async fn last_lines_of_the_log_are_written_when_the_host_ends() {
    let home = DaemonHome::new();
    let proxy = home.proxy(["a", "b", "c"].map(Server::lazy));
    let mut host = proxy.start_without_reading_the_log();
    host.initialize(json!({})).await;
    // More than a pipe holds. Of each server only a part is logged.
    for server in ["a", "b"] {
        host.use_tool(&format!("{server}/shout"), json!({"lines": 1000})).await;
    }
    host.load("c").await;
    let log = host.end_and_read_log().await;
    assert!(log.contains("server is awake server=\"c\""), "{}", &log[log.len() - 300..]);
}

#[tokio::test]
async fn hosts_are_served_by_the_daemon_unless_it_is_turned_off() {
    for (shell, arguments, config, daemons) in [
        ("unset DORMOUSE_DAEMON", &[][..], None, 1),
        ("unset DORMOUSE_DAEMON; export CI=true", &[], None, 0),
        ("export DORMOUSE_DAEMON=1 CI=true", &[], Some(false), 1),
        ("export DORMOUSE_DAEMON=0", &[], Some(true), 0),
        ("unset DORMOUSE_DAEMON", &[], Some(false), 0),
        ("unset DORMOUSE_DAEMON", &["--no-daemon"], Some(true), 0),
    ] {
        let home = DaemonHome::new();
        let mut proxy = home.proxy([Server::lazy("a")]).after(shell);
        proxy = config.into_iter().fold(proxy, |proxy, value| proxy.set("daemon", value));
        proxy = arguments.iter().fold(proxy, |proxy, argument| proxy.argument(argument));
        let mut host = proxy.serve().await;
        assert!(echo(&mut host, "served").await.contains("served"));
        assert_eq!(home.daemons().len(), daemons, "{shell} {arguments:?} {config:?}");
    }
}

#[tokio::test]
async fn host_that_was_connected_before_is_served_by_the_daemon() {
    let home = DaemonHome::new();
    let config_directory = home.path().join(".config/dormouse");
    fs::create_dir_all(&config_directory).unwrap();
    let config = json!({"daemonIdleTimeout": "1s", "mcpServers": {}}).to_string();
    fs::write(config_directory.join("dormouse.json"), config).unwrap();
    fs::create_dir(home.path().join(".cursor")).unwrap();
    let of_user = |command: &mut tokio::process::Command| {
        command.env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
        for unset in ["DORMOUSE_DAEMON", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(unset);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    };
    let mut connect = dormouse();
    of_user(&mut connect);
    let connected = connect.args(["connect", "cursor", "--yes"]).output().await.unwrap();
    assert!(connected.status.success(), "{connected:?}");
    let written = fs::read_to_string(home.path().join(".cursor/mcp.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    let entry = &written["mcpServers"]["dormouse"];
    let mut command = tokio::process::Command::new(entry["command"].as_str().unwrap());
    command.args(entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str));
    of_user(&mut command);
    let mut host = command.env_remove("CI").spawn().unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let mut input = host.stdin.take().unwrap();
    input.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
    let mut output = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(output.next_line().await.unwrap().unwrap().contains("\"id\":1"));
    assert_eq!(home.daemons().len(), 1);
    drop(input);
    assert!(host.wait().await.unwrap().success());
}

#[tokio::test]
async fn client_of_a_host_that_leaves_without_reading_ends() {
    let home = DaemonHome::new();
    let _other = home.proxy([Server::lazy("a")]).serve().await;
    let mut command = home.prepare(&[]);
    command.env("DORMOUSE_DAEMON", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = command.kill_on_drop(true).spawn().unwrap();
    let mut input = client.stdin.take().unwrap();
    let big = json!({"tool_name": "a/echo", "tool_input": {"text": "x".repeat(300_000)}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "use_tool", "arguments": big}}),
    ] {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let _unread = client.stdout.take();
    drop(input);
    let ended = tokio::time::timeout(Duration::from_secs(15), client.wait()).await;
    assert!(ended.is_ok(), "the client is left behind");
}

#[tokio::test]
async fn daemon_stays_while_the_next_one_could_not_serve_the_config() {
    let home = DaemonHome::new();
    let program = newer_program(home.path());
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    echo(&mut host, "before").await;
    let daemons = home.daemons();
    let config = home.path().join("dormouse.json");
    fs::write(&config, "{ broken").unwrap();
    let (code, said) = home.command(&["restart"]).await;
    assert_eq!(code, Some(2), "{said}");
    let newer = tokio::process::Command::new(&program)
        .arg("--config")
        .arg(&config)
        .env("DORMOUSE_DAEMON", "1")
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .env("XDG_RUNTIME_DIR", home.path())
        .env("XDG_DATA_HOME", home.path().join("data"))
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert_eq!(newer.status.code(), Some(2), "{newer:?}");
    assert_eq!(home.daemons(), daemons);
    assert!(echo(&mut host, "after").await.contains("after"));
}

#[tokio::test]
async fn commands_see_the_daemons_of_hosts_without_a_runtime_directory() {
    let home = DaemonHome::new();
    let mut one = home.proxy([Server::lazy("a")]).serve().await;
    let mut two = home.proxy([Server::lazy("a")]).after("unset XDG_RUNTIME_DIR").serve().await;
    for host in [&mut one, &mut two] {
        assert!(echo(host, "served").await.contains("served"));
    }
    assert_eq!(home.daemons().len(), 2);
    let (_, status) = home.command(&["status"]).await;
    assert_eq!(status.matches("hosts: 1").count(), 2, "{status}");
    let (_, said) = home.command(&["stop"]).await;
    assert_eq!(said.matches("has ended").count(), 2, "{said}");
}

#[tokio::test]
async fn stream_of_a_host_that_leaves_is_not_reported_as_lost() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).start().into_modern();
    host.listen(json!({"toolsListChanged": true})).await;
    assert_eq!(host.0.end().await, Some(0));
    let received = host.0.received();
    assert!(!received.iter().any(|line| line.contains("\"error\"")), "{received:?}");
}

#[tokio::test]
async fn log_of_the_daemon_can_be_read() {
    let home = DaemonHome::new();
    let _host = home.proxy([Server::lazy("a")]).serve().await;
    let (code, log) = home.command(&["logs"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the daemon accepts hosts"), "{log}");
}

#[tokio::test]
async fn wrong_flag_is_reported_as_without_the_daemon() {
    let home = DaemonHome::new();
    let run = async |by_daemon: &str| {
        let proxy = home.proxy([Server::lazy("a")]).argument("--surface").argument("wrong");
        let mut host = proxy.environment("DORMOUSE_DAEMON", by_daemon).start();
        let code = host.exit().await;
        host.logged("--help").await;
        (code, host.log())
    };
    assert_eq!(run("1").await, run("0").await);
}

#[tokio::test]
async fn refused_config_is_reported_by_the_client() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).set("surface", "wrong").start();
    assert_eq!(host.exit().await, Some(2));
    host.logged("surface").await;
    assert!(host.received().is_empty());
}
