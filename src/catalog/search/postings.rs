//! The stems of all documents, and the entries that contain each.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use super::server_documents::DocumentField;

/// The weight at which further occurrences of a word begin to count less (`k1` in BM25).
const SATURATION: f32 = 3.0;

/// The occurrence of a stem in an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    pub(super) entry: u32,
    /// The weight according to BM25F, over all fields.
    pub(super) weight: f32,
    /// The field that contributes most of the weight.
    pub(super) field: DocumentField,
}

impl Posting {
    /// Returns the weight scaled to a number between 0 and 1.
    pub(super) fn saturated(self) -> f32 {
        self.weight / (SATURATION + self.weight)
    }
}

/// The occurrences of all stems.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// The position of each stem in `of_stem`.
    pub(super) positions: BTreeMap<Arc<str>, usize>,
    /// For each stem the entries that contain it, in their order.
    pub(super) of_stem: Vec<Vec<Posting>>,
    pub(super) entry_count: usize,
}

impl Postings {
    pub(super) fn postings(&self, stem: &str) -> &[Posting] {
        self.positions.get(stem).map_or(&[], |position| &self.of_stem[*position])
    }

    /// Returns the stems that begin with the same letter.
    pub(super) fn stems_like(&self, stem: &str) -> impl Iterator<Item = &str> {
        let first = stem.chars().next().map(String::from).unwrap_or_default();
        let from =
            self.positions.range::<str, _>((Bound::Included(first.as_str()), Bound::Unbounded));
        from.map(|(stem, _)| stem.as_ref()).take_while(move |stem| stem.starts_with(&first))
    }

    /// Returns the weight of a word that occurs in `count` documents: the fewer documents, the
    /// higher the weight.
    pub(super) fn rarity(&self, count: usize) -> f32 {
        let (all, count) = (as_number(self.entry_count), as_number(count));
        (1.0 + (all - count + 0.5) / (count + 0.5)).ln()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of tools has far fewer than 24 bits")]
pub(super) fn as_number(count: usize) -> f32 {
    count as f32
}
