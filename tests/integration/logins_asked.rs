//! Logins that a host asks its user for, and the requests that wait for them.

use std::{net::TcpListener, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    Authority, Behaviour, Host, ModernHost, PATIENCE, User, eventually, redacted, text_of, visit,
    words_of,
};

/// Returns the `params` of a call.
fn use_of_t() -> Value {
    json!({"name": "use_tool", "arguments": {"tool_name": "g/t"}})
}

/// Capabilities of a host that opens pages for its user.
const SHOWS_PAGES: &str = r#"{"elicitation": {"form": {}, "url": {}}}"#;

async fn host_that_shows_pages(user: &User) -> Host {
    let mut host = user.proxy().start();
    host.initialize(serde_json::from_str(SHOWS_PAGES).unwrap()).await;
    host
}

/// Sends a call of a legacy host, and returns its id and the question that it causes.
async fn call_that_asks(host: &mut Host) -> (u64, Value) {
    let call = host.send("tools/call", use_of_t()).await;
    (call, host.message("elicitation/create", |_| true).await)
}

#[tokio::test]
async fn call_continues_after_a_login_in_the_host() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut host = host_that_shows_pages(&user).await;
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(host.send("tools/call", use_of_t()).await);
    }
    // Three calls cause one question.
    let question = host.message("elicitation/create", |_| true).await;
    let asked = &question["params"];
    assert_eq!(asked["mode"], "url");
    host.reply(&question, json!({"action": "accept"})).await;
    let page = visit(asked["url"].as_str().unwrap()).await;
    insta::assert_snapshot!("page_after_the_login", words_of(&page));
    for call in calls {
        assert_eq!(text_of(&host.answer(call).await["result"]), "ordinary");
    }
    let done = host.notification("notifications/elicitation/complete").await;
    assert_eq!(done["params"]["elicitationId"], asked["elicitationId"]);
    assert_eq!(authority.token_requests().len(), 1);
    let asked = host.received().iter().filter(|line| line.contains("elicitation/create")).count();
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn login_in_a_terminal_continues_waiting_calls() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut legacy = host_that_shows_pages(&user).await;
    let (call, question) = call_that_asks(&mut legacy).await;
    let (mut modern, wanted, asked) = modern_host_that_is_asked(&user).await;
    let again = modern.send("tools/call", answered(wanted, &asked, "accept")).await;

    assert!(user.log_in().await.0);
    assert_eq!(text_of(&legacy.answer(call).await["result"]), "ordinary");
    assert_eq!(text_of(&modern.answer(again).await["result"]), "ordinary");
    let withdrawn = legacy.notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
}

#[tokio::test]
async fn unneeded_login_question_is_withdrawn() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut host = host_that_shows_pages(&user).await;
    let (first, question) = call_that_asks(&mut host).await;
    host.cancel(first, false).await;
    let withdrawn = host.notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);

    let call = host.send("tools/call", use_of_t()).await;
    accept(&mut host, &question["id"]).await;
    assert_eq!(text_of(&host.answer(call).await["result"]), "ordinary");
}

#[tokio::test]
async fn failed_login_tells_the_host_why() {
    let authority = Authority::start().await;
    authority.set_redirect_parameter("error", "access_denied");
    let user = User::with_server_at(authority.url());
    let mut legacy = host_that_shows_pages(&user).await;
    let (call, question) = call_that_asks(&mut legacy).await;
    legacy.reply(&question, json!({"action": "accept"})).await;
    visit(question["params"]["url"].as_str().unwrap()).await;
    let (mut modern, wanted, asked) = modern_host_that_is_asked(&user).await;
    visit(asked["inputRequests"]["login"]["params"]["url"].as_str().unwrap()).await;
    let again = modern.send("tools/call", answered(wanted, &asked, "accept")).await;
    for answer in [legacy.answer(call).await, modern.answer(again).await] {
        insta::assert_snapshot!("failed_login", redacted(text_of(&answer["result"])));
    }
}

#[tokio::test]
async fn declined_login_frees_the_redirect_port() {
    let authority = Authority::start().await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let redirect_uri = format!("http://127.0.0.1:{port}/callback");
    let oauth = json!({"redirectUri": redirect_uri});
    let user =
        User::with_server(&json!({"url": authority.url(), "description": "d", "oauth": oauth}));
    let mut host = host_that_shows_pages(&user).await;
    let (call, question) = call_that_asks(&mut host).await;
    host.reply(&question, json!({"action": "decline"})).await;
    host.answer(call).await;
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
}

