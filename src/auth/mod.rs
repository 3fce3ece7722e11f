//! Logins: how tokens for servers are got, kept and renewed (OAuth 2.1, as MCP has it: 2025-11-25 and 2026-07-28,
//! basic/authorization).
//!
//! [`Auth`] is what all servers of the process share. `authorizer` gives a server's requests what they
//! show, and renews it; [`Login`] is a person's way to a first token. What others do for us: rmcp finds out who gives
//! tokens and takes a code for one, `oauth2` makes the other requests for tokens. Both go through `guard`, which
//! knows who may be asked. This layer must not know what a request to a server is for, nor who waits for it.

mod auth_client;
mod authorizer;
mod browser;
mod browser_login;
mod callback;
mod credential;
mod device;
mod discovery;
mod guarded_client;
mod keychain;
mod login_error;
mod preparation;
mod private_files;
mod registration;
mod revocation;
mod scopes;
mod store;
mod token_request;

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

pub use auth_client::ClientError;
pub use browser::{can_open_browser, open_in_browser};
pub use browser_login::Login;
pub use callback::CallbackRequest;
pub use credential::Summary;
pub use device::DeviceLogin;
pub use guarded_client::GuardedClientError;
pub use keychain::KeychainError;
pub use login_error::{LoginError, TokenError};
pub use revocation::LogoutOutcome;
pub use store::{LoginStore, StoreError};

use crate::{
    base::Lock,
    config::{OAuth, Remote, ServerConfig, Transport},
    wire::credentials::Credentials,
};
use authorizer::Authorizer;
use guarded_client::GuardedClient;
use store::LoginKey;

/// How long an authorization server may take for its last answer.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// All logins of the process. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<AuthInner>);

struct AuthInner {
    store: Arc<LoginStore>,
    command: LoginCommand,
    /// By the name of the server.
    authorizers: Lock<HashMap<String, Arc<Authorizer>>>,
    /// What must not be given up half-way: a token that was given and is not kept is lost.
    tasks: TaskTracker,
}

impl Auth {
    pub fn new(store: LoginStore, command: LoginCommand) -> Self {
        let (authorizers, tasks) = Default::default();
        Self(Arc::new(AuthInner { store: Arc::new(store), command, authorizers, tasks }))
    }

    /// What a server's requests show; `None` for one that needs nothing, or whose config says it all.
    pub fn credentials(&self, server: &ServerConfig) -> Option<Arc<dyn Credentials>> {
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

    /// What is known of a server's login without looking at the secrets; `None` where there is none.
    pub fn summary(&self, server: &ServerConfig) -> Option<Summary> {
        let known = self.0.store.summary(&LoginTarget::of(server)?.key);
        // What is left may be no more than a registration.
        known.filter(|login| login.is_usable || login.is_renewable)
    }

    /// Waits until what is being renewed has been kept.
    pub async fn end(&self) {
        self.0.tasks.close();
        // Some of it may wait for other processes.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.0.tasks.wait()).await;
    }

    /// By which somebody logs in to a server.
    pub fn command(&self, server: &str) -> String {
        self.0.command.login(server)
    }
}

/// A server as logins know it.
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

    /// Who may be asked about it.
    fn http(&self) -> Result<GuardedClient, GuardedClientError> {
        let named = self.oauth.auth_server.as_ref();
        GuardedClient::new([Some(&self.remote.url), named].into_iter().flatten().cloned())
    }
}

/// How a person logs in: the command that errors name.
#[derive(Clone, Debug, Default)]
pub struct LoginCommand {
    /// Where a config has to be named for it to be found.
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
        // A name with a zero byte cannot be typed.
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
