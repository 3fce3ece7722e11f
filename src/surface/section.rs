//! Answers that dormouse composes itself, bounded so that none floods a model's context.
//!
//! An answer consists of sections. While the answer is too long, its largest section says less
//! about each item: first it drops the definitions, then it shortens descriptions to their first
//! sentences, then it lists names only, and then it counts the names that begin alike.

use std::collections::{BinaryHeap, HashMap};

use super::{View, name_list::shortened_name};
use crate::{
    base::is_hidden,
    config::{Listing, Surface},
    wire::{Raw, edit},
};

/// Maximum length of an answer, as text and as `structuredContent`, in bytes.
pub(super) const MAX_ANSWER_BYTES: usize = 8 * 1024;

/// Maximum length of an answer without the note on how to see the rest, in bytes.
pub(super) const MAX_SECTIONS_BYTES: usize = MAX_ANSWER_BYTES - 512;

/// Maximum number of prefixes in a section that only counts names.
const MAX_PREFIXES: usize = 16;

/// The amount of detail in a section. Each later level is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DetailLevel {
    /// The definition as its server wrote it.
    Full,
    /// The name and the whole description.
    Described,
    /// The name and the first sentence of the description.
    Brief,
    Named,
    /// The number of names with each prefix.
    Prefixes,
    /// The number of items.
    Counted,
}

impl DetailLevel {
    fn next(self) -> Self {
        match self {
            Self::Full => Self::Described,
            Self::Described => Self::Brief,
            Self::Brief => Self::Named,
            Self::Named => Self::Prefixes,
            Self::Prefixes | Self::Counted => Self::Counted,
        }
    }
}

/// A list of named items that can be written in more or less detail.
pub(super) struct Section<'a> {
    names: Vec<&'a str>,
    /// Writes one item. Called with levels up to `Named`.
    write: Box<dyn Fn(usize, DetailLevel) -> Raw + 'a>,
    requested: DetailLevel,
    level: DetailLevel,
    shortest: DetailLevel,
}

impl<'a> Section<'a> {
    /// Creates a section. `level` is the level of detail if there is enough room.
    pub(super) fn new(
        names: Vec<&'a str>,
        level: DetailLevel,
        write: impl Fn(usize, DetailLevel) -> Raw + 'a,
    ) -> Self {
        Self {
            names,
            write: Box::new(write),
            requested: level,
            level,
            shortest: DetailLevel::Prefixes,
        }
    }

    /// Allows the section to shrink to the number of its items, for an answer of many sections.
    pub(super) fn shrinkable_to_a_number(self) -> Self {
        Self { shortest: DetailLevel::Counted, ..self }
    }

    pub(super) fn is_shortened(&self) -> bool {
        self.level > self.requested
    }

    pub(super) fn write(&self) -> Raw {
        match self.level {
            DetailLevel::Counted => Raw::encode(&self.names.len()),
            DetailLevel::Prefixes => Raw::array(&self.prefixes()),
            level => {
                let items: Vec<Raw> =
                    (0..self.names.len()).map(|item| (self.write)(item, level)).collect();
                // Escapes take more room than the characters that they stand for.
                edit::escaped(&Raw::array(&items), is_hidden)
            }
        }
    }

    /// Returns the prefixes of the names with the number of names for each, the most frequent
    /// first.
    fn prefixes(&self) -> Vec<Raw> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for name in &self.names {
            *counts.entry(prefix(name)).or_default() += 1;
        }
        let mut prefixes: Vec<(&str, usize)> = counts.into_iter().collect();
        prefixes.sort_by(|(a, m), (b, n)| n.cmp(m).then(a.cmp(b)));
        let rest: usize = prefixes.iter().skip(MAX_PREFIXES).map(|(_, count)| count).sum();
        let told = prefixes.iter().take(MAX_PREFIXES).map(|(prefix, count)| {
            let names = format!("{}…", shortened_name(prefix));
            Raw::encode(&serde_json::json!({"names": names, "count": count}))
        });
        let rest =
            (rest > 0).then(|| Raw::encode(&serde_json::json!({"names": "…", "count": rest})));
        told.chain(rest).collect()
    }
}

