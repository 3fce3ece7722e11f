//! A person's login: an address to open, and what the browser brings back from there.

use std::{sync::Arc, time::Duration};

use oauth2::http::Request;
use rmcp::transport::auth::OAuthClientConfig;
use tokio_util::task::TaskTracker;
use url::Url;

use super::{
    Auth, Site,
    authorizer::Authorizer,
    beginning::Beginning,
    callback::{Answer, Callback, Returned},
    client::Client,
    credential::Credential,
    discovery::Discovered,
    error::{LoginError, scrubbed},
    guard::{Guard, judged},
    registration::{BY_CODE, register},
    scopes::{OFFLINE_ACCESS, in_words},
    store::{Store, StoreError},
    token::Granted,
};
use crate::config::{Secret, ServerConfig};

/// Where a browser comes back to, unless the config says another place.
const REDIRECT: &str = "http://127.0.0.1:0/callback";

/// A login that has begun.
pub struct Login {
    address: Url,
    callback: Callback,
    exchange: Arc<Exchange>,
    tasks: TaskTracker,
}

/// What gets tokens for what a browser has brought.
struct Exchange {
    site: Site,
    /// By which this login is known from others.
    state: String,
    /// The id of the login that there was.
    before: Option<String>,
    discovered: Discovered,
    client: Client,
    scopes: Vec<String>,
    store: Arc<Store>,
    authorizer: Arc<Authorizer>,
}

impl Auth {
    /// Begins a login in a browser. Nothing is opened: that is for whoever asks.
    ///
    /// # Errors
    /// When the server wants none, or it cannot be found out how to log in.
    pub async fn log_in(
        &self,
        server: &ServerConfig,
        more: &[String],
    ) -> Result<Login, LoginError> {
        let beginning = self.begin(server, more).await?;
        let Beginning { site, mut discovered, known, before, scopes } = beginning;
        let authorizer = self.authorizer(server);
        let authorizer = authorizer.ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let (store, tasks) = (self.0.store.clone(), self.0.tasks.clone());
        let default = Url::parse(REDIRECT).expect("a constant");
        let wanted = site.oauth.redirect_uri.clone().unwrap_or(default);
        let registered = before.as_ref().and_then(Client::registered_for);
        // For wider scopes another client is registered.
        let registered = registered.filter(|client| client.may_ask_for(&scopes));
        let (callback, registered) = listen(&wanted, registered).await?;
        let redirect_uri = callback.redirect_uri().as_str();
        let is_kept = registered.is_some();
        let client = match (client_of_config(&site, &discovered, &store).await?, registered) {
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => {
                registered_now(&site, &discovered, &store, redirect_uri, &scopes).await?
            }
        };
        let mut opened = (address(&mut discovered, &client, redirect_uri, &scopes).await?, client);
        if is_kept
            && opened.1.redirect_uri.is_some()
            && is_unknown(&discovered.guard, &opened.0).await
        {
            let client = registered_now(&site, &discovered, &store, redirect_uri, &scopes).await?;
            opened = (address(&mut discovered, &client, redirect_uri, &scopes).await?, client);
        }
        let (address, client) = opened;
        let state = address.query_pairs().find(|(name, _)| name == "state");
        let state = state.map(|(_, state)| state.into_owned());
        let state = state.ok_or_else(|| LoginError::BadAddress("it has no state".to_owned()))?;
        let before = known.and_then(|known| known.login_id);
        let exchange =
            Exchange { site, state, before, discovered, client, scopes, store, authorizer };
        Ok(Login { address, callback, exchange: Arc::new(exchange), tasks })
    }
}

/// Returns the client of the config, if it has one that the authorization server accepts.
pub(super) async fn client_of_config(
    site: &Site,
    discovered: &Discovered,
    store: &Arc<Store>,
) -> Result<Option<Client>, LoginError> {
    let reads_documents = discovered.supports("client_id_metadata_document_supported");
    let configured = site.oauth.client.as_ref();
    match configured.filter(|client| !client.is_metadata_document() || reads_documents) {
        Some(configured) => Ok(Some(Client::of_config(configured, discovered, store).await?)),
        None => Ok(None),
    }
}

