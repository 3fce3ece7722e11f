//! A person's login: an address to open, and what the browser brings back from there.

use std::{sync::Arc, time::Duration};

use oauth2::http::{Request, header};
use rmcp::transport::auth::OAuthClientConfig;
use tokio_util::task::TaskTracker;
use url::Url;

use super::{
    Auth, Site,
    authorizer::Authorizer,
    callback::{Answer, Callback},
    client::Client,
    credential::Credential,
    discovery::{Discovered, discover},
    error::{LoginError, scrubbed},
    guard::Guard,
    registration::register,
    store::{Store, StoreError},
    token::Granted,
};
use crate::config::{Grant, Secret, ServerConfig, Transport};

/// Where a browser comes back to, unless the config says another place.
const REDIRECT: &str = "http://127.0.0.1:0/callback";
/// Longer ones are of nobody who means well.
const LONGEST_ADDRESS: usize = 16 * 1024;

/// A login that has begun.
pub struct Login {
    site: Site,
    address: Url,
    callback: Callback,
    discovered: Discovered,
    client: Client,
    scopes: Vec<String>,
    store: Arc<Store>,
    tasks: TaskTracker,
    authorizer: Arc<Authorizer>,
}

/// What everything that begins a login begins with.
pub(super) struct Beginning {
    pub(super) site: Site,
    pub(super) discovered: Discovered,
    /// The login that there was.
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
        let challenge = challenge(&site).await?;
        let discovered = discover(&site, &challenge).await?;
        let slot = site.slot.clone();
        // One that cannot be read is replaced.
        let before = self.0.store.run(move |store| store.read(&slot)).await.ok().flatten();
        let before = before.filter(|before| before.facts.issuer == discovered.issuer);
        let mut more = more.to_vec();
        if let Some(before) = before.as_ref().filter(|before| !before.facts.wanted.is_empty()) {
            more.extend(before.facts.scopes.iter().chain(&before.facts.wanted).cloned());
        }
        let scopes = discovered.scopes(&site.oauth.scopes, &more).await;
        Ok(Beginning { site, discovered, before, scopes })
    }

    /// Begins a login in a browser. Nothing is opened: that is for whoever asks.
    ///
    /// # Errors
    /// When the server wants none, or it cannot be found out how to log in.
    pub async fn log_in(
        &self,
        server: &ServerConfig,
        more: &[String],
    ) -> Result<Login, LoginError> {
        let Beginning { site, mut discovered, before, scopes } = self.begin(server, more).await?;
        let default = Url::parse(REDIRECT).expect("a constant");
        let wanted = site.oauth.redirect_uri.clone().unwrap_or(default);
        let known = before.and_then(known_client);
        let (callback, known) = listen(&wanted, known).await?;
        let redirect_uri = callback.redirect_uri().as_str();
        let client = match (&site.oauth.client, known) {
            (Some(configured), _)
                if !configured.is_metadata_document()
                    || discovered.supports("client_id_metadata_document_supported") =>
            {
                Client::of_config(configured, &discovered, &self.0.store).await?
            }
            (_, Some(known)) => known,
            _ => register(&discovered, redirect_uri, "authorization_code", &scopes).await?,
        };
        let address = address(&mut discovered, &client, redirect_uri, &scopes).await?;
        let authorizer = self.authorizer(server);
        let authorizer = authorizer.ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let (store, tasks) = (self.0.store.clone(), self.0.tasks.clone());
        Ok(Login { site, address, callback, discovered, client, scopes, store, tasks, authorizer })
    }
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

/// Asks the server as nobody, and returns what it says of logging in.
async fn challenge(site: &Site) -> Result<String, LoginError> {
    let guard = Guard::new([site.remote.url.clone()]).await?;
    let url = site.remote.url.as_str();
    let asking = "application/json, text/event-stream";
    // An HTTP+SSE server answers a GET only.
    let requests = [
        Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(PING.as_bytes().to_vec()),
        Request::get(url).body(Vec::new()),
    ];
    for request in requests {
        let mut request = request.map_err(|error| LoginError::Unreachable(error.to_string()))?;
        request.headers_mut().insert(header::ACCEPT, header::HeaderValue::from_static(asking));
        for (name, value) in &site.remote.headers {
            if let (Ok(name), Ok(value)) =
                (header::HeaderName::try_from(name), header::HeaderValue::try_from(value))
            {
                request.headers_mut().insert(name, value);
            }
        }
        let response = guard.execute(request).await;
        let response = response.map_err(|error| LoginError::Unreachable(error.to_string()))?;
        if response.status().as_u16() == 401 {
            let values = response.headers().get_all(header::WWW_AUTHENTICATE).iter();
            let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
            return Ok(values.join(", "));
        }
    }
    Err(LoginError::NotWanted(site.name.clone()))
}

