//! Policies: which calls of tools are made, refused, or approved by the user first.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Cases, Home, Host, Program, Proxy, Server, USER_CONFIG, fixture, text_of};

/// Returns the names of the tools that a server was asked to call, in order.
pub(super) fn called(program: &Program, server: &str) -> Vec<String> {
    let calls = program.server_log(server);
    let calls = calls.iter().filter_map(|line| line.strip_prefix("tools/call "));
    let name = |params: &str| {
        let params: Value = serde_json::from_str(params).unwrap();
        params["name"].as_str().unwrap_or_default().to_owned()
    };
    calls.map(name).collect()
}

fn ask_for_echo() -> Value {
    json!([{"tools": "a/echo", "then": "ask", "reason": "It repeats what it hears."}])
}

/// Has a legacy host call `a/echo`, and answer the question of the policy.
async fn call_and_answer(host: &mut Host, input: Value, answer: Value) -> (Value, Value) {
    let params =
        json!({"name": "use_tool", "arguments": {"tool_name": "a/echo", "tool_input": input}});
    let asked = host.received().iter().filter(|line| is_question(line)).count();
    let id = host.send("tools/call", params).await;
    // The questions of dormouse are its only requests, and are numbered from 1.
    let question = host.message("elicitation/create", |it| it["id"] == json!(asked + 1)).await;
    host.reply(&question, answer).await;
    (question, host.answer(id).await["result"].clone())
}

fn decided(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}

fn is_question(line: &str) -> bool {
    line.contains("elicitation/create")
}

#[tokio::test]
async fn denied_tool_is_reached_by_no_spelling_on_no_surface() {
    let spellings = [
        "a/echo",
        "a__echo",
        "echo",
        "A/echo",
        "a/Echo",
        " a/echo",
        "a/echo ",
        "a//echo",
        "a/./echo",
        "a/ech\u{f6}",
        "a/echo\u{0}",
        "a\\echo",
        "a.echo",
        "b/../a/echo",
        "a__Echo",
    ];
    for surface in ["discover", "activate", "groups", "direct"] {
        for rule in ["a/echo", "a/*", "ech*", "*/ec?o"] {
            let mut host = Proxy::with([Server::lazy("a"), Server::lazy("b")])
                .set("surface", surface)
                .set("policy", json!([{"tools": rule, "then": "deny"}]))
                .serve()
                .await;
            host.load("a").await;
            for name in spellings {
                host.ask("tools/call", json!({"name": name, "arguments": {}})).await;
                host.use_tool(name, json!({})).await;
                host.call("call_dynamic_tool", json!({"group": "a", "name": name, "args": {}}))
                    .await;
            }
            let raw = concat!(
                r#"{"jsonrpc":"2.0","id":"dup","method":"tools/call","params":"#,
                r#"{"name":"use_tool","n\u0061me":"a__\u0065cho","arguments":{}}}"#,
            );
            host.write(raw).await;
            host.answer_line(&json!("dup")).await;
            assert!(!called(&host, "a").contains(&"echo".to_owned()), "{surface} {rule}");
        }
    }
}

#[tokio::test]
async fn endpoint_of_one_server_obeys_the_policy() {
    let program = Proxy::with([Server::eager("a")])
        .set("policy", json!([{"tools": "a/echo", "then": "deny", "reason": "not here"}]))
        .start_http();
    let mut host = program.host("/servers/a/mcp").await;
    host.initialize(json!({})).await;
    let refused = [
        host.call("echo", json!({})).await,
        host.call("unlisted", json!({})).await,
        host.ask("tools/call", json!({"arguments": {}})).await["result"].clone(),
    ];
    insta::assert_snapshot!(refused.each_ref().map(text_of).join("\n"));
    assert!(host.call("shout", json!({})).await["isError"].is_null());
    let log = program.server_log("a");
    let calls: Vec<_> = log.iter().filter(|line| line.starts_with("tools/call")).collect();
    assert_eq!(calls.len(), 1, "{calls:?}");
}

