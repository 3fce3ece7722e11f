//! From a document to the validated config, with every problem on the way.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{
    Compatibility, Config, ConfigError, Environment, HttpSettings, LaunchFacts, ParsedConfig,
    Problem, Profiles, ServerConfig, Settings, Unavailable,
    configure::configure,
    document::Document,
    document_reader::DocumentReader,
    key_path::{Step, keys},
    keys::{KeyGroup as _, Profile, RootEntry, ServerEntry, ServerSettings},
    unmatched_rules::{unmatched_rules, unmatched_rules_in_entry},
};
use crate::base::is_hidden;

/// Reads, expands and validates a config file's text.
///
/// # Errors
/// Every problem of the file, each with its place.
pub fn parse(
    text: &str,
    path: &Path,
    environment: &Environment,
) -> Result<ParsedConfig, ConfigError> {
    let document = Document::parse(text, path)?;
    let rules = document.rules();
    let environment = &*rules.variables.of(environment);
    let mut reader = DocumentReader::new(&document, environment);
    let written = document.value();
    let mut root = written.clone();
    let mut settings = settings(&mut reader, &written, &mut root);
    let server_settings: ServerSettings = reader.group(&written, &mut root);
    let root: RootEntry = reader.read(&[], &written, root);
    for (path, message) in root.problems(&written) {
        reader.report(&path, message);
    }
    let RootEntry { profiles, policy, mcp_servers, .. } = root;
    warn_of_unmatched_rules(&mut reader, &[], unmatched_rules(&policy, &mcp_servers));
    for (name, profile) in &profiles {
        check_profile(&mut reader, name, profile, &mcp_servers);
        let unmatched = unmatched_rules(&profile.policy, &mcp_servers);
        warn_of_unmatched_rules(&mut reader, &["profiles", name], unmatched);
    }
    check_toolset_names(&mut reader, &mcp_servers);
    settings.profiles = Profiles::new(profiles);
    settings.policy = policy;
    let directory = path.parent().unwrap_or(Path::new("."));
    settings.lists.scripts.start_from(directory);
    let mut compatibility =
        Compatibility { serves_at_root: rules.serves_at_root, ..Compatibility::default() };
    let mut servers = Vec::new();
    for (name, entry) in mcp_servers {
        if rules.keeps_idle_timeouts && !entry["idleTimeout"].is_null() {
            compatibility.kept_idle_timeouts.insert(name.clone());
        }
        servers.push(server(&mut reader, name, entry, &server_settings, directory));
    }
    let warnings = reader.finish().map_err(|problems| invalid(&document, problems))?;
    Ok(ParsedConfig { config: Config { settings, servers }, warnings, compatibility })
}

/// Checks whether an entry could be in a config.
///
/// # Errors
/// The problem of the entry.
pub(crate) fn check_entry(name: &str, entry: &Map<String, Value>) -> Result<(), String> {
    let text = json!({"mcpServers": {name: entry}}).to_string();
    let Err(error) = parse(&text, Path::new("dormouse.json"), &Environment::default()) else {
        return Ok(());
    };
    let ConfigError::Invalid(problems) = error else { return Err(error.to_string()) };
    let of_entry = |problem: &Problem| {
        let within = format!("mcpServers.{name}");
        let key = problem.key_path.strip_prefix(&within).unwrap_or(&problem.key_path);
        let key = key.trim_start_matches('.');
        if key.is_empty() { problem.message.clone() } else { format!("{key}: {}", problem.message) }
    };
    Err(problems.iter().map(of_entry).collect::<Vec<_>>().join("; "))
}

fn invalid(document: &Document<'_>, mut problems: Vec<Problem>) -> ConfigError {
    if let (Some(dialect), Some(first)) = (document.dialect(), problems.first_mut()) {
        let name = dialect.name();
        first.message.push_str(&format!(" (the file is read as a config of {name})"));
    }
    ConfigError::Invalid(problems)
}

