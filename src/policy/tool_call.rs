//! A call of a tool as rules see it.

use std::sync::OnceLock;

use super::RuleList;
use crate::{
    base::is_same_ignoring_case,
    config::{NamePattern, PolicyRule, ToolHints},
    protocol::ToolAnnotations,
    wire::{Raw, edit},
};

/// The members of `params` that decide which tool is called, and how.
const READ_MEMBERS: [&str; 2] = ["name", "arguments"];

/// A call of a tool by the real names of the server and of the tool.
pub(crate) struct ToolCall {
    server: String,
    tool: String,
    /// `server/tool`
    full_name: String,
    arguments: Raw,
    argument_members: Vec<Argument>,
    annotations: ToolAnnotations,
    /// True if the agent has asked for a tool that changes nothing, by `use_readonly_tool`.
    requires_read_only: bool,
}

/// A member of the arguments of a call.
struct Argument {
    name: String,
    value: Raw,
    /// The text of a string; `None` if it is not Unicode. Read for the first rule that names it.
    text: OnceLock<Option<String>>,
}

/// The reason that rules cannot be applied to a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MalformedCall {
    #[error("the call names no tool")]
    Unnamed,
    /// Parsers of JSON differ in which of two equal members they use.
    #[error("the call has the member {0:?} twice")]
    Repeated(String),
    /// Some parsers of JSON, as those of Go, ignore the case of members.
    #[error("the call has the member {written:?}, which some servers read as {read:?}")]
    Misspelt { written: String, read: &'static str },
    /// The same for an argument that a rule names.
    #[error("the call has the argument {written:?}, which some servers read as {read:?}")]
    MisspeltArgument { written: String, read: String },
    /// Parsers of JSON differ in how they read an escaped surrogate without its pair.
    #[error("the string {0:?} of the call is not Unicode")]
    Unreadable(String),
    #[error("\"arguments\" is not an object")]
    Arguments,
}

impl ToolCall {
    /// Reads the `params` of a `tools/call` as a server gets them.
    ///
    /// # Errors
    /// If the server may read another tool or other arguments than the rules would.
    pub(crate) fn read(server: &str, params: &Raw) -> Result<Self, MalformedCall> {
        let members = distinct_members(params)?;
        check_spelling(&members)?;
        let [name, arguments] = READ_MEMBERS.map(|read| {
            let (_, value) = members.iter().find(|(written, _)| written == read)?;
            Some(value.clone())
        });
        let name = name.filter(Raw::is_string).ok_or(MalformedCall::Unnamed)?;
        let tool: String =
            name.read().map_err(|_| MalformedCall::Unreadable(READ_MEMBERS[0].to_owned()))?;
        let arguments = arguments.unwrap_or_else(Raw::empty_object);
        if !arguments.is_object() && arguments.as_bytes() != b"null" {
            return Err(MalformedCall::Arguments);
        }
        Ok(Self {
            server: server.to_owned(),
            full_name: format!("{server}/{tool}"),
            tool,
            argument_members: Argument::all_of(&arguments)?,
            arguments,
            annotations: ToolAnnotations::default(),
            requires_read_only: false,
        })
    }

    /// Sets the annotations of the tool, which count as missing before.
    pub(crate) fn annotated(self, annotations: ToolAnnotations) -> Self {
        Self { annotations, ..self }
    }

