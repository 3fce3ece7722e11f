//! Logins at an authorization server that does what it is told.

use serde_json::{Value, json};

use crate::support::{Authority, Host, SECRET, User, text_of};

async fn call(host: &mut Host) -> String {
    let result = host.use_tool("g/t", json!({})).await;
    text_of(&result).to_owned()
}

#[tokio::test]
async fn a_missing_login_is_an_error_at_once_that_names_the_command_and_no_strike() {
    let authority = Authority::start().await;
    let user = User::at(authority.url());
    let mut host = user.host().await;
    let config = user.home.path().join("dormouse.json");
    let command = format!("dormouse login g --config {}", config.display());
    for _ in 0..5 {
        let result = host.load("g").await;
        assert_eq!(result["isError"], true);
        assert!(text_of(&result).contains(&format!("run `{command}` in a terminal")), "{result}");
    }
    // It was asked once; after that nobody needed to ask.
    assert_eq!(authority.remote.count("server/discover") + authority.remote.count("initialize"), 1);
    let description = host.description().await;
    assert!(description.contains(&format!("(it wants a login: run `{command}`")), "{description}");
    let (_, status) = user.says(&["status"]).await;
    assert!(status.contains("wants a login"), "{status}");

    assert!(user.log_in().await.0);
    assert_eq!(call(&mut host).await, "ordinary");
}

#[tokio::test]
async fn a_login_asks_for_what_the_server_names_and_shows_that_it_is_the_one() {
    let authority = Authority::start().await;
    authority.says_of_resource("scopes_supported", json!(["read", "write"]));
    let user = User::at(authority.url());
    assert!(user.log_in().await.0);
    let asked = authority.remote.asked();
    let registration = asked.iter().find(|asked| asked.path == "/register").unwrap();
    let wanted = &registration.message;
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
    assert_eq!(call(&mut user.host().await).await, "ordinary");
}

#[tokio::test]
async fn what_comes_back_from_another_login_is_not_taken() {
    for (name, value, expected) in [
        ("state", "another", "not from this login"),
        ("iss", "https://evil.example", "not from this login"),
        ("error", "access_denied", "has refused: access_denied"),
    ] {
        let authority = Authority::start().await;
        authority.returns(name, value);
        let user = User::at(authority.url());
        let (is_in, said) = user.log_in_with(&["--timeout", "2s"]).await;
        assert!(!is_in && said.contains(expected), "{name}: {said}");
        assert!(authority.token_requests().is_empty(), "{name}");
        assert!(user.kept().is_empty());
    }
    let authority = Authority::start().await;
    authority.says("authorization_response_iss_parameter_supported", true);
    let (is_in, said) = User::at(authority.url()).log_in().await;
    assert!(!is_in && said.contains("issuer"), "{said}");
}

#[tokio::test]
async fn a_page_that_is_none_is_not_opened_and_nobody_else_is_asked() {
    for (member, value, expected) in [
        (
            "authorization_endpoint",
            "javascript:alert(1)",
            "the address at which to log in is refused",
        ),
        (
            "authorization_endpoint",
            "file:///etc/passwd",
            "the address at which to log in is refused",
        ),
        (
            "authorization_endpoint",
            "http://192.168.0.1/",
            "the address at which to log in is refused",
        ),
        ("token_endpoint", "https://10.0.0.1/token", "a private network"),
        ("registration_endpoint", "http://93.184.216.34/register", "only https is"),
        ("issuer", "https://evil.example", "issuer mismatch"),
    ] {
        let authority = Authority::start().await;
        authority.says(member, value);
        let user = User::at(authority.url());
        let (is_in, said) = user.log_in().await;
        assert!(!is_in && said.contains(expected), "{member} {value}: {said}");
        assert!(!said.contains("open this address"), "{said}");
    }
    let authority = Authority::start().await;
    authority.says_of_resource("authorization_servers", json!(["https://169.254.169.254"]));
    let (is_in, said) = User::at(authority.url()).log_in().await;
    assert!(!is_in && said.contains("it cannot be found out who gives tokens"), "{said}");
    authority.says_of_resource("authorization_servers", Value::Null);
    authority.says_of_resource("resource", "https://another.example/mcp");
    let (is_in, said) = User::at(authority.url()).log_in().await;
    assert!(!is_in && said.contains("mismatch"), "{said}");
}

#[tokio::test]
async fn a_server_that_wants_no_login_or_cannot_have_one_says_so() {
    let open = crate::support::remote::Remote::start(|_| async { None }).await;
    for (entry, expected) in [
        (json!({"url": open.url}), "answers without a login"),
        (json!({"url": open.url, "headers": {"Authorization": "Bearer x"}}), "has a header"),
        (json!({"command": "x"}), "nothing to log in to"),
        (json!({"url": "http://127.0.0.1:1/mcp"}), "cannot be asked"),
    ] {
        let (is_in, said) = User::of(&entry).log_in().await;
        assert!(!is_in && said.contains(expected), "{entry}: {said}");
    }
}