/// Removes the settings for all servers from the root, and reads them.
fn settings(reader: &mut DocumentReader<'_, '_>, written: &Value, root: &mut Value) -> Settings {
    Settings {
        lists: reader.group(written, root),
        loading: reader.group(written, root),
        daemon: reader.group(written, root),
        telemetry: reader.group(written, root),
        store: reader.group(written, root),
        limits: reader.group(written, root),
        http: HttpSettings {
            access: reader.group(written, root),
            listening: reader.group(written, root),
            people: reader.group(written, root),
        },
        profiles: Profiles::default(),
        policy: Vec::new(),
        launch: LaunchFacts::default(),
    }
}

fn check_profile(
    reader: &mut DocumentReader<'_, '_>,
    name: &str,
    profile: &Profile,
    servers: &Map<String, Value>,
) {
    let is_unknown =
        |key: &&String| !servers.contains_key(*key) && toolset_of(servers, key).is_none();
    for key in profile.servers.keys().filter(is_unknown) {
        let at = keys(["profiles", name, "servers", key]);
        let server = key.rsplit_once('/').filter(|(server, _)| servers.contains_key(*server));
        reader.report(
            &at,
            match server {
                Some((server, toolset)) => format!("server {server:?} has no toolset {toolset:?}"),
                None => format!("unknown server {key:?}"),
            },
        );
    }
}

/// Warns of rules of a list that cannot match any tool, with the reasons. `holder` is the path of
/// the object that has the list.
fn warn_of_unmatched_rules(
    reader: &mut DocumentReader<'_, '_>,
    holder: &[&str],
    unmatched: Vec<(usize, String)>,
) {
    for (position, reason) in unmatched {
        let holder = holder.iter().chain(&["policy"]).map(|key| Step::Key((*key).to_owned()));
        let rule = [Step::Index(position), Step::Key("tools".to_owned())];
        reader.warn(&holder.chain(rule).collect::<Vec<_>>(), reason);
    }
}

/// Returns the server and the toolset that a name in a profile stands for.
fn toolset_of<'a>(servers: &Map<String, Value>, name: &'a str) -> Option<(&'a str, &'a str)> {
    let (server, toolset) = name.rsplit_once('/')?;
    servers.get(server)?["toolsets"].get(toolset).map(|_| (server, toolset))
}

/// Checks that no server has the name of another server's toolset.
fn check_toolset_names(reader: &mut DocumentReader<'_, '_>, servers: &Map<String, Value>) {
    for name in servers.keys() {
        if let Some((server, toolset)) = toolset_of(servers, name) {
            let at = keys(["mcpServers", name]);
            reader.report(&at, format!("server {server:?} has a toolset {toolset:?} of this name"));
        }
    }
}

