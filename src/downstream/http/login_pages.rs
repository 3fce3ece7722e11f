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
    response::{IntoResponse as _, Response},
    routing::get,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{
    front::HttpFront,
    permissions::may_use_service,
    person_logins::{BegunLogin, BegunSignIn, PersonLogins},
    placement::answer_at_replica_of,
    root_paths::OriginalUri,
};
use crate::{
    auth::{LOGIN_PATH, LoginOwner, LoginPage, RETURN_PATH, login_id_in},
    base::random_token,
    identity::SignInTerms,
};

/// The path to which browsers return from the identity provider.
const IDENTIFIED_PATH: &str = "/login/person";

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
}

/// Adds the routes of the pages. They need no token: the cookies and the identity provider tell who
/// asks.
pub(super) fn with_pages(router: Router<Arc<HttpFront>>) -> Router<Arc<HttpFront>> {
    router
        .route(&format!("{LOGIN_PATH}/{{server}}"), get(begin))
        .route(IDENTIFIED_PATH, get(identified))
        .route(RETURN_PATH, get(done))
}

async fn begin(
    State(front): State<Arc<HttpFront>>,
    Path(server): Path<String>,
    Query(query): Query<BeginQuery>,
) -> Response {
    let Some(pages) = &front.person_logins else { return not_found() };
    if front.fleet.operator().server_with_logins_of_people(&server).is_none() {
        return failed("there is no server of this name to log in to");
    }
    let providers = pages.resource.issuers.names_for_sign_in();
    let chosen = match (query.provider, providers.as_slice()) {
        (None, [only]) => Some(*only),
        (None, _) => return choice(pages, server, &providers),
        (Some(position), all) => all.get(position).copied(),
    };
    let Some(issuer) = chosen else { return not_found() };
    let (verifier, state) = (random_token::<32>(), random_token::<18>());
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
    let redirect_uri = pages.address.with(IDENTIFIED_PATH);
    let resource = pages.resource.resource();
    let terms = SignInTerms { redirect_uri: &redirect_uri, resource: &resource };
    let address = pages.resource.issuers.sign_in_address(issuer, &terms, &state, &challenge).await;
    match address {
        Ok(address) => {
            let issuer = issuer.to_owned();
            let begun = BegunSignIn { server, issuer, verifier, state: state.clone() };
            leave_for(address.as_str(), pages.cookie(&state, &begun))
        }
        Err(problem) => {
            tracing::warn!(%problem, issuer, "people cannot prove who they are");
            failed("the identity provider cannot be reached now; try again later")
        }
    }
}

/// Lets the person choose the identity provider that knows them.
fn choice(pages: &PersonLogins, server: String, providers: &[&str]) -> Response {
    let address = pages.address.of_login(&server);
    let choices = providers.iter().enumerate().map(|(position, name)| {
        let mut address = address.clone();
        address.set_query(Some(&format!("provider={position}")));
        ((*name).to_owned(), address.to_string())
    });
    LoginPage::Choice { server, providers: choices.collect() }.into_response()
}

async fn identified(
    State(front): State<Arc<HttpFront>>,
    Query(query): Query<ReturnQuery>,
    headers: HeaderMap,
) -> Response {
    let Some(pages) = &front.person_logins else { return not_found() };
    let begun = pages.opened::<BegunSignIn>(&headers, &query.state);
    let is_same = |begun: &BegunSignIn| begun.state.as_bytes().ct_eq(query.state.as_bytes());
    let Some(begun) = begun.filter(|begun| is_same(begun).into()) else {
        return failed("this browser has not begun the login, or it took too long; start it again");
    };
    let Some(code) = query.code else {
        let why = query.error.as_deref().unwrap_or("no code");
        return failed(&format!("the identity provider refused: {why}"));
    };
    let redirect_uri = pages.address.with(IDENTIFIED_PATH);
    let resource = pages.resource.resource();
    let terms = SignInTerms { redirect_uri: &redirect_uri, resource: &resource };
    let issuers = &pages.resource.issuers;
    let person = match issuers.signed_in(&begun.issuer, &terms, &code, &begun.verifier).await {
        Ok(person) => person,
        Err(problem) => {
            tracing::warn!(%problem, issuer = begun.issuer, "a person could not be identified");
            return failed("the identity provider did not tell who you are");
        }
    };
    if !may_use_service(&front, &person) {
        return failed("you may not use this service");
    }
    let config = front.fleet.operator().server_with_logins_of_people(&begun.server);
    let Some(config) = config else { return failed("the server is not in the config any more") };
    let owner = LoginOwner(person.fingerprint());
    match pages.logins.begin(&pages.auth, &config, owner).await {
        Ok(login) => {
            let cookie = pages.cookie(&login.id, &BegunLogin { id: login.id.clone() });
            leave_for(login.address.as_str(), cookie)
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
    let uri = request.extensions().get::<OriginalUri>().map_or(request.uri(), |written| &written.0);
    let target = uri.path_and_query().map_or_else(String::new, ToString::to_string);
    if let Some(answer) = answer_at_replica_of(&front, id, target, request.headers()).await {
        return answer;
    }
    let begun = pages.opened::<BegunLogin>(request.headers(), id);
    if !begun.is_some_and(|begun| begun.id.as_bytes().ct_eq(id.as_bytes()).into()) {
        return failed("this browser has not begun the login, or it took too long; start it again");
    }
    pages.logins.complete(id, request.uri().query()).await.into_response()
}

/// Returns the response that leads the browser to another page.
fn leave_for(address: &str, cookie: String) -> Response {
    let (Ok(location), Ok(cookie)) =
        (HeaderValue::try_from(address), HeaderValue::try_from(cookie))
    else {
        return failed("the address of the next page is invalid");
    };
    let headers = [
        (header::LOCATION, location),
        (header::SET_COOKIE, cookie),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn failed(why: &str) -> Response {
    LoginPage::Failed { why: why.to_owned() }.into_response()
}

fn not_found() -> Response {
    StatusCode::NOT_FOUND.into_response()
}
