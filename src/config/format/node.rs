//! The values of a config with their places, whatever its format.

use serde_json::{Map, Value};

/// A value of a file, and the byte at which it begins.
#[derive(Clone, Debug)]
pub(in crate::config) struct Node {
    pub(in crate::config) at: usize,
    pub(in crate::config) content: Content,
}

#[derive(Clone, Debug)]
pub(in crate::config) enum Content {
    Scalar(Value),
    Sequence(Vec<Node>),
    Mapping(Vec<Member>),
}

/// A key with its value, and the byte at which the key begins.
#[derive(Clone, Debug)]
pub(in crate::config) struct Member {
    pub(in crate::config) key: String,
    pub(in crate::config) at: usize,
    pub(in crate::config) node: Node,
}

/// The reason that a text cannot be read, and the byte of the error.
#[derive(Debug, PartialEq)]
pub(in crate::config) struct Unreadable {
    pub(in crate::config) at: usize,
    pub(in crate::config) message: String,
}

impl Unreadable {
    pub(in crate::config) fn empty() -> Self {
        Self { at: 0, message: "the file is empty".to_owned() }
    }
}

impl Node {
    /// Returns the number of values in the tree, itself included.
    pub(super) fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::Sequence(nodes) => nodes.iter().map(Self::size).sum(),
            Content::Mapping(members) => members.iter().map(|member| member.node.size()).sum(),
        }
    }

    /// Returns a tree whose values all have one place.
    pub(in crate::config) fn of_value(at: usize, value: Value) -> Self {
        let content = match value {
            Value::Array(elements) => Content::Sequence(
                elements.into_iter().map(|value| Self::of_value(at, value)).collect(),
            ),
            Value::Object(members) => {
                let member = |(key, value)| Member { key, at, node: Self::of_value(at, value) };
                Content::Mapping(members.into_iter().map(member).collect())
            }
            scalar => Content::Scalar(scalar),
        };
        Self { at, content }
    }

    pub(in crate::config) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::Sequence(nodes) => nodes.iter().map(Self::to_value).collect(),
            Content::Mapping(members) => {
                let members = members.iter();
                let members: Map<String, Value> =
                    members.map(|member| (member.key.clone(), member.node.to_value())).collect();
                Value::Object(members)
            }
        }
    }
}

/// Returns the line and column, from 1, of a byte offset.
pub(in crate::config) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}
