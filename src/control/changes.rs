//! Changes of the config that somebody wants of a running dormouse. Whoever follows the config makes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::config::{ConfigEdit, Unchanged};

/// What is wanted.
#[derive(Clone, Debug)]
pub enum ConfigChange {
    Edit(ConfigEdit),
    /// Nothing but what the file says by now.
    Reload,
}

/// What came of it, by the names of servers.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Changed")]
pub struct AppliedChange {
    pub added: Vec<String>,
    /// Started anew.
    pub restarted: Vec<String>,
    /// Only shown otherwise; their connections stay.
    pub shown_otherwise: Vec<String>,
    pub removed: Vec<String>,
    /// Settings that are in force from the next start on.
    pub at_next_start: Vec<String>,
}

/// Why a change was not made; the config is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no server {0:?}")]
    Unknown(String),
    #[error("there is a server {0:?} already")]
    Exists(String),
    #[error("the config is one of {0}, which dormouse does not edit")]
    NotOurs(&'static str),
    #[error("the config would not be valid: {0}")]
    Invalid(String),
    #[error("{0}")]
    ByHand(String),
    #[error("the config cannot be changed: {0}")]
    Unwritable(String),
    #[error("there is no config")]
    NoConfig,
}

impl From<Unchanged> for ChangeError {
    fn from(error: Unchanged) -> Self {
        match error {
            Unchanged::Unknown(name) => Self::Unknown(name),
            Unchanged::Exists(name) => Self::Exists(name),
            Unchanged::NotOurs(system) => Self::NotOurs(system),
            Unchanged::Config(error) => Self::Invalid(error.to_string()),
            error @ (Unchanged::ByHand { .. } | Unchanged::OfAnotherProgram(_)) => {
                Self::ByHand(error.to_string())
            }
            Unchanged::Replace(error) => Self::Unwritable(error.to_string()),
        }
    }
}

/// A change that somebody waits for.
#[derive(Debug)]
pub struct ChangeRequest {
    pub change: ConfigChange,
    pub answer: oneshot::Sender<Result<AppliedChange, ChangeError>>,
}

/// The way to whoever makes changes; nobody does where there is no config.
#[derive(Clone, Debug, Default)]
pub struct ChangeSender(Option<mpsc::Sender<ChangeRequest>>);

/// More would only wait.
const MAX_WAITING: usize = 16;

impl ChangeSender {
    /// A way, and its other end.
    pub fn channel() -> (Self, mpsc::Receiver<ChangeRequest>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(Some(sender)), receiver)
    }

    /// Has a change made, and waits until it is in force.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn make(&self, change: ConfigChange) -> Result<AppliedChange, ChangeError> {
        let (answer, made) = oneshot::channel();
        let wanted = ChangeRequest { change, answer };
        let sender = self.0.as_ref().ok_or(ChangeError::NoConfig)?;
        let ending = || ChangeError::Unwritable("dormouse is ending".to_owned());
        sender.send(wanted).await.map_err(|_| ending())?;
        made.await.unwrap_or_else(|_| Err(ending()))
    }
}
