//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use oauth2::{
    HttpRequest, HttpResponse, RefreshToken,
    http::{HeaderMap, HeaderValue, StatusCode, header::WWW_AUTHENTICATE},
};
use rmcp::transport::auth::{
    AuthorizationManager, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest,
    WWWAuthenticateParams,
};
use url::Url;

use super::{
    auth_client::AuthClient,
    auth_method::AuthMethod,
    authorization_response::{ExpectedResponse, InvalidResponse},
    code_login::authorization_url,
    credential::{Credential, LoginClient, LoginFacts, LoginGrant, LoginLifetime, LoginSummary},
    discovery::{AuthServer, metadata_urls},
    guarded_client::{GuardedClient, GuardedClientError, normalized},
    login_error::{TokenError, scrubbed},
    login_file::{LoginFile, StoredSecrets},
    login_url::checked_login_url,
    redaction::redacted,
    registration::RegistrationResponse,
    scopes,
    token_request::{TokenGrant, token_client},
};
use crate::{
    base::{FuzzInput, is_invisible, run_to_end},
    wire::credentials::Challenge,
};

/// A stored login that can be read is written and read again as the same.
///
/// The input is a file.
pub(crate) fn login_file(bytes: &[u8]) {
    let Some(file) = LoginFile::decode(bytes) else { return };
    let written = file.encode().expect("a login can be JSON");
    let again = LoginFile::decode(&written).expect("a written login can be read");
    assert_eq!(again.encode().ok(), Some(written));
    let (login, again) = (login_of(file), login_of(again));
    assert_eq!((&again.facts, &again.tokens), (&login.facts, &login.tokens));
    assert_eq!(again.client_secret, login.client_secret);
    check_login(&login);
}

fn login_of(file: LoginFile) -> Credential {
    let login = file.into_login(|| Ok::<_, Infallible>(StoredSecrets::default()));
    login.unwrap_or_else(|never| match never {})
}

/// Checks the methods of a login, whose times and texts may be anything.
fn check_login(login: &Credential) {
    let now = SystemTime::now();
    let summary = LoginSummary::of(&login.facts);
    assert!(!summary.is_usable || login.facts.lifetime.is_usable);
    let expires_at = login.facts.lifetime.expires_at;
    let expires_at =
        expires_at.map(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at)));
    for random in [0.0, 0.5, 1.0] {
        if let (Some(renewed), Some(Some(expires_at))) = (login.renew_at(random), expires_at) {
            assert!(renewed <= expires_at, "renewed after it has expired");
        }
    }
    assert!(!login.is_expired(now) || login.facts.lifetime.expires_at.is_some());
    assert!(!login.can_be_renewed() || login.tokens.is_some());
    let _ = (login.age(), login.was_granted(), AuthClient::registered_for(login));
    if let Some(shown) = login.authorization() {
        assert!(shown.header().to_str().is_ok_and(|header| header.starts_with("Bearer ")));
    }
    assert!(login.facts.satisfies(&login.facts.grant.scopes) || !is_complete(&login.facts));
    let without = login.clone().without_refresh_token();
    assert!(!without.can_be_renewed() && !without.facts.lifetime.is_renewable);
    let without = login.clone().without_client();
    assert!(without.authorization().is_none() && without.client_secret.is_none());
    assert!(AuthClient::registered_for(&without).is_none() && !without.facts.lifetime.is_usable);
}

fn is_complete(facts: &LoginFacts) -> bool {
    facts.lifetime.is_usable && facts.grant.wanted.is_empty()
}

/// The server of all logins.
static SERVER: LazyLock<Url> =
    LazyLock::new(|| Url::parse("https://mcp.example.com/mcp").expect("a constant"));

/// A client that sends nothing, and knows which addresses may be contacted.
static HTTP: LazyLock<GuardedClient> =
    LazyLock::new(|| GuardedClient::new([SERVER.clone()]).expect("a client"));

const REDIRECT_URI: &str = "http://127.0.0.1:7777/callback";
/// Secrets that a server may repeat.
const SECRETS: [&str; 2] = ["rt-8f31c0de", "s3cr3t value"];

