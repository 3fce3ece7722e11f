//! Logins of people to servers: each person has their own, made in a browser that proves who they
//! are.

use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use crate::support::{
    Authority, Browser, Host, IdentityProvider, Program, Redis, STORE_KEY, User, eventually,
    redacted,
    remote::{RecordedRequest, json_text, reply},
    text_of,
};

/// The public address of the service.
const PUBLIC: &str = "https://mcp.example.com";

/// A service with a server `g` to which each person logs in.
struct Service {
    provider: IdentityProvider,
    authority: Authority,
    program: Program,
    user: User,
}

fn config(provider: &IdentityProvider, authority: &Authority) -> Value {
    let issuer = json!({
        "issuer": provider.issuer(), "scopes": ["mcp"], "clientId": "dormouse",
        "clientSecret": "canary secret",
    });
    json!({"publicUrl": PUBLIC, "issuers": [issuer], "mcpServers": {"g": entry(authority)}})
}

fn entry(authority: &Authority) -> Value {
    json!({"url": authority.url(), "description": "It wants a login.", "login": "user"})
}

impl Service {
    async fn start() -> Self {
        Self::with(Authority::start().await).await
    }

    async fn with(authority: Authority) -> Self {
        Self::with_settings(authority, json!({})).await
    }

    /// Starts a service with more members of the config.
    async fn with_settings(authority: Authority, settings: Value) -> Self {
        let provider = IdentityProvider::start().await;
        let mut config = config(&provider, &authority);
        config.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let user = User::with_config(&config);
        let program = user.proxy().start_http();
        Self { provider, authority, program, user }
    }

    fn token(&self, person: &str) -> String {
        self.provider.token(&json!({"sub": person, "scope": "mcp"}))
    }

    /// Returns a host of a person, which can show pages if `capabilities` say so.
    async fn host(&self, person: &str, capabilities: Value) -> Host {
        let bearer = format!("Bearer {}", self.token(person));
        let url = self.program.url("/mcp").await;
        let mut host = Host::over_http(&url, &[("authorization", &bearer)]);
        host.initialize(capabilities).await;
        host
    }

    /// Returns a browser in which a person has a session at the identity provider.
    async fn browser(&self, person: &str) -> Browser {
        self.provider.sign_in(person);
        Browser::of_service(PUBLIC, &self.program.url("").await)
    }

    /// Logs a person in to `g`.
    async fn log_in(&self, person: &str) {
        let mut browser = self.browser(person).await;
        let page = browser.visit(&format!("{PUBLIC}/login/to/g")).await;
        assert_eq!(page.status, 200, "{page:?}");
    }

    /// Returns the tokens of calls to the server, in their order.
    fn tokens_of_calls(&self) -> Vec<String> {
        let calls = self.authority.remote.requests().into_iter();
        let calls = calls.filter(|asked| asked.method_name() == "tools/call");
        let token = |asked: RecordedRequest| asked.header("authorization").map(str::to_owned);
        calls.filter_map(token).collect()
    }
}

fn shows_pages() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

fn use_of_t() -> Value {
    json!({"name": "use_tool", "arguments": {"tool_name": "g/t"}})
}

#[tokio::test]
async fn each_person_logs_in_by_way_of_the_host() {
    let service = Service::start().await;
    for person in ["ada", "bob"] {
        let mut host = service.host(person, shows_pages()).await;
        let call = host.send("tools/call", use_of_t()).await;
        let question = host.message("elicitation/create", |_| true).await;
        assert_eq!(question["params"]["url"], format!("{PUBLIC}/login/to/g"));
        host.reply(&question, json!({"action": "accept"})).await;
        let mut browser = service.browser(person).await;
        let page = browser.visit(question["params"]["url"].as_str().unwrap()).await;
        assert_eq!((page.status, page.text.contains("You are logged in")), (200, true), "{page:?}");
        assert_eq!(text_of(&host.answer(call).await["result"]), "ordinary");
        host.notification("notifications/elicitation/complete").await;
        assert!(browser.cookies().iter().all(|name| name.starts_with("__Host-dormouse-login-")));
    }
    let mut again = service.host("ada", json!({})).await;
    assert_eq!(again.use_g().await, "ordinary");
    let tokens: Vec<String> = [1, 2, 1].map(|of| format!("Bearer canary-access-{of}")).into();
    assert_eq!(service.tokens_of_calls(), tokens);
    assert_eq!(service.authority.registrations().len(), 1, "people share the client");
}

