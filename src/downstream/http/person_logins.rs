//! The pages at which people log in to servers with `"login": "user"`.
//!
//! 1. [`begin`]: the host shows `/login/to/SERVER`, which leads to the identity provider.
//! 2. [`identified`]: the browser comes back, and the provider tells who the person is. A login to
//!    the server begins for that person, whoever has sent the address.
//! 3. [`done`]: the browser comes back from the authorization server of the server, with a code.
//!
//! What is between the steps is in cookies that only replicas can read. They also prove that the
//! browser is the same one, so that nobody can have another person complete a login.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{
    front::HttpFront, permissions::may_use_service, placement::answer_at_replica_of,
    protected_resource::ProtectedResource, root_paths::OriginalUri,
};
use crate::{
    auth::{Auth, LOGIN_PATH, LoginOwner, LoginPage, PublicLogins, RETURN_PATH, login_id_in},
    base::{SealUse, SealingKeys, now_seconds, random_token},
    identity::SignInTerms,
};

/// The path to which browsers return from the identity provider.
const IDENTIFIED_PATH: &str = "/login/person";
/// Time for each of the steps.
const STEP_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum length of a sealed cookie.
const MAX_COOKIE_BYTES: usize = 4096;

/// What the pages need.
pub(crate) struct PersonLogins {
    pub(crate) resource: Arc<ProtectedResource>,
    pub(crate) logins: Arc<PublicLogins>,
    pub(crate) auth: Auth,
    /// Seal the cookies. All replicas have the same ones.
    pub(crate) keys: SealingKeys,
}

/// A person is proving who they are.
#[derive(Serialize, Deserialize)]
struct BegunSignIn {
    server: String,
    issuer: String,
    /// The verifier of the code (RFC 7636).
    verifier: String,
    state: String,
}

/// A person is logging in to a server.
#[derive(Serialize, Deserialize)]
struct BegunLogin {
    id: String,
}

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

/// Returns the routes of the pages. They need no token: the cookies and the identity provider tell
/// who asks.
pub(super) fn routes() -> Router<Arc<HttpFront>> {
    Router::new()
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
    let redirect_uri = pages.logins.address(IDENTIFIED_PATH);
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
    let address = pages.logins.address_of(&server);
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
    let redirect_uri = pages.logins.address(IDENTIFIED_PATH);
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
    match pages.auth.begin_public_login(&config, owner).await {
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

impl PersonLogins {
    /// Returns the cookie that carries a step of a login to the next one. `of`: the random name of
    /// the step.
    fn cookie(&self, of: &str, step: &impl Serialize) -> String {
        let until = now_seconds() + STEP_TIMEOUT.as_secs();
        let step = serde_json::to_vec(&(until, step)).expect("texts can be encoded");
        let sealed = self.keys.seal(SealUse::LoginStep, of.as_bytes(), &step);
        let sealed = BASE64_URL_SAFE_NO_PAD.encode(sealed);
        let secure = if self.is_secure() { "; Secure" } else { "" };
        let (name, age) = (self.cookie_name(of), STEP_TIMEOUT.as_secs());
        format!("{name}={sealed}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
    }

    /// Opens the cookie of a step that is not too old.
    fn opened<T: DeserializeOwned>(&self, headers: &HeaderMap, of: &str) -> Option<T> {
        let name = self.cookie_name(of);
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            all.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
        let (_, sealed) = pairs.find(|(other, _)| other.trim() == name)?;
        let sealed = Some(sealed.trim()).filter(|sealed| sealed.len() <= MAX_COOKIE_BYTES)?;
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let step = self.keys.open(SealUse::LoginStep, of.as_bytes(), &sealed)?;
        let (until, step): (u64, T) = serde_json::from_slice(&step).ok()?;
        (now_seconds() <= until).then_some(step)
    }

    /// Returns the name of a cookie. Browsers take one with `__Host-` only from this very host.
    fn cookie_name(&self, of: &str) -> String {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(of)[..9]);
        let prefix = if self.is_secure() { "__Host-" } else { "" };
        format!("{prefix}dormouse-login-{hash}")
    }

    fn is_secure(&self) -> bool {
        self.logins.address("").scheme() == "https"
    }
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
