//! `run_script`: many calls of tools in one turn, of which only the returned value comes back.

use serde_json::json;

use super::{
    Action, View,
    action::failure,
    definition,
    name_list::name_list,
    own_tools::RUN_SCRIPT,
    wanted_script::{MAX_CODE_BYTES, ScriptSource, WantedScript},
};
use crate::{
    catalog::OfferVisibility,
    wire::{Raw, edit},
};

/// Maximum length of the description, in bytes: what hosts pass on of a tool.
const MAX_DESCRIPTION_BYTES: usize = 2048;
/// Room below which no names of servers are listed, in bytes.
const MIN_NAMES_BYTES: usize = 100;

const DESCRIPTION: &str = "\
Run JavaScript or TypeScript that calls many tools in one turn. Only what it returns comes back, \
so filter and join results inside.
- await mcp.SERVER.TOOL({ … }) calls a tool, and gives its structured result, or else its text, \
parsed if it is JSON, or else, such as for an image, the list of its MCP content blocks. A call \
that fails throws an Error with the server's text.
- await tools.search('words') finds tools: [{ name, description, typescript }], where typescript \
declares the call and its result. await tools.describe('server/tool') gives one whole definition. \
Use them first if you do not know a tool's arguments, and log a result once if its type is any.
- Promise.all runs 8 calls at once; others wait. console.log is shown to you. `input` is the value \
of the parameter. There are no files, network, timers or imports.
- End with return VALUE: a text, JSON, or { content: [MCP content blocks] }.
Example:
const issues = await mcp.github.list_issues({ owner: 'acme', repo: 'app', state: 'open' });
const old = issues.filter((issue) => issue.updated_at < '2026-01-01');
const full = await Promise.all(old.map((issue) =>
  mcp.github.get_issue({ owner: 'acme', repo: 'app', number: issue.number })));
return full.map(({ number, title, comments }) => ({ number, title, comments }));";

/// The description where the budget leaves no room for the other one.
const SHORT_DESCRIPTION: &str = "\
Run JavaScript or TypeScript that calls many tools, and get only what it returns: \
await mcp.SERVER.TOOL({ … }), await tools.search('words'), await tools.describe('server/tool'), \
Promise.all, console.log, return VALUE.";

impl View<'_> {
    /// Returns whether hosts can run scripts here. One server alone has only its own tools.
    fn runs_scripts(self) -> bool {
        self.snapshot.settings.lists.scripts.runs_any && self.snapshot.sole.is_none()
    }
}

/// Returns the definition of `run_script`, if hosts can run scripts.
pub(super) fn listed(view: View<'_>) -> Option<Raw> {
    view.runs_scripts().then(|| {
        definition::meta_tool(
            view,
            json!({
                "name": RUN_SCRIPT,
                "description": description(view),
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "string", "description": "The script"},
                        "input": {"description": "Any value, which the script has as `input`"},
                    },
                    "required": ["code"],
                },
            }),
        )
    })
}

/// Returns the description, with as many names of servers as fit into the budget.
fn description(view: View<'_>) -> String {
    let budget = view.snapshot.settings.lists.description_budget.unwrap_or(usize::MAX);
    let budget = budget.min(MAX_DESCRIPTION_BYTES);
    if DESCRIPTION.len() > budget {
        return SHORT_DESCRIPTION.to_owned();
    }
    let offers = view.offers();
    let shown = offers.iter().filter(|it| !matches!(it.visibility, OfferVisibility::Hidden));
    let names: Vec<String> = shown.map(|it| it.offer.name.clone()).collect();
    // The list may end with the number of the others.
    let room = (budget - DESCRIPTION.len()).checked_sub("\nServers:  and 100000 more".len());
    match room.filter(|room| *room >= MIN_NAMES_BYTES && !names.is_empty()) {
        Some(room) => format!("{DESCRIPTION}\nServers: {}", name_list(&names, room)),
        None => DESCRIPTION.to_owned(),
    }
}

/// Handles a call of `run_script`; `None` if hosts cannot run scripts.
pub(super) fn run_script(view: View<'_>, arguments: &Raw) -> Option<Action> {
    view.runs_scripts().then(|| {
        let [code, input] = edit::get_each(arguments, ["code", "input"]);
        let Some(code) = code.and_then(|code| code.read::<String>().ok()) else {
            return failure("run_script needs \"code\": the text of the script");
        };
        if code.len() > MAX_CODE_BYTES {
            return failure(format!("\"code\" is longer than {MAX_CODE_BYTES} bytes"));
        }
        let input = input.unwrap_or_else(|| Raw::encode(&()));
        Action::RunScript(Box::new(WantedScript {
            name: RUN_SCRIPT.to_owned(),
            source: ScriptSource::Text(code),
            input,
        }))
    })
}
