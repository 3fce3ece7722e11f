//! A login in a browser: the address to open, and the callback with which the browser returns.

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
    callback::{Callback, CallbackPage, CallbackRequest},
    credential::Credential,
    discovery::AuthServer,
    guarded_client::GuardedClient,
    login_error::{LoginError, scrubbed},
    login_store::LoginStore,
    login_store_error::LoginStoreError,
    login_url::checked_login_url,
    preparation::PreparedLogin,
    registration::{CODE_GRANT, register},
    scopes::{OFFLINE_ACCESS, quoted},
    token_request::TokenGrant,
};
use crate::config::{Secret, ServerConfig};

/// The redirect URI if the config names none.
const DEFAULT_REDIRECT_URI: &str = "http://127.0.0.1:0/callback";

/// A login that has begun.
pub(crate) struct Login {
    address: Url,
    callback: Callback,
    exchange: Arc<CodeExchange>,
    tasks: TaskTracker,
}

/// Exchanges the code that a browser returns with for tokens.
struct CodeExchange {
    target: LoginTarget,
    /// Distinguishes this login from others.
    state: String,
    /// The `login_id` of the previous login.
    before: Option<String>,
    auth_server: AuthServer,
    client: AuthClient,
    scopes: Vec<String>,
    store: Arc<LoginStore>,
    authorizer: Arc<Authorizer>,
}

