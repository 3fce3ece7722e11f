//! All documents of a snapshot, by the words that are in them.

use std::{collections::HashMap, sync::Arc};

use super::{
    Found, LANGUAGE, Match,
    document::{Document, Documents, FIELDS, Field},
    words,
};
use crate::catalog::{Presence, ServerView, Snapshot, ToolRef};

/// How much a word counts in each field, and how much the length of the field takes from that (BM25F's `b`).
/// In the order of `FIELDS`.
const WEIGHTS: [f32; FIELDS.len()] = [5.0, 3.0, 2.0, 1.0, 0.5, 1.5, 0.5];
const LENGTH: [f32; FIELDS.len()] = [0.5, 0.5, 0.6, 0.5, 0.75, 0.0, 0.5];
/// How soon more of the same word counts no more (BM25's `k1`).
const SATURATION: f32 = 1.5;
/// What a synonym of a word counts, beside the word itself.
const SYNONYM: f32 = 0.35;
/// What a word of the index counts that only begins like one of the query, or differs by a letter.
const NEAR: f32 = 0.5;
/// Above all that words can come to.
const EXACT_NAME: f32 = 1000.0;
const NEAR_NAME: f32 = 500.0;
/// How alike a name is that is meant all the same (Jaro-Winkler).
const ALIKE: f64 = 0.93;

/// Immutable; of one snapshot.
#[derive(Debug)]
pub struct Index {
    entries: Vec<Entry>,
    postings: HashMap<Arc<str>, Vec<Posting>>,
    average: [f32; FIELDS.len()],
}

#[derive(Debug)]
struct Entry {
    what: Match,
    server: usize,
    /// Its name, and its name with the server's, as somebody would say them.
    names: [String; 2],
    lengths: [u16; FIELDS.len()],
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    entry: u32,
    counts: [u16; FIELDS.len()],
}

