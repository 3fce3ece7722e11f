//! The keys that bound what dormouse accepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{KeyGroup, KeyProblem, key_class::AT_NEXT_START};
use crate::config::key_path::Step;

/// Minimum of `maxMessageBytes`: with less, no handshake would pass.
const MIN_MESSAGE_BYTES: usize = 1024;

/// Bounds of what dormouse accepts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Maximum size of a message, in bytes; a larger one fails its request.
    #[schemars(range(min = MIN_MESSAGE_BYTES), extend("x-class" = AT_NEXT_START))]
    pub max_message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_message_bytes: 64 * 1024 * 1024 }
    }
}

impl KeyGroup for Limits {
    fn problems(&self, _written: &Value) -> Vec<KeyProblem> {
        if self.max_message_bytes >= MIN_MESSAGE_BYTES {
            return Vec::new();
        }
        let message = format!("must be {MIN_MESSAGE_BYTES} or more");
        vec![(vec![Step::Key("maxMessageBytes".to_owned())], message)]
    }
}
