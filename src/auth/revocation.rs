//! Logout: revokes the tokens if the authorization server supports that (RFC 7009), and deletes the
//! login.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use oauth2::http::{Request, header};
use url::{Url, form_urlencoded};

use super::{
    Auth, LoginOwner, LoginStore, LoginTarget,
    auth_client::AuthClient,
    auth_method::AuthMethod,
    configured_client::secret_of,
    credential::{Credential, Tokens},
    guarded_client::GuardedClient,
    login_error::LoginError,
};
use crate::config::{Secret, ServerConfig};

/// Result of a logout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogoutOutcome {
    /// There was no login.
    Nothing,
    /// The login is forgotten and its tokens are revoked.
    Revoked,
    /// The login is forgotten and its refresh token is revoked; the access token is valid until it
    /// expires. `why`: the answer of the authorization server.
    RefreshRevoked { why: String },
    /// The login is forgotten; its tokens are valid until they expire. `why`: the answer of the
    /// authorization server, or the reason for which it could not be asked; `None` if it revokes no
    /// tokens.
    Forgotten { why: Option<String> },
}

impl Auth {
    /// Ends the login of a server: that of all hosts, or that of its `owner`. It is deleted here
    /// whatever the authorization server answers.
    ///
    /// # Errors
    /// When it cannot be deleted.
    pub(crate) async fn log_out(
        &self,
        server: &ServerConfig,
        owner: Option<LoginOwner>,
    ) -> Result<LogoutOutcome, LoginError> {
        let target = LoginTarget::of(server, owner)
            .ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let store = self.store();
        if store.loses_logins() {
            // The lock would wait for a store that cannot be used.
            store.run_for(&target.key, LoginStore::check_writable).await?;
        }
        let lock = store.lock(&target.key).await?;
        // An unreadable login cannot be revoked, but it can be deleted.
        let login = store.run_for(&target.key, LoginStore::read).await.ok().flatten();
        let ended = match login {
            Some(login) => revoke(&target, login, store).await,
            None => {
                LogoutOutcome::Forgotten { why: Some("cannot read the stored login".to_owned()) }
            }
        };
        let removed = store.run_for(&target.key, move |store, key| store.remove(key, &lock)).await;
        let was_there = removed?;
        Ok(if was_there { ended } else { LogoutOutcome::Nothing })
    }
}

async fn revoke(target: &LoginTarget, login: Credential, store: &Arc<LoginStore>) -> LogoutOutcome {
    let Some(tokens) = &login.tokens else { return LogoutOutcome::Nothing };
    if login.facts.revocation_endpoint.is_none() {
        return LogoutOutcome::Forgotten { why: None };
    }
    match Revocation::of(target, &login, store).await {
        Ok(revocation) => revocation.revoke_both(tokens).await,
        Err(why) => LogoutOutcome::Forgotten { why: Some(why) },
    }
}

/// The endpoint, client and HTTP client to revoke the tokens of a login.
struct Revocation {
    http: GuardedClient,
    endpoint: Url,
    issuer: String,
    client: AuthClient,
}

impl Revocation {
    async fn of(
        target: &LoginTarget,
        login: &Credential,
        store: &Arc<LoginStore>,
    ) -> Result<Self, String> {
        let endpoint = login.facts.revocation_endpoint.as_deref().unwrap_or_default();
        let endpoint = Url::parse(endpoint);
        let endpoint = endpoint.map_err(|_| "the revocation endpoint is not a URL".to_owned())?;
        let http = target.http().map_err(|error| error.to_string())?;
        let mut client = AuthClient::from_login(login);
        if let Some(configured) = &target.oauth.client {
            client.key_id.clone_from(&configured.key_id);
            if client.secret.is_none() {
                client.secret = secret_of(configured, store).await.ok().flatten();
            }
        }
        Ok(Self { http, endpoint, issuer: login.facts.issuer.clone(), client })
    }

    /// Revokes the refresh token, upon which authorization servers end the grant, and the access
    /// token, which some do not revoke (RFC 7009 section 2.2.1, `unsupported_token_type`).
    async fn revoke_both(&self, tokens: &Tokens) -> LogoutOutcome {
        let access = self.revoke_one("access_token", &tokens.access);
        let Some(refresh) = &tokens.refresh else {
            return match access.await {
                Ok(()) => LogoutOutcome::Revoked,
                Err(why) => LogoutOutcome::Forgotten { why: Some(why) },
            };
        };
        let refresh = self.revoke_one("refresh_token", refresh).await;
        match (refresh, access.await) {
            (Ok(()), Ok(())) => LogoutOutcome::Revoked,
            (Ok(()), Err(why)) => LogoutOutcome::RefreshRevoked { why },
            (Err(why), _) => LogoutOutcome::Forgotten { why: Some(why) },
        }
    }

    async fn revoke_one(&self, kind: &str, token: &Secret) -> Result<(), String> {
        let request = self.request(kind, token)?;
        let response = self.http.execute(request).await.map_err(|error| error.to_string())?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(format!("HTTP status {}", response.status().as_u16()))
    }

    /// Builds the request. The client authenticates as it does at the token endpoint (RFC 7009
    /// section 2.1).
    fn request(&self, kind: &str, token: &Secret) -> Result<Request<Vec<u8>>, String> {
        let id = self.client.id.as_str();
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token.expose()).append_pair("token_type_hint", kind);
        let mut request = Request::post(self.endpoint.as_str())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        match (self.client.method, &self.client.secret) {
            (AuthMethod::ClientSecretBasic, Some(secret)) => {
                // Id and secret are form-encoded first (RFC 6749 section 2.3.1).
                let [id, secret] = [id, secret.expose()].map(|text| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                });
                let shown = BASE64_STANDARD.encode(format!("{id}:{secret}"));
                request = request.header(header::AUTHORIZATION, format!("Basic {shown}"));
            }
            (AuthMethod::ClientSecretPost, Some(secret)) => {
                form.append_pair("client_id", id).append_pair("client_secret", secret.expose());
            }
            _ => {
                let shown = self.client.assertion(&self.issuer);
                form.append_pair("client_id", id);
                form.extend_pairs(shown.map_err(|error| error.to_string())?);
            }
        }
        request.body(form.finish().into_bytes()).map_err(|error| error.to_string())
    }
}
