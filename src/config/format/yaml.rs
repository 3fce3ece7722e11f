//! YAML 1.2 (core schema), and the merge key `<<` of 1.1, for which anchors are mostly used.

use std::{
    collections::{HashMap, HashSet},
    str::FromStr,
};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Number, Value};
use yaml_edit::{Mapping, MappingEntry, Sequence, YamlFile, YamlNode};

use super::{
    member_edit::{Edit, EditError},
    node::{Content, Member, Node, Unreadable},
};

/// Maximum number of values: aliases can make a small text a large tree.
const MAX_NODES: usize = 100_000;
const MAX_DEPTH: usize = 64;

pub(super) fn read(text: &str) -> Result<Node, Unreadable> {
    let mut reader = YamlReader {
        events: Parser::new_from_str(text),
        bytes: text.char_indices().map(|(at, _)| at).chain([text.len()]).collect(),
        anchors: HashMap::new(),
        nodes: 0,
    };
    reader.file()
}

/// Builds the tree from the events of the parser.
struct YamlReader<I> {
    events: I,
    /// The byte offset of each character: the parser counts characters.
    bytes: Vec<usize>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a, I: Iterator<Item = Result<(Event<'a>, Span), ScanError>>> YamlReader<I> {
    fn file(&mut self) -> Result<Node, Unreadable> {
        let mut root = None;
        loop {
            let (event, at) = self.next()?;
            match event {
                Event::StreamEnd => {
                    return root.ok_or_else(Unreadable::empty);
                }
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(unreadable(
                        at,
                        "a second document begins here, but only one is allowed",
                    ));
                }
                Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Nothing => {}
                event => root = Some(self.node(event, at, 0)?),
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, usize), Unreadable> {
        match self.events.next() {
            Some(Ok((event, span))) => Ok((event, self.byte(span.start.index()))),
            Some(Err(error)) => {
                let at = self.byte(error.marker().index());
                Err(unreadable(at, &format!("not YAML: {}", error.info())))
            }
            None => Ok((Event::StreamEnd, self.byte(usize::MAX))),
        }
    }

    fn byte(&self, character: usize) -> usize {
        self.bytes.get(character).or(self.bytes.last()).copied().unwrap_or(0)
    }

    /// Returns the node that begins with `event`.
    fn node(&mut self, event: Event<'a>, at: usize, depth: usize) -> Result<Node, Unreadable> {
        self.count(1, at)?;
        if depth > MAX_DEPTH {
            return Err(unreadable(at, &format!("more than {MAX_DEPTH} levels deep")));
        }
        let (anchor, content) = match event {
            Event::Alias(anchor) => {
                let unknown = || unreadable(at, "this alias refers to a value that contains it");
                let node = self.anchors.get(&anchor).ok_or_else(unknown)?.clone();
                self.count(node.size(), at)?;
                return Ok(node);
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain;
                (anchor, Content::Scalar(scalar(&text, is_plain, tag.as_deref(), at)?))
            }
            Event::SequenceStart(anchor, _) => (anchor, self.sequence(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.mapping(depth)?),
            _ => return Err(unreadable(at, "missing value")),
        };
        let node = Node { at, content };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, nodes: usize, at: usize) -> Result<(), Unreadable> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(unreadable(
                at,
                &format!("more than {MAX_NODES} values, including those of aliases"),
            ));
        }
        Ok(())
    }

    fn sequence(&mut self, depth: usize) -> Result<Content, Unreadable> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Content::Sequence(nodes)),
                (event, at) => nodes.push(self.node(event, at, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Content, Unreadable> {
        let mut members = Vec::new();
        let mut merged = Vec::new();
        loop {
            let (event, at) = self.next()?;
            let (key, is_plain) = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, style, ..) => (text, style == ScalarStyle::Plain),
                _ => return Err(unreadable(at, "a key must be a plain scalar")),
            };
            let (event, value_at) = self.next()?;
            let node = self.node(event, value_at, depth + 1)?;
            if is_plain && key == "<<" {
                merged.extend(merge(node)?);
            } else {
                members.push(Member { key: key.into_owned(), at, node });
            }
        }
        // A key of the mapping itself wins over merged ones, and the first merged one over later
        // ones.
        let mut known: HashSet<String> = HashSet::new();
        if !merged.is_empty() {
            known.extend(members.iter().map(|member| member.key.clone()));
        }
        for member in merged {
            if known.insert(member.key.clone()) {
                members.push(member);
            }
        }
        Ok(Content::Mapping(members))
    }
}

