//! The keys that shape the lists of hosts.

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use serde_json::Value;

use super::{KeyGroup, KeyProblem, ScriptSettings, key_class::AT_ONCE, unlimited};

/// The contents and the form of the lists that hosts see.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ListSettings {
    /// The form in which hosts see the servers: see docs/reference/surfaces.md.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub surface: Surface,
    /// The effect of loads on lists: lists grow with them, or always stay the same bytes.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub listing: Listing,
    /// The tools that ask the host to keep them in context: see docs/reference/surfaces.md.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub always_load: AlwaysLoad,
    /// Maximum size of the description of `discover_tool`, and of `instructions`, in bytes of
    /// UTF-8; 0 for no limit.
    #[serde(with = "unlimited")]
    #[schemars(with = "usize", extend("x-class" = AT_ONCE))]
    pub description_budget: Option<usize>,
    /// `true` adds `use_readonly_tool`, which calls only tools that are marked as read-only.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub split_calls: bool,
    /// `true` adds `run_script`, by which an agent calls many tools in one turn; an object has
    /// saved scripts, each of which is a tool: see docs/reference/scripts.md.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub scripts: ScriptSettings,
}

impl Default for ListSettings {
    fn default() -> Self {
        Self {
            surface: Surface::Discover,
            listing: Listing::Growing,
            always_load: AlwaysLoad::Meta,
            description_budget: Some(2048),
            split_calls: false,
            scripts: ScriptSettings::default(),
        }
    }
}

impl KeyGroup for ListSettings {
    fn problems(&self, written: &Value) -> Vec<KeyProblem> {
        self.scripts.problems(&written["scripts"])
    }
}

/// The form in which hosts see the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// `discover_tool`, `use_tool` and `load_mcp`: the smallest context, and works with every host.
    Discover,
    /// `activate_<server>` for each lazy server, and the tools of every loaded one.
    Activate,
    /// `get_dynamic_tools` and `call_dynamic_tool`, with each server as a group.
    Groups,
    /// The tools of every server whose tools are known, and `load_mcp` for the others.
    Direct,
}

impl Surface {
    pub const ALL: [Self; 4] = [Self::Discover, Self::Activate, Self::Groups, Self::Direct];

    /// Returns the name in the config, on the command line and in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discover => "discover",
            Self::Activate => "activate",
            Self::Groups => "groups",
            Self::Direct => "direct",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.name() == name)
    }

    /// Returns the meaning of the value: its documentation, without the full stop.
    pub fn meaning(self) -> String {
        let schema = Self::json_schema(&mut SchemaGenerator::default()).to_value();
        let mut values = schema["oneOf"].as_array().into_iter().flatten();
        let value = values.find(|value| value["const"] == self.name());
        let meaning = value.and_then(|value| value["description"].as_str()).unwrap_or_default();
        meaning.trim_end_matches('.').replace('\n', " ")
    }
}

/// The effect of loads on lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Listing {
    /// A loaded server moves from the list of servers to the list of tools, and hosts are notified.
    Growing,
    /// Lists depend only on the config; a load changes no list and sends no notification.
    Stable,
}

/// The tools that carry `_meta["anthropic/alwaysLoad"]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlwaysLoad {
    /// The discovery tools of dormouse.
    Meta,
    /// The discovery tools and the tools of loaded servers.
    Loaded,
    /// None.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_surface_of_the_schema_is_listed() {
        let schema = Surface::json_schema(&mut SchemaGenerator::default()).to_value();
        let declared: Vec<_> = schema["oneOf"].as_array().unwrap().iter().collect();
        let listed = Surface::ALL.map(Surface::name);
        assert_eq!(declared.len(), listed.len(), "Surface::ALL has every surface");
        for value in declared {
            assert!(listed.contains(&value["const"].as_str().unwrap()), "{value}");
        }
    }
}