#[tokio::test]
async fn login_page_follows_the_current_config() {
    let authority = Authority::start().await;
    let entry =
        |client| json!({"url": authority.url(), "description": "d", "oauth": {"clientId": client}});
    let user = User::with_server(&entry("wrong"));
    let (mut host, wanted, asked) = modern_host_that_is_asked(&user).await;
    let address = |asked: &Value| {
        asked["inputRequests"]["login"]["params"]["url"].as_str().unwrap().to_owned()
    };
    assert!(address(&asked).contains("client_id=wrong"));
    let config = json!({"mcpServers": {"g": entry("right")}});
    std::fs::write(user.home.path().join("dormouse.json"), config.to_string()).unwrap();
    let corrected = async {
        while !address(&host.request("tools/call", wanted.clone()).await)
            .contains("client_id=right")
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, corrected).await.expect("the page is another");
}

#[tokio::test]
async fn token_refused_at_once_asks_no_second_time() {
    let authority = Authority::start().await;
    authority.set_token_member("refresh_token", Value::Null);
    let user = User::with_server_at(authority.url());
    let (mut host, wanted, asked) = modern_host_that_is_asked(&user).await;
    authority.set_behaviour(Behaviour::RejectsTokens);
    visit(asked["inputRequests"]["login"]["params"]["url"].as_str().unwrap()).await;
    let refused = host.request("tools/call", answered(wanted, &asked, "accept")).await;
    insta::assert_snapshot!(redacted(text_of(&refused)));
}

#[tokio::test]
async fn exit_does_not_wait_for_a_login() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut host = host_that_shows_pages(&user).await;
    let call = host.send("tools/call", use_of_t()).await;
    host.message("elicitation/create", |_| true).await;
    assert_eq!(host.end().await, Some(0));
    let answer = host.answer(call).await;
    insta::assert_snapshot!(redacted(text_of(&answer["result"])));
}

#[tokio::test]
async fn load_continues_after_a_login_and_asks_for_more_scopes() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut host = host_that_shows_pages(&user).await;
    let load =
        host.send("tools/call", json!({"name": "load_mcp", "arguments": {"mcp_name": "g"}})).await;
    let first = accept(&mut host, &Value::Null).await;
    let loaded = host.answer(load).await;
    assert_eq!(loaded["result"]["structuredContent"]["tools"][0]["name"], "g/t", "{loaded}");
    assert!(host.notifications().contains(&"notifications/tools/list_changed".to_owned()));

    authority.require_scope("write");
    let wanted = use_of_t();
    let call = host.send("tools/call", wanted).await;
    accept(&mut host, &first).await;
    assert_eq!(text_of(&host.answer(call).await["result"]), "ordinary");
}

/// Opens the page of a question other than `earlier`, as the host's user, and returns the
/// question's id.
async fn accept(host: &mut Host, earlier: &Value) -> Value {
    let question = host.message("elicitation/create", |asked| asked["id"] != *earlier).await;
    host.reply(&question, json!({"action": "accept"})).await;
    let page = visit(question["params"]["url"].as_str().unwrap()).await;
    insta::assert_snapshot!("page_after_the_login", words_of(&page));
    question["id"].clone()
}

#[tokio::test]
async fn declined_login_names_the_command() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut host = host_that_shows_pages(&user).await;
    let wanted = use_of_t();
    let call = host.send("tools/call", wanted).await;
    let question = host.message("elicitation/create", |_| true).await;
    host.reply(&question, json!({"action": "decline"})).await;
    let answer = host.answer(call).await;
    insta::assert_snapshot!(redacted(text_of(&answer["result"])));
}

