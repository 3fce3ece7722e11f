//! TOML 1.1.

use serde_json::{Number, Value};
use toml_edit::{Document, Item, Key, TableLike, Value as TomlValue};

use super::{Content, Member, Node, Unreadable};

pub(super) fn read(text: &str) -> Result<Node, Unreadable> {
    let document = Document::parse(text).map_err(|error| Unreadable {
        at: error.span().map_or(0, |span| span.start),
        message: format!("not TOML: {}", error.message().replace('\n', ", ")),
    })?;
    Ok(Node { at: 0, content: table(document.as_table()) })
}

fn table(table: &dyn TableLike) -> Content {
    let members = table.iter().filter_map(|(name, item)| {
        let at = table.key(name).and_then(Key::span).map_or(0, |span| span.start);
        Some(Member { key: name.to_owned(), at, node: node(item)? })
    });
    Content::Mapping(members.collect())
}

fn node(item: &Item) -> Option<Node> {
    let content = match item {
        Item::None => return None,
        Item::Value(value) => return Some(value_node(value)),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(tables) => {
            let place = |table: &toml_edit::Table| table.span().map_or(0, |span| span.start);
            let nodes = tables.iter().map(|inner| Node { at: place(inner), content: table(inner) });
            Content::Sequence(nodes.collect())
        }
    };
    Some(Node { at: item.span().map_or(0, |span| span.start), content })
}

fn value_node(value: &TomlValue) -> Node {
    let content = match value {
        TomlValue::String(string) => Content::Scalar(Value::String(string.value().clone())),
        TomlValue::Integer(integer) => Content::Scalar(Value::from(*integer.value())),
        TomlValue::Float(float) => {
            Content::Scalar(Number::from_f64(*float.value()).map_or(Value::Null, Value::Number))
        }
        TomlValue::Boolean(boolean) => Content::Scalar(Value::Bool(*boolean.value())),
        TomlValue::Datetime(datetime) => Content::Scalar(Value::String(datetime.to_string())),
        TomlValue::Array(array) => Content::Sequence(array.iter().map(value_node).collect()),
        TomlValue::InlineTable(inner) => table(inner),
    };
    Node { at: value.span().map_or(0, |span| span.start), content }
}