    /// Demands that the tool is marked as read-only.
    pub(crate) fn requiring_read_only(self, requires_read_only: bool) -> Self {
        Self { requires_read_only, ..self }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns `server/tool`.
    pub(crate) fn full_name(&self) -> &str {
        &self.full_name
    }

    pub(crate) fn arguments(&self) -> &Raw {
        &self.arguments
    }

    /// Returns whether the tool lacks the annotation that the agent has asked for.
    pub(super) fn lacks_read_only(&self) -> bool {
        self.requires_read_only && !self.annotations.read_only
    }

    /// Returns the name of the tool in a list, if it is no name of other tools.
    pub(super) fn name_in(&self, list: &RuleList) -> Option<&str> {
        // `x/y` in an entry may be a tool, or the tool `y` of the toolset `x`; `a/b/c` may be a
        // tool of the server `a`, or one of `a/b`.
        let (name, slashes) = match list {
            RuleList::Server(_) => (self.tool(), 0),
            RuleList::All | RuleList::Profile(_) => (self.full_name(), 1),
        };
        let is_clear = name.matches('/').count() == slashes && !NamePattern::new(name).is_glob();
        is_clear.then_some(name)
    }

    /// Returns whether the call meets the conditions of a rule that is about the tool.
    ///
    /// # Errors
    /// If servers may read an argument that the rule names in another way than dormouse.
    pub(super) fn meets(&self, rule: &PolicyRule) -> Result<bool, MalformedCall> {
        if !has(self.annotations, rule.when) {
            return Ok(false);
        }
        for (name, pattern) in &rule.arguments {
            if !self.argument(name)?.is_some_and(|value| pattern.matches(value)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns an argument that is a string.
    fn argument(&self, name: &str) -> Result<Option<&str>, MalformedCall> {
        let mut found = None;
        for argument in &self.argument_members {
            if argument.name == name {
                found = Some(argument);
            } else if is_same_ignoring_case(&argument.name, name) {
                let (written, read) = (argument.name.clone(), name.to_owned());
                return Err(MalformedCall::MisspeltArgument { written, read });
            }
        }
        let Some(found) = found.filter(|argument| argument.value.is_string()) else {
            return Ok(None);
        };
        let text = found.text.get_or_init(|| found.value.read().ok());
        let text = text.as_deref().ok_or_else(|| MalformedCall::Unreadable(name.to_owned()))?;
        Ok(Some(text))
    }
}

impl Argument {
    /// Returns the members of `arguments`, after a check that no two have the same name.
    fn all_of(arguments: &Raw) -> Result<Vec<Self>, MalformedCall> {
        let members = distinct_members(arguments)?.into_iter();
        Ok(members.map(|(name, value)| Self { name, value, text: OnceLock::new() }).collect())
    }
}

/// Returns whether a tool has all wanted properties.
fn has(annotations: ToolAnnotations, wanted: ToolHints) -> bool {
    let pairs = [
        (wanted.read_only, annotations.read_only),
        (wanted.destructive, annotations.destructive),
        (wanted.idempotent, annotations.idempotent),
        (wanted.open_world, annotations.open_world),
    ];
    pairs.into_iter().all(|(wanted, has)| wanted.is_none_or(|wanted| wanted == has))
}

/// Returns the members of an object, after a check that no two have the same name.
fn distinct_members(object: &Raw) -> Result<Vec<(String, Raw)>, MalformedCall> {
    let members = edit::entries(object);
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.array_windows().find(|[one, next]| one == next) {
        Some([name, _]) => Err(MalformedCall::Repeated((*name).to_owned())),
        None => Ok(members),
    }
}

/// Checks that no parser takes a member of `params` for one that names the tool or the arguments.
fn check_spelling(members: &[(String, Raw)]) -> Result<(), MalformedCall> {
    for (written, _) in members {
        let taken_for = |read: &&str| written != read && is_same_ignoring_case(written, read);
        if let Some(read) = READ_MEMBERS.into_iter().find(taken_for) {
            return Err(MalformedCall::Misspelt { written: written.clone(), read });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: &str) -> Result<ToolCall, MalformedCall> {
        let params = Raw::parse(params.to_owned()).unwrap();
        ToolCall::read("a", &params)
    }

    #[test]
    fn members_that_servers_may_take_for_others_are_refused() {
        for params in [
            r#"{"name": "x", "NAME": "y"}"#,
            r#"{"name": "x", "argument\u017f": {}}"#,
            r#"{"name": "x", "Arguments": {}}"#,
        ] {
            let is_misspelt = matches!(read(params), Err(MalformedCall::Misspelt { .. }));
            assert!(is_misspelt, "{params}");
        }
        assert!(read(r#"{"name": "x", "arguments": {"Name": 1, "name": 2}, "named": 1}"#).is_ok());
    }

    #[test]
    fn only_arguments_that_a_rule_names_have_to_be_readable() {
        let rule: PolicyRule =
            serde_json::from_str(r#"{"arguments": {"token": "x"}, "then": "deny"}"#).unwrap();
        let matches = |arguments: &str| {
            read(&format!(r#"{{"name": "x", "arguments": {arguments}}}"#))?.meets(&rule)
        };
        assert_eq!(matches(r#"{"token": "x", "o": "\ud800", "O": 1, "\ud800": 2}"#), Ok(true));
        assert_eq!(matches(r#"{"token": 1}"#), Ok(false));
        let unreadable = MalformedCall::Unreadable("token".to_owned());
        assert_eq!(matches(r#"{"token": "x\udc00"}"#), Err(unreadable));
        for arguments in [r#"{"TOKEN": "x"}"#, r#"{"to\u212aen": "x"}"#] {
            let error = matches(arguments).unwrap_err();
            assert!(matches!(error, MalformedCall::MisspeltArgument { .. }), "{arguments}");
        }
    }

    #[test]
    fn every_property_that_a_rule_wants_is_demanded() {
        for (when, expected) in [
            (r#"{"destructive": true, "openWorld": true}"#, true),
            (r#"{"readOnly": false, "idempotent": false}"#, true),
            (r#"{"destructive": true, "readOnly": true}"#, false),
            (r#"{"idempotent": true}"#, false),
            (r#"{"openWorld": false}"#, false),
        ] {
            let rule = serde_json::from_str(&format!(r#"{{"when": {when}, "then": "deny"}}"#));
            let bare = read(r#"{"name": "x"}"#).unwrap();
            assert_eq!(bare.meets(&rule.unwrap()), Ok(expected), "{when}");
        }
    }

    #[test]
    fn unreadable_name_is_refused() {
        let unreadable = MalformedCall::Unreadable("name".to_owned());
        assert_eq!(read(r#"{"name": "\ud800"}"#).err(), Some(unreadable));
        assert_eq!(read(r#"{"name": 1}"#).err(), Some(MalformedCall::Unnamed));
    }
}