const PING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;

/// The client that was registered for an earlier login.
fn known_client(before: Credential) -> Option<Client> {
    let Credential { facts, client_secret, .. } = before;
    facts.redirect_uri.as_ref()?;
    let (id, method, redirect_uri) = (facts.client_id, facts.method, facts.redirect_uri);
    Some(Client { id, method, secret: client_secret, redirect_uri })
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
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let address = discovered.manager.get_authorization_url(&scopes).await.map_err(failed)?;
    judged(&address, &discovered.guard)
}

/// An address that a browser may be sent to: a web page, and nothing that a shell or another program would read
/// otherwise (MCP, Security Best Practices, authorization URLs).
fn judged(address: &str, guard: &Guard) -> Result<Url, LoginError> {
    let bad = |why: &str| LoginError::BadAddress(why.to_owned());
    let url = Url::parse(address).map_err(|_| bad("it is no URL"))?;
    if address.len() > LONGEST_ADDRESS {
        return Err(bad("it is too long"));
    }
    guard.check(&url).map_err(|error| LoginError::BadAddress(error.to_string()))?;
    Ok(url)
}

impl Login {
    /// Where to log in.
    pub fn address(&self) -> &Url {
        &self.address
    }

    /// Where the browser comes back to.
    pub fn redirect_uri(&self) -> &Url {
        self.callback.redirect_uri()
    }

    pub fn server(&self) -> &str {
        &self.site.name
    }

    /// Waits for the browser as long as it takes, and gets the tokens. What is not of this login is refused, and waited
    /// on.
    ///
    /// # Errors
    /// When there are no tokens to be had.
    pub async fn finish(&mut self) -> Result<(), LoginError> {
        loop {
            let returned = self.callback.returned().await;
            let outcome = self.complete(&returned.url).await;
            returned.answer(match &outcome {
                Ok(()) => Answer::LoggedIn { server: self.site.name.clone() },
                Err(error) => Answer::Failed { why: error.to_string() },
            });
            if !matches!(outcome, Err(LoginError::Foreign)) {
                // The page is on its way.
                tokio::time::sleep(Duration::from_millis(50)).await;
                return outcome;
            }
        }
    }

    /// Takes what a browser came back with, on this machine or another.
    ///
    /// # Errors
    /// [`LoginError::Foreign`] for what is not of this login, which is still open then.
    pub async fn complete(&self, returned: &Url) -> Result<(), LoginError> {
        let brought = |name: &str| {
            let mut pairs = returned.query_pairs();
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let state = brought("state").filter(|state| Some(state) == self.state().as_ref());
        let state = state.ok_or(LoginError::Foreign)?;
        let issuer = brought("iss");
        let expected = self.discovered.metadata.issuer.as_ref();
        if issuer.is_some() && issuer.as_ref() != expected {
            // It may be anybody's code, and is not for this token endpoint (RFC 9207 section 2.4).
            return Err(LoginError::WrongIssuer(self.discovered.issuer.clone()));
        }
        if let Some(error) = brought("error") {
            let about = brought("error_description").map(|about| format!(": {about}"));
            let said = error + &about.unwrap_or_default();
            return Err(LoginError::Refused(scrubbed(&said, &[])));
        }
        let code = brought("code").ok_or(LoginError::Foreign)?;
        let manager = &self.discovered.manager;
        let given =
            manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref()).await;
        let secret = self.client.secret.as_ref().map_or("", Secret::expose);
        let given = given.map_err(|error| {
            LoginError::Exchange(scrubbed(&error.to_string(), &[&code, &state, secret]))
        })?;
        self.keep(Granted::of(&given)).await
    }

    async fn keep(&self, granted: Granted) -> Result<(), LoginError> {
        let (url, scopes) = (&self.site.remote.url, self.scopes.clone());
        let login = granted.into_login(url, &self.discovered, self.client.clone(), scopes);
        keep(&self.store, &self.tasks, &self.site, login).await?;
        self.authorizer.forget();
        Ok(())
    }

    fn state(&self) -> Option<String> {
        let mut pairs = self.address.query_pairs();
        pairs.find(|(name, _)| name == "state").map(|(_, state)| state.into_owned())
    }
}

/// Keeps a first login, whatever becomes of whoever has asked for it.
pub(super) async fn keep(
    store: &Arc<Store>,
    tasks: &TaskTracker,
    site: &Site,
    login: Credential,
) -> Result<(), LoginError> {
    let (store, slot) = (store.clone(), site.slot.clone());
    let keeping = tasks.spawn(async move {
        let held = store.hold(&slot).await?;
        store.run(move |store| store.write(&slot, &held, &login)).await
    });
    Ok(keeping.await.unwrap_or(Err(StoreError::Ending))?)
}
