//! The log of calls: what it keeps of them, and how it is read.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::support::{DaemonHome, Host, Server, TerminalAction, at_terminal, at_terminal_typing};

/// Returns the calls that `dormouse log` prints.
async fn logged(home: &DaemonHome, arguments: &[&str]) -> Vec<Value> {
    let (code, said) = home.run(&[&["log", "--json"], arguments].concat()).await;
    assert_eq!(code, Some(0), "{said}");
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until so many calls are in the log, and returns them.
pub async fn logged_at_last(home: &DaemonHome, count: usize) -> Vec<Value> {
    for _ in 0..100 {
        let calls = logged(home, &["-n", "1000"]).await;
        if calls.len() >= count {
            return calls;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{count} calls are logged")
}

async fn echo(host: &mut Host, server: &str, text: &str) {
    let call = json!({"tool_name": format!("{server}/echo"), "tool_input": {"text": text}});
    host.call("use_tool", call).await;
}

#[tokio::test]
async fn log_has_every_call_that_servers_counted() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a"), Server::lazy("b")]).serve().await;
    for number in 0..20 {
        echo(&mut host, if number % 3 == 0 { "b" } else { "a" }, "x").await;
    }
    let calls = logged_at_last(&home, 20).await;
    let of = |server: &str| calls.iter().filter(|call| call["server"] == *server).count();
    for server in ["a", "b"] {
        let counted = host.server_log(server);
        let counted = counted.iter().filter(|line| line.starts_with("tools/call ")).count();
        assert_eq!(of(server), counted, "{server}");
    }
    let first = &calls[0];
    assert_eq!(
        (&first["method"], &first["name"], &first["outcome"], &first["client"]),
        (&json!("tools/call"), &json!("echo"), &json!("succeeded"), &json!("test 1"))
    );
    assert!(first["tookMs"].as_f64() >= first["serverMs"].as_f64(), "{first}");
    let only_b = logged(&home, &["b", "-n", "2"]).await;
    assert_eq!(only_b.iter().map(|call| &call["server"]).collect::<Vec<_>>(), ["b", "b"]);
}

#[tokio::test]
async fn calls_of_a_script_name_it() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).set("scripts", true).serve().await;
    for code in ["await mcp.a.echo(); await mcp.a.shout()", "await mcp.a.shout()"] {
        host.call("run_script", json!({"code": code})).await;
    }
    echo(&mut host, "a", "by the host itself").await;
    let calls = logged_at_last(&home, 4).await;
    let names: Vec<&Value> = calls.iter().map(|call| &call["name"]).collect();
    assert_eq!(names, ["echo", "shout", "shout", "echo"]);
    let scripts: Vec<&Value> = calls.iter().map(|call| &call["script"]["name"]).collect();
    let run_script = &json!("run_script");
    assert_eq!(scripts, [run_script, run_script, run_script, &Value::Null]);
    let run = |call: usize| calls[call]["script"]["run"].as_u64();
    assert_eq!((run(0), run(1).map(|run| run + 1)), (run(1), run(2)));
}

#[tokio::test]
async fn contents_are_kept_without_the_secrets_of_the_config() {
    const SECRET: &str = "canary-904c2d-secret";
    let home = DaemonHome::new();
    let server = Server::lazy("a").set("env", json!({"API_KEY": SECRET}));
    let mut host = home.proxy([server]).set("callLog", "contents").serve().await;
    // The secret lies across each end of the kept part, too.
    let long = format!("{SECRET} {}", format!("x{SECRET}").repeat(10_000));
    for text in ["plain", &long] {
        echo(&mut host, "a", text).await;
    }
    let calls = logged_at_last(&home, 2).await;
    assert_eq!(calls[0]["arguments"], json!({"text": "plain"}).to_string());
    assert!(calls[0]["result"].as_str().unwrap().contains("plain"), "{}", calls[0]);
    let masked = calls[1].to_string();
    for part in [SECRET, "canary", "secret"] {
        assert!(!masked.contains(part), "{part} is in the log");
    }
    assert!(calls[1]["arguments"].as_str().unwrap().len() > 1000);
}