/// Any response of a server or an authorization server leads to a login at a permitted address, or
/// to an error that is short and has no secrets.
///
/// Arguments: the `WWW-Authenticate` header; the metadata of the server; the metadata of its
/// authorization server; the response to a registration; the response to a request for tokens. The
/// rest is the address at which the browser returns.
pub(crate) fn oauth(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let challenge = challenge(input.line());
    let documents = Documents { resource: input.line().to_vec(), server: input.line().to_vec() };
    let registered = registered(input.line());
    check_token_response(input.line(), &registered);
    let returned = input.rest_text();
    check_returned(returned.trim());
    check_address(returned.trim());
    check_scrubbed(&returned);
    check_scopes(&challenge);
    let server = run_to_end(discovered(documents, &challenge));
    if let Some(server) = server {
        run_to_end(check_auth_server(server, &registered));
    }
}

/// Returns the challenge of a response with this header.
fn challenge(header: &[u8]) -> String {
    let Ok(value) = HeaderValue::from_bytes(header) else { return String::new() };
    let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, value)]);
    let forbidden = Challenge::of(StatusCode::FORBIDDEN, &headers);
    let challenge = Challenge::of(StatusCode::UNAUTHORIZED, &headers).expect("always a challenge");
    assert!(forbidden.is_none_or(|it| it.www_authenticate == challenge.www_authenticate));
    challenge.www_authenticate
}

/// The documents with which discovery is answered.
struct Documents {
    resource: Vec<u8>,
    server: Vec<u8>,
}

impl OAuthHttpClient for Documents {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let url = Url::parse(&request.request.uri().to_string()).expect("an absolute address");
        assert!(matches!(url.scheme(), "http" | "https"), "{url} was requested");
        let is_resource = url.path().contains("oauth-protected-resource");
        let document = if is_resource { &self.resource } else { &self.server };
        let status = if document.is_empty() { 404 } else { 200 };
        let response = response(status, document.clone());
        Box::pin(std::future::ready(Ok(response)))
    }
}

fn response(status: u16, body: Vec<u8>) -> HttpResponse {
    let response = oauth2::http::Response::builder().status(status);
    response.header("content-type", "application/json").body(body).expect("a valid response")
}

/// Discovers the authorization server of a server that sends these documents.
async fn discovered(documents: Documents, challenge: &str) -> Option<AuthServer> {
    let client = Arc::new(documents);
    let manager = AuthorizationManager::new_with_oauth_http_client(SERVER.clone(), client).await;
    let manager = manager.expect("a valid address");
    let challenge = Some(challenge).filter(|challenge| !challenge.is_empty());
    let resolved = manager.resolve_metadata_from_challenge(challenge).await.ok()?;
    let is_published = resolved.source.is_discovered();
    AuthServer::of(manager, resolved.metadata, HTTP.clone(), is_published).await.ok()
}

async fn check_auth_server(mut server: AuthServer, client: &AuthClient) {
    check_permitted(&Url::parse(&server.metadata.token_endpoint).expect("a checked address"));
    let _ = (server.auth_methods(), server.secret_auth_method());
    let scopes = server.scopes(&[], &[]).await;
    check_scope_names(&scopes);
    if let Ok(issuer) = Url::parse(&server.issuer) {
        let places = metadata_urls(&issuer);
        assert!(places.iter().all(|place| place.host() == issuer.host()), "{places:?}");
    }
    let url = authorization_url(&mut server, client, REDIRECT_URI, &scopes).await;
    let Ok(url) = url else { return };
    check_permitted(&url);
    for name in ["client_id", "state", "code_challenge", "redirect_uri", "resource"] {
        assert!(url.query_pairs().any(|(key, _)| key == name), "{url} has no {name}");
    }
}

