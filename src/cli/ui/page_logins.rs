//! The logins that a user has begun on the page.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::task::AbortHandle;
use url::Url;

use crate::{
    auth::{Auth, Login, LoginError},
    base::{Lock, with_causes},
    config::ServerConfig,
};

/// Maximum time for the user to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(10);

/// Begins logins, and waits for the browser to return from them.
pub(super) struct PageLogins {
    auth: Auth,
    /// The last login of each server, as long as it has not succeeded.
    logins: Lock<HashMap<String, BegunLogin>>,
}

struct BegunLogin {
    progress: LoginProgress,
    waiting: Option<AbortHandle>,
}

/// The progress of a login.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub(super) enum LoginProgress {
    /// The user has not logged in yet.
    Waiting {
        address: Url,
    },
    Failed {
        error: String,
    },
}

impl PageLogins {
    pub(super) fn new(auth: Auth) -> Arc<Self> {
        Arc::new(Self { auth, logins: Lock::default() })
    }

    pub(super) fn progress(&self) -> HashMap<String, LoginProgress> {
        let logins = self.logins.lock();
        logins.iter().map(|(server, login)| (server.clone(), login.progress.clone())).collect()
    }

    /// Begins a login, in place of an earlier one. Returns the address for the user.
    ///
    /// # Errors
    /// When the server requires no login, or discovery or registration fails.
    pub(super) async fn begin(self: &Arc<Self>, server: &ServerConfig) -> Result<Url, LoginError> {
        let login = self.auth.begin_browser_login(server, &[]).await?;
        let address = login.address().clone();
        let name = server.name.clone();
        let waiting = tokio::spawn(self.clone().wait(name.clone(), login)).abort_handle();
        let progress = LoginProgress::Waiting { address: address.clone() };
        let begun = BegunLogin { progress, waiting: Some(waiting) };
        let earlier = self.logins.lock().insert(name, begun);
        if let Some(waiting) = earlier.and_then(|earlier| earlier.waiting) {
            waiting.abort();
        }
        Ok(address)
    }

    /// Waits for the outcome of a login, and notes it.
    async fn wait(self: Arc<Self>, server: String, mut login: Login) {
        let outcome = tokio::time::timeout(LOGIN_TIMEOUT, outcome(&mut login)).await;
        let mut logins = self.logins.lock();
        let error = match outcome {
            Ok(Ok(())) => {
                logins.remove(&server);
                return;
            }
            Ok(Err(error)) => with_causes(&error),
            Err(_) => "nobody has logged in for ten minutes".to_owned(),
        };
        let progress = LoginProgress::Failed { error };
        logins.insert(server, BegunLogin { progress, waiting: None });
    }

    /// Ends all logins.
    pub(super) async fn end(&self) {
        let begun = std::mem::take(&mut *self.logins.lock());
        for waiting in begun.into_values().filter_map(|login| login.waiting) {
            waiting.abort();
        }
        self.auth.end().await;
    }
}

/// Waits until the browser returns.
async fn outcome(login: &mut Login) -> Result<(), LoginError> {
    loop {
        let returned = login.returned().await;
        if let Some(outcome) = login.take(returned).await {
            return outcome;
        }
    }
}
