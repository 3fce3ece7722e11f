//! The definitions of the embedded servers' tools, made from the table.

use serde_json::{Map, Value, json};

use super::server_table::{
    EmbeddedServer, ManagedObject, Parameters, SingleTool, ToolAction, ToolKind,
};

/// Returns the definitions of all tools of `server`, as `tools/list` has them.
pub(super) fn definitions(server: &EmbeddedServer) -> Vec<Value> {
    let of_objects = server.objects.iter().flat_map(|object| {
        object.actions.iter().map(|action| object_tool(server, object, *action))
    });
    of_objects.chain(server.tools.iter().map(|tool| single_tool(server, tool))).collect()
}

fn object_tool(server: &EmbeddedServer, object: &ManagedObject, action: ToolAction) -> Value {
    let none = Parameters::new();
    let common = if object.standalone { &none } else { &server.common };
    let query = Parameters::from([(
        "query!".to_owned(),
        format!("string Words to look for in {}; quotes keep words together", object.plural),
    )]);
    let optional = object.fields.iter();
    let optional: Parameters = optional
        .map(|(name, about)| (name.trim_end_matches('!').to_owned(), about.clone()))
        .collect();
    let groups: Vec<&Parameters> = match action {
        ToolAction::List => vec![common, &object.filters, &server.paging],
        ToolAction::Search => vec![common, &query, &object.filters, &server.paging],
        ToolAction::Get | ToolAction::Delete => vec![common, &object.key],
        ToolAction::Create => vec![common, &object.fields],
        ToolAction::Update => vec![common, &object.key, &optional],
    };
    let (name, kind) = (tool_name(object, action), kind(action));
    definition(&name, &description(object, action), &groups, kind)
}

fn tool_name(object: &ManagedObject, action: ToolAction) -> String {
    let plural = object.plural.replace(' ', "_");
    match action {
        ToolAction::List => format!("list_{plural}"),
        ToolAction::Search => format!("search_{plural}"),
        ToolAction::Get => format!("get_{}", object.name),
        ToolAction::Create => format!("create_{}", object.name),
        ToolAction::Update => format!("update_{}", object.name),
        ToolAction::Delete => format!("delete_{}", object.name),
    }
}

fn description(object: &ManagedObject, action: ToolAction) -> String {
    let (name, plural) = (object.name.replace('_', " "), &object.plural);
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    match action {
        ToolAction::List => format!(
            "Lists {plural}, one page at a time and in a short form. Filters can be combined."
        ),
        ToolAction::Search => format!(
            "Searches {plural} by their text and returns the best matches first. Use \
             list_{} to go through all of them.",
            plural.replace(' ', "_")
        ),
        ToolAction::Get => format!("Returns {article} {name} with all its details."),
        ToolAction::Create => format!(
            "Creates {article} {name} and returns it with its id. Ask before you create one that \
             the user has not requested."
        ),
        ToolAction::Update => {
            format!("Changes the given fields of {article} {name} and leaves all others.")
        }
        ToolAction::Delete => format!("Deletes {article} {name} for good. This cannot be undone."),
    }
}

fn kind(action: ToolAction) -> ToolKind {
    match action {
        ToolAction::List | ToolAction::Search | ToolAction::Get => ToolKind::Read,
        ToolAction::Create | ToolAction::Update => ToolKind::Write,
        ToolAction::Delete => ToolKind::Destroy,
    }
}

fn single_tool(server: &EmbeddedServer, tool: &SingleTool) -> Value {
    definition(&tool.name, &tool.description, &[&server.common, &tool.input], tool.kind)
}

fn definition(name: &str, description: &str, groups: &[&Parameters], kind: ToolKind) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (parameter, about) in groups.iter().copied().flatten() {
        let bare = parameter.trim_end_matches('!');
        if properties.contains_key(bare) {
            continue;
        }
        properties.insert(bare.to_owned(), schema(about));
        if bare.len() < parameter.len() {
            required.push(bare);
        }
    }
    let mut input = json!({"type": "object", "properties": properties, "required": required});
    if kind == ToolKind::Plain {
        return json!({"name": name, "description": description, "inputSchema": input});
    }
    input["additionalProperties"] = json!(false);
    json!({
        "name": name,
        "description": description,
        "inputSchema": input,
        "annotations": {
            "title": title(name),
            "readOnlyHint": kind == ToolKind::Read,
            "destructiveHint": kind == ToolKind::Destroy,
        },
    })
}

/// Returns the schema of a parameter: `string …`, `integer[] …` or `one|other …`.
fn schema(about: &str) -> Value {
    let (of_type, description) = about.split_once(' ').unwrap_or((about, ""));
    if of_type.contains('|') {
        let choices: Vec<&str> = of_type.split('|').collect();
        return json!({"type": "string", "enum": choices, "description": description});
    }
    match of_type.strip_suffix("[]") {
        Some(item) => {
            json!({"type": "array", "items": {"type": item}, "description": description})
        }
        None => json!({"type": of_type, "description": description}),
    }
}

/// Returns `List pull requests` for `list_pull_requests`.
fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::demo::server_table::embedded_servers;

    #[test]
    fn tools_have_distinct_names() {
        for server in embedded_servers() {
            let tools = definitions(&server);
            let names: BTreeSet<_> = tools.iter().map(|tool| tool["name"].as_str()).collect();
            assert_eq!(names.len(), tools.len(), "{}", server.name);
        }
    }

    #[test]
    fn update_requires_only_the_key() {
        let servers = embedded_servers();
        let tools = definitions(&servers[0]);
        let update = tools.iter().find(|tool| tool["name"] == "update_issue").unwrap();
        insta::assert_snapshot!(format!("{update:#}"));
    }
}