/// Checks that an address is on the Internet or at the server of the config.
fn check_permitted(url: &Url) {
    assert!(url.username().is_empty() && url.password().is_none());
    assert_eq!(url.scheme(), "https", "{url}");
    let is_private = match url.host().expect("an address of a host") {
        url::Host::Ipv4(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
        url::Host::Ipv6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
        url::Host::Domain(name) => name == "localhost",
    };
    assert!(!is_private, "{url} is private");
}

fn registered(body: &[u8]) -> AuthClient {
    let Ok(response) = serde_json::from_slice::<RegistrationResponse>(body) else {
        let known = br#"{"client_id": "c", "client_secret": "s3cr3t value"}"#;
        return registered(known);
    };
    let client = response.into_client(REDIRECT_URI, AuthMethod::ClientSecretPost);
    assert_eq!(client.method == AuthMethod::None, client.secret.is_none());
    assert!(client.expires_at.is_none_or(|at| at > 0));
    assert!(client.secret.as_ref().is_none_or(|secret| !secret.expose().is_empty()));
    client
}

fn check_token_response(body: &[u8], client: &AuthClient) {
    for status in [200, 400] {
        let answer = |_: HttpRequest| {
            let response = normalized(response(status, body.to_vec()));
            std::future::ready(Ok::<_, GuardedClientError>(response))
        };
        let asking = token_client(client, "https://as.example.com/token").expect("a valid URL");
        let token = RefreshToken::new(SECRETS[0].to_owned());
        let request = asking.exchange_refresh_token(&token);
        match run_to_end(request.request_async(&answer)) {
            Ok(response) => check_grant(TokenGrant::of(&response), client),
            Err(error) => check_shown(&TokenError::of(&error, &SECRETS).to_string()),
        }
    }
}

fn check_grant(grant: Result<TokenGrant, TokenError>, client: &AuthClient) {
    let grant = match grant {
        Ok(grant) => grant,
        Err(error) => return check_shown(&error.to_string()),
    };
    let facts = LoginFacts {
        server: redacted(&SERVER),
        issuer: "https://as.example.com".to_owned(),
        resource: SERVER.to_string(),
        token_endpoint: "https://as.example.com/token".to_owned(),
        revocation_endpoint: None,
        client: LoginClient {
            id: client.id.clone(),
            method: client.method,
            redirect_uri: client.redirect_uri.clone(),
            registered_scopes: Vec::new(),
            expires_at: client.expires_at,
        },
        grant: LoginGrant { login_id: Some("id".to_owned()), ..LoginGrant::default() },
        lifetime: LoginLifetime::default(),
    };
    let client_secret = client.secret.clone();
    let before = Credential { facts, client_secret, tokens: None, is_in_file: true };
    let login = grant.into_renewed(before);
    assert!(login.facts.lifetime.is_usable && login.authorization().is_some());
    assert!(!login.is_expired(SystemTime::now()), "a new token has expired");
    check_scope_names(&login.facts.grant.scopes);
    check_login(&login);
}

fn check_scopes(challenge: &str) {
    let asked = WWWAuthenticateParams::parse(challenge, &SERVER).scope.unwrap_or_default();
    check_scope_names(&scopes::valid_scopes(asked.split_whitespace()));
}

fn check_scope_names(scopes: &[String]) {
    let shown = scopes::quoted(scopes);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == ' ' || "_-.:/*+@~\",".contains(c);
    assert!(shown.chars().all(is_plain), "{shown}");
    assert!(scopes.iter().all(|scope| scope.is_ascii() && !scope.contains(char::is_whitespace)));
}

/// Checks the address at which a browser returns, or that a user pastes.
fn check_returned(address: &str) {
    let Ok(url) = Url::parse(address) else { return };
    for (issuer, names_issuer) in [
        (None, false),
        (Some("https://as.example.com"), false),
        (Some("https://as.example.com"), true),
    ] {
        let expected = ExpectedResponse { state: "st-1", issuer, names_issuer };
        match expected.read(&url) {
            Ok(response) => {
                assert_eq!(response.state, "st-1");
                assert!(!url.query_pairs().any(|(key, _)| key == "error"));
                let is_named = response.issuer.is_some();
                assert!(!is_named || response.issuer.as_deref() == issuer);
                assert!(is_named || !names_issuer);
            }
            Err(InvalidResponse::Refused(reason)) => assert!(!reason.contains(is_invisible)),
            Err(InvalidResponse::Foreign | InvalidResponse::WrongIssuer) => {}
        }
    }
}

/// Checks an address that a server asks the user to open.
fn check_address(address: &str) {
    if let Ok(url) = checked_login_url(address, &HTTP) {
        check_permitted(&url);
        let shown = redacted(&url);
        assert!(!shown.contains(['?', '#']), "{shown}");
    }
}

/// Checks the text of a server that errors show.
fn check_scrubbed(said: &str) {
    let shown = scrubbed(said, &SECRETS);
    assert!(shown.chars().count() <= 300, "{shown}");
    check_shown(&shown);
}

fn check_shown(text: &str) {
    assert!(!text.contains(is_invisible), "{text:?}");
    assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "{text}");
}
