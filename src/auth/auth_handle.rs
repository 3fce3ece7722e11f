//! All logins of a process.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio_util::task::TaskTracker;

use super::{
    Browser, LoginOwner, LoginStore, LoginSummary, LoginTarget, PublicAddress,
    authorizer::Authorizer, person_credentials::PersonCredentials,
};
use crate::{
    base::Lock,
    config::{ServerConfig, UserCommands},
    wire::credentials::Credentials,
};

/// Maximum time that running renewals and logins get to finish when dormouse shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// All logins of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Auth(Arc<AuthInner>);

struct AuthInner {
    store: Arc<LoginStore>,
    commands: UserCommands,
    browser: Browser,
    authorizers: Lock<HashMap<AuthorizerKey, Arc<Authorizer>>>,
    /// The address at which people log in, if there is one.
    public: OnceLock<PublicAddress>,
    /// Work that must run to its end: a token that was granted but not saved is lost.
    tasks: TaskTracker,
}

/// The name of a server, and the person whose login it is.
type AuthorizerKey = (String, Option<LoginOwner>);

impl Auth {
    pub(crate) fn new(store: LoginStore, commands: UserCommands, browser: Browser) -> Self {
        let (authorizers, public, tasks) = Default::default();
        let store = Arc::new(store);
        Self(Arc::new(AuthInner { store, commands, browser, authorizers, public, tasks }))
    }

    pub(crate) fn browser(&self) -> &Browser {
        &self.0.browser
    }

    pub(super) fn store(&self) -> &Arc<LoginStore> {
        &self.0.store
    }

    /// Returns the tracker of the work that must run to its end.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Returns the source of credentials for a server's requests. `None` if the server is not
    /// remote, or its config entry has an `Authorization` header. `owner`: the person whose login
    /// it is; `None` for that of all hosts.
    pub(crate) fn credentials(
        &self,
        server: &ServerConfig,
        owner: Option<LoginOwner>,
    ) -> Option<Arc<dyn Credentials>> {
        let authorizer = self.authorizer(server, owner)?;
        if owner.is_none() {
            return Some(authorizer);
        }
        let (key, store) = (LoginTarget::of(server, owner)?.key, self.store().clone());
        Some(Arc::new(PersonCredentials { authorizer, store, key }))
    }

    pub(super) fn authorizer(
        &self,
        server: &ServerConfig,
        owner: Option<LoginOwner>,
    ) -> Option<Arc<Authorizer>> {
        let target = LoginTarget::of(server, owner)?;
        let AuthInner { store, authorizers, tasks, .. } = self.0.as_ref();
        let mut authorizers = authorizers.lock();
        let key = (server.name.clone(), owner);
        if let Some(known) = authorizers.get(&key).filter(|known| known.is_for(&target)) {
            return Some(known.clone());
        }
        let remedy = self.remedy(&server.name, owner);
        // Those of people whose instances have ended.
        authorizers.retain(|(_, owner), known| owner.is_none() || Arc::strong_count(known) > 1);
        let fresh = Authorizer::new(target, remedy, store.clone(), tasks.clone());
        authorizers.insert(key, fresh.clone());
        Some(fresh)
    }

    /// Lets people log in by way of the public address of this service.
    pub(crate) fn serve_at(&self, address: PublicAddress) {
        // Set once, at the start of the service.
        let _ = self.0.public.set(address);
    }

    pub(super) fn public_address(&self) -> Option<&PublicAddress> {
        self.0.public.get()
    }

    /// Returns what is known of a server's login without reading its secrets; `None` if the user is
    /// not logged in.
    pub(crate) fn summary(&self, server: &ServerConfig) -> Option<LoginSummary> {
        let known = self.0.store.summary(&LoginTarget::of(server, None)?.key);
        // A stored entry without tokens may hold only a client registration.
        known.filter(|login| login.is_usable || login.is_renewable)
    }

    /// Waits until renewals and logins in progress have been saved.
    pub(crate) async fn end(&self) {
        self.0.tasks.close();
        // A task may be waiting for another process to release a lock.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.0.tasks.wait()).await;
    }

    /// Returns what to do to log in to a server: a sentence without its end.
    pub(crate) fn remedy(&self, server: &str, owner: Option<LoginOwner>) -> String {
        match (owner, self.0.public.get()) {
            (None, _) => format!("run `{}` in a terminal", self.0.commands.login(server)),
            (Some(_), Some(public)) => format!("open {} in a browser", public.of_login(server)),
            // Keys that take effect at a start were set meanwhile.
            (Some(_), None) => {
                "have the service started again, which has no page for it".to_owned()
            }
        }
    }
}