#[tokio::test]
async fn host_without_pages_gets_the_address() {
    let service = Service::start().await;
    let mut host = service.host("ada", json!({})).await;
    insta::assert_snapshot!(redacted(&host.use_g().await));
    service.log_in("ada").await;
    assert_eq!(host.use_g().await, "ordinary");
    let mut other = service.host("bob", json!({})).await;
    assert!(other.use_g().await.contains("requires a login"));
}

#[tokio::test]
async fn modern_host_retries_after_the_login() {
    let service = Service::start().await;
    let bearer = format!("Bearer {}", service.token("ada"));
    let url = service.program.url("/mcp").await;
    let mut host = Host::over_http(&url, &[("authorization", &bearer)]).into_modern();
    let first = host.request_as("tools/call", use_of_t(), &shows_pages()).await;
    let asked = &first["inputRequests"]["login"];
    assert_eq!(asked["params"]["url"], format!("{PUBLIC}/login/to/g"), "{first}");
    service.log_in("ada").await;
    let mut again = use_of_t();
    again["requestState"] = first["requestState"].clone();
    again["inputResponses"] = json!({"login": {"action": "accept"}});
    let done = host.request_as("tools/call", again, &shows_pages()).await;
    assert_eq!(text_of(&done), "ordinary", "{done}");
}

#[tokio::test]
async fn address_logs_in_whoever_opens_it() {
    let service = Service::start().await;
    let mut ada = service.host("ada", shows_pages()).await;
    let call = ada.send("tools/call", use_of_t()).await;
    let question = ada.message("elicitation/create", |_| true).await;
    // Eve gets hold of the address.
    let address = question["params"]["url"].as_str().unwrap();
    let page = service.browser("eve").await.visit(address).await;
    assert_eq!(page.status, 200);
    let mut eve = service.host("eve", json!({})).await;
    assert_eq!(eve.use_g().await, "ordinary");
    ada.reply(&question, json!({"action": "decline"})).await;
    let refused = ada.answer(call).await;
    assert!(text_of(&refused["result"]).contains("the user declined"), "{refused}");
}

#[tokio::test]
async fn browser_cannot_complete_the_login_of_another_one() {
    let service = Service::start().await;
    let mut eve = service.browser("eve").await;
    let at_provider = |address: &str| address.contains("/authorize?") && address.contains("state");
    let begun = eve.visit_until(&format!("{PUBLIC}/login/to/g"), at_provider).await;
    let mut ada = service.browser("ada").await;
    let page = ada.visit(begun.way.last().unwrap()).await;
    assert!(page.status == 400 && page.text.contains("has not begun the login"), "{page:?}");
    // Eve proves who she is, and has Ada log in to the server.
    service.provider.sign_in("eve");
    let origin = service.authority.origin().to_owned();
    let at_server = |address: &str| address.starts_with(&format!("{origin}/authorize"));
    let begun = eve.visit_until(&format!("{PUBLIC}/login/to/g"), at_server).await;
    let page = ada.visit(begun.way.last().unwrap()).await;
    assert!(page.status == 400 && page.text.contains("has not begun the login"), "{page:?}");
    assert_eq!(service.authority.token_requests().len(), 0);
    let page = eve.visit(&format!("{PUBLIC}/login/done?state=x&code=y")).await;
    assert_eq!(page.status, 400);
}

#[tokio::test]
async fn strange_requests_for_pages_are_refused() {
    let service = Service::start().await;
    let mut browser = service.browser("ada").await;
    for (path, status) in [
        ("/login/to/unknown", 400),
        ("/login/to/%0d%0aSet-Cookie:%20x=y", 400),
        ("/login/to/g?provider=7", 404),
        ("/login/to/g?provider=x", 400),
        ("/login/person", 401),
        ("/login/person/127.0.0.1", 400),
        ("/login/person/127.0.0.1?state=x&code=y", 400),
        ("/login/done?state=", 400),
        ("/login/other", 401),
    ] {
        let page = browser.visit(&format!("{PUBLIC}{path}")).await;
        assert_eq!(page.status, status, "{path}: {page:?}");
    }
    // A page shows names of strangers as text.
    let page =
        browser.visit(&format!("{PUBLIC}/login/person/127.0.0.1?state=x&error=%3Cb%3E")).await;
    assert!(!page.text.contains("<b>"), "{page:?}");
}

