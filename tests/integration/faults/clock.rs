//! A wall clock that jumps a day ahead and back.

use serde_json::{Value, json};

use crate::support::{
    Authority, DaemonHome, Host, Proxy, Server, User, eventually, faults::FakeClock, not_tested,
    redacted, text_of,
};

/// Returns a fake clock, or reports why there is none.
macro_rules! fake_clock {
    () => {
        match FakeClock::new() {
            Ok(clock) => clock,
            Err(why) => return not_tested(why),
        }
    };
}

async fn serve(clock: &FakeClock, user: &User) -> Host {
    clock.on(user.proxy()).serve().await
}

#[tokio::test]
async fn token_is_renewed_once_after_the_clock_has_jumped() {
    let clock = fake_clock!();
    let authority = Authority::start().await;
    let user = User::logged_in_at(authority.url()).await;
    let mut host = serve(&clock, &user).await;
    assert_eq!(host.use_g().await, "ordinary");
    let renewals = || authority.token_requests().len() - 1;
    assert_eq!(renewals(), 0);
    clock.jump_to(24);
    for _ in 0..3 {
        assert_eq!(host.use_g().await, "ordinary");
    }
    assert_eq!(renewals(), 1);
    clock.jump_to(0);
    for _ in 0..3 {
        assert_eq!(host.use_g().await, "ordinary");
    }
    assert_eq!(renewals(), 1, "the new token is valid");
    // The server ends the token when its hour is over, and dormouse believes that a day is left.
    authority.expire_tokens();
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(renewals(), 2);
}

#[tokio::test]
async fn login_without_renewal_is_valid_again_when_the_clock_has_jumped_back() {
    let clock = fake_clock!();
    let authority = Authority::start().await;
    authority.set_token_member("refresh_token", Value::Null);
    let user = User::logged_in_at(authority.url()).await;
    let mut host = serve(&clock, &user).await;
    assert_eq!(host.use_g().await, "ordinary");
    clock.jump_to(24);
    insta::assert_snapshot!(redacted(&host.use_g().await));
    clock.jump_to(0);
    assert_eq!(host.use_g().await, "ordinary");
    // The same for a server that could not be loaded.
    clock.jump_to(24);
    let mut host = serve(&clock, &user).await;
    assert!(host.use_g().await.contains("requires a login"));
    clock.jump_to(0);
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn sessions_servers_and_calls_outlast_a_jump() {
    let clock = fake_clock!();
    let server = Server::lazy("a").set("idleTimeout", "1h");
    let program = clock.on(Proxy::with([server]).set("sessionTimeout", "1h")).start_http();
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    host.load("a").await;
    for hours in [24, -24, 0] {
        let call = json!({"tool_name": "a/slow", "tool_input": {"ms": 300}});
        let call = host.send("tools/call", json!({"name": "use_tool", "arguments": call})).await;
        clock.jump_to(hours);
        assert_eq!(text_of(&host.answer(call).await["result"]), "slept");
        assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    }
    assert_eq!(program.started("a").len(), 1, "it has never slept");
    assert!(host.http().statuses().iter().all(|status| matches!(status, 200 | 202)));
}

#[tokio::test]
async fn catalog_is_used_after_a_jump_in_either_direction() {
    let clock = fake_clock!();
    let home = tempfile::tempdir().unwrap();
    let serve = async |wording: &str| {
        let server = Server::eager("a").set("startup", "hybrid");
        let server = server.set("env", json!({"FIXTURE_WORDING": wording}));
        let proxy = Proxy::with([server]).at_home(home.path()).set("surface", "direct");
        clock.on(proxy).serve().await
    };
    let refreshed = |list: &Value, wording: &str| list.to_string().contains(wording);
    let mut host = serve("").await;
    let learned = host.request("tools/list", json!({})).await;
    eventually("the catalog is kept", || home.path().join("cache/dormouse/catalogs").is_dir())
        .await;
    host.end().await;
    // After a day the catalog is shown, and compared in the background.
    clock.jump_to(25);
    let mut host = serve(" Tomorrow.").await;
    assert_eq!(host.request("tools/list", json!({})).await, learned);
    host.notification("notifications/tools/list_changed").await;
    assert!(refreshed(&host.request("tools/list", json!({})).await, "Tomorrow."));
    host.end().await;
    // A catalog of tomorrow is as good as one of now.
    clock.jump_to(0);
    let mut host = serve(" Today.").await;
    assert!(refreshed(&host.request("tools/list", json!({})).await, "Tomorrow."));
    host.call("a__echo", json!({})).await;
    host.notification("notifications/tools/list_changed").await;
    assert!(refreshed(&host.request("tools/list", json!({})).await, "Today."));
}

#[tokio::test]
async fn daemon_serves_its_hosts_through_jumps_of_the_clock() {
    let clock = fake_clock!();
    let home = DaemonHome::new();
    // Writes the config.
    home.proxy([Server::lazy("a")]).serve().await.end().await;
    home.wait_until_nothing_is_left().await;
    let mut daemon = home.prepare(&["daemon", "run"]);
    daemon.envs(clock.variables()).kill_on_drop(true).stdout(std::process::Stdio::piped());
    let _daemon = daemon.spawn().expect("dormouse runs");
    eventually("the daemon runs", || home.daemons().len() == 1).await;
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    for hours in [24, 0, -24] {
        clock.jump_to(hours);
        let answer = host.use_tool("a/echo", json!({"text": "in time"})).await;
        assert!(text_of(&answer).contains("in time"), "{answer}");
        assert_eq!(home.daemons().len(), 1);
    }
    assert_eq!(host.end().await, Some(0));
    home.wait_until_nothing_is_left().await;
}
