//! The profiles of a config, and the choice of one.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{ConfigError, ServerConfig, Surface, Toolset, keys::Profile, tools::ToolChoice};

/// Maximum number of names of profiles in an error.
const MAX_KNOWN_NAMES: usize = 20;

/// The name of a profile. Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProfileName(Arc<str>);

impl ProfileName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The profiles of a config, and the default one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profiles {
    by_name: BTreeMap<String, Profile>,
    /// The profile of hosts that choose none; `None` if such hosts see everything.
    default: Option<ProfileName>,
}

impl Profiles {
    pub(super) fn new(by_name: BTreeMap<String, Profile>) -> Self {
        Self { by_name, default: None }
    }

    /// Sets the profile of hosts that choose none.
    ///
    /// # Errors
    /// [`ConfigError::NoProfile`] if the config has no profile of this name.
    pub(crate) fn set_default(&mut self, name: &str) -> Result<(), ConfigError> {
        self.default = Some(self.named(name)?);
        Ok(())
    }

    /// Returns the profile of this name.
    ///
    /// # Errors
    /// As [`Self::set_default`].
    pub(crate) fn named(&self, name: &str) -> Result<ProfileName, ConfigError> {
        if self.by_name.contains_key(name) {
            return Ok(ProfileName(name.into()));
        }
        let names = self.by_name.keys().take(MAX_KNOWN_NAMES).cloned();
        let mut known = names.collect::<Vec<_>>().join(", ");
        match self.by_name.len().saturating_sub(MAX_KNOWN_NAMES) {
            0 if known.is_empty() => known.push_str("none"),
            0 => {}
            others => known.push_str(&format!(" and {others} more")),
        }
        Err(ConfigError::NoProfile { name: name.to_owned(), known })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Removes the surfaces of all profiles, since the command line names one.
    pub(crate) fn ignore_surfaces(&mut self) {
        self.by_name.values_mut().for_each(|profile| profile.surface = None);
    }

    /// Returns the surface of hosts with this profile that name none; `None` if it is that of the
    /// config.
    pub(crate) fn surface(&self, profile: Option<&ProfileName>) -> Option<Surface> {
        self.get(profile?)?.surface
    }

    /// Returns the profile of hosts that choose none.
    pub(crate) fn default_name(&self) -> Option<&ProfileName> {
        self.default.as_ref()
    }

    pub(crate) fn get(&self, name: &ProfileName) -> Option<&Profile> {
        self.by_name.get(&*name.0)
    }

    /// Returns whether hosts with this profile see an offer of a server. A profile that the config
    /// no longer has contains nothing.
    pub(crate) fn show(&self, profile: Option<&ProfileName>, server: &str, offer: &str) -> bool {
        let Some(name) = profile else { return true };
        self.get(name).is_some_and(|profile| profile.has(server, offer))
    }

    /// Returns the choices of which one has each tool that hosts with this profile see in an offer,
    /// which the profile contains; `None` if they see all. `toolsets` are those of a whole server.
    pub(crate) fn choices(
        &self,
        profile: &ProfileName,
        (server, offer): (&str, &str),
        toolsets: &[Toolset],
    ) -> Option<Vec<ToolChoice>> {
        let profile = self.get(profile)?;
        let choices = if server == offer {
            choices_of(profile, server, toolsets)
        } else {
            let tools = profile.tools(server, offer).map(<[_]>::to_vec);
            vec![ToolChoice { tools, within: None }]
        };
        (!choices.contains(&ToolChoice::default())).then_some(choices)
    }

    /// Returns the config of a server as hosts see the server that choose no profile: disabled if
    /// the default profile lacks it.
    pub(crate) fn by_default<'a>(&self, server: &'a ServerConfig) -> Cow<'a, ServerConfig> {
        self.in_use(server, &BTreeSet::new())
    }

    /// Returns the config of a server as the default profile and the `chosen` ones show it
    /// together: disabled if none of them has it. Reports and the start of servers follow it.
    pub(crate) fn in_use<'a>(
        &self,
        server: &'a ServerConfig,
        chosen: &BTreeSet<ProfileName>,
    ) -> Cow<'a, ServerConfig> {
        let Some(default) = &self.default else { return Cow::Borrowed(server) };
        let names = std::iter::once(default).chain(chosen);
        let profiles = names.filter_map(|name| self.get(name));
        let toolsets = server.offer.extent.toolsets();
        let choices: Vec<ToolChoice> =
            profiles.flat_map(|profile| choices_of(profile, &server.name, toolsets)).collect();
        let mut shown = server.clone();
        shown.enabled &= !choices.is_empty();
        if !choices.is_empty() && !choices.contains(&ToolChoice::default()) {
            shown.offer.tools.restrict(choices);
        }
        Cow::Owned(shown)
    }
}

