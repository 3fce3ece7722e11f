//! The profiles that an import offers: one for each app, with the servers that the app had.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    apps::{App, ImportPlan, PlannedOutcome},
    base::counted,
    cli::{arguments::ImportArguments, ask},
    config::{ConfigEdit, ConfigFile},
};

/// The profiles to write, by the ids of apps, with the names of servers in the config.
#[derive(Default)]
pub(super) struct AppProfiles {
    profiles: BTreeMap<&'static str, BTreeSet<String>>,
    /// The apps for which the config has a profile already.
    kept: Vec<&'static str>,
}

impl AppProfiles {
    /// Returns a profile for each app of the plan; none if all apps have the same servers.
    /// `existing` are the names of the profiles of the config, which stay as they are.
    pub(super) fn of(plan: &ImportPlan, existing: &[String]) -> Self {
        let mut profiles: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        // The config has another server under a name that is taken.
        let in_config =
            plan.servers.iter().filter(|planned| planned.outcome != PlannedOutcome::NameTaken);
        for planned in in_config {
            for source in planned.from.iter().filter(|source| App::named(source.id).is_some()) {
                profiles.entry(source.id).or_default().insert(planned.name.clone());
            }
        }
        let mut sets = profiles.values();
        let first = sets.next();
        if sets.all(|set| Some(set) == first) {
            return Self::default();
        }
        let has = |app: &&str| existing.iter().any(|name| name == app);
        let kept = profiles.keys().copied().filter(has).collect();
        profiles.retain(|app, _| !has(app));
        Self { profiles, kept }
    }

    /// Returns these profiles if the user wants them, or else none.
    pub(super) fn if_wanted(self, typed: &ImportArguments, may_ask: bool) -> anyhow::Result<Self> {
        if typed.profiles {
            for app in &self.kept {
                errln!("the config has a profile {app} already, which stays as it is");
            }
            return Ok(self);
        }
        if self.profiles.is_empty() {
            return Ok(self);
        }
        if !may_ask {
            let apps = self.names().collect::<Vec<_>>().join(", ");
            errln!("the apps had different servers; --profiles writes a profile for each: {apps}");
            return Ok(Self::default());
        }
        let with_size = |(app, servers): (&&str, &BTreeSet<String>)| {
            format!("{app} ({})", counted(servers.len(), "server"))
        };
        let apps = self.profiles.iter().map(with_size).collect::<Vec<_>>().join(", ");
        let question = format!("The apps had different servers. Write a profile for each: {apps}?");
        Ok(if ask::confirm(&question)? { self } else { Self::default() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.profiles.is_empty()
    }

    /// Returns the file with the profiles, except those that it has already.
    pub(super) fn add_to(&self, file: ConfigFile) -> anyhow::Result<ConfigFile> {
        let existing = file.profile_names()?;
        let mut after = file;
        for (app, servers) in &self.profiles {
            if !existing.iter().any(|name| name == app) {
                let (name, servers) = ((*app).to_owned(), servers.clone());
                after = after.with(&ConfigEdit::AddProfile { name, servers })?;
            }
        }
        Ok(after)
    }

    /// Returns the profiles as they are reported.
    pub(super) fn reported(&self) -> BTreeMap<&'static str, BTreeSet<String>> {
        self.profiles.clone()
    }

    /// Prints how a host gets its profile.
    pub(super) fn say_how_to_use(&self) {
        let Some(first) = self.names().next() else { return };
        let profiles = self.names().collect::<Vec<_>>().join(", ");
        outln!("profiles: {profiles}");
        outln!(
            "to use one: dormouse connect {first} --profile {first}; or dormouse --profile \
                {first}, or DORMOUSE_PROFILE={first}"
        );
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.profiles.keys().copied()
    }
}
