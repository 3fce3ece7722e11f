//! TOML 1.1.

use serde_json::{Number, Value};
use toml_edit::{
    ArrayOfTables, Decor, Document, DocumentMut, InlineTable, Item, Key, RawString, Table,
    TableLike, Value as TomlValue,
};

use super::{
    member_edit::{Edit, EditError},
    node::{Content, Member, Node, Unreadable},
};

pub(super) fn read(text: &str) -> Result<Node, Unreadable> {
    let document = Document::parse(text).map_err(|error| Unreadable {
        at: error.span().map_or(0, |span| span.start),
        message: format!("not TOML: {}", error.message().replace('\n', ", ")),
    })?;
    if document.as_table().is_empty() {
        return Err(Unreadable::empty());
    }
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

pub(super) fn edit(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse().map_err(|_| EditError::ChangesMore)?;
    for edit in edits {
        make(&mut document, edit).ok_or_else(|| edit.not_here())?;
    }
    Ok(document.to_string())
}

fn make(document: &mut DocumentMut, edit: &Edit) -> Option<()> {
    let (name, parents) = edit.target();
    let mut is_inline = false;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (depth, step) in parents.iter().enumerate() {
        let item = table.get_mut(step)?;
        if let (Some(tables), Edit::Set { value, .. }) = (item.as_array_of_tables_mut(), edit)
            && depth + 1 == parents.len()
        {
            return insert_table(tables, name, value);
        }
        is_inline |= item.is_inline_table();
        table = item.as_table_like_mut()?;
    }
    match edit {
        Edit::Set { value, .. } => {
            if let Some(Item::Table(old)) = table.get_mut(name) {
                let Item::Table(mut new) = item(value, true)? else { return None };
                *new.decor_mut() = old.decor().clone();
                new.set_position(old.position());
                *old = new;
            } else if let Some(old) = table.get_mut(name) {
                // The surrounding comments and blanks stay.
                let decor = old.as_value()?.decor().clone();
                let mut new = inline(value)?;
                *new.decor_mut() = decor;
                *old = Item::Value(new);
            } else {
                let mut item = item(value, !is_inline)?;
                let mut key = Key::new(name);
                if is_inline {
                    // The blank before the closing brace moves behind the new value.
                    let end = take_end(table);
                    item.as_value_mut()?.decor_mut().set_suffix(end);
                } else if item.is_value() {
                    *key.leaf_decor_mut() = Decor::new(indentation(table), " ");
                }
                table.entry_format(&key).or_insert(item);
            }
        }
        Edit::Remove { .. } if is_inline => {
            let removed = table.remove(name)?;
            let end = removed.as_value()?.decor().suffix().cloned();
            if let Some(last) = last_value(table) {
                last.decor_mut().set_suffix(end.unwrap_or_default());
            }
        }
        Edit::Remove { .. } => {
            table.remove(name)?;
        }
    }
    Some(())
}

/// Inserts an element into an array of tables.
fn insert_table(tables: &mut ArrayOfTables, position: &str, value: &Value) -> Option<()> {
    let Item::Table(mut inserted) = item(value, true)? else { return None };
    let position = position.parse().unwrap_or(tables.len()).min(tables.len());
    // Tables are written in the order of these numbers, those of one number as they are listed.
    let next = tables.get(position).or_else(|| tables.iter().last());
    inserted.set_position(next.and_then(Table::position));
    let mut all: Vec<Table> = tables.iter().cloned().collect();
    all.insert(position, inserted);
    tables.clear();
    for table in all {
        tables.push(table);
    }
    Some(())
}

fn last_value(table: &mut dyn TableLike) -> Option<&mut TomlValue> {
    table.iter_mut().last().and_then(|(_, item)| item.as_value_mut())
}

/// Takes the text behind the last value of an inline table.
fn take_end(table: &mut dyn TableLike) -> RawString {
    let Some(last) = last_value(table) else { return RawString::default() };
    let end = last.decor().suffix().cloned().unwrap_or_default();
    last.decor_mut().set_suffix("");
    end
}

/// Returns the spaces before the keys of a table.
fn indentation(table: &dyn TableLike) -> String {
    let key = table.iter().last().and_then(|(name, _)| table.key(name));
    let before = key.and_then(|key| key.leaf_decor().prefix()?.as_str()).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    before[start..].to_owned()
}

/// Returns `None` for values that TOML cannot express.
fn item(value: &Value, may_be_table: bool) -> Option<Item> {
    Some(match value {
        Value::Object(members) if may_be_table => {
            let mut table = Table::new();
            // A table of tables has no lines of its own.
            let has_tables = !members.is_empty() && members.values().all(Value::is_object);
            table.set_implicit(has_tables);
            for (name, value) in members {
                table.insert(name, item(value, has_tables)?);
            }
            Item::Table(table)
        }
        value => Item::Value(inline(value)?),
    })
}

fn inline(value: &Value) -> Option<TomlValue> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => TomlValue::from(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => TomlValue::from(integer),
            None => TomlValue::from(number.as_f64()?),
        },
        Value::String(text) => TomlValue::from(text.as_str()),
        Value::Array(values) => {
            TomlValue::Array(values.iter().map(inline).collect::<Option<toml_edit::Array>>()?)
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| Some((name.as_str(), inline(value)?)));
            TomlValue::InlineTable(members.collect::<Option<InlineTable>>()?)
        }
    })
}
