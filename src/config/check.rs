//! From the file as written to the validated config, with every problem on the way.

use std::{collections::BTreeSet, path::Path};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Browser, Config, ConfigError, EndpointSettings, Environment, Features, Isolation, ListSettings,
    LoadSettings, Loads, MAX_PROBLEMS, OfferRules, ParsedConfig, Pin, Problem, Profile,
    ServerConfig, Settings, Startup, Surface, Timeouts, ToolRules, Unavailable, Wrapping, access,
    document::Document,
    expand::{MAX_EXPANSION, drop_unset, expand, reference_to, unclosed},
    file::{FeaturesEntry, File, ProfileEntry, Protocol, ServerEntry, TimeoutsEntry},
    foreign::{Dialect, Manner, Variables},
    key_path::Step,
    oauth,
    plain_words::in_plain_words,
    schema,
    transport::{problems, transport},
    unknown_key::unknown_key,
};
use crate::base::is_hidden;

/// Maximum number of bad values that are reported of an entry: for each, the entry is read once
/// more.
const MAX_BAD_VALUES: usize = 100;
/// Minimum of `maxMessageBytes`: with less, no handshake would pass.
const MIN_MESSAGE_BYTES: usize = 1024;

pub(super) fn check(
    document: &Document<'_>,
    path: &Path,
    environment: &Environment,
) -> Result<ParsedConfig, ConfigError> {
    let problems = [document.repeated_keys(), document.problems()].concat();
    let manner = document.manner();
    let environment = &*manner.variables.of(environment);
    let mut checker =
        Checker { document, manner, problems, warnings: document.warnings(), room: MAX_EXPANSION };
    let written = document.value();
    let mut file: File = checker.read(&[], &written, written.clone());
    checker.expand_tokens(&mut file, environment);
    checker.expand_listen(&mut file, environment);
    for (path, message) in access::problems(&file) {
        checker.report(&path, message);
    }
    for (profile, entry) in &file.profiles {
        checker.check_profile(profile, entry, &file);
    }
    let settings = settings(&file);
    if settings.max_message_bytes < MIN_MESSAGE_BYTES {
        let at = [Step::Key("maxMessageBytes".to_owned())];
        checker.report(&at, format!("must be {MIN_MESSAGE_BYTES} or more"));
    }
    if settings.loading.remember_loads && settings.loading.loads == Loads::Session {
        let at = [Step::Key("rememberLoads".to_owned())];
        checker.report(
            &at,
            "with \"loads\": \"session\" there are no loads to remember: sessions \
            end with their hosts",
        );
    }
    let mut servers = Vec::new();
    for (name, entry) in &file.mcp_servers {
        servers.push(checker.server(name, entry.clone(), &file, path, environment));
    }
    if checker.room == 0 {
        checker.report(&[], format!("the variables expand to more than {MAX_EXPANSION} bytes"));
    }
    let Checker { mut problems, warnings, .. } = checker;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.dedup();
    if let (Some(dialect), Some(first)) = (document.dialect(), problems.first_mut()) {
        let name = dialect.name();
        first.message.push_str(&format!(" (the file is read as a config of {name})"));
    }
    if problems.is_empty() {
        let profiles = file.profiles.into_iter();
        let tools =
            |(server, tools): (String, Option<Vec<String>>)| (server, tools.unwrap_or_default());
        let profiles = profiles.map(|(name, entry)| {
            (name, Profile { servers: entry.servers.into_iter().map(tools).collect() })
        });
        Ok(ParsedConfig {
            config: Config { settings, servers, profiles: profiles.collect() },
            dialect: document.dialect(),
            own_idle_timeouts: own_idle_timeouts(document, &written),
            servers_at_root: manner.servers_at_root,
            warnings,
        })
    } else {
        Err(ConfigError::Invalid(problems))
    }
}

/// Returns the servers whose own idle timeout is used. The command-line flag of dynamic-mcp is for
/// servers that have none.
fn own_idle_timeouts(document: &Document<'_>, written: &Value) -> BTreeSet<String> {
    let entries = written["mcpServers"].as_object().into_iter().flatten();
    let own = entries.filter(|(_, entry)| !entry["idleTimeout"].is_null());
    let is_meant = document.dialect() == Some(Dialect::DynamicMcp);
    own.filter(|_| is_meant).map(|(name, _)| name.clone()).collect()
}

