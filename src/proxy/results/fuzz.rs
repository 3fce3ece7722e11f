//! The laws of kept results for bytes from outside (see `crate::fuzz`).

use super::{
    content::Content,
    kept_result::{KeptResult, MAX_FINDINGS_BYTES},
    preview::{MAX_PREVIEW_BYTES, PreviewRules},
};
use crate::{
    base::FuzzInput,
    surface::{ReadForm, ResultPart},
    wire::{Raw, edit},
};

/// Any result has a bounded preview that is valid JSON; its pages are its text; and every search in
/// it is bounded.
///
/// Arguments: the limit of the result, the form of the preview and the limit of findings; a regular
/// expression; a path. The rest is a result.
pub(crate) fn large_results(bytes: &[u8]) {
    let mut input = FuzzInput::new(bytes);
    let mut choices = input.choices();
    let (pattern, path) = (input.text_line().into_owned(), input.text_line().into_owned());
    let Ok(result) = Raw::parse(bytes::Bytes::copy_from_slice(input.rest())) else { return };
    let rules = PreviewRules {
        limit: choices.number(),
        form: match choices.number() % 4 {
            0 => ReadForm::Listed,
            1 => ReadForm::Grouped,
            2 => ReadForm::Used("use_readonly_tool".to_owned()),
            _ => ReadForm::Resource,
        },
        must_be_structured: choices.one_of(&[false, true]),
    };
    let limit = choices.number() + 1;
    let Some(content) = Content::above(rules.limit, &result) else { return };
    check_preview(&content, &rules.compose(&content, Some("abcdefghijkl")));
    let kept = KeptResult::keep(&content).expect("a short text stays in memory");
    let pages = (1..).map_while(|page| kept.read(&ResultPart::Page(page)).ok());
    assert_eq!(pages.map(|page| page.text).collect::<String>(), content.text);
    for part in [ResultPart::Grep { pattern, limit }, ResultPart::JsonPath { path, limit }] {
        if let Ok(found) = kept.read(&part) {
            assert!(found.text.len() <= MAX_FINDINGS_BYTES, "{part:?}");
        }
    }
}

fn check_preview(content: &Content, preview: &Raw) {
    let media: usize = content.media.iter().map(|block| block.len() + 1).sum();
    assert!(preview.len() <= MAX_PREVIEW_BYTES + media, "{preview:?}");
    assert!(Raw::parse(preview.as_bytes().to_vec()).is_ok(), "{preview:?}");
    let blocks = edit::get(preview, "content").and_then(|content| edit::elements(&content));
    let blocks = blocks.expect("a result has content");
    assert!(blocks.iter().all(|block| edit::get_str(block, "type").is_some()), "{preview:?}");
}
