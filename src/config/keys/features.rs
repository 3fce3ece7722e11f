//! The key `features` of a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parts of a server that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Features {
    /// The server's tools.
    pub tools: bool,
    /// The server's resources and resource templates.
    pub resources: bool,
    /// The server's prompts.
    pub prompts: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { tools: true, resources: true, prompts: true }
    }
}
