//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::{path::Path, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::{
    ConfigEdit, ConfigError, ConfigFile, Edit, Environment, Format, Launch, MAX_PROBLEMS, Mask,
    ParsedConfig, Problem, Remote, ServerConfig, Transport, convert,
    env_file::assignments,
    excerpt,
    expand::MAX_EXPANSION,
    keys::Isolation,
    parse,
    trust::{is_record_of, record_of},
};
use crate::base::{FuzzInput, is_hidden};

/// The names of a config that a seed can have. The name tells the format.
const NAMES: [&str; 6] =
    ["dormouse.json", "dormouse.yaml", "dormouse.toml", "c.json", "c.yaml", "c.toml"];

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let long = "x".repeat(16 * 1024);
    Environment::from_pairs([
        ("HOME", "/home/d"),
        ("TOKEN", "t-0123456789"),
        ("EMPTY", ""),
        ("LONG", &long),
    ])
});

/// Returns the path that an argument names.
fn path_of(name: &str) -> &'static Path {
    Path::new(
        NAMES.into_iter().find(|known| *known == name).unwrap_or(NAMES[name.len() % NAMES.len()]),
    )
}

/// A config is read or has problems at places in its text, and edits change what they name.
///
/// Arguments: the name of the file; the path of a member; its new value, or nothing to remove it.
pub(crate) fn config(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let path = path_of(&input.text_line());
    let (member, value) = (input.text_line(), serde_json::from_slice(input.line()).ok());
    let text = input.rest_text();
    check_parsed(&text, path, &ENVIRONMENT);
    check_edit(&text, path, &member, value.as_ref());
    check_config_edit(&text, path, &member, value);
    check_variables(input.rest());
}

fn check_parsed(text: &str, path: &Path, environment: &Environment) {
    match parse(text, path, environment) {
        Ok(ParsedConfig { config, warnings, .. }) => {
            check_problems(text, &warnings);
            let size: usize = config.servers.iter().map(expanded_size).sum();
            assert!(size <= text.len() + MAX_EXPANSION, "{size} bytes");
            config.servers.iter().for_each(check_server);
        }
        Err(ConfigError::Invalid(problems)) => {
            // Repeated keys have a limit of their own.
            assert!((1..=2 * MAX_PROBLEMS + 1).contains(&problems.len()), "{}", problems.len());
            check_problems(text, &problems);
        }
        Err(other) => panic!("{other}"),
    }
}

/// Checks that problems are in the text, and that their lines can be shown.
fn check_problems(text: &str, problems: &[Problem]) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for problem in problems {
        check_place(text, problem);
    }
}

fn check_place(text: &str, problem: &Problem) {
    let line = text.split('\n').nth(problem.line - 1).expect("a line of the text");
    assert!(problem.column <= line.chars().count() + 1, "{problem} is behind {line:?}");
    if let Some(shown) = excerpt(line, &problem.key_path) {
        assert_eq!(shown.chars().count(), line.chars().count());
        let is_dangerous = |c: char| c.is_control() || is_hidden(c);
        assert!(!shown.contains(is_dangerous), "{shown:?}");
    }
}

fn expanded_size(server: &ServerConfig) -> usize {
    match &server.transport {
        Ok(Transport::Stdio(Launch { command, args, env, .. })) => {
            let texts = args.iter().chain(env.values()).map(String::len);
            command.len() + texts.sum::<usize>()
        }
        Ok(Transport::Http(Remote { url, headers, .. })) => {
            // An address is longer than its text, since some characters are encoded.
            url.as_str().len() / 3 + headers.values().map(String::len).sum::<usize>()
        }
        Err(_) => 0,
    }
}

fn check_server(server: &ServerConfig) {
    assert!(!server.name.trim().is_empty() && !server.name.contains(is_hidden));
    let _ = Mask::of(server).masked("an error of a server");
    for tool in ["read_file", "*", ""] {
        assert!(!server.offer.tools.allows_all() || server.offer.tools.allow(tool));
    }
}

