//! People: access tokens of an identity provider, and what their groups may use.

use serde_json::{Value, json};

use crate::support::{
    Cases, Host, IdentityProvider, ModernHost, Program, Proxy, Server, http_client, redacted,
    text_of,
};

fn service(provider: &IdentityProvider, groups: &Value) -> Program {
    let issuer = json!({
        "issuer": provider.issuer(), "scopes": ["mcp"],
        "introspection": {
            "url": format!("{}/introspect", provider.issuer()),
            "clientId": "us", "clientSecret": "secret",
        },
    });
    let profiles = json!({"some": {"servers": {"a": null}}, "other": {"servers": {"b": null}}});
    Proxy::with([Server::lazy("a"), Server::lazy("b")])
        .set("publicUrl", "https://mcp.example.com/")
        .set("issuers", json!([issuer]))
        .set("profiles", profiles)
        .set("groups", groups.clone())
        .set("apiTokens", json!(["operator"]))
        .set("scripts", true)
        .start_http()
}

async fn host(program: &Program, path: &str, token: &str) -> Host {
    let bearer = format!("Bearer {token}");
    Host::over_http(&program.url(path).await, &[("authorization", &bearer)])
}

/// Posts a modern request, and returns the status, the challenge and the body.
async fn post(program: &Program, path: &str, token: Option<&str>) -> (u16, String, String) {
    let params = ModernHost::meta(json!({}));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params});
    let mut asked = http_client().post(program.url(path).await);
    asked = asked.header("content-type", "application/json").body(message.to_string());
    asked = asked.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/list");
    if let Some(token) = token {
        asked = asked.bearer_auth(token);
    }
    let answer = asked.send().await.unwrap();
    let challenge = answer.headers().get("www-authenticate");
    let challenge = challenge.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    (answer.status().as_u16(), challenge, answer.text().await.unwrap())
}

#[tokio::test]
async fn host_finds_the_provider_and_is_served_with_its_token() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({}));
    let (status, challenge, _) = post(&program, "/mcp", None).await;
    assert_eq!(status, 401);
    assert_eq!(
        challenge,
        "Bearer resource_metadata=\"https://mcp.example.com/.well-known/\
            oauth-protected-resource/mcp\", scope=\"mcp\""
    );
    for (path, resource) in [("/mcp", "/mcp"), ("", "")] {
        let url = program.url(&format!("/.well-known/oauth-protected-resource{path}")).await;
        let metadata: Value = http_client().get(url).send().await.unwrap().json().await.unwrap();
        assert_eq!(metadata["resource"], format!("https://mcp.example.com{resource}"));
        assert_eq!(metadata["authorization_servers"], json!([provider.issuer()]));
        assert_eq!(metadata["scopes_supported"], json!(["mcp"]));
    }
    // The endpoints of single servers are a part of the service as a whole.
    let (_, challenge, _) = post(&program, "/servers/a/mcp", None).await;
    assert!(challenge.contains("/oauth-protected-resource\""), "{challenge}");
    let token = provider.token(&json!({"scope": "mcp other"}));
    let mut host = host(&program, "/mcp", &token).await;
    host.initialize(json!({})).await;
    assert!(text_of(&host.use_tool("a/echo", json!({"text": "x"})).await).contains('x'));
    assert_eq!(provider.key_requests(), 1);
}

