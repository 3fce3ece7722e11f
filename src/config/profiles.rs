//! The profiles of a config, and the choice of one.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use super::{ConfigError, ServerConfig, keys::Profile};

/// The name of a profile. Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        if !self.by_name.contains_key(name) {
            let profiles = self.by_name.keys().cloned().collect();
            return Err(ConfigError::NoProfile { name: name.to_owned(), profiles });
        }
        self.default = Some(ProfileName(name.into()));
        Ok(())
    }

    /// Returns the profile of hosts that choose none.
    pub(crate) fn default_name(&self) -> Option<&ProfileName> {
        self.default.as_ref()
    }

    pub(crate) fn get(&self, name: &ProfileName) -> Option<&Profile> {
        self.by_name.get(&*name.0)
    }

    /// Returns whether hosts with this profile see an offer. A profile that the config no longer
    /// has contains nothing.
    pub(crate) fn show(&self, profile: Option<&ProfileName>, offer: &str) -> bool {
        let Some(name) = profile else { return true };
        self.get(name).is_some_and(|profile| profile.has(offer))
    }

    /// Returns the config of a server as hosts see the server that choose no profile: disabled if
    /// the default profile lacks it. Reports and the start of servers follow it.
    pub(crate) fn by_default<'a>(&self, server: &'a ServerConfig) -> Cow<'a, ServerConfig> {
        let Some(name) = &self.default else { return Cow::Borrowed(server) };
        let mut shown = server.clone();
        shown.enabled &= self.show(Some(name), &server.name);
        if let Some(tools) = self.get(name).and_then(|profile| profile.tools(&server.name)) {
            shown.offer.tools.restrict(tools);
        }
        Cow::Owned(shown)
    }
}
