//! A login with a code (RFC 6749, section 4.1): the address to open, and the exchange of the code
//! with which a browser returns.

use std::{sync::Arc, time::Duration};

use oauth2::http::Request;
use rmcp::transport::auth::OAuthClientConfig;
use tokio_util::task::TaskTracker;
use url::Url;

use super::{
    Auth, LoginTarget,
    auth_client::AuthClient,
    authorization_response::{AuthorizationResponse, ExpectedResponse, InvalidResponse},
    authorizer::Authorizer,
    credential::Credential,
    discovery::AuthServer,
    guarded_client::GuardedClient,
    login_error::{LoginError, scrubbed},
    login_key::LoginKey,
    login_store::LoginStore,
    login_store_error::LoginStoreError,
    login_url::checked_login_url,
    preparation::PreparedLogin,
    registration::{CODE_GRANT, register},
    scopes::{OFFLINE_ACCESS, quoted},
    token_request::TokenGrant,
};
use crate::config::Secret;

/// A login that has begun. Clones are the same login.
#[derive(Clone)]
pub(super) struct CodeLogin {
    address: Url,
    exchange: Arc<CodeExchange>,
    tasks: TaskTracker,
}

/// The way back from the authorization server.
pub(super) struct ReturnPath<'a> {
    pub(super) redirect_uri: &'a Url,
    /// The prefix of the `state` with which the browser returns.
    pub(super) state_prefix: &'a str,
    /// The client that was registered earlier with this redirect URI, if it may request the scopes.
    pub(super) registered: Option<AuthClient>,
    /// The key under which a registration is stored.
    pub(super) registration: LoginKey,
}

/// Exchanges the code that a browser returns with for tokens.
struct CodeExchange {
    target: LoginTarget,
    /// Distinguishes this login from others. The rest of `state` after the prefix is `csrf`.
    state: String,
    csrf: String,
    /// The `login_id` of the previous login.
    before: Option<String>,
    auth_server: AuthServer,
    client: AuthClient,
    /// The key under which the client's registration is stored.
    registration: LoginKey,
    scopes: Vec<String>,
    store: Arc<LoginStore>,
    authorizer: Arc<Authorizer>,
}

impl Auth {
    /// Begins a prepared login. Opening the address is left to the caller.
    pub(super) async fn begin_code_login(
        &self,
        prepared: PreparedLogin,
        authorizer: Arc<Authorizer>,
        back: ReturnPath<'_>,
    ) -> Result<CodeLogin, LoginError> {
        let PreparedLogin { target, mut auth_server, known, before: _, scopes } = prepared;
        let (store, tasks) = (self.store().clone(), self.tasks().clone());
        let ReturnPath { redirect_uri, state_prefix, registered, registration } = back;
        let redirect_uri = redirect_uri.as_str();
        let is_kept = registered.is_some();
        let registering = Registration {
            server: &target.remote.url,
            key: &registration,
            redirect_uri,
            scopes: &scopes,
            store: &store,
        };
        let configured = client_of_config(&target, &auth_server, &store).await?;
        let mut client = match (configured, registered) {
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => registering.make(&auth_server).await?,
        };
        let mut address =
            authorization_url(&mut auth_server, &client, redirect_uri, &scopes).await?;
        if is_kept
            && client.redirect_uri.is_some()
            && is_client_unknown(&auth_server.http, &address).await
        {
            client = registering.make(&auth_server).await?;
            address = authorization_url(&mut auth_server, &client, redirect_uri, &scopes).await?;
        }
        let (address, csrf) = with_state_prefix(address, state_prefix)?;
        let state = format!("{state_prefix}{csrf}");
        let before = known.and_then(|known| known.grant.login_id);
        let exchange = Arc::new(CodeExchange {
            target,
            state,
            csrf,
            before,
            auth_server,
            client,
            registration,
            scopes,
            store,
            authorizer,
        });
        Ok(CodeLogin { address, exchange, tasks })
    }
}

