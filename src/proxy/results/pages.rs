//! The pages of a text: equally long, except that no character is divided. The position of a page
//! follows from its number, so that a page is read from a file without what is before it.

use std::ops::Range;

/// Length of a page, in bytes.
pub(super) const PAGE_BYTES: usize = 6000;

/// Number of bytes of a character after its first.
const MAX_CONTINUATION: usize = 3;

/// Returns the number of pages of a text of this length.
pub(super) fn page_count(length: usize) -> usize {
    length.div_ceil(PAGE_BYTES).max(1)
}

/// Returns the part of a text that has to be read for a page, counted from 1; `None` if there is no
/// such page.
pub(super) fn page_window(length: usize, page: usize) -> Option<Range<usize>> {
    if page == 0 || page > page_count(length) {
        return None;
    }
    let start = (page - 1) * PAGE_BYTES;
    let end = length.min(start + PAGE_BYTES + 1);
    Some(start.saturating_sub(MAX_CONTINUATION)..end)
}

/// Returns the text of a page from its window in a text of this length.
pub(super) fn page_in_window(window: &[u8], length: usize, page: usize) -> String {
    let nominal = (page - 1) * PAGE_BYTES;
    let before = nominal - nominal.saturating_sub(MAX_CONTINUATION);
    let start = boundary(window, before);
    let end = match length.min(nominal + PAGE_BYTES) {
        end if end == length => window.len(),
        end => boundary(window, end - nominal + before),
    };
    let part = window.get(start..end).unwrap_or_default();
    String::from_utf8_lossy(part).into_owned()
}

/// Returns the last position up to `at` at which a character begins.
fn boundary(window: &[u8], mut at: usize) -> usize {
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    while at > 0 && window.get(at).is_some_and(continues) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(text: &str, number: usize) -> Option<String> {
        let window = page_window(text.len(), number)?;
        Some(page_in_window(&text.as_bytes()[window], text.len(), number))
    }

    proptest! {
        #[test]
        fn all_pages_together_are_the_text(
            parts in proptest::collection::vec(("[\\PC\n]{1,4}", 1..4000_usize), 0..4),
        ) {
            let repeated = parts.iter().map(|(part, times)| part.repeat(*times));
            let text: String = repeated.collect();
            let pages: Vec<String> = (1..).map_while(|number| page(&text, number)).collect();
            prop_assert_eq!(pages.len(), page_count(text.len()));
            prop_assert!(pages.iter().all(|page| page.len() <= PAGE_BYTES + MAX_CONTINUATION));
            prop_assert_eq!(pages.concat(), text);
        }
    }

    #[test]
    fn there_is_no_page_before_the_first_or_after_the_last() {
        assert_eq!(page("text", 0), None);
        assert_eq!(page("text", 1).as_deref(), Some("text"));
        assert_eq!(page("text", 2), None);
        assert_eq!(page("text", usize::MAX), None);
    }
}
