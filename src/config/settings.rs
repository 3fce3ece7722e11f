//! The settings for all servers, and their change while dormouse runs.

use super::{
    PolicyRule, ProfileName, Profiles, Surface, UserCommands,
    keys::{
        AccessSettings, DaemonSettings, KeyGroup as _, Limits, ListSettings, ListenSettings,
        LoadSettings, PeopleSettings, StoreSettings, TelemetrySettings,
    },
};

/// The settings for all servers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub lists: ListSettings,
    pub loading: LoadSettings,
    pub daemon: DaemonSettings,
    pub telemetry: TelemetrySettings,
    pub store: StoreSettings,
    pub limits: Limits,
    pub http: HttpSettings,
    pub profiles: Profiles,
    /// The rules for calls of the tools of all servers.
    pub(crate) policy: Vec<PolicyRule>,
    pub launch: LaunchFacts,
}

/// The settings for hosts over HTTP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpSettings {
    pub access: AccessSettings,
    pub listening: ListenSettings,
    pub people: PeopleSettings,
}

impl HttpSettings {
    fn adopted(&self, now: &Self) -> (Self, Vec<String>) {
        let (access, of_access) = self.access.adopted(&now.access);
        let (listening, of_listening) = self.listening.adopted(&now.listening);
        let (people, of_people) = self.people.adopted(&now.people);
        (Self { access, listening, people }, [of_access, of_listening, of_people].concat())
    }
}

/// The facts that come from the process that was started, and not from the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchFacts {
    /// The mark by which a dormouse detects an ancestor that serves the same config; `None` without
    /// a config.
    pub lineage: Option<String>,
    /// True if no user can be asked: the variable `CI` is set.
    pub is_unattended: bool,
    /// True if a person reads the value of a script, and no model: it is not cut.
    pub is_for_person: bool,
    /// The commands that messages advise.
    pub commands: UserCommands,
    pub wrapping: Wrapping,
}

/// The source of the servers: a config, or the command line with the one server that is wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrapping {
    #[default]
    None,
    /// The server's names have no prefix, and requests with unknown methods pass to it.
    Shared,
    /// As `Shared`, and the hosts are fleets of this process: a fleet is refused if the server
    /// cannot be connected.
    Pooled,
    /// As `Shared`, and its only host reads the server's lists itself: dormouse requests none.
    Exclusive,
}

/// The profiles that a person may choose.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PermittedProfiles {
    /// All of them, and everything without a profile.
    Any,
    None,
    /// One of these; the first one if the person chooses none.
    These(Vec<ProfileName>),
}

/// The limits of one person in a time; `None` for any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageLimits {
    pub(crate) calls_per_minute: Option<usize>,
    pub(crate) bytes_per_day: Option<usize>,
}

impl UsageLimits {
    /// Returns the more generous of two limits, each by itself.
    fn or(self, other: Self) -> Self {
        let more = |one: Option<usize>, other: Option<usize>| Some(one?.max(other?));
        Self {
            calls_per_minute: more(self.calls_per_minute, other.calls_per_minute),
            bytes_per_day: more(self.bytes_per_day, other.bytes_per_day),
        }
    }
}

impl Settings {
    /// Sets the surface of hosts that name none, whatever their profile is.
    pub(crate) fn set_surface(&mut self, surface: Surface) {
        self.lists.surface = surface;
        self.profiles.ignore_surfaces();
    }

    /// Returns the profiles that a person with these groups may choose.
    pub(crate) fn profiles_of(&self, groups: &[String]) -> PermittedProfiles {
        if self.http.people.groups.is_empty() {
            return PermittedProfiles::Any;
        }
        let of_person = self.http.people.groups.iter().filter(|(name, _)| groups.contains(name));
        let mut permitted = Vec::new();
        let mut has_group = false;
        for (_, group) in of_person {
            has_group = true;
            if group.profiles.is_empty() {
                return PermittedProfiles::Any;
            }
            let named = group.profiles.iter().filter_map(|name| self.profiles.named(name).ok());
            permitted.extend(named);
        }
        if has_group { PermittedProfiles::These(permitted) } else { PermittedProfiles::None }
    }

    /// Returns the limits of a person with these groups: those of the group with the most generous
    /// one.
    pub(crate) fn limits_of(&self, groups: &[String]) -> UsageLimits {
        let of_person = self.http.people.groups.iter().filter(|(name, _)| groups.contains(name));
        let limits = of_person.map(|(_, group)| UsageLimits {
            calls_per_minute: group.calls_per_minute,
            bytes_per_day: group.bytes_per_day,
        });
        limits.reduce(UsageLimits::or).unwrap_or_default()
    }

    /// Returns these settings as a running dormouse can adopt them in place of `now`, and the keys
    /// that keep their values until the next start.
    pub(crate) fn adopted(&self, now: &Self) -> (Self, Vec<String>) {
        let (lists, of_lists) = self.lists.adopted(&now.lists);
        let (loading, of_loading) = self.loading.adopted(&now.loading);
        let (daemon, of_daemon) = self.daemon.adopted(&now.daemon);
        let (telemetry, of_telemetry) = self.telemetry.adopted(&now.telemetry);
        let (store, of_store) = self.store.adopted(&now.store);
        let (limits, of_limits) = self.limits.adopted(&now.limits);
        let (http, of_http) = self.http.adopted(&now.http);
        let adopted = Self {
            lists,
            loading,
            daemon,
            telemetry,
            store,
            limits,
            http,
            profiles: self.profiles.clone(),
            policy: self.policy.clone(),
            launch: LaunchFacts { wrapping: now.launch.wrapping, ..self.launch.clone() },
        };
        let kept = [of_lists, of_loading, of_daemon, of_telemetry, of_store, of_limits, of_http];
        let kept = kept.concat();
        (adopted, kept)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{
        super::{Environment, parse},
        *,
    };

    fn settings(text: &str) -> Settings {
        let parsed = parse(text, Path::new("c.json"), &Environment::default());
        parsed.unwrap().config.settings
    }

    #[test]
    fn keys_of_the_next_start_keep_their_values() {
        let (now, wanted) = (
            Settings::default(),
            settings(
                r#"{"surface": "direct", "descriptionBudget": 0, "settle": "1ms",
                    "catalogTtl": 0, "loads": "session", "maxMessageBytes": 2048,
                    "authTokens": ["t"], "trustedProxies": ["10.0.0.0/8"],
                    "apiTokens": ["u"], "listen": ":80"}"#,
            ),
        );
        let (adopted, fixed) = wanted.adopted(&now);
        assert_eq!(fixed, ["loads", "catalogTtl", "maxMessageBytes", "apiTokens", "listen"]);
        assert_eq!(adopted.lists, wanted.lists);
        assert_eq!(adopted.loading.settle, wanted.loading.settle);
        assert_eq!(adopted.loading.catalog_ttl, now.loading.catalog_ttl);
        assert_eq!(adopted.http.access.auth_tokens, ["t"]);
        assert_eq!(adopted.http.access.trusted_proxies, wanted.http.access.trusted_proxies);
        assert_eq!((adopted.http.listening.listen, adopted.limits), (None, now.limits.clone()));
        assert_eq!(wanted.adopted(&wanted), (wanted.clone(), Vec::new()));
    }

    #[test]
    fn debug_output_has_no_tokens() {
        let shown = format!("{:?}", settings(r#"{"authTokens": ["s3cret"], "listen": ":80"}"#));
        assert!(shown.contains("listen: Some(\":80\")") && !shown.contains("s3cret"), "{shown}");
    }
}
