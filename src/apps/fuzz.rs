//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde_json::{Map, Value, json};

use super::{
    APPS, AppFile, ConnectRecord, ConnectedFile, Directories, DormouseTransport, FileScope,
    FoundEntry, ImportPlan, Os, find_secrets, find_secrets_in_text, mask_secrets, move_secrets,
    parse_snippets, server_identity,
    variables::{VariableContext, VariableFindings, VariableSyntax},
};
use crate::{
    base::FuzzInput,
    config::{self, ConfigFile, Environment, Format, check_entry, excerpt},
};

/// Directories that do not exist.
static DIRECTORIES: LazyLock<Directories> = LazyLock::new(|| Directories {
    os: Os::Linux,
    home: PathBuf::from("/nonexistent/home"),
    project: PathBuf::from("/nonexistent/project"),
    variables: HashMap::new(),
});

/// A file of each app.
static FILES: LazyLock<Vec<AppFile>> = LazyLock::new(|| {
    let file_of = |scope| move |app: &'static super::App| app.writable_file(scope, &DIRECTORIES);
    let user = APPS.iter().filter_map(file_of(FileScope::User));
    user.chain(APPS.iter().filter_map(file_of(FileScope::Project))).collect()
});

/// The servers of an app's file are read, and dormouse is added to it and removed without a trace.
///
/// Arguments: the id of the app. The rest is the file.
pub(crate) fn apps(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let id = input.text_line();
    let file = FILES.iter().find(|file| file.app.id == id);
    let file = file.unwrap_or(&FILES[id.len() % FILES.len()]);
    let text = input.rest_text();
    if let Ok(found) = parse_snippets(&text) {
        assert!(found.len() <= text.len());
    }
    check_literal_text(&text);
    let Ok(root) = Format::of(&file.path).value(&text) else {
        assert!(file.server_names(&text, &DIRECTORIES).is_err());
        return;
    };
    let identities = check_plan(file, &root);
    check_connection(file, &text, &root, &[]);
    check_connection(file, &text, &root, &identities);
}

/// Plans the import of all servers, checks that they make a valid config, and returns the
/// identities of those that can be used.
fn check_plan(file: &AppFile, root: &Value) -> Vec<Value> {
    let found = file.servers_in(root, &DIRECTORIES);
    let environment = Environment::default();
    let ready = found.iter().filter_map(|server| match &server.entry {
        FoundEntry::Ready(entry) => Some(server_identity(&entry.members, &environment)),
        _ => None,
    });
    let identities = ready.collect();
    let plan = ImportPlan::new(found, &Map::new(), &environment, false);
    let mut servers = Map::new();
    for planned in plan.servers {
        assert_eq!(check_entry(&planned.name, &planned.entry), Ok(()), "{:?}", planned.entry);
        let before = servers.insert(planned.name.clone(), Value::Object(planned.entry));
        assert_eq!(before, None, "{} is planned twice", planned.name);
    }
    let text = json!({"mcpServers": servers}).to_string();
    if let Err(error) = config::parse(&text, Path::new("dormouse.json"), &environment) {
        panic!("{error}\n{text}");
    }
    identities
}

/// Adds dormouse to the file in place of the `served` servers, and removes it again.
fn check_connection(file: &AppFile, text: &str, root: &Value, served: &[Value]) {
    let launch = DormouseTransport::Launch { command: "dormouse".to_owned(), args: Vec::new() };
    let environment = Environment::default();
    let connected = file.connect(text, &launch, served, &environment, &DIRECTORIES);
    let Ok(connected) = connected else { return };
    let format = Format::of(&file.path);
    let after = format.value(&connected.text).expect("an edited file can be read");
    let found = file.servers_in(&after, &DIRECTORIES);
    let is_dormouse = |entry: &FoundEntry| matches!(entry, FoundEntry::Dormouse);
    assert!(found.iter().any(|server| is_dormouse(&server.entry)), "{}", connected.text);
    let is_kept = |name: &String| found.iter().any(|server| server.name == *name);
    let is_gone = |name: &String| connected.taken_out.contains_key(name);
    assert!(connected.server_names.iter().all(|name| is_kept(name) != is_gone(name)));
    if !connected.was_connected && !text.trim().is_empty() {
        check_disconnection(file, &connected, root);
    }
}