/// Reads the entry of a server.
fn server(
    reader: &mut DocumentReader<'_, '_>,
    name: String,
    mut entry: Value,
    general: &ServerSettings,
    directory: &Path,
) -> ServerConfig {
    let at = [Step::Key("mcpServers".to_owned()), Step::Key(name.clone())];
    if name.trim().is_empty() || name.chars().any(|c| c.is_control() || is_hidden(c)) {
        let message = "the name of a server must not be blank or contain invisible characters";
        reader.report(&at, message);
    }
    let written = entry.clone();
    let undefined = reader.expand_entry(&at, &mut entry);
    let mut own = ServerSettings::take(&mut entry);
    general.complete(&mut own);
    let settings: ServerSettings = reader.read(&at, &written, own);
    let entry: ServerEntry = reader.read(&at, &written, entry);
    for (path, message) in entry.problems(&name, &written) {
        reader.report(&[&at[..], &path].concat(), message);
    }
    let unmatched = unmatched_rules_in_entry(&entry.policy, &written["toolsets"]);
    warn_of_unmatched_rules(reader, &["mcpServers", &name], unmatched);
    let mut server = configure(name, entry, settings, directory, reader.launch_context());
    if !undefined.is_empty() {
        server.transport = Err(Unavailable::Undefined(undefined));
    }
    server
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Startup, Transport},
        *,
    };

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
        assert_eq!(b.settings.idle_timeout, Some(std::time::Duration::from_secs(30)));
        assert_eq!((a.startup, a.settings.idle_timeout), (Startup::Lazy, None));
        let Ok(Transport::Stdio(launch)) = &a.transport else { panic!("{a:?}") };
        assert_eq!(launch.command, "/home/d/x");
        assert_eq!(launch.args, ["${HOME}"]);
        assert_eq!(launch.cwd.as_deref(), Some(Path::new("/etc/d/sub")));
    }

    /// Returns the keys of an object with the defaults of the schema, also in nested objects.
    fn defaults(schema: &Value, properties: &Value) -> Value {
        let default = |property: &Value| match property["$ref"].as_str() {
            Some(reference) if !reference.ends_with("Duration") => {
                let name = reference.trim_start_matches("#/$defs/");
                let nested = &schema["$defs"][name]["properties"];
                if nested.is_null() {
                    property["default"].clone()
                } else {
                    defaults(schema, nested)
                }
            }
            _ => property["default"].clone(),
        };
        let members = properties.as_object().unwrap().iter();
        let written = members.map(|(key, property)| (key.clone(), default(property)));
        let is_told =
            |default: &Value| !matches!(default.to_string().as_str(), "null" | "[]" | "{}");
        Value::Object(written.filter(|(_, default)| is_told(default)).collect())
    }

    #[test]
    fn defaults_of_the_schema_are_those_of_the_config() {
        let schema = super::super::json_schema();
        let mut written = defaults(&schema, &schema["properties"]);
        let mut entry = defaults(&schema, &schema["$defs"]["ServerEntry"]["properties"]);
        assert!(written.as_object().unwrap().len() > 15, "{written}");
        assert!(entry.as_object().unwrap().len() > 5, "{entry}");
        entry["command"] = json!("x");
        written["mcpServers"] = json!({"a": entry});
        let bare = parse(r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        let full = parse(&written.to_string()).unwrap();
        assert_eq!(
            (full.config.settings, full.config.servers),
            (bare.config.settings, bare.config.servers)
        );
    }

    #[test]
    fn null_stands_for_the_default_of_a_key() {
        let nulls = r#"{"surface": null, "settle": null, "timeouts": null, "authTokens": null,
            "trustedProxies": null, "profiles": null,
            "mcpServers": {"a": {"command": "x", "args": null, "tools": null, "features": null,
                "timeouts": {"call": null}, "pin": null, "enabled": null, "inheritEnv": null}}}"#;
        let bare = parse(r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        let null = parse(nulls).unwrap();
        assert_eq!(
            (null.config.settings, null.config.servers),
            (bare.config.settings, bare.config.servers)
        );
    }

    #[test]
    fn settings_of_a_server_take_precedence_over_those_of_the_file() {
        let parsed = parse(
            r#"{"idleTimeout": "1m", "maxResultBytes": 9, "pin": "block",
                "timeouts": {"load": 1, "call": "1500ms"},
                "mcpServers": {
                    "a": {"command": "x"},
                    "b": {"command": "x", "idleTimeout": 0, "maxResultBytes": 0, "pin": "off",
                        "timeouts": {"call": 3}}}}"#,
        );
        let [a, b] = parsed.unwrap().config.servers.try_into().unwrap();
        let shown = |server: &ServerConfig| serde_json::to_value(&server.settings).unwrap();
        let timeouts = |call: &str| json!({"load": "1s", "call": call, "request": "1m"});
        assert_eq!(
            shown(&a),
            json!({"maxResultBytes": 9, "pin": "block", "idleTimeout": "1m",
                "timeouts": timeouts("1500ms")})
        );
        assert_eq!(
            shown(&b),
            json!({"maxResultBytes": 0, "pin": "off", "idleTimeout": "0h",
                "timeouts": timeouts("3s")})
        );
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
    fn impossible_logins_of_people_are_problems() {
        let url = r#""url": "https://a.example", "login": "user""#;
        let issuers = r#""issuers": [{"issuer": "https://i.example", "audience": ["x"]}]"#;
        let of = |entry: &str, more: &str| {
            problems(&format!(r#"{{"mcpServers": {{"a": {{{entry}}}}}{more}}}"#))
        };
        let alone = format!(r#"{{"mcpServers": {{"a": {{{url}}}}}}}"#);
        assert!(parse(&alone).is_ok(), "hosts without people use the login of the service");
        let found = [
            of(r#""command": "x", "login": "user""#, ""),
            of(&format!(r#"{url}, "headers": {{"authorization": "x"}}"#), ""),
            of(r#""url": "https://a.example", "login": "owner""#, ""),
            of(
                &format!(
                    r#"{url}, "oauth": {{
                        "grant": "client_credentials", "clientId": "x", "clientSecret": "y"
                    }}"#
                ),
                "",
            ),
            of(url, &format!(", {issuers}")),
            of(url, &format!(r#", {issuers}, "publicUrl": "https://p.example""#)),
        ];
        insta::assert_snapshot!(found.concat().join("\n"));
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
    fn problems_of_toolsets_have_their_places() {
        let text = r#"{"profiles": {"p": {"servers": {"a/b": null, "a/good": [], "c/x": null}}},
            "mcpServers": {"a": {"command": "x", "toolsets": {
                "good": {"tools": ["*"]}, "a/b": {"tools": ["*"]}, "none": {"tools": []},
                "missing": {"description": "d"}, "odd": {"tools": ["x"], "tool": 1}}},
            "a/good": {"command": "x"}}}"#;
        insta::assert_snapshot!(problems(text).join("\n"));
    }

    #[test]
    fn toolsets_make_a_server_lazy_and_keep_their_order() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "toolsets": {
            "z": {"tools": ["z"]}, "b": {"tools": ["b*", "c"], "description": " "}}}}}"#;
        let server = parse(text).unwrap().config.servers.remove(0);
        let toolsets = server.offer.extent.toolsets().iter();
        let named = toolsets.map(|it| (it.name.as_str(), it.description.as_str()));
        assert_eq!(named.collect::<Vec<_>>(), [("z", "z"), ("b", "b*, c")]);
        assert_eq!(server.startup, Startup::Lazy);
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

    #[test]
    fn configs_of_0_1_0_are_read() {
        let read = |name: &str, text: &str| {
            let environment = Environment::from_pairs([("HOME", "/home/d")]);
            let parsed = super::super::parse(text, Path::new(name), &environment).unwrap();
            assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
            parsed.config
        };
        let json = include_str!("../../tests/golden/0.1.0/config/dormouse/dormouse.json");
        let json = read("dormouse.json", json);
        assert!(json.settings.loading.remember_loads);
        let [notes, spare, issues] = json.servers.as_slice() else { panic!("{json:?}") };
        assert!(notes.enabled && !spare.enabled && issues.enabled);
        assert_eq!(notes.startup, Startup::Lazy);
        assert!(notes.offer.tools.allow("read") && notes.offer.tools.allow("new"));
        let launch = |server: &ServerConfig| match &server.transport {
            Ok(Transport::Stdio(launch)) => launch.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(launch(notes).command, "golden-server");
        assert_eq!(launch(spare).args, ["an argument"]);
        assert_eq!(launch(spare).env["GOLDEN"], "/home/d");
        let Ok(Transport::Http(remote)) = &issues.transport else { panic!("{issues:?}") };
        assert_eq!(remote.url.as_str(), "http://127.0.0.1:18999/mcp");

        let yaml = include_str!("../../tests/golden/0.1.0/config/dormouse.yaml");
        let toml = include_str!("../../tests/golden/0.1.0/config/dormouse.toml");
        let (yaml, toml) = (read("dormouse.yaml", yaml), read("dormouse.toml", toml));
        assert_eq!(yaml.servers, toml.servers);
        assert_eq!(launch(&yaml.servers[0]).env["GOLDEN"], "/home/d");
        assert_eq!(yaml.servers[0].description, notes.description);
        assert_eq!(yaml.servers[1].transport, issues.transport);
        assert!(!yaml.servers[1].enabled);
    }
}