/// Returns the tools of a server that a profile contains: those of its own key, and those of the
/// keys of toolsets.
fn choices_of(profile: &Profile, server: &str, toolsets: &[Toolset]) -> Vec<ToolChoice> {
    let chosen = |key: &str, within| {
        let tools = profile.servers.get(key)?.clone().filter(|tools| !tools.is_empty());
        Some(ToolChoice { tools, within })
    };
    let of_toolsets = toolsets
        .iter()
        .filter_map(|toolset| chosen(&toolset.full_name(server), Some(toolset.tools.clone())));
    chosen(server, None).into_iter().chain(of_toolsets).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Environment, parse};

    fn parsed(text: &str) -> crate::config::Config {
        parse(text, Path::new("c.json"), &Environment::default()).unwrap().config
    }

    #[test]
    fn profiles_in_use_show_what_one_of_them_shows() {
        let config = parsed(
            r#"{"profiles": {"p": {"servers": {"a": ["read"]}}, "q": {"servers": {"a": ["write"]}},
                "r": {"servers": {"a": [], "b": null}}},
            "mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}"#,
        );
        let mut profiles = config.settings.profiles.clone();
        let [a, b] = &config.servers[..] else { panic!("two servers") };
        assert_eq!(*profiles.in_use(b, &BTreeSet::new()), *b, "no default profile");
        profiles.set_default("p").unwrap();
        let chosen = |names: &[&str]| -> BTreeSet<ProfileName> {
            names.iter().map(|name| profiles.named(name).unwrap()).collect()
        };
        for (names, tools, has_b) in [
            (&[][..], ["read"].as_slice(), false),
            (&["q"], &["read", "write"], false),
            (&["q", "r"], &["read", "write", "other"], true),
        ] {
            let chosen = chosen(names);
            let shown = profiles.in_use(a, &chosen);
            let allowed = ["read", "write", "other"];
            let allowed = allowed.into_iter().filter(|tool| shown.offer.tools.allow(tool));
            assert_eq!(allowed.collect::<Vec<_>>(), tools, "{names:?}");
            assert_eq!(profiles.in_use(b, &chosen).enabled, has_b, "{names:?}");
        }
    }

    #[test]
    fn profiles_show_tools_of_toolsets() {
        let config = parsed(
            r#"{"profiles": {"p": {"servers": {"a/issues": null}},
                "q": {"servers": {"a/issues": ["list_*"], "a/pulls": null}}},
            "mcpServers": {"a": {"command": "x", "toolsets": {
                "issues": {"tools": ["*issue*"]}, "pulls": {"tools": ["*pull"]}}}}}"#,
        );
        let mut profiles = config.settings.profiles.clone();
        let shown = |profiles: &Profiles| {
            let shown = profiles.by_default(&config.servers[0]).into_owned();
            let tools = ["list_issues", "get_issue", "get_pull", "merge"].into_iter();
            let allowed = tools.filter(|tool| shown.offer.tools.allow(tool)).collect::<Vec<_>>();
            (shown.enabled, allowed)
        };
        profiles.set_default("p").unwrap();
        assert_eq!(shown(&profiles), (true, vec!["list_issues", "get_issue"]));
        profiles.set_default("q").unwrap();
        assert_eq!(shown(&profiles), (true, vec!["list_issues", "get_pull"]));
    }

    #[test]
    fn error_of_an_unknown_profile_names_a_bounded_number_of_others() {
        let entries = |count: usize| {
            let entries = ('a'..='z').take(count).map(|name| format!(r#""{name}": {{}}"#));
            format!(r#"{{"profiles": {{{}}}}}"#, entries.collect::<Vec<_>>().join(","))
        };
        let errors = [0, 2, 25].map(|count| {
            let config = parsed(&entries(count));
            let error = config.settings.profiles.named("X").unwrap_err().to_string();
            error.trim_start_matches("unknown ").to_owned()
        });
        insta::assert_snapshot!(errors.join("\n"), @r#"
        profile "X"; known: none
        profile "X"; known: a, b
        profile "X"; known: a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t and 5 more
        "#);
    }
}
