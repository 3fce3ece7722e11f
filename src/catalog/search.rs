//! Finds tools, and servers that may have them, by words.

use super::{Presence, Snapshot, ToolRef};

/// One answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Match {
    Tool(ToolRef),
    /// A server whose tools are not known; loading it would tell.
    Server(usize),
}

/// The best matches for `query`, best first; of equal ones the first in config order.
///
/// A word in a name counts four times a word in a description; the whole name said exactly comes first.
pub fn search(snapshot: &Snapshot, query: &str, within: Option<usize>, limit: usize) -> Vec<Match> {
    let wanted = words(query);
    let mut scored: Vec<(usize, Match)> = Vec::new();
    for (server, view) in snapshot.servers.iter().enumerate() {
        if within.is_some_and(|within| within != server) {
            continue;
        }
        let about = view.description.as_deref().unwrap_or_default();
        match (&view.presence, view.exposed()) {
            (_, Some(exposed)) => {
                for (tool, definition) in exposed.catalog.tools.iter().enumerate() {
                    let of_server = score(&wanted, &view.name, about).div_ceil(4);
                    let own = score(&wanted, &definition.name, &definition.description);
                    let exact =
                        usize::from(definition.name.eq_ignore_ascii_case(query.trim())) * 1000;
                    if own + exact > 0 {
                        let at = ToolRef { server, tool };
                        scored.push((own + exact + of_server, Match::Tool(at)));
                    }
                }
            }
            (Presence::Offered { .. }, None) => {
                scored.push((score(&wanted, &view.name, about), Match::Server(server)));
            }
            _ => {}
        }
    }
    scored.retain(|(score, _)| *score > 0);
    // Stable, so that equal scores stay in config order.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(limit).map(|(_, found)| found).collect()
}

fn score(wanted: &[String], name: &str, description: &str) -> usize {
    let (name, description) = (words(name), words(description));
    let has = |words: &[String], wanted: &String| words.iter().any(|word| is_like(word, wanted));
    wanted
        .iter()
        .map(|word| 4 * usize::from(has(&name, word)) + usize::from(has(&description, word)))
        .sum()
}

/// Equal, or one is the start of the other and differs in an ending only: `file` and `files`.
fn is_like(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long == short || (short.len() >= 4 && long.starts_with(short) && long.len() - short.len() <= 3)
}

/// Lower-case words, split at everything that is no letter or digit, and inside camelCase.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in text.chars() {
        let starts_word = c.is_uppercase() && after_lower;
        if !c.is_alphanumeric() || starts_word {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("never empty").extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| word.len() > 1);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(
            words("readFile list_dir HTTPServer x"),
            ["read", "file", "list", "dir", "httpserver"]
        );
        assert!(
            is_like("files", "file")
                && !is_like("fil", "files")
                && !is_like("navigate", "navigating")
        );
    }
}