#[tokio::test]
async fn tool_that_a_server_has_just_announced_can_be_called() {
    let program = Proxy::with([Server::eager("a")])
        .set("policy", json!([{"tools": "a/echo", "then": "deny"}]))
        .start_http();
    let mut host = program.host("/servers/a/mcp").await;
    host.initialize(json!({})).await;
    for round in 0..5 {
        let name = format!("fresh{round}");
        host.call("change", json!({"tools": [name]})).await;
        let result = host.call(&name, json!({})).await;
        assert!(!text_of(&result).contains("policy"), "{result}");
    }
}

#[tokio::test]
async fn call_that_parsers_read_differently_is_refused() {
    let mut host = Proxy::with([Server::eager("a")])
        .set("surface", "direct")
        .set("policy", json!([{"arguments": {"repo": "acme/*"}, "then": "deny"}]))
        .serve()
        .await;
    host.tool_names().await;
    let mut cases = Cases::default();
    for (number, params) in [
        r#"{"name":"a__echo","name":"a__shout","arguments":{}}"#,
        r#"{"name":"a__echo","arguments":{"repo":"acme/x","repo":"other"}}"#,
        r#"{"name":"a__echo","arguments":{"repo":"acme/x","\u0072epo":"other"}}"#,
        r#"{"name":"a__echo","arguments":{},"arguments":{"repo":"acme/x"}}"#,
        r#"{"name":"a__echo","arguments":["acme/x"]}"#,
        r#"{"name":"a__echo","arguments":{"repo":"acme/\ud800x"}}"#,
        r#"{"name":"a__echo","arguments":{"Repo":"acme/x"}}"#,
        r#"{"name":"a__ec\ud800ho","arguments":{}}"#,
        r#"{"name":"a__echo","Name":"a__shout","arguments":{}}"#,
        r#"{"name":"a__echo","arguments":{},"argument\u017f":{"repo":"acme/x"}}"#,
        r#"{"name":"a__echo","arguments":{"repo":"acme/x"}}"#,
    ]
    .into_iter()
    .enumerate()
    {
        host.write(format!(
            r#"{{"jsonrpc":"2.0","id":"{number}","method":"tools/call","params":{params}}}"#
        ))
        .await;
        cases.add(params, &host.answer_line(&json!(number.to_string())).await);
    }
    insta::assert_snapshot!(cases);
    assert_eq!(called(&host, "a"), Vec::<String>::new());
}