/// Returns the members of the mapping, or of the mappings, behind `<<`.
fn merge(node: Node) -> Result<Vec<Member>, Unreadable> {
    match node.content {
        Content::Mapping(members) => Ok(members),
        Content::Sequence(nodes) => {
            let members: Result<Vec<_>, _> = nodes.into_iter().map(merge).collect();
            Ok(members?.into_iter().flatten().collect())
        }
        Content::Scalar(_) => Err(unreadable(node.at, "only a mapping can be merged with <<")),
    }
}

fn unreadable(at: usize, message: &str) -> Unreadable {
    Unreadable { at, message: message.to_owned() }
}

fn scalar(text: &str, is_plain: bool, tag: Option<&Tag>, at: usize) -> Result<Value, Unreadable> {
    let string = || Value::String(text.to_owned());
    let Some(tag) = tag else {
        return Ok(if is_plain { resolve(text).unwrap_or_else(string) } else { string() });
    };
    if !tag.is_yaml_core_schema() {
        return Err(unreadable(at, &format!("unknown tag {tag}")));
    }
    match tag.suffix.as_str() {
        "str" => Ok(string()),
        _ => resolve(text).ok_or_else(|| unreadable(at, &format!("not a valid {}", tag.suffix))),
    }
}

/// Returns the value of a plain scalar that is not a text (YAML 1.2.2, section 10.3.2). Infinity
/// and NaN stay text.
fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Value::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().map(Value::from);
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::from(integer));
    }
    let is_numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    let float = is_numeric.then(|| text.parse::<f64>().ok())??;
    Number::from_f64(float).map(Value::Number)
}

pub(super) fn edit(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let file = YamlFile::from_str(text).map_err(|_| EditError::ChangesMore)?;
    let root = file.document().and_then(|document| document.as_mapping());
    let root = root.ok_or(EditError::ChangesMore)?;
    for edit in edits {
        make(&root, edit).ok_or_else(|| edit.not_here())?;
    }
    Ok(file.to_string())
}

fn make(root: &Mapping, edit: &Edit) -> Option<()> {
    let (name, parents) = edit.target();
    if let Some((list, above)) = parents.split_last()
        && let Some(mapping) =
            above.iter().try_fold(root.clone(), |mapping, step| child(&mapping, step))
        && let Some(sequence) = mapping.get_sequence(list.as_str())
    {
        return change_list(&sequence, name, edit);
    }
    let parent = parents.iter().try_fold(root.clone(), |mapping, step| child(&mapping, step))?;
    match edit {
        Edit::Set { value, .. } => set(&parent, name, value),
        Edit::Remove { .. } => parent.remove(name).map(|_| ()),
    }
}

/// Removes an element of a list by its position, or appends one.
fn change_list(sequence: &Sequence, position: &str, edit: &Edit) -> Option<()> {
    match edit {
        Edit::Remove { .. } => sequence.remove(position.parse().ok()?).map(|_| ()),
        Edit::Set { value, .. } if position == Edit::END => push(sequence, value),
        Edit::Set { .. } => None,
    }
}

fn push(sequence: &Sequence, value: &Value) -> Option<()> {
    let Value::Object(members) = value else { return None };
    sequence.push(Mapping::new_pending_block());
    let mapping = sequence.last()?.as_mapping()?.clone();
    members.iter().try_for_each(|(name, value)| set(&mapping, name, value))
}

/// Returns the mapping under a key, which may look like a number or a boolean.
fn child(mapping: &Mapping, name: &str) -> Option<Mapping> {
    mapping.get_mapping(name).or_else(|| {
        let is_named = |entry: &MappingEntry| {
            entry.key_node().is_some_and(|key| key.to_string().trim() == name)
        };
        mapping.entries().find(is_named)?.value_node()?.as_mapping().cloned()
    })
}

