//! Answers that dormouse composes itself, bounded so that none floods a model's context.
//!
//! An answer consists of sections. While it is too long, its largest section says less of each
//! item: first the definitions go, then descriptions shrink to their first sentences, then to
//! names, then to numbers of names that begin alike.

use std::collections::{BinaryHeap, HashMap};

use super::{
    View,
    text::{one_line, shortened},
};
use crate::{
    config::{Listing, Surface, is_hidden},
    wire::{Raw, edit},
};

/// The most bytes of an answer, as text and as `structuredContent`.
pub(super) const MAX_ANSWER: usize = 8 * 1024;

/// Bytes of an answer without the sentence that says how to see the rest.
pub(super) const ROOM: usize = MAX_ANSWER - 512;

/// The most kinds that are told apart in a section that only counts.
const MAX_KINDS: usize = 16;

/// The most bytes of a name, as it is written, where names are listed by the hundred.
const MAX_NAME: usize = 64;

/// How much a section says of each of its items; each later form is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// The definition as its server wrote it.
    Full,
    /// The name and the whole description.
    Described,
    /// The name and the first sentence of the description.
    Brief,
    Named,
    /// How many names begin alike.
    Kinds,
    /// How many items there are.
    Counted,
}

impl Form {
    fn next(self) -> Self {
        match self {
            Self::Full => Self::Described,
            Self::Described => Self::Brief,
            Self::Brief => Self::Named,
            Self::Named => Self::Kinds,
            Self::Kinds | Self::Counted => Self::Counted,
        }
    }
}

/// A list of named items that can be told at length or in brief.
pub(super) struct Section<'a> {
    names: Vec<&'a str>,
    /// Writes one item; called with forms up to `Named`.
    write: Box<dyn Fn(usize, Form) -> Raw + 'a>,
    asked: Form,
    form: Form,
    shortest: Form,
}

impl<'a> Section<'a> {
    /// `form`: how much is said where there is room.
    pub(super) fn new(
        names: Vec<&'a str>,
        form: Form,
        write: impl Fn(usize, Form) -> Raw + 'a,
    ) -> Self {
        Self { names, write: Box::new(write), asked: form, form, shortest: Form::Kinds }
    }

    /// Lets the section shrink to the number of its items, as one of many sections.
    pub(super) fn down_to_a_number(self) -> Self {
        Self { shortest: Form::Counted, ..self }
    }

    pub(super) fn is_shortened(&self) -> bool {
        self.form > self.asked
    }

    pub(super) fn write(&self) -> Raw {
        match self.form {
            Form::Counted => Raw::encode(&self.names.len()),
            Form::Kinds => Raw::array(&self.kinds()),
            form => {
                let items: Vec<Raw> =
                    (0..self.names.len()).map(|item| (self.write)(item, form)).collect();
                // Escapes take more room than what they stand for.
                edit::escaped(&Raw::array(&items), is_hidden)
            }
        }
    }

    /// The kinds of names with how many there are of each, the largest kinds first.
    fn kinds(&self) -> Vec<Raw> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for name in &self.names {
            *counts.entry(kind(name)).or_default() += 1;
        }
        let mut kinds: Vec<(&str, usize)> = counts.into_iter().collect();
        kinds.sort_by(|(a, m), (b, n)| n.cmp(m).then(a.cmp(b)));
        let rest: usize = kinds.iter().skip(MAX_KINDS).map(|(_, count)| count).sum();
        let told = kinds.iter().take(MAX_KINDS).map(|(kind, count)| {
            Raw::encode(&serde_json::json!({"names": format!("{}…", short(kind)), "count": count}))
        });
        let rest =
            (rest > 0).then(|| Raw::encode(&serde_json::json!({"names": "…", "count": rest})));
        told.chain(rest).collect()
    }
}

/// What a name begins with, up to the end of its first word: `browser_` of `browser_click`.
fn kind(name: &str) -> &str {
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

fn short(name: &str) -> String {
    let name = one_line(&shortened(name, MAX_NAME));
    let mut size = 0;
    let fitting = name.char_indices().find(|(_, c)| {
        size += if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() };
        size > MAX_NAME
    });
    fitting.map_or_else(|| name.clone(), |(at, _)| format!("{}…", &name[..at]))
}

