//! Composes the blocks `<mcp_servers>` and `<tools>` within a budget of bytes.
//!
//! Each server has an entry: a line with its description, or its tools once it is loaded. One
//! common limit applies to all entries, so that the largest entries are shortened first and small
//! ones stay whole.

use super::{
    View,
    text::{first_sentence, sanitized},
    toolsets,
};
use crate::{
    base::counted,
    catalog::{OfferVisibility, Tool},
};

/// Maximum length of a text of a server or tool, whatever the budget, in characters.
const MAX_TEXT_CHARS: usize = 1000;
/// Maximum length of the description of a loaded server, in characters. Its tools are more
/// informative.
const MAX_LOADED_ABOUT_CHARS: usize = 120;
/// Maximum lengths of a tool's summary, the fullest first, in characters.
const SUMMARY_LENGTHS: [usize; 4] = [MAX_TEXT_CHARS, 120, 60, 30];
/// Minimum length of a truncated description, in characters. A shorter one is meaningless.
const MIN_ABOUT_CHARS: usize = 8;

/// Returns `preamble`, the servers that can be loaded, and the tools of the loaded ones, in the
/// fullest form that fits the budget.
pub(super) fn compose(view: View<'_>, preamble: &str, with_tools: bool) -> String {
    let loaded = if with_tools { loaded(view) } else { Vec::new() };
    let none_loaded = with_tools && loaded.is_empty();
    DescriptionBlocks { tag: "mcp_servers", lines: offered(view), loaded, none_loaded }
        .within(view.snapshot.settings.lists.description_budget, preamble)
}

/// Returns `preamble` and these groups of tools, in the fullest form that fits the budget.
pub(super) fn compose_groups(view: View<'_>, preamble: &str, groups: Vec<OfferLine>) -> String {
    DescriptionBlocks { tag: "groups", lines: groups, loaded: Vec::new(), none_loaded: false }
        .within(view.snapshot.settings.lists.description_budget, preamble)
}

/// The line of a group, or of a server that is not loaded.
pub(super) struct OfferLine {
    name: String,
    /// The description on one line and escaped: each `&` begins an entity.
    about: String,
}

impl OfferLine {
    pub(super) fn new(name: &str, about: &str) -> Self {
        Self { name: sanitized(name, 64), about: sanitized(about, MAX_TEXT_CHARS) }
    }

    fn write(&self, limit: usize, text: &mut String) {
        self.parts(limit).iter().for_each(|part| text.push_str(part));
    }

    /// Returns the number of bytes that [`Self::write`] adds.
    fn size(&self, limit: usize) -> usize {
        self.parts(limit).iter().map(|part| part.len()).sum()
    }

    /// Returns the parts of the line, with as much of the description as `limit` bytes hold.
    fn parts(&self, limit: usize) -> [&str; 6] {
        let (about, end) = self.about_within(limit);
        let separator = if about.is_empty() { "" } else { ": " };
        ["- ", &self.name, separator, about, end, "\n"]
    }

    /// Returns the beginning of the description, and `…` if it is truncated.
    fn about_within(&self, limit: usize) -> (&str, &'static str) {
        const ELLIPSIS: &str = "…";
        if self.about.len() <= limit {
            return (&self.about, "");
        }
        let begin =
            &self.about[..self.about.floor_char_boundary(limit.saturating_sub(ELLIPSIS.len()))];
        let is_entity_cut = |at: &usize| !begin[*at..].contains(';');
        let begin = match begin.rfind('&').filter(is_entity_cut) {
            Some(entity) => &begin[..entity],
            None => begin,
        };
        let begin = begin.trim_end();
        if begin.chars().count() < MIN_ABOUT_CHARS { ("", "") } else { (begin, ELLIPSIS) }
    }
}

/// A loaded server in several forms, each shorter than the one before.
struct LoadedOffer {
    forms: Vec<String>,
    tools: usize,
}