/// Returns `None` for values that YAML cannot express in this place.
fn set(parent: &Mapping, name: &str, value: &Value) -> Option<()> {
    match value {
        Value::Bool(flag) => parent.set(name, *flag),
        Value::String(text) => parent.set(name, text.as_str()),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => parent.set(name, integer),
            None => parent.set(name, number.as_f64()?),
        },
        Value::Array(elements) if elements.iter().any(Value::is_object) => {
            parent.set(name, Sequence::new_pending_block());
            let sequence = parent.get_sequence(name)?;
            elements.iter().try_for_each(|element| push(&sequence, element))?;
        }
        Value::Array(elements) => {
            let sequence = Sequence::new_flow();
            elements.iter().try_for_each(|element| {
                sequence.push(element.as_str()?);
                Some(())
            })?;
            parent.set(name, sequence);
        }
        Value::Object(members) => {
            // The replacement of a single value stays on its line.
            let is_inline = parent.get(name).is_some_and(|old| !is_blank(&old));
            let new = if is_inline { Mapping::new_flow() } else { Mapping::new_pending_block() };
            parent.set(name, new);
            let mapping = parent.get_mapping(name)?;
            members.iter().try_for_each(|(name, value)| set(&mapping, name, value))?;
        }
        Value::Null => parent.set(name, None::<bool>),
    }
    Some(())
}

fn is_blank(node: &YamlNode) -> bool {
    resolve(node.to_string().trim()) == Some(Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn value(text: &str) -> Value {
        read(text).unwrap().to_value()
    }

    #[test]
    fn scalars_follow_yaml_1_2() {
        let text = "[1, -2, +3, 0x1f, 0o17, 1.5, 1e3, .5, true, False, ~, yes, 12:30, 1.2.3, '1', \
            .inf, !!str 1]";
        assert_eq!(
            value(text),
            json!([
                1, -2, 3, 31, 15, 1.5, 1000.0, 0.5, true, false, null, "yes", "12:30", "1.2.3",
                "1", ".inf", "1"
            ])
        );
        assert_eq!(
            value("a: |\n  x\n  y\nb: >-\n  x\n  y\nc:\n"),
            json!({"a": "x\ny\n", "b": "x y", "c": null})
        );
    }

    #[test]
    fn anchors_are_expanded_and_merged() {
        let text = "base: &base {command: x, cwd: /}\na: *base\nb:\n  <<: *base\n  cwd: /tmp\n";
        assert_eq!(
            value(text),
            json!({
                "base": {"command": "x", "cwd": "/"},
                "a": {"command": "x", "cwd": "/"},
                "b": {"cwd": "/tmp", "command": "x"},
            })
        );
    }

    /// The comparison of each key with every other would take minutes.
    #[test]
    fn mappings_of_many_keys_are_merged_at_once() {
        let keys = |letter: &str| {
            let keys = (0..40_000).map(|n| format!("{letter}{n}: 1"));
            keys.collect::<Vec<_>>().join(", ")
        };
        let text = format!("<<: {{{}}}\n{}\n", keys("a"), keys("b").replace(", ", "\n"));
        assert_eq!(value(&text).as_object().unwrap().len(), 80_000);
    }

    #[test]
    fn syntax_errors_have_places() {
        let mut errors = String::new();
        for (text, at) in [
            ("é: [1", 6),
            ("a: 1\n---\nb: 1\n", 5),
            ("", 0),
            ("# nothing\n", 0),
            ("a: !secret x\n", 3),
            ("[a]: 1\n", 0),
            ("a: &a [*a]\n", 7),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.at, at, "{text:?}: {error:?}");
            errors.push_str(&format!("{text:?}: {}\n", error.message));
        }
        insta::assert_snapshot!(errors);
    }

    #[test]
    fn aliases_do_not_grow_without_bounds() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let one_before = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", [one_before.as_str(); 10].join(", "));
        }
        insta::assert_snapshot!(read(&text).unwrap_err().message);
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert!(read(&deep).is_err());
    }
}
