//! What every login begins with: what the server wants, who gives it, and what there was before.

use oauth2::http::{Request, StatusCode, header};

use super::{
    Auth, Site,
    credential::{Credential, Facts},
    discovery::{Discovered, discover},
    error::LoginError,
    store::Store,
};
use crate::{
    config::{ClientProof, Grant, ServerConfig, Transport},
    wire::credentials::{Challenge, sensitive_headers},
};

pub(super) struct Beginning {
    pub(super) site: Site,
    pub(super) discovered: Discovered,
    /// What is known of the login that there was.
    pub(super) known: Option<Facts>,
    /// The whole of it, where it can be read, and was at the same authorization server.
    pub(super) before: Option<Credential>,
    pub(super) scopes: Vec<String>,
}

impl Auth {
    /// Finds out who gives tokens for a server, and what to ask for. `more`: scopes beyond what is known to be needed.
    pub(super) async fn begin(
        &self,
        server: &ServerConfig,
        more: &[String],
    ) -> Result<Beginning, LoginError> {
        let site = site(server)?;
        self.0.store.check()?;
        let said = ask(&site).await?;
        let challenge = said.challenge();
        let discovered = discover(&site, challenge.unwrap_or_default()).await?;
        if challenge.is_none() && !discovered.is_published {
            return Err(said.without_login(site.name));
        }
        let known = self.0.store.facts(&site.slot);
        if let Some(known) = &known {
            same_authority(&site, &known.issuer, &discovered)?;
        }
        let is_same = |facts: &Facts| facts.issuer == discovered.issuer;
        let mut more = more.to_vec();
        if let Some(known) = known.as_ref().filter(|known| is_same(known)) {
            // Who logs in anew is not to have less than before; what nobody has asked for may not be there to ask for.
            let is_more = !known.wanted.is_empty();
            let had = known.scopes.iter().filter(|scope| is_more || known.asked.contains(scope));
            more.extend(had.chain(&known.wanted).cloned());
        }
        // One that cannot be read is replaced.
        let before = self.0.store.at(&site.slot, Store::read).await.ok().flatten();
        let before = before.filter(|before| is_same(&before.facts));
        let scopes = discovered.scopes(&site.oauth.scopes, &more).await;
        Ok(Beginning { site, discovered, known, before, scopes })
    }
}

/// A secret of the config is for one authorization server, and a server cannot have it sent to another by naming that.
pub(super) fn same_authority(
    site: &Site,
    before: &str,
    discovered: &Discovered,
) -> Result<(), LoginError> {
    let has_secret = site.oauth.client.as_ref().is_some_and(|client| {
        matches!(client.proof, Some(ClientProof::Secret(_) | ClientProof::Keychain(_)))
    });
    if !has_secret || site.oauth.auth_server.is_some() || before == discovered.issuer {
        return Ok(());
    }
    let (server, before, now) = (site.name.clone(), before.to_owned(), discovered.issuer.clone());
    Err(LoginError::OtherAuthority { server, before, now })
}

fn site(server: &ServerConfig) -> Result<Site, LoginError> {
    let name = || server.name.clone();
    match (Site::of(server), &server.transport) {
        (Some(site), _) if site.oauth.grant == Grant::ClientCredentials => {
            Err(LoginError::ForMachines(name()))
        }
        (Some(site), _) => Ok(site),
        (None, Ok(Transport::Http(_))) => Err(LoginError::HasHeader(name())),
        (None, Err(unavailable)) => Err(LoginError::Unreachable(unavailable.to_string())),
        (None, Ok(Transport::Stdio(_))) => Err(LoginError::NotRemote(name())),
    }
}

const PING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
const BOTH: header::HeaderValue =
    header::HeaderValue::from_static("application/json, text/event-stream");

/// What a server says to nobody in particular. Some want a login for calls of tools only.
enum Said {
    /// How to log in.
    Challenge(String),
    /// Something else. The status is that of the request which it has taken, if it has taken one.
    Other(StatusCode),
}

impl Said {
    fn challenge(&self) -> Option<&str> {
        match self {
            Self::Challenge(challenge) => Some(challenge),
            Self::Other(_) => None,
        }
    }

    /// Why nobody can log in where nothing is said of that.
    fn without_login(&self, server: String) -> LoginError {
        match self {
            // A ping alone, without a session, is not for everyone.
            Self::Other(status) if status.is_success() || [400, 422].contains(&status.as_u16()) => {
                LoginError::NotWanted(server)
            }
            Self::Other(status) => {
                LoginError::Unreachable(format!("it answers with HTTP status {}", status.as_u16()))
            }
            Self::Challenge(_) => LoginError::NotWanted(server),
        }
    }
}

async fn ask(site: &Site) -> Result<Said, LoginError> {
    let guard = site.guard()?;
    let url = site.remote.url.as_str();
    // An HTTP+SSE server answers a GET only.
    let requests = [
        Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(PING.as_bytes().to_vec()),
        Request::get(url).body(Vec::new()),
    ];
    let mut taken = None;
    for request in requests {
        let mut request = request.map_err(|error| LoginError::Unreachable(error.to_string()))?;
        request.headers_mut().insert(header::ACCEPT, BOTH);
        request.headers_mut().extend(sensitive_headers(&site.remote.headers));
        let answer = guard.head_of(request).await;
        let (status, headers) =
            answer.map_err(|error| LoginError::Unreachable(error.to_string()))?;
        match Challenge::of(status, &headers) {
            // Who is missing scopes is logged in.
            Some(challenge) if challenge.status == 401 => {
                return Ok(Said::Challenge(challenge.www_authenticate));
            }
            _ => {}
        }
        if taken.is_none() || status.is_success() {
            taken = Some(status);
        }
    }
    Ok(Said::Other(taken.unwrap_or_default()))
}
