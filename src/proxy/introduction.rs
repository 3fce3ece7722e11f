//! The handshake of a host that talks directly to one server.

use super::{
    Caller, Fleet,
    calls::{self, AskLogin, ForwardError},
};
use crate::{
    catalog::{Presence, ServerId},
    config::Isolation,
    protocol::{Greeting, introduced},
    upstream::LoadError,
    wire::{Outcome, Raw},
};

impl Fleet {
    /// Answers a host's `initialize` or `server/discover` in the words of its only server, which is
    /// started for that unless they are known. Returns `None` if dormouse has to answer itself,
    /// because the endpoint has several servers or its server cannot be reached.
    pub async fn introduce(&self, caller: &Caller) -> Option<Outcome> {
        let greeting = match greeting_of_sole(self, caller).await? {
            Ok(greeting) => greeting,
            Err(refusal) => return Some(Err(refusal)),
        };
        introduced(&greeting, caller.client.era, &caller.client.version).map(Ok)
    }
}

async fn greeting_of_sole(fleet: &Fleet, caller: &Caller) -> Option<Result<Greeting, Raw>> {
    let server = caller.endpoint().passes_through()?;
    let own = fleet.servers.existing(fleet.instance(server, caller));
    if fleet.servers.config(server).isolation == Isolation::Session {
        let known = own.and_then(|own| own.catalog()).map(|catalog| catalog.greeting.clone());
        if let Some(greeting) = known.filter(|greeting| greeting.said.is_some()) {
            return Some(Ok(greeting));
        }
        return greeting_of_started(fleet, server, caller).await;
    }
    let snapshot = fleet.board.snapshot_for(caller.viewer());
    if let Some(Presence::Live { exposed, .. }) = snapshot.view(server).map(|view| &view.presence)
        && exposed.whole.greeting.said.is_some()
    {
        return Some(Ok(exposed.whole.greeting.clone()));
    }
    greeting_of_started(fleet, server, caller).await
}

async fn greeting_of_started(
    fleet: &Fleet,
    server: ServerId,
    caller: &Caller,
) -> Option<Result<Greeting, Raw>> {
    // Hosts connect at their start, and must not ask their users then.
    match calls::lease_asking(fleet, server, caller, AskLogin::InBrowser).await {
        Ok((_, lease)) => {
            fleet.loaded_by(caller.host.principal(), server);
            Some(Ok(lease.greeting().clone()))
        }
        Err(error) => refused_handshake(&error).map(Err),
    }
}

/// Returns the error with which the server has refused dormouse's `initialize`.
fn refused_handshake(error: &ForwardError) -> Option<Raw> {
    let ForwardError::Load(error) = error else { return None };
    match error {
        LoadError::Failed { cause, .. }
        | LoadError::GivenUp { cause, .. }
        | LoadError::Unreachable { cause, .. } => cause.refused_handshake(),
        _ => None,
    }
}
