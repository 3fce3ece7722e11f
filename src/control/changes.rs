//! Changes of the config that a client of the control API requests. The task that follows the
//! config makes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::config::{ConfigEdit, ConfigError, Unchanged};

/// A change of the config, or a reload.
#[derive(Clone, Debug)]
pub(crate) enum ConfigChange {
    Edit(ConfigEdit),
    /// Applies the config file as it is now.
    Reload,
}

/// The effect of a change, by the names of servers.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppliedChange {
    pub added: Vec<String>,
    /// Servers that were restarted.
    pub restarted: Vec<String>,
    /// Servers that are only shown differently; their connections stay.
    pub shown_differently: Vec<String>,
    pub removed: Vec<String>,
    /// Settings that are in force from the next start on.
    pub at_next_start: Vec<String>,
}

/// The reason that a change was not made. The config is unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error(transparent)]
    Unchanged(#[from] Unchanged),
    #[error("the config would not be valid")]
    Invalid(#[source] ConfigError),
    #[error("this dormouse wraps one command and has no config to change")]
    NoConfig,
    #[error("dormouse is shutting down")]
    ShuttingDown,
}

/// A change with a channel for its outcome.
#[derive(Debug)]
pub(crate) struct ChangeRequest {
    pub change: ConfigChange,
    pub answer: oneshot::Sender<Result<AppliedChange, ChangeError>>,
}

/// Sends requests to the task that changes the config; `None` if there is no config.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeSender(Option<mpsc::Sender<ChangeRequest>>);

/// Maximum number of requests in the queue; further ones wait to enter it.
const MAX_WAITING: usize = 16;

impl ChangeSender {
    /// Creates a sender and the receiver of its requests.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<ChangeRequest>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(Some(sender)), receiver)
    }

    /// Requests a change, and waits until it is in effect.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) async fn make(&self, change: ConfigChange) -> Result<AppliedChange, ChangeError> {
        let (answer, made) = oneshot::channel();
        let wanted = ChangeRequest { change, answer };
        let sender = self.0.as_ref().ok_or(ChangeError::NoConfig)?;
        sender.send(wanted).await.map_err(|_| ChangeError::ShuttingDown)?;
        made.await.unwrap_or(Err(ChangeError::ShuttingDown))
    }
}
