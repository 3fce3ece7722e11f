//! Which resource template a URI belongs to (RFC 6570 expressions, matched and not expanded).

/// A longer URI is matched by no template, and a template of more expressions matches none: a server writes
/// the one and a host the other, and time grows with both.
const MAX_URI: usize = 8 * 1024;
const MAX_EXPRESSIONS: usize = 16;
const MAX_TEMPLATE: usize = 1024;

/// Whether `uri` can come from `template`.
///
/// `{var}` stands for one or more characters without `/`; `{+var}`, `{#var}`, `{/var}` and `{var*}`
/// may hold `/`; `{?a,b}` and `{&a,b}` may be absent.
pub(super) fn matches(template: &str, uri: &str) -> bool {
    let Some(parts) = parts(template) else { return false };
    if uri.len() > MAX_URI {
        return false;
    }
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
            assert_eq!(matches(template, uri), expected, "{template} {uri}");
        }
    }

    #[test]
    fn matching_is_bounded_for_any_template_and_uri() {
        let many = "{+a}x".repeat(100_000);
        assert!(!matches(&many, &"x".repeat(MAX_URI)));
        let some = "{+a}x".repeat(MAX_EXPRESSIONS);
        assert!(matches(&some, &"x".repeat(MAX_URI)));
        assert!(!matches(&some, &format!("{}y", "x".repeat(MAX_URI - 1))));
        assert!(!matches("{+a}", &"x".repeat(MAX_URI + 1)));
    }
}
