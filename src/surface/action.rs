//! The ways to proceed with a call, and the results that dormouse composes itself.

use super::{result_part::ResultPart, wanted_script::WantedScript};
use crate::{
    base::is_hidden,
    catalog::{OfferId, ServerId},
    wire::{Raw, edit},
};

/// The way to proceed with a `tools/call`.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// A complete result, which dormouse composed itself.
    Answer(Raw),
    /// A load of this offer, after which the request is evaluated again.
    Load { offer: OfferId },
    /// A wait for the servers that are being connected, and a read of the stored catalogs of the
    /// others, after which the request is evaluated again.
    Recall,
    /// The creation of the search index, which takes a while, after which the request is evaluated
    /// again on the same snapshot.
    Index,
    /// A check whether this tool, withheld because its definition has changed, has been approved
    /// since. If so, the request is evaluated again; otherwise `result` is returned.
    Reexamine { server: ServerId, result: Raw },
    /// A `tools/call` of this server with `params`. The agent gets its result, or the preview of a
    /// large one.
    Forward {
        server: ServerId,
        params: Raw,
        /// True if the agent demands that the tool is marked as read-only.
        requires_read_only: bool,
    },
    /// A run of a script, whose value is the result.
    RunScript(Box<WantedScript>),
    /// A read of a result that was cut.
    ReadResult { id: String, part: ResultPart },
}

impl Action {
    /// Returns a call of a server's tool.
    pub(super) fn forward(server: ServerId, params: Raw) -> Self {
        Self::Forward { server, params, requires_read_only: false }
    }

    /// Demands of a call that the tool is marked as read-only.
    pub(super) fn requiring_read_only(self) -> Self {
        match self {
            Self::Forward { server, params, .. } => {
                Self::Forward { server, params, requires_read_only: true }
            }
            other => other,
        }
    }
}

/// Returns a tool result that reports an error.
pub(super) fn failure(message: impl AsRef<str>) -> Action {
    Action::Answer(failed(message))
}

/// Returns the result of a `tools/call` that failed before it reached the server.
pub(crate) fn failed(message: impl AsRef<str>) -> Raw {
    Raw::encode(&serde_json::json!({
        "content": [{"type": "text", "text": message.as_ref()}],
        "isError": true,
    }))
}

/// Returns the result of a `tools/call` with JSON as its text, and a note on how to see what the
/// text omits.
pub(super) fn answered(json: &Raw, note: Option<&str>) -> Raw {
    let json = edit::escaped(json, is_hidden).to_string();
    let texts = std::iter::once(json.as_str()).chain(note);
    let content: Vec<_> =
        texts.map(|text| serde_json::json!({"type": "text", "text": text})).collect();
    Raw::encode(&serde_json::json!({"content": content}))
}
