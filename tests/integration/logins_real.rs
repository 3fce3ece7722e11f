//! Logins at `FastMCP`'s in-memory provider, whose refresh tokens are valid once.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Browser, Cases, Host, IdentityProvider, Provider, TerminalAction, User, at_terminal_typing,
    line_of, redacted, text_of,
};

async fn call(host: &mut Host) -> String {
    let result = host.use_tool("g/guarded", json!({})).await;
    text_of(&result).to_owned()
}

#[tokio::test]
async fn login_survives_expiry_and_restart() {
    let provider = Provider::start(3600).await;
    let user = User::with_server_at(&provider.url);
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    insta::assert_snapshot!(redacted(&said));
    let mut host = user.host().await;
    assert_eq!(call(&mut host).await, "let in");
    assert_eq!(provider.count("refreshed").await, 0);

    provider.trigger("expire").await;
    assert_eq!(call(&mut host).await, "let in");
    assert_eq!(provider.count("refreshed").await, 1);

    host.end().await;
    let mut host = user.host().await;
    assert_eq!(call(&mut host).await, "let in");
    provider.trigger("expire").await;
    assert_eq!(call(&mut host).await, "let in");
    assert_eq!(provider.count("refreshed").await, 2);
    assert_eq!(provider.count("registered").await, 1);
}

#[tokio::test]
async fn concurrent_processes_renew_once() {
    let provider = Provider::start(3600).await;
    let user = User::with_server_at(&provider.url);
    assert!(user.log_in().await.0);
    let (mut one, mut other) = (user.host().await, user.host().await);
    assert_eq!(call(&mut one).await, "let in");
    assert_eq!(call(&mut other).await, "let in");
    for round in 1..=5 {
        provider.trigger("expire").await;
        let wanted = json!({"name": "use_tool", "arguments": {"tool_name": "g/guarded"}});
        let mut calls = Vec::new();
        for _ in 0..8 {
            let of_one = one.send("tools/call", wanted.clone()).await;
            calls.push((of_one, other.send("tools/call", wanted.clone()).await));
        }
        for (of_one, of_other) in calls {
            assert_eq!(text_of(&one.answer(of_one).await["result"]), "let in");
            assert_eq!(text_of(&other.answer(of_other).await["result"]), "let in");
        }
        assert_eq!(provider.count("refreshed").await, round);
    }
    assert_eq!(provider.count("refused").await, 0);
}