#[tokio::test]
async fn session_belongs_to_the_person_and_not_to_the_token() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({}));
    let of =
        |subject: &str, at: u64| provider.token(&json!({"sub": subject, "scope": "mcp", "n": at}));
    let mut ada = host(&program, "/mcp", &of("ada", 1)).await;
    ada.initialize(json!({})).await;
    let session = ada.http().session().unwrap();
    for (token, expected) in [(of("ada", 2), 200), (of("eve", 1), 404)] {
        let asked = http_client().post(program.url("/mcp").await).bearer_auth(token);
        let asked = asked.header("mcp-session-id", &session);
        let asked = asked.header("content-type", "application/json");
        let asked = asked.body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(asked.send().await.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn invalid_tokens_are_refused_with_the_reason() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({}));
    let claims = |change: Value| {
        let mut claims = json!({"scope": "mcp"});
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        claims
    };
    let valid = provider.token(&claims(json!({})));
    let unsigned = format!("{}.", valid.rsplit_once('.').unwrap().0);
    let none = provider.token_with(&json!({"alg": "none"}), &claims(json!({})));
    let secret = provider.token_with(&json!({"alg": "HS256", "kid": "1"}), &claims(json!({})));
    let unknown = provider.token_with(&json!({"alg": "ES256", "kid": "?"}), &claims(json!({})));
    let header = |typ: &str| json!({"alg": "ES256", "kid": "1", "typ": typ});
    let typed = |typ: &str| provider.token_with(&header(typ), &claims(json!({})));
    let mut cases = Cases::default();
    for (name, token) in [
        ("token of a logout", typed("logout+jwt")),
        ("expired", provider.token(&claims(json!({"exp": 1_000_000})))),
        ("not yet valid", provider.token(&claims(json!({"nbf": 4_000_000_000_u64})))),
        ("without an expiry", provider.token(&claims(json!({"exp": null})))),
        ("expiry as text", provider.token(&claims(json!({"exp": "4000000000"})))),
        ("other audience", provider.token(&claims(json!({"aud": "https://other.example"})))),
        ("without an audience", provider.token(&claims(json!({"aud": null})))),
        ("without a subject", provider.token(&claims(json!({"sub": null})))),
        ("other issuer", provider.token(&claims(json!({"iss": "https://evil.example"})))),
        ("without the scope", provider.token(&claims(json!({"scope": "other"})))),
        ("foreign key", provider.forged_token(&claims(json!({})))),
        ("unknown key", unknown),
        ("without a signature", unsigned),
        ("algorithm none", none),
        ("shared secret", secret),
        ("not a token", "x".to_owned()),
        ("too long", "x".repeat(20_000)),
    ] {
        let (status, challenge, body) = post(&program, "/mcp", Some(&token)).await;
        let error = challenge.rsplit(", ").next().unwrap_or_default();
        let body: Value = serde_json::from_str(&body).unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        cases.add(name, &redacted(&format!("{status} {error}: {message}")));
    }
    insta::assert_snapshot!(cases);
    for valid in [valid, typed("at+jwt"), typed("application/at+JWT"), typed("JWT")] {
        assert_eq!(post(&program, "/mcp", Some(&valid)).await.0, 200);
    }
}

#[tokio::test]
async fn replaced_key_is_requested_and_invented_keys_are_not() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({}));
    let token = || provider.token(&json!({"scope": "mcp"}));
    let former = token();
    assert_eq!(post(&program, "/mcp", Some(&former)).await.0, 200);
    provider.replace_key();
    assert_eq!(post(&program, "/mcp", Some(&token())).await.0, 200);
    for at in 0..20 {
        let header = json!({"alg": "ES256", "kid": format!("invented {at}")});
        let token = provider.token_with(&header, &json!({"scope": "mcp"}));
        assert_eq!(post(&program, "/mcp", Some(&token)).await.0, 401);
    }
    assert_eq!(provider.key_requests(), 2, "not again within 10 s");
}

#[tokio::test]
async fn provider_is_asked_about_opaque_tokens() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({}));
    provider.know(
        "opaque",
        json!({
            "active": true, "sub": "ada", "exp": 4_000_000_000_u64, "scope": "mcp",
            "aud": "https://mcp.example.com",
        }),
    );
    assert_eq!(post(&program, "/mcp", Some("opaque")).await.0, 200);
    assert_eq!(post(&program, "/mcp", Some("unknown")).await.0, 401);
}

#[tokio::test]
async fn groups_decide_which_profiles_a_person_may_choose() {
    let provider = IdentityProvider::start().await;
    let groups = json!({"all": {}, "few": {"profiles": ["some"]}, "more": {"profiles": ["other"]}});
    let program = service(&provider, &groups);
    let servers = async |groups: &[&str], path: &str| {
        let token = provider.token(&json!({"scope": "mcp", "groups": groups}));
        let (status, _, body) = post(&program, path, Some(&token)).await;
        let has = |server: &str| body.contains(&format!("- {server}:"));
        (status, has("a"), has("b"))
    };
    assert_eq!(servers(&["all"], "/mcp").await, (200, true, true));
    assert_eq!(servers(&["few"], "/mcp").await, (200, true, false));
    assert_eq!(servers(&["few"], "/mcp?profile=some").await, (200, true, false));
    assert_eq!(servers(&["few"], "/mcp?profile=other").await.0, 403);
    assert_eq!(servers(&["few", "more"], "/mcp?profile=other").await, (200, false, true));
    assert_eq!(servers(&["few", "all"], "/mcp").await, (200, true, true));
    assert_eq!(servers(&["strangers"], "/mcp").await.0, 403);
    assert_eq!(servers(&[], "/mcp").await.0, 403);
    assert_eq!(servers(&["few"], "/servers/b/mcp").await.0, 404);
}