impl Auth {
    /// Begins a login in a browser. Opening the address is left to the caller.
    ///
    /// # Errors
    /// When the server requires no login, or discovery or registration fails.
    pub(crate) async fn begin_browser_login(
        &self,
        server: &ServerConfig,
        more: &[String],
    ) -> Result<Login, LoginError> {
        let beginning = self.prepare_login(server, more).await?;
        let PreparedLogin { target, mut auth_server, known, before, scopes } = beginning;
        let authorizer = self.authorizer(server);
        let authorizer = authorizer.ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let (store, tasks) = (self.store().clone(), self.tasks().clone());
        let default = Url::parse(DEFAULT_REDIRECT_URI).expect("a constant");
        let wanted = target.oauth.redirect_uri.clone().unwrap_or(default);
        let registered = before.as_ref().and_then(AuthClient::registered_for);
        // Wider scopes need a new registration.
        let registered = registered.filter(|client| client.may_ask_for(&scopes));
        let (callback, registered) = listen(&wanted, registered).await?;
        let redirect_uri = callback.redirect_uri().as_str();
        let is_kept = registered.is_some();
        let client = match (client_of_config(&target, &auth_server, &store).await?, registered) {
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => {
                register_and_save(&target, &auth_server, &store, redirect_uri, &scopes).await?
            }
        };
        let mut opened =
            (authorization_url(&mut auth_server, &client, redirect_uri, &scopes).await?, client);
        if is_kept
            && opened.1.redirect_uri.is_some()
            && is_client_unknown(&auth_server.http, &opened.0).await
        {
            let client =
                register_and_save(&target, &auth_server, &store, redirect_uri, &scopes).await?;
            opened = (
                authorization_url(&mut auth_server, &client, redirect_uri, &scopes).await?,
                client,
            );
        }
        let (address, client) = opened;
        let state = address.query_pairs().find(|(name, _)| name == "state");
        let state = state.map(|(_, state)| state.into_owned());
        let state =
            state.ok_or_else(|| LoginError::BadAddress("the response has no state".to_owned()))?;
        let before = known.and_then(|known| known.grant.login_id);
        let exchange =
            CodeExchange { target, state, before, auth_server, client, scopes, store, authorizer };
        Ok(Login { address, callback, exchange: Arc::new(exchange), tasks })
    }
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

/// Registers a client, and saves it at once so that the next login can use it even if this one
/// fails.
async fn register_and_save(
    target: &LoginTarget,
    auth_server: &AuthServer,
    store: &Arc<LoginStore>,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<AuthClient, LoginError> {
    let client = register(auth_server, redirect_uri, &CODE_GRANT, scopes).await?;
    let only = Credential::from_client(&target.remote.url, auth_server, client.clone());
    let lock = store.lock(&target.key).await?;
    store.run_for(&target.key, move |store, key| store.write_client(key, &lock, &only)).await?;
    Ok(client)
}

/// Listens at the redirect URI of the registered client if possible, and otherwise at the wanted
/// one, which then needs a new client.
async fn listen(
    wanted: &Url,
    known: Option<AuthClient>,
) -> Result<(Callback, Option<AuthClient>), LoginError> {
    let is_free = wanted.port().unwrap_or(0) == 0;
    let registered = known.as_ref().and_then(|known| known.redirect_uri.as_deref());
    if let Some(registered) = registered.and_then(|uri| Url::parse(uri).ok())
        && (is_free && has_same_host_and_path(&registered, wanted) || registered == *wanted)
        && let Ok(callback) = Callback::listen(&registered).await
    {
        return Ok((callback, known));
    }
    Ok((Callback::listen(wanted).await?, None))
}

fn has_same_host_and_path(one: &Url, other: &Url) -> bool {
    one.host() == other.host() && one.path() == other.path()
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

impl Login {
    /// Returns the address at which the user logs in.
    pub(crate) fn address(&self) -> &Url {
        &self.address
    }

    /// Returns a sentence that tells the user the requested scopes; empty if there are none.
    pub(crate) fn asks_for(&self) -> String {
        match self.exchange.scopes.as_slice() {
            [] => String::new(),
            scopes => format!("It requests the scopes {}.", quoted(scopes)),
        }
    }

    /// Returns the address to which the browser returns.
    pub(crate) fn redirect_uri(&self) -> &Url {
        self.callback.redirect_uri()
    }

    /// Waits, without a limit, for the browser to return. Cancel safe.
    pub(crate) async fn returned(&mut self) -> CallbackRequest {
        self.callback.returned().await
    }

    /// Waits until the user has logged in elsewhere: in another process, or through another entry
    /// that shares the login.
    pub(crate) fn made_elsewhere(&self) -> impl Future<Output = ()> + Send + use<> {
        let exchange = self.exchange.clone();
        async move {
            let CodeExchange { store, target, before, scopes, authorizer, .. } = exchange.as_ref();
            store.wait_for_login(&target.key, before.as_deref(), scopes).await;
            authorizer.invalidate();
        }
    }

    /// Completes the login with a browser's callback, and shows the outcome in the browser. `None`
    /// if the callback is not from this login, which then stays open.
    pub(crate) async fn take(&self, returned: CallbackRequest) -> Option<Result<(), LoginError>> {
        let outcome = self.complete(&returned.url).await;
        let shown = match &outcome {
            Ok(()) => CallbackPage::LoggedIn { server: self.exchange.target.name.clone() },
            Err(error) => CallbackPage::Failed { why: error.to_string() },
        };
        returned.answer(shown).await;
        (!matches!(outcome, Err(LoginError::Foreign))).then_some(outcome)
    }

    /// Exchanges the code of a callback for tokens. The callback may have reached another machine.
    /// A code is valid once, so that the exchange continues when this future is dropped.
    ///
    /// # Errors
    /// [`LoginError::Foreign`] if the callback is not from this login, which then stays open.
    pub(crate) async fn complete(&self, returned: &Url) -> Result<(), LoginError> {
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
        let AuthorizationResponse { code, state, issuer } = match expected.read(returned) {
            Ok(response) => response,
            Err(InvalidResponse::Foreign) => return Err(LoginError::Foreign),
            Err(InvalidResponse::WrongIssuer) => {
                return Err(LoginError::WrongIssuer(self.auth_server.issuer.clone()));
            }
            Err(InvalidResponse::Refused(reason)) => {
                return Err(self.refused(reason, LoginError::Refused).await);
            }
        };
        let manager = &self.auth_server.manager;
        let given =
            manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref()).await;
        let given = match given {
            Ok(given) => given,
            Err(error) => {
                let secret = self.client.secret.as_ref().map_or("", Secret::expose);
                let reason =
                    self.auth_server.http.take_failure().unwrap_or_else(|| error.to_string());
                let reason = scrubbed(&reason, &[&code, &state, secret]);
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
        let (key, id) = (&self.target.key, self.client.id.clone());
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
