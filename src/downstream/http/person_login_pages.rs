//! The pages at which people log in to servers with `"login": "user"`.
//!
//! 1. [`begin`]: the host shows `/login/to/SERVER`, which leads to the identity provider.
//! 2. [`identified`]: the browser comes back, and the provider tells who the person is. A login to
//!    the server begins for that person, whoever has sent the address.
//! 3. [`done`]: the browser comes back from the authorization server of the server, with a code.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{AppendHeaders, IntoResponse as _, Response},
    routing::{MethodRouter, get},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::Url;

use super::{
    front::HttpFront,
    permissions::may_use_server,
    person_login_steps::{BegunLogin, BegunSignIn, PersonLogins},
    placement::answer_at_replica_of,
};
use crate::{
    auth::{LOGIN_PATH, LoginOwner, LoginPage, RETURN_PATH, login_id_in},
    base::{random_token, visible},
    identity::SignInReturn,
};

/// The path to which browsers return from an identity provider. The host of the provider follows
/// it, so that the answer of one provider cannot be taken for that of another.
const IDENTIFIED_PATH: &str = "/login/person";
/// Maximum length of the name of a server, in bytes.
const MAX_NAME_BYTES: usize = 500;
/// Maximum length of what is shown of an error of an identity provider.
const MAX_ERROR_CHARS: usize = 200;

/// The query with which a browser begins.
#[derive(Deserialize)]
struct BeginQuery {
    /// The position of the chosen identity provider.
    provider: Option<usize>,
}

/// The query with which a browser returns (RFC 6749, section 4.1.2).
#[derive(Deserialize)]
struct ReturnQuery {
    state: String,
    code: Option<String>,
    error: Option<String>,
    /// The issuer (RFC 9207).
    iss: Option<String>,
}

/// Adds the routes of the pages. They need no token: the cookies and the identity provider tell who
/// asks.
pub(super) fn with_pages(router: Router<Arc<HttpFront>>) -> Router<Arc<HttpFront>> {
    let only_get = |handler: MethodRouter<Arc<HttpFront>>| {
        // A preview of the page must not use up the code.
        handler.head(|| async { StatusCode::METHOD_NOT_ALLOWED })
    };
    router
        .route(&format!("{LOGIN_PATH}/{{server}}"), only_get(get(begin)))
        .route(&format!("{IDENTIFIED_PATH}/{{provider}}"), only_get(get(identified)))
        .route(RETURN_PATH, only_get(get(done)))
}

async fn begin(
    State(front): State<Arc<HttpFront>>,
    Path(server): Path<String>,
    Query(query): Query<BeginQuery>,
) -> Response {
    let Some(pages) = front.person_logins.as_ref().filter(|_| server.len() <= MAX_NAME_BYTES)
    else {
        return not_found();
    };
    let providers = pages.resource.issuers.names_for_sign_in();
    let chosen = match (query.provider, providers.as_slice()) {
        (None, [only]) => Some(*only),
        (None, _) => return choice(pages, server, &providers),
        (Some(position), all) => all.get(position).copied(),
    };
    let Some(issuer) = chosen else { return not_found() };
    let (verifier, state) = (random_token::<32>(), random_token::<18>());
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let redirect_uri = redirect_uri(pages, issuer);
    let issuers = &pages.resource.issuers;
    match issuers.sign_in_address(issuer, &redirect_uri, &state, &challenge).await {
        Ok(address) => {
            let issuer = issuer.to_owned();
            let begun = BegunSignIn { server, issuer, verifier, state: state.clone() };
            leave_for(address.as_str(), &[pages.cookie(&state, &begun)])
        }
        Err(problem) => {
            tracing::warn!(%problem, issuer, "people cannot prove who they are");
            failed("the identity provider cannot be reached now; try again later")
        }
    }
}

/// Lets the person choose their identity provider.
fn choice(pages: &PersonLogins, server: String, providers: &[&str]) -> Response {
    let address = pages.logins.address().of_login(&server);
    let choices = providers.iter().enumerate().map(|(position, name)| {
        let mut address = address.clone();
        address.set_query(Some(&format!("provider={position}")));
        ((*name).to_owned(), address.to_string())
    });
    LoginPage::Choice { server, providers: choices.collect() }.into_response()
}

