//! Suggestions for a name that is not known.

use crate::base::{shortened, visible};

/// Maximum length of names that are compared, in characters.
const MAX_COMPARED_CHARS: usize = 128;

/// Returns the known names that are most similar to `name`, best first; at most three.
pub(super) fn near_misses(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    // The time of a comparison grows with the square of a name's length.
    let compared = |name: &str| shortened(name, MAX_COMPARED_CHARS).to_lowercase();
    let name = compared(name);
    let bare = |name: &str| name.rsplit(['/', ':']).next().unwrap_or_default().to_owned();
    let wanted = bare(&name);
    let mut near: Vec<(f64, String)> = known
        .map(|known| {
            let other = compared(&known);
            let whole = strsim::jaro_winkler(&name, &other);
            (whole.max(strsim::jaro_winkler(&wanted, &bare(&other))), known)
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    // The sort is stable, so that equally similar names keep config order.
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter()
        .take(3)
        .map(|(_, name)| visible(&shortened(&name, MAX_COMPARED_CHARS)))
        .collect()
}
