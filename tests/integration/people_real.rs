//! People of a certified `OpenID` provider.

use serde_json::json;

use crate::support::{
    Authority, Browser, Host, OpenIdProvider, PATIENCE, Program, Server, User, http_client, text_of,
};

/// The public address of the service.
const PUBLIC: &str = "https://mcp.example.com";

fn resource() -> String {
    format!("{PUBLIC}/mcp")
}

/// A service with the servers `a`, and `g`, to which each person logs in.
struct Service {
    provider: OpenIdProvider,
    authority: Authority,
    program: Program,
    _user: User,
}

impl Service {
    async fn start() -> Self {
        let (provider, authority) = (OpenIdProvider::start(PUBLIC).await, Authority::start().await);
        let server = Server::lazy("a");
        let guarded =
            json!({"url": authority.url(), "description": "It wants a login.", "login": "user"});
        let user = User::with_config(&json!({}));
        let config = json!({
            "publicUrl": PUBLIC, "issuers": [provider.entry()],
            "groups": {"engineering": {}, "robots": {"profiles": ["some"]}},
            "profiles": {"some": {"servers": {"a": null}}},
            "mcpServers": {"a": server.at(user.home.path()), "g": guarded},
        });
        std::fs::write(user.home.path().join("dormouse.json"), config.to_string()).unwrap();
        let program = user.proxy().start_http();
        Self { provider, authority, program, _user: user }
    }

    async fn host(&self, token: &str) -> Host {
        let bearer = format!("Bearer {token}");
        let url = self.program.url("/mcp").await;
        let mut host = Host::over_http(&url, &[("authorization", &bearer)]);
        host.initialize(json!({})).await;
        host
    }

    /// Returns the status with which a token is answered.
    async fn status(&self, token: &str) -> u16 {
        let asked = http_client().post(self.program.url("/mcp").await).bearer_auth(token);
        let asked = asked.header("accept", "application/json, text/event-stream");
        let asked = asked.header("content-type", "application/json").body(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}"#,
        );
        asked.send().await.unwrap().status().as_u16()
    }
}

#[tokio::test]
async fn tokens_open_the_service_if_they_are_for_it() {
    let service = Service::start().await;
    let token = service.provider.token_for(&resource()).await;
    assert_eq!(token.split('.').count(), 3, "it is signed");
    let mut host = service.host(&token).await;
    let echo = host.use_tool("a/echo", json!({"text": "for a robot"})).await;
    assert!(text_of(&echo).contains("for a robot"), "{echo}");
    let names = host.description().await;
    assert!(!names.contains("- g:"), "the group of robots has one server: {names}");
    let other = service.provider.token_for("https://other.example.com/mcp").await;
    assert_eq!(service.status(&other).await, 401);
}

#[tokio::test]
async fn new_keys_of_the_provider_are_fetched() {
    let service = Service::start().await;
    let before = service.provider.token_for(&resource()).await;
    assert_eq!(service.status(&before).await, 200);
    service.provider.tell("keys").await;
    let after = service.provider.token_for(&resource()).await;
    // Keys are not fetched again within 10 s.
    let accepted = async { while service.status(&after).await != 200 {} };
    tokio::time::timeout(PATIENCE, accepted).await.expect("the new keys are fetched");
}

#[tokio::test]
async fn provider_is_asked_about_opaque_tokens() {
    let service = Service::start().await;
    service.provider.tell("opaque").await;
    let token = service.provider.token_for(&resource()).await;
    assert!(!token.contains('.'), "it says nothing itself");
    assert_eq!(service.status(&token).await, 200);
    assert_eq!(service.status("invented").await, 401);
    let other = service.provider.token_for("https://other.example.com/mcp").await;
    assert_eq!(service.status(&other).await, 401);
}

#[tokio::test]
async fn person_signs_in_at_the_provider_to_log_in_to_a_server() {
    let service = Service::start().await;
    for (person, status) in [("ada", 200), ("bob", 400)] {
        service.provider.tell(&format!("person/{person}")).await;
        let mut browser = Browser::of_service(PUBLIC, &service.program.url("").await);
        let page = browser.visit(&format!("{PUBLIC}/login/to/g")).await;
        assert_eq!(page.status, status, "{page:?}");
    }
    let grants = service.authority.token_requests();
    let codes = grants.iter().filter(|(_, form)| form["grant_type"] == "authorization_code");
    assert_eq!(codes.count(), 1, "only Ada's group may use the server");
}