#[tokio::test]
async fn more_scopes_are_asked_for_when_a_call_needs_them() {
    let authority = Authority::start().await;
    authority.says_of_resource("scopes_supported", json!(["read"]));
    let user = User::at(authority.url());
    assert!(user.log_in().await.0);
    let mut host = user.host().await;
    assert_eq!(call(&mut host).await, "ordinary");
    authority.needs("write");
    let said = call(&mut host).await;
    assert!(
        said.contains("with more scopes (write)") && said.contains("dormouse login g"),
        "{said}"
    );
    let (_, status) = user.says(&["status"]).await;
    assert!(status.contains("the server wants more: write"), "{status}");

    let (_, said) = user.log_in().await;
    assert!(said.contains("scopes read write"), "{said}");
    assert_eq!(call(&mut host).await, "ordinary");
}

#[tokio::test]
async fn a_machine_gets_its_tokens_by_itself() {
    let authority = Authority::start().await;
    authority.gives("refresh_token", Value::Null);
    authority.says_of_resource("scopes_supported", json!(["read"]));
    let user = User::of(&json!({
        "url": authority.url(), "description": "d",
        "oauth": {"grant": "client_credentials", "clientId": "machine", "clientSecret": SECRET},
    }));
    let mut host = user.host().await;
    assert_eq!(call(&mut host).await, "ordinary");
    let (asked, form) = authority.token_requests().remove(0);
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!((form["scope"].as_str(), form["resource"].as_str()), ("read", authority.url()));
    assert!(asked.header("authorization").unwrap().starts_with("Basic "));

    authority.needs("write");
    assert_eq!(call(&mut host).await, "ordinary", "it gets what it lacks");
    let (is_in, said) = user.log_in().await;
    assert!(!is_in && said.contains("nobody has to log in"), "{said}");
}

#[tokio::test]
async fn a_client_of_the_config_is_used_as_it_is() {
    let authority = Authority::start().await;
    authority.says("token_endpoint_auth_methods_supported", json!(["client_secret_post"]));
    let user = User::of(&json!({
        "url": authority.url(), "description": "d",
        "oauth": {"clientId": "mine", "clientSecret": SECRET, "scopes": ["mine"],
            "redirectUri": "http://localhost:0/back"},
    }));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    let asked = authority.remote.asked();
    assert!(asked.iter().all(|asked| asked.path != "/register"));
    let (_, form) = authority.token_requests().remove(0);
    assert_eq!((form["client_id"].as_str(), form["client_secret"].as_str()), ("mine", SECRET));
    assert!(
        form["redirect_uri"].starts_with("http://localhost:")
            && form["redirect_uri"].ends_with("/back")
    );
    assert!(!user.kept().concat().contains(SECRET), "it is in the config");
    assert_eq!(call(&mut user.host().await).await, "ordinary");
}

#[tokio::test]
async fn a_metadata_document_is_a_client_where_it_is_read() {
    for (is_read, expected) in
        [(true, "https://client.example/dormouse.json"), (false, "registered")]
    {
        let authority = Authority::start().await;
        authority.says("client_id_metadata_document_supported", is_read);
        let user = User::of(&json!({
            "url": authority.url(), "description": "d",
            "oauth": {"clientId": "https://client.example/dormouse.json"},
        }));
        let (is_in, said) = user.log_in().await;
        assert!(is_in, "{said}");
        assert_eq!(authority.token_requests()[0].1["client_id"], expected);
    }
}

#[tokio::test]
async fn an_authorization_server_that_the_config_names_is_asked() {
    let authority = Authority::start().await;
    authority.says_of_resource("authorization_servers", json!(["https://10.0.0.1"]));
    let user = User::of(&json!({
        "url": authority.url(), "description": "d", "oauth": {"authServer": authority.origin()},
    }));
    let (is_in, said) = user.log_in().await;
    assert!(is_in, "{said}");
    assert_eq!(call(&mut user.host().await).await, "ordinary");
}

#[tokio::test]
async fn on_another_device_a_code_is_typed_in() {
    let authority = Authority::start().await;
    let user = User::at(authority.url());
    let mut command = user.command(&["login", "g", "--device"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    crate::support::eventually("it asks", || !authority.token_requests().is_empty()).await;
    authority.approve();
    let ended = child.wait_with_output().await.unwrap();
    let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("ABCD-EFGH") && said.contains("/type-it-in"), "{said}");
    assert!(!said.contains("canary-device-code"), "{said}");
    assert_eq!(call(&mut user.host().await).await, "ordinary");

    authority.says("device_authorization_endpoint", Value::Null);
    let (is_in, said) = user.says(&["login", "g", "--device"]).await;
    assert!(!is_in && said.contains("no device flow"), "{said}");
}

#[tokio::test]
async fn a_client_that_was_registered_with_a_secret_keeps_it_over_a_restart() {
    let authority = Authority::start().await;
    authority.says("token_endpoint_auth_methods_supported", json!(["client_secret_basic"]));
    authority.gives("expires_in", 1);
    let user = User::at(authority.url());
    assert!(user.log_in().await.0);
    let mut host = user.host().await;
    while authority.token_requests().len() < 3 {
        assert_eq!(call(&mut host).await, "ordinary");
    }
    let requests = authority.token_requests();
    let shown = requests[0].0.header("authorization").unwrap().to_owned();
    assert!(requests.iter().all(|(asked, _)| asked.header("authorization") == Some(&shown)));
}
