//! Which resource template a URI belongs to (RFC 6570 expressions, matched and not expanded).

use std::cell::Cell;

/// A longer URI is matched by no template, and a template of more expressions matches none: a server writes
/// the one and a host the other, and time grows with both.
const MAX_URI: usize = 8 * 1024;
const MAX_EXPRESSIONS: usize = 16;
const MAX_TEMPLATE: usize = 1024;

/// Bytes of a URI that are looked at for all templates together, each part of a template looking at them once: some
/// hundredths of a second.
const MAX_STEPS: usize = 20_000_000;

/// A URI whose template is looked for.
pub(super) struct Wanted<'a> {
    uri: &'a str,
    /// What may still be looked at.
    room: Cell<usize>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(uri: &'a str) -> Self {
        Self { uri, room: Cell::new(MAX_STEPS) }
    }

    /// Whether the URI can come from `template`. Where many templates have been looked at, none matches any more.
    ///
    /// `{var}` stands for one or more characters without `/`; `{+var}`, `{#var}`, `{/var}` and `{var*}`
    /// may hold `/`; `{?a,b}` and `{&a,b}` may be absent.
    pub(super) fn matches(&self, template: &str) -> bool {
        let Some(parts) = parts(template) else { return false };
        let steps = parts.len() * self.uri.len();
        let Some(room) = self.room.get().checked_sub(steps) else { return false };
        if let Some(Part::Literal(first)) = parts.first()
            && !self.uri.starts_with(first)
        {
            return false;
        }
        self.room.set(room);
        self.uri.len() <= MAX_URI && matches(parts, self.uri)
    }
}

fn matches(parts: Vec<Part<'_>>, uri: &str) -> bool {
    // Up to where the parts so far can reach: `ends[n]` stands for the first `n` bytes of the URI.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    for part in parts {
        ends = match part {
            Part::Literal(text) => after_literal(uri, &ends, text),
            Part::Expression(expression) => after_expression(uri, &ends, &expression),
        };
        if !ends.contains(&true) {
            return false;
        }
    }
    ends[uri.len()]
}

fn after_literal(uri: &str, ends: &[bool], text: &str) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, reached)| **reached) {
        if uri.as_bytes()[at..].starts_with(text.as_bytes()) {
            next[at + text.len()] = true;
        }
    }
    next
}

fn after_expression(uri: &str, ends: &[bool], expression: &Expression) -> Vec<bool> {
    let mut next = if expression.may_be_absent { ends.to_vec() } else { vec![false; ends.len()] };
    let mut is_inside = false;
    for (at, byte) in uri.bytes().enumerate() {
        is_inside = (is_inside || ends[at]) && (byte != b'/' || expression.may_hold_slashes);
        next[at + 1] |= is_inside && uri.is_char_boundary(at + 1);
    }
    next
}

enum Part<'a> {
    Literal(&'a str),
    Expression(Expression),
}

/// The parts of a template; `None` where it is malformed or has too many.
fn parts(template: &str) -> Option<Vec<Part<'_>>> {
    if template.len() > MAX_TEMPLATE {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, expression)) = rest.split_once('{') {
        let (expression, after) = expression.split_once('}')?;
        parts.push(Part::Literal(literal));
        parts.push(Part::Expression(Expression::read(expression)));
        rest = after;
        if parts.len() > 2 * MAX_EXPRESSIONS {
            return None;
        }
    }
    parts.push(Part::Literal(rest));
    Some(parts)
}

struct Expression {
    may_be_absent: bool,
    may_hold_slashes: bool,
}

impl Expression {
    fn read(text: &str) -> Self {
        let is_query = text.starts_with(['?', '&']);
        Self {
            may_be_absent: is_query,
            may_hold_slashes: is_query || text.starts_with(['+', '#', '/']) || text.ends_with('*'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_belong_to_their_templates() {
        for (template, uri, expected) in [
            ("file:///{path}", "file:///a.txt", true),
            ("file:///{path}", "file:///a/b.txt", false),
            ("file:///{+path}", "file:///a/b.txt", true),
            ("file:///{path}", "file:///", false),
            ("demo://{a}/{b}", "demo://x/y", true),
            ("demo://{a}/{b}", "demo://x", false),
            ("demo://{a}.txt", "demo://ä.b.txt", true),
            ("q://x{?a,b}", "q://x?a=1", true),
            ("q://x{?a,b}", "q://x", true),
            ("plain://x", "plain://x", true),
            ("plain://x", "plain://xy", false),
            ("broken://{x", "broken://y", false),
        ] {
            assert_eq!(Wanted::new(uri).matches(template), expected, "{template} {uri}");
        }
    }

    #[test]
    fn matching_is_bounded_for_any_template_and_uri() {
        let many = "{+a}x".repeat(100_000);
        let matches = |template: &str, uri: &str| Wanted::new(uri).matches(template);
        assert!(!matches(&many, &"x".repeat(MAX_URI)));
        let some = "{+a}x".repeat(MAX_EXPRESSIONS);
        assert!(matches(&some, &"x".repeat(MAX_URI)));
        assert!(!matches(&some, &format!("{}y", "x".repeat(MAX_URI - 1))));
        assert!(!matches("{+a}", &"x".repeat(MAX_URI + 1)));
    }

    #[test]
    fn matching_is_bounded_for_all_templates_together() {
        let uri = "x".repeat(MAX_URI);
        let (wanted, slow) = (Wanted::new(&uri), format!("{}y", "{+a}x".repeat(MAX_EXPRESSIONS)));
        assert!(!wanted.matches("other://{a}"), "which costs nothing");
        assert!((0..20_000).all(|_| !wanted.matches(&slow)));
        let right = "{+a}x".repeat(MAX_EXPRESSIONS);
        assert!(!wanted.matches(&right), "no room is left");
        assert!(Wanted::new(&uri).matches(&right));
    }
}
