//! The page in the browser: who may open it, and what its requests do. `scripts/page` tests what a
//! browser shows of it.

use reqwest::{Method, RequestBuilder, StatusCode, redirect::Policy};
use serde_json::{Value, json};

use crate::support::{
    Authority, DaemonHome, OpenPage, Page, Program, Proxy, Server, User, eventually, http_client,
    http_client_builder, text_of, visit,
};

async fn page(home: &DaemonHome) -> Page {
    Page::serve(home.prepare(&["ui", "--no-browser"])).await
}

async fn open_page(home: &DaemonHome) -> OpenPage {
    page(home).await.open().await
}

/// Returns the status of the answer to a GET.
async fn status_of(address: &str, headers: &[(&str, &str)]) -> StatusCode {
    let request = http_client().get(address);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.expect("an answer").status()
}

#[tokio::test]
async fn page_is_open_to_the_first_browser_alone() {
    let home = DaemonHome::new();
    home.proxy([Server::lazy("a")]).serve().await.end().await;
    let page = page(&home).await;
    assert_eq!(status_of(&page.at("/"), &[]).await, StatusCode::NOT_FOUND);
    assert_eq!(status_of(&page.at("/open/guessed"), &[]).await, StatusCode::UNAUTHORIZED);
    let opening = page.opening.clone();
    let rebound = [("host", "rebound.example")];
    assert_eq!(status_of(&opening, &rebound).await, StatusCode::FORBIDDEN);
    let looked = http_client().head(&opening).send().await.unwrap();
    assert_eq!(looked.status(), StatusCode::METHOD_NOT_ALLOWED, "a look does not use it up");
    let page = page.open().await;
    assert_eq!(status_of(&opening, &[]).await, StatusCode::UNAUTHORIZED, "it works once");
    let cookie = ("cookie", page.cookie.as_str());
    for path in ["", "app.js", "api/overview", "api/calls?after=0"] {
        let address = format!("{}{path}", page.address);
        assert_eq!(status_of(&address, &[]).await, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(status_of(&address, &[cookie]).await, StatusCode::OK, "{path}");
        let rebound = [cookie, ("host", "rebound.example")];
        assert_eq!(status_of(&address, &rebound).await, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn other_pages_cannot_send_requests() {
    let home = DaemonHome::new();
    let _host = home.proxy([Server::lazy("a")]).serve().await;
    let page = open_page(&home).await;
    let from_page = ("dormouse-page", "1");
    for headers in [
        vec![],
        vec![from_page, ("origin", "null")],
        vec![from_page, ("origin", "http://127.0.0.1:1")],
        vec![from_page, ("sec-fetch-site", "same-site")],
    ] {
        let request = page.request(Method::POST, "api/servers/a/load");
        let request = request.header("cookie", &page.cookie);
        let with = |request: RequestBuilder, (name, value)| request.header(name, value);
        let request = headers.iter().copied().fold(request, with);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{headers:?}");
    }
    assert_eq!(page.server("a").await["state"], "unloaded");
}

#[tokio::test]
async fn page_has_the_policy_of_its_files() {
    let home = DaemonHome::new();
    home.proxy([Server::lazy("a")]).serve().await.end().await;
    let page = open_page(&home).await;
    let answer = page.request(Method::GET, "").header("cookie", &page.cookie).send().await.unwrap();
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(header("referrer-policy"), "no-referrer");
    assert_eq!(header("cache-control"), "no-store");
}

#[tokio::test]
async fn servers_are_woken_and_put_to_sleep() {
    let home = DaemonHome::new();
    let gone = Server::lazy("gone").set("command", "/no/such/program");
    let host = home.proxy([Server::lazy("a"), gone]).serve().await;
    let page = open_page(&home).await;
    let overview = page.get("api/overview").await;
    assert_eq!(overview["processes"][0]["clients"], json!(["test 1"]), "{overview}");
    assert_eq!(page.server("a").await["state"], "unloaded");
    page.post("api/servers/a/load", &json!({})).await.unwrap();
    let server = page.server("a").await;
    assert_eq!((&server["state"], &server["awake"]), (&json!("awake"), &json!(1)), "{server}");
    assert!(server["toolCounts"]["shown"].as_u64() > Some(1), "{server}");
    let tools = page.get("api/servers/a/tools").await;
    assert!(tools.as_array().unwrap().iter().any(|tool| tool["name"] == "echo"), "{tools}");
    page.post("api/servers/a/sleep", &json!({})).await.unwrap();
    assert_eq!(page.server("a").await["state"], "asleep");
    let refused = page.post("api/servers/gone/load", &json!({})).await.unwrap_err();
    assert!(refused.contains("/no/such/program"), "{refused}");
    assert_eq!(page.server("gone").await["strikes"], 1);
    page.post("api/servers/gone/reset", &json!({})).await.unwrap();
    assert_eq!(page.server("gone").await["strikes"], 0);
    let unknown = page.post("api/servers/other/load", &json!({})).await.unwrap_err();
    assert!(unknown.contains("unknown server"), "{unknown}");
    drop(host);
}

#[tokio::test]
async fn switches_of_the_page_are_in_the_config_and_in_force() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a"), Server::lazy("b")]).serve().await;
    host.load("a").await;
    let page = open_page(&home).await;
    let off = json!({"tool": "echo", "enabled": false});
    page.post("api/servers/a/tool-enabled", &off).await.unwrap();
    page.post("api/servers/b/enabled", &json!({"enabled": false})).await.unwrap();
    page.post("api/servers/a/isolation", &json!({"isolation": "shared"})).await.unwrap();
    let config: Value = serde_json::from_str(&home.config()).unwrap();
    let servers = &config["mcpServers"];
    assert_eq!(servers["a"]["tools"]["echo"], false, "{config}");
    assert_eq!(servers["b"]["enabled"], false, "{config}");
    assert_eq!(servers["a"]["isolation"], "shared", "{config}");
    assert_eq!(host.use_tool("a/echo", json!({})).await["isError"], true);
    assert_eq!(page.server("b").await["state"], "disabled");
    let before = home.config();
    let refused = page.post("api/servers/other/enabled", &json!({"enabled": true})).await;
    assert!(refused.unwrap_err().contains("other"));
    assert_eq!(home.config(), before);
}

#[tokio::test]
async fn calls_are_shown_as_they_end_and_savings_by_the_hour() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    let page = open_page(&home).await;
    host.load("a").await;
    assert_eq!(page.get("api/calls?after=0").await, json!({"next": 0, "calls": []}));
    host.use_tool("a/echo", json!({"text": "x"})).await;
    let calls = page.get_when("api/calls?after=0", |calls| calls["next"] == 1).await;
    assert_eq!(
        (&calls["next"], &calls["calls"][0]["name"]),
        (&json!(1), &json!("echo")),
        "{calls}"
    );
    assert_eq!(page.get("api/calls?after=1").await["calls"], json!([]));
    let savings = page.get("api/savings").await;
    assert!(savings["turns"].as_u64() >= Some(1), "{savings}");
    assert_eq!(savings["servers"][0]["server"], "a", "{savings}");
    assert_eq!(savings["hours"][0]["tokens"], savings["tokens"], "{savings}");
    let found = page.get("api/search?query=echo").await;
    assert_eq!(found["hits"][0]["tool"], "echo", "{found}");
}

#[tokio::test]
async fn stored_state_is_shown_without_a_running_process() {
    let home = DaemonHome::new();
    let mut host = home.proxy([Server::lazy("a")]).serve().await;
    host.load("a").await;
    host.end().await;
    eventually("the daemon has ended", || home.daemons().is_empty()).await;
    let page = open_page(&home).await;
    let overview = page.get("api/overview").await;
    assert_eq!(overview["processes"], json!([]), "{overview}");
    let server = page.server("a").await;
    assert_eq!(server["state"], Value::Null, "{server}");
    assert!(server["toolCounts"]["shown"].as_u64() > Some(1), "{server}");
    let tools = page.get("api/servers/a/tools").await;
    assert!(tools.as_array().unwrap().len() > 1, "{tools}");
    let refused = page.post("api/servers/a/load", &json!({})).await.unwrap_err();
    assert!(refused.contains("no dormouse is running"), "{refused}");
}

#[tokio::test]
async fn changed_tool_is_approved_as_the_user_has_seen_it() {
    let home = DaemonHome::new();
    let with = |wording: &str| {
        let server = Server::lazy("a").set("env", json!({"FIXTURE_WORDING": wording}));
        home.proxy([server]).set("pin", "block")
    };
    let mut host = with(" First.").serve().await;
    host.load("a").await;
    host.end().await;
    eventually("the daemon has ended", || home.daemons().is_empty()).await;
    let mut host = with(" Other.").serve().await;
    host.load("a").await;
    let page = open_page(&home).await;
    let changes = page.get_when("api/servers/a/changes", |changes| *changes != json!([])).await;
    let mut of_echo = changes.as_array().unwrap().iter();
    let of_echo = of_echo.find(|change| change["tool"] == "echo").expect("it has changed");
    let variant = &of_echo["variants"][0];
    assert_eq!(variant["isEarlierKnown"], true);
    let lines = |change: &str| {
        let lines = variant["lines"].as_array().unwrap().iter();
        let of_kind = lines.filter(|line| line["change"] == *change);
        of_kind.map(|line| line["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
    };
    assert!(lines("removed").contains("First.") && lines("added").contains("Other."), "{of_echo}");
    let approve = |definition: &Value| json!({"tool": "echo", "definition": definition});
    let other = page.post("api/servers/a/approve", &approve(&json!("0000"))).await.unwrap_err();
    assert!(other.contains("changed again"), "{other}");
    assert_eq!(host.use_tool("a/echo", json!({})).await["isError"], true, "it is still blocked");
    page.post("api/servers/a/approve", &approve(&of_echo["definition"])).await.unwrap();
    assert!(host.use_tool("a/echo", json!({})).await["isError"].is_null());
    assert_eq!(host.use_tool("a/slow", json!({})).await["isError"], true, "it alone is approved");
}

#[tokio::test]
async fn login_that_is_begun_on_the_page_ends_with_the_browser() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut host = user.host().await;
    host.load("g").await;
    let page = Page::serve(user.command(&["ui", "--no-browser"])).await.open().await;
    let server = page.server("g").await;
    assert_eq!(
        (&server["state"], &server["canLogIn"], &server["login"]),
        (&json!("awaiting-login"), &json!(true), &Value::Null)
    );
    let begun = page.post("api/servers/g/login", &json!({})).await.unwrap();
    let address = begun["address"].as_str().unwrap();
    let progress = &page.server("g").await["loginProgress"];
    assert_eq!((&progress["state"], &progress["address"]), (&json!("waiting"), &json!(address)));
    visit(address).await;
    let is_over = |overview: &Value| overview["servers"][0]["loginProgress"].is_null();
    page.get_when("api/overview", is_over).await;
    let server = page.server("g").await;
    assert_eq!(server["login"]["usable"], true, "{server}");
    assert_eq!(server["loginProgress"], Value::Null);
    assert_eq!(text_of(&host.use_tool("g/t", json!({})).await), "ordinary");
}

#[tokio::test]
async fn secrets_are_not_on_the_page() {
    const SECRET: &str = "canary-51b7e0-secret";
    let home = DaemonHome::new();
    let server = Server::lazy("a").set("env", json!({"API_KEY": SECRET}));
    let gone = Server::lazy("gone")
        .set("url", format!("http://user:{SECRET}@127.0.0.1:1/?key={SECRET}"))
        .set("headers", json!({"Authorization": format!("Bearer {SECRET}")}));
    let mut host = home.proxy([server, gone]).serve().await;
    host.use_tool("a/echo", json!({"text": SECRET})).await;
    host.load("gone").await;
    let page = open_page(&home).await;
    for path in ["overview", "calls?after=0", "savings", "servers/a/tools", "servers/a/stderr"] {
        let shown = page.get(&format!("api/{path}")).await.to_string();
        assert!(!shown.contains(SECRET), "{path}: {shown}");
    }
    let refused = page.post("api/servers/gone/load", &json!({})).await.unwrap_err();
    assert!(!refused.contains(SECRET), "{refused}");
}

/// A browser that has signed in to the page over HTTP.
struct SignedIn {
    /// The address of the page, with a slash at the end.
    page: String,
    cookie: String,
}

/// Sends the form of the page over HTTP, as a page at this origin does. Returns the status of a
/// refusal.
async fn sign_in(program: &Program, origin: &str, token: &str) -> Result<SignedIn, StatusCode> {
    let client = http_client_builder().redirect(Policy::none()).build().expect("a client");
    let request = client.post(program.url("/ui/sign-in").await).header("origin", origin);
    let (_, host) = origin.split_once("://").expect("an origin");
    let request = request.header("host", host);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(format!("token={token}")).send().await.expect("an answer");
    if answer.status() != StatusCode::SEE_OTHER {
        return Err(answer.status());
    }
    let header = |name: &str| answer.headers()[name].to_str().expect("ASCII").to_owned();
    let (location, cookie) = (header("location"), header("set-cookie"));
    assert!(
        cookie.ends_with(&format!("; Path={location}; HttpOnly; SameSite=Strict")),
        "other ports of this host must not get it: {cookie}"
    );
    let cookie = cookie.split(';').next().expect("a pair").to_owned();
    Ok(SignedIn { page: program.url(&location).await, cookie })
}

#[tokio::test]
async fn page_over_http_is_open_to_operators() {
    let home = tempfile::tempdir().unwrap();
    let proxy = Proxy::with([Server::lazy("a")]).at_home(home.path());
    let program = proxy.set("apiTokens", json!(["of-operators"])).start_http();
    let form = http_client().get(program.url("/ui/").await).send().await.unwrap();
    assert!(form.url().path().ends_with("/ui/sign-in"), "{}", form.url());
    assert!(form.text().await.unwrap().contains("<input name=\"token\""));
    let origin = program.url("").await.trim_end_matches('/').to_owned();
    let guessed = sign_in(&program, &origin, "guessed").await;
    assert_eq!(guessed.err(), Some(StatusCode::UNAUTHORIZED));
    let SignedIn { page, cookie } = sign_in(&program, &origin, "of-operators").await.unwrap();
    let overview = format!("{page}api/overview");
    assert_eq!(status_of(&overview, &[]).await, StatusCode::UNAUTHORIZED);
    let shown = http_client().get(&overview).header("cookie", &cookie).send().await.unwrap();
    let shown: Value = serde_json::from_slice(&shown.bytes().await.unwrap()).unwrap();
    assert_eq!((&shown["servers"][0]["name"], &shown["hasSignIn"]), (&json!("a"), &json!(true)));
    let load = http_client().post(format!("{page}api/servers/a/load"));
    let loaded = load.header("cookie", &cookie).header("dormouse-page", "1").send().await.unwrap();
    assert_eq!(loaded.status(), StatusCode::OK);
    let other = [("cookie", cookie.as_str()), ("origin", "http://localhost:1")];
    assert_eq!(status_of(&overview, &other).await, StatusCode::FORBIDDEN);
    let of_earlier_process = program.url("/ui/another-path/api/overview").await;
    let status = status_of(&of_earlier_process, &[("cookie", &cookie)]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let api = program.url("/api/v1/status").await;
    assert_eq!(status_of(&api, &[("cookie", &cookie)]).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn page_behind_a_proxy_needs_only_its_host_name() {
    let home = tempfile::tempdir().unwrap();
    let proxy = Proxy::with([Server::lazy("a")]).at_home(home.path());
    let proxy = proxy.set("apiTokens", json!(["t"])).set("allowedHosts", json!(["d.example"]));
    let program = proxy.start_http();
    let signed_in = sign_in(&program, "https://d.example", "t").await;
    assert!(signed_in.is_ok());
    let other = sign_in(&program, "https://other.example", "t").await;
    assert_eq!(other.err(), Some(StatusCode::FORBIDDEN));
}

#[tokio::test]
async fn page_over_http_is_closed_without_tokens_for_it() {
    let program = Proxy::with([Server::lazy("a")]).start_http();
    for path in ["/ui", "/ui/", "/ui/sign-in", "/ui/api/overview"] {
        let status = status_of(&program.url(path).await, &[]).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
}