#[tokio::test]
async fn stdio_and_tokens_use_the_login_of_the_service() {
    let authority = Authority::start().await;
    let user = User::with_server(&entry(&authority));
    let mut host = user.proxy().start();
    host.initialize(json!({})).await;
    assert!(host.use_g().await.contains("run `dormouse login g"));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn login_of_one_person_can_be_ended() {
    let service = Service::start().await;
    service.log_in("ada").await;
    service.log_in("bob").await;
    let (is_ended, said) = service.user.run(&["logout", "g", "--person", "ada"]).await;
    assert!(is_ended, "{said}");
    let (_, said) = service.user.run(&["logout", "g", "--person", "eve"]).await;
    assert!(said.contains("not logged in"), "{said}");
    let mut ada = service.host("ada", json!({})).await;
    assert!(ada.use_g().await.contains("requires a login"));
    assert_eq!(service.host("bob", json!({})).await.use_g().await, "ordinary");
}

#[tokio::test]
async fn person_without_permission_cannot_log_in() {
    let authority = Authority::start().await;
    let service = Service::with_settings(authority, json!({"groups": {"staff": {}}})).await;
    let page = service.browser("ada").await.visit(&format!("{PUBLIC}/login/to/g")).await;
    assert!(page.status == 400 && page.text.contains("that you may log in to"), "{page:?}");
    assert_eq!(service.authority.remote.requests().len(), 0);
}

/// Starts a server with a resource that has the name of the token, as that of an account.
async fn with_accounts() -> Authority {
    let answer = |asked: &RecordedRequest| {
        let token = asked.header("authorization")?.trim_start_matches("Bearer ").to_owned();
        let uri = format!("account://{token}");
        let answer = match asked.method_name() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "serverInfo": {"name": "r", "version": "1"},
                "capabilities": {"tools": {}, "resources": {}},
            }),
            "resources/list" => json!({"resources": [{"uri": uri, "name": token}]}),
            "resources/read" => json!({"contents": [{"uri": uri, "text": token}]}),
            _ => return None,
        };
        Some(json_text(&reply(asked, &answer.to_string())))
    };
    Authority::answering(answer).await
}