/// Checks that an edited text has the new value, and that nothing else has changed.
fn check_edit(text: &str, path: &Path, member: &str, value: Option<&Value>) {
    let format = Format::of(path);
    let before = format.value(text);
    let steps: Vec<&str> = member.split('.').collect();
    let edit = match value {
        Some(value) => Edit::put(before.as_ref().unwrap_or(&Value::Null), &steps, value.clone()),
        None => Edit::remove(&steps),
    };
    let edited = format.edit(text, std::slice::from_ref(&edit));
    let (Ok(before), Ok(edited)) = (&before, &edited) else {
        assert!(edited.is_err(), "a text that cannot be read was edited");
        return;
    };
    let after = format.value(edited).expect("an edited text can be read");
    if before.is_object() && !is_in_list(before, &steps) {
        let found = steps.iter().try_fold(&after, |value, step| value.get(*step));
        assert_eq!(found, value, "{edited}");
        assert_eq!(without(after.clone(), &steps[..1]), without(before.clone(), &steps[..1]));
    }
    assert_eq!(edited.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
    if let Ok(again) = format.edit(edited, &[edit]) {
        assert!(value.is_none() || format.value(&again) == Ok(after));
    }
}

fn is_in_list(root: &Value, steps: &[&str]) -> bool {
    let mut values = steps.iter().scan(root, |value, step| {
        *value = value.get(*step)?;
        Some(value.is_array())
    });
    values.any(|is_array| is_array)
}

/// Removes a member at the root.
fn without(mut root: Value, steps: &[&str]) -> Value {
    if let (Value::Object(members), [step]) = (&mut root, steps) {
        members.shift_remove(*step);
    }
    root
}

/// Checks an edit as commands and the API make it. The member decides on its kind.
fn check_config_edit(text: &str, path: &Path, member: &str, value: Option<Value>) {
    let name = member.split('.').next_back().unwrap_or_default().to_owned();
    let edit = match (member.len() % 6, value) {
        (0, Some(Value::Object(entry))) => {
            ConfigEdit::Add { name: name.clone(), entry, replace: true }
        }
        (1, None) => ConfigEdit::Remove { name: name.clone() },
        (2, _) => ConfigEdit::Enable { name: name.clone(), enabled: false },
        (3, Some(value)) => ConfigEdit::Set { key: "surface".to_owned(), value },
        (5, _) => ConfigEdit::Isolate { name: name.clone(), isolation: Isolation::Shared },
        _ => ConfigEdit::EnableTool {
            server: name.clone(),
            tool: "read_file".to_owned(),
            enabled: false,
        },
    };
    let before = ConfigFile::in_memory(path, text);
    let Ok(after) = before.with(&edit) else { return };
    let entries = after.entries().expect("an edited config can be read");
    let entry = entries.get(&name);
    match edit {
        ConfigEdit::Add { entry: added, .. } => assert_eq!(entry, Some(&Value::Object(added))),
        ConfigEdit::Remove { .. } => assert_eq!(entry, None),
        ConfigEdit::Enable { .. } => assert_eq!(entry.expect("a server")["enabled"], json!(false)),
        ConfigEdit::Isolate { .. } => {
            assert_eq!(entry.expect("a server")["isolation"], json!("shared"));
        }
        ConfigEdit::EnableTool { .. } => {
            let tool = &entry.expect("a server")["tools"]["read_file"];
            assert!(*tool == json!(false) || tool["enabled"] == json!(false), "{tool}");
        }
        ConfigEdit::Set { .. }
        | ConfigEdit::AddRuleExceptions(_)
        | ConfigEdit::AddProfile { .. }
        | ConfigEdit::AddToolsets { .. } => {
            assert_eq!(entries, before.entries().expect("it was read"));
        }
    }
}

/// Checks the lines of a `.env` file.
fn check_variables(lines: &[u8]) {
    const MAX_VALUE: usize = 64 * 1024;
    let (pairs, malformed) = assignments(lines);
    assert!(pairs.iter().all(|(name, value)| !name.is_empty() && value.len() <= MAX_VALUE));
    assert!(malformed <= lines.split(|byte| *byte == b'\n').count());
}

/// A config of another system that is valid becomes a valid config of dormouse with the same
/// servers.
///
/// Arguments: the name of the file.
pub(crate) fn dialects(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let path = path_of(&input.text_line());
    let text = input.rest_text();
    check_parsed(&text, path, &ENVIRONMENT);
    let Ok(Some(converted)) = convert(&text, path) else { return };
    check_problems(&text, &converted.warnings);
    let mut root: Map<String, Value> = converted.settings;
    root.insert("mcpServers".to_owned(), Value::Object(converted.servers));
    let ours = Value::Object(root).to_string();
    let ours = match parse(&ours, Path::new("dormouse.json"), &ENVIRONMENT) {
        Ok(parsed) => parsed.config,
        Err(error) => panic!("{error}\n{ours}"),
    };
    let theirs = parse(&text, path, &ENVIRONMENT).expect("it was converted").config;
    // Variables are looked up in other places.
    if !text.contains('$') {
        assert_eq!(ours.servers, theirs.servers);
        assert_eq!(ours.settings, theirs.settings);
    }
}

/// A record of trust is about one content.
pub(crate) fn trust_record(bytes: &[u8]) {
    let content = b"{}";
    let record = record_of(content, Path::new("/etc/d/dormouse.json"));
    assert!(is_record_of(&record, content));
    assert!(!is_record_of(&record, bytes) || bytes == content);
    // A content that depends on the record has another one, which the fuzzer cannot find.
    assert!(!is_record_of(bytes, &[bytes, b"more"].concat()));
}
