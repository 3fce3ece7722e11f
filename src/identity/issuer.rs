//! One identity provider, whose tokens are accepted.

use std::sync::Arc;

use jsonwebtoken::{
    DecodingKey, Header, Validation, decode, decode_header,
    errors::{Error, ErrorKind},
    jwk::PublicKeyUse,
};
use reqwest::Client;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{
    Person, TokenProblem, introspection::introspect, key_set::KeySet, person::LEEWAY,
    sign_in::SignIn, signatures,
};
use crate::config::IssuerEntry;

/// Maximum number of questions about tokens at a time.
const MAX_QUESTIONS: usize = 64;

pub(super) struct Issuer {
    entry: IssuerEntry,
    /// The names of this service in tokens.
    audiences: Vec<String>,
    keys: Arc<KeySet>,
    client: Client,
    /// Limits the questions about tokens, which anyone can cause.
    asking: Semaphore,
    /// `None` if the config has no client for it.
    sign_in: Option<SignIn>,
}

impl Issuer {
    /// `default_audiences`: the names of this service if the entry has none.
    pub(super) fn new(entry: IssuerEntry, default_audiences: &[String], client: Client) -> Self {
        let audiences = if entry.audience.is_empty() {
            default_audiences.to_vec()
        } else {
            entry.audience.clone()
        };
        let keys = KeySet::new(entry.issuer.clone(), entry.jwks_url.clone(), client.clone());
        let asking = Semaphore::new(MAX_QUESTIONS);
        // The default names the endpoint of all servers last.
        let is_configured = !entry.audience.is_empty();
        let resource = if is_configured { audiences.first() } else { audiences.last() };
        let sign_in = entry.client_id.is_some().then(|| {
            SignIn::new(entry.clone(), resource.cloned().unwrap_or_default(), client.clone())
        });
        Self { entry, audiences, keys, client, asking, sign_in }
    }

    pub(super) fn name(&self) -> &str {
        &self.entry.issuer
    }

    pub(super) fn scopes(&self) -> &[String] {
        &self.entry.scopes
    }

    /// Returns the pages at which people prove who they are; `None` without a client of the config.
    pub(super) fn sign_in(&self) -> Option<&SignIn> {
        self.sign_in.as_ref()
    }

    /// Returns the owner of a token that this provider has issued.
    pub(super) async fn owner(&self, token: &str) -> Result<Person, TokenProblem> {
        match decode_header(token) {
            Ok(header) => self.owner_of_signed(token, &header).await,
            Err(_) => self.owner_of_opaque(token).await,
        }
    }

    /// Returns whether the provider can be asked about tokens.
    pub(super) fn introspects(&self) -> bool {
        self.entry.introspection.is_some()
    }

    /// Returns the owner of a signed token (RFC 9068, section 4).
    pub(super) async fn owner_of_signed(
        &self,
        token: &str,
        header: &Header,
    ) -> Result<Person, TokenProblem> {
        let invalid = |why: &str| TokenProblem::Invalid(why.to_owned());
        if !header.typ.as_deref().is_none_or(may_be_access_token) {
            return Err(invalid("its typ is not that of an access token"));
        }
        if !signatures::ALGORITHMS.contains(&header.alg) {
            return Err(invalid("its signature has an algorithm that is not accepted"));
        }
        let key = self.keys.key(header.kid.as_deref()).await;
        let key = key.map_err(TokenProblem::Unavailable)?;
        let key = key.ok_or_else(|| invalid("it is signed with an unknown key"))?;
        let is_for_this = key
            .common
            .key_algorithm
            .is_none_or(|named| named.to_string() == format!("{:?}", header.alg));
        let signs = key.common.public_key_use.as_ref();
        if !is_for_this || signs.is_some_and(|usage| *usage != PublicKeyUse::Signature) {
            return Err(invalid("it is signed with a key that is meant for something else"));
        }
        let key = DecodingKey::from_jwk(&key).map_err(|error| invalid(&reason(&error)))?;
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.entry.issuer]);
        validation.set_audience(&self.audiences);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        (validation.validate_nbf, validation.leeway) = (true, LEEWAY);
        let decoded = decode::<Value>(token, &key, &validation);
        let claims = decoded.map_err(|error| invalid(&reason(&error)))?.claims;
        let person = Person::of(&self.entry.issuer, &claims, &self.entry.groups_claim);
        self.with_scopes(person.ok_or_else(|| invalid("it has no subject"))?)
    }

    /// Returns the owner of a token about which the provider is asked.
    pub(super) async fn owner_of_opaque(&self, token: &str) -> Result<Person, TokenProblem> {
        let Some(entry) = &self.entry.introspection else {
            return Err(TokenProblem::UnknownIssuer);
        };
        let Ok(_asking) = self.asking.try_acquire() else {
            let why = "too many tokens are being checked".to_owned();
            return Err(TokenProblem::Unavailable(why));
        };
        let person = introspect(&self.client, &self.entry, entry, &self.audiences, token).await?;
        self.with_scopes(person)
    }

    fn with_scopes(&self, person: Person) -> Result<Person, TokenProblem> {
        let missing = self.entry.scopes.iter().filter(|scope| !person.scopes.contains(scope));
        let missing: Vec<String> = missing.cloned().collect();
        if missing.is_empty() { Ok(person) } else { Err(TokenProblem::MissingScopes(missing)) }
    }
}

/// Returns whether access tokens have this media type. Many providers do not name the one of RFC
/// 9068, section 2.1, but the one of all JWTs.
fn may_be_access_token(media_type: &str) -> bool {
    let lower = media_type.to_ascii_lowercase();
    matches!(lower.strip_prefix("application/").unwrap_or(&lower), "at+jwt" | "jwt")
}

/// Returns what is wrong with a token.
fn reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ExpiredSignature => "it has expired".to_owned(),
        ErrorKind::ImmatureSignature => "it is not valid yet".to_owned(),
        ErrorKind::InvalidAudience => "it is for another audience".to_owned(),
        ErrorKind::InvalidIssuer => "it is of another issuer".to_owned(),
        ErrorKind::InvalidSignature => "its signature is wrong".to_owned(),
        ErrorKind::MissingRequiredClaim(claim) => format!("it has no valid {claim}"),
        _ => "it is malformed".to_owned(),
    }
}
