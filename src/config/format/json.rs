//! JSON with comments and trailing commas.

use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged, parse_to_ast};
use serde_json::Value;

use super::{Content, Member, Node, Unreadable};

pub(super) fn read(text: &str) -> Result<Node, Unreadable> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|error| {
        Unreadable { at: error.range().start, message: format!("not JSON: {}", error.kind()) }
    })?;
    let empty = || Unreadable { at: 0, message: "the file is empty".to_owned() };
    Ok(node(&parsed.value.ok_or_else(empty)?))
}

fn node(value: &ast::Value<'_>) -> Node {
    let content = match value {
        ast::Value::StringLit(string) => Content::Scalar(Value::String(string.value.to_string())),
        // A number that is none for serde (1e999) stays visible as text, and is refused by type.
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
