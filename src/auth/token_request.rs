//! Requests for tokens, except for the exchange of a code, which rmcp makes.

use std::time::Duration;

use oauth2::{
    AuthType, ClientId, ClientSecret, EndpointNotSet, EndpointSet, RefreshToken, TokenResponse,
    TokenUrl, basic::BasicClient,
};

use super::{
    auth_client::AuthClient,
    auth_method::AuthMethod,
    credential::{Credential, LoginLifetime, Tokens},
    discovery::AuthServer,
    guarded_client::GuardedClient,
    login_error::TokenError,
    scopes::{self, OFFLINE_ACCESS},
};
use crate::{
    base::{now_seconds, random_token},
    config::Secret,
    wire::credentials::Authorization,
};

/// Upper limit of a lifetime, because some servers say "forever" with a number that overflows
/// dates.
const MAX_LIFETIME: Duration = Duration::from_hours(10 * 365 * 24);

/// The answer of a token endpoint.
pub(super) struct TokenGrant {
    tokens: Tokens,
    expires_in: Option<Duration>,
    /// `None` if all requested scopes were granted (RFC 6749 section 5.1).
    scopes: Option<Vec<String>>,
}

impl TokenGrant {
    /// Reads a successful response.
    ///
    /// # Errors
    /// When the token is not a valid bearer token.
    pub(super) fn of(response: &impl TokenResponse) -> Result<Self, TokenError> {
        let access = Secret::new(response.access_token().secret().as_str());
        if Authorization::bearer(access.expose()).is_none() {
            let why = "it contains invalid characters (RFC 6750 section 2.1)";
            return Err(TokenError::InvalidToken(why.to_owned()));
        }
        let refresh = response.refresh_token().map(|token| Secret::new(token.secret().as_str()));
        let kind = serde_json::to_value(response.token_type()).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default();
        // Many servers use a type name of their own for bearer tokens, so that only known other
        // types are refused.
        if ["mac", "dpop", "pop"].iter().any(|other| kind.eq_ignore_ascii_case(other)) {
            let why = format!("it has the type {kind:?}, which dormouse does not support");
            return Err(TokenError::InvalidToken(why));
        }
        let scopes = response.scopes();
        let scopes = scopes.map(|all| scopes::valid_scopes(all.iter().map(|scope| scope.as_str())));
        Ok(Self { tokens: Tokens { access, refresh }, expires_in: response.expires_in(), scopes })
    }

    /// Makes a new login of these tokens.
    pub(super) fn into_login(
        self,
        server: &url::Url,
        auth_server: &AuthServer,
        client: AuthClient,
        asked: Vec<String>,
    ) -> Credential {
        let mut login = Credential::from_client(server, auth_server, client);
        (login.facts.grant.scopes, login.facts.grant.asked) = (asked.clone(), asked);
        login.facts.grant.login_id = Some(random_token::<9>());
        self.into_renewed(login)
    }

    /// Replaces the tokens of a login.
    pub(super) fn into_renewed(self, before: Credential) -> Credential {
        let Self { mut tokens, expires_in, scopes } = self;
        let Credential { mut facts, client_secret, tokens: old, is_in_file } = before;
        // The old refresh token stays valid if the response has no new one (RFC 6749 section 6).
        tokens.refresh = tokens.refresh.or_else(|| old.and_then(|old| old.refresh));
        let now = now_seconds();
        // A lifetime of 0 counts as unknown, or the token would be renewed in an endless loop; the
        // server will refuse the token once it has expired.
        let life = expires_in.map(|life| life.min(MAX_LIFETIME).as_secs()).filter(|life| *life > 0);
        facts.lifetime = LoginLifetime {
            obtained_at: now,
            expires_at: life.map(|life| now + life),
            is_renewable: tokens.refresh.is_some(),
            is_usable: true,
            renewals: facts.lifetime.renewals.saturating_add(1),
            may_be_older: false,
        };
        if let Some(scopes) = scopes {
            facts.grant.scopes = scopes;
        }
        Credential { facts, client_secret, tokens: Some(tokens), is_in_file }
    }
}

pub(super) type TokenClient =
    BasicClient<EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// Returns an `oauth2` client for this token endpoint.
pub(super) fn token_client(client: &AuthClient, endpoint: &str) -> Result<TokenClient, TokenError> {
    let url = TokenUrl::new(endpoint.to_owned());
    let url = url.map_err(|_| TokenError::Failed("the token endpoint is not a URL".to_owned()))?;
    let asking = BasicClient::new(ClientId::new(client.id.clone())).set_token_uri(url);
    let secret = client.secret.as_ref().map(|secret| secret.expose().to_owned());
    Ok(match (client.method, secret) {
        (AuthMethod::ClientSecretBasic, Some(secret)) => {
            asking.set_client_secret(ClientSecret::new(secret))
        }
        (AuthMethod::ClientSecretPost, Some(secret)) => {
            asking.set_client_secret(ClientSecret::new(secret)).set_auth_type(AuthType::RequestBody)
        }
        _ => asking,
    })
}

/// Renews a login. `client` includes its secret, wherever that is stored.
pub(super) async fn refresh(
    http: &GuardedClient,
    client: &AuthClient,
    login: &Credential,
) -> Result<TokenGrant, TokenError> {
    let refresh = login.tokens.as_ref().and_then(|tokens| tokens.refresh.as_ref());
    let Some(refresh) = refresh else {
        return Err(TokenError::Rejected("there is no refresh token".to_owned()));
    };
    let asking = token_client(client, &login.facts.token_endpoint)?;
    let token = RefreshToken::new(refresh.expose().to_owned());
    let request = asking.exchange_refresh_token(&token);
    let request = request.add_extra_param("resource", &login.facts.resource);
    let answer = request.request_async(http).await;
    let secrets = [Some(refresh), client.secret.as_ref()];
    let secrets: Vec<&str> = secrets.into_iter().flatten().map(Secret::expose).collect();
    TokenGrant::of(&answer.map_err(|error| TokenError::of(&error, &secrets))?)
}

/// Requests tokens with the client credentials grant (RFC 6749 section 4.4).
pub(super) async fn request_client_credentials(
    auth_server: &AuthServer,
    client: &AuthClient,
    scopes: &[String],
) -> Result<TokenGrant, TokenError> {
    let asking = token_client(client, &auth_server.metadata.token_endpoint)?;
    let asked = scopes.iter().filter(|scope| *scope != OFFLINE_ACCESS);
    let mut request = asking
        .exchange_client_credentials()
        .add_extra_param("resource", &auth_server.resource)
        // This grant needs no refresh token, and authorization servers refuse `offline_access`.
        .add_scopes(asked.cloned().map(oauth2::Scope::new));
    let shown = client.assertion(&auth_server.issuer);
    for (name, value) in shown.map_err(|error| TokenError::NoProof(error.to_string()))? {
        request = request.add_extra_param(name, value);
    }
    let answer = request.request_async(&auth_server.http).await;
    let secrets: Vec<&str> = client.secret.iter().map(Secret::expose).collect();
    TokenGrant::of(&answer.map_err(|error| TokenError::of(&error, &secrets))?)
}
