//! serde's messages about values, in words for users.

/// Names of Rust and serde for kinds of values, and their names in a config.
const KINDS: [(&str, &str); 16] = [
    ("usize", "a whole number of 0 or more"),
    ("u64", "a whole number of 0 or more"),
    ("u32", "a whole number of 0 or more"),
    ("u16", "a whole number from 0 to 65535"),
    ("u8", "a whole number from 0 to 255"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("a sequence", "a list"),
    ("sequence", "a list"),
    ("a map", "an object"),
    ("map", "an object"),
    ("unit", "null"),
    ("null", "null"),
    ("string or map", "one of the allowed values"),
    ("a string", "a text"),
    ("string", "a text"),
];

/// Returns a message of serde in plain words, and without the text that was found, which may be
/// secret.
pub(super) fn in_plain_words(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        return unknown_value(rest);
    }
    let of_type = message.strip_prefix("invalid type: ");
    let Some(rest) = of_type.or_else(|| message.strip_prefix("invalid value: ")) else {
        return message.to_owned();
    };
    // A text that was found may contain these words too.
    let Some((found, expected)) = rest.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    match (of_type.is_some(), found.starts_with("string ")) {
        (false, true) => {
            format!("expected {}, found {}", kind(expected), &found["string ".len()..])
        }
        _ => format!("expected {}, found {}", kind(expected), found_kind(found)),
    }
}

fn kind(name: &str) -> &str {
    KINDS.iter().find(|(rust, _)| *rust == name).map_or(name, |(_, plain)| plain)
}

/// Returns the found value: numbers and booleans in full, texts only by their kind.
fn found_kind(found: &str) -> &str {
    match found.split_once(' ') {
        Some(("integer" | "boolean" | "floating", value)) => {
            value.trim_start_matches("point ").trim_matches('`')
        }
        // The readers keep numbers that no type can hold, such as 1e999, as texts.
        Some(("string", text)) if is_out_of_range(text) => "a number out of range",
        Some(("string", _)) => "a text",
        _ => kind(found),
    }
}

fn is_out_of_range(text: &str) -> bool {
    let digits = text.trim_matches('"').trim_start_matches('-');
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Describes an unknown value. `rest` begins with the value that was found.
fn unknown_value(rest: &str) -> String {
    let Some((found, expected)) = rest.split_once("`, expected ") else {
        return format!("unknown value {}", rest.trim_end_matches('`'));
    };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let near = known
        .iter()
        .map(|known| (strsim::jaro_winkler(&found.to_lowercase(), &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = near.map_or_else(String::new, |(_, near)| format!("; did you mean {near:?}?"));
    format!("unknown value {found:?}{hint} (allowed: {})", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_no_terms_of_rust() {
        for (message, expected) in [
            (
                "unknown variant `lazzy`, expected one of `eager`, `lazy`, `hybrid`",
                r#"unknown value "lazzy"; did you mean "lazy"? (allowed: eager, lazy, hybrid)"#,
            ),
            (
                "unknown variant `q`, expected `eager` or `lazy`",
                r#"unknown value "q" (allowed: eager, lazy)"#,
            ),
            (
                "invalid type: string \"hidden, expected\", expected usize",
                "expected a whole number of 0 or more, found a text",
            ),
            (
                "invalid type: string \"1e999\", expected usize",
                "expected a whole number of 0 or more, found a number out of range",
            ),
            ("invalid type: integer `7`, expected a string", "expected a text, found 7"),
            ("invalid type: sequence, expected a map", "expected an object, found a list"),
            (
                "invalid value: integer `-3`, expected usize",
                "expected a whole number of 0 or more, found -3",
            ),
            (
                "invalid value: string \"soon\", expected a duration such as \"90s\"",
                "expected a duration such as \"90s\", found \"soon\"",
            ),
            ("missing field `x`", "missing field `x`"),
        ] {
            assert_eq!(in_plain_words(message), expected);
        }
    }
}
