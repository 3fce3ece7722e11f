//! `tools/call`: evaluated by the surface, answered by us or by a server.

use super::{Caller, Fleet, forward::ForwardError};
use crate::{
    protocol::adapt,
    surface::{Action, failed},
    wire::{Outcome, Raw, edit},
};

impl Fleet {
    /// Answers a `tools/call`. What fails on our side is a result with `isError`.
    pub(super) async fn call_tool(&self, caller: &Caller, params: &Raw) -> Outcome {
        let action = match self.evaluate(caller, params) {
            Action::Recall => {
                self.recall_all().await;
                self.evaluate(caller, params)
            }
            Action::Reexamine { server, .. } => {
                self.reexamine(server);
                self.evaluate(caller, params)
            }
            action => action,
        };
        match action {
            Action::Load { server } => self.load_then(caller, server, params).await,
            action => self.carry_out(caller, action).await,
        }
    }

    /// Does what needs nothing to be done before.
    async fn carry_out(&self, caller: &Caller, action: Action) -> Outcome {
        match action {
            Action::Answer(result) | Action::Reexamine { result, .. } => Ok(own(caller, result)),
            Action::Forward { server, params } => self.call_server(caller, server, params).await,
            Action::Load { server } => {
                let name = self.shared(server).name();
                let message =
                    format!("server {name:?} was loaded, and what was asked for is not there");
                Ok(own(caller, failed(message)))
            }
            Action::Recall => Ok(own(caller, failed("nothing more is known"))),
        }
    }

    fn evaluate(&self, caller: &Caller, params: &Raw) -> Action {
        self.view(&self.snapshot_for(caller.host.as_ref()), caller.endpoint()).call(params)
    }

    async fn call_server(&self, caller: &Caller, server: usize, params: Raw) -> Outcome {
        self.forward(server, caller, "tools/call", Some(params))
            .await
            .unwrap_or_else(|error| Ok(failed_call(caller, &error)))
    }

    /// Loads the server, looks at the request once more, and holds the result back until the host
    /// has the new list.
    async fn load_then(&self, caller: &Caller, server: usize, params: &Raw) -> Outcome {
        let names_before = self.listed_tool_names(caller);
        let announced_before = caller.host.tool_lists_announced();
        if let Err(error) = self.lease(self.instance(server, caller), caller).await {
            return Ok(own(caller, failed(error.to_string())));
        }
        self.loaded_by(caller.host.principal(), server);
        let announced = caller.host.tool_lists_announced();
        let must_hold =
            announced > announced_before && self.listed_tool_names(caller) != names_before;
        let action = self.evaluate(caller, params);
        let outcome = self.carry_out(caller, action).await;
        if must_hold {
            // Hosts build the model's next request from the list that they have when the result comes.
            let relisted = caller.host.relisted(announced);
            let _ = tokio::time::timeout(self.settings.settle, relisted).await;
        }
        outcome
    }

    fn listed_tool_names(&self, caller: &Caller) -> Vec<Option<Raw>> {
        let snapshot = self.snapshot_for(caller.host.as_ref());
        let tools = self.view(&snapshot, caller.endpoint()).tools();
        tools.iter().map(|tool| edit::get(tool, "name")).collect()
    }
}

/// The result of a call that its server has not answered.
pub(super) fn failed_call(caller: &Caller, error: &ForwardError) -> Raw {
    own(caller, failed(error.to_string()))
}

/// A tool result of our own in the form that the caller's era has for it.
fn own(caller: &Caller, result: Raw) -> Raw {
    adapt::own_result("tools/call", caller.client.era, result)
}
