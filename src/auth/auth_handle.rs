//! All logins of a process.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

use super::{Browser, LoginStore, LoginSummary, LoginTarget, authorizer::Authorizer};
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
    /// Keyed by the name of the server.
    authorizers: Lock<HashMap<String, Arc<Authorizer>>>,
    /// Work that must run to its end: a token that was granted but not saved is lost.
    tasks: TaskTracker,
}

impl Auth {
    pub(crate) fn new(store: LoginStore, commands: UserCommands, browser: Browser) -> Self {
        let (authorizers, tasks) = Default::default();
        Self(Arc::new(AuthInner { store: Arc::new(store), commands, browser, authorizers, tasks }))
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
    /// remote, or its config entry has an `Authorization` header.
    pub(crate) fn credentials(&self, server: &ServerConfig) -> Option<Arc<dyn Credentials>> {
        Some(self.authorizer(server)?)
    }

    pub(super) fn authorizer(&self, server: &ServerConfig) -> Option<Arc<Authorizer>> {
        let target = LoginTarget::of(server)?;
        let AuthInner { store, commands, authorizers, tasks, .. } = self.0.as_ref();
        let mut authorizers = authorizers.lock();
        if let Some(known) = authorizers.get(&server.name).filter(|known| known.is_for(&target)) {
            return Some(known.clone());
        }
        let command = commands.login(&server.name);
        let fresh = Authorizer::new(target, command, store.clone(), tasks.clone());
        authorizers.insert(server.name.clone(), fresh.clone());
        Some(fresh)
    }

    /// Returns what is known of a server's login without reading its secrets; `None` if the user is
    /// not logged in.
    pub(crate) fn summary(&self, server: &ServerConfig) -> Option<LoginSummary> {
        let known = self.0.store.summary(&LoginTarget::of(server)?.key);
        // A stored entry without tokens may hold only a client registration.
        known.filter(|login| login.is_usable || login.is_renewable)
    }

    /// Waits until renewals and logins in progress have been saved.
    pub(crate) async fn end(&self) {
        self.0.tasks.close();
        // A task may be waiting for another process to release a lock.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.0.tasks.wait()).await;
    }

    /// Returns the command with which a user logs in to a server.
    pub(crate) fn command(&self, server: &str) -> String {
        self.0.commands.login(server)
    }
}