#[tokio::test]
async fn members_that_no_rule_reads_pass_unchanged() {
    let rule = |tools| json!([{"tools": tools, "arguments": {"token": "x"}, "then": "deny"}]);
    for (policy, is_about_a) in
        [(json!([]), false), (rule("a/echo"), true), (rule("b/*"), false), (rule("?/b*"), true)]
    {
        let mut host = Proxy::with([Server::eager("a")])
            .set("surface", "direct")
            .set("policy", policy.clone())
            .serve()
            .await;
        host.tool_names().await;
        let mut expected = vec![r#"{"name":"echo","arguments":{"o":1,"O":2}}"#];
        if !is_about_a {
            expected.push(r#"{"name":"echo","Name":"x","arguments":{"toKen":1,"token":2}}"#);
        }
        for (number, params) in expected.iter().enumerate() {
            let params = params.replace("\"echo", "\"a__echo");
            host.write(format!(
                r#"{{"jsonrpc":"2.0","id":"{number}","method":"tools/call","params":{params}}}"#
            ))
            .await;
            host.answer_line(&json!(number.to_string())).await;
        }
        let log = host.server_log("a");
        let sent = log.iter().filter_map(|line| line.strip_prefix("tools/call "));
        assert_eq!(sent.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn tool_of_a_server_with_the_name_of_a_meta_tool_is_not_taken_for_it() {
    let server = Server::eager("a").script("extra_tools", json!(["use_readonly_tool"]));
    let program = Proxy::with([server]).set("splitCalls", true).start_http();
    let mut host = program.host("/servers/a/mcp").await;
    host.initialize(json!({})).await;
    let result = host.call("use_readonly_tool", json!({})).await;
    assert!(result["isError"].is_null(), "{result}");
}

/// Changes the config file of a host, and waits until the change is in force.
async fn reconfigure(host: &Host, directory: &Path, change: impl FnOnce(&mut Value)) {
    let before = host.reloads().len();
    let path = directory.join("dormouse.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    let fresh = directory.join("fresh");
    std::fs::write(&fresh, config.to_string()).unwrap();
    std::fs::rename(fresh, path).unwrap();
    crate::support::eventually("it has reloaded", || host.reloads().len() > before).await;
}

/// Has a legacy host call `a/echo`, and returns the id of the call and the question of the policy,
/// which is the host's question of this number.
async fn ask_about_echo(host: &mut Host, number: usize) -> (u64, Value) {
    let params = json!({"name": "use_tool", "arguments": {"tool_name": "a/echo"}});
    let id = host.send("tools/call", params).await;
    (id, host.message("elicitation/create", |it| it["id"] == json!(number)).await)
}

#[tokio::test]
async fn rule_that_changes_while_the_user_is_asked_is_obeyed() {
    let directory = tempfile::tempdir().unwrap();
    let proxy = Proxy::with([Server::lazy("a")]).at_home(directory.path());
    let mut host = proxy.set("policy", ask_for_echo()).serve().await;
    let (id, question) = ask_about_echo(&mut host, 1).await;
    reconfigure(&host, directory.path(), |config| config["policy"][0]["then"] = json!("deny"))
        .await;
    host.reply(&question, decided("once")).await;
    let result = host.answer(id).await["result"].clone();
    assert!(text_of(&result).contains("denies"), "{result}");
    reconfigure(&host, directory.path(), |config| config["policy"][0]["then"] = json!("ask")).await;
    let (id, question) = ask_about_echo(&mut host, 2).await;
    host.reply(&question, decided("no")).await;
    assert_eq!(host.answer(id).await["result"]["isError"], true, "the consent was for one call");
    assert_eq!(called(&host, "a"), Vec::<String>::new());
}

#[tokio::test]
async fn consent_does_not_outlive_the_server_that_it_was_given_for() {
    let directory = tempfile::tempdir().unwrap();
    let proxy = Proxy::with([Server::lazy("a")]).at_home(directory.path());
    let mut host = proxy.set("policy", ask_for_echo()).serve().await;
    let replace = |version: &'static str| {
        move |config: &mut Value| config["mcpServers"]["a"]["env"] = json!({"VERSION": version})
    };
    let (id, question) = ask_about_echo(&mut host, 1).await;
    reconfigure(&host, directory.path(), replace("2")).await;
    host.reply(&question, decided("session")).await;
    let again = host.message("elicitation/create", |it| it["id"] == json!(2)).await;
    assert_eq!(called(&host, "a"), Vec::<String>::new());
    host.reply(&again, decided("session")).await;
    let result = host.answer(id).await["result"].clone();
    assert!(result["isError"].is_null(), "{result}");
    let result = host.use_tool("a/echo", json!({})).await;
    assert!(result["isError"].is_null(), "{result}");
    reconfigure(&host, directory.path(), replace("3")).await;
    let (id, question) = ask_about_echo(&mut host, 3).await;
    host.reply(&question, decided("no")).await;
    assert_eq!(host.answer(id).await["result"]["isError"], true);
}

#[tokio::test]
async fn annotations_and_arguments_choose_the_rule() {
    let mut host = Proxy::with([Server::eager("a")
        .set("policy", json!([{"tools": "shout", "arguments": {"text": "no"}, "then": "deny"}]))])
    .set(
        "policy",
        json!([
            {"when": {"readOnly": true}, "then": "allow"},
            {"tools": "a/echo", "arguments": {"repo": "acme/*"}, "then": "allow"},
            {"when": {"destructive": true}, "then": "deny", "reason": "only reading"},
        ]),
    )
    .serve()
    .await;
    host.load("a").await;
    assert!(host.use_tool("a/shout", json!({})).await["isError"].is_null());
    let allowed = host.use_tool("a/echo", json!({"repo": "acme/x"})).await;
    assert!(allowed["isError"].is_null(), "{allowed}");
    for (tool, input) in [
        ("a/echo", json!({"repo": "other/x"})),
        ("a/echo", json!({"repo": ["acme/x"]})),
        ("a/echo", json!({})),
        ("a/slow", json!({})),
        // Only the list of the server denies this.
        ("a/shout", json!({"text": "no"})),
    ] {
        assert_eq!(host.use_tool(tool, input.clone()).await["isError"], true, "{tool} {input}");
    }
    assert_eq!(called(&host, "a"), ["shout", "echo"]);
}

#[tokio::test]
async fn user_approves_one_call() {
    let mut host = Proxy::with([Server::lazy("a")]).set("policy", ask_for_echo()).serve().await;
    let input = json!({"repo": "acme/x", "hidden": "\u{202e}"});
    let (question, result) = call_and_answer(&mut host, input.clone(), decided("once")).await;
    insta::assert_snapshot!(format!("{:#}", question["params"]));
    assert!(result["isError"].is_null(), "{result}");
    // The next call is asked for again.
    let (_, result) = call_and_answer(&mut host, input, json!({"action": "decline"})).await;
    insta::assert_snapshot!(text_of(&result));
    assert_eq!(called(&host, "a"), ["echo"]);
}

#[tokio::test]
async fn user_approves_a_tool_for_the_session() {
    let program = Proxy::with([Server::lazy("a")]).set("policy", ask_for_echo()).start_http();
    let able = json!({"elicitation": {}});
    let (mut first, mut second) = (program.host("/mcp").await, program.host("/mcp").await);
    first.initialize(able.clone()).await;
    second.initialize(able).await;
    call_and_answer(&mut first, json!({}), decided("session")).await;
    let result = first.use_tool("a/echo", json!({"other": 1})).await;
    assert!(result["isError"].is_null(), "{result}");
    assert_eq!(first.received().iter().filter(|line| is_question(line)).count(), 1);
    // Another session is asked by itself.
    let (_, refused) = call_and_answer(&mut second, json!({}), decided("no")).await;
    assert_eq!(refused["isError"], true, "{refused}");
}

#[tokio::test]
async fn approval_forever_is_written_before_the_rule_that_asks() {
    let directory = tempfile::tempdir().unwrap();
    let config = || -> Value {
        let text = std::fs::read(directory.path().join("dormouse.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    let policy = json!([
        {"tools": "a/echo", "arguments": {"repo": "prod/*"}, "then": "deny"},
        {"tools": "*", "when": {"destructive": true}, "then": "ask"},
    ]);
    let proxy =
        || Proxy::with([Server::lazy("a")]).at_home(directory.path()).set("policy", policy.clone());
    let mut host = proxy().serve().await;
    call_and_answer(&mut host, json!({"repo": "x"}), decided("always")).await;
    insta::assert_snapshot!(format!("{:#}", config()["policy"]));
    let denied = host.use_tool("a/echo", json!({"repo": "prod/x"})).await;
    assert_eq!(denied["isError"], true, "a rule before it still holds: {denied}");
    host.end().await;
    let mut next = Proxy::with_config_at(&directory.path().join("dormouse.json")).serve().await;
    let result = next.use_tool("a/echo", json!({})).await;
    assert!(result["isError"].is_null(), "{result}");
    assert!(!next.received().iter().any(|line| is_question(line)));
}

#[tokio::test]
async fn approval_forever_makes_an_exception_to_each_list_that_asks() {
    let directory = tempfile::tempdir().unwrap();
    let asks = |tools: &str| json!([{"tools": tools, "then": "ask"}]);
    let server = Server::lazy("a").set("policy", asks("${TOOLS:-echo}"));
    let proxy = Proxy::with([server]).at_home(directory.path());
    let mut host = proxy.set("policy", asks("a/*")).serve().await;
    call_and_answer(&mut host, json!({}), decided("always")).await;
    let text = std::fs::read(directory.path().join("dormouse.json")).unwrap();
    let config: Value = serde_json::from_slice(&text).unwrap();
    let lists = json!([config["policy"], config["mcpServers"]["a"]["policy"]]);
    insta::assert_snapshot!(format!("{lists:#}"));
}

#[tokio::test]
async fn approvals_forever_at_once_add_one_rule() {
    let directory = tempfile::tempdir().unwrap();
    let proxy = Proxy::with([Server::lazy("a")]).at_home(directory.path());
    let mut host = proxy.set("policy", ask_for_echo()).serve().await;
    let (first, one) = ask_about_echo(&mut host, 1).await;
    let (second, other) = ask_about_echo(&mut host, 2).await;
    host.reply(&one, decided("always")).await;
    host.reply(&other, decided("always")).await;
    for id in [first, second] {
        let result = host.answer(id).await["result"].clone();
        assert!(result["isError"].is_null(), "{result}");
    }
    let text = std::fs::read(directory.path().join("dormouse.json")).unwrap();
    let config: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(config["policy"].as_array().map(Vec::len), Some(2), "{config}");
}

#[tokio::test]
async fn user_is_told_that_no_rule_can_be_written() {
    let policy = json!([{"tools": "ech?", "then": "ask"}]);
    let server = Server::lazy("a/b");
    let mut host = Proxy::with([server]).set("policy", policy).serve().await;
    let params = json!({"name": "use_tool", "arguments": {"tool_name": "a/b/echo"}});
    let id = host.send("tools/call", params).await;
    let question = host.message("elicitation/create", |_| true).await;
    host.reply(&question, decided("always")).await;
    let result = host.answer(id).await["result"].clone();
    assert!(result["isError"].is_null(), "{result}");
    let logged = host.notification("notifications/message").await;
    insta::assert_snapshot!(format!("{:#}", logged["params"]));
}

#[tokio::test]
async fn refusal_names_the_command_for_each_rule_that_asks() {
    let policy = json!([{"arguments": {"repo": "acme/*"}, "then": "ask"}]);
    let profiles = json!({"p": {"servers": {"a": null}, "policy": [{"then": "ask"}]}});
    let config = json!({
        "policy": policy,
        "profiles": profiles,
        "mcpServers": {"a": {"command": fixture(), "args": ["{}"], "description": "A. Use it."}},
    });
    let home = Home::new().with(USER_CONFIG, config.to_string());
    let call = ["call", "a", "echo", r#"{"repo": "acme/x"}"#, "--profile", "p"];
    let (_, refused) = home.run(&call).await;
    let command = refused.split('`').nth(1).unwrap();
    let words = shlex::split(command).unwrap();
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let mut cases = Cases::default();
    for command in [
        &["policy", "allow", "a/echo"][..],
        &["policy", "allow", "a/echo", "--rule", "policy[7]"],
        &["policy", "allow", "a/echo", "--rule", "profiles.q.policy[0]"],
        &["policy", "allow", "a/echo", "--rule", "policy"],
        &words,
        &call,
    ] {
        let (code, said) = home.run(command).await;
        cases.add(command.join(" "), &format!("{said}\nexit code {code:?}"));
    }
    insta::assert_snapshot!(crate::support::redacted(&cases.to_string()));
    let written: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    let lists = json!([written["policy"], written["profiles"]["p"]["policy"]]);
    insta::assert_snapshot!(format!("{lists:#}"));
}

#[tokio::test]
async fn modern_host_asks_by_its_result_and_retries() {
    let program = Proxy::with([Server::eager("a")]).set("policy", ask_for_echo()).start_http();
    let mut host = program.modern("/mcp").await;
    let declared = json!({"elicitation": {"form": {}}});
    let params = |input: &Value| json!({"name": "use_tool", "arguments": {"tool_name": "a/echo", "tool_input": input}});
    let input = json!({"repo": "x"});
    for (decision, is_made) in
        [(decided("once"), true), (json!({"action": "cancel"}), false), (decided("session"), true)]
    {
        let asked = host.request_as("tools/call", params(&input), &declared).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let question = &asked["inputRequests"]["approval"];
        assert_eq!(question["method"], "elicitation/create", "{asked}");
        let mut retry = params(&input);
        retry["requestState"] = asked["requestState"].clone();
        retry["inputResponses"] = json!({"approval": decision});
        let result = host.request_as("tools/call", retry, &declared).await;
        assert_eq!(result["isError"] != true, is_made, "{result}");
    }
    let result = host.request_as("tools/call", params(&json!({"other": 1})), &declared).await;
    assert_eq!(result["resultType"], "complete", "the session is allowed: {result}");
    let calls = program.server_log("a");
    assert_eq!(calls.iter().filter(|line| line.starts_with("tools/call")).count(), 3);
}

#[tokio::test]
async fn host_that_cannot_ask_is_refused_with_the_command_that_allows() {
    let mut cases = Cases::default();
    for (name, capabilities) in
        [("nothing declared", json!({})), ("pages only", json!({"elicitation": {"url": {}}}))]
    {
        let mut host = Proxy::with([Server::lazy("a")]).set("policy", ask_for_echo()).start();
        host.initialize(capabilities).await;
        cases.add(name.to_owned(), text_of(&host.use_tool("a/echo", json!({})).await));
        assert!(called(&host, "a").is_empty());
    }
    let unattended =
        Proxy::with([Server::lazy("a")]).set("policy", ask_for_echo()).environment("CI", "true");
    let mut host = unattended.serve().await;
    cases.add("CI".to_owned(), text_of(&host.use_tool("a/echo", json!({})).await));
    assert!(!host.received().iter().any(|line| is_question(line)));
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn variable_of_ci_that_is_off_lets_the_user_be_asked() {
    for value in ["", "0", "false"] {
        let proxy = Proxy::with([Server::lazy("a")]).environment("CI", value);
        let mut host = proxy.set("policy", ask_for_echo()).serve().await;
        let (_, result) = call_and_answer(&mut host, json!({}), decided("once")).await;
        assert!(result["isError"].is_null(), "{value:?}: {result}");
    }
}

#[tokio::test]
async fn profile_can_only_be_stricter() {
    let profiles = json!({"p": {
        "servers": {"a": null},
        "policy": [{"tools": "a/echo", "then": "allow"}, {"tools": "a/shout", "then": "deny"}],
    }});
    let mut host = Proxy::with([Server::lazy("a")])
        .set("policy", json!([{"tools": "a/echo", "then": "deny"}]))
        .set("profiles", profiles)
        .argument("--profile")
        .argument("p")
        .serve()
        .await;
    for tool in ["a/echo", "a/shout"] {
        assert_eq!(host.use_tool(tool, json!({})).await["isError"], true, "{tool}");
    }
    assert!(host.use_tool("a/slow", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn changed_policy_is_in_force_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut host = Proxy::with([Server::lazy("a")]).at_home(directory.path()).serve().await;
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    let started = host.started("a");
    reconfigure(&host, directory.path(), |config| {
        config["policy"] = json!([{"tools": "a/echo", "then": "deny"}]);
    })
    .await;
    assert_eq!(host.use_tool("a/echo", json!({})).await["isError"], true);
    assert_eq!(host.started("a"), started, "the server stays connected");
}

fn config_with(policy: &Value) -> String {
    let entry = json!({"command": fixture(), "args": ["{}"], "description": "A. Use it."});
    written(&json!({"policy": policy, "mcpServers": {"a": entry, "a/b": entry}}))
}

fn written(config: &Value) -> String {
    format!("{config:#}\n")
}

#[tokio::test]
async fn commands_show_the_rule_that_decides_and_allow_a_tool() {
    let policy = json!([
        {"tools": "a/delete_*", "arguments": {"repo": "acme/*"}, "then": "deny", "reason": "ours"},
        {"tools": "a/delete_*", "then": "ask"},
        {"tools": "*", "when": {"readOnly": true}, "then": "deny"},
    ]);
    let home = Home::new().with(USER_CONFIG, config_with(&policy));
    let mut cases = Cases::default();
    for command in [
        &["policy", "check", "a/delete_repo", r#"{"repo": "acme/x"}"#][..],
        &["policy", "check", "a/delete_repo", r#"{"repo": "x"}"#],
        &["policy", "check", "a/delete_repo", "--json"],
        &["policy", "check", "a__other"],
        &["policy", "check", "a/b/other"],
        &["policy", "check", "c/other"],
        &["policy", "check", "a/delete*"],
        &["policy", "check", "a/x", "{"],
        &["policy", "check", "a/x", "[]"],
        &["policy", "check", "a/x", r#"{"repo": "x", "repo": "y"}"#],
        &["policy", "check", "a/delete_repo", r#"{"Repo": "x"}"#],
        &["policy", "allow", "a/other", "--rule", "policy[1]"],
        &["policy", "allow", "a/delete_repo", "--dry-run"],
        &["policy", "allow", "a/delete_repo"],
        &["policy", "allow", "a/delete_repo"],
        &["policy", "check", "a/delete_repo"],
    ] {
        let (code, said) = home.run(command).await;
        cases.add(command.join(" "), &format!("{said}\nexit code {code:?}"));
    }
    insta::assert_snapshot!(crate::support::redacted(&cases.to_string()));
    let written: Value = serde_json::from_str(&home.read(USER_CONFIG)).unwrap();
    insta::assert_snapshot!(format!("{:#}", written["policy"]));
}

#[tokio::test]
async fn command_that_calls_a_tool_obeys_the_policy() {
    let policy = json!([{"tools": "a/echo", "then": "deny"}, {"tools": "a/slow", "then": "ask"}]);
    let home = Home::new().with(USER_CONFIG, config_with(&policy));
    let mut cases = Cases::default();
    for tool in ["echo", "slow", "shout"] {
        let (code, said) = home.run(&["call", "a", tool]).await;
        let refusal = said.lines().find(|line| line.contains("policy") || line.contains("needs"));
        cases.add(tool.to_owned(), &format!("{code:?} {}", refusal.unwrap_or_default()));
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn problems_of_rules_have_their_places() {
    let policy = json!([
        {"tools": 1, "then": "deny"},
        {"tools": "x", "then": "forbid"},
        {"tools": "x"},
        {"tools": "x", "then": "deny", "when": {"readonly": true}},
    ]);
    let a = json!({"command": "x", "policy": [{"tools": "a/echo", "then": "deny"}, 7]});
    let config = json!({
        "policy": policy,
        "profiles": {"p": {"policy": [{"tools": "x"}, {"then": "deny", "resaon": ""}]}},
        "mcpServers": {"a": a},
    });
    let home = Home::new().with(USER_CONFIG, written(&config));
    let (code, said) = home.run(&["check"]).await;
    assert_eq!(code, Some(2));
    insta::assert_snapshot!(crate::support::redacted(&said));
}
