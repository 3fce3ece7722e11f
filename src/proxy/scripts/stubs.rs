//! Declarations of tools for scripts, with the shapes of results that were seen.

use serde_json::json;

use super::{
    answer::{Answered, read_answer},
    named_tool::NamedTool,
    script_call::CallKind,
};
use crate::{
    catalog::ServerId,
    proxy::{Caller, Fleet, learned_shapes::ShapeKey},
    script::ToolStub,
    wire::{Outcome, Raw, edit},
};

/// Maximum size of a result from which a shape is learned, in bytes.
const MAX_LEARNED_BYTES: usize = 64 * 1024;

/// Learns the shape of a tool's results from the answer to a `tools/call` with these `params`.
pub(in crate::proxy) fn learn(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    params: &Raw,
    outcome: &Outcome,
) {
    let is_learned = fleet.settings().lists.scripts.runs_any;
    let Some(result) = outcome.as_ref().ok().filter(|_| is_learned) else { return };
    let tool = edit::get_str(params, "name").filter(|_| result.len() <= MAX_LEARNED_BYTES);
    let Some(tool) = tool else { return };
    let key = ShapeKey { principal: caller.host.principal(), server, tool };
    if !fleet.calls.shapes.wants(&key) {
        return;
    }
    if let Answered::Value(value) = read_answer(CallKind::Tool, Ok(result.clone())) {
        // A value that is too deep to be read has no shape.
        if let Ok(value) = value.read() {
            fleet.calls.shapes.learn(key, &value);
        }
    }
}

/// Returns the answer to a search or to a look at a definition as scripts get it: with the
/// declarations of the tools in TypeScript.
pub(super) fn with_stubs(fleet: &Fleet, caller: &Caller, kind: CallKind, value: Raw) -> Raw {
    match kind {
        CallKind::Tool => value,
        CallKind::Describe => match stub(fleet, caller, &value) {
            Some(stub) => edit::set(&value, "typescript", &Raw::encode(&stub)),
            None => value,
        },
        CallKind::Search => {
            let found = edit::elements(&value).unwrap_or_default();
            let short = found.into_iter().map(|tool| {
                let Some(stub) = stub(fleet, caller, &tool) else { return tool };
                let [name, description] = edit::get_each(&tool, ["name", "description"])
                    .map(|text| text.and_then(|text| text.read::<String>().ok()));
                let short = json!({"name": name, "description": description, "typescript": stub});
                Raw::encode(&short)
            });
            Raw::array(&short.collect::<Vec<_>>())
        }
    }
}

/// Returns the declaration of a tool whose definition an answer has under the name `server/tool`.
fn stub(fleet: &Fleet, caller: &Caller, definition: &Raw) -> Option<String> {
    let named = NamedTool::find(fleet, caller, &edit::get_str(definition, "name")?)?;
    let (principal, tool) = (caller.host.principal(), named.tool.name);
    let key = ShapeKey { principal, server: named.server, tool };
    let learned = fleet.calls.shapes.of(&key);
    let stub = ToolStub {
        server: &named.server_name,
        tool: &key.tool,
        definition: &named.tool.raw.to_value(),
        learned: learned.as_ref(),
    };
    Some(stub.call())
}
