//! The proof of who a person in front of a browser is: an access token for this service, which the
//! browser brings from the identity provider by a code (RFC 6749, section 4.1, with PKCE).

use std::time::Duration;

use reqwest::Client;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use super::{
    TokenProblem,
    issuer_metadata::{IssuerMetadata, read_json},
};
use crate::{
    base::{Lock, with_causes},
    config::IssuerEntry,
};

/// Age at which the addresses of a provider are requested again.
const MAX_AGE: Duration = Duration::from_hours(1);
/// Minimum interval between two requests for them that fail, since anyone can cause them.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// The pages of one provider at which people prove who they are.
#[derive(Default)]
pub(super) struct SignIn {
    known: Lock<Option<(Result<IssuerMetadata, String>, Instant)>>,
}

/// The parts of a request for a code, and of the exchange of that code.
pub(crate) struct SignInTerms<'a> {
    pub(crate) redirect_uri: &'a Url,
    /// The name of this service as a resource (RFC 8707).
    pub(crate) resource: &'a str,
}

/// The answer to the exchange of a code (RFC 6749, section 5.1).
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
}

impl SignIn {
    /// Returns the page of the provider. `challenge`: the hash of the verifier (RFC 7636, S256).
    pub(super) async fn address(
        &self,
        client: &Client,
        issuer: &IssuerEntry,
        terms: &SignInTerms<'_>,
        state: &str,
        challenge: &str,
    ) -> Result<Url, TokenProblem> {
        let metadata = self.metadata(client, &issuer.issuer).await?;
        let page = metadata.authorization_endpoint.as_deref().and_then(|url| Url::parse(url).ok());
        let page = page.filter(|page| matches!(page.scheme(), "https" | "http"));
        let mut page = page.ok_or_else(|| unavailable("the provider has no login page"))?;
        page.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", issuer.client_id.as_deref().unwrap_or_default()),
            ("redirect_uri", terms.redirect_uri.as_str()),
            ("resource", terms.resource),
            ("state", state),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256"),
        ]);
        if !issuer.scopes.is_empty() {
            page.query_pairs_mut().append_pair("scope", &issuer.scopes.join(" "));
        }
        Ok(page)
    }

    /// Exchanges the code with which a browser has returned for an access token.
    pub(super) async fn token(
        &self,
        client: &Client,
        issuer: &IssuerEntry,
        terms: &SignInTerms<'_>,
        code: &str,
        verifier: &str,
    ) -> Result<String, TokenProblem> {
        let metadata = self.metadata(client, &issuer.issuer).await?;
        let endpoint = metadata.token_endpoint.as_deref();
        let endpoint = endpoint.ok_or_else(|| unavailable("the provider issues no tokens"))?;
        let client_id = issuer.client_id.as_deref().unwrap_or_default();
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", terms.redirect_uri.as_str()),
            ("resource", terms.resource),
            ("code_verifier", verifier),
            ("client_id", client_id),
        ];
        let mut request = client.post(endpoint);
        if let Some(secret) = &issuer.client_secret {
            let methods = metadata.token_endpoint_auth_methods_supported.as_deref();
            if methods.is_none_or(|all| all.iter().any(|method| method == "client_secret_basic")) {
                request = request.basic_auth(encoded(client_id), Some(encoded(secret)));
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

    async fn metadata(
        &self,
        client: &Client,
        issuer: &str,
    ) -> Result<IssuerMetadata, TokenProblem> {
        let known = self.known.lock().clone();
        let known = known.filter(|(known, requested)| {
            requested.elapsed() < if known.is_ok() { MAX_AGE } else { MIN_INTERVAL }
        });
        let metadata = if let Some((known, _)) = known {
            known
        } else {
            let metadata = IssuerMetadata::request(client, issuer).await;
            *self.known.lock() = Some((metadata.clone(), Instant::now()));
            metadata
        };
        metadata.map_err(unavailable)
    }
}

fn unavailable(why: impl Into<String>) -> TokenProblem {
    TokenProblem::Unavailable(why.into())
}

/// Returns a part of the authorization by a secret, which is form-encoded (RFC 6749, section
/// 2.3.1).
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
