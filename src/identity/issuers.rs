//! All identity providers of the config, and the tokens that were checked lately.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jsonwebtoken::{dangerous::insecure_decode_claims, decode_header};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use url::Url;

use super::{Person, SignInReturn, TokenProblem, issuer::Issuer, sign_in::SignIn, signatures};
use crate::{
    base::{Lock, now_seconds},
    config::IssuerEntry,
    wire::http_client_builder,
};

/// Maximum length of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// Time for which a token is not checked again.
const CHECK_LIFETIME: Duration = Duration::from_secs(30);
/// Maximum number of tokens that are not checked again.
const MAX_CHECKED: usize = 10_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The identity providers whose tokens are accepted.
pub(crate) struct Issuers {
    all: Vec<Issuer>,
    checked: Lock<HashMap<[u8; 32], CheckedToken>>,
}

#[derive(Clone)]
struct CheckedToken {
    person: Arc<Person>,
    checked: Instant,
}

impl Issuers {
    /// Returns the providers of the config; `None` if it has none. `audiences`: the names of this
    /// service in tokens, unless an entry has others.
    ///
    /// # Errors
    /// If no HTTP client can be made.
    pub(crate) fn new(
        entries: &[IssuerEntry],
        audiences: &[String],
    ) -> Result<Option<Self>, reqwest::Error> {
        if entries.is_empty() {
            return Ok(None);
        }
        signatures::install();
        let client = http_client_builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let all = entries
            .iter()
            .map(|entry| Issuer::new(entry.clone(), audiences, client.clone()))
            .collect();
        Ok(Some(Self { all, checked: Lock::default() }))
    }

    /// Returns the names of the providers.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.all.iter().map(Issuer::name).collect()
    }

    /// Returns the names of the providers at which people can prove who they are.
    pub(crate) fn names_for_sign_in(&self) -> Vec<&str> {
        self.all.iter().filter(|it| it.sign_in().is_some()).map(Issuer::name).collect()
    }

    /// Returns the page of a provider at which a person proves who they are. `challenge`: the hash
    /// of the verifier (RFC 7636, S256).
    ///
    /// # Errors
    /// If the provider is unknown, or cannot be reached.
    pub(crate) async fn sign_in_address(
        &self,
        issuer: &str,
        redirect_uri: &Url,
        state: &str,
        challenge: &str,
    ) -> Result<Url, TokenProblem> {
        let (_, pages) = self.with_sign_in(issuer)?;
        pages.address(redirect_uri, state, challenge).await
    }

    /// Returns the person who has returned from that page with a code.
    ///
    /// # Errors
    /// If the provider does not accept the code, or its token gives no access.
    pub(crate) async fn signed_in(
        &self,
        issuer: &str,
        returned: &SignInReturn<'_>,
    ) -> Result<Person, TokenProblem> {
        let (issuer, pages) = self.with_sign_in(issuer)?;
        let token = pages.token(returned).await?;
        issuer.owner(&token).await
    }

    fn with_sign_in(&self, name: &str) -> Result<(&Issuer, &SignIn), TokenProblem> {
        let mut all = self.all.iter();
        let found = all.find_map(|issuer| {
            let pages = issuer.sign_in().filter(|_| issuer.name() == name)?;
            Some((issuer, pages))
        });
        found.ok_or(TokenProblem::UnknownIssuer)
    }

    /// Returns the scopes that tokens must have.
    pub(crate) fn scopes(&self) -> Vec<&str> {
        let mut scopes: Vec<&str> =
            self.all.iter().flat_map(Issuer::scopes).map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// Returns the owner of an access token.
    ///
    /// # Errors
    /// The reason that the token gives no access.
    pub(crate) async fn owner(&self, token: &str) -> Result<Arc<Person>, TokenProblem> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenProblem::Invalid(format!("it has more than {MAX_TOKEN_BYTES} bytes")));
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        if let Some(person) = self.checked(&hash) {
            return Ok(person);
        }
        let person = Arc::new(self.check(token).await?);
        let mut checked = self.checked.lock();
        if checked.len() >= MAX_CHECKED {
            checked.clear();
        }
        let token = CheckedToken { person: person.clone(), checked: Instant::now() };
        checked.insert(hash, token);
        Ok(person)
    }

    fn checked(&self, hash: &[u8; 32]) -> Option<Arc<Person>> {
        let checked = self.checked.lock();
        let token = checked.get(hash)?;
        let is_valid =
            token.checked.elapsed() < CHECK_LIFETIME && token.person.expires > now_seconds();
        is_valid.then(|| token.person.clone())
    }

    async fn check(&self, token: &str) -> Result<Person, TokenProblem> {
        let Ok(header) = decode_header(token) else {
            let issuer = self.all.iter().find(|issuer| issuer.introspects());
            let issuer = issuer.ok_or(TokenProblem::UnknownIssuer)?;
            return issuer.owner_of_opaque(token).await;
        };
        // The claims are believed only after the signature has been checked with the keys of the
        // issuer that they name.
        let claims = insecure_decode_claims::<Value>(token);
        let claims = claims.map_err(|_| TokenProblem::Invalid("it is malformed".to_owned()))?;
        let issuer = self.all.iter().find(|issuer| claims["iss"] == issuer.name());
        let issuer = issuer.ok_or(TokenProblem::UnknownIssuer)?;
        issuer.owner_of_signed(token, &header).await
    }
}
