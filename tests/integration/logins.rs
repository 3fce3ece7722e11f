//! Logins at an authorization server whose behaviour the test controls.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::support::{
    Authority, Behaviour, Cases, Host, PATIENCE, SECRET, User, eventually, form, line_of, redacted,
    remote::Remote, text_of,
};

#[tokio::test]
async fn missing_login_names_the_command_and_is_no_strike() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut host = user.host().await;
    for _ in 0..5 {
        let result = host.load("g").await;
        assert_eq!(result["isError"], true);
        insta::assert_snapshot!("load_without_a_login", redacted(text_of(&result)));
    }
    // The first answer is remembered, so later loads send no request.
    assert_eq!(authority.remote.count("server/discover") + authority.remote.count("initialize"), 1);
    let description = host.description().await;
    insta::assert_snapshot!("description_without_a_login", redacted(line_of(&description, "- g:")));
    let (_, status) = user.run(&["status"]).await;
    insta::assert_snapshot!("status_without_a_login", redacted(&status));

    assert!(user.log_in().await.0);
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn eager_server_without_a_login_is_listed_everywhere() {
    let authority = Authority::start().await;
    let user = User::with_config(&json!({
        "surface": "activate",
        "mcpServers": {"g": {"url": authority.url(), "description": "d", "startup": "eager"}},
    }));
    let program = user.proxy().argument("--http").argument("127.0.0.1:0").start_service();
    let mut alone = Host::over_http(&program.url("/servers/g/mcp").await, &[]);
    alone.initialize(json!({})).await;
    let refused = alone.ask("tools/list", json!({})).await;
    let mut cases = Cases::default();
    cases.add("tools/list", refused["error"]["message"].as_str().unwrap());
    let mut host = Host::over_http(&program.url("/mcp").await, &[]);
    host.initialize(json!({})).await;
    let list = host.request("tools/list", json!({})).await;
    assert_eq!(list["tools"][0]["name"], "activate_g", "{list}");
    cases.add("description", list["tools"][0]["description"].as_str().unwrap());
    let refused = host.call("activate_g", json!({})).await;
    cases.add("activate_g", text_of(&refused));
    insta::assert_snapshot!(cases);

    assert!(user.log_in().await.0);
    let activated = host.call("activate_g", json!({})).await;
    assert!(text_of(&activated).contains(r#""activated":true"#), "{activated}");
    assert_eq!(host.tool_names().await, ["g__t"]);
    assert_eq!(alone.tool_names().await, ["t"]);
}

#[tokio::test]
async fn login_requests_the_scopes_of_the_resource() {
    let authority = Authority::start().await;
    authority.set_resource_metadata("scopes_supported", json!(["read", "write"]));
    let user = User::logged_in_at(authority.url()).await;
    let asked = authority.remote.requests();
    let wanted = authority.registrations().remove(0);
    assert_eq!(wanted["token_endpoint_auth_method"], "none");
    assert_eq!(wanted["scope"], "read write");
    let authorize = asked.iter().find(|asked| asked.path == "/authorize").unwrap();
    let query: std::collections::HashMap<String, String> =
        url::form_urlencoded::parse(authorize.query.as_bytes()).into_owned().collect();
    assert_eq!(query["resource"], authority.url());
    assert_eq!(query["code_challenge_method"], "S256");
    assert_eq!(query["redirect_uri"], wanted["redirect_uris"][0]);
    let (_, token) = authority.token_requests().remove(0);
    assert_eq!(token["resource"], authority.url());
    assert!(token["code_verifier"].len() >= 43);
    assert_eq!(user.host().await.use_g().await, "ordinary");
}

#[tokio::test]
async fn foreign_authorization_response_is_rejected() {
    let mut cases = Cases::default();
    for (name, value) in
        [("state", "another"), ("iss", "https://evil.example"), ("error", "access_denied")]
    {
        let authority = Authority::start().await;
        authority.set_redirect_parameter(name, value);
        let user = User::with_server_at(authority.url());
        let (is_in, said) = user.log_in_with(&["--timeout", "2s"]).await;
        assert!(!is_in, "{name}: {said}");
        cases.add(format!("{name}={value}"), &said);
        assert!(authority.token_requests().is_empty(), "{name}");
        assert!(
            !user.stored_logins().concat().contains("accessToken"),
            "only its registration is kept"
        );
    }
    for error in [None, Some("access_denied"), Some("invalid_client")] {
        let authority = Authority::start().await;
        authority.set_metadata("authorization_response_iss_parameter_supported", true);
        error.inspect(|error| authority.set_redirect_parameter("error", error));
        let (is_in, said) = User::with_server_at(authority.url()).log_in().await;
        assert!(!is_in, "{error:?}: {said}");
        cases.add(format!("without iss, error {error:?}"), &said);
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn unsafe_authorization_endpoints_are_refused() {
    let mut cases = Cases::default();
    for (member, value) in [
        ("authorization_endpoint", "javascript:alert(1)"),
        ("authorization_endpoint", "file:///etc/passwd"),
        ("authorization_endpoint", "http://192.168.0.1/"),
        ("token_endpoint", "https://10.0.0.1/token"),
        ("registration_endpoint", "http://93.184.216.34/register"),
        ("issuer", "https://evil.example"),
    ] {
        let authority = Authority::start().await;
        authority.set_metadata(member, value);
        let user = User::with_server_at(authority.url());
        let (is_in, said) = user.log_in().await;
        assert!(!is_in, "{member} {value}: {said}");
        cases.add(format!("{member} {value}"), &said);
    }
    let authority = Authority::start().await;
    authority.set_resource_metadata("authorization_servers", json!(["https://169.254.169.254"]));
    let (is_in, said) = User::with_server_at(authority.url()).log_in().await;
    assert!(!is_in, "{said}");
    cases.add("authorization_servers https://169.254.169.254", &said);
    authority.set_resource_metadata("authorization_servers", Value::Null);
    authority.set_resource_metadata("resource", "https://another.example/mcp");
    let (is_in, said) = User::with_server_at(authority.url()).log_in().await;
    assert!(!is_in, "{said}");
    cases.add("resource https://another.example/mcp", &said);
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn login_without_oauth_is_refused() {
    let open = Remote::start(|_| async { None }).await;
    let mut cases = Cases::default();
    for (case, entry) in [
        ("open", json!({"url": open.url})),
        ("header", json!({"url": open.url, "headers": {"Authorization": "Bearer x"}})),
        ("command", json!({"command": "x"})),
        ("unreachable", json!({"url": "http://127.0.0.1:1/mcp"})),
    ] {
        let (is_in, said) = User::with_server(&entry).log_in().await;
        assert!(!is_in, "{entry}: {said}");
        cases.add(case, &said);
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn call_that_lacks_scopes_asks_for_a_login() {
    let authority = Authority::start().await;
    authority.set_resource_metadata("scopes_supported", json!(["read"]));
    let user = User::logged_in_at(authority.url()).await;
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    authority.require_scope("write");
    let said = host.use_g().await;
    let mut cases = Cases::default();
    cases.add("call", &said);
    let (_, status) = user.run(&["status"]).await;
    cases.add("status", &status);

    let (_, said) = user.log_in().await;
    cases.add("login", &said);
    insta::assert_snapshot!(cases);
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn renewed_token_that_lacks_scopes_asks_for_a_login() {
    let authority = Authority::start().await;
    let user = User::logged_in_at(authority.url()).await;
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    authority.require_scope("write");
    authority.expire_tokens();
    let said = host.use_g().await;
    insta::assert_snapshot!(redacted(&said));
    assert!(user.log_in().await.0);
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn machine_gets_tokens_without_a_user() {
    let authority = Authority::start().await;
    authority.set_token_member("refresh_token", Value::Null);
    authority.set_resource_metadata("scopes_supported", json!(["read"]));
    let user = User::with_server(&json!({
        "url": authority.url(), "description": "d",
        "oauth": {"grant": "client_credentials", "clientId": "machine", "clientSecret": SECRET},
    }));
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    let (asked, form) = authority.token_requests().remove(0);
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!((form["scope"].as_str(), form["resource"].as_str()), ("read", authority.url()));
    assert!(asked.header("authorization").unwrap().starts_with("Basic "));

    authority.require_scope("write");
    assert_eq!(host.use_g().await, "ordinary", "it gets what it lacks");
    let (is_in, said) = user.log_in().await;
    assert!(!is_in, "{said}");
    insta::assert_snapshot!(redacted(&said));
}

#[tokio::test]
async fn configured_client_is_not_registered() {
    let authority = Authority::start().await;
    authority.set_metadata("token_endpoint_auth_methods_supported", json!(["client_secret_post"]));
    let user = User::with_server(&json!({
        "url": authority.url(), "description": "d",
        "oauth": {"clientId": "mine", "clientSecret": SECRET, "scopes": ["mine"],
            "redirectUri": "http://localhost:0/back"},
    }));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert!(authority.registrations().is_empty());
    let (_, form) = authority.token_requests().remove(0);
    assert_eq!((form["client_id"].as_str(), form["client_secret"].as_str()), ("mine", SECRET));
    assert!(
        form["redirect_uri"].starts_with("http://localhost:")
            && form["redirect_uri"].ends_with("/back")
    );
    assert!(!user.stored_logins().concat().contains(SECRET), "it is in the config");
    assert_eq!(user.host().await.use_g().await, "ordinary");
}

#[tokio::test]
async fn metadata_document_is_used_where_it_is_supported() {
    for (is_read, expected) in
        [(true, "https://client.example/dormouse.json"), (false, "registered")]
    {
        let authority = Authority::start().await;
        authority.set_metadata("client_id_metadata_document_supported", is_read);
        let user = User::with_server(&json!({
            "url": authority.url(), "description": "d",
            "oauth": {"clientId": "https://client.example/dormouse.json"},
        }));
        let (is_in, said) = user.log_in().await;
        assert!(is_in, "{said}");
        assert_eq!(authority.token_requests()[0].1["client_id"], expected);
    }
}

#[tokio::test]
async fn configured_authorization_server_is_used() {
    let authority = Authority::start().await;
    authority.set_resource_metadata("authorization_servers", json!(["https://10.0.0.1"]));
    let user = User::with_server(&json!({
        "url": authority.url(), "description": "d", "oauth": {"authServer": authority.origin()},
    }));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert_eq!(user.host().await.use_g().await, "ordinary");
}

#[tokio::test]
async fn device_login_shows_a_code() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    let mut command = user.command(&["login", "g", "--device"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    eventually("it asks", || !authority.token_requests().is_empty()).await;
    authority.approve();
    let ended = child.wait_with_output().await.unwrap();
    let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
    assert!(ended.status.success(), "{said}");
    insta::assert_snapshot!("device_login", redacted(&said));
    assert!(!said.contains("canary-device-code"), "{said}");
    assert_eq!(user.host().await.use_g().await, "ordinary");

    authority.set_metadata("device_authorization_endpoint", Value::Null);
    let (is_in, said) = user.run(&["login", "g", "--device"]).await;
    assert!(!is_in, "{said}");
    insta::assert_snapshot!("no_device_login", redacted(&said));
}

#[tokio::test]
async fn registered_secret_survives_a_restart() {
    let authority = Authority::start().await;
    authority.set_metadata("token_endpoint_auth_methods_supported", json!(["client_secret_basic"]));
    authority.set_token_member("expires_in", 1);
    let user = User::logged_in_at(authority.url()).await;
    let mut host = user.host().await;
    let renewing = async {
        while authority.token_requests().len() < 3 {
            assert_eq!(host.use_g().await, "ordinary");
        }
    };
    tokio::time::timeout(PATIENCE, renewing).await.expect("it is renewed");
    let requests = authority.token_requests();
    let shown = requests[0].0.header("authorization").unwrap().to_owned();
    assert!(requests.iter().all(|(asked, _)| asked.header("authorization") == Some(&shown)));
}

#[tokio::test]
async fn server_that_guards_only_calls_supports_login() {
    let authority = Authority::start().await;
    authority.set_behaviour(Behaviour::GuardsOnlyCalls);
    let user = User::with_server_at(authority.url());
    let mut host = user.host().await;
    host.load("g").await;
    insta::assert_snapshot!(redacted(&host.use_g().await));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn authorization_server_outage_is_no_strike() {
    let authority = Authority::start().await;
    authority.set_token_member("expires_in", 1);
    let user = User::logged_in_at(authority.url()).await;
    authority.set_behaviour(Behaviour::IsDown);
    // The token of the login expires.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    let mut host = user.host().await;
    for _ in 0..5 {
        let result = host.load("g").await;
        insta::assert_snapshot!("authorization_server_outage", redacted(text_of(&result)));
    }
    authority.set_behaviour(Behaviour::Correct);
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn error_page_of_a_gateway_keeps_the_login() {
    let authority = Authority::start().await;
    let user = User::logged_in_at(authority.url()).await;
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    authority.set_behaviour(Behaviour::IsBehindGateway);
    authority.expire_tokens();
    insta::assert_snapshot!(redacted(&host.use_g().await));
    authority.set_behaviour(Behaviour::Correct);
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn login_reports_an_authorization_server_outage() {
    let authority = Authority::start().await;
    authority.set_behaviour(Behaviour::IsDown);
    let (is_in, said) = User::with_server_at(authority.url()).log_in().await;
    assert!(!is_in, "{said}");
    insta::assert_snapshot!(redacted(&said));
}

#[tokio::test]
async fn rejected_token_is_renewed_only_once() {
    let authority = Authority::start().await;
    let user = User::logged_in_at(authority.url()).await;
    authority.set_behaviour(Behaviour::RejectsTokens);
    let mut host = user.host().await;
    for _ in 0..5 {
        let result = host.load("g").await;
        insta::assert_snapshot!("rejected_token", redacted(text_of(&result)));
    }
    assert_eq!(authority.token_requests().len(), 2, "the login, and one renewal");
    // The tokens stay valid, so no further renewal is needed.
    authority.set_behaviour(Behaviour::Correct);
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(authority.token_requests().len(), 2);
}

#[tokio::test]
async fn token_renewed_elsewhere_is_renewed_again() {
    let authority = Authority::start().await;
    let user = User::logged_in_at(authority.url()).await;
    let (mut one, mut other) = (user.host().await, user.host().await);
    for host in [&mut one, &mut other] {
        assert_eq!(host.use_g().await, "ordinary");
    }
    authority.expire_tokens();
    assert_eq!(one.use_g().await, "ordinary");
    authority.expire_tokens();
    assert_eq!(other.use_g().await, "ordinary");
}

#[tokio::test]
async fn expired_token_without_refresh_asks_for_a_login() {
    let authority = Authority::start().await;
    authority.set_token_member("refresh_token", Value::Null);
    let user = User::logged_in_at(authority.url()).await;
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    authority.expire_tokens();
    insta::assert_snapshot!(redacted(&host.use_g().await));
    assert!(user.log_in().await.0);
    assert_eq!(host.use_g().await, "ordinary");
}

#[tokio::test]
async fn refused_scopes_are_not_requested_again() {
    let authority = Authority::start().await;
    authority.set_token_member("scope", "read");
    let user = User::logged_in_at(authority.url()).await;
    let mut host = user.host().await;
    authority.require_scope("write");
    insta::assert_snapshot!("missing_scope", redacted(&host.use_g().await));
    assert!(user.log_in().await.0);
    insta::assert_snapshot!("refused_scope", redacted(&host.use_g().await));
}

#[tokio::test]
async fn wrong_configured_client_keeps_the_login() {
    let authority = Authority::start().await;
    authority.set_token_member("expires_in", 1);
    let user = User::with_server(&json!({
        "url": authority.url(), "description": "d", "oauth": {"clientId": "mine", "clientSecret": SECRET},
    }));
    assert!(user.log_in().await.0);
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    authority.set_behaviour(Behaviour::ForgetsClients);
    let mut host = user.host().await;
    insta::assert_snapshot!(redacted(text_of(&host.load("g").await)));
    assert!(user.stored_logins().concat().contains("refreshToken"));
    authority.set_behaviour(Behaviour::Correct);
    assert_eq!(user.host().await.use_g().await, "ordinary");
}

#[tokio::test]
async fn forgotten_client_registers_again() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    authority.set_behaviour(Behaviour::ForgetsClients);
    let (is_in, said) = user.log_in().await;
    assert!(!is_in, "{said}");
    insta::assert_snapshot!("forgotten_client", redacted(&said));
    // The user has never been logged in.
    insta::assert_snapshot!(redacted(&user.host().await.use_g().await));
    authority.set_behaviour(Behaviour::Correct);
    assert!(user.log_in().await.0);
    assert_eq!(authority.registrations().len(), 2);
}

#[tokio::test]
async fn huge_lifetime_is_accepted() {
    for forever in [json!(i64::MAX), json!(300_000_000_000_u64)] {
        let authority = Authority::start().await;
        authority.set_token_member("expires_in", forever);
        let user = User::with_server_at(authority.url());
        let (is_in, said) = user.log_in().await;
        assert!(is_in, "{said}");
        insta::assert_snapshot!("huge_lifetime", redacted(said.lines().last().unwrap()));
        assert_eq!(user.host().await.use_g().await, "ordinary");
    }
}

#[tokio::test]
async fn lifetime_is_read_from_every_notation() {
    let mut cases = Cases::default();
    for written in
        [json!("3600"), json!(3600.0), json!(3600), json!(-1), json!(1e30), json!("soon")]
    {
        let authority = Authority::start().await;
        authority.set_token_member("expires_in", written.clone());
        let user = User::with_server_at(authority.url());
        let (is_in, said) = user.log_in().await;
        assert!(is_in, "{written}: {said}");
        cases.add(written, said.lines().last().unwrap());
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn invalid_token_is_no_login() {
    let mut cases = Cases::default();
    for token in ["", "a\nb", "naïve"] {
        let authority = Authority::start().await;
        authority.set_token_member("access_token", token);
        let user = User::with_server_at(authority.url());
        let (is_in, said) = user.log_in().await;
        assert!(!is_in, "{said}");
        cases.add(format!("{token:?}"), &said);
        assert!(!user.stored_logins().iter().any(|kept| kept.contains("naïve")));
    }
    insta::assert_snapshot!(cases);
}

#[tokio::test]
async fn browser_and_device_register_separately() {
    let authority = Authority::start().await;
    let user = User::with_server_at(authority.url());
    authority.approve();
    assert!(user.run(&["login", "g", "--device"]).await.0);
    assert!(user.log_in().await.0);
    let registered = authority.registrations();
    assert_eq!(registered.len(), 2);
    assert_eq!(registered[0]["response_types"], json!([]));
    assert_eq!(registered[1]["response_types"], json!(["code"]));
}

#[cfg(unix)]
#[tokio::test]
async fn machine_login_needs_no_storage() {
    let authority = Authority::start().await;
    let user = User::with_server(&json!({
        "url": authority.url(), "description": "d",
        "oauth": {"grant": "client_credentials", "clientId": "machine", "clientSecret": SECRET},
    }));
    // A file in the place of the directory stops even the superuser.
    std::fs::write(user.home.path().join("data"), "a file").unwrap();
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(authority.token_requests().len(), 1);
    authority.require_scope("write");
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(authority.token_requests().len(), 2);
}

#[tokio::test]
async fn wider_scopes_register_the_client_again() {
    let authority = Authority::start().await;
    authority.set_resource_metadata("scopes_supported", json!(["read"]));
    let user = User::logged_in_at(authority.url()).await;
    assert!(user.log_in_with(&["--scope", "read"]).await.0);
    assert_eq!(authority.registrations().len(), 1, "the same client may ask for the same");
    let (is_in, said) = user.log_in_with(&["--scope", "write"]).await;
    assert!(is_in, "{said}");
    let registered = authority.registrations();
    assert_eq!(registered.len(), 2);
    assert_eq!(registered[1]["scope"], "read write");
}

#[tokio::test]
async fn offline_access_requests_consent() {
    let authority = Authority::start().await;
    authority.set_metadata("scopes_supported", json!(["read", "offline_access"]));
    let entry = json!({"url": authority.url(), "description": "d", "oauth": {"scopes": ["read"]}});
    let user = User::with_server(&entry);
    assert!(user.log_in().await.0);
    let asked = authority.remote.requests();
    let authorize = asked.iter().find(|asked| asked.path == "/authorize").unwrap();
    let query: std::collections::HashMap<String, String> =
        url::form_urlencoded::parse(authorize.query.as_bytes()).into_owned().collect();
    assert_eq!(query["scope"], "read offline_access");
    assert_eq!(query["prompt"], "consent");
}

#[tokio::test]
async fn machine_requests_no_refresh_token() {
    let authority = Authority::start().await;
    let entry = json!({"url": authority.url(), "description": "d", "oauth": {
        "grant": "client_credentials", "clientId": "m", "clientSecret": "machine-secret",
        "scopes": ["read", "offline_access"],
    }});
    let mut host = User::with_server(&entry).host().await;
    host.load("g").await;
    let (_, token) = authority.token_requests().remove(0);
    assert_eq!(token["scope"], "read");
}

#[tokio::test]
async fn logout_names_the_revoked_tokens() {
    let authority = Authority::start().await;
    authority.set_behaviour(Behaviour::RevokesOnlyRefreshTokens);
    let user = User::logged_in_at(authority.url()).await;
    let (is_out, said) = user.run(&["logout", "g"]).await;
    assert!(is_out, "{said}");
    insta::assert_snapshot!(redacted(&said));
    assert!(user.stored_logins().is_empty());
}

/// A key for ES256, made for this test.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgrXrC5afiDFD6czsy
dD0ZM9BiknPL+vITn5VVbrNqPK+hRANCAAQGMQGmeAUeFtW+w3yH5Y36Sa70W+id
lwzJZPtOlihgl6XKpx3q5aAnC5jwFZfCi04J6G9blAcwigQqGIZDRPHh
-----END PRIVATE KEY-----
";

#[tokio::test]
async fn private_key_signs_token_and_revocation_requests() {
    let authority = Authority::start().await;
    let entry = json!({
        "url": authority.url(),
        "oauth": {
            "grant": "client_credentials", "clientId": "machine", "privateKey": KEY, "keyId": "k-1",
        },
    });
    let user = User::with_server(&entry);
    assert_eq!(user.host().await.use_g().await, "ordinary");
    let (is_out, said) = user.run(&["logout", "g"]).await;
    assert!(is_out, "{said}");
    insta::assert_snapshot!(redacted(&said));
    let asked = authority.remote.requests();
    for path in ["/token", "/revoke"] {
        let request = asked.iter().find(|asked| asked.path == path).unwrap();
        let form = form(&request.body);
        assert_eq!(form["client_id"], "machine", "{path}");
        let header = form["client_assertion"].split('.').next().unwrap();
        let header = BASE64_URL_SAFE_NO_PAD.decode(header).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        assert_eq!(header["kid"], "k-1", "{path}");
    }
}

#[tokio::test]
async fn device_registers_without_metadata_document_support() {
    let authority = Authority::start().await;
    authority.approve();
    let document = "https://client.example/document.json";
    let user = User::with_server(&json!({"url": authority.url(), "oauth": {"clientId": document}}));
    let (is_in, said) = user.run(&["login", "g", "--device"]).await;
    assert!(is_in, "{said}");
    assert_eq!(authority.registrations().len(), 1);
}

#[tokio::test]
async fn client_unknown_to_the_page_is_registered_again() {
    let authority = Authority::start().await;
    let user = User::logged_in_at(authority.url()).await;
    authority.expire_tokens();
    assert!(user.log_in().await.0);
    assert_eq!(authority.registrations().len(), 1, "a known client is used again");
    authority.set_behaviour(Behaviour::KnowsOnlyClient("new"));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert_eq!(authority.registrations().len(), 2);
    let (_, token) = authority.token_requests().pop().unwrap();
    assert_eq!(token["client_id"], "new");
}

#[tokio::test]
async fn login_shows_the_requested_scopes() {
    let authority = Authority::start().await;
    authority.set_resource_metadata("scopes_supported", json!(["read", "write"]));
    let (is_in, said) = User::with_server_at(authority.url()).log_in().await;
    assert!(is_in, "{said}");
    insta::assert_snapshot!(redacted(&said));
}
