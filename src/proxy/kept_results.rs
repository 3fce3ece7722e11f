//! Results above `maxResultBytes`: kept for the session that asked, and read page by page as a
//! resource.

use std::collections::{HashMap, VecDeque};

use serde_json::json;

use super::Principal;
use crate::{
    base::{Lock, random_token},
    config::ServerConfig,
    protocol::error,
    wire::{Outcome, Raw, edit},
};

const URI_PREFIX: &str = "dormouse://results/";
/// Maximum number and total bytes of the results that are kept for one session; the oldest is
/// dropped.
const MAX_RESULTS: usize = 64;
const MAX_RESULT_BYTES: usize = 32 * 1024 * 1024;

#[derive(Default)]
pub(super) struct KeptResults {
    by_principal: Lock<HashMap<Principal, VecDeque<CutText>>>,
}

/// The part of a result's text that the host has not got.
struct CutText {
    id: String,
    text: String,
    /// Maximum length of a page, in bytes.
    page: usize,
}

impl KeptResults {
    fn keep(&self, principal: Principal, rest: CutText) {
        let mut all = self.by_principal.lock();
        let kept = all.entry(principal).or_default();
        kept.push_back(rest);
        let bytes =
            |kept: &VecDeque<CutText>| kept.iter().map(|rest| rest.text.len()).sum::<usize>();
        while kept.len() > 1 && (kept.len() > MAX_RESULTS || bytes(kept) > MAX_RESULT_BYTES) {
            kept.pop_front();
        }
    }

    /// Returns a tool's result with at most as much text as the server's config allows. The rest
    /// is kept for the principal.
    pub(super) fn bound(&self, principal: Principal, config: &ServerConfig, result: Raw) -> Raw {
        let Some(max) = config.settings.max_result_bytes.filter(|max| result.len() > *max) else {
            return result;
        };
        if edit::get(&result, "structuredContent").is_some() {
            tracing::info!(
                server = config.name,
                bytes = result.len(),
                "structured result above maxResultBytes passed on unchanged"
            );
            return result;
        }
        let id = random_token::<9>();
        let Some((cut, rest)) = cut(&result, max, &id) else { return result };
        self.keep(principal, rest);
        cut
    }

    /// Answers a `resources/read` of a kept result; `None` for any other resource.
    pub(super) fn read(&self, principal: Principal, uri: &str) -> Option<Outcome> {
        let name = uri.strip_prefix(URI_PREFIX)?;
        let (id, page) = match name.split_once("?page=") {
            None => (name, Some(1)),
            Some((id, page)) => (id, page.parse().ok().filter(|page| *page > 0)),
        };
        let all = self.by_principal.lock();
        let mut kept = all.get(&principal).into_iter().flatten();
        let Some(rest) = kept.find(|rest| rest.id == id) else {
            let message = format!("{uri} is unknown or has been discarded; call the tool again");
            return Some(Err(error::invalid_params(message)));
        };
        let Some((text, note)) = page.and_then(|page| rest.page(page)) else {
            return Some(Err(error::invalid_params(format!("{uri}: no such page"))));
        };
        // An item of its own, so that the texts of the pages can be joined.
        let contents =
            [text, &note].map(|text| json!({"uri": uri, "mimeType": "text/plain", "text": text}));
        Some(Ok(edit::set(&Raw::empty_object(), "contents", &Raw::encode(&contents))))
    }

    pub(super) fn forget(&self, principal: Principal) {
        self.by_principal.lock().remove(&principal);
    }
}

impl CutText {
    /// Returns the page of this number, counted from 1, and the next number.
    fn page(&self, number: usize) -> Option<(&str, String)> {
        let mut rest = self.text.as_str();
        for _ in 1..number {
            if rest.is_empty() {
                return None;
            }
            rest = &rest[boundary(rest, self.page)..];
        }
        let (page, after) = rest.split_at(boundary(rest, self.page));
        if page.is_empty() {
            return None;
        }
        let note = if after.is_empty() {
            format!("[dormouse: page {number} is the last one]")
        } else {
            let (id, next) = (&self.id, number + 1);
            let uri = format!("{URI_PREFIX}{id}?page={next}");
            format!("[dormouse: page {number}; read the next one as the resource {uri} ]")
        };
        Some((page, note))
    }
}

/// Cuts a result to `max` bytes of text and a note about the rest; `None` if it fits.
fn cut(result: &Raw, max: usize, id: &str) -> Option<(Raw, CutText)> {
    let content = edit::elements(&edit::get(result, "content")?)?;
    let texts: Vec<Option<String>> = content.iter().map(text_of).collect();
    let all: usize = texts.iter().flatten().map(String::len).sum();
    if all <= max {
        return None;
    }
    let mut left = max;
    let mut kept = Vec::new();
    let mut rest = String::new();
    for (item, text) in content.into_iter().zip(texts) {
        let Some(text) = text else {
            kept.push(item);
            continue;
        };
        if rest.is_empty() && text.len() <= left {
            left -= text.len();
            kept.push(item);
            continue;
        }
        if !rest.is_empty() {
            rest.push('\n');
            rest.push_str(&text);
            continue;
        }
        let (given, after) = text.split_at(text.floor_char_boundary(left));
        let note = format!(
            "[dormouse: the result has {all} bytes of text, above maxResultBytes ({max}); read \
                the rest as the resource {URI_PREFIX}{id} ]"
        );
        kept.push(edit::set(&item, "text", &Raw::encode(given)));
        kept.push(Raw::encode(&json!({"type": "text", "text": note})));
        rest.push_str(after);
    }
    let rest = CutText { id: id.to_owned(), text: rest, page: max };
    Some((edit::set(result, "content", &Raw::array(&kept)), rest))
}

/// Returns the text of a text item; other items have no text that may be cut.
fn text_of(item: &Raw) -> Option<String> {
    (edit::get_str(item, "type")? == "text").then(|| edit::get_str(item, "text"))?
}

/// Returns the position with at most `max` bytes before it, and at least one character.
fn boundary(text: &str, max: usize) -> usize {
    if text.len() <= max {
        return text.len();
    }
    match text.floor_char_boundary(max) {
        0 => text.chars().next().map_or(0, char::len_utf8),
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cut_and_kept_parts_are_the_whole_text(
            texts in proptest::collection::vec("\\PC{0,40}", 1..4),
            max in 1..60usize,
        ) {
            let item = |text| json!({"type": "text", "text": text, "new": 1});
            let items: Vec<_> = texts.iter().map(item).collect();
            let result = Raw::encode(&json!({"content": items, "isError": false}));
            let all = texts.concat();
            match cut(&result, max, "id") {
                None => prop_assert!(all.len() <= max),
                Some((cut, rest)) => {
                    let kept = edit::elements(&edit::get(&cut, "content").unwrap()).unwrap();
                    let notes = kept.iter().filter(|item| edit::get(item, "new").is_none()).count();
                    prop_assert_eq!(notes, 1);
                    let given = kept.iter().filter(|item| edit::get(item, "new").is_some());
                    let given: String = given.filter_map(text_of).collect();
                    prop_assert!(given.len() <= max);
                    let mut pages = String::new();
                    for number in 1.. {
                        let Some((text, _)) = rest.page(number) else { break };
                        prop_assert!(text.len() <= max.max(4));
                        pages.push_str(text);
                    }
                    prop_assert!(rest.page(usize::MAX).is_none());
                    // Texts of separate items are joined by a line break.
                    let whole = format!("{given}{pages}");
                    prop_assert_eq!(whole.replace('\n', ""), all.replace('\n', ""));
                }
            }
        }
    }
}
