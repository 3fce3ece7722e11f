//! `tools/call`: evaluated by the surface, answered by us or by a server.

use super::{
    Caller, Fleet,
    forward::{ForwardError, MAX_CONNECTIONS},
    instance::Instance,
    resources::reply,
};
use crate::{
    base::run_blocking,
    catalog::ServerId,
    config::{Listing, Pin},
    peer::CallError,
    protocol::{Era, adapt, method},
    surface::{Action, blocked, calls_another, failed},
    wire::{Outcome, Raw, edit},
};

impl Fleet {
    /// Answers a `tools/call`: evaluates it, does what that says has to be done first, and evaluates it again,
    /// until there is an answer. What fails on our side is a result with `isError`.
    pub(super) async fn call_tool(&self, caller: &Caller, params: &Raw) -> Outcome {
        let mut done: Vec<Action> = Vec::new();
        let mut hold = None;
        let outcome = loop {
            let action = self.evaluate(caller, params).await;
            if done.contains(&action) {
                break Ok(own(caller, self.in_vain(action)));
            }
            match &action {
                Action::Answer(result) => break Ok(own(caller, result.clone())),
                Action::Forward { server, .. } if self.must_compare(*server) => {
                    match Box::pin(self.call_compared(caller, params, &action)).await {
                        Some(outcome) => break outcome,
                        None => continue,
                    }
                }
                Action::Forward { server, params: forwarded } => {
                    break self.call_server(caller, *server, params, forwarded).await;
                }
                Action::Load { server } => match Box::pin(self.load_first(caller, *server)).await {
                    Ok(announced) => hold = announced,
                    Err(error) => break self.called(caller, *server, Err(error)),
                },
                Action::Recall => Box::pin(self.recall_all()).await,
                Action::Index => {}
                Action::Reexamine { server, .. } => Box::pin(self.reexamine(*server)).await,
            }
            done.push(action);
        };
        if let Some(announced) = hold {
            // Hosts build the model's next request from the list that they have when the result comes.
            let relisted = caller.host.relisted(announced);
            let _ = tokio::time::timeout(self.settings().settle, relisted).await;
        }
        outcome
    }

    /// Whether no tool of the server may be called before it is known to be what was approved.
    fn must_compare(&self, server: ServerId) -> bool {
        self.servers.config(server).pin == Pin::Block
    }

    /// Calls a server whose tools have to be what was approved. What it has may change with each connection, so the
    /// request is looked at once more when the server is awake, and sent on that connection or not at all; `None`
    /// where it comes to something else now.
    async fn call_compared(
        &self,
        caller: &Caller,
        params: &Raw,
        forward: &Action,
    ) -> Option<Outcome> {
        let Action::Forward { server, params: forwarded } = forward else { return None };
        let failed_with = |error: ForwardError| Some(self.called(caller, *server, Err(error)));
        if let Err(error) = self.check_feature(*server, method::TOOLS_CALL) {
            return failed_with(error);
        }
        for _ in 0..MAX_CONNECTIONS {
            let (instance, lease) = match self.lease(*server, caller).await {
                Ok(leased) => leased,
                Err(error) => return failed_with(error),
            };
            if self.evaluate(caller, params).await != *forward {
                return None;
            }
            let tool = edit::get_str(forwarded, "name").unwrap_or_default();
            if self.has_changed(instance, &tool) {
                return Some(Ok(own(caller, blocked(&self.servers.config(*server).name, &tool))));
            }
            let sent = self.as_called(caller, *server, params, forwarded);
            let is_task = sent.is_task;
            match self.request(lease, instance, caller, method::TOOLS_CALL, Some(sent.params)).await
            {
                Err(cause) => match self.can_repeat(*server, caller, &cause).await {
                    Ok(true) => {}
                    Ok(false) => {
                        let name = self.servers.config(*server).name.clone();
                        return failed_with(ForwardError::new(name, cause));
                    }
                    Err(error) => return failed_with(error),
                },
                answered => {
                    let name = &self.servers.config(*server).name;
                    let answered = answered.map_err(|cause| ForwardError::new(name.clone(), cause));
                    return Some(self.completed(caller, *server, is_task, answered).await);
                }
            }
        }
        let name = self.servers.config(*server).name.clone();
        failed_with(ForwardError::new(name, CallError::NotSent))
    }

    /// Whether a host's own instance has another tool than was approved. All hosts share one snapshot, so it may
    /// show what another instance has.
    fn has_changed(&self, instance: Instance, tool: &str) -> bool {
        let catalog = instance.owner.and_then(|_| self.upstream(instance).catalog());
        catalog.is_some_and(|catalog| self.memory.blocked(instance.server, &catalog).contains(tool))
    }

