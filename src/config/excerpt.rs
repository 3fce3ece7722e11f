//! A line of a config for display: without secrets, and with every character in its column.

use super::{
    keys::is_secret,
    secrecy::{defaults, named, of_arguments, of_url},
};
use crate::base::is_hidden;

/// The replacement of each character of a secret.
const HIDDEN: char = '*';

/// Maximum length of a line that is shown. A longer file is minified.
const MAX_LINE: usize = 500;

/// Returns the line with its secrets masked, character for character; `None` if it is too long.
/// `key_path` is the key for which the line is shown; empty if the file cannot be parsed, so that
/// any value may be secret.
pub(crate) fn excerpt(line: &str, key_path: &str) -> Option<String> {
    if line.len() > MAX_LINE {
        return None;
    }
    let key = key_path.rsplit('.').next().unwrap_or_default();
    let scalars = scalars(line, key.split('[').next().unwrap_or_default());
    let mentions_secret = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(is_secret);
    let mut secrets = if key_path.is_empty() || [line, key_path].into_iter().any(mentions_secret) {
        let is_plain = |value: &str| {
            value.parse::<f64>().is_ok() || matches!(value, "true" | "false" | "null")
        };
        let values = scalars.iter().map(|(_, value)| value.trim_end_matches([',', ']', '}', ' ']));
        values.filter(|value| !is_plain(value)).map(str::to_owned).collect()
    } else {
        secrets(&scalars)
    };
    // One secret may be a part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut shown = line.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        shown = shown.replace(secret.as_str(), &secret.chars().map(|_| HIDDEN).collect::<String>());
    }
    // A tab has no fixed width, and no character of a file may control a terminal.
    let is_blank = |c: char| c.is_control() || is_hidden(c);
    Some(shown.chars().map(|c| if is_blank(c) { ' ' } else { c }).collect())
}

/// A value of the line and its name there.
type Scalar<'a> = (&'a str, &'a str);

fn secrets(scalars: &[Scalar<'_>]) -> Vec<String> {
    let values: Vec<&str> = scalars.iter().map(|(_, value)| *value).collect();
    let by_name = scalars.iter().filter_map(|(name, value)| named(name, value)).map(str::to_owned);
    let in_urls = values.iter().flat_map(|value| of_url(value)).map(|(_, secret)| secret);
    let arguments = of_arguments(&values).into_iter().map(|(_, (_, secret))| secret.to_owned());
    let in_defaults = scalars.iter().flat_map(|(name, value)| defaults(name, value));
    by_name.chain(in_urls).chain(arguments).chain(in_defaults).collect()
}

/// Returns the values of a line of JSON, TOML or YAML. The file may be invalid, so that no parser
/// can be used.
fn scalars<'a>(line: &'a str, key: &'a str) -> Vec<Scalar<'a>> {
    let mut found = Vec::new();
    let mut name = "";
    let mut rest = line;
    while let Some(start) = rest.find(['"', '\'']) {
        let quote = &rest[start..=start];
        let text = &rest[start + 1..];
        // A text without a closing quote ends with the line.
        let end = closing(text, quote).unwrap_or(text.len());
        let behind = text.get(end + 1..).unwrap_or_default();
        if behind.trim_start().starts_with([':', '=']) {
            name = &text[..end];
        } else {
            found.push((name, &text[..end]));
        }
        rest = behind;
    }
    // YAML and TOML have bare keys, and YAML has bare values.
    let bare = line.trim_start_matches([' ', '-']);
    let (name, value) = bare.split_once([':', '=']).unwrap_or((key, bare));
    let name = match name.trim().trim_matches(['"', '\'']) {
        "" => key,
        name => name,
    };
    if !value.contains(['"', '\'']) {
        found.push((name, value.trim()));
    }
    for scalar in found.iter_mut().filter(|(known, _)| known.is_empty()) {
        scalar.0 = name;
    }
    found
}

/// Returns the position of the closing quote.
fn closing(text: &str, quote: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = !is_escaped && quote.starts_with(c);
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_are_masked_in_place() {
        for (line, expected) in [
            (r#"  "surfac": "direct","#, r#"  "surfac": "direct","#),
            (r#"{"API_TOKEN": "abc", "n": 1}"#, r#"{"API_TOKEN": "***", "n": 1}"#),
            (r#""authTokens": ["one", "two"]"#, r#""authTokens": ["***", "***"]"#),
            (r#""args": ["--api-key", "abcdefgh"]"#, r#""args": ["--api-key", "********"]"#),
            (r#""url": "https://x/?token=abc""#, r#""url": "https://x/?token=***""#),
            (r#""A": "${TOKEN:-abc}""#, r#""A": "${TOKEN:-***}""#),
            ("  API_TOKEN: abc", "  API_TOKEN: ***"),
            ("token = 'abc'", "token = '***'"),
            (r#""TOKEN": "abc"#, r#""TOKEN": "***"#),
            (r#""TOKEN": "abc", x }"#, r#""TOKEN": "***", x }"#),
            ("\t\"x\u{1b}\": 1", " \"x \": 1"),
            ("\"x\u{202e}\": 1", "\"x \": 1"),
        ] {
            assert_eq!(excerpt(line, "a.surfac").as_deref(), Some(expected), "{line}");
        }
        for (line, path, expected) in [
            (r#"  "abc", 5"#, "authTokens[1]", r#"  "***", 5"#),
            ("  - abc", "authTokens", "  - ***"),
            (r#""DATABASE": "abc""#, "mcpServers.a.env.DATABASE", r#""DATABASE": "***""#),
            (r#"{"env": {"D": "abc"}, "n": true}"#, "n", r#"{"env": {"D": "***"}, "n": true}"#),
            // This file is not valid.
            (r#""authTokens": ["abc" "x"]"#, "", r#""authTokens": ["***" "*"]"#),
            (r#""DATABASE": "abc","#, "", r#""DATABASE": "***","#),
            ("port = 8080", "", "port = 8080"),
        ] {
            assert_eq!(excerpt(line, path).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(excerpt(&"x".repeat(MAX_LINE + 1), ""), None);
    }

    proptest! {
        #[test]
        fn every_character_keeps_its_column(line in r#"[ -~é"':=]{0,80}"#) {
            prop_assert_eq!(excerpt(&line, "").unwrap().chars().count(), line.chars().count());
        }
    }
}