/// Sends a call of a modern host that opens pages; returns the host, the call and the question.
async fn modern_host_that_is_asked(user: &User) -> (Host, Value, Value) {
    let mut host = user.proxy().start();
    let mut wanted = ModernHost::meta(use_of_t());
    wanted["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        serde_json::from_str(SHOWS_PAGES).unwrap();
    let asked = host.request("tools/call", wanted.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    (host, wanted, asked)
}

/// Returns the call again with the user's answer.
fn answered(mut wanted: Value, asked: &Value, action: &str) -> Value {
    wanted["requestState"] = asked["requestState"].clone();
    wanted["inputResponses"] = json!({"login": {"action": action}});
    wanted
}

#[tokio::test]
async fn modern_host_retries_after_the_login() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let (mut host, wanted, asked) = modern_host_that_is_asked(&user).await;
    let question = &asked["inputRequests"]["login"];
    assert_eq!(
        (&question["method"], &question["params"]["mode"]),
        (&json!("elicitation/create"), &json!("url"))
    );

    let again = answered(wanted, &asked, "accept");
    let call = host.send("tools/call", again.clone()).await;
    visit(question["params"]["url"].as_str().unwrap()).await;
    let answer = host.answer(call).await;
    assert_eq!(text_of(&answer["result"]), "ordinary", "{answer}");
    let seen = authority.remote.requests();
    assert!(seen.iter().all(|seen| !seen.body.contains("dormouse-login.")), "it is ours alone");

    let refused = host.ask("tools/call", again).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn script_goes_on_after_a_login_in_either_era() {
    let script = json!({"name": "run_script", "arguments": {"code": "return await mcp.g.t()"}});
    for is_modern in [false, true] {
        let authority = Authority::start().await;
        let user = User::with_server_at(authority.url());
        let mut host = user.proxy().argument("--scripts").start();
        let page = |question: &Value| question["params"]["url"].as_str().unwrap().to_owned();
        let call = if is_modern {
            let mut wanted = ModernHost::meta(script.clone());
            wanted["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                serde_json::from_str(SHOWS_PAGES).unwrap();
            let asked = host.request("tools/call", wanted.clone()).await;
            let questions = asked["inputRequests"].as_object().expect("it asks");
            let (key, question) = questions.iter().next().unwrap();
            wanted["requestState"] = asked["requestState"].clone();
            wanted["inputResponses"] = json!({key: {"action": "accept"}});
            let call = host.send("tools/call", wanted).await;
            visit(&page(question)).await;
            call
        } else {
            host.initialize(serde_json::from_str(SHOWS_PAGES).unwrap()).await;
            let call = host.send("tools/call", script.clone()).await;
            let question = host.message("elicitation/create", |_| true).await;
            host.reply(&question, json!({"action": "accept"})).await;
            visit(&page(&question)).await;
            call
        };
        assert_eq!(text_of(&host.answer(call).await["result"]), "ordinary", "{is_modern}");
    }
}

#[tokio::test]
async fn remote_host_is_told_the_login_command() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let program = user.proxy().argument("--http").argument("0.0.0.0:0").start_service();
    let url = program.url("/mcp").await.replace("0.0.0.0", "127.0.0.1");
    let token = program
        .log()
        .iter()
        .find_map(|line| line.split_once("bearer token: ").map(|(_, token)| token.to_owned()));
    let bearer = format!("Bearer {}", token.expect("it is printed"));
    let here = user.proxy().argument("--http").argument("127.0.0.1:0").start_service();
    let passed_on = here.url("/mcp").await;
    for (url, header) in
        [(url, ("authorization", bearer.as_str())), (passed_on, ("x-forwarded-for", "192.0.2.1"))]
    {
        let mut host = Host::over_http(&url, &[header]);
        host.initialize(serde_json::from_str(SHOWS_PAGES).unwrap()).await;
        let refused = host.use_g().await;
        insta::assert_snapshot!("remote_host", redacted(&refused));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn browser_opens_only_if_configured() {
    use std::os::unix::fs::PermissionsExt as _;

    for is_interactive in [false, true] {
        let authority = Authority::start().await;
        let user = User::with_config(&json!({
            "interactive": is_interactive,
            "mcpServers": {"g": {"url": authority.url(), "description": "d"}},
        }));
        let (browser, opened) = (user.home.path().join("browser"), user.home.path().join("opened"));
        let script =
            format!("#!/bin/sh\necho \"$1\" > {0}.part && mv {0}.part {0}\n", opened.display());
        std::fs::write(&browser, script).unwrap();
        std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o700)).unwrap();
        let proxy = user.proxy().environment("BROWSER", &browser.to_string_lossy());
        let mut host = proxy.serve().await;
        let wanted = use_of_t();
        let id = host.send("tools/call", wanted).await;
        if !is_interactive {
            let answer = host.answer(id).await;
            insta::assert_snapshot!(redacted(text_of(&answer["result"])));
            assert!(!opened.exists());
            continue;
        }
        eventually("it is opened", || opened.exists()).await;
        visit(std::fs::read_to_string(&opened).unwrap().trim()).await;
        let answer = host.answer(id).await;
        assert_eq!(text_of(&answer["result"]), "ordinary", "{answer}");
    }
}

#[tokio::test]
async fn declined_login_names_the_command_to_a_modern_host() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let (mut host, wanted, asked) = modern_host_that_is_asked(&user).await;
    let declined = host.request("tools/call", answered(wanted, &asked, "decline")).await;
    assert_eq!(declined["isError"], true);
    insta::assert_snapshot!(redacted(text_of(&declined)));
}