fn settings(file: &File) -> Settings {
    let default = Settings::default();
    Settings {
        lists: list_settings(file, &default.lists),
        loading: LoadSettings {
            loads: file.loads.unwrap_or(default.loading.loads),
            remember_loads: file.remember_loads.unwrap_or(default.loading.remember_loads),
            settle: file.settle.map_or(default.loading.settle, |settle| settle.0),
        },
        catalog_ttl: match file.catalog_ttl {
            None => default.catalog_ttl,
            Some(ttl) => Some(ttl.0).filter(|ttl| !ttl.is_zero()),
        },
        startup_wait: file.startup_wait.map_or(default.startup_wait, |wait| wait.0),
        max_message_bytes: file.max_message_bytes.unwrap_or(default.max_message_bytes),
        lineage: default.lineage,
        browser: match file.interactive {
            Some(true) => Browser::WhenNeeded,
            _ => default.browser,
        },
        wrapping: Wrapping::None,
        http: access::http_settings(file),
    }
}

fn list_settings(file: &File, default: &ListSettings) -> ListSettings {
    ListSettings {
        surface: file.surface.unwrap_or(default.surface),
        listing: file.listing.unwrap_or(default.listing),
        always_load: file.always_load.unwrap_or(default.always_load),
        description_budget: match file.description_budget {
            None => default.description_budget,
            Some(0) => None,
            Some(bytes) => Some(bytes),
        },
        split_calls: file.split_calls.unwrap_or(default.split_calls),
    }
}

struct Checker<'a, 'text> {
    document: &'a Document<'text>,
    manner: Manner,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
    /// The number of bytes to which variables may still expand.
    room: usize,
}

impl Checker<'_, '_> {
    fn report(&mut self, path: &[Step], message: impl Into<String>) {
        if !self.is_full() {
            self.problems.push(self.document.problem(path, message));
        }
    }

    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// Expands references to variables, and returns the undefined ones that are required.
    fn expand(&mut self, value: &mut Value, environment: &Environment) -> Vec<String> {
        if self.manner.variables == Variables::Nowhere {
            return Vec::new();
        }
        let undefined = expand(value, environment, &mut self.room);
        if self.manner.keeps_undefined { Vec::new() } else { undefined }
    }

    /// Reads `value`, which is at `base`, and reports every unknown key and every bad value in it.
    ///
    /// serde stops at the first bad value, so that this removes it and reads the rest again.
    /// `written` is the value before variables were expanded: messages must not show their values.
    fn read<T: DeserializeOwned + Default>(
        &mut self,
        base: &[Step],
        written: &Value,
        mut value: Value,
    ) -> T {
        if !value.is_object() {
            self.report(base, "expected an object");
            return T::default();
        }
        for _ in 0..MAX_BAD_VALUES {
            let mut unknown = Vec::new();
            let mut track = serde_path_to_error::Track::new();
            let deserializer = serde_path_to_error::Deserializer::new(value.clone(), &mut track);
            let read = serde_ignored::deserialize(deserializer, |path| unknown.push(steps(&path)));
            let error = match read {
                Ok(read) => {
                    self.report_unknown(base, &unknown);
                    return read;
                }
                Err(error) => error,
            };
            let found: Vec<Step> = track.path().iter().filter_map(step).collect();
            let message = match at(written, &found) {
                Some(Value::String(text)) if text.contains("${") => {
                    format!("the expanded value of {text:?} is not valid here")
                }
                _ => in_plain_words(&error.to_string()),
            };
            self.report(&[base, &found].concat(), message);
            if found.is_empty() || self.is_full() || !neutralise(&mut value, &found) {
                self.report_unknown(base, &unknown);
                break;
            }
        }
        T::default()
    }

    fn report_unknown(&mut self, base: &[Step], unknown: &[Vec<Step>]) {
        for path in unknown.iter().take(MAX_PROBLEMS) {
            let path = [base, path.as_slice()].concat();
            let Some((Step::Key(key), parent)) = path.split_last() else { continue };
            let message = unknown_key(key, &schema::known_keys(parent));
            self.report(&path, message);
        }
    }

