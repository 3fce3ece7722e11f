//! Logins of people at a service: their browsers start and return at the public address of the
//! service.
//!
//! The service checks who a person is before it begins a login, and whether the browser that
//! returns is the one that has begun. Otherwise an attacker could have a victim complete the login
//! of the attacker (MCP 2025-11-25, client/elicitation, Phishing).

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use url::Url;

use super::{
    Auth, LoginError, LoginOwner, PublicAddress,
    auth_client::AuthClient,
    code_login::{CodeLogin, ReturnPath},
    login_key::LoginKey,
    login_page::LoginPage,
    login_store::LoginStore,
};
use crate::{
    base::{Lock, random_token},
    config::ServerConfig,
    wire::credentials::Credentials as _,
};

/// The path to which browsers return from the authorization server of a server.
pub(crate) const RETURN_PATH: &str = "/login/done";

/// Maximum time that a browser takes to return from the page of a login.
pub(crate) const RETURN_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum number of logins of one person to one server that wait for a browser.
const MAX_OPEN_OF_PERSON: usize = 3;
/// Maximum number of logins that wait for a browser.
const MAX_OPEN: usize = 1000;

/// The logins of people that have begun at this process.
pub(crate) struct PublicLogins {
    address: PublicAddress,
    /// The prefix of all ids, by which other replicas recognize them.
    mark: String,
    open: Lock<HashMap<String, OpenLogin>>,
}

/// A login that waits for a browser.
struct OpenLogin {
    login: CodeLogin,
    /// The server as it was when the login began.
    server: ServerConfig,
    owner: LoginOwner,
    until: Instant,
}

/// A login that has begun.
pub(crate) struct PublicLogin {
    /// Identifies it in `state`.
    pub(crate) id: String,
    /// The page of the authorization server.
    pub(crate) address: Url,
}

impl PublicLogins {
    /// `mark`: the prefix of the ids of this process.
    pub(crate) fn new(address: PublicAddress, mark: &str) -> Self {
        Self { address, mark: mark.to_owned(), open: Lock::default() }
    }

    /// Returns the address at which people log in.
    pub(crate) fn address(&self) -> &PublicAddress {
        &self.address
    }

    /// Begins the login of a person to a server.
    ///
    /// # Errors
    /// When the server requires no login, or discovery or registration fails.
    pub(crate) async fn begin(
        &self,
        auth: &Auth,
        server: &ServerConfig,
        owner: LoginOwner,
    ) -> Result<PublicLogin, LoginError> {
        if self.count_open() >= MAX_OPEN {
            return Err(LoginError::TooMany);
        }
        let prepared = auth.prepare_login(server, Some(owner), &[]).await?;
        let authorizer = auth.authorizer(server, Some(owner));
        let authorizer = authorizer.ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let redirect_uri = &self.address.with(RETURN_PATH);
        let target = &prepared.target;
        // All people share the registered client.
        let registration = LoginKey::of_shared_client(&target.remote, &target.oauth, redirect_uri);
        let kept = auth.store().run_for(&registration, LoginStore::read).await.ok().flatten();
        let kept = kept.filter(|kept| kept.facts.issuer == prepared.auth_server.issuer);
        let registered = kept.as_ref().and_then(AuthClient::registered_for);
        // Wider scopes need a new registration.
        let registered = registered.filter(|client| client.may_ask_for(&prepared.scopes));
        let id = format!("{}{}", self.mark, random_token::<18>());
        let state_prefix = &format!("{id}.");
        let back = ReturnPath { redirect_uri, state_prefix, registered, registration };
        let login = auth.begin_code_login(prepared, authorizer, back).await?;
        let address = login.address().clone();
        self.keep(id.clone(), login, server, owner);
        Ok(PublicLogin { id, address })
    }

    /// Forgets the logins whose time is over. Returns the number of the others.
    fn count_open(&self) -> usize {
        let mut open = self.open.lock();
        let now = Instant::now();
        open.retain(|_, login| login.until > now);
        open.len()
    }

    /// Keeps a login until its browser returns. A person has a few to one server, one in each tab.
    fn keep(&self, id: String, login: CodeLogin, server: &ServerConfig, owner: LoginOwner) {
        let mut open = self.open.lock();
        let now = Instant::now();
        let same = open.iter().filter(|(_, it)| it.owner == owner && it.server.name == server.name);
        let mut same: Vec<(Instant, String)> =
            same.map(|(id, it)| (it.until, id.clone())).collect();
        same.sort();
        let surplus = (same.len() + 1).saturating_sub(MAX_OPEN_OF_PERSON);
        for (_, oldest) in same.drain(..surplus) {
            open.remove(&oldest);
        }
        let server = server.clone();
        open.insert(id, OpenLogin { login, server, owner, until: now + RETURN_TIMEOUT });
    }

    /// Completes a login with the query with which the browser has returned. Returns the page that
    /// tells the outcome. `present`: the config of a server of this name, if people may log in to
    /// it.
    pub(crate) async fn complete(
        &self,
        id: &str,
        query: Option<&str>,
        present: impl Fn(&str) -> Option<Arc<ServerConfig>>,
    ) -> LoginPage {
        let now = Instant::now();
        let open = self.open.lock().remove(id).filter(|login| login.until > now);
        let is_wanted = |open: &OpenLogin| {
            let now = present(&open.server.name);
            now.is_some_and(|now| now.transport == open.server.transport)
        };
        let Some(OpenLogin { login, .. }) = open.filter(is_wanted) else {
            let why = "this login has ended, or the server has changed; start it again";
            return LoginPage::Failed { why: why.to_owned() };
        };
        let mut returned = self.address.with(RETURN_PATH);
        returned.set_query(query);
        LoginPage::of(login.server(), &login.complete(&returned).await)
    }
}

/// Returns the id of the login in a `state`.
pub(crate) fn login_id_in(state: &str) -> &str {
    state.split_once('.').map_or(state, |(id, _)| id)
}

impl Auth {
    /// Returns the address at which a person logs in to a server, and waits until they have, with a
    /// login other than the present one.
    ///
    /// # Errors
    /// When the server requires no login, or the service has no public address.
    pub(crate) fn public_login_of(
        &self,
        server: &ServerConfig,
        owner: LoginOwner,
    ) -> Result<(Url, BoxFuture<'static, ()>), LoginError> {
        let authorizer = self.authorizer(server, Some(owner));
        let authorizer = authorizer.ok_or_else(|| LoginError::NotRemote(server.name.clone()))?;
        let address = self.public_address().ok_or(LoginError::NoPublicAddress)?;
        let made = Box::pin(async move { authorizer.changed().await });
        Ok((address.of_login(&server.name), made))
    }
}