async fn identified(
    State(front): State<Arc<HttpFront>>,
    Path(provider): Path<String>,
    Query(query): Query<ReturnQuery>,
    headers: HeaderMap,
) -> Response {
    let Some(pages) = &front.person_logins else { return not_found() };
    let begun = pages.opened::<BegunSignIn>(&headers, &query.state);
    let is_same = |begun: &BegunSignIn| {
        host_of(&begun.issuer) == provider
            && bool::from(begun.state.as_bytes().ct_eq(query.state.as_bytes()))
    };
    let Some(begun) = begun.filter(is_same) else { return not_begun_here() };
    let Some(code) = &query.code else {
        let why = query.error.as_deref().unwrap_or("no code");
        let why: String = visible(why).chars().take(MAX_ERROR_CHARS).collect();
        return failed(&format!("the identity provider refused: {why}"));
    };
    let returned = SignInReturn {
        redirect_uri: &redirect_uri(pages, &begun.issuer),
        code,
        issuer: query.iss.as_deref(),
        verifier: &begun.verifier,
    };
    let person = match pages.resource.issuers.signed_in(&begun.issuer, &returned).await {
        Ok(person) => person,
        Err(problem) => {
            tracing::warn!(%problem, issuer = begun.issuer, "a person could not be identified");
            return failed("the identity provider did not tell who you are");
        }
    };
    let config = front.fleet.operator().server_with_logins_of_people(&begun.server);
    let Some(config) = config.filter(|_| may_use_server(&front, &person, &begun.server)) else {
        return failed("there is no server of this name that you may log in to");
    };
    let owner = LoginOwner(person.fingerprint());
    match pages.logins.begin(&pages.auth, &config, owner).await {
        Ok(login) => {
            let begun = pages.cookie(&login.id, &BegunLogin { id: login.id.clone() });
            leave_for(login.address.as_str(), &[begun, pages.expired_cookie(&query.state)])
        }
        Err(error) => failed(&error.to_string()),
    }
}

async fn done(
    State(front): State<Arc<HttpFront>>,
    Query(query): Query<ReturnQuery>,
    request: Request,
) -> Response {
    let Some(pages) = &front.person_logins else { return not_found() };
    let id = login_id_in(&query.state);
    let begun = pages.opened::<BegunLogin>(request.headers(), id);
    if !begun.is_some_and(|begun| begun.id.as_bytes().ct_eq(id.as_bytes()).into()) {
        return not_begun_here();
    }
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    if let Some(answer) = answer_at_replica_of(&front, id, target, request.headers()).await {
        return answer;
    }
    let expired = AppendHeaders([(header::SET_COOKIE, pages.expired_cookie(id))]);
    let present = |name: &str| front.fleet.operator().server_with_logins_of_people(name);
    (expired, pages.logins.complete(id, request.uri().query(), present).await).into_response()
}

fn redirect_uri(pages: &PersonLogins, issuer: &str) -> Url {
    pages.logins.address().with(&format!("{IDENTIFIED_PATH}/{}", host_of(issuer)))
}

/// Returns the host in the name of an issuer.
fn host_of(issuer: &str) -> String {
    let url = Url::parse(issuer).ok();
    url.and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default()
}

/// Returns the response that leads the browser to another page.
fn leave_for(address: &str, cookies: &[String]) -> Response {
    let Ok(location) = HeaderValue::try_from(address) else {
        return failed("the address of the next page is invalid");
    };
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let cookies: Vec<_> =
        cookies.iter().map(|cookie| (header::SET_COOKIE, cookie.clone())).collect();
    (StatusCode::SEE_OTHER, headers, AppendHeaders(cookies)).into_response()
}

fn not_begun_here() -> Response {
    failed("this browser has not begun the login, or it took too long; start it again")
}

fn failed(why: &str) -> Response {
    LoginPage::Failed { why: why.to_owned() }.into_response()
}

fn not_found() -> Response {
    StatusCode::NOT_FOUND.into_response()
}