    /// An undefined variable in a token would open the door to everyone, or to no one.
    fn expand_tokens(&mut self, file: &mut File, environment: &Environment) {
        let lists = [("authTokens", &mut file.auth_tokens), ("apiTokens", &mut file.api_tokens)];
        for (key, list) in lists {
            let tokens = Value::from(std::mem::take(list));
            let tokens = self.expand_setting(key, tokens, environment);
            *list = serde_json::from_value(tokens).unwrap_or_default();
            // A bad value has been reported, and is replaced by an empty one.
            let is_reported = self.problems.iter().any(|problem| problem.key_path.starts_with(key));
            if !is_reported && list.iter().any(|token| token.trim().is_empty()) {
                self.report(&[Step::Key(key.to_owned())], "a token must not be blank");
            }
        }
    }

    fn expand_listen(&mut self, file: &mut File, environment: &Environment) {
        let address = Value::from(file.listen.take());
        let address = self.expand_setting("listen", address, environment);
        file.listen = address.as_str().map(str::to_owned);
    }

    /// Expands the value of a setting for all servers, which must not contain an undefined
    /// variable.
    fn expand_setting(&mut self, key: &str, mut value: Value, environment: &Environment) -> Value {
        self.check_references(&[Step::Key(key.to_owned())], &value, &[]);
        let undefined = self.expand(&mut value, environment);
        if !undefined.is_empty() {
            let message = format!("undefined: {}", undefined.join(", "));
            self.report(&[Step::Key(key.to_owned())], message);
        }
        value
    }

    /// Reports references that have no end, and warns of references to undefined variables, without
    /// which a server is unavailable. `at` is the path of `written`.
    fn check_references(&mut self, at: &[Step], written: &Value, undefined: &[String]) {
        if self.manner.variables == Variables::Nowhere {
            return;
        }
        for path in unclosed(written) {
            self.report(&[at, &path].concat(), "\"${\" has no closing \"}\"");
        }
        for variable in undefined {
            // The limit is that of problems. Servers report themselves which variables they lack.
            if self.warnings.len() >= MAX_PROBLEMS {
                return;
            }
            let path = reference_to(written, variable).unwrap_or_default();
            let message = format!(
                "undefined variable {variable}: the server is unavailable until it is set in the \
                    environment or in .env"
            );
            self.warnings.push(self.document.problem(&[at, &path].concat(), message));
        }
    }

    fn check_profile(&mut self, name: &str, profile: &ProfileEntry, file: &File) {
        for server in
            profile.servers.keys().filter(|server| !file.mcp_servers.contains_key(*server))
        {
            let at = ["profiles", name, "servers", server].map(|key| Step::Key(key.to_owned()));
            self.report(&at, format!("unknown server {server:?}"));
        }
    }