impl LoadedOffer {
    /// Creates the shortest forms, which only give the number of tools.
    fn counted(name: &str, about: &str, tools: usize) -> Self {
        let (name, about) = (sanitized(name, 64), sanitized(about, MAX_LOADED_ABOUT_CHARS));
        let counted = format!("{}; ask with `query`\n", counted(tools, "tool"));
        let mut forms = vec![format!("{name}: {counted}")];
        if !about.is_empty() {
            forms.insert(0, format!("{name}: {about}; {counted}"));
        }
        Self { forms, tools }
    }

    /// Adds the forms that list the tools in at most `most` bytes.
    fn listed(self, name: &str, about: &str, tools: &[&Tool], most: usize) -> Self {
        let (name, about) = (sanitized(name, 64), sanitized(about, MAX_LOADED_ABOUT_CHARS));
        let head =
            if about.is_empty() { format!("{name}:\n") } else { format!("{name}: {about}\n") };
        let summaries = SUMMARY_LENGTHS.into_iter().map(Some).chain([None]);
        let listed = summaries.filter_map(|longest| listing(&head, tools, longest, most));
        let mut forms: Vec<String> = Vec::new();
        for form in listed.chain(self.forms) {
            if forms.last().is_none_or(|last| form.len() < last.len()) {
                forms.push(form);
            }
        }
        Self { forms, ..self }
    }

    fn shortest(&self) -> usize {
        self.forms.last().map_or(0, String::len)
    }

    /// Returns the fullest form of at most `limit` bytes, or else the shortest form.
    fn within(&self, limit: usize) -> &str {
        let fitting = self.forms.iter().find(|form| form.len() <= limit);
        fitting.or(self.forms.last()).map_or("", String::as_str)
    }
}

fn offered(view: View<'_>) -> Vec<OfferLine> {
    let offers = view.offers();
    let lines = offers.iter().filter_map(|listed| {
        let OfferVisibility::Offered { trouble, .. } = listed.visibility else { return None };
        let offer = listed.offer;
        let about = toolsets::about(offer);
        let about = match trouble {
            Some(trouble) => format!("{about} ({trouble})").trim_start().to_owned(),
            None => about,
        };
        Some(OfferLine::new(&offer.name, &about))
    });
    lines.collect()
}

fn loaded(view: View<'_>) -> Vec<LoadedOffer> {
    let offers = view.offers();
    let shown = offers.iter().filter_map(|listed| {
        let OfferVisibility::Live(exposed) = listed.visibility else { return None };
        let about = listed.offer.description.as_deref().unwrap_or_default();
        let tools = listed.for_model();
        let tools: Vec<&Tool> = tools.iter().map(|tool| &exposed.catalog.tools[*tool]).collect();
        // Another toolset may list all its tools.
        let is_empty = tools.is_empty() && !listed.offer.id.is_whole();
        (!is_empty).then_some((&listed.offer.name, about, tools))
    });
    let shown: Vec<_> = shown.collect();
    let counted =
        shown.iter().map(|(name, about, tools)| LoadedOffer::counted(name, about, tools.len()));
    let counted: Vec<LoadedOffer> = counted.collect();
    // A form is not created if it has no room even when all other servers use their shortest forms.
    let shortest: usize = counted.iter().map(LoadedOffer::shortest).sum();
    let budget = view.snapshot.settings.lists.description_budget.unwrap_or(usize::MAX);
    let listed = counted.into_iter().zip(shown).map(|(counted, (name, about, tools))| {
        let others = shortest - counted.shortest();
        counted.listed(name, about, &tools, budget.saturating_sub(others))
    });
    listed.collect()
}

/// Lists the tools, one per line, with summaries of at most `longest` characters or none. Returns
/// `None` if the list takes more than `most` bytes.
fn listing(head: &str, tools: &[&Tool], longest: Option<usize>, most: usize) -> Option<String> {
    let mut form = head.to_owned();
    for tool in tools {
        form.push_str(&format!("- {}", sanitized(&tool.name, 200)));
        let summary = longest.map(|longest| sanitized(first_sentence(&tool.description), longest));
        if let Some(summary) = summary.filter(|summary| !summary.is_empty()) {
            form.push_str(&format!(": {summary}"));
        }
        form.push('\n');
        if form.len() > most {
            return None;
        }
    }
    Some(form)
}

