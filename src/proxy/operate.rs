//! Operations on servers that operators perform by commands and by the API.

use tokio::sync::broadcast;

use super::{Event, Fleet, reload};
use crate::{
    catalog::ServerId,
    upstream::{LoadError, Phase, StaysAwake},
};

/// The reason that an operation fails.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    #[error("there is no server {0:?}")]
    Unknown(String),
    #[error("{0:?} is switched off in the config: dormouse enable {0}")]
    Disabled(String),
    #[error("each session loads its servers itself (\"loads\": \"session\")")]
    OfSessions,
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{server:?} stays awake: {why}")]
    Awake { server: String, why: StaysAwake },
}

impl Fleet {
    /// Returns a receiver of all events from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.listen()
    }

    /// Loads a server for all hosts, or wakes it.
    ///
    /// # Errors
    /// If there is no such server, or it cannot be connected.
    pub async fn load_for_all(&self, name: &str) -> Result<(), OperateError> {
        let server = known(self, name)?;
        if self.board.has_loads_of_sessions() {
            return Err(OperateError::OfSessions);
        }
        self.servers.shared(server).lease(self.audience.first_era()).await?;
        Ok(())
    }

    /// Puts all instances of a server to sleep that are not in use.
    ///
    /// # Errors
    /// If there is no such server, or an instance must stay awake.
    pub async fn put_to_sleep(&self, name: &str) -> Result<(), OperateError> {
        let server = known(self, name)?;
        let mut outcome = Ok(());
        for (_, upstream) in
            self.servers.instances().into_iter().filter(|(at, _)| at.server == server)
        {
            if let Err(why) = upstream.sleep().await {
                outcome = Err(OperateError::Awake { server: name.to_owned(), why });
            }
        }
        outcome
    }

    /// Clears the failed loads of a server, so that an evicted server is offered again. Does
    /// nothing to other servers. Reads from disk.
    ///
    /// # Errors
    /// If there is no such server.
    pub fn reset(&self, name: &str) -> Result<(), OperateError> {
        let server = known(self, name)?;
        let status = self.servers.shared(server).status();
        if status.strikes > 0 || matches!(status.phase, Phase::Evicted | Phase::BackingOff) {
            reload::start_anew(self, name);
        }
        Ok(())
    }
}

fn known(fleet: &Fleet, name: &str) -> Result<ServerId, OperateError> {
    let roster = fleet.servers.roster();
    let found = roster.all().find(|(_, slot)| slot.config.name == name);
    match found {
        Some((id, slot)) if slot.config.enabled => Ok(id),
        Some(_) => Err(OperateError::Disabled(name.to_owned())),
        None => Err(OperateError::Unknown(name.to_owned())),
    }
}
