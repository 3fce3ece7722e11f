//! The JSON schema of the file, with the config reference and the known keys that are derived from
//! it.

use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    key_path::{Step, keys},
    keys::{
        AccessSettings, CLASS, DaemonSettings, KeyGroup, Limits, ListSettings, ListenSettings,
        LoadSettings, PeopleSettings, RootEntry, ServerEntry, ServerSettings, StoreSettings,
        TelemetrySettings,
    },
};

/// Returns the JSON schema (draft 2020-12) of `dormouse.json`.
pub(crate) fn json_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let groups = [
        properties::<ListSettings>(&mut generator),
        properties::<LoadSettings>(&mut generator),
        properties::<DaemonSettings>(&mut generator),
        properties::<TelemetrySettings>(&mut generator),
        properties::<StoreSettings>(&mut generator),
        properties::<ServerSettings>(&mut generator),
        properties::<Limits>(&mut generator),
        properties::<AccessSettings>(&mut generator),
        properties::<ListenSettings>(&mut generator),
        properties::<PeopleSettings>(&mut generator),
    ];
    let mut server = ServerEntry::json_schema(&mut generator).to_value();
    if let Some(own) = server["properties"].as_object_mut() {
        own.extend(of_one_server(properties::<ServerSettings>(&mut generator)));
    }
    generator.definitions_mut().insert("ServerEntry".to_owned(), server);
    let mut schema: Schema = generator.into_root_schema_for::<RootEntry>();
    schema.insert("title".to_owned(), json!("dormouse config"));
    let mut schema = schema.to_value();
    let own = schema["properties"].as_object().cloned().unwrap_or_default();
    schema["properties"] = Value::Object(groups.into_iter().flatten().chain(own).collect());
    schema["properties"]["mcpServers"]["additionalProperties"] =
        json!({"$ref": "#/$defs/ServerEntry"});
    remove_classes(&mut schema);
    schema
}

/// Removes the classes of keys, which are not for users.
fn remove_classes(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.shift_remove(CLASS);
            members.values_mut().for_each(remove_classes);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_classes),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the schemas of the keys of a group.
fn properties<G: KeyGroup>(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut group = G::json_schema(generator).to_value();
    match group["properties"].take() {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

/// Replaces the defaults of keys that a server takes from the file as a whole.
fn of_one_server(mut properties: Map<String, Value>) -> Map<String, Value> {
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        property.shift_remove("default");
        let meaning = property["description"].as_str().unwrap_or_default();
        let meaning = format!("{meaning} Default: the value for all servers.");
        property.insert("description".to_owned(), Value::String(meaning));
    }
    properties
}

/// Returns the keys that are allowed in the object at `path`.
pub(super) fn known_keys(path: &[Step]) -> Vec<String> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(json_schema);
    let mut node = &*SCHEMA;
    for step in path {
        node = resolve(&SCHEMA, node);
        node = match step {
            Step::Key(key) => node["properties"].get(key).unwrap_or(&node["additionalProperties"]),
            Step::Index(_) => &node["items"],
        };
    }
    let node = resolve(&SCHEMA, node);
    node["properties"].as_object().map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
}

/// Returns the keys that are allowed in a server's entry.
pub(crate) fn server_keys() -> &'static [String] {
    static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| known_keys(&keys(["mcpServers", "any"])));
    &KEYS
}

/// Follows `$ref`, and the `anyOf` that stands for an optional value.
fn resolve<'a>(schema: &'a Value, node: &'a Value) -> &'a Value {
    let target = node["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
    match target {
        Some(name) => &schema["$defs"][name],
        None => node["anyOf"].get(0).map_or(node, |first| resolve(schema, first)),
    }
}

/// Returns the tables of the config reference, in Markdown.
pub(crate) fn reference() -> String {
    let schema = json_schema();
    let mut text = String::new();
    for (title, node) in [
        ("The file", &schema),
        ("A server: `mcpServers.<name>`", &schema["$defs"]["ServerEntry"]),
        ("A toolset: `mcpServers.<name>.toolsets.<name>`", &schema["$defs"]["ToolsetEntry"]),
        ("Logins: `oauth`", &schema["$defs"]["OAuthEntry"]),
        ("Parts of a server: `features`", &schema["$defs"]["Features"]),
        ("Deadlines: `timeouts`", &schema["$defs"]["Timeouts"]),
        ("A profile: `profiles.<name>`", &schema["$defs"]["Profile"]),
        ("An identity provider: `issuers[]`", &schema["$defs"]["IssuerEntry"]),
        ("Introspection: `issuers[].introspection`", &schema["$defs"]["IntrospectionEntry"]),
        ("A group: `groups.<name>`", &schema["$defs"]["GroupEntry"]),
        ("A saved script: `scripts.<name>`", &schema["$defs"]["SavedScript"]),
    ] {
        text.push_str(&format!(
            "## {title}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
        ));
        for (key, property) in node["properties"].as_object().into_iter().flatten() {
            let required = node["required"].as_array();
            let is_required = required.is_some_and(|keys| keys.contains(&json!(key)));
            let default = match &property["default"] {
                _ if is_required => "required".to_owned(),
                default @ (Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
                    format!("`{default}`")
                }
                _ => String::new(),
            };
            let meaning = property["description"].as_str().unwrap_or_default().replace('\n', " ");
            let kind = kind(&schema, property);
            text.push_str(&format!("| `{key}` | {kind} | {default} | {meaning} |\n"));
        }
        text.push('\n');
    }
    text
}

fn kind(schema: &Value, property: &Value) -> String {
    if property["$ref"] == "#/$defs/Duration" || property["anyOf"][0]["$ref"] == "#/$defs/Duration"
    {
        return "duration".to_owned();
    }
    let node = resolve(schema, property);
    if let Some(choices) = node["oneOf"].as_array() {
        let choices: Vec<_> = choices
            .iter()
            .filter_map(|choice| Some(format!("`{}`", choice["const"].as_str()?)))
            .collect();
        return choices.join(", ");
    }
    if let Some(choices) = node["enum"].as_array() {
        let choices: Vec<_> = choices.iter().map(|choice| format!("`{choice}`")).collect();
        return choices.join(", ").replace('"', "");
    }
    match &node["type"] {
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.collect::<Vec<_>>().join(", ")
        }
        kind => kind.as_str().unwrap_or("any").to_owned(),
    }
}
