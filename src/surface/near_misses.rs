//! Suggestions for a name that is not known.

use crate::base::{shortened, visible};

/// Maximum length of names that are compared, in characters.
const MAX_COMPARED_CHARS: usize = 128;

/// Returns the known names that are most similar to `name`, best first; at most three.
pub(crate) fn near_misses(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let name = compared(name);
    let mut near: Vec<(f64, String)> = known
        .map(|known| (likeness(&name, &compared(&known)), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    // The sort is stable, so that equally similar names keep config order.
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter()
        .take(3)
        .map(|(_, name)| visible(&shortened(&name, MAX_COMPARED_CHARS)))
        .collect()
}

/// Returns the name in the form in which names are compared.
fn compared(name: &str) -> String {
    // The time of a comparison grows with the square of a name's length.
    shortened(name, MAX_COMPARED_CHARS).to_lowercase().replace("__", "/")
}

/// Returns how similar two names are, from 0 to 1.
fn likeness(name: &str, other: &str) -> f64 {
    let split = |name| str::rsplit_once(name, ['/', ':']).unwrap_or(("", name));
    let ((server, tool), (other_server, other_tool)) = (split(name), split(other));
    let of_tools = strsim::jaro_winkler(tool, other_tool);
    // A server's name must not make all of its tools similar.
    if server == other_server { of_tools } else { of_tools.max(strsim::jaro_winkler(name, other)) }
}
