//! The preparation of every login: asks the server what it requires, discovers its authorization
//! server, and reads the previous login.

use oauth2::http::{Request, StatusCode, header};

use super::{
    Auth, LoginOwner, LoginTarget,
    credential::{Credential, LoginFacts, LoginGrant},
    discovery::{AuthServer, check_same_authority, discover},
    login_error::LoginError,
    login_store::LoginStore,
};
use crate::{
    config::{Grant, ServerConfig, Transport},
    protocol::method,
    wire::credentials::{Challenge, sensitive_headers},
};

pub(super) struct PreparedLogin {
    pub(super) target: LoginTarget,
    pub(super) auth_server: AuthServer,
    /// Facts of the previous login.
    pub(super) known: Option<LoginFacts>,
    /// The previous login with its secrets, if it can be read and is from the same authorization
    /// server.
    pub(super) before: Option<Credential>,
    pub(super) scopes: Vec<String>,
}

impl Auth {
    /// Discovers a server's authorization server and the scopes to request. `more`: scopes in
    /// addition to those known to be needed.
    pub(super) async fn prepare_login(
        &self,
        server: &ServerConfig,
        owner: Option<LoginOwner>,
        more: &[String],
    ) -> Result<PreparedLogin, LoginError> {
        let target = login_target(server, owner)?;
        self.store().run_for(&target.key, LoginStore::check_writable).await?;
        let said = probe(&target).await?;
        let challenge = said.challenge();
        let auth_server = discover(&target, challenge.unwrap_or_default()).await?;
        if challenge.is_none() && !auth_server.is_published {
            return Err(said.no_login_error(target.name));
        }
        let known = self.store().run_for(&target.key, |store, key| Ok(store.facts(key))).await;
        let known = known.ok().flatten();
        if let Some(known) = &known {
            check_same_authority(&target, &known.issuer, &auth_server)?;
        }
        let is_same = |facts: &LoginFacts| facts.issuer == auth_server.issuer;
        let mut more = more.to_vec();
        if let Some(known) = known.as_ref().filter(|known| is_same(known)) {
            // A new login must not get fewer scopes than the previous one. Scopes that were granted
            // but never requested are left out unless the server demands more, because the
            // authorization server may not accept them in a request.
            let LoginGrant { asked, scopes, wanted, .. } = &known.grant;
            let is_more = !wanted.is_empty();
            let had = scopes.iter().filter(|scope| is_more || asked.contains(scope));
            more.extend(had.chain(wanted).cloned());
        }
        // An unreadable login is replaced.
        let before = self.store().run_for(&target.key, LoginStore::read).await.ok().flatten();
        let before = before.filter(|before| is_same(&before.facts));
        let scopes = auth_server.scopes(&target.oauth.scopes, &more).await;
        Ok(PreparedLogin { target, auth_server, known, before, scopes })
    }
}

fn login_target(
    server: &ServerConfig,
    owner: Option<LoginOwner>,
) -> Result<LoginTarget, LoginError> {
    let name = || server.name.clone();
    match (LoginTarget::of(server, owner), &server.transport) {
        (Some(target), _) if target.oauth.grant == Grant::ClientCredentials => {
            Err(LoginError::ForMachines(name()))
        }
        (Some(target), _) => Ok(target),
        (None, Ok(Transport::Http(_))) => Err(LoginError::HasHeader(name())),
        (None, Err(unavailable)) => Err(LoginError::Unreachable(unavailable.to_string())),
        (None, Ok(Transport::Stdio(_))) => Err(LoginError::NotRemote(name())),
    }
}

const ACCEPT_BOTH: header::HeaderValue =
    header::HeaderValue::from_static("application/json, text/event-stream");

/// A server's answer to a request without credentials. Some servers require a login only for tool
/// calls.
enum ProbeAnswer {
    /// The server requires a login; the text is its `WWW-Authenticate` header.
    Challenge(String),
    /// The server requires no login. The status is that of the first request, or of a later one
    /// that succeeded.
    Other(StatusCode),
}

impl ProbeAnswer {
    fn challenge(&self) -> Option<&str> {
        match self {
            Self::Challenge(challenge) => Some(challenge),
            Self::Other(_) => None,
        }
    }

    /// Returns why a user cannot log in to a server that has sent no challenge and publishes no
    /// metadata.
    fn no_login_error(&self, server: String) -> LoginError {
        match self {
            // Some servers refuse a lone ping outside a session.
            Self::Other(status) if status.is_success() || [400, 422].contains(&status.as_u16()) => {
                LoginError::NotWanted(server)
            }
            Self::Other(status) => {
                LoginError::Unreachable(format!("HTTP status {}", status.as_u16()))
            }
            Self::Challenge(_) => LoginError::NotWanted(server),
        }
    }
}

/// Returns a request that every MCP server answers.
fn ping() -> String {
    serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": method::PING}).to_string()
}

async fn probe(target: &LoginTarget) -> Result<ProbeAnswer, LoginError> {
    let http = target.http()?;
    let url = target.remote.url.as_str();
    // An HTTP+SSE server answers only GET.
    let requests = [
        Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(ping().into_bytes()),
        Request::get(url).body(Vec::new()),
    ];
    let mut taken = None;
    for request in requests {
        let mut request = request.map_err(|error| LoginError::Unreachable(error.to_string()))?;
        request.headers_mut().insert(header::ACCEPT, ACCEPT_BOTH);
        request.headers_mut().extend(sensitive_headers(&target.remote.headers));
        let answer = http.fetch_head(request).await;
        let (status, headers) =
            answer.map_err(|error| LoginError::Unreachable(error.to_string()))?;
        match Challenge::of(status, &headers) {
            // A 403 challenge demands scopes of a client that is already logged in.
            Some(challenge) if challenge.status == 401 => {
                return Ok(ProbeAnswer::Challenge(challenge.www_authenticate));
            }
            _ => {}
        }
        if taken.is_none() || status.is_success() {
            taken = Some(status);
        }
    }
    Ok(ProbeAnswer::Other(taken.unwrap_or_default()))
}
