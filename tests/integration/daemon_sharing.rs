//! Servers that several hosts of one daemon share.

use serde_json::{Value, json};

use crate::support::{DaemonHome, Host, Server, echo, eventually, is_alive, text_of};

fn shared(name: &str) -> Server {
    Server::lazy(name).set("isolation", "shared")
}

#[tokio::test]
async fn hosts_share_one_process_and_get_only_their_own_answers() {
    let home = DaemonHome::new();
    let mut hosts = Vec::new();
    for _ in 0..5 {
        hosts.push(home.proxy([shared("a")]).serve().await);
    }
    let calls = hosts.iter_mut().enumerate().map(async |(number, host)| {
        for round in 0..20 {
            let text = format!("{number} in {round}");
            assert!(echo(host, &text).await.contains(&text));
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(hosts[0].started("a").len(), 1);
    for mut host in hosts {
        assert_eq!(host.end().await, Some(0));
    }
    home.wait_until_nothing_is_left().await;
}

#[tokio::test]
async fn hosts_of_both_eras_share_one_process() {
    let home = DaemonHome::new();
    let mut legacy = home.proxy([shared("a")]).serve().await;
    let mut modern = home.proxy([shared("a")]).start().into_modern();
    assert!(echo(&mut legacy, "legacy").await.contains("legacy"));
    let call = json!({"tool_name": "a/echo", "tool_input": {"text": "modern"}});
    let answer = modern.call("use_tool", call).await;
    assert!(text_of(&answer).contains("modern"), "{answer}");
    assert_eq!(legacy.started("a").len(), 1);
}

#[tokio::test]
async fn era_in_which_a_server_is_shared_is_not_remembered_as_the_servers_own() {
    let home = DaemonHome::new();
    let server = || shared("a").script("modern_only", true);
    let mut sharing = home.proxy([server()]).serve().await;
    echo(&mut sharing, "shared").await;
    assert_eq!(sharing.end().await, Some(0));
    let catalogs = home.path().join("cache/dormouse/catalogs");
    let stored = std::fs::read_dir(catalogs).unwrap().flatten();
    let stored: Vec<String> =
        stored.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
    assert!(!stored.is_empty());
    assert!(stored.iter().all(|catalog| !catalog.contains("\"speaksLegacy\":true")), "{stored:?}");
}

#[tokio::test]
async fn question_reaches_the_host_of_the_call() {
    let home = DaemonHome::new();
    let mut one = home.proxy([shared("a")]).serve().await;
    let mut two = home.proxy([shared("a")]).serve().await;
    let ask = json!({"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}});
    let ask = json!({"name": "use_tool", "arguments": {"tool_name": "a/ask", "tool_input": ask}});
    for (host, name) in [(&mut two, "two"), (&mut one, "one")] {
        let id = host.send("tools/call", ask.clone()).await;
        let question = host.message("elicitation/create", |_| true).await;
        host.reply(&question, json!({"action": "accept", "content": {"name": name}})).await;
        let answer = host.answer(id).await;
        assert!(text_of(&answer["result"]).contains(name), "{answer}");
    }
    assert_eq!(one.started("a").len(), 1);
}

#[tokio::test]
async fn question_that_may_belong_to_several_hosts_reaches_none() {
    let home = DaemonHome::new();
    let mut one = home.proxy([shared("a")]).serve().await;
    let mut two = home.proxy([shared("a")]).serve().await;
    let hang = json!({"name": "use_tool", "arguments": {"tool_name": "a/hang", "tool_input": {}}});
    two.send("tools/call", hang).await;
    two.server_noted("a", "tools/call").await;
    let ask = json!({"method": "elicitation/create", "params": {"message": "who?"}});
    let refused = one.use_tool("a/ask", ask).await;
    assert!(text_of(&refused).contains("-32601"), "{refused}");
    let of_question = |host: &Host| host.received().iter().any(|line| line.contains("who?"));
    assert!(!of_question(&two), "the question of the call of another host");
}

#[tokio::test]
async fn progress_reaches_only_the_host_of_the_call() {
    let home = DaemonHome::new();
    let mut calling = home.proxy([shared("a")]).serve().await;
    let mut other = home.proxy([shared("a")]).serve().await;
    echo(&mut other, "awake").await;
    let call = json!({
        "name": "use_tool", "_meta": {"progressToken": "mine"},
        "arguments": {"tool_name": "a/progress", "tool_input": {"count": 3}},
    });
    let id = calling.send("tools/call", call).await;
    calling.answer(id).await;
    let of_call = |host: &Host| {
        let lines = host.received();
        lines.iter().filter(|line| line.contains("notifications/progress")).count()
    };
    assert_eq!((of_call(&calling), of_call(&other)), (3, 0));
}

#[tokio::test]
async fn servers_that_differ_in_what_is_started_are_not_shared() {
    let home = DaemonHome::new();
    let with = |value: &str| shared("a").set("env", json!({"ACCOUNT": value}));
    let variable = with("${ACCOUNT}");
    for (number, account) in ["one", "two", "one"].into_iter().enumerate() {
        let proxy = home.proxy([variable.clone()]).environment("ACCOUNT", account);
        let mut host = proxy.serve().await;
        echo(&mut host, account).await;
        let processes = if number == 0 { 1 } else { 2 };
        assert_eq!(host.started("a").len(), processes, "{account}");
        assert_eq!(host.end().await, Some(0));
    }
}

#[tokio::test]
async fn failed_server_tells_every_host_why() {
    let home = DaemonHome::new();
    let missing = Server::lazy("a").set("isolation", "shared").set("command", "no-such-program");
    let alone = Server::lazy("b").set("isolation", "session").set("command", "no-such-program");
    for _ in 0..2 {
        let mut host = home.proxy([missing.clone(), alone.clone()]).serve().await;
        let shared = host.load("a").await;
        let own = host.load("b").await;
        let text =
            |result: &Value, name: &str| text_of(result).replace(&format!("\"{name}\""), "it");
        assert_eq!(text(&shared, "a"), text(&own, "b"), "as in a process of its own");
    }
}

#[tokio::test]
async fn dead_server_is_started_again_for_all() {
    let home = DaemonHome::new();
    let mut one = home.proxy([shared("a")]).serve().await;
    let mut two = home.proxy([shared("a")]).serve().await;
    echo(&mut one, "awake").await;
    echo(&mut two, "awake").await;
    one.use_tool("a/die", json!({})).await;
    assert!(echo(&mut two, "again").await.contains("again"));
    assert!(echo(&mut one, "again").await.contains("again"));
    assert_eq!(one.started("a").len(), 2);
}

#[tokio::test]
async fn server_ends_after_its_last_host() {
    let home = DaemonHome::new();
    let mut one = home.proxy([shared("a")]).set("daemonIdleTimeout", "1m").serve().await;
    let mut two = home.proxy([shared("a")]).set("daemonIdleTimeout", "1m").serve().await;
    echo(&mut one, "awake").await;
    echo(&mut two, "awake").await;
    let server = one.started("a")[0];
    assert_eq!(one.end().await, Some(0));
    assert!(echo(&mut two, "alone").await.contains("alone"));
    assert!(is_alive(server));
    assert_eq!(two.end().await, Some(0));
    eventually("the server ends", || !is_alive(server)).await;
}

#[tokio::test]
async fn next_process_of_a_server_starts_after_the_end_of_the_one_before() {
    let home = DaemonHome::new();
    let server = || shared("a").script("stubborn", true);
    let mut one = home.proxy([server()]).set("daemonIdleTimeout", "1m").serve().await;
    let mut two = home.proxy([server()]).set("daemonIdleTimeout", "1m").serve().await;
    echo(&mut one, "first").await;
    let first = one.started("a")[0];
    assert_eq!(one.end().await, Some(0));
    two.server_noted("a", "end of input").await;
    assert!(is_alive(first), "it takes its time to end");
    echo(&mut two, "second").await;
    assert_eq!(two.started("a").len(), 2);
    assert!(!is_alive(first));
}

#[tokio::test]
async fn shared_server_is_not_told_of_roots() {
    let home = DaemonHome::new();
    let mut host = home.proxy([shared("a")]).serve().await;
    echo(&mut host, "awake").await;
    let log = host.server_log("a");
    let greeting = log.iter().find(|line| line.starts_with("initialize ")).expect("a handshake");
    assert!(greeting.contains("elicitation") && !greeting.contains("roots"), "{greeting}");
}

#[tokio::test]
async fn status_advises_to_share_and_share_does_it() {
    let home = DaemonHome::new();
    let mut hosts = Vec::new();
    for _ in 0..3 {
        hosts.push(home.proxy([Server::lazy("a")]).serve().await);
    }
    for host in &mut hosts {
        echo(host, "awake").await;
    }
    let (_, status) = home.run(&["status"]).await;
    assert_eq!(status.matches("process ").count(), 1, "{status}");
    assert!(status.contains("hosts: 3") && status.contains("awake × 3"), "{status}");
    insta::assert_snapshot!(status.lines().last().unwrap());
    let (code, said) = home.run(&["share", "a"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(r#"with "cwd": "." in its entry"#), "{said}");
    for host in &mut hosts {
        host.logged("config reloaded").await;
        echo(host, "shared").await;
    }
    assert_eq!(hosts[0].started("a").len(), 4, "one process for all");
    let (_, status) = home.run(&["status"]).await;
    assert!(!status.contains("dormouse share") && !status.contains("awake ×"), "{status}");
    assert_eq!(status.lines().last(), Some("a: one process for 3 hosts saves 2"));
    let (_, daemon) = home.command(&["status"]).await;
    assert_eq!(daemon.lines().last(), Some("  shared: a, in use by 3"));
    let (_, said) = home.run(&["share", "a"]).await;
    assert!(said.contains("already shared"), "{said}");
    home.run(&["share", "a", "--no-share"]).await;
    let config: Value = serde_json::from_str(&home.config()).unwrap();
    assert_eq!(config["mcpServers"]["a"]["isolation"], "session");
}

#[tokio::test]
async fn status_says_why_hosts_in_several_directories_do_not_share() {
    let home = DaemonHome::new();
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut hosts = Vec::new();
    for directory in &directories {
        hosts.push(home.proxy([shared("a")]).within(directory.path()).serve().await);
    }
    for host in &mut hosts {
        echo(host, "awake").await;
    }
    let (_, status) = home.run(&["status"]).await;
    insta::assert_snapshot!(status.lines().last().unwrap());
}

#[tokio::test]
async fn command_calls_the_server_that_hosts_share() {
    let home = DaemonHome::new();
    let mut host = home.proxy([shared("a"), Server::lazy("b")]).serve().await;
    echo(&mut host, "awake").await;
    let call = async |server: &str| {
        let mut command = home.prepare(&["call", server, "echo", r#"{"text": "by hand"}"#]);
        command.env("DORMOUSE_DAEMON", "1");
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for _ in 0..3 {
        assert!(call("a").await.contains("by hand"));
    }
    assert_eq!(host.started("a").len(), 1, "the process of the host");
    assert!(call("b").await.contains("by hand"));
    assert_eq!(host.started("b").len(), 1, "a process of the command");
    assert!(echo(&mut host, "still").await.contains("still"));
}

#[tokio::test]
async fn test_asks_the_server_that_hosts_share_and_says_so() {
    let home = DaemonHome::new();
    let mut host = home.proxy([shared("a"), Server::lazy("b")]).serve().await;
    echo(&mut host, "awake").await;
    let test = async |form: &[&str]| {
        let mut command = home.prepare(&[&["test"], form].concat());
        command.env("DORMOUSE_DAEMON", "1");
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let said = test(&[]).await;
    let line = |server: &str| said.lines().find(|line| line.contains(server)).unwrap().to_owned();
    assert!(line(" a: ").contains("in the daemon"), "{said}");
    assert!(!line(" b: ").contains("in the daemon"), "{said}");
    let tested: Value = serde_json::from_str(&test(&["--json"]).await).unwrap();
    assert_eq!((&tested[0]["inDaemon"], &tested[1]["inDaemon"]), (&json!(true), &json!(false)));
    assert_eq!(host.started("a").len(), 1, "the process of the host");
    assert_eq!(host.started("b").len(), 2, "a process of each command");
    assert!(echo(&mut host, "still").await.contains("still"));
}

#[tokio::test]
async fn standard_error_of_a_shared_server_is_shown_once() {
    let home = DaemonHome::new();
    let mut first = home.proxy([shared("a")]).serve().await;
    let mut second = home.proxy([shared("a")]).serve().await;
    for host in [&mut first, &mut second] {
        host.use_tool("a/shout", json!({"lines": 3})).await;
    }
    let (code, said) = home.run(&["log", "a", "--stderr", "--json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let lines: Vec<String> = serde_json::from_str(&said).expect("a list of lines");
    let numbers: Vec<&str> = lines.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(numbers, ["0", "1", "2", "0", "1", "2"]);
}
