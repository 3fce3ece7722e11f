//! The servers that a user can log in to.

use std::sync::Arc;

use super::{GuardedClientError, LoginOwner, guarded_client::GuardedClient, login_key::LoginKey};
use crate::config::{OAuth, Remote, ServerConfig, Transport};

/// A server that a login is for.
#[derive(Clone)]
pub(super) struct LoginTarget {
    pub(super) name: String,
    pub(super) remote: Arc<Remote>,
    pub(super) oauth: Arc<OAuth>,
    pub(super) key: LoginKey,
}

impl LoginTarget {
    /// `owner`: the person whose login it is; `None` for that of all hosts.
    pub(super) fn of(server: &ServerConfig, owner: Option<LoginOwner>) -> Option<Self> {
        let Ok(Transport::Http(remote)) = &server.transport else { return None };
        let oauth = Arc::new(OAuth::clone(remote.oauth.as_deref()?));
        let key = LoginKey::of(remote, &oauth, owner);
        Some(Self { name: server.name.clone(), remote: Arc::new(remote.clone()), oauth, key })
    }

    /// Returns the HTTP client for requests about this login.
    pub(super) fn http(&self) -> Result<GuardedClient, GuardedClientError> {
        let named = self.oauth.auth_server.as_ref();
        GuardedClient::new([Some(&self.remote.url), named].into_iter().flatten().cloned())
    }
}