    /// The result of a call for which all was done that could be.
    fn in_vain(&self, action: Action) -> Raw {
        match action {
            Action::Answer(result) | Action::Reexamine { result, .. } => result,
            Action::Load { server } | Action::Forward { server, .. } => {
                let name = &self.servers.config(server).name;
                failed(format!("server {name:?} was loaded, and what was asked for is not there"))
            }
            Action::Recall | Action::Index => failed("what is known of the servers cannot be read"),
        }
    }

    /// Looks at the request. A search is looked at again once its index is made, which takes a thread of its own.
    async fn evaluate(&self, caller: &Caller, params: &Raw) -> Action {
        let snapshot = self.board.snapshot_for(caller.viewer());
        let action = self.board.view(caller.viewer(), &snapshot).call(params);
        if action != Action::Index {
            return action;
        }
        let indexed = snapshot.clone();
        let indexing = run_blocking(move || indexed.prepare_search());
        // Without an outcome everything ends.
        let _ = Box::pin(self.context.tasks.track_future(indexing)).await;
        self.board.view(caller.viewer(), &snapshot).call(params)
    }

    /// `params`: those of the host's request; `forwarded`: those for the server.
    async fn call_server(
        &self,
        caller: &Caller,
        server: ServerId,
        params: &Raw,
        forwarded: &Raw,
    ) -> Outcome {
        let sent = self.as_called(caller, server, params, forwarded);
        let is_task = sent.is_task;
        let answered = self.forward(server, caller, method::TOOLS_CALL, Some(sent.params)).await;
        self.completed(caller, server, is_task, answered).await
    }

    /// What the server gets. A tool that takes only calls as tasks is called as one also where the host
    /// cannot know that: it calls through a tool of ours, or speaks an era without such tasks.
    fn as_called(&self, caller: &Caller, server: ServerId, params: &Raw, forwarded: &Raw) -> Sent {
        let is_blind = caller.client.era == Era::Modern || calls_another(params);
        let task = is_blind.then(|| self.as_required_task(server, forwarded)).flatten();
        let is_task = task.is_some();
        Sent { params: task.unwrap_or_else(|| forwarded.clone()), is_task }
    }

    /// What the host gets of the server's answer: the result itself, where dormouse has made a task of the call.
    async fn completed(
        &self,
        caller: &Caller,
        server: ServerId,
        is_task: bool,
        answered: Result<Outcome, ForwardError>,
    ) -> Outcome {
        match answered {
            Ok(Ok(result)) if is_task => Box::pin(self.await_task(caller, server, result)).await,
            answered => self.called(caller, server, answered),
        }
    }

    /// What a host gets of a server's answer to its call, or in place of one.
    pub(super) fn called(
        &self,
        caller: &Caller,
        server: ServerId,
        forwarded: Result<Outcome, ForwardError>,
    ) -> Outcome {
        match forwarded {
            Ok(outcome) => outcome.map(|result| self.bounded(caller, server, result)),
            Err(ForwardError::Asks(result)) => Ok(result),
            Err(error) => Ok(own(caller, failed(error.to_string()))),
        }
    }

    /// The same, whatever it was that the host has asked for.
    pub(super) fn answered(
        &self,
        caller: &Caller,
        server: ServerId,
        method: &str,
        forwarded: Result<Outcome, ForwardError>,
    ) -> Outcome {
        match method {
            method::TOOLS_CALL => self.called(caller, server, forwarded),
            _ => reply(forwarded),
        }
    }

    /// As `load`. What is known from other runs is read before, where lists must not depend on which came first.
    async fn load_first(
        &self,
        caller: &Caller,
        server: ServerId,
    ) -> Result<Option<u64>, ForwardError> {
        if self.settings().listing == Listing::Stable {
            self.recall_all().await;
        }
        self.load(caller, server).await
    }

    /// Loads the server. Where that has changed the set of listed tools: the number of the announcement after
    /// which the host has to fetch the list before it is given the result.
    async fn load(&self, caller: &Caller, server: ServerId) -> Result<Option<u64>, ForwardError> {
        let names_before = self.board.tools(caller.viewer()).names;
        let announced_before = caller.host.tool_lists_announced();
        self.lease(server, caller).await?;
        self.loaded_by(caller.host.principal(), server);
        let announced = caller.host.tool_lists_announced();
        let must_hold =
            announced > announced_before && self.board.tools(caller.viewer()).names != names_before;
        Ok(must_hold.then_some(announced))
    }
}

/// A call as its server gets it.
struct Sent {
    params: Raw,
    /// Whether dormouse has made a task of it.
    is_task: bool,
}

/// A tool result of our own in the form that the caller's era has for it.
pub(super) fn own(caller: &Caller, result: Raw) -> Raw {
    adapt::own_result(method::TOOLS_CALL, caller.client.era, result)
}
