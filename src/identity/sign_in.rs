//! The proof of who a person in front of a browser is: an access token for this service, which the
//! browser brings from the identity provider by a code (RFC 6749, section 4.1, with PKCE).

use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};
use url::{Url, form_urlencoded};

use super::{
    TokenProblem,
    issuer_metadata::{IssuerMetadata, read_json},
};
use crate::{
    base::{Lock, with_causes},
    config::{IssuerEntry, is_secure},
};

/// Age at which the addresses of a provider are requested again.
const MAX_AGE: Duration = Duration::from_hours(1);
/// Minimum interval between two requests for them, since anyone can cause them.
const MIN_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of exchanges of codes at a time, and in one second, since anyone can cause them.
const MAX_EXCHANGES: usize = 64;
const MAX_EXCHANGES_PER_SECOND: u32 = 20;
/// Maximum length of the address of a page, in bytes.
const MAX_ADDRESS_BYTES: usize = 4096;

/// The pages of one provider at which people prove who they are.
pub(super) struct SignIn {
    entry: IssuerEntry,
    /// The name of this service as a resource (RFC 8707).
    resource: String,
    client: Client,
    known: Lock<KnownMetadata>,
    /// Lets one request for the metadata run at a time.
    requesting: Semaphore,
    exchanging: Semaphore,
    /// The exchanges since the begin of a second.
    exchanged: Lock<Option<(Instant, u32)>>,
}

#[derive(Default)]
struct KnownMetadata {
    last: Option<(IssuerMetadata, Instant)>,
    /// The last request, and why it failed.
    attempt: Option<(Instant, String)>,
}

/// The return of a browser from the page of a provider.
pub(crate) struct SignInReturn<'a> {
    pub(crate) redirect_uri: &'a Url,
    pub(crate) code: &'a str,
    /// The issuer that the response names (RFC 9207).
    pub(crate) issuer: Option<&'a str>,
    /// The verifier of the code (RFC 7636).
    pub(crate) verifier: &'a str,
}

/// The answer to the exchange of a code (RFC 6749, section 5.1).
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
}

impl SignIn {
    pub(super) fn new(entry: IssuerEntry, resource: String, client: Client) -> Self {
        let (requesting, exchanging) = (Semaphore::new(1), Semaphore::new(MAX_EXCHANGES));
        let (known, exchanged) = Default::default();
        Self { entry, resource, client, known, requesting, exchanging, exchanged }
    }

