//! What texts are about, as directions: those that are about the same point about the same way, also where they
//! have no word in common.
//!
//! The vectors of words are a table that the feature `meaning` builds in: `NOTICE` says where it is from,
//! `tools/vectors` makes it. Without the feature it is empty, and no text has a direction.

use std::{cmp::Ordering, sync::Arc};

#[cfg(feature = "meaning")]
pub(super) const TABLE: &[u8] = include_bytes!("vectors.bin");
#[cfg(not(feature = "meaning"))]
pub(super) const TABLE: &[u8] = &[];

/// What a token begins with that goes on a word.
const CONTINUED: &str = "##";
/// In bytes. What is longer is no word, and would take long.
const MAX_WORD_BYTES: usize = 64;

/// Tokens and their vectors. A token is a word or a part of one. The table is used as it lies in the file,
/// all in little-endian order:
///
/// - how many tokens there are, how many dimensions, and how long the tokens are together, each a `u32`;
/// - where each token ends, a `u32` each; then the tokens, in ascending order;
/// - for each token the `f32` that its numbers are multiplied with;
/// - for each token its numbers, an `i8` for each dimension.
pub(super) struct Meaning {
    ends: &'static [[u8; 4]],
    tokens: &'static [u8],
    scales: &'static [[u8; 4]],
    numbers: &'static [u8],
    dimensions: usize,
}

/// A vector of length one.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    /// In steps, so that it takes little memory.
    parts: Arc<[i8]>,
    step: f32,
}

impl Meaning {
    /// `None` where it is not such a table.
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

    /// The tokens that make a word, each the longest that fits; none where there are no such.
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
            rest.replace_range(..end, CONTINUED);
            first = CONTINUED.len();
        }
        tokens.into()
    }

    /// Adds the vectors of tokens to a sum, which begins empty.
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

impl Direction {
    /// Where these sums of vectors point together, with what each counts; `None` where all are empty.
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

    /// The cosine of the angle between the two: 1 for the same direction, about 0 for what has nothing in common.
    pub(super) fn likeness(&self, other: &Self) -> f32 {
        let parts = self.parts.iter().zip(&*other.parts);
        let sum: i32 = parts.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        #[expect(clippy::cast_precision_loss, reason = "it has far fewer than 24 bits")]
        let likeness = sum as f32 * self.step * other.step;
        likeness
    }
}

/// More than nothing.
fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|part| part * part).sum::<f32>().sqrt().max(f32::MIN_POSITIVE)
}

fn number(bytes: [u8; 4]) -> usize {
    u32::from_le_bytes(bytes) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each token with its numbers; to be in ascending order.
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

    fn animals() -> Meaning {
        let rows = [("##fish", [100, 2]), ("car", [1, 100]), ("cat", [100, -3]), ("dog", [90, 4])];
        Meaning::read(table(&rows)).unwrap()
    }

    fn direction(meaning: &Meaning, words: &[&str]) -> Option<Direction> {
        let mut sum = Vec::new();
        for word in words {
            meaning.add(&meaning.tokens(word), &mut sum);
        }
        Direction::of(&[(1.0, &sum)])
    }

    #[test]
    fn what_is_about_the_same_is_alike() {
        let meaning = animals();
        let likeness = |a: &[&str], b: &[&str]| {
            direction(&meaning, a).unwrap().likeness(&direction(&meaning, b).unwrap())
        };
        assert!(likeness(&["cat"], &["dog"]) > 0.98);
        assert!(likeness(&["cat"], &["car"]).abs() < 0.03);
        assert!(likeness(&["catfish"], &["cat", "unheard"]) > 0.98);
        assert!((0.6..0.8).contains(&likeness(&["cat", "car"], &["dog"])));
    }

    #[test]
    fn a_word_that_is_not_made_of_tokens_says_nothing() {
        let meaning = animals();
        for word in ["caravan", "fish", "kät", "日本", ""] {
            assert!(direction(&meaning, &[word]).is_none(), "{word}");
        }
        let empty = Meaning::read(&[]).unwrap();
        assert!(direction(&empty, &["cat"]).is_none());
    }

    #[test]
    fn a_part_of_a_table_is_none() {
        let whole = table(&[("cat", [1, 2])]);
        assert!(Meaning::read(whole).is_some());
        assert!((1..whole.len()).all(|end| Meaning::read(&whole[..end]).is_none()));
    }

    #[test]
    fn the_table_that_is_built_in_can_be_read() {
        let meaning = Meaning::read(TABLE).unwrap();
        assert_eq!(direction(&meaning, &["folder"]).is_some(), cfg!(feature = "meaning"));
    }
}
