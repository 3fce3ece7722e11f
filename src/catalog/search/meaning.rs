//! The meanings of texts as vectors: texts of similar meaning have similar directions, even if they
//! share no word.
//!
//! The vectors of words are a table that the feature `meaning` compiles in. `NOTICE` names its
//! origin, and `tools/vectors` creates it. Without the feature the table is empty, and no text has
//! a meaning.

use std::{cmp::Ordering, sync::Arc};

#[cfg(feature = "meaning")]
pub(super) const VECTOR_TABLE: &[u8] = include_bytes!("vectors.bin");
#[cfg(not(feature = "meaning"))]
pub(super) const VECTOR_TABLE: &[u8] = &[];

/// The prefix of a token that continues a word.
const CONTINUATION_PREFIX: &str = "##";
/// Maximum length of a word, in bytes. Anything longer is not a word, and would take long to split.
const MAX_WORD_BYTES: usize = 64;

/// Tokens and their vectors. A token is a word or a part of a word. The table is used in the format
/// of the file, in which all numbers are little-endian:
///
/// - the number of tokens, the number of dimensions, and the total length of the tokens, each a
///   `u32`;
/// - the end of each token, each a `u32`, and then the tokens in ascending order;
/// - for each token an `f32`, by which its numbers are multiplied;
/// - for each token an `i8` for each dimension.
pub(super) struct WordVectors {
    ends: &'static [[u8; 4]],
    tokens: &'static [u8],
    scales: &'static [[u8; 4]],
    numbers: &'static [u8],
    dimensions: usize,
}

/// A vector of length one.
#[derive(Clone, Debug)]
pub(super) struct TextMeaning {
    /// The components in multiples of `step`, which takes little memory.
    parts: Arc<[i8]>,
    step: f32,
}

impl WordVectors {
    /// Reads a table. Returns `None` if its format is invalid.
    pub(super) fn read(table: &'static [u8]) -> Option<Self> {
        if table.is_empty() {
            return Some(Self { ends: &[], tokens: &[], scales: &[], numbers: &[], dimensions: 0 });
        }
        let (head, rest) = table.split_at_checked(12)?;
        let [count, dimensions, length] = head.as_chunks().0 else { return None };
        let [count, dimensions, length] = [count, dimensions, length].map(|bytes| number(*bytes));
        let (ends, rest) = rest.split_at_checked(count.checked_mul(4)?)?;
        let (tokens, rest) = rest.split_at_checked(length)?;
        let (scales, numbers) = rest.split_at_checked(count.checked_mul(4)?)?;
        let is_whole = numbers.len() == count.checked_mul(dimensions)?;
        let (ends, scales) = (ends.as_chunks().0, scales.as_chunks().0);
        is_whole.then_some(Self { ends, tokens, scales, numbers, dimensions })
    }

    /// Splits a word into tokens, each the longest that fits. Returns no tokens if the word cannot
    /// be split into known tokens.
    pub(super) fn tokens(&self, word: &str) -> Box<[u32]> {
        let mut tokens = Vec::new();
        let mut rest = word.to_owned();
        let mut first = 0;
        if self.ends.is_empty() || word.len() > MAX_WORD_BYTES {
            return Box::default();
        }
        while first < rest.len() {
            let find = |end| Some((end, self.find(rest.as_bytes().get(..end)?)?));
            let Some((end, token)) = (first + 1..=rest.len()).rev().find_map(find) else {
                return Box::default();
            };
            tokens.push(token);
            rest.replace_range(..end, CONTINUATION_PREFIX);
            first = CONTINUATION_PREFIX.len();
        }
        tokens.into()
    }

    /// Adds the vectors of tokens to `sum`, which is empty at first.
    pub(super) fn add(&self, tokens: &[u32], sum: &mut Vec<f32>) {
        for token in tokens.iter().map(|token| *token as usize) {
            sum.resize(self.dimensions, 0.0);
            let scale = f32::from_le_bytes(self.scales[token]);
            let numbers = &self.numbers[token * self.dimensions..][..self.dimensions];
            for (sum, number) in sum.iter_mut().zip(numbers) {
                *sum += scale * f32::from(number.cast_signed());
            }
        }
    }

    fn find(&self, token: &[u8]) -> Option<u32> {
        let (mut from, mut to) = (0, self.ends.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            let start = middle.checked_sub(1).map_or(0, |before| number(self.ends[before]));
            match self.tokens.get(start..number(self.ends[middle]))?.cmp(token) {
                Ordering::Equal => return u32::try_from(middle).ok(),
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
            }
        }
        None
    }
}