/// Registers a client, and keeps that also for a login that does not come about now.
async fn registered_now(
    site: &Site,
    discovered: &Discovered,
    store: &Arc<Store>,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Client, LoginError> {
    let client = register(discovered, redirect_uri, &BY_CODE, scopes).await?;
    let only = Credential::of_client(&site.remote.url, discovered, client.clone());
    let held = store.hold(&site.slot).await?;
    store.at(&site.slot, move |store, slot| store.write_client(slot, &held, &only)).await?;
    Ok(client)
}

/// Listens where the known client is registered to come back to, if that can be; else where it is wanted.
async fn listen(
    wanted: &Url,
    known: Option<Client>,
) -> Result<(Callback, Option<Client>), LoginError> {
    let is_free = wanted.port().unwrap_or(0) == 0;
    let registered = known.as_ref().and_then(|known| known.redirect_uri.as_deref());
    if let Some(registered) = registered.and_then(|uri| Url::parse(uri).ok())
        && (is_free && same_but_port(&registered, wanted) || registered == *wanted)
        && let Ok(callback) = Callback::listen(&registered).await
    {
        return Ok((callback, known));
    }
    Ok((Callback::listen(wanted).await?, None))
}

fn same_but_port(one: &Url, other: &Url) -> bool {
    one.host() == other.host() && one.path() == other.path()
}

/// Whether the authorization server answers a client that was registered in an earlier run as one that it does not know. It
/// shows that to the user alone, who could do nothing about it (RFC 6749 section 4.1.2.1). Any other answer is taken for a
/// page.
async fn is_unknown(guard: &Guard, address: &Url) -> bool {
    const LIMIT: Duration = Duration::from_secs(5);
    let Ok(request) = Request::get(address.as_str()).body(Vec::new()) else { return false };
    match tokio::time::timeout(LIMIT, guard.head_of(request)).await {
        Ok(Ok((status, _))) => matches!(status.as_u16(), 400 | 401 | 404),
        _ => false,
    }
}

/// Where to log in.
async fn address(
    discovered: &mut Discovered,
    client: &Client,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Url, LoginError> {
    let failed = |error| super::error::discovery(&error);
    // rmcp looks there for how a client shows its secret.
    let mut metadata = discovered.metadata.clone();
    let method = serde_json::json!([client.method.name()]);
    metadata.additional_fields.insert("token_endpoint_auth_methods_supported".to_owned(), method);
    discovered.manager.set_metadata(metadata);
    let mut config = OAuthClientConfig::new(client.id.clone(), redirect_uri);
    if let Some(secret) = &client.secret {
        config = config.with_client_secret(secret.expose());
    }
    discovered.manager.configure_client(config).map_err(failed)?;
    let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let mut address = discovered.manager.get_authorization_url(&asked).await.map_err(failed)?;
    if asked.contains(&OFFLINE_ACCESS) && !address.contains("prompt=") {
        // Strict servers give a refresh token only where the user has consented to it now (OpenID Connect Core 1.0,
        // section 11).
        address.push_str("&prompt=consent");
    }
    judged(&address, &discovered.guard)
}

impl Login {
    /// Where to log in.
    pub fn address(&self) -> &Url {
        &self.address
    }

    /// The sentence that names the scopes that are asked for, for whoever logs in; empty where there are none.
    pub fn asks_for(&self) -> String {
        match self.exchange.scopes.as_slice() {
            [] => String::new(),
            scopes => format!("It asks for the scopes {}.", in_words(scopes)),
        }
    }

    /// Where the browser comes back to.
    pub fn redirect_uri(&self) -> &Url {
        self.callback.redirect_uri()
    }

    /// Waits for a browser that comes back, as long as it takes. Nothing is lost when this is dropped.
    pub async fn returned(&mut self) -> Returned {
        self.callback.returned().await
    }

    /// Waits until somebody has logged in otherwise: in another process, or for another entry with the same login.
    pub fn made_elsewhere(&self) -> impl Future<Output = ()> + Send + use<> {
        let exchange = self.exchange.clone();
        async move {
            let Exchange { store, site, before, scopes, authorizer, .. } = exchange.as_ref();
            store.logged_in(&site.slot, before.as_deref(), scopes).await;
            authorizer.forget();
        }
    }

    /// Takes what a browser came back with, and shows it what has become of it. `None` for one that is not of this login,
    /// which is still open then.
    pub async fn take(&self, returned: Returned) -> Option<Result<(), LoginError>> {
        let outcome = self.complete(&returned.url).await;
        let shown = match &outcome {
            Ok(()) => Answer::LoggedIn { server: self.exchange.site.name.clone() },
            Err(error) => Answer::Failed { why: error.to_string() },
        };
        returned.answer(shown).await;
        (!matches!(outcome, Err(LoginError::Foreign))).then_some(outcome)
    }

    /// Gets tokens for what a browser has ended at, on this machine or another. A code is good once, so that this goes on
    /// when it is dropped.
    ///
    /// # Errors
    /// [`LoginError::Foreign`] for what is not of this login, which is still open then.
    pub async fn complete(&self, returned: &Url) -> Result<(), LoginError> {
        let (exchange, returned) = (self.exchange.clone(), returned.clone());
        let exchanging = self.tasks.spawn(async move { exchange.run(&returned).await });
        exchanging.await.unwrap_or(Err(StoreError::Ending.into()))
    }
}

impl Exchange {
    async fn run(&self, returned: &Url) -> Result<(), LoginError> {
        let brought = |name: &str| {
            let mut pairs = returned.query_pairs();
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let state = brought("state").filter(|state| *state == self.state);
        let state = state.ok_or(LoginError::Foreign)?;
        let issuer = brought("iss");
        let is_announced =
            self.discovered.supports("authorization_response_iss_parameter_supported");
        if (issuer.is_some() || is_announced) && issuer != self.discovered.metadata.issuer {
            // It may be anybody's answer, errors included, and is not for this token endpoint (RFC 9207 section 2.4).
            return Err(LoginError::WrongIssuer(self.discovered.issuer.clone()));
        }
        if let Some(error) = brought("error") {
            let about = brought("error_description").map(|about| format!(": {about}"));
            let said = error + &about.unwrap_or_default();
            return Err(self.refused(scrubbed(&said, &[]), LoginError::Refused).await);
        }
        let code = brought("code").ok_or(LoginError::Foreign)?;
        let manager = &self.discovered.manager;
        let given =
            manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref()).await;
        let given = match given {
            Ok(given) => given,
            Err(error) => {
                let secret = self.client.secret.as_ref().map_or("", Secret::expose);
                let said = self.discovered.guard.failure().unwrap_or_else(|| error.to_string());
                let said = scrubbed(&said, &[&code, &state, secret]);
                return Err(self.refused(said, LoginError::Exchange).await);
            }
        };
        let (url, scopes) = (&self.site.remote.url, self.scopes.clone());
        let client = self.client.clone();
        let login = Granted::of(&given)?.into_login(url, &self.discovered, client, scopes);
        self.store.keep(&self.site.slot, login).await?;
        self.authorizer.forget();
        Ok(())
    }

    /// rmcp hands the code of an error on as text only. `error`: what it is, unless the authorization server has forgotten
    /// us; then the next login registers anew.
    async fn refused(&self, said: String, error: fn(String) -> LoginError) -> LoginError {
        let is_unknown =
            ["invalid_client", "unauthorized_client"].iter().any(|code| said.contains(code));
        if !is_unknown || self.client.redirect_uri.is_none() {
            return error(said);
        }
        let (slot, id) = (&self.site.slot, self.client.id.clone());
        let forgotten = async {
            let held = self.store.hold(slot).await?;
            self.store.at(slot, move |store, slot| store.forget_client(slot, &held, &id)).await
        };
        if let Err(error) = forgotten.await {
            tracing::warn!(server = self.site.name, %error, "the registration cannot be forgotten");
        }
        LoginError::ForgottenClient(said)
    }
}