fn check_disconnection(file: &AppFile, connected: &ConnectedFile, root: &Value) {
    let before = file.disconnect(&connected.text, &connected.taken_out, &DIRECTORIES);
    let Ok(before) = before else { return };
    let before = before.expect("dormouse was in the file");
    let restored = file.restore_projects(&before, &connected.taken_out_of_projects, &DIRECTORIES);
    let Ok(restored) = restored else { return };
    let before = restored.unwrap_or(before);
    let value = Format::of(&file.path).value(&before).expect("an edited file can be read");
    assert_eq!(comparable(value), comparable(root.clone()), "{before}");
}

/// Returns a value without empty members, and with lists in a fixed order.
fn comparable(value: Value) -> Value {
    let is_empty =
        |value: &Value| *value == json!({}) || *value == json!([]) || *value == Value::Null;
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, comparable(value)));
            Value::Object(members.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(elements) => {
            let mut elements: Vec<Value> = elements.into_iter().map(comparable).collect();
            elements.sort_by_key(Value::to_string);
            Value::Array(elements)
        }
        scalar => scalar,
    }
}

/// Checks that a text from an app without references means the same in dormouse.
fn check_literal_text(text: &str) {
    let variables = VariableContext {
        syntax: VariableSyntax::Literal,
        os: Os::Linux,
        home: Path::new(""),
        project: None,
        inputs: BTreeMap::new(),
    };
    let mut value = Value::from(text);
    variables.translate(&mut value, &mut VariableFindings::default());
    assert_eq!(Environment::default().expanded(&value), text, "{value}");
}

/// The secrets of an entry are masked, and moved to variables without a change of their values.
///
/// Arguments: the name of a file. The rest is the file; an entry if it is an object.
pub(crate) fn secrets(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let name = input.text_line();
    let text = input.rest_text();
    let path = Path::new(["c.json", "c.yaml", "c.toml"][name.len() % 3]);
    let path = if name.is_empty() { path } else { Path::new(name.as_ref()) };
    check_masked(path, &text);
    for line in text.lines().take(3) {
        for key_path in ["", "mcpServers.a.env.TOKEN", "surface"] {
            let shown = excerpt(line, key_path);
            assert!(shown.is_none_or(|shown| shown.chars().count() == line.chars().count()));
        }
    }
    if let Ok(Value::Object(entry)) = Format::of(path).value(&text) {
        check_moved(&entry);
    }
}

fn check_masked(path: &Path, text: &str) {
    /// Length from which a secret is masked anywhere, in bytes.
    const MIN_LONG_BYTES: usize = 16;
    let found = find_secrets_in_text(path, text);
    let shown = mask_secrets(text, &found);
    for secret in found.iter().filter(|secret| secret.value.len() >= MIN_LONG_BYTES) {
        let value = secret.value.as_str();
        assert!(!shown.contains(value), "{value:?} is in {shown:?}");
    }
}

fn check_moved(entry: &Map<String, Value>) {
    let file = ConfigFile::in_memory("dormouse.json", "{}");
    let found = find_secrets("s", entry);
    let (file, moved) = move_secrets(&file, "s", entry, &found, "");
    let names: HashSet<String> = file.env_file().names().into_iter().collect();
    let variables = names.into_iter().map(|name| {
        let value = file.env_file().value(&name).expect("it was listed");
        (name, value)
    });
    let variables = Environment::from_pairs(variables);
    // A reference in the entry may have another value now.
    let (before, after) = (Value::Object(entry.clone()), Value::Object(moved));
    if !before.to_string().contains("${") {
        assert_eq!(variables.expanded(&after), before, "{after}");
    }
}

/// A record of a connection that can be read is written and read again as the same.
pub(crate) fn connect_record(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<ConnectRecord>(bytes) else { return };
    let written = serde_json::to_value(&record).expect("a record can be JSON");
    let again: ConnectRecord = serde_json::from_value(written.clone()).expect("it was written");
    assert_eq!(serde_json::to_value(&again).ok(), Some(written));
    let _ = again.is_unchanged(bytes);
}
