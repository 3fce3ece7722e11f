//! What lists and reports say of toolsets (docs/reference/toolsets.md).

use super::{View, name_list::name_list};
use crate::catalog::{ExposedCatalog, Offer, Presence, Tool};

/// The beginning of the line of a whole server whose toolsets have lines of their own.
const WHOLE_SERVER: &str = "all its tools (prefer a toolset)";

/// Maximum length of the names of other toolsets in a report, in bytes.
const MAX_SIBLINGS_BYTES: usize = 300;

/// Returns the text of an offer's line in lists.
pub(super) fn about(offer: &Offer) -> String {
    let description = offer.description.as_deref().unwrap_or_default();
    match (offer.id.is_whole() && offer.is_divided(), description) {
        (false, description) => description.to_owned(),
        (true, "") => WHOLE_SERVER.to_owned(),
        (true, description) => format!("{WHOLE_SERVER}: {description}"),
    }
}

/// Adds to the note on a report how much of its server a toolset is, and which other toolsets can
/// be loaded.
pub(super) fn with_siblings(
    view: View<'_>,
    position: usize,
    exposed: &ExposedCatalog,
    note: Option<String>,
) -> Option<String> {
    let siblings = siblings(view, &view.snapshot.offers[position], exposed);
    match (siblings, note) {
        (Some(siblings), Some(note)) => Some(format!("{siblings} {note}")),
        (siblings, note) => siblings.or(note),
    }
}

fn siblings(view: View<'_>, offer: &Offer, exposed: &ExposedCatalog) -> Option<String> {
    if offer.id.is_whole() {
        return None;
    }
    let own = exposed.for_model.len();
    let others = view.snapshot.offers_of(offer.server()).map(|(_, offer)| offer);
    let (wholes, toolsets): (Vec<&Offer>, Vec<&Offer>) = others.partition(|it| it.id.is_whole());
    let whole = wholes.first().filter(|whole| whole.is_known());
    let is_shown = |tool: &&Tool| {
        tool.is_for_model() && whole.is_some_and(|whole| whole.rules.allow_tool(&tool.name))
    };
    let all = exposed.whole.tools.iter().filter(is_shown).count();
    let is_loadable =
        |it: &&&Offer| it.id != offer.id && matches!(it.presence, Presence::Offered { .. });
    let names: Vec<&str> = toolsets.iter().filter(is_loadable).map(|it| it.name.as_str()).collect();
    let share = match whole {
        Some(whole) => format!("{own} of {all} tools of {}", whole.name),
        None => format!("{own} tools"),
    };
    Some(if names.is_empty() {
        format!("{share}.")
    } else {
        format!("{share}; other toolsets: {}.", name_list(&names, MAX_SIBLINGS_BYTES))
    })
}