/// Returns the beginning of a name up to the end of its first word: `browser_` of `browser_click`.
fn prefix(name: &str) -> &str {
    let after_server = name.find('/').map_or(0, |slash| slash + 1);
    let (_, own) = name.split_at(if name.contains("://") { 0 } else { after_server });
    let mut before = ' ';
    for (at, c) in own.char_indices() {
        if matches!(c, '_' | '-' | '.' | '/' | ':') && at > 0 {
            return &own[..at + c.len_utf8()];
        }
        if c.is_uppercase() && before.is_lowercase() {
            return &own[..at];
        }
        before = c;
    }
    own
}

/// Shortens the largest section repeatedly until all sections fit into [`MAX_SECTIONS_BYTES`], or
/// none can be shortened further. `others` is the size of the other parts of the answer, in bytes.
pub(super) fn fit(sections: &mut [Section<'_>], others: usize) {
    let room = MAX_SECTIONS_BYTES.saturating_sub(others);
    let sizes = sections.iter().map(|section| section.write().len());
    let mut sizes: BinaryHeap<(usize, usize)> = sizes.zip(0..).collect();
    let mut sum: usize = sizes.iter().map(|(size, _)| size).sum();
    while sum > room {
        let Some((size, largest)) = sizes.pop() else { return };
        let section = &mut sections[largest];
        if section.level < section.shortest {
            section.level = section.level.next();
            let shorter = section.write().len();
            sum = sum - size + shorter;
            sizes.push((shorter, largest));
        }
    }
}

/// Returns a note on how to see the rest if a section was shortened. `server` is the only server
/// that the answer covers.
pub(super) fn note(
    view: View<'_>,
    server: Option<&str>,
    sections: &[Section<'_>],
) -> Option<String> {
    sections.iter().any(Section::is_shortened).then(|| rest_note(view, server))
}

/// Returns the sentence on how to see everything that one server has, or all servers have.
pub(super) fn rest_note(view: View<'_>, server: Option<&str>) -> String {
    let own = view.snapshot.sole.is_none().then_some(server).flatten();
    match (view.surface, view.snapshot.settings.lists.listing) {
        (Surface::Activate | Surface::Direct, Listing::Growing) => {
            "Shortened to fit. Every tool stands in the list of tools.".to_owned()
        }
        (Surface::Groups, _) => {
            let group = own.map_or_else(String::new, |own| format!("\"group\": {own:?}, "));
            format!(
                "Shortened to fit. To see whole definitions: \
                 get_dynamic_tools {{{group}\"query\": \"…\"}}."
            )
        }
        (Surface::Discover | Surface::Activate | Surface::Direct, _) => {
            let (within, before) = own.map_or_else(Default::default, |own| {
                (format!("\"server\": {own:?}, "), format!("{own}/"))
            });
            format!(
                "Shortened to fit. To see whole definitions: \
                 discover_tool {{{within}\"query\": \"…\"}} or {{\"tool_name\": \"{before}…\"}}."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(names: &[String], level: DetailLevel) -> Section<'_> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = names.clone();
        Section::new(names, level, move |item, level| {
            let filling = if level == DetailLevel::Named { 0 } else { 100 };
            Raw::encode(&format!("{}{}", all[item], "x".repeat(filling)))
        })
    }

    fn names(count: usize, prefix: &str) -> Vec<String> {
        (0..count).map(|number| format!("{prefix}_{number}")).collect()
    }

    #[test]
    fn only_the_largest_section_shrinks() {
        let (few, many) = (names(3, "few"), names(200, "many"));
        let mut sections = [section(&few, DetailLevel::Full), section(&many, DetailLevel::Full)];
        fit(&mut sections, 0);
        assert!(!sections[0].is_shortened());
        assert_eq!(sections[1].level, DetailLevel::Named);
    }

    #[test]
    fn thousands_of_names_become_counts_per_prefix() {
        let many = [names(3000, "get"), names(2000, "set")].concat();
        let mut sections = [section(&many, DetailLevel::Brief)];
        fit(&mut sections, 0);
        assert_eq!(
            sections[0].write().to_string(),
            r#"[{"names":"get_…","count":3000},{"names":"set_…","count":2000}]"#
        );
    }

    #[test]
    fn a_prefix_is_the_first_word_of_a_name() {
        for (name, expected) in [
            ("browser_click", "browser_"),
            ("s/browser-click", "browser-"),
            ("readFile", "read"),
            ("file:///a/b", "file:"),
            ("_x", "_x"),
            ("plain", "plain"),
        ] {
            assert_eq!(prefix(name), expected, "{name}");
        }
    }
}
