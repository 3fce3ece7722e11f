//! Matches URIs against resource templates (RFC 6570 expressions, matched and not expanded).

use std::cell::Cell;

/// Maximum length of a URI that is matched, in bytes. A host writes the URI and a server the
/// template, and the time of a match grows with both.
const MAX_URI_BYTES: usize = 8 * 1024;
/// Maximum number of expressions in a template that is matched.
const MAX_EXPRESSIONS: usize = 16;
/// Maximum length of a template that is matched, in bytes.
const MAX_TEMPLATE_BYTES: usize = 1024;

/// Maximum cost of matching one URI against all templates: the bytes of the URI times the parts of
/// each template, summed. The limit takes some hundredths of a second.
const MAX_MATCH_COST: usize = 20_000_000;

/// A URI whose template is searched for.
pub(super) struct UriMatcher<'a> {
    uri: &'a str,
    /// The remaining cost that may be spent.
    remaining_cost: Cell<usize>,
}

impl<'a> UriMatcher<'a> {
    pub(super) fn new(uri: &'a str) -> Self {
        Self { uri, remaining_cost: Cell::new(MAX_MATCH_COST) }
    }

    /// Returns whether the URI can come from `template`. Once the limit of cost is reached, no
    /// template matches.
    ///
    /// `{var}` stands for one or more characters without `/`; `{+var}`, `{#var}`, `{/var}` and
    /// `{var*}` may contain `/`; `{?a,b}` and `{&a,b}` may be absent.
    pub(super) fn matches(&self, template: &str) -> bool {
        let Some(parts) = parts(template) else { return false };
        let cost = parts.len() * self.uri.len();
        let Some(remaining_cost) = self.remaining_cost.get().checked_sub(cost) else {
            return false;
        };
        if let Some(TemplatePart::Literal(first)) = parts.first()
            && !self.uri.starts_with(first)
        {
            return false;
        }
        self.remaining_cost.set(remaining_cost);
        self.uri.len() <= MAX_URI_BYTES && matches(parts, self.uri)
    }
}

fn matches(parts: Vec<TemplatePart<'_>>, uri: &str) -> bool {
    // `ends[n]` tells whether the parts so far can match the first `n` bytes of the URI.
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    for part in parts {
        ends = match part {
            TemplatePart::Literal(text) => after_literal(uri, &ends, text),
            TemplatePart::Expression(expression) => after_expression(uri, &ends, &expression),
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

fn after_expression(uri: &str, ends: &[bool], expression: &TemplateExpression) -> Vec<bool> {
    let mut next = if expression.may_be_absent { ends.to_vec() } else { vec![false; ends.len()] };
    let mut is_inside = false;
    for (at, byte) in uri.bytes().enumerate() {
        is_inside = (is_inside || ends[at]) && (byte != b'/' || expression.may_hold_slashes);
        next[at + 1] |= is_inside && uri.is_char_boundary(at + 1);
    }
    next
}

enum TemplatePart<'a> {
    Literal(&'a str),
    Expression(TemplateExpression),
}

/// Parses a template. Returns `None` if the template is malformed, too long, or has too many parts.
fn parts(template: &str) -> Option<Vec<TemplatePart<'_>>> {
    if template.len() > MAX_TEMPLATE_BYTES {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, expression)) = rest.split_once('{') {
        let (expression, after) = expression.split_once('}')?;
        parts.push(TemplatePart::Literal(literal));
        parts.push(TemplatePart::Expression(TemplateExpression::read(expression)));
        rest = after;
        if parts.len() > 2 * MAX_EXPRESSIONS {
            return None;
        }
    }
    parts.push(TemplatePart::Literal(rest));
    Some(parts)
}

struct TemplateExpression {
    may_be_absent: bool,
    may_hold_slashes: bool,
}

impl TemplateExpression {
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
    fn uris_match_their_templates() {
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
            assert_eq!(UriMatcher::new(uri).matches(template), expected, "{template} {uri}");
        }
    }

    #[test]
    fn matching_is_bounded_for_any_template_and_uri() {
        let many = "{+a}x".repeat(100_000);
        let matches = |template: &str, uri: &str| UriMatcher::new(uri).matches(template);
        assert!(!matches(&many, &"x".repeat(MAX_URI_BYTES)));
        let some = "{+a}x".repeat(MAX_EXPRESSIONS);
        assert!(matches(&some, &"x".repeat(MAX_URI_BYTES)));
        assert!(!matches(&some, &format!("{}y", "x".repeat(MAX_URI_BYTES - 1))));
        assert!(!matches("{+a}", &"x".repeat(MAX_URI_BYTES + 1)));
    }

    #[test]
    fn matching_is_bounded_for_all_templates_together() {
        let uri = "x".repeat(MAX_URI_BYTES);
        let (matcher, slow) =
            (UriMatcher::new(&uri), format!("{}y", "{+a}x".repeat(MAX_EXPRESSIONS)));
        assert!(!matcher.matches("other://{a}"), "which costs nothing");
        assert!((0..20_000).all(|_| !matcher.matches(&slow)));
        let right = "{+a}x".repeat(MAX_EXPRESSIONS);
        assert!(!matcher.matches(&right), "no room is left");
        assert!(UriMatcher::new(&uri).matches(&right));
    }
}