/// Puts a prefix before the `state` in the address of a login page. Returns also the `state` as it
/// was.
fn with_state_prefix(mut address: Url, prefix: &str) -> Result<(Url, String), LoginError> {
    let pairs: Vec<(String, String)> = address.query_pairs().into_owned().collect();
    let state = pairs.iter().find(|(name, _)| name == "state").map(|(_, state)| state.clone());
    let state =
        state.ok_or_else(|| LoginError::BadAddress("the response has no state".to_owned()))?;
    if !prefix.is_empty() {
        let prefixed = pairs.into_iter().map(|(name, value)| match name.as_str() {
            "state" => (name, format!("{prefix}{value}")),
            _ => (name, value),
        });
        address.query_pairs_mut().clear().extend_pairs(prefixed);
    }
    Ok((address, state))
}

/// Returns the client of the config, if it has one that the authorization server accepts.
pub(super) async fn client_of_config(
    target: &LoginTarget,
    auth_server: &AuthServer,
    store: &Arc<LoginStore>,
) -> Result<Option<AuthClient>, LoginError> {
    let reads_documents = auth_server.supports("client_id_metadata_document_supported");
    let configured = target.oauth.client.as_ref();
    match configured.filter(|client| !client.is_metadata_document() || reads_documents) {
        Some(configured) => {
            Ok(Some(AuthClient::from_config(configured, auth_server, store).await?))
        }
        None => Ok(None),
    }
}

/// The registration of a client.
struct Registration<'a> {
    server: &'a Url,
    /// The key under which it is stored.
    key: &'a LoginKey,
    redirect_uri: &'a str,
    scopes: &'a [String],
    store: &'a Arc<LoginStore>,
}

impl Registration<'_> {
    /// Registers a client, and saves it at once so that the next login can use it even if this one
    /// fails.
    async fn make(&self, auth_server: &AuthServer) -> Result<AuthClient, LoginError> {
        let Self { server, key, redirect_uri, scopes, store } = *self;
        let client = register(auth_server, redirect_uri, &CODE_GRANT, scopes).await?;
        let only = Credential::from_client(server, auth_server, client.clone());
        let lock = store.lock(key).await?;
        store.run_for(key, move |store, key| store.write_client(key, &lock, &only)).await?;
        Ok(client)
    }
}

/// Returns whether the authorization server has forgotten a client that was registered in an
/// earlier run. It would show that error to the user only, who could not fix it (RFC 6749 section
/// 4.1.2.1). Any status other than 400, 401 and 404 counts as a login page.
async fn is_client_unknown(http: &GuardedClient, address: &Url) -> bool {
    const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
    let Ok(request) = Request::get(address.as_str()).body(Vec::new()) else { return false };
    match tokio::time::timeout(CHECK_TIMEOUT, http.fetch_head(request)).await {
        Ok(Ok((status, _))) => matches!(status.as_u16(), 400 | 401 | 404),
        _ => false,
    }
}