/// Returns the tools in the log, with the effects of the policy and the errors.
async fn logged_effects(home: &DaemonHome, count: usize) -> Vec<String> {
    let calls = logged_at_last(home, count).await;
    let text = |call: &Value, key: &str| call[key].as_str().unwrap_or("-").to_owned();
    calls.iter().map(|it| ["name", "policy", "error"].map(|key| text(it, key)).join(" ")).collect()
}

#[tokio::test]
async fn log_has_the_effects_of_the_policy() {
    let policy = json!([{"tools": "echo", "then": "ask"}, {"tools": "slow", "then": "deny"}]);
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).set("policy", policy).serve().await;
    for (number, decision) in [(1, "no"), (2, "once")] {
        let params = json!({"name": "use_tool", "arguments": {"tool_name": "a/echo"}});
        let id = host.send("tools/call", params).await;
        let question = host.message("elicitation/create", |it| it["id"] == json!(number)).await;
        let answer = json!({"action": "accept", "content": {"decision": decision}});
        host.reply(&question, answer).await;
        host.answer(id).await;
    }
    host.use_tool("a/slow", json!({})).await;
    host.use_tool("a/shout", json!({})).await;
    let expected =
        ["echo declined forbidden", "echo approved -", "slow denied forbidden", "shout - -"];
    assert_eq!(logged_effects(&home, 4).await, expected);
}

#[tokio::test]
async fn log_has_the_effects_of_the_policy_on_modern_hosts() {
    let policy = json!([{"tools": "echo", "then": "ask"}]);
    let home = DaemonHome::new();
    let program = home.proxy([Server::eager("a")]).set("policy", policy).start_http();
    let mut host = program.modern("/mcp").await;
    let params = json!({"name": "use_tool", "arguments": {"tool_name": "a/echo"}});
    let able = json!({"elicitation": {"form": {}}});
    for decision in ["no", "once"] {
        let asked = host.request_as("tools/call", params.clone(), &able).await;
        let mut retry = params.clone();
        retry["requestState"] = asked["requestState"].clone();
        let answer = json!({"action": "accept", "content": {"decision": decision}});
        retry["inputResponses"] = json!({"approval": answer});
        host.request_as("tools/call", retry, &able).await;
    }
    host.request_as("tools/call", params, &json!({})).await;
    let expected = ["echo declined forbidden", "echo approved -", "echo unapproved forbidden"];
    assert_eq!(logged_effects(&home, 3).await, expected);
}

/// Returns a shell that runs `dormouse top`, writes its process id to the file `top` in the home,
/// and says whether the mode of the terminal is unchanged.
fn shell_with_live_view(home: &DaemonHome) -> tokio::process::Command {
    let top = home.prepare(&["top"]);
    let top = top.as_std();
    let script = "before=$(stty -a); file=$1; shift; \
        sh -c 'echo $$ > \"$0\"; exec \"$@\"' \"$file\" \"$@\"; \
        [ \"$(stty -a)\" = \"$before\" ] && echo unchanged";
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(home.path().join("top"));
    shell.arg(top.get_program()).args(top.get_args());
    shell.envs(top.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[tokio::test]
async fn live_view_shows_calls_and_leaves_the_terminal_as_it_was() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    echo(&mut host, "a", "x").await;
    logged_at_last(&home, 1).await;
    let shell = shell_with_live_view(&home);
    let shown = at_terminal(shell, &[("a/echo", ""), ("q: quit", "q")]).await;
    assert!(shown.contains("hosts: 1 (test 1)"), "{shown}");
    assert!(shown.trim_end().ends_with("unchanged"), "{shown}");
}

#[tokio::test]
async fn live_view_that_a_signal_ends_leaves_the_terminal_as_it_was() {
    let home = DaemonHome::new();
    home.proxy([Server::lazy("a")]).serve().await.end().await;
    let (shell, file) = (shell_with_live_view(&home), home.path().join("top"));
    let mut is_killed = false;
    let shown = at_terminal_typing(shell, move |shown| {
        if !shown.contains("q: quit") {
            return TerminalAction::WaitFor("q: quit");
        }
        if !std::mem::replace(&mut is_killed, true) {
            let process = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
            kill(Pid::from_raw(process), Signal::SIGTERM).unwrap();
        }
        TerminalAction::Done
    })
    .await;
    assert!(shown.trim_end().ends_with("unchanged"), "{shown}");
}
