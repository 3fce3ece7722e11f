//! A mapping that is taken apart, and one that is put together.

use serde_json::Value;
use url::Url;

use super::notes::Notes;
use crate::config::{
    format::{Content, Member, Node},
    header_names::has_authorization,
    unknown_key::unknown_key,
    urls::is_redirect,
};

/// The members of a mapping, to be taken one by one.
pub(super) struct Members {
    pub(super) at: usize,
    left: Vec<Member>,
    taken: Vec<String>,
}

impl Members {
    /// Returns no members, and reports a problem, if the value is not a mapping.
    pub(super) fn of(node: Node, notes: &mut Notes) -> Self {
        let Node { at, content } = node;
        let left = match content {
            Content::Mapping(members) => members,
            Content::Scalar(Value::Null) => Vec::new(),
            _ => {
                notes.problem(at, "expected an object");
                Vec::new()
            }
        };
        Self { at, left, taken: Vec::new() }
    }

    /// Takes the member of this name. A member without a value counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<Member> {
        self.taken.push(key.to_owned());
        // Repeated keys are reported elsewhere.
        let position = self.left.iter().rposition(|member| member.key == key)?;
        let member = self.left.remove(position);
        self.left.retain(|other| other.key != key);
        (!matches!(member.node.content, Content::Scalar(Value::Null))).then_some(member)
    }

    pub(super) fn flag(&mut self, key: &str, notes: &mut Notes) -> Option<(usize, bool)> {
        let member = self.take(key)?;
        let flag = match &member.node.content {
            Content::Scalar(Value::Bool(flag)) => Some(*flag),
            // The words of YAML 1.1, which other systems read.
            Content::Scalar(Value::String(word)) => match word.to_lowercase().as_str() {
                "yes" | "on" => Some(true),
                "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        };
        if flag.is_none() {
            notes.problem(member.at, "expected true or false");
        }
        Some((member.at, flag?))
    }

    pub(super) fn text(&mut self, key: &str, notes: &mut Notes) -> Option<(usize, String)> {
        let member = self.take(key)?;
        let Content::Scalar(Value::String(text)) = member.node.content else {
            notes.problem(member.at, "expected a string");
            return None;
        };
        Some((member.at, text))
    }

    pub(super) fn number(&mut self, key: &str, notes: &mut Notes) -> Option<(usize, f64)> {
        let member = self.take(key)?;
        let number = match &member.node.content {
            Content::Scalar(value) => value.as_f64().filter(|number| *number >= 0.0),
            _ => None,
        };
        if number.is_none() {
            notes.problem(member.at, "expected a number");
        }
        Some((member.at, number?))
    }

    /// Takes the mapping of this name; an empty one if it is missing.
    pub(super) fn mapping(&mut self, key: &str, notes: &mut Notes) -> Self {
        match self.take(key) {
            Some(member) => Self::of(member.node, notes),
            None => Self { at: self.at, left: Vec::new(), taken: Vec::new() },
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        let is_there = |member: &&Member| member.key == key;
        self.left.iter().find(is_there).is_some_and(|member| !is_empty(&member.node))
    }

    /// Takes keys that have no meaning in dormouse, and warns with the effect in their place if
    /// they have a value.
    pub(super) fn give_up(&mut self, keys: &[&str], instead: &str, notes: &mut Notes) {
        for key in keys {
            if let Some(member) = self.take(key).filter(|member| !is_empty(&member.node)) {
                notes.warn(member.at, instead);
            }
        }
    }

    /// Reports the remaining keys as unknown, which the other system refuses as well.
    pub(super) fn end(self, notes: &mut Notes) {
        for member in self.left {
            notes.problem(member.at, unknown_key(&member.key, &self.taken));
        }
    }

    /// Ignores the remaining keys, as the other system does.
    pub(super) fn end_leniently(self, notes: &mut Notes) {
        for member in self.left {
            notes.warn(member.at, unknown_key(&member.key, &self.taken));
        }
    }

    pub(super) fn into_all(self) -> Vec<Member> {
        self.left
    }
}

fn is_empty(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(value) => matches!(value, Value::Null | Value::Bool(false)),
        Content::Sequence(elements) => elements.is_empty(),
        Content::Mapping(members) => members.is_empty(),
    }
}

/// A mapping of a dormouse config.
#[derive(Default)]
pub(super) struct Written(Vec<Member>);

impl Written {
    pub(super) fn set(&mut self, at: usize, key: &str, value: impl Into<Value>) {
        let node = Node::of_value(at, value.into());
        self.0.push(Member { key: key.to_owned(), at, node });
    }

    pub(super) fn set_node(&mut self, at: usize, key: &str, node: Node) {
        self.0.push(Member { key: key.to_owned(), at, node });
    }

    pub(super) fn push(&mut self, member: Member) {
        self.0.push(member);
    }

    /// Copies those of these members that are present.
    pub(super) fn keep(&mut self, from: &mut Members, keys: &[&str]) {
        self.0.extend(keys.iter().filter_map(|key| from.take(key)));
    }

    /// Copies a member under another name.
    pub(super) fn rename(&mut self, from: &mut Members, key: &str, ours: &str) {
        if let Some(Member { at, node, .. }) = from.take(key) {
            self.set_node(at, ours, node);
        }
    }

    /// Adds the login settings that dormouse understands: other systems ignore invalid ones.
    pub(super) fn set_login(&mut self, at: usize, mut login: Self, notes: &mut Notes) {
        let value =
            |written: &Self| Node { at, content: Content::Mapping(written.0.clone()) }.to_value();
        let entry = value(self);
        let headers = entry["headers"].as_object().into_iter().flatten();
        if login.is_empty() || entry["url"].is_null() {
            return;
        }
        if has_authorization(headers.map(|(name, _)| name)) {
            return notes.warn(at, "the header \"Authorization\" is sent; no login is needed");
        }
        let said = value(&login);
        let is_elsewhere = |place: &str| {
            !place.contains("${") && !Url::parse(place).is_ok_and(|url| is_redirect(&url))
        };
        if said["redirectUri"].as_str().is_some_and(is_elsewhere) {
            notes.warn(at, "the redirect goes to this machine, at a free port");
            login.0.retain(|member| member.key != "redirectUri");
        }
        if said["clientId"].is_null() && !said["clientSecret"].is_null() {
            notes.warn(at, "a secret without a client id has no effect");
            login.0.retain(|member| member.key != "clientSecret");
        }
        self.set_node(at, "oauth", login.node(at));
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn node(self, at: usize) -> Node {
        Node { at, content: Content::Mapping(self.0) }
    }
}