/// The text below the preamble.
struct DescriptionBlocks {
    tag: &'static str,
    lines: Vec<OfferLine>,
    loaded: Vec<LoadedOffer>,
    /// `true` if the text has to say that no tools are loaded.
    none_loaded: bool,
}

impl DescriptionBlocks {
    fn within(&self, budget: Option<usize>, preamble: &str) -> String {
        let Some(budget) = budget else {
            return format!("{preamble}{}", self.at(usize::MAX, &self.listed(usize::MAX)));
        };
        let room = budget.saturating_sub(preamble.len());
        let size = |limit: usize| self.size_at(limit, &self.listed(limit));
        if size(0) <= room {
            let limit = largest(budget, |limit| size(*limit) <= room);
            return format!("{preamble}{}", self.with_what_is_left(limit, room));
        }
        // Try one number for the tools of all servers.
        let summed = self.summed();
        if self.size_at(0, &summed) <= room {
            let limit = largest(budget, |limit| self.size_at(*limit, &summed) <= room);
            return format!("{preamble}{}", self.at(limit, &summed));
        }
        // List as many servers by name as fit, if necessary without the preamble.
        for (preamble, room) in [(preamble, room), ("", budget)] {
            let counted = self.counted(room, &summed);
            if !counted.is_empty() && counted.len() <= room {
                return format!("{preamble}{counted}").trim_start_matches('\n').to_owned();
            }
        }
        // Not even a name fits: return as much of the preamble as fits. A block is never cut.
        preamble[..preamble.floor_char_boundary(budget)].trim_end().to_owned()
    }

    /// Writes all entries within `limit`, and gives the remaining room to the loaded servers in
    /// turn. The forms of a loaded server differ greatly in size, so a common limit may leave room.
    fn with_what_is_left(&self, limit: usize, room: usize) -> String {
        let mut forms: Vec<&str> = self.loaded.iter().map(|one| one.within(limit)).collect();
        let mut left = room - self.size_at(limit, &self.block(&forms));
        for (form, loaded) in forms.iter_mut().zip(&self.loaded) {
            let fuller = loaded.within(form.len() + left);
            left -= fuller.len().saturating_sub(form.len());
            *form = fuller;
        }
        self.at(limit, &self.block(&forms))
    }

    /// Writes the servers that are not loaded, each within this limit, and then `tools`.
    fn at(&self, limit: usize, tools: &str) -> String {
        let mut text = String::with_capacity(self.size_at(limit, tools));
        if !self.lines.is_empty() {
            let (begin, end) = self.tags();
            text.push_str(&begin);
            self.lines.iter().for_each(|line| line.write(limit, &mut text));
            text.push_str(&end);
        }
        text + tools
    }

    /// Returns the number of bytes that [`Self::at`] writes.
    fn size_at(&self, limit: usize, tools: &str) -> usize {
        let lines: usize = self.lines.iter().map(|line| line.size(limit)).sum();
        let (begin, end) = self.tags();
        let tags = if self.lines.is_empty() { 0 } else { begin.len() + end.len() };
        tags + lines + tools.len()
    }

    /// Returns the lines before and after the servers that are not loaded.
    fn tags(&self) -> (String, String) {
        (format!("\n<{}>\n", self.tag), format!("</{}>\n", self.tag))
    }

    /// Writes the loaded servers, each within this limit.
    fn listed(&self, limit: usize) -> String {
        self.block(&self.loaded.iter().map(|loaded| loaded.within(limit)).collect::<Vec<_>>())
    }

    fn block(&self, forms: &[&str]) -> String {
        match (forms, self.none_loaded) {
            ([], true) => "\nNo tools are loaded yet.".to_owned(),
            ([], false) => String::new(),
            (forms, _) => format!("\n<tools>\n{}</tools>", forms.concat()),
        }
    }