    fn server(
        &mut self,
        name: &str,
        mut entry: Value,
        file: &File,
        path: &Path,
        environment: &Environment,
    ) -> ServerConfig {
        let at = [Step::Key("mcpServers".to_owned()), Step::Key(name.to_owned())];
        if name.trim().is_empty() || name.chars().any(|c| c.is_control() || is_hidden(c)) {
            self.report(
                &at,
                "the name of a server must not be blank or contain invisible characters",
            );
        }
        let written = entry.clone();
        if self.manner.variables != Variables::Nowhere {
            drop_unset(&mut entry, environment);
        }
        let undefined = self.expand(&mut entry, environment);
        self.check_references(&at, &written, &undefined);
        let entry: ServerEntry = self.read(&at, &written, entry);
        for (key, message) in problems(&written, &entry) {
            let key = key.map(|key| Step::Key(key.to_owned()));
            self.report(&at.iter().cloned().chain(key).collect::<Vec<_>>(), message);
        }
        for (key, message) in entry.oauth.iter().flat_map(|oauth| oauth::problems(&written, oauth))
        {
            let keys = ["oauth", key].map(|key| Step::Key(key.to_owned()));
            self.report(&[&at[..], &keys].concat(), message);
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        configure(name, entry, file, directory, undefined)
    }
}

/// Converts an entry into the config of a server. `undefined` are the variables that it lacks.
fn configure(
    name: &str,
    mut entry: ServerEntry,
    file: &File,
    directory: &Path,
    undefined: Vec<String>,
) -> ServerConfig {
    let transport = transport(&mut entry, directory);
    let description = entry.description.filter(|text| !text.trim().is_empty());
    let by_default = if description.is_some() { Startup::Lazy } else { Startup::Eager };
    let idle = match entry.idle_timeout.or(file.idle_timeout) {
        None => Timeouts::default().idle,
        Some(timeout) => Some(timeout.0).filter(|timeout| !timeout.is_zero()),
    };
    ServerConfig {
        name: name.to_owned(),
        startup: entry.startup.unwrap_or(by_default),
        description,
        enabled: entry.enabled.unwrap_or(true),
        timeouts: timeouts(entry.timeouts, file.timeouts, idle),
        protocol: entry.protocol.unwrap_or(Protocol::Auto),
        isolation: entry.isolation.unwrap_or(Isolation::Shared),
        offer: OfferRules {
            tools: ToolRules::new(entry.tools),
            features: features(entry.features),
            pin: entry.pin.or(file.pin).unwrap_or(Pin::Warn),
            max_result_bytes: entry
                .max_result_bytes
                .or(file.max_result_bytes)
                .filter(|max| *max > 0),
        },
        endpoint: EndpointSettings {
            auth_tokens: entry.auth_tokens,
            surface: entry.surface.unwrap_or(Surface::Direct),
        },
        transport: if undefined.is_empty() {
            transport
        } else {
            Err(Unavailable::Undefined(undefined))
        },
    }
}

fn features(entry: FeaturesEntry) -> Features {
    let default = Features::default();
    Features {
        tools: entry.tools.unwrap_or(default.tools),
        resources: entry.resources.unwrap_or(default.resources),
        prompts: entry.prompts.unwrap_or(default.prompts),
    }
}

fn timeouts(
    own: TimeoutsEntry,
    general: TimeoutsEntry,
    idle: Option<std::time::Duration>,
) -> Timeouts {
    let default = Timeouts::default();
    let choose = |own: Option<super::duration::DurationText>, general, default| {
        own.or(general).map_or(default, |chosen: super::duration::DurationText| chosen.0)
    };
    Timeouts {
        load: choose(own.load, general.load, default.load),
        call: choose(own.call, general.call, default.call),
        request: choose(own.request, general.request, default.request),
        idle,
    }
}

/// Returns the part of `value` at `path`.
fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// Replaces a bad value, so that the rest can be read.
fn neutralise(value: &mut Value, path: &[Step]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let parent = parents.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    });
    match (last, parent) {
        (Step::Key(key), Some(Value::Object(members))) => members.shift_remove(key).is_some(),
        (Step::Index(index), Some(Value::Array(elements))) => match elements.get_mut(*index) {
            // Every array of the file holds strings; an empty one keeps the positions of later
            // elements.
            Some(element) if !element.is_string() => {
                *element = Value::String(String::new());
                true
            }
            _ => false,
        },
        _ => false,
    }
}

fn step(segment: &serde_path_to_error::Segment) -> Option<Step> {
    use serde_path_to_error::Segment;
    match segment {
        Segment::Map { key } => Some(Step::Key(key.clone())),
        Segment::Seq { index } => Some(Step::Index(*index)),
        Segment::Enum { .. } | Segment::Unknown => None,
    }
}

