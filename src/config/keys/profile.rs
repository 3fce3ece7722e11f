//! The key `profiles`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{PolicyRule, Surface};
use crate::config::NamePattern;

/// A selection of servers and of their tools, and the form in which hosts see them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Profile {
    /// The servers and toolsets (`<server>/<toolset>`) of the profile, each with names or globs of
    /// its tools; without any, all its tools.
    pub servers: BTreeMap<String, Option<Vec<NamePattern>>>,
    /// Rules for calls of hosts with the profile, in addition to those of the file: the strictest
    /// verdict holds.
    pub policy: Vec<PolicyRule>,
    /// The form in which hosts with this profile see the servers; by default that of the config.
    pub surface: Option<Surface>,
}

impl Profile {
    /// Returns whether the profile contains an offer of this name and server. A server contains its
    /// toolsets.
    pub(crate) fn has(&self, server: &str, offer: &str) -> bool {
        self.servers.contains_key(offer) || self.servers.contains_key(server)
    }

    /// Returns the names or globs of the only tools of an offer that the profile contains; `None`
    /// if it contains all. The key of a toolset takes precedence over that of its server.
    pub(crate) fn tools(&self, server: &str, offer: &str) -> Option<&[NamePattern]> {
        let chosen = self.servers.get(offer).or_else(|| self.servers.get(server));
        chosen?.as_deref().filter(|tools| !tools.is_empty())
    }
}
