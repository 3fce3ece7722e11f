//! The messages between a worker and the process that has started it: one JSON text on each line.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Maximum length of a message of a worker, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// A message to a worker. The first one is [`ToWorker::Run`] or [`ToWorker::Check`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ToWorker {
    Run(Box<Run>),
    /// A script to check without running it; [`FromWorker::Checked`] answers.
    Check {
        code: String,
        bounds: Bounds,
    },
    /// The answer to the request of this id: any JSON.
    Answer {
        id: u32,
        value: Box<RawValue>,
    },
    /// The reason that a request has no answer.
    Refusal {
        id: u32,
        message: String,
    },
}

/// A script to run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) code: String,
    /// The value of the variable `input`.
    pub(crate) input: Box<RawValue>,
    pub(crate) bounds: Bounds,
}

/// The limits of a script.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bounds {
    /// The maximum number of bytes of the script's values.
    pub(crate) memory: usize,
    /// The maximum time for which the script itself may run, without waiting, in milliseconds.
    pub(crate) own_time_ms: u64,
    /// The maximum number of characters that the script may return, and that it may log.
    pub(crate) output: usize,
    /// The maximum number of requests that wait for their answers at once.
    pub(crate) at_once: u32,
}

/// A message of a worker, which a hostile script may have written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FromWorker {
    /// The worker is in its sandbox, and runs the script now.
    Ready,
    /// The script waits for an answer.
    Waiting,
    Request {
        id: u32,
        request: Request,
    },
    Log {
        text: String,
    },
    /// The script has ended. `value` is what it returned; `None` for `undefined`.
    Done {
        value: Option<Box<RawValue>>,
    },
    Failed(Failure),
    /// The calls that a script contains, which could be run.
    Checked {
        uses: Vec<ToolUse>,
    },
}

/// A call of a tool in a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolUse {
    pub(crate) server: String,
    pub(crate) tool: String,
    /// The names of the arguments; `None` if the call does not show them.
    pub(crate) arguments: Option<Vec<String>>,
    pub(crate) place: Place,
}

/// A request of a script.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Request {
    /// A call of a tool: `mcp.server.tool(arguments)`.
    Call { server: String, tool: String, arguments: Box<RawValue> },
    /// A call of a tool by one name: `tools.call("server/tool", arguments)`.
    CallNamed { name: String, arguments: Box<RawValue> },
    /// `tools.search(query)`
    Search { query: String },
    /// `tools.describe(name)`
    Describe { name: String },
}

/// The reason that a script has ended without a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// The place in the script, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<Place>,
}

/// A place in a script, counted from 1 in lines and characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None }
    }

    pub(super) fn syntax(message: impl AsRef<str>, place: Option<Place>) -> Self {
        Self { message: format!("SyntaxError: {}", message.as_ref()), place }
    }
}
