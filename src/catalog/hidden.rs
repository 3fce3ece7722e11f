//! Finds characters in a server's definitions that a model reads but a person does not see.

use serde_json::Value;

use super::{ServerCatalog, Tool};
use crate::{base::is_hidden, wire::Raw};

/// Returns the first character of a tool's definition that a model reads but a person does not see.
pub(crate) fn hidden_character(tool: &Tool) -> Option<char> {
    find_in(&tool.raw)
}

/// Finds such characters in a whole catalog: for each affected item its kind and name, and the
/// first character.
pub(crate) fn hidden_characters(catalog: &ServerCatalog) -> Vec<(String, char)> {
    let named = |kind: &str, name: &str| format!("{kind} {name}");
    let instructions = catalog.greeting.instructions.iter();
    let instructions = instructions.filter_map(|text| {
        Some(("its instructions".to_owned(), text.chars().find(|c| is_hidden(*c))?))
    });
    let tools = catalog.tools.iter();
    let tools = tools.filter_map(|tool| Some((named("tool", &tool.name), find_in(&tool.raw)?)));
    let prompts = catalog.prompts.iter();
    let prompts =
        prompts.filter_map(|prompt| Some((named("prompt", &prompt.name), find_in(&prompt.raw)?)));
    let resources = catalog.resources.iter();
    let resources = resources
        .filter_map(|resource| Some((named("resource", &resource.uri), find_in(&resource.raw)?)));
    let templates = catalog.templates.iter();
    let templates = templates.filter_map(|template| {
        Some((named("template", &template.uri_template), find_in(&template.raw)?))
    });
    instructions.chain(tools).chain(prompts).chain(resources).chain(templates).collect()
}

fn find_in(definition: &Raw) -> Option<char> {
    // Parsing into a `Value` also reveals characters that are escaped in the JSON text.
    find_hidden(&definition.read().ok()?)
}

fn find_hidden(value: &Value) -> Option<char> {
    match value {
        Value::String(text) => text.chars().find(|c| is_hidden(*c)),
        Value::Array(elements) => elements.iter().find_map(find_hidden),
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            key.chars().find(|c| is_hidden(*c)).or_else(|| find_hidden(value))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Item as _;

    #[test]
    fn hidden_characters_are_found_in_every_member() {
        for (tool, expected) in [
            (
                r#"{"name":"a","inputSchema":{"properties":{"x":{"description":"\u200b"}}}}"#,
                Some('\u{200b}'),
            ),
            (
                "{\"name\":\"a\",\"description\":\"\u{e0041}\",\"inputSchema\":{}}",
                Some('\u{e0041}'),
            ),
            (
                "{\"name\":\"a\",\"description\":\"\u{e0100}\",\"inputSchema\":{}}",
                Some('\u{e0100}'),
            ),
            (r#"{"name":"a","description":"\u001b[31m","inputSchema":{}}"#, Some('\u{1b}')),
            (r#"{"name":"a","description":"👩‍👩‍👧 ❤️ naïve","inputSchema":{}}"#, None),
        ] {
            assert_eq!(
                hidden_character(&Tool::read(&Raw::parse(tool.to_owned()).unwrap()).unwrap()),
                expected,
                "{tool}"
            );
        }
    }
}
