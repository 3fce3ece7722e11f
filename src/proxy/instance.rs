//! The key of one running instance of a server.

use super::{Host, Principal};
use crate::{
    auth::LoginOwner,
    catalog::ServerId,
    config::{Isolation, LoginHolder, ServerConfig},
};

/// An instance: the one that all hosts share, or one that has an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    pub(super) server: ServerId,
    /// The version of the server's config with which it was started.
    pub(super) version: u32,
    /// `None` where hosts share it.
    pub(super) owner: Option<InstanceOwner>,
}

/// The owner of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum InstanceOwner {
    Host {
        principal: Principal,
        /// The person whose login it uses; `None` if it uses that of the service.
        login: Option<LoginOwner>,
    },
    /// All hosts of a person.
    Person(LoginOwner),
}

impl Instance {
    /// Returns the instance that hosts share.
    pub(super) fn shared(server: ServerId, version: u32) -> Self {
        Self { server, version, owner: None }
    }

    /// Returns the instance that a host uses.
    pub(super) fn of(
        host: &dyn Host,
        server: ServerId,
        version: u32,
        config: &ServerConfig,
    ) -> Self {
        let person = host.person().filter(|_| config.connecting.login == LoginHolder::User);
        let login = person.map(|person| LoginOwner(person.fingerprint()));
        let owner = match config.connecting.isolation {
            Isolation::Session => Some(InstanceOwner::Host { principal: host.principal(), login }),
            Isolation::Auto | Isolation::Shared => login.map(InstanceOwner::Person),
        };
        Self { server, version, owner }
    }

    /// Returns whether a host may use it, if it sees the server.
    pub(super) fn is_for(&self, host: &dyn Host) -> bool {
        match self.owner {
            None => true,
            Some(InstanceOwner::Host { principal, .. }) => principal == host.principal(),
            Some(InstanceOwner::Person(LoginOwner(person))) => {
                // A person is a user by the same hash.
                host.person().is_some() && host.user().0 == Some(person)
            }
        }
    }

    /// Returns whether it is for this host alone.
    pub(super) fn is_of_host(&self, host: Principal) -> bool {
        matches!(self.owner, Some(InstanceOwner::Host { principal, .. }) if principal == host)
    }

    /// Returns the person whose login it uses; `None` if it uses that of the service.
    pub(super) fn login_owner(&self) -> Option<LoginOwner> {
        match self.owner? {
            InstanceOwner::Host { login, .. } => login,
            InstanceOwner::Person(person) => Some(person),
        }
    }
}