    /// Writes one number for the tools of all loaded servers.
    fn summed(&self) -> String {
        if self.loaded.is_empty() {
            return self.block(&[]);
        }
        let tools = self.loaded.iter().map(|loaded| loaded.tools).sum();
        let (tools, servers) = (counted(tools, "tool"), counted(self.loaded.len(), "server"));
        format!("\n<tools>\n{tools} of {servers}; ask with `query`\n</tools>")
    }

    /// Writes as many servers by name as fit into `room` bytes, the number of the others, and then
    /// `tools`.
    fn counted(&self, room: usize, tools: &str) -> String {
        if self.lines.is_empty() {
            return tools.to_owned();
        }
        let more = |count: usize| format!("({count} more; ask with `query`)\n");
        let (begin, end) = self.tags();
        let fixed = begin.len() + end.len() + more(self.lines.len()).len() + tools.len();
        let mut names = String::new();
        let mut shown = 0;
        for line in &self.lines {
            if fixed + names.len() + line.size(0) > room {
                break;
            }
            line.write(0, &mut names);
            shown += 1;
        }
        if shown < self.lines.len() {
            names.push_str(&more(self.lines.len() - shown));
        }
        format!("{begin}{names}{end}{tools}")
    }
}

/// Returns the largest number up to `most` for which `holds` is true, or 0 if there is none.
/// `holds` must be true for all numbers below one for which it is true.
fn largest(most: usize, holds: impl Fn(&usize) -> bool) -> usize {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if holds(&middle) { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(abouts: &[&str], loaded: Vec<LoadedOffer>) -> DescriptionBlocks {
        let line = |(number, about): (usize, &&str)| OfferLine::new(&format!("s{number}"), about);
        let lines = abouts.iter().enumerate().map(line).collect();
        DescriptionBlocks { tag: "mcp_servers", lines, loaded, none_loaded: false }
    }

    fn forms(texts: &[&str], tools: usize) -> LoadedOffer {
        LoadedOffer { forms: texts.iter().map(|text| (*text).to_owned()).collect(), tools }
    }

    #[test]
    fn the_largest_description_is_shortened_first() {
        let long = "Does many things that take long to say. ".repeat(20);
        let blocks = blocks(&["Reads files", &long, "Writes mail"], Vec::new());
        let text = blocks.within(Some(200), "p");
        assert!(text.len() <= 200 && text.len() > 180, "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_cut_leaves_whole_entities_and_enough_words() {
        let line = OfferLine::new("s", "Cuts <tags> & more of them");
        for limit in 0..=line.about.len() {
            let mut text = String::new();
            line.write(limit, &mut text);
            assert_eq!(text.len(), line.size(limit));
            let about = text.trim_end().strip_prefix("- s").unwrap().trim_start_matches(": ");
            assert!(about.len() <= limit, "{text}");
            assert!(about.is_empty() || about.chars().count() > MIN_ABOUT_CHARS, "{text}");
            let bare = about.replace("&lt;", "").replace("&gt;", "").replace("&amp;", "");
            assert!(!bare.contains('&'), "{text}");
        }
    }

    #[test]
    fn a_server_with_many_tools_does_not_shorten_others() {
        let many = "- tool\n".repeat(300);
        let loaded = forms(&[&format!("big:\n{many}"), "big: 300 tools\n"], 300);
        let abouts = ["Reads and writes files of a directory"; 20];
        let text = blocks(&abouts, vec![loaded]).within(Some(1200), "p");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn unused_room_goes_to_servers_that_can_use_it() {
        let names = format!("big:\n{}", "- tool\n".repeat(20));
        let loaded = vec![forms(&[&names, "big: 20 tools\n"], 20), forms(&["small: 1 tool\n"], 1)];
        let text = blocks(&["Short"], loaded).within(Some(names.len() + 100), "p");
        assert!(text.contains(&names), "{text}");
    }

    #[test]
    fn thousands_of_servers_are_composed_in_one_pass() {
        let abouts = vec!["Does something"; 50_000];
        let text = blocks(&abouts, Vec::new()).within(Some(2048), "p");
        assert!(text.len() <= 2048, "{text}");
        let summary = text.lines().rev().nth(1).unwrap();
        insta::assert_snapshot!(summary);
    }
}
