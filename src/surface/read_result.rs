//! `read_result`: more of a result that was cut, without calling its tool again.

use serde_json::json;

use super::{
    Action, View,
    action::failure,
    definition,
    own_tools::{CALL_DYNAMIC_TOOL, OWN_GROUP, QUALIFIED_READ_RESULT, READ_RESULT, USE_TOOL},
    result_part::ResultPart,
};
use crate::{
    config::{Listing, Surface},
    wire::{Raw, edit},
};

/// Number of findings without a `limit`, and the highest limit.
const DEFAULT_FINDINGS: usize = 50;
const MAX_FINDINGS: usize = 1000;

/// The way in which a host can read more of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadForm {
    /// By `read_result` in its list.
    Listed,
    /// By `read_result` through this meta-tool: `use_tool` or `use_readonly_tool`.
    Used(String),
    /// By `read_result` in the group of dormouse.
    Grouped,
    /// By the resource alone: dormouse has no tool here, or a server has one of its name.
    Resource,
}

impl ReadForm {
    /// Returns the call that reads the first page of a result, in words; `None` if there is none.
    pub(crate) fn first_call(&self, id: &str) -> Option<String> {
        let page = json!({"id": id, "page": 1});
        match self {
            Self::Resource => None,
            Self::Listed => Some(format!("{READ_RESULT} with {page}")),
            Self::Used(tool) => {
                let input = json!({"tool_name": QUALIFIED_READ_RESULT, "tool_input": page});
                Some(format!("{tool} with {input}"))
            }
            Self::Grouped => {
                let input = json!({"group": OWN_GROUP, "name": READ_RESULT, "args": page});
                Some(format!("{CALL_DYNAMIC_TOOL} with {input}"))
            }
        }
    }
}

/// Returns the definition of `read_result`.
pub(super) fn definition(view: View<'_>) -> Raw {
    definition::meta_tool(
        view,
        json!({
            "name": READ_RESULT,
            "description": "Read more of a large result by the id in its note, without calling \
                its tool again: one page, the lines that match a regular expression, or the \
                values at a JSONPath. Give one of page, grep and jsonpath.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "page": {"type": "integer", "minimum": 1},
                    "grep": {"type": "string", "description": "A regular expression"},
                    "jsonpath": {"type": "string", "description": "For example $.items[0].name"},
                    "limit": {"type": "integer", "description": "Maximum number of findings"},
                },
                "required": ["id"],
            },
            "annotations": {"readOnlyHint": true},
        }),
    )
}

impl View<'_> {
    /// Returns how a host can read more of a result, whose tool was called through the meta-tool
    /// `calling` or by its own name.
    pub(crate) fn read_form(self, calling: Option<&str>) -> ReadForm {
        let calling = calling.filter(|name| *name != CALL_DYNAMIC_TOOL).unwrap_or(USE_TOOL);
        let form = match self.surface {
            Surface::Direct if self.snapshot.sole.is_some() => return ReadForm::Resource,
            Surface::Groups => ReadForm::Grouped,
            Surface::Activate | Surface::Direct
                if self.snapshot.settings.lists.listing == Listing::Growing =>
            {
                ReadForm::Listed
            }
            _ => ReadForm::Used(calling.to_owned()),
        };
        // A server may have its name.
        let is_ours = match &form {
            ReadForm::Listed => self.snapshot.tools().listed(READ_RESULT).is_none(),
            ReadForm::Used(_) => is_meant(self, QUALIFIED_READ_RESULT),
            ReadForm::Grouped => is_in_group(self, OWN_GROUP, READ_RESULT),
            ReadForm::Resource => true,
        };
        if is_ours { form } else { ReadForm::Resource }
    }
}

/// Returns `read_result` if it is in the list: once a result of this host was cut.
pub(super) fn listed(view: View<'_>) -> Option<Raw> {
    let is_listed = view.has_cut_results && view.read_form(None) == ReadForm::Listed;
    is_listed.then(|| definition(view))
}

/// Returns whether a name that is given to a meta-tool means `read_result`, and no server's tool.
pub(super) fn is_meant(view: View<'_>, name: &str) -> bool {
    let own = name
        .strip_prefix(OWN_GROUP)
        .and_then(|rest| rest.strip_prefix('/').or_else(|| rest.strip_prefix("__")));
    own.unwrap_or(name) == READ_RESULT && view.snapshot.tools().known_tool(name).is_none()
}

/// Returns whether this tool of this group is `read_result`.
pub(super) fn is_in_group(view: View<'_>, group: &str, name: &str) -> bool {
    group == OWN_GROUP && is_meant(view, name) && view.snapshot.find(OWN_GROUP).is_none()
}

/// Handles a call of `read_result`.
pub(super) fn read_result(arguments: &Raw) -> Action {
    let members = ["id", "page", "grep", "jsonpath", "limit"];
    let [id, page, grep, path, limit] = edit::get_each(arguments, members)
        .map(|value| value.filter(|value| value.as_bytes() != b"null"));
    let Some(id) = id.and_then(|id| id.read::<String>().ok()) else {
        return failure("read_result needs \"id\", which the note of the cut result has");
    };
    let limit = match limit.map(|limit| whole_number(&limit)) {
        None => DEFAULT_FINDINGS,
        Some(Some(limit)) if limit > 0 => limit.min(MAX_FINDINGS),
        Some(_) => return failure("\"limit\" must be a whole number from 1"),
    };
    let part = match (page, grep, path) {
        (None, None, None) => Some(ResultPart::Page(1)),
        (Some(page), None, None) => whole_number(&page).map(ResultPart::Page),
        (None, Some(grep), None) => {
            grep.read().ok().map(|pattern| ResultPart::Grep { pattern, limit })
        }
        (None, None, Some(path)) => {
            path.read().ok().map(|path| ResultPart::JsonPath { path, limit })
        }
        _ => return failure("read_result takes one of \"page\", \"grep\" and \"jsonpath\""),
    };
    match part {
        Some(part) => Action::ReadResult { id, part },
        None => failure(
            "\"page\" must be a whole number from 1, \"grep\" and \"jsonpath\" must be strings",
        ),
    }
}

/// Returns a whole number that is not negative. JSON may write it as `1.0`.
fn whole_number(value: &Raw) -> Option<usize> {
    value.read::<f64>().ok()?.to_string().parse().ok()
}
