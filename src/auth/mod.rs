//! Logins: how tokens for servers are got, kept and renewed (OAuth 2.1, as MCP has it: 2025-11-25 and 2026-07-28,
//! basic/authorization).
//!
//! [`Auth`] is what all servers of the process share. `authorizer` gives a server's requests what they
//! show, and renews it; [`Login`] is a person's way to a first token. What others do for us: rmcp finds out who gives
//! tokens and takes a code for one, `oauth2` makes the other requests for tokens. Both go through `guard`, which
//! knows who may be asked. This layer must not know what a request to a server is for, nor who waits for it.

mod authorizer;
mod beginning;
mod browser;
mod callback;
mod client;
mod credential;
mod device;
mod discovery;
mod error;
mod files;
mod guard;
mod keychain;
mod login;
mod registration;
mod revocation;
mod scopes;
mod store;
mod token;

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

pub use browser::{can_open_browser, open_in_browser};
pub use callback::Returned;
pub use client::NoClient;
pub use credential::Summary;
pub use device::DeviceLogin;
pub use error::{LoginError, TokenError};
pub use guard::GuardError;
pub use keychain::KeychainError;
pub use login::Login;
pub use revocation::LoggedOut;
pub use store::{Store, StoreError};

use crate::{
    base::Lock,
    config::{OAuth, Remote, ServerConfig, Transport},
    wire::credentials::Credentials,
};
use authorizer::Authorizer;
use guard::Guard;
use store::Slot;

/// How long an authorization server may take for its last answer.
const END_TIMEOUT: Duration = Duration::from_secs(8);

/// All logins of the process. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Shared>);

struct Shared {
    store: Arc<Store>,
    command: LoginCommand,
    /// By the name of the server.
    authorizers: Lock<HashMap<String, Arc<Authorizer>>>,
    /// What must not be given up half-way: a token that was given and is not kept is lost.
    tasks: TaskTracker,
}

impl Auth {
    pub fn new(store: Store, command: LoginCommand) -> Self {
        let (authorizers, tasks) = Default::default();
        Self(Arc::new(Shared { store: Arc::new(store), command, authorizers, tasks }))
    }

    /// What a server's requests show; `None` for one that needs nothing, or whose config says it all.
    pub fn credentials(&self, server: &ServerConfig) -> Option<Arc<dyn Credentials>> {
        Some(self.authorizer(server)?)
    }

    fn authorizer(&self, server: &ServerConfig) -> Option<Arc<Authorizer>> {
        let site = Site::of(server)?;
        let Shared { store, command, authorizers, tasks } = self.0.as_ref();
        let mut authorizers = authorizers.lock();
        if let Some(known) = authorizers.get(&server.name).filter(|known| known.is_for(&site)) {
            return Some(known.clone());
        }
        let command = command.login(&server.name);
        let fresh = Authorizer::new(site, command, store.clone(), tasks.clone());
        authorizers.insert(server.name.clone(), fresh.clone());
        Some(fresh)
    }

    /// What is known of a server's login without looking at the secrets; `None` where there is none.
    pub fn summary(&self, server: &ServerConfig) -> Option<Summary> {
        let known = self.0.store.summary(&Site::of(server)?.slot);
        // What is left may be no more than a registration.
        known.filter(|login| login.is_usable || login.is_renewable)
    }

    /// Waits until what is being renewed has been kept.
    pub async fn end(&self) {
        self.0.tasks.close();
        // Some of it may wait for other processes.
        let _ = tokio::time::timeout(END_TIMEOUT, self.0.tasks.wait()).await;
    }

    /// By which somebody logs in to a server.
    pub fn command(&self, server: &str) -> String {
        self.0.command.login(server)
    }
}

/// A server as logins know it.
#[derive(Clone)]
struct Site {
    name: String,
    remote: Arc<Remote>,
    oauth: Arc<OAuth>,
    slot: Slot,
}

impl Site {
    fn of(server: &ServerConfig) -> Option<Self> {
        let Ok(Transport::Http(remote)) = &server.transport else { return None };
        let oauth = Arc::new(OAuth::clone(remote.oauth.as_deref()?));
        let slot = Slot::of(remote, &oauth);
        Some(Self { name: server.name.clone(), remote: Arc::new(remote.clone()), oauth, slot })
    }

    /// Who may be asked about it.
    fn guard(&self) -> Result<Guard, GuardError> {
        let named = self.oauth.auth_server.as_ref();
        Guard::new([Some(&self.remote.url), named].into_iter().flatten().cloned())
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
    fn the_command_can_be_pasted_into_a_shell() {
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