impl TextMeaning {
    /// Returns the direction of the weighted sum of these vectors, each scaled to length one, or
    /// `None` if all are empty.
    pub(super) fn of(sums: &[(f32, &[f32])]) -> Option<Self> {
        let mut whole: Vec<f32> = Vec::new();
        for (weight, sum) in sums.iter().filter(|(weight, sum)| *weight > 0.0 && !sum.is_empty()) {
            whole.resize(sum.len(), 0.0);
            let weight = weight / length(sum);
            for (whole, part) in whole.iter_mut().zip(*sum) {
                *whole += weight * part;
            }
        }
        let largest = whole.iter().fold(f32::MIN_POSITIVE, |most, part| most.max(part.abs()));
        let step = largest / f32::from(i8::MAX);
        #[expect(clippy::cast_possible_truncation, reason = "no part is more than the largest")]
        let parts = whole.iter().map(|part| (part / step).round() as i8).collect();
        (!whole.is_empty()).then(|| Self { parts, step: step / length(&whole) })
    }

    /// Returns the cosine of the angle between the two vectors: 1 for the same direction, about 0
    /// for unrelated texts.
    pub(super) fn likeness(&self, other: &Self) -> f32 {
        let parts = self.parts.iter().zip(&*other.parts);
        let sum: i32 = parts.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        #[expect(clippy::cast_precision_loss, reason = "it has far fewer than 24 bits")]
        let likeness = sum as f32 * self.step * other.step;
        likeness
    }
}

/// Returns the length of a vector, which is never zero.
fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|part| part * part).sum::<f32>().sqrt().max(f32::MIN_POSITIVE)
}

fn number(bytes: [u8; 4]) -> usize {
    u32::from_le_bytes(bytes) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes tokens with their numbers as a table. The tokens must be in ascending order.
    fn table(rows: &[(&str, [i8; 2])]) -> &'static [u8] {
        let tokens: String = rows.iter().map(|(token, _)| *token).collect();
        let ends = rows.iter().scan(0, |end, (token, _)| {
            *end += token.len();
            Some(*end)
        });
        let head = [rows.len(), 2, tokens.len()].into_iter().chain(ends);
        let mut table: Vec<u8> =
            head.flat_map(|number| u32::try_from(number).unwrap().to_le_bytes()).collect();
        table.extend(tokens.bytes());
        table.extend(rows.iter().flat_map(|_| 0.5_f32.to_le_bytes()));
        table.extend(rows.iter().flat_map(|(_, numbers)| numbers.map(i8::cast_unsigned)));
        table.leak()
    }

    fn animals() -> WordVectors {
        let rows = [("##fish", [100, 2]), ("car", [1, 100]), ("cat", [100, -3]), ("dog", [90, 4])];
        WordVectors::read(table(&rows)).unwrap()
    }

    fn meaning_of(vectors: &WordVectors, words: &[&str]) -> Option<TextMeaning> {
        let mut sum = Vec::new();
        for word in words {
            vectors.add(&vectors.tokens(word), &mut sum);
        }
        TextMeaning::of(&[(1.0, &sum)])
    }

    #[test]
    fn similar_words_have_similar_meanings() {
        let vectors = animals();
        let likeness = |a: &[&str], b: &[&str]| {
            meaning_of(&vectors, a).unwrap().likeness(&meaning_of(&vectors, b).unwrap())
        };
        assert!(likeness(&["cat"], &["dog"]) > 0.98);
        assert!(likeness(&["cat"], &["car"]).abs() < 0.03);
        assert!(likeness(&["catfish"], &["cat", "unheard"]) > 0.98);
        assert!((0.6..0.8).contains(&likeness(&["cat", "car"], &["dog"])));
    }

    #[test]
    fn a_word_without_known_tokens_has_no_meaning() {
        let vectors = animals();
        for word in ["caravan", "fish", "kät", "日本", ""] {
            assert!(meaning_of(&vectors, &[word]).is_none(), "{word}");
        }
        let empty = WordVectors::read(&[]).unwrap();
        assert!(meaning_of(&empty, &["cat"]).is_none());
    }

    #[test]
    fn a_truncated_table_is_rejected() {
        let whole = table(&[("cat", [1, 2])]);
        assert!(WordVectors::read(whole).is_some());
        assert!((1..whole.len()).all(|end| WordVectors::read(&whole[..end]).is_none()));
    }

    #[test]
    fn the_built_in_table_can_be_read() {
        let vectors = WordVectors::read(VECTOR_TABLE).unwrap();
        assert_eq!(meaning_of(&vectors, &["folder"]).is_some(), cfg!(feature = "meaning"));
    }
}
