//! JSON with comments and trailing commas.

use jsonc_parser::{
    CollectOptions, ParseOptions, ast,
    common::Ranged,
    cst::{CstArray, CstInputValue, CstObject, CstRootNode},
    parse_to_ast,
};
use serde_json::Value;

use super::{
    member_edit::{Edit, EditError},
    node::{Content, Member, Node, Unreadable},
};

pub(super) fn read(text: &str) -> Result<Node, Unreadable> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|error| {
        Unreadable { at: error.range().start, message: format!("not JSON: {}", error.kind()) }
    })?;
    Ok(node(&parsed.value.ok_or_else(Unreadable::empty)?))
}

fn node(value: &ast::Value<'_>) -> Node {
    let content = match value {
        ast::Value::StringLit(string) => Content::Scalar(Value::String(string.value.to_string())),
        // A number that serde cannot hold (1e999) is kept as text, and refused by its type.
        ast::Value::NumberLit(number) => Content::Scalar(
            serde_json::from_str(number.value)
                .unwrap_or_else(|_| Value::String(number.value.to_owned())),
        ),
        ast::Value::BooleanLit(boolean) => Content::Scalar(Value::Bool(boolean.value)),
        ast::Value::NullKeyword(_) => Content::Scalar(Value::Null),
        ast::Value::Array(array) => Content::Sequence(array.elements.iter().map(node).collect()),
        ast::Value::Object(object) => {
            let members = object.properties.iter().map(|property| Member {
                key: property.name.as_str().to_owned(),
                at: property.range.start,
                node: node(&property.value),
            });
            Content::Mapping(members.collect())
        }
    };
    Node { at: value.range().start, content }
}

pub(super) fn edit(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for edit in edits {
        let edited = edit_inline(&text, edit).or_else(|| edit_lines(&text, edit));
        text = edited.ok_or_else(|| edit.not_here())?;
    }
    Ok(text)
}

/// Replaces a value, or adds a member to an object on one line, within that line; `None` for all
/// other edits.
fn edit_inline(text: &str, edit: &Edit) -> Option<String> {
    let Edit::Set { value, .. } = edit else { return None };
    let (name, parents) = edit.target();
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).ok()?;
    let root = parsed.value.as_ref()?.as_object()?;
    let object = parents.iter().try_fold(root, |object, step| object.get_object(step))?;
    let is_nested = value.as_object().is_some_and(|members| !members.is_empty());
    let value = one_line(value);
    if let Some(old) = object.get(name) {
        let old = old.value.range();
        return Some([&text[..old.start], &value, &text[old.end..]].concat());
    }
    let member = format!("{}: {value}", Value::from(name));
    let whole = object.range();
    let is_first_of_lines =
        object.properties.is_empty() && (text.trim() == "{}" || text.trim_end().contains('\n'));
    if text[whole.start..whole.end].contains('\n') || is_first_of_lines && is_nested {
        return None;
    }
    let (at, new) = match object.properties.last() {
        Some(last) => (last.range.end, format!(", {member}")),
        None => (whole.start + 1, member),
    };
    Some([&text[..at], &new, &text[at..]].concat())
}

/// Returns the value as people write it on one line.
fn one_line(value: &Value) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let member = |(name, value)| format!("{}: {}", Value::from(name), one_line(value));
            let members: Vec<String> =
                members.iter().map(|(name, value)| member((name.as_str(), value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(one_line).collect();
            format!("[{}]", elements.join(", "))
        }
        value => value.to_string(),
    }
}

fn edit_lines(text: &str, edit: &Edit) -> Option<String> {
    let root = CstRootNode::parse(text, &options()).ok()?;
    let (name, parents) = edit.target();
    if let Some(list) = list_at(&root, parents) {
        let Edit::Set { value, .. } = edit else { return None };
        list.insert(name.parse().ok()?, input(value));
        return Some(root.to_string());
    }
    let object: CstObject =
        parents.iter().try_fold(root.object_value()?, |object, step| object.object_value(step))?;
    match edit {
        Edit::Set { value, .. } => {
            object.append(name, input(value));
        }
        Edit::Remove { .. } => object.get(name)?.remove(),
    }
    Some(root.to_string())
}

/// Returns the list at a path; `None` if there is something else.
fn list_at(root: &CstRootNode, path: &[String]) -> Option<CstArray> {
    let (name, parents) = path.split_last()?;
    let object =
        parents.iter().try_fold(root.object_value()?, |object, step| object.object_value(step))?;
    object.array_value(name)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}
