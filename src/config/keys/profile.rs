//! The key `profiles`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// A selection of servers and of their tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct Profile {
    /// The servers of the profile, each with names or globs of its tools; without any, all its
    /// tools.
    pub servers: BTreeMap<String, Option<Vec<String>>>,
}
