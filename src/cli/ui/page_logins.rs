//! The logins that a user has begun on the page.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::time::error::Elapsed;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
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
    begun: Lock<BegunLogins>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct BegunLogins {
    /// The last login of each server, until it has succeeded.
    by_server: HashMap<String, BegunLogin>,
    /// The number of the last login.
    last: u64,
}

struct BegunLogin {
    number: u64,
    progress: LoginProgress,
    /// Ends the task that waits for it.
    _end: DropGuard,
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
        Arc::new(Self { auth, begun: Lock::default(), tasks: TaskTracker::new() })
    }

    pub(super) fn progress(&self) -> HashMap<String, LoginProgress> {
        let begun = self.begun.lock();
        let logins = begun.by_server.iter();
        logins.map(|(server, login)| (server.clone(), login.progress.clone())).collect()
    }

    /// Begins a login, in place of an earlier one. Returns the address for the user.
    ///
    /// # Errors
    /// When the server requires no login, or discovery or registration fails.
    pub(super) async fn begin(self: &Arc<Self>, server: &ServerConfig) -> Result<Url, LoginError> {
        let login = self.auth.begin_browser_login(server, &[]).await?;
        let address = login.address().clone();
        let end = CancellationToken::new();
        let number = {
            let mut begun = self.begun.lock();
            begun.last += 1;
            let (number, progress) =
                (begun.last, LoginProgress::Waiting { address: address.clone() });
            let login = BegunLogin { number, progress, _end: end.clone().drop_guard() };
            begun.by_server.insert(server.name.clone(), login);
            number
        };
        let (logins, name) = (self.clone(), server.name.clone());
        self.tasks.spawn(async move {
            let waiting = tokio::time::timeout(LOGIN_TIMEOUT, outcome(login));
            if let Some(outcome) = end.run_until_cancelled(waiting).await {
                logins.note(&name, number, outcome);
            }
        });
        Ok(address)
    }

    /// Notes the outcome of a login, unless another one has begun.
    fn note(&self, server: &str, number: u64, outcome: Result<Result<(), LoginError>, Elapsed>) {
        let mut begun = self.begun.lock();
        let Some(login) = begun.by_server.get_mut(server).filter(|login| login.number == number)
        else {
            return;
        };
        let error = match outcome {
            Ok(Ok(())) => {
                begun.by_server.remove(server);
                return;
            }
            Ok(Err(error)) => with_causes(&error),
            Err(_) => "the login was not completed within 10 minutes: begin it again".to_owned(),
        };
        login.progress = LoginProgress::Failed { error };
    }

    /// Ends all logins.
    pub(super) async fn end(&self) {
        self.begun.lock().by_server.clear();
        self.tasks.close();
        self.tasks.wait().await;
        self.auth.end().await;
    }
}

/// Waits until the browser returns.
async fn outcome(mut login: Login) -> Result<(), LoginError> {
    loop {
        let returned = login.returned().await;
        if let Some(outcome) = login.take(returned).await {
            return outcome;
        }
    }
}