#[tokio::test]
async fn calls_beyond_the_limit_of_a_group_are_refused_until_the_next_minute() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({"few": {"callsPerMinute": 3}, "many": {}}));
    let token = |subject: &str, groups: &[&str]| {
        provider.token(&json!({"scope": "mcp", "sub": subject, "groups": groups}))
    };
    let call = async |token: &str| {
        let arguments = json!({"tool_name": "a/echo", "tool_input": {"text": "x"}});
        let params = ModernHost::meta(json!({"name": "use_tool", "arguments": arguments}));
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let asked = http_client().post(program.url("/mcp").await).bearer_auth(token);
        let asked =
            asked.header("mcp-protocol-version", "2026-07-28").header("mcp-name", "use_tool");
        let asked =
            asked.header("content-type", "application/json").header("mcp-method", "tools/call");
        asked.body(message.to_string()).send().await.unwrap()
    };
    // A minute may end in between.
    let mut refused = None;
    for _ in 0..8 {
        let answer = call(&token("ada", &["few"])).await;
        if answer.status() == 429 {
            refused = Some(answer);
        }
    }
    let refused = refused.expect("six calls at most in two minutes");
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
    let body: Value = refused.json().await.unwrap();
    let message = format!("the limit of 3 calls per minute is reached; try again in {wait} s");
    assert_eq!((&body["id"], &body["error"]["message"]), (&json!(7), &json!(message)));
    for _ in 0..8 {
        assert_eq!(call(&token("eve", &["few", "many"])).await.status(), 200, "the most generous");
    }
}

#[tokio::test]
async fn calls_of_a_script_beyond_the_limit_of_its_last_token_fail() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({"few": {"callsPerMinute": 6}, "many": {}}));
    let token = |groups: &[&str]| provider.token(&json!({"scope": "mcp", "groups": groups}));
    let mut host = host(&program, "/mcp", &token(&["many"])).await;
    host.initialize(json!({})).await;
    let code = "try {
            for (let at = 0; at < input.calls; at++) await mcp.a.echo({ at });
            return 'all';
        } catch (error) { return error.message }";
    let script = |calls: u32| {
        let arguments = json!({"code": code, "input": {"calls": calls}});
        json!({"name": "run_script", "arguments": arguments})
    };
    assert_eq!(text_of(&host.request("tools/call", script(2)).await), "all");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": script(20)});
    let asked = http_client().post(program.url("/mcp").await).bearer_auth(token(&["few"]));
    let asked = asked.header("mcp-session-id", host.http().session().unwrap());
    let asked = asked.header("content-type", "application/json").body(message.to_string());
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.status(), 200, "the script runs");
    let answer = answer.text().await.unwrap();
    assert!(
        answer.contains("the limit of 6 calls per minute is reached; try again in"),
        "{answer}"
    );
}

#[tokio::test]
async fn log_of_calls_names_the_person() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({"few": {}}));
    let token = provider.token(&json!({"scope": "mcp", "groups": ["few", "more"]}));
    let mut host = host(&program, "/mcp", &token).await;
    host.initialize(json!({})).await;
    host.use_tool("a/echo", json!({"text": "x"})).await;
    let asked = http_client().get(program.url("/api/v1/calls").await).bearer_auth("operator");
    let calls: Value = asked.send().await.unwrap().json().await.unwrap();
    let person = json!({"issuer": provider.issuer(), "subject": "ada", "groups": ["few", "more"]});
    assert_eq!(calls[0]["person"], person, "{calls}");
}

#[tokio::test]
async fn session_ends_for_a_person_who_has_left_the_group() {
    let provider = IdentityProvider::start().await;
    let program = service(&provider, &json!({"all": {}, "few": {"profiles": ["some"]}}));
    let token = |groups: &[&str]| provider.token(&json!({"scope": "mcp", "groups": groups}));
    let mut ada = host(&program, "/mcp", &token(&["all", "few"])).await;
    ada.initialize(json!({})).await;
    let session = ada.http().session().unwrap();
    for (groups, expected) in [(&["all"][..], 200), (&["few"], 404), (&["none"], 403)] {
        let asked = http_client().post(program.url("/mcp").await).bearer_auth(token(groups));
        let asked = asked.header("mcp-session-id", &session);
        let asked = asked.header("content-type", "application/json");
        let asked = asked.body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(asked.send().await.unwrap().status(), expected, "{groups:?}");
    }
}