#[tokio::test]
async fn resources_of_one_person_are_not_listed_for_another() {
    let service = Service::with(with_accounts().await).await;
    let mut hosts = Vec::new();
    for person in ["ada", "bob"] {
        service.log_in(person).await;
        let mut host = service.host(person, json!({})).await;
        assert_eq!(host.use_g().await, "ordinary");
        hosts.push(host);
    }
    for (host, own, other) in [(0, 1, 2), (1, 2, 1), (0, 1, 2)] {
        let listed = hosts[host].request("resources/list", json!({})).await;
        let uris: Vec<&str> = listed["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| resource["uri"].as_str().unwrap())
            .collect();
        assert_eq!(uris, [format!("account://canary-access-{own}")]);
        let uri = format!("account://canary-access-{own}");
        let read = hosts[host].request("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["contents"][0]["text"], format!("canary-access-{own}"));
        let uri = format!("account://canary-access-{other}");
        let read = hosts[host].ask("resources/read", json!({"uri": uri})).await;
        let foreign = format!("\"text\":\"canary-access-{other}\"");
        assert!(!read.to_string().contains(&foreign), "{read}");
    }
}

#[tokio::test]
async fn login_steps_may_reach_any_replica() {
    let Some(redis) = Redis::start().await else { return };
    let shared = json!({"store": redis.url(), "storeKeys": [STORE_KEY]});
    let service = Service::with_settings(Authority::start().await, shared).await;
    let (one, other) = (&service.program, service.user.proxy().start_http());
    service.provider.sign_in("ada");
    let mut browser = Browser::of_service(PUBLIC, &one.url("").await);
    let at_person = |address: &str| address.starts_with(&format!("{PUBLIC}/login/person"));
    let at_done = |address: &str| address.starts_with(&format!("{PUBLIC}/login/done"));
    let begun = browser.visit_until(&format!("{PUBLIC}/login/to/g"), at_person).await;
    browser.find_service_at(&other.url("").await);
    let begun = browser.visit_until(begun.way.last().unwrap(), at_done).await;
    browser.find_service_at(&one.url("").await);
    let page = browser.visit(begun.way.last().unwrap()).await;
    assert_eq!(page.status, 200, "{page:?}");
    let mut host = service.host("ada", json!({})).await;
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn service_and_people_see_no_resources_of_each_other() {
    let authority = with_accounts().await;
    let service = Service::with_settings(authority, json!({"authTokens": ["operator"]})).await;
    let (is_in, said) = service.user.log_in().await;
    assert!(is_in, "{said}");
    service.log_in("ada").await;
    let url = service.program.url("/mcp").await;
    let mut operator = Host::over_http(&url, &[("authorization", "Bearer operator")]);
    operator.initialize(json!({})).await;
    let mut ada = service.host("ada", json!({})).await;
    for host in [&mut operator, &mut ada] {
        assert_eq!(host.use_g().await, "ordinary");
    }
    for _ in 0..2 {
        for (host, own) in [(&mut operator, 1), (&mut ada, 2)] {
            let listed = host.request("resources/list", json!({})).await["resources"].to_string();
            let is_only = listed.contains(&format!("canary-access-{own}\""))
                && listed.matches("\"uri\"").count() == 1;
            assert!(is_only, "{listed}");
        }
    }
}

#[tokio::test]
async fn failures_of_one_person_take_the_server_from_nobody() {
    let authority = Authority::answering(|asked| {
        let is_ada = asked.header("authorization") == Some("Bearer canary-access-1");
        let fails = is_ada && asked.method_name() == "initialize";
        fails.then(|| (axum::http::StatusCode::FORBIDDEN, "no").into_response())
    });
    let service = Service::with(authority.await).await;
    service.log_in("ada").await;
    service.log_in("bob").await;
    let mut ada = service.host("ada", json!({})).await;
    for _ in 0..4 {
        ada.load("g").await;
    }
    let mut bob = service.host("bob", json!({})).await;
    assert!(bob.description().await.contains("- g: It wants a login.\n"));
    assert_eq!(bob.use_g().await, "ordinary");
}

#[tokio::test]
async fn code_of_another_provider_is_not_exchanged() {
    let service = Service::start().await;
    let mut browser = service.browser("ada").await;
    let at_person = |address: &str| address.starts_with(&format!("{PUBLIC}/login/person/"));
    let begun = browser.visit_until(&format!("{PUBLIC}/login/to/g"), at_person).await;
    let returned = begun.way.last().unwrap();
    let elsewhere = returned.replacen("/login/person/127.0.0.1", "/login/person/evil.example", 1);
    for address in [elsewhere, format!("{returned}&iss=https://evil.example")] {
        let page = browser.visit(&address).await;
        assert_eq!(page.status, 400, "{page:?}");
    }
    assert_eq!(service.provider.exchanges(), 0);
    let page = browser.visit(&format!("{returned}&iss={}", service.provider.issuer())).await;
    assert_eq!(page.status, 200, "{page:?}");
}

#[tokio::test]
async fn login_that_outlasts_its_server_is_not_kept() {
    let service = Service::start().await;
    let mut browser = service.browser("ada").await;
    let at_done = |address: &str| address.starts_with(&format!("{PUBLIC}/login/done"));
    let begun = browser.visit_until(&format!("{PUBLIC}/login/to/g"), at_done).await;
    let mut config = config(&service.provider, &service.authority);
    config["mcpServers"]["g"]["login"] = json!("service");
    std::fs::write(service.user.home.path().join("dormouse.json"), config.to_string()).unwrap();
    eventually("it is read again", || !service.program.reloads().is_empty()).await;
    let page = browser.visit(begun.way.last().unwrap()).await;
    assert!(page.status == 400 && page.text.contains("has changed"), "{page:?}");
    assert_eq!(service.authority.token_requests().len(), 0);
}

#[tokio::test]
async fn resource_of_a_server_outside_of_the_profile_is_not_read() {
    let settings = json!({
        "groups": {"all": {}, "some": {"profiles": ["some"]}},
        "profiles": {"some": {"servers": {}}},
    });
    let service = Service::with_settings(with_accounts().await, settings).await;
    let member = |group: &str| {
        service.provider.token(&json!({"sub": "ada", "scope": "mcp", "groups": [group]}))
    };
    service.provider.sign_in_with("ada", &json!({"groups": ["all"]}));
    let mut browser = Browser::of_service(PUBLIC, &service.program.url("").await);
    assert_eq!(browser.visit(&format!("{PUBLIC}/login/to/g")).await.status, 200);
    let url = service.program.url("/mcp").await;
    let mut of_all =
        Host::over_http(&url, &[("authorization", &format!("Bearer {}", member("all")))]);
    of_all.initialize(json!({})).await;
    assert_eq!(of_all.use_g().await, "ordinary");
    let bearer = format!("Bearer {}", member("some"));
    let mut of_some = Host::over_http(&url, &[("authorization", &bearer)]);
    of_some.initialize(json!({})).await;
    for uri in ["account://canary-access-1", "account://unlisted"] {
        let read = of_some.ask("resources/read", json!({"uri": uri})).await;
        assert!(read.get("error").is_some(), "{read}");
    }
}