impl Index {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let mut index =
            Self { entries: Vec::new(), postings: HashMap::new(), average: [0.0; FIELDS.len()] };
        for (server, view) in snapshot.servers.iter().enumerate() {
            match (view.exposed(), &view.presence) {
                (Some(exposed), _) => {
                    let documents = exposed
                        .documents
                        .get_or_init(|| Documents::of(view, exposed, &LANGUAGE.words));
                    let tools = exposed.catalog.tools.iter().zip(&documents.0).enumerate();
                    for (tool, (definition, document)) in tools {
                        let what = Match::Tool(ToolRef { server, tool });
                        index.add(what, server, names(view, &definition.name), document);
                    }
                }
                (None, Presence::Offered { .. }) => {
                    let document = Document::of_server(view, &LANGUAGE.words);
                    index.add(Match::Server(server), server, names(view, ""), &document);
                }
                _ => {}
            }
        }
        let count = as_number(index.entries.len().max(1));
        for (field, average) in index.average.iter_mut().enumerate() {
            let all: f32 = index.entries.iter().map(|entry| f32::from(entry.lengths[field])).sum();
            *average = (all / count).max(1.0);
        }
        index
    }

    fn add(&mut self, what: Match, server: usize, names: [String; 2], document: &Document) {
        let entry = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(Entry { what, server, names, lengths: document.lengths });
        for (stem, counts) in &document.counts {
            let posting = Posting { entry, counts: *counts };
            match self.postings.get_mut(stem) {
                Some(postings) => postings.push(posting),
                None => {
                    self.postings.insert(stem.clone(), vec![posting]);
                }
            }
        }
    }

    pub(super) fn search(&self, query: &str, within: Option<usize>, limit: usize) -> Vec<Found> {
        let mut scores = Scores::new(self.entries.len());
        let mut stems = LANGUAGE.words.stems(query);
        let mut seen = std::collections::HashSet::new();
        stems.retain(|stem| seen.insert(stem.clone()));
        for stem in &stems {
            self.weigh(stem, &stems, &mut scores);
        }
        self.weigh_names(query, &mut scores);
        let mut found: Vec<(f32, usize)> = scores
            .sums
            .iter()
            .enumerate()
            .filter(|(entry, score)| {
                **score > 0.0 && within.is_none_or(|within| self.entries[*entry].server == within)
            })
            .map(|(entry, score)| (*score, entry))
            .collect();
        // Stable, so that equal ones stay in config order.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(limit);
        let found = found.into_iter();
        found
            .map(|(score, entry)| Found {
                what: self.entries[entry].what,
                score,
                reasons: scores.reasons_for(entry),
            })
            .collect()
    }

    /// Counts a word of the query, and what may stand for it. Each document is given the best of them.
    fn weigh(&self, stem: &str, query: &[String], scores: &mut Scores) {
        let mut best: HashMap<u32, Evidence> = HashMap::new();
        let synonyms = LANGUAGE.synonyms.of(stem).iter();
        // A synonym that is said itself counts as itself.
        let synonyms = synonyms.filter(|synonym| !query.contains(synonym));
        let mut candidates: Vec<(&str, f32)> = vec![(stem, 1.0)];
        candidates.extend(synonyms.map(|synonym| (synonym.as_str(), SYNONYM)));
        if !self.postings.contains_key(stem) {
            candidates.extend(self.near(stem).into_iter().map(|near| (near, NEAR)));
        }
        for (candidate, worth) in candidates {
            let Some((word, postings)) = self.postings.get_key_value(candidate) else { continue };
            let rarity = self.rarity(postings.len());
            for posting in postings {
                let (weight, field) = self.weight_of(posting);
                let score = worth * rarity * weight * (SATURATION + 1.0) / (SATURATION + weight);
                let evidence = Evidence { score, field, word: word.clone() };
                let known = best.entry(posting.entry).or_insert_with(|| evidence.clone());
                if score > known.score {
                    *known = evidence;
                }
            }
        }
        for (entry, evidence) in best {
            scores.add(entry as usize, evidence);
        }
    }

    /// BM25F's weight of a word in a document, and the field that gives most of it.
    fn weight_of(&self, posting: &Posting) -> (f32, Field) {
        let lengths = &self.entries[posting.entry as usize].lengths;
        let mut sum = 0.0;
        let mut most = (0.0, Field::Name);
        for (at, field) in FIELDS.into_iter().enumerate() {
            let relative = f32::from(lengths[at]) / self.average[at];
            let weight = WEIGHTS[at] * f32::from(posting.counts[at])
                / (1.0 - LENGTH[at] + LENGTH[at] * relative);
            sum += weight;
            if weight > most.0 {
                most = (weight, field);
            }
        }
        (sum, most.1)
    }

    /// A word that stands in `count` documents tells the more the fewer they are.
    fn rarity(&self, count: usize) -> f32 {
        let (all, count) = (as_number(self.entries.len()), as_number(count));
        (1.0 + (all - count + 0.5) / (count + 0.5)).ln()
    }

    /// Words of the index that may be meant by one that is not in it: with another ending, or misspelt.
    fn near(&self, stem: &str) -> Vec<&str> {
        const SHORTEST: usize = 4;
        if stem.chars().count() < SHORTEST {
            return Vec::new();
        }
        let is_near = |word: &str| {
            word.chars().count() >= SHORTEST
                && (word.starts_with(stem)
                    || stem.starts_with(word)
                    || strsim::osa_distance(word, stem) <= 1)
        };
        let mut near: Vec<&str> =
            self.postings.keys().map(AsRef::as_ref).filter(|word| is_near(word)).collect();
        near.sort_unstable();
        near
    }

    /// A name that is said exactly, or nearly, comes before whatever has the same words.
    fn weigh_names(&self, query: &str, scores: &mut Scores) {
        let said = words::split(query).join(" ");
        if said.is_empty() {
            return;
        }
        let is_name = said.split(' ').count() <= 8;
        for (at, entry) in self.entries.iter().enumerate().filter(|_| is_name) {
            let score = if entry.names.contains(&said) {
                EXACT_NAME
            } else if entry.names.iter().any(|name| is_alike(name, &said)) {
                NEAR_NAME
            } else {
                continue;
            };
            let what = if score >= EXACT_NAME { "its name" } else { "nearly its name" };
            scores.add(at, Evidence { score, field: Field::Name, word: what.into() });
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of tools has far fewer than 24 bits")]
fn as_number(count: usize) -> f32 {
    count as f32
}

/// Names of about the same length that differ by little.
fn is_alike(name: &str, said: &str) -> bool {
    name.len().abs_diff(said.len()) <= 3 && strsim::jaro_winkler(name, said) >= ALIKE
}

fn names(view: &ServerView, tool: &str) -> [String; 2] {
    let said = |text: &str| words::split(text).join(" ");
    let whole = said(&format!("{} {tool}", view.name));
    [if tool.is_empty() { whole.clone() } else { said(tool) }, whole]
}

/// Why a document has some of its score.
#[derive(Clone, Debug)]
struct Evidence {
    score: f32,
    field: Field,
    word: Arc<str>,
}

struct Scores {
    sums: Vec<f32>,
    evidence: HashMap<usize, Vec<Evidence>>,
}

impl Scores {
    fn new(entries: usize) -> Self {
        Self { sums: vec![0.0; entries], evidence: HashMap::new() }
    }

    fn add(&mut self, entry: usize, evidence: Evidence) {
        self.sums[entry] += evidence.score;
        self.evidence.entry(entry).or_default().push(evidence);
    }

    fn reasons_for(&mut self, entry: usize) -> Vec<String> {
        let mut evidence = self.evidence.remove(&entry).unwrap_or_default();
        evidence.sort_by(|a, b| b.score.total_cmp(&a.score));
        evidence.iter().map(|why| format!("{}: {}", why.field.name(), why.word)).collect()
    }
}