/// Shortens the largest section again and again, until all fit into `ROOM` less `others`, the bytes of what
/// else the answer says, or none can be shorter.
pub(super) fn fit(sections: &mut [Section<'_>], others: usize) {
    let room = ROOM.saturating_sub(others);
    let sizes = sections.iter().map(|section| section.write().len());
    let mut sizes: BinaryHeap<(usize, usize)> = sizes.zip(0..).collect();
    let mut sum: usize = sizes.iter().map(|(size, _)| size).sum();
    while sum > room {
        let Some((size, largest)) = sizes.pop() else { return };
        let section = &mut sections[largest];
        if section.form < section.shortest {
            section.form = section.form.next();
            let shorter = section.write().len();
            sum = sum - size + shorter;
            sizes.push((shorter, largest));
        }
    }
}

/// How to see the rest, where a section says less than was asked. `server`: the only one that it is about.
pub(super) fn note(
    view: View<'_>,
    server: Option<&str>,
    sections: &[Section<'_>],
) -> Option<String> {
    sections.iter().any(Section::is_shortened).then(|| way_on(view, server))
}

/// How to see the rest of what a server has, or of what all have.
pub(super) fn way_on(view: View<'_>, server: Option<&str>) -> String {
    let own = view.snapshot.sole.is_none().then_some(server).flatten();
    match (view.surface, view.snapshot.settings.listing) {
        (Surface::Activate | Surface::Direct, Listing::Growing) => {
            "Shortened to fit. Every tool stands in the list of tools.".to_owned()
        }
        (Surface::Groups, _) => {
            let group = own.map_or_else(String::new, |own| format!("\"group\": {own:?}, "));
            format!(
                "Shortened to fit. To see whole definitions: get_dynamic_tools {{{group}\"query\": \"…\"}}."
            )
        }
        _ => {
            let (within, before) = own.map_or_else(Default::default, |own| {
                (format!("\"server\": {own:?}, "), format!("{own}/"))
            });
            format!(
                "Shortened to fit. To see whole definitions: discover_tool {{{within}\"query\": \"…\"}} or {{\"tool_name\": \"{before}…\"}}."
            )
        }
    }
}

/// The first of `names` that fit into `room` bytes, with how many more there are.
pub(super) fn listed(names: &[impl AsRef<str>], room: usize) -> String {
    let mut text = String::new();
    for (position, name) in names.iter().enumerate() {
        let name = short(name.as_ref());
        if position > 0 && text.len() + name.len() > room {
            return format!("{text} and {} more", names.len() - position);
        }
        if position > 0 {
            text.push_str(", ");
        }
        text.push_str(&name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(names: &[String], form: Form) -> Section<'_> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = names.clone();
        Section::new(names, form, move |item, form| {
            let filling = if form == Form::Named { 0 } else { 100 };
            Raw::encode(&format!("{}{}", all[item], "x".repeat(filling)))
        })
    }

    fn names(count: usize, prefix: &str) -> Vec<String> {
        (0..count).map(|number| format!("{prefix}_{number}")).collect()
    }

    #[test]
    fn the_largest_section_shrinks_first_and_only_as_far_as_it_must() {
        let (few, many) = (names(3, "few"), names(200, "many"));
        let mut sections = [section(&few, Form::Full), section(&many, Form::Full)];
        fit(&mut sections, 0);
        assert!(!sections[0].is_shortened());
        assert_eq!(sections[1].form, Form::Named);
    }

    #[test]
    fn thousands_of_names_become_numbers_by_kind() {
        let many = [names(3000, "get"), names(2000, "set")].concat();
        let mut sections = [section(&many, Form::Brief)];
        fit(&mut sections, 0);
        assert_eq!(
            sections[0].write().to_string(),
            r#"[{"names":"get_…","count":3000},{"names":"set_…","count":2000}]"#
        );
    }

    #[test]
    fn a_kind_is_the_first_word_of_a_name() {
        for (name, expected) in [
            ("browser_click", "browser_"),
            ("s/browser-click", "browser-"),
            ("readFile", "read"),
            ("file:///a/b", "file:"),
            ("_x", "_x"),
            ("plain", "plain"),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }

    #[test]
    fn a_long_list_of_names_ends_with_a_number() {
        assert_eq!(listed(&["a", "b"], 100), "a, b");
        insta::assert_snapshot!(listed(&names(1000, "server"), 30));
    }
}
