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
        match self.evaluate(caller, params) {
            Action::Answer(result) => Ok(own(caller, result)),
            Action::Forward { server, params } => self.call_server(caller, server, params).await,
            Action::Load { server } => self.load_then(caller, server, params).await,
        }
    }

    fn evaluate(&self, caller: &Caller, params: &Raw) -> Action {
        let endpoint = caller.endpoint();
        self.view(&self.snapshot_at(endpoint), endpoint).call(params)
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
        let announced = caller.host.tool_lists_announced();
        let must_hold =
            announced > announced_before && self.listed_tool_names(caller) != names_before;
        let outcome = match self.evaluate(caller, params) {
            Action::Answer(result) => Ok(own(caller, result)),
            Action::Forward { server, params } => self.call_server(caller, server, params).await,
            Action::Load { server } => {
                let name = self.shared(server).name();
                let message =
                    format!("server {name:?} was loaded, and what was asked for is not there");
                Ok(own(caller, failed(message)))
            }
        };
        if must_hold {
            // Hosts build the model's next request from the list that they have when the result comes.
            let relisted = caller.host.relisted(announced);
            let _ = tokio::time::timeout(self.settings.settle, relisted).await;
        }
        outcome
    }

    fn listed_tool_names(&self, caller: &Caller) -> Vec<Option<Raw>> {
        let endpoint = caller.endpoint();
        let tools = self.view(&self.snapshot_at(endpoint), endpoint).tools();
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
