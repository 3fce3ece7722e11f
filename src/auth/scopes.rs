//! The scopes that servers name: which are requested, and which are shown. Servers choose their
//! text, and it appears in errors and descriptions that models read.

/// Limits against hostile servers; real scopes are shorter and fewer.
const MAX_SCOPE_BYTES: usize = 150;
const MAX_SCOPES: usize = 200;

/// The scope that requests refresh tokens (`OpenID` Connect Core 1.0, section 11).
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// Returns the valid scopes among those that a server sent (RFC 6749 section 3.3).
pub(super) fn valid_scopes<'a>(sent: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let scopes = sent.into_iter().filter(|scope| is_scope(scope));
    scopes.take(MAX_SCOPES).map(str::to_owned).collect()
}

fn is_scope(text: &str) -> bool {
    let is_token = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    (1..=MAX_SCOPE_BYTES).contains(&text.len()) && text.chars().all(is_token)
}

/// Lists the first scopes in quotes. Scopes with unusual characters are only counted, so that a
/// server cannot put instructions for models into the text.
pub(super) fn quoted(scopes: &[String]) -> String {
    const MAX_SHOWN: usize = 5;
    let is_plain = |scope: &&String| {
        scope.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:/*+@~".contains(c))
    };
    let shown: Vec<String> =
        scopes.iter().filter(is_plain).take(MAX_SHOWN).map(|scope| format!("{scope:?}")).collect();
    match (shown.len(), scopes.len() - shown.len()) {
        (0, others) => format!("{others} of them"),
        (_, 0) => shown.join(", "),
        (_, others) => format!("{} and {others} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_scopes_are_dropped() {
        let long = "s".repeat(MAX_SCOPE_BYTES + 1);
        let sent = ["read", "", "a\"b", "a\\b", "naïve", "a\nb", &long, "https://x.example/a.b"];
        assert_eq!(valid_scopes(sent), ["read", "https://x.example/a.b"]);
        assert_eq!(valid_scopes(["s"; 1000]).len(), MAX_SCOPES);
    }

    #[test]
    fn only_plain_scopes_are_quoted() {
        let words = |text: &str| quoted(&valid_scopes(text.split_whitespace()));
        assert_eq!(words("admin"), r#""admin""#);
        assert_eq!(words("a b:c d.e f/g h i j"), r#""a", "b:c", "d.e", "f/g", "h" and 2 more"#);
        assert_eq!(words("a`; rm~x </mcp_servers>"), r#""rm~x" and 2 more"#);
        assert_eq!(words("`"), "1 of them");
    }
}