#[tokio::test]
async fn token_is_renewed_before_it_expires() {
    // Renewal begins when a fifth of this is left, which is enough time on a busy machine.
    let provider = Provider::start(20).await;
    let user = User::with_server_at(&provider.url);
    assert!(user.log_in().await.0);
    let mut host = user.host().await;
    while provider.count("refreshed").await < 1 {
        assert_eq!(call(&mut host).await, "let in");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Each request carried a valid token.
    assert_eq!(provider.count("turned away").await, 0);
    assert_eq!(provider.count("exchanged").await, 1);
}

#[tokio::test]
async fn revoked_login_is_requested_again() {
    let provider = Provider::start(3600).await;
    let user = User::with_server_at(&provider.url);
    assert!(user.log_in().await.0);
    let mut host = user.host().await;
    assert_eq!(call(&mut host).await, "let in");

    provider.trigger("revoke").await;
    let said = call(&mut host).await;
    insta::assert_snapshot!("revoked_login", redacted(&said));
    // A refused refresh token is not sent again.
    let refused = provider.count("refused").await;
    assert_eq!(call(&mut host).await, said);
    assert_eq!(provider.count("refused").await, refused);

    assert!(user.log_in().await.0);
    assert_eq!(call(&mut host).await, "let in");
    assert_eq!(provider.count("registered").await, 1, "its client is still good");

    provider.trigger("forget").await;
    insta::assert_snapshot!("forgotten_login", redacted(&call(&mut host).await));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert_eq!(call(&mut host).await, "let in");
}

#[tokio::test]
async fn login_accepts_a_pasted_address() {
    let provider = Provider::start(3600).await;
    let user = User::with_server_at(&provider.url);
    let mut command = user.command(&["login", "g"]);
    command.env("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22");
    let runtime = tokio::runtime::Handle::current();
    let mut is_pasted = false;
    let shown = at_terminal_typing(command, move |shown| {
        let (Some(address), true) = (address_in(shown), shown.contains("press Enter.")) else {
            return TerminalAction::WaitFor("an address");
        };
        if std::mem::replace(&mut is_pasted, true) {
            return TerminalAction::Done;
        }
        let ended_at = runtime.block_on(where_it_leads(&address));
        TerminalAction::Type(format!("nonsense\n{ended_at}\n"))
    })
    .await;
    // The terminal shows the typed lines at any time.
    let is_typed = |line: &&str| *line == "nonsense" || line.contains("/callback?");
    let report: Vec<&str> = shown.lines().filter(|line| !is_typed(line)).collect();
    insta::assert_snapshot!(redacted(&report.join("\n")));
    assert_eq!(call(&mut user.host().await).await, "let in");
}

fn address_in(shown: &str) -> Option<String> {
    let line = shown.lines().find(|line| line.starts_with("  http"))?;
    Some(line.trim().to_owned())
}

/// Returns the address to which the browser of another machine is redirected and which it cannot
/// load.
async fn where_it_leads(address: &str) -> String {
    // Installs the process-wide TLS provider.
    drop(crate::support::http_client());
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let response = client.no_proxy().build().unwrap().get(address).send().await.unwrap();
    response.headers()["location"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn eager_server_starts_after_the_login() {
    let provider = Provider::start(3600).await;
    let user = User::with_server(&json!({"url": provider.url}));
    let mut host = user.host().await;
    let listed = host.description().await;
    insta::assert_snapshot!(redacted(line_of(&listed, "- g:")));
    assert!(user.log_in().await.0);
    let coming_up = async { while !host.description().await.contains("- guarded") {} };
    tokio::time::timeout(std::time::Duration::from_secs(30), coming_up)
        .await
        .expect("the tool is listed");
    host.notification("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn logout_ends_the_login_in_every_process() {
    let provider = Provider::start(3600).await;
    let user = User::with_server_at(&provider.url);
    assert!(user.log_in().await.0);
    let (_, status) = user.run(&["status"]).await;
    let mut cases = Cases::default();
    cases.add("status", &status);
    let (_, list) = user.run(&["list"]).await;
    cases.add("list", &list);
    let mut host = user.host().await;
    assert_eq!(call(&mut host).await, "let in");

    let (is_out, said) = user.run(&["logout", "g"]).await;
    assert!(is_out, "{said}");
    cases.add("logout", &said);
    assert!(user.stored_logins().is_empty());
    cases.add("call", &call(&mut host).await);
    let (_, said) = user.run(&["logout", "g"]).await;
    cases.add("logout again", &said);
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn person_logs_in_at_a_real_authorization_server() {
    const PUBLIC: &str = "https://mcp.example.com";
    let (provider, identities) = (Provider::start(3600).await, IdentityProvider::start().await);
    let issuer = json!({
        "issuer": identities.issuer(), "scopes": ["mcp"], "clientId": "dormouse",
        "clientSecret": "canary secret",
    });
    let entry = json!({"url": provider.url, "description": "d", "login": "user"});
    let config = json!({"publicUrl": PUBLIC, "issuers": [issuer], "mcpServers": {"g": entry}});
    let user = User::with_config(&config);
    let program = user.proxy().start_http();
    let token = identities.token(&json!({"sub": "ada", "scope": "mcp"}));
    let url = program.url("/mcp").await;
    let mut host = Host::over_http(&url, &[("authorization", &format!("Bearer {token}"))]);
    host.initialize(json!({})).await;
    assert!(call(&mut host).await.contains("open https://mcp.example.com/login/to/g"));
    identities.sign_in("ada");
    let mut browser = Browser::of_service(PUBLIC, &program.url("").await);
    let page = browser.visit(&format!("{PUBLIC}/login/to/g")).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert_eq!(call(&mut host).await, "let in");
    provider.trigger("expire").await;
    assert_eq!(call(&mut host).await, "let in");
    assert_eq!((provider.count("registered").await, provider.count("refreshed").await), (1, 1));
}
