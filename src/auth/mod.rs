//! Logins: how dormouse obtains, stores and renews tokens for servers (OAuth 2.1 as MCP profiles
//! it: basic/authorization in 2025-11-25 and 2026-07-28).
//!
//! [`Auth`] is shared by all servers of the process. `authorizer` supplies the credentials for a
//! server's requests and renews them; [`Login`] leads a user to a first token. rmcp discovers
//! authorization servers and exchanges codes for tokens; `oauth2` makes the other token requests.
//! Both send them through `guarded_client`, which decides which addresses dormouse may contact.
//! This layer must not know what a request to a server is for, nor who waits for it.

mod auth_client;
mod auth_method;
mod authorization_response;
mod authorizer;
mod browser;
mod browser_login;
mod callback;
mod configured_client;
mod credential;
mod device;
mod discovery;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod guarded_client;
mod keychain;
mod login_error;
mod login_store;
mod login_store_error;
mod login_url;
mod preparation;
mod redaction;
mod registration;
mod revocation;
mod scopes;
mod token_request;
mod unix_time;

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

pub(crate) use auth_client::ClientError;
pub(crate) use browser::{can_open_browser, open_in_browser};
pub(crate) use browser_login::Login;

pub(crate) use credential::LoginSummary;
pub(crate) use device::DeviceLogin;
pub(crate) use guarded_client::GuardedClientError;

pub(crate) use login_error::LoginError;
pub(crate) use login_store::LoginStore;
pub(crate) use revocation::LogoutOutcome;

use crate::{
    base::Lock,
    config::{OAuth, Remote, ServerConfig, Transport},
    wire::credentials::Credentials,
};
use authorizer::Authorizer;
use guarded_client::GuardedClient;
use login_store::LoginKey;

/// Maximum time that running renewals and logins get to finish when dormouse shuts down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// All logins of the process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Auth(Arc<AuthInner>);

struct AuthInner {
    store: Arc<LoginStore>,
    command: LoginCommand,
    /// Keyed by the name of the server.
    authorizers: Lock<HashMap<String, Arc<Authorizer>>>,
    /// Work that must run to its end: a token that was granted but not saved is lost.
    tasks: TaskTracker,
}

impl Auth {
    pub(crate) fn new(store: LoginStore, command: LoginCommand) -> Self {
        let (authorizers, tasks) = Default::default();
        Self(Arc::new(AuthInner { store: Arc::new(store), command, authorizers, tasks }))
    }

    /// Returns the source of credentials for a server's requests. `None` if the server is not
    /// remote, or its config entry has an `Authorization` header.
    pub(crate) fn credentials(&self, server: &ServerConfig) -> Option<Arc<dyn Credentials>> {
        Some(self.authorizer(server)?)
    }

    fn authorizer(&self, server: &ServerConfig) -> Option<Arc<Authorizer>> {
        let target = LoginTarget::of(server)?;
        let AuthInner { store, command, authorizers, tasks } = self.0.as_ref();
        let mut authorizers = authorizers.lock();
        if let Some(known) = authorizers.get(&server.name).filter(|known| known.is_for(&target)) {
            return Some(known.clone());
        }
        let command = command.login(&server.name);
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
        self.0.command.login(server)
    }
}

/// A server that a login is for.
#[derive(Clone)]
struct LoginTarget {
    name: String,
    remote: Arc<Remote>,
    oauth: Arc<OAuth>,
    key: LoginKey,
}

impl LoginTarget {
    fn of(server: &ServerConfig) -> Option<Self> {
        let Ok(Transport::Http(remote)) = &server.transport else { return None };
        let oauth = Arc::new(OAuth::clone(remote.oauth.as_deref()?));
        let key = LoginKey::of(remote, &oauth);
        Some(Self { name: server.name.clone(), remote: Arc::new(remote.clone()), oauth, key })
    }

    /// Returns the HTTP client for requests about this login.
    fn http(&self) -> Result<GuardedClient, GuardedClientError> {
        let named = self.oauth.auth_server.as_ref();
        GuardedClient::new([Some(&self.remote.url), named].into_iter().flatten().cloned())
    }
}

/// The parts of the login command that errors tell the user to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginCommand {
    /// Set if the config is found only when the command names it.
    pub config: Option<PathBuf>,
    pub env_file: Option<PathBuf>,
}

impl LoginCommand {
    fn login(&self, server: &str) -> String {
        let mut words = vec!["dormouse".to_owned(), "login".to_owned(), server.to_owned()];
        for (flag, path) in [("--config", &self.config), ("--env-file", &self.env_file)] {
            if let Some(path) = path {
                words.extend([flag.to_owned(), path.display().to_string()]);
            }
        }
        // `shlex` refuses a name with a zero byte, which a user cannot type anyway.
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_command_is_quoted_for_a_shell() {
        let plain = LoginCommand::default();
        assert_eq!(plain.login("linear"), "dormouse login linear");
        let config = Some("/a b/dormouse.json".into());
        let elsewhere = LoginCommand { config, env_file: None };
        assert_eq!(
            elsewhere.login("my $x"),
            "dormouse login 'my $x' --config '/a b/dormouse.json'"
        );
    }
}
