//! A request of a script, as a call of a tool.

use std::sync::Arc;

use serde_json::json;

use super::{
    CallTool,
    named_tool::{NamedTool, spelled},
};
use crate::{
    protocol::{Era, is_error_result, method},
    proxy::{Caller, Fleet, asking::HostQuestion},
    script::Request,
    surface::{ArgumentProblems, through_use_tool, to_discover_tool},
    wire::{Outcome, Raw, Request as HostRequest, edit},
};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Tool,
    /// A search for tools; the answer is JSON text of dormouse.
    Search,
    /// A look at the definition of a tool, in the same way.
    Describe,
}

pub(super) struct ScriptCall {
    /// The id by which the worker knows it.
    pub(super) id: u32,
    /// Its position among the calls made.
    pub(super) position: usize,
    pub(super) kind: CallKind,
    /// The server and the tool, as `mcp.server.tool` has them.
    written: Option<(String, String)>,
    /// The `params` of the `tools/call`.
    params: Raw,
}

impl ScriptCall {
    pub(super) fn new(
        fleet: &Fleet,
        caller: &Caller,
        (id, request): (u32, Request),
        position: usize,
    ) -> Self {
        let used = |name: &str, arguments: &serde_json::value::RawValue| {
            through_use_tool(name, &Raw::encode(arguments))
        };
        let (kind, written, params) = match request {
            Request::Call { server, tool, arguments } => {
                let params = used(&spelled(fleet, caller, &server, &tool), &arguments);
                (CallKind::Tool, Some((server, tool)), params)
            }
            Request::CallNamed { name, arguments } => {
                (CallKind::Tool, None, used(&name, &arguments))
            }
            Request::Search { query } => {
                let arguments = json!({"query": query, "detail": "full"});
                (CallKind::Search, None, to_discover_tool(&arguments))
            }
            Request::Describe { name } => {
                (CallKind::Describe, None, to_discover_tool(&json!({"tool_name": name})))
            }
        };
        Self { id, position, kind, written, params }
    }

    /// Returns the name of what is called, for the report.
    pub(super) fn name(&self) -> String {
        match self.kind {
            CallKind::Tool => self.tool_name().unwrap_or_default(),
            CallKind::Search => "tools.search".to_owned(),
            CallKind::Describe => "tools.describe".to_owned(),
        }
    }

    fn tool_name(&self) -> Option<String> {
        edit::get_str(&edit::get(&self.params, "arguments")?, "tool_name")
    }

    /// Makes the call as if the host of the script made it. A server that was loaded by the call
    /// may have the tool in another spelling: then it is called once more.
    pub(super) async fn make(
        mut self,
        fleet: &Fleet,
        caller: Caller,
        call: CallTool,
    ) -> (Self, Outcome) {
        let mut outcome = self.make_once(fleet, &caller, call).await;
        let has_failed = outcome.as_ref().map_or(true, is_error_result);
        if has_failed && self.respell(fleet, &caller) {
            outcome = self.make_once(fleet, &caller, call).await;
        }
        (self, outcome)
    }

    async fn make_once(&self, fleet: &Fleet, caller: &Caller, call: CallTool) -> Outcome {
        let mut caller = caller.clone();
        if caller.client.era == Era::Modern {
            caller.request = Some(Arc::new(HostRequest {
                id: caller.id.clone(),
                method: method::TOOLS_CALL.to_owned(),
                params: Some(self.params.clone()),
            }));
        }
        call(fleet, &caller, &self.params).await
    }

    /// Takes the spelling in which the tool is known now. Returns whether it differs: no server had
    /// a tool of the former name.
    fn respell(&mut self, fleet: &Fleet, caller: &Caller) -> bool {
        let Some((server, tool)) = &self.written else { return false };
        let name = spelled(fleet, caller, server, tool);
        if self.tool_name().is_none_or(|former| former == name) {
            return false;
        }
        let arguments = edit::get(&self.params, "arguments").unwrap_or_else(Raw::empty_object);
        let arguments = edit::set(&arguments, "tool_name", &Raw::encode(&name));
        self.params = edit::set(&self.params, "arguments", &arguments);
        true
    }

    /// Returns the faults of the arguments of a call that has failed.
    pub(super) fn problems(&self, fleet: &Fleet, caller: &Caller) -> Option<ArgumentProblems> {
        let input = edit::get(&edit::get(&self.params, "arguments")?, "tool_input")?;
        let named = NamedTool::find(fleet, caller, &self.tool_name()?)?;
        ArgumentProblems::of(&edit::get(&named.tool.raw, "inputSchema")?, &input)
    }

    /// Adds the user's answers, with which the call is made again.
    pub(super) fn take_answers(
        &mut self,
        state: Option<&Raw>,
        questions: &[(String, HostQuestion)],
        responses: &Raw,
    ) {
        let mut answers = Raw::empty_object();
        for (key, _) in questions {
            if let Some(answer) = edit::get(responses, &self.key_of(key)) {
                answers = edit::set(&answers, key, &answer);
            }
        }
        self.params = edit::set(&self.params, "inputResponses", &answers);
        if let Some(state) = state {
            self.params = edit::set(&self.params, "requestState", state);
        }
    }

    /// Returns the key of one of its questions among those of all calls of the script.
    pub(super) fn key_of(&self, question: &str) -> String {
        // A script can give two calls one id.
        format!("{}.{question}", self.position)
    }
}
