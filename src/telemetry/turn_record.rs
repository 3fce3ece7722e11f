//! One turn of a model as the log keeps it.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::call_record::timestamp;
use crate::catalog::estimated_tokens;

/// A step of a model in which it called tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TurnRecord {
    /// The time of its first call, in the form of RFC 3339 with milliseconds.
    pub at: String,
    pub pid: u32,
    /// The name and the version that the host gives itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// An estimate of the tokens of the definitions that the model did not have to read.
    pub saved_tokens: u64,
}

impl TurnRecord {
    /// `client`: the name of the host.
    pub(super) fn new(began: SystemTime, client: Option<String>, saved_bytes: u64) -> Self {
        let saved_bytes = usize::try_from(saved_bytes).unwrap_or(usize::MAX);
        Self {
            at: timestamp(began),
            pid: std::process::id(),
            client,
            saved_tokens: estimated_tokens(saved_bytes) as u64,
        }
    }
}
