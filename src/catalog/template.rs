//! Which resource template a URI belongs to (RFC 6570 expressions, matched and not expanded).

/// Whether `uri` can come from `template`.
///
/// `{var}` stands for one or more characters without `/`; `{+var}`, `{#var}`, `{/var}` and `{var*}`
/// may hold `/`; `{?a,b}` and `{&a,b}` may be absent.
pub(super) fn matches(template: &str, uri: &str) -> bool {
    match template.split_once('{') {
        None => template == uri,
        Some((literal, rest)) => {
            let (Some(tail), Some((expression, after))) =
                (uri.strip_prefix(literal), rest.split_once('}'))
            else {
                return false;
            };
            Expression::read(expression).lengths(tail).any(|length| matches(after, &tail[length..]))
        }
    }
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

    /// How many bytes of `uri` the expression may take, longest first.
    fn lengths(&self, uri: &str) -> impl Iterator<Item = usize> {
        let reach =
            if self.may_hold_slashes { uri.len() } else { uri.find('/').unwrap_or(uri.len()) };
        let least = usize::from(!self.may_be_absent);
        let boundaries: Vec<usize> =
            (least..=reach).filter(|length| uri.is_char_boundary(*length)).collect();
        boundaries.into_iter().rev()
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
}
