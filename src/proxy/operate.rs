//! What an operator does to servers, beside what hosts do.

use std::{collections::BTreeSet, sync::Arc};

use tokio::sync::watch;

use super::{Fleet, Reloaded, host::first_era};
use crate::{
    catalog::ServerId,
    config::{Config, ServerConfig},
    upstream::{LoadError, Phase, StaysAwake},
};

/// Why something cannot be done to a server.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    #[error("there is no server {0:?}")]
    Unknown(String),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{server:?} stays awake: {why}")]
    Awake { server: String, why: StaysAwake },
}

impl Fleet {
    /// Changes whenever a server does, or what there is of it.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Loads a server for all hosts, or wakes it.
    ///
    /// # Errors
    /// When there is none, or it cannot be connected.
    pub async fn load_for_all(&self, name: &str) -> Result<(), OperateError> {
        let (server, _) = self.known(name)?;
        self.shared(server).lease(first_era(&self.hosts())).await?;
        self.remember_load(server);
        Ok(())
    }

    /// Puts all instances of a server to sleep.
    ///
    /// # Errors
    /// When there is none, or one of them has to stay awake.
    pub async fn put_to_sleep(&self, name: &str) -> Result<(), OperateError> {
        let (server, _) = self.known(name)?;
        for (instance, upstream) in self.instances() {
            if instance.server == server
                && let Err(why) = upstream.sleep().await
            {
                return Err(OperateError::Awake { server: name.to_owned(), why });
            }
        }
        Ok(())
    }

    /// Forgets that a server has failed: one that was given up is offered again.
    ///
    /// # Errors
    /// When there is none.
    pub fn reset(&self, name: &str) -> Result<Reloaded, OperateError> {
        let (server, _) = self.known(name)?;
        let status = self.shared(server).status();
        let has_failed =
            status.strikes > 0 || matches!(status.phase, Phase::Evicted | Phase::BackingOff);
        let anew = has_failed.then(|| name.to_owned()).into_iter().collect();
        Ok(self.reload_with(self.config(), &anew))
    }

    fn known(&self, name: &str) -> Result<(ServerId, Arc<ServerConfig>), OperateError> {
        self.find(name).ok_or_else(|| OperateError::Unknown(name.to_owned()))
    }

    /// What is in force.
    fn config(&self) -> Config {
        let servers = self.roster().all().map(|(_, slot)| slot.config.as_ref().clone()).collect();
        Config { settings: self.settings().as_ref().clone(), servers, ..Config::default() }
    }
}

/// Names of servers that are started anew, whatever has changed.
pub(super) type Anew = BTreeSet<String>;
