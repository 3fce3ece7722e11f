//! `tools/call`: evaluated by the surface, answered by us or by a server.

use super::{Caller, Fleet, forward::ForwardError};
use crate::{
    config::{Listing, Pin},
    protocol::adapt,
    surface::{Action, failed},
    upstream::{Lease, LoadError},
    wire::{Outcome, Raw, edit},
};

impl Fleet {
    /// Answers a `tools/call`: evaluates it, does what that says has to be done first, and evaluates it again,
    /// until there is an answer. What fails on our side is a result with `isError`.
    pub(super) async fn call_tool(&self, caller: &Caller, params: &Raw) -> Outcome {
        let mut done: Vec<Action> = Vec::new();
        let mut hold = None;
        // Keeps a server awake that was woken to be compared with what was approved.
        let mut compared: Option<Lease> = None;
        let outcome = loop {
            let action = self.evaluate(caller, params);
            if done.contains(&action) {
                break Ok(own(caller, self.in_vain(action)));
            }
            match &action {
                Action::Answer(result) => break Ok(own(caller, result.clone())),
                Action::Forward { server, .. }
                    if compared.is_none() && self.must_compare(*server) =>
                {
                    match self.lease(self.instance(*server, caller), caller).await {
                        Ok(lease) => compared = Some(lease),
                        Err(error) => break Ok(own(caller, failed(error.to_string()))),
                    }
                    // What it has may have changed while it slept.
                    continue;
                }
                Action::Forward { server, params } => {
                    break self.call_server(caller, *server, params.clone()).await;
                }
                Action::Load { server } => match self.load_first(caller, *server).await {
                    Ok(announced) => hold = announced,
                    Err(error) => break Ok(own(caller, failed(error.to_string()))),
                },
                Action::Recall => self.recall_all().await,
                Action::Reexamine { server, .. } => self.reexamine(*server).await,
            }
            done.push(action);
        };
        if let Some(announced) = hold {
            // Hosts build the model's next request from the list that they have when the result comes.
            let relisted = caller.host.relisted(announced);
            let _ = tokio::time::timeout(self.settings.settle, relisted).await;
        }
        outcome
    }

    /// Whether no tool of the server may be called before it is known to be what was approved.
    fn must_compare(&self, server: usize) -> bool {
        self.shared(server).config().pin == Pin::Block
    }

    /// The result of a call for which all was done that could be.
    fn in_vain(&self, action: Action) -> Raw {
        match action {
            Action::Answer(result) | Action::Reexamine { result, .. } => result,
            Action::Load { server } | Action::Forward { server, .. } => {
                let name = self.shared(server).name();
                failed(format!("server {name:?} was loaded, and what was asked for is not there"))
            }
            Action::Recall => failed("what is known of the servers cannot be read"),
        }
    }

    fn evaluate(&self, caller: &Caller, params: &Raw) -> Action {
        self.view(&self.snapshot_for(caller.host.as_ref()), caller.endpoint()).call(params)
    }

    async fn call_server(&self, caller: &Caller, server: usize, params: Raw) -> Outcome {
        let forwarded = self.forward(server, caller, "tools/call", Some(params)).await;
        self.called(caller, server, forwarded)
    }

    /// What a host gets of a server's answer to its call, or in place of one.
    pub(super) fn called(
        &self,
        caller: &Caller,
        server: usize,
        forwarded: Result<Outcome, ForwardError>,
    ) -> Outcome {
        match forwarded {
            Ok(outcome) => outcome.map(|result| self.bounded(caller, server, result)),
            Err(error) => Ok(own(caller, failed(error.to_string()))),
        }
    }

    /// As `load`. What is known from other runs is read before, where lists must not depend on which came first.
    async fn load_first(&self, caller: &Caller, server: usize) -> Result<Option<u64>, LoadError> {
        if self.settings.listing == Listing::Stable {
            self.recall_all().await;
        }
        self.load(caller, server).await
    }

    /// Loads the server. Where that has changed the set of listed tools: the number of the announcement after
    /// which the host has to fetch the list before it is given the result.
    async fn load(&self, caller: &Caller, server: usize) -> Result<Option<u64>, LoadError> {
        let names_before = self.listed_tool_names(caller);
        let announced_before = caller.host.tool_lists_announced();
        self.lease(self.instance(server, caller), caller).await?;
        self.loaded_by(caller.host.principal(), server);
        let announced = caller.host.tool_lists_announced();
        let must_hold =
            announced > announced_before && self.listed_tool_names(caller) != names_before;
        Ok(must_hold.then_some(announced))
    }

    fn listed_tool_names(&self, caller: &Caller) -> Vec<Option<Raw>> {
        let snapshot = self.snapshot_for(caller.host.as_ref());
        let tools = self.view(&snapshot, caller.endpoint()).tools();
        tools.iter().map(|tool| edit::get(tool, "name")).collect()
    }
}

/// A tool result of our own in the form that the caller's era has for it.
fn own(caller: &Caller, result: Raw) -> Raw {
    adapt::own_result("tools/call", caller.client.era, result)
}