fn steps(path: &serde_ignored::Path<'_>) -> Vec<Step> {
    use serde_ignored::Path;
    let (parent, own) = match path {
        Path::Root => return Vec::new(),
        Path::Map { parent, key } => (parent, Some(Step::Key(key.clone()))),
        Path::Seq { parent, index } => (parent, Some(Step::Index(*index))),
        Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => (parent, None),
    };
    steps(parent).into_iter().chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::Transport, *};

    fn parse(text: &str) -> Result<ParsedConfig, ConfigError> {
        let environment = Environment::from_pairs([("HOME", "/home/d")]);
        super::super::parse(text, Path::new("/etc/d/dormouse.json"), &environment)
    }

    fn problems(text: &str) -> Vec<String> {
        match parse(text).unwrap_err() {
            ConfigError::Invalid(problems) => problems.iter().map(ToString::to_string).collect(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn only_a_description_that_is_not_blank_makes_a_server_lazy() {
        let parsed = parse(
            r#"{ // comments are welcome
              "idleTimeout": 30,
              "mcpServers": {
                "b": {"command": "x", "description": " "},
                "a": {"command": "${HOME}/x", "args": ["$${HOME}"], "description": "d",
                    "cwd": "sub", "idleTimeout": 0},
              },
            }"#,
        )
        .unwrap();
        let [b, a] = parsed.config.servers.as_slice() else { panic!("{parsed:?}") };
        assert_eq!(
            (b.name.as_str(), b.startup, b.description.as_deref()),
            ("b", Startup::Eager, None)
        );
        assert_eq!(b.timeouts.idle, Some(std::time::Duration::from_secs(30)));
        assert_eq!((a.startup, a.timeouts.idle), (Startup::Lazy, None));
        let Ok(Transport::Stdio(launch)) = &a.transport else { panic!("{a:?}") };
        assert_eq!(launch.command, "/home/d/x");
        assert_eq!(launch.args, ["${HOME}"]);
        assert_eq!(launch.cwd.as_deref(), Some(Path::new("/etc/d/sub")));
    }

    #[test]
    fn undefined_variable_affects_only_its_server() {
        let parsed =
            parse(r#"{"mcpServers": {"a": {"command": "${NOPE}"}, "b": {"command": "x"}}}"#);
        let servers = parsed.unwrap().config.servers;
        assert_eq!(servers[0].transport, Err(Unavailable::Undefined(vec!["NOPE".to_owned()])));
        assert!(servers[1].transport.is_ok());
    }

    #[test]
    fn every_problem_has_its_place() {
        insta::assert_snapshot!(
            problems(
                r#"{
  "surfac": "discover",
  "settle": "soon",
  "mcpServers": {
    "a": {"command": 3, "args": ["x", 4, 5], "describtion": "x"},
    "b": {"startup": "sometimes"},
    "c": {},
    "u": {"url": "ftp://x", "type": "stdio", "args": []},
    "d": {"command": "x", "timeouts": {"cal": 1}, "url": "https://x"},
    "d": {"command": "x"},
    "": {"command": "x", "env": {"A": [1]}}
  }
}"#
            )
            .join("\n")
        );
    }

    #[test]
    fn possible_secrets_are_not_repeated() {
        let found = problems(
            r#"{"authTokens": "s3cret", "mcpServers": {
                "a": {"url": "https://x", "headers": "s3cret"},
                "b": {"command": "x", "args": "--token=\"s3cret\", expected x",
                    "env": "s3cret"}}}"#,
        );
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|problem| !problem.contains("s3cret")), "{found:?}");
        insta::assert_snapshot!(found.join("\n"));
    }

    #[test]
    fn impossible_login_is_a_problem() {
        let found = problems(
            r#"{"mcpServers": {
  "a": {"url": "https://x", "oauth": {"clientSecret": "s3cret", "redirectUri": "https://elsewhere/"}},
  "b": {"url": "https://x", "oauth": {"clientId": "c", "grant": "client_credentials", "authServer": "http://as"}},
  "c": {"url": "https://x", "oauth": {"clientId": "c", "privateKey": "s3cret", "clientSecret": "s3cret", "scope": "r"}},
  "d": {"url": "https://x", "headers": {"authorization": "Bearer s3cret"}, "oauth": {}},
  "e": {"command": "x", "oauth": {}}
}}"#,
        );
        assert!(found.iter().all(|problem| !problem.contains("s3cret")), "{found:?}");
        insta::assert_snapshot!(found.join("\n"));
    }

    #[test]
    fn login_with_undefined_variables_affects_only_its_server() {
        let parsed = parse(
            r#"{"mcpServers": {"a": {"url": "https://x", "oauth": {"authServer": "${HOME}"}}}}"#,
        );
        let server = parsed.unwrap().config.servers.remove(0);
        assert_eq!(server.transport, Err(Unavailable::BadOAuth("authServer")));
    }

    #[test]
    fn profile_with_an_unknown_server_is_a_problem() {
        let text = r#"{"profiles": {"p": {"servers": {"a": null, "gihub": []}}},
            "mcpServers": {"a": {"command": "x"}}}"#;
        let found = problems(text);
        insta::assert_snapshot!(found[0]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn unparsable_text_is_reported_with_its_place() {
        for (text, expected) in [
            ("{\n  \"a\": ]\n}", "/etc/d/dormouse.json:2:8: not JSON: Unexpected close bracket"),
            ("[]", "/etc/d/dormouse.json:1:1: expected an object"),
            ("", "/etc/d/dormouse.json:1:1: the file is empty"),
        ] {
            assert_eq!(problems(text), [expected]);
        }
    }
}