/// Returns the address at which the user logs in.
pub(super) async fn authorization_url(
    auth_server: &mut AuthServer,
    client: &AuthClient,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Url, LoginError> {
    let failed = |error| super::login_error::discovery_error(&error);
    // rmcp reads the client authentication method from here.
    let mut metadata = auth_server.metadata.clone();
    let method = serde_json::json!([client.method.name()]);
    metadata.additional_fields.insert("token_endpoint_auth_methods_supported".to_owned(), method);
    auth_server.manager.set_metadata(metadata);
    let mut config = OAuthClientConfig::new(client.id.clone(), redirect_uri);
    if let Some(secret) = &client.secret {
        config = config.with_client_secret(secret.expose());
    }
    auth_server.manager.configure_client(config).map_err(failed)?;
    let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let mut address = auth_server.manager.get_authorization_url(&asked).await.map_err(failed)?;
    if asked.contains(&OFFLINE_ACCESS) && !address.contains("prompt=") {
        // Strict authorization servers issue a refresh token only if the user consents in this
        // login (OpenID Connect Core 1.0, section 11).
        address.push_str("&prompt=consent");
    }
    checked_login_url(&address, &auth_server.http)
}

impl CodeLogin {
    /// Returns the address at which the user logs in.
    pub(super) fn address(&self) -> &Url {
        &self.address
    }

    /// Returns the name of the server.
    pub(super) fn server(&self) -> &str {
        &self.exchange.target.name
    }

    /// Returns a sentence that tells the user the requested scopes; empty if there are none.
    pub(super) fn asks_for(&self) -> String {
        match self.exchange.scopes.as_slice() {
            [] => String::new(),
            scopes => format!("It requests the scopes {}.", quoted(scopes)),
        }
    }

    /// Waits until the user has logged in elsewhere: in another process, or through another entry
    /// that shares the login.
    pub(super) fn made_elsewhere(&self) -> impl Future<Output = ()> + Send + use<> {
        let exchange = self.exchange.clone();
        async move {
            let CodeExchange { store, target, before, scopes, authorizer, .. } = exchange.as_ref();
            store.wait_for_login(&target.key, before.as_deref(), scopes).await;
            authorizer.invalidate();
        }
    }

    /// Exchanges the code of a callback for tokens. The callback may have reached another machine.
    /// A code is valid once, so that the exchange continues when this future is dropped.
    ///
    /// # Errors
    /// [`LoginError::Foreign`] if the callback is not from this login, which then stays open.
    pub(super) async fn complete(&self, returned: &Url) -> Result<(), LoginError> {
        let (exchange, returned) = (self.exchange.clone(), returned.clone());
        let exchanging = self.tasks.spawn(async move { exchange.run(&returned).await });
        exchanging.await.unwrap_or(Err(LoginStoreError::ShuttingDown.into()))
    }
}

impl CodeExchange {
    async fn run(&self, returned: &Url) -> Result<(), LoginError> {
        let expected = ExpectedResponse {
            state: &self.state,
            issuer: self.auth_server.metadata.issuer.as_deref(),
            names_issuer: self
                .auth_server
                .supports("authorization_response_iss_parameter_supported"),
        };
        let AuthorizationResponse { code, issuer, .. } = match expected.read(returned) {
            Ok(response) => response,
            Err(InvalidResponse::Foreign) => return Err(LoginError::Foreign),
            Err(InvalidResponse::WrongIssuer) => {
                return Err(LoginError::WrongIssuer(self.auth_server.issuer.clone()));
            }
            // A person could have the client forgotten that all people share.
            Err(InvalidResponse::Refused(reason)) if self.registration != self.target.key => {
                return Err(LoginError::Refused(reason));
            }
            Err(InvalidResponse::Refused(reason)) => {
                return Err(self.refused(reason, LoginError::Refused).await);
            }
        };
        let manager = &self.auth_server.manager;
        let given =
            manager.exchange_code_for_token_with_issuer(&code, &self.csrf, issuer.as_deref()).await;
        let given = match given {
            Ok(given) => given,
            Err(error) => {
                let secret = self.client.secret.as_ref().map_or("", Secret::expose);
                let reason =
                    self.auth_server.http.take_failure().unwrap_or_else(|| error.to_string());
                let reason = scrubbed(&reason, &[&code, &self.csrf, secret]);
                return Err(self.refused(reason, LoginError::TokenExchange).await);
            }
        };
        let (url, scopes) = (&self.target.remote.url, self.scopes.clone());
        let client = self.client.clone();
        let login = TokenGrant::of(&given)?.into_login(url, &self.auth_server, client, scopes);
        self.store.save(&self.target.key, login).await?;
        self.authorizer.invalidate();
        Ok(())
    }

    /// Builds the error for a refusal with `error`. If the authorization server does not know the
    /// registered client any more, removes the registration so that the next login registers again.
    /// rmcp passes the error code on only as text.
    async fn refused(&self, reason: String, error: fn(String) -> LoginError) -> LoginError {
        let is_unknown =
            ["invalid_client", "unauthorized_client"].iter().any(|code| reason.contains(code));
        if !is_unknown || self.client.redirect_uri.is_none() {
            return error(reason);
        }
        let (key, id) = (&self.registration, self.client.id.clone());
        let forgotten = async {
            let lock = self.store.lock(key).await?;
            self.store.run_for(key, move |store, key| store.forget_client(key, &lock, &id)).await
        };
        if let Err(error) = forgotten.await {
            let server = &self.target.name;
            tracing::warn!(server, %error, "cannot delete the registration");
        }
        LoginError::ForgottenClient(reason)
    }
}
