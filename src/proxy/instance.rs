//! The key of one running instance of a server.

use super::{Host, Principal, User};
use crate::{
    auth::LoginOwner, catalog::ServerId, config::Isolation, config::LoginHolder,
    config::ServerConfig,
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
    /// One host. The person is that of its login, if each person has one.
    Host(Principal, Option<User>),
    /// All hosts of a person.
    Person(User),
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
        let has_login = config.connecting.login == LoginHolder::User && host.person().is_some();
        let person = has_login.then(|| host.user());
        let owner = match config.connecting.isolation {
            Isolation::Session => Some(InstanceOwner::Host(host.principal(), person)),
            Isolation::Auto | Isolation::Shared => person.map(InstanceOwner::Person),
        };
        Self { server, version, owner }
    }

    /// Returns whether a host may use it, if it sees the server.
    pub(super) fn is_for(&self, host: &dyn Host) -> bool {
        match self.owner {
            None => true,
            Some(InstanceOwner::Host(principal, _)) => principal == host.principal(),
            Some(InstanceOwner::Person(user)) => user == host.user(),
        }
    }

    /// Returns the person whose login it uses; `None` if it uses that of the service.
    pub(super) fn login_owner(&self) -> Option<LoginOwner> {
        match self.owner? {
            InstanceOwner::Host(_, person) => person?.into(),
            InstanceOwner::Person(user) => user.into(),
        }
    }
}