    /// Returns the page of the provider. `challenge`: the hash of the verifier (RFC 7636, S256).
    pub(super) async fn address(
        &self,
        redirect_uri: &Url,
        state: &str,
        challenge: &str,
    ) -> Result<Url, TokenProblem> {
        let metadata = self.metadata().await?;
        let page = secure(metadata.authorization_endpoint.as_deref());
        let mut page = page.ok_or_else(|| unavailable("the provider has no https login page"))?;
        page.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.client_id()),
            ("redirect_uri", redirect_uri.as_str()),
            ("resource", &self.resource),
            ("state", state),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
        ]);
        if !self.entry.scopes.is_empty() {
            page.query_pairs_mut().append_pair("scope", &self.entry.scopes.join(" "));
        }
        Ok(page)
    }

    /// Exchanges the code with which a browser has returned for an access token.
    pub(super) async fn token(&self, returned: &SignInReturn<'_>) -> Result<String, TokenProblem> {
        let Some(_exchanging) = self.exchanging.try_acquire().ok().filter(|_| self.may_exchange())
        else {
            return Err(unavailable("too many people are logging in"));
        };
        let metadata = self.metadata().await?;
        let is_named = returned.issuer.is_some() || metadata.names_issuer();
        if is_named && returned.issuer != Some(&self.entry.issuer) {
            // The code may be of another provider, which this one must not get (RFC 9207).
            return Err(TokenProblem::UnknownIssuer);
        }
        let endpoint = secure(metadata.token_endpoint.as_deref());
        let endpoint = endpoint.ok_or_else(|| unavailable("the provider issues no tokens"))?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", returned.code),
            ("redirect_uri", returned.redirect_uri.as_str()),
            ("resource", &self.resource),
            ("code_verifier", returned.verifier),
            ("client_id", self.client_id()),
        ];
        let mut request = self.client.post(endpoint);
        if let Some(secret) = &self.entry.client_secret {
            if metadata.accepts_basic_authentication() {
                request = request.basic_auth(encoded(self.client_id()), Some(encoded(secret)));
            } else {
                form.push(("client_secret", secret));
            }
        }
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json")
            .body(form);
        let answer = request.send().await.map_err(|error| unavailable(with_causes(&error)))?;
        let answer: Value = read_json(answer).await.map_err(unavailable)?;
        let answer = TokenAnswer::deserialize(answer);
        Ok(answer.map_err(|_| unavailable("the provider issued no token"))?.access_token)
    }

    /// Counts an exchange. Returns whether it may be made in this second.
    fn may_exchange(&self) -> bool {
        let mut exchanged = self.exchanged.lock();
        let (begun, count) = exchanged
            .filter(|(begun, _)| begun.elapsed() < Duration::from_secs(1))
            .unwrap_or_else(|| (Instant::now(), 0));
        *exchanged = Some((begun, count + 1));
        count < MAX_EXCHANGES_PER_SECOND
    }

    fn client_id(&self) -> &str {
        self.entry.client_id.as_deref().unwrap_or_default()
    }

    /// Returns the metadata, which is requested once however many people need it. While it cannot
    /// be requested again, the last one is used.
    async fn metadata(&self) -> Result<IssuerMetadata, TokenProblem> {
        if let Some(known) = self.known.lock().current() {
            return known.map_err(unavailable);
        }
        let requesting = self.requesting.acquire().await;
        let _requesting = requesting.map_err(|_| unavailable("dormouse is shutting down"))?;
        // Another request may have got it meanwhile.
        if let Some(known) = self.known.lock().current() {
            return known.map_err(unavailable);
        }
        let has_pages = |metadata: &IssuerMetadata| {
            metadata.authorization_endpoint.is_some() && metadata.token_endpoint.is_some()
        };
        let issuer = &self.entry.issuer;
        let requested = IssuerMetadata::request(&self.client, issuer, has_pages).await;
        let mut known = self.known.lock();
        match requested {
            Ok(metadata) => known.last = Some((metadata, Instant::now())),
            Err(why) => known.attempt = Some((Instant::now(), why)),
        }
        known.present().map_err(unavailable)
    }
}

impl KnownMetadata {
    /// Returns what is known; `None` if it has to be requested.
    fn current(&self) -> Option<Result<IssuerMetadata, String>> {
        let is_young = self.last.as_ref().is_some_and(|(_, at)| at.elapsed() < MAX_AGE);
        let has_just_failed =
            self.attempt.as_ref().is_some_and(|(at, _)| at.elapsed() < MIN_INTERVAL);
        (is_young || has_just_failed).then(|| self.present())
    }

    fn present(&self) -> Result<IssuerMetadata, String> {
        match (&self.last, &self.attempt) {
            (Some((metadata, _)), _) => Ok(metadata.clone()),
            (None, Some((_, why))) => Err(why.clone()),
            (None, None) => Err("nothing is known of the provider".to_owned()),
        }
    }
}

/// Returns an address to which codes and secrets may go: https, or on this machine.
fn secure(url: Option<&str>) -> Option<Url> {
    let url = Url::parse(url.filter(|url| url.len() <= MAX_ADDRESS_BYTES)?).ok()?;
    (is_secure(&url) && url.username().is_empty() && url.password().is_none()).then_some(url)
}

fn unavailable(why: impl Into<String>) -> TokenProblem {
    TokenProblem::Unavailable(why.into())
}

/// Returns a part of the authorization by a secret, which is form-encoded (RFC 6749, section
/// 2.3.1).
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
