//! Declarations of tools in TypeScript, for those who write scripts.

use serde_json::Value;

use super::{
    ResultShape,
    json_type::{comment, type_of},
    type_text::{TypeText, is_identifier, property, quoted},
};

/// The type of results that nothing is known of.
const ANY: &str = "any";

/// A tool, as a script calls it.
pub(crate) struct ToolStub<'a> {
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    /// The tool as its server defines it.
    pub(crate) definition: &'a Value,
    /// The shape of its results, if any were seen.
    pub(crate) learned: Option<&'a ResultShape>,
}

impl ToolStub<'_> {
    /// Returns the call of the tool with its types: `mcp.server.tool(args: {…}): Promise<…>`.
    pub(crate) fn call(&self) -> String {
        let path = [self.server, self.tool].map(member).concat();
        format!("mcp{path}{}", self.signature())
    }

    /// Returns the tool as a member of an interface, with a comment.
    pub(crate) fn member(&self) -> String {
        let described = self.definition["description"].as_str().map(comment);
        let described = described.filter(|text| !text.is_empty());
        let described = described.map_or(String::new(), |text| format!("/** {text} */\n"));
        format!("{described}{}{};", property(self.tool), self.signature())
    }

    fn signature(&self) -> String {
        let schema = &self.definition["inputSchema"];
        let is_empty = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
        let takes_others = schema["additionalProperties"].is_object();
        let arguments = if is_empty && !takes_others {
            String::new()
        } else {
            let is_needed = schema["required"].as_array().is_some_and(|all| !all.is_empty());
            let mark = if is_needed { "" } else { "?" };
            format!("args{mark}: {}", type_of(schema))
        };
        format!("({arguments}): Promise<{}>", self.result())
    }

    /// Returns the type of results: as the tool declares it, or as it was seen.
    fn result(&self) -> TypeText {
        let declared = &self.definition["outputSchema"];
        match self.learned {
            _ if declared.is_object() => type_of(declared),
            Some(shape) => shape.as_type(),
            None => TypeText::word(ANY),
        }
    }
}

/// Returns the access to a member of this name.
fn member(name: &str) -> String {
    if is_identifier(name) { format!(".{name}") } else { format!("[{}]", quoted(name)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stub_has_the_types_of_arguments_and_results() {
        let definition = json!({
            "description": "Lists issues.",
            "inputSchema": {"properties": {"repo": {"type": "string"}}, "required": ["repo"]},
        });
        let stub = ToolStub {
            server: "git-hub",
            tool: "list_issues",
            definition: &definition,
            learned: None,
        };
        assert_eq!(
            stub.call(),
            r#"mcp["git-hub"].list_issues(args: { repo: string }): Promise<any>"#
        );
        let mut shape = ResultShape::default();
        shape.learn(&json!({"total": 1}));
        let learned = ToolStub { learned: Some(&shape), ..stub };
        assert!(learned.call().ends_with("Promise<{ total: number }>"));
        let mut declared = definition.clone();
        declared["outputSchema"] = json!({"properties": {"all": {"type": "array"}}});
        let declared = ToolStub { definition: &declared, ..learned };
        assert_eq!(
            declared.member(),
            "/** Lists issues. */\nlist_issues(args: { repo: string }): \
                Promise<{ all?: unknown[] }>;"
        );
        let bare = json!({"inputSchema": {"type": "object"}});
        let bare = ToolStub { definition: &bare, learned: None, server: "a", tool: "now" };
        assert_eq!(bare.call(), "mcp.a.now(): Promise<any>");
    }
}
