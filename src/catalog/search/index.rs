//! All documents of a snapshot, by the words that are in them and by what they are about.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use super::{
    Found, LANGUAGE, Match,
    document::{Documents, FIELDS, Field, PerField},
    lexicon::Lexicon,
    meaning::Direction,
    names::{Name, Named},
    phrase::Phrase,
    query::{Candidate, Query, Term},
};
use crate::catalog::{Presence, ServerView, Snapshot, ToolRef};

/// How much a word counts in each field, in the order of `FIELDS`. What the tools of a server have in common
/// only decides between servers.
const WEIGHTS: PerField<f32> = [5.0, 3.0, 2.0, 1.0, 1.0, 0.5, 0.25];
/// How much a field that is longer than others takes from that (BM25F's `b`).
const LENGTH: f32 = 0.6;
/// How soon more of the same word counts no more (BM25's `k1`).
const SATURATION: f32 = 3.0;
/// What it counts to be about the same, where to have all words counts one.
const MEANING: f32 = 0.4;
/// What it counts that the query names the tool's server: enough to decide between services that do the same.
const SERVER_NAMED: f32 = 0.15;
/// What is less alike has nothing in common.
const MIN_LIKENESS: f32 = 0.1;

/// Immutable; of one snapshot.
#[derive(Debug, Default)]
pub struct Index {
    /// In config order, those of a server in the order of its catalog.
    entries: Vec<Entry>,
    /// The names of all servers.
    servers: Vec<Phrase>,
    /// Where in `postings` a stem's are.
    stems: BTreeMap<Arc<str>, usize>,
    /// In the order of the entries.
    postings: Vec<Vec<Posting>>,
}

#[derive(Debug)]
struct Entry {
    what: Match,
    name: Name,
    direction: Option<Direction>,
    /// Whether an agent may be shown it.
    is_for_model: bool,
}

/// That a stem is in a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    entry: u32,
    /// BM25F's, over all fields.
    weight: f32,
    /// Which gives most of the weight.
    field: Field,
}

impl Posting {
    /// Between 0 and 1.
    fn saturated(self) -> f32 {
        self.weight / (SATURATION + self.weight)
    }
}

impl Index {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let mut lexicon = Lexicon::new(&LANGUAGE);
        let servers = snapshot.servers.iter();
        let all: Vec<Arc<Documents>> = servers.map(|view| documents(view, &mut lexicon)).collect();
        let lengths = average_lengths(&all);
        let mut index = Self::default();
        let mut places = HashMap::new();
        for (server, (view, documents)) in snapshot.servers.iter().zip(&all).enumerate() {
            index.servers.push(Phrase::of(&view.name));
            index.add_entries(server, view, documents);
            index.add_stems(documents, &lengths, &mut places);
        }
        index.postings.iter_mut().for_each(Vec::shrink_to_fit);
        index.stems = places.into_iter().collect();
        index
    }

    fn add_entries(&mut self, server: usize, view: &ServerView, documents: &Documents) {
        match (view.exposed(), &view.presence) {
            (Some(exposed), _) => {
                let tools = exposed.catalog.tools.iter().enumerate();
                let documents = &documents.documents;
                self.entries.extend(tools.zip(documents).map(|((tool, definition), document)| {
                    Entry {
                        what: Match::Tool(ToolRef { server, tool }),
                        name: Name::of_tool(&view.name, &definition.name),
                        direction: document.direction.clone(),
                        is_for_model: definition.is_for_model(),
                    }
                }));
            }
            (None, Presence::Offered { .. }) => {
                let name = Name::of_server(&view.name);
                let direction = documents.documents[0].direction.clone();
                let what = Match::Server(server);
                self.entries.push(Entry { what, name, direction, is_for_model: true });
            }
            _ => {}
        }
    }

    /// Adds the stems of those entries that were added last.
    fn add_stems(
        &mut self,
        documents: &Documents,
        lengths: &PerField<f32>,
        places: &mut HashMap<Arc<str>, usize>,
    ) {
        let stems = documents.stems.iter();
        let places: Vec<usize> = stems
            .map(|stem| {
                *places.entry(stem.clone()).or_insert_with(|| {
                    self.postings.push(Vec::new());
                    self.postings.len() - 1
                })
            })
            .collect();
        let first = self.entries.len() - documents.documents.len();
        for (entry, document) in (first..).zip(&documents.documents) {
            let entry = u32::try_from(entry).expect("fewer tools than that fit into memory");
            for (stem, counts) in &document.stems {
                let (weight, field) = weight_of(*counts, document.lengths, lengths);
                self.postings[places[*stem as usize]].push(Posting { entry, weight, field });
            }
        }
    }

    pub(super) fn search(
        &self,
        query: &Query<'_>,
        within: Option<usize>,
        limit: usize,
    ) -> Vec<Found> {
        let mut scores = self.scores_by_words(query);
        let named: Vec<bool> =
            self.servers.iter().map(|server| query.phrase.mentions(server)).collect();
        for (score, entry) in scores.iter_mut().zip(&self.entries) {
            *score += MEANING * likeness(entry.direction.as_ref(), query).unwrap_or(0.0);
            *score += if named[entry.what.server()] { SERVER_NAMED } else { 0.0 };
            *score += entry.name.named(&query.phrase).map_or(0.0, Named::score);
        }
        let is_within = |entry: &Entry| {
            entry.is_for_model && within.is_none_or(|server| entry.what.server() == server)
        };
        let mut found: Vec<(usize, f32)> = scores.into_iter().enumerate().collect();
        found.retain(|(entry, score)| *score > 0.0 && is_within(&self.entries[*entry]));
        // Stable, so that equal ones stay in config order.
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.keep_a_server(&mut found, limit);
        let found = found.into_iter();
        found
            .map(|(entry, score)| Found {
                what: self.entries[entry].what,
                score,
                reasons: self.reasons(entry, query),
            })
            .collect()
    }

    /// Cuts what was found to `limit`. Of the servers whose tools are not known the best is among them: what it has may
    /// be just what is wanted.
    fn keep_a_server(&self, found: &mut Vec<(usize, f32)>, limit: usize) {
        let is_server =
            |(entry, _): &&(usize, f32)| matches!(self.entries[*entry].what, Match::Server(_));
        let best = found.iter().find(is_server).copied();
        found.truncate(limit);
        if let Some(best) = best
            && limit > 1
            && !found.iter().any(|found| is_server(&found))
        {
            found.pop();
            found.push(best);
        }
    }

    /// How much of what the query says each entry has, between 0 and 1.
    fn scores_by_words(&self, query: &Query<'_>) -> Vec<f32> {
        let mut scores = vec![0.0; self.entries.len()];
        let all = query.rarity();
        for term in &query.terms {
            // Each entry is given the best of what may stand for the word.
            let mut best = vec![0.0_f32; self.entries.len()];
            for candidate in &term.candidates {
                for posting in candidate.postings {
                    let best = &mut best[posting.entry as usize];
                    *best = best.max(candidate.worth * posting.saturated());
                }
            }
            for (score, best) in scores.iter_mut().zip(best) {
                *score += best / all;
            }
        }
        scores
    }

    fn reasons(&self, entry: usize, query: &Query<'_>) -> Vec<String> {
        let Entry { what, name, direction, .. } = &self.entries[entry];
        let mut evidence: Vec<(f32, String)> =
            query.terms.iter().filter_map(|term| evidence(term, entry)).collect();
        if let Some(likeness) = likeness(direction.as_ref(), query) {
            let score = MEANING * likeness * query.rarity();
            evidence.push((score, format!("meaning: {likeness:.2}")));
        }
        if query.phrase.mentions(&self.servers[what.server()]) {
            evidence.push((SERVER_NAMED * query.rarity(), "its server's name".to_owned()));
        }
        evidence.sort_by(|a, b| b.0.total_cmp(&a.0));
        let named = name.named(&query.phrase).map(|named| named.reason().to_owned());
        named.into_iter().chain(evidence.into_iter().map(|(_, reason)| reason)).collect()
    }

    pub(super) fn postings(&self, stem: &str) -> &[Posting] {
        self.stems.get(stem).map_or(&[], |place| &self.postings[*place])
    }

    /// Stems that begin with the same letter.
    pub(super) fn stems_like(&self, stem: &str) -> impl Iterator<Item = &str> {
        let first = stem.chars().next().map(String::from).unwrap_or_default();
        let from = self.stems.range::<str, _>((Bound::Included(first.as_str()), Bound::Unbounded));
        from.map(|(stem, _)| stem.as_ref()).take_while(move |stem| stem.starts_with(&first))
    }

    /// A word that stands in `count` documents tells the more the fewer they are.
    pub(super) fn rarity(&self, count: usize) -> f32 {
        let (all, count) = (as_number(self.entries.len()), as_number(count));
        (1.0 + (all - count + 0.5) / (count + 0.5)).ln()
    }
}

/// How much a query is about what a tool is about, if that is known of both and not by chance.
fn likeness(direction: Option<&Direction>, query: &Query<'_>) -> Option<f32> {
    let likeness = query.direction.as_ref()?.likeness(direction?);
    (likeness >= MIN_LIKENESS).then_some(likeness)
}

/// What a term gives to the score of an entry, and why.
fn evidence(term: &Term<'_>, entry: usize) -> Option<(f32, String)> {
    let of_entry = |candidate: &Candidate<'_>| {
        let at = candidate.postings.binary_search_by_key(&entry, |posting| posting.entry as usize);
        let posting = candidate.postings[at.ok()?];
        let score = candidate.worth * posting.saturated();
        Some((score, format!("{}: {}", posting.field.name(), candidate.stem)))
    };
    term.candidates.iter().filter_map(of_entry).max_by(|a, b| a.0.total_cmp(&b.0))
}

fn documents(view: &ServerView, lexicon: &mut Lexicon<'_>) -> Arc<Documents> {
    match (view.exposed(), &view.presence) {
        (Some(exposed), _) => exposed
            .documents
            .get_or_init(|| Arc::new(Documents::of_tools(view, exposed, lexicon)))
            .clone(),
        (None, Presence::Offered { .. }) => Arc::new(Documents::of_server(view, lexicon)),
        _ => Arc::default(),
    }
}

fn average_lengths(all: &[Arc<Documents>]) -> PerField<f32> {
    let mut sums = PerField::default();
    for document in all.iter().flat_map(|documents| &documents.documents) {
        for (sum, length) in sums.iter_mut().zip(document.lengths) {
            *sum += f32::from(length);
        }
    }
    let count: usize = all.iter().map(|documents| documents.documents.len()).sum();
    sums.map(|sum: f32| (sum / as_number(count.max(1))).max(1.0))
}

/// BM25F's weight of a word in a document, and the field that gives most of it.
fn weight_of(
    counts: PerField<u8>,
    lengths: PerField<u16>,
    average: &PerField<f32>,
) -> (f32, Field) {
    let mut sum = 0.0;
    let mut most = (0.0, Field::Name);
    for (at, field) in FIELDS.into_iter().enumerate() {
        let relative = f32::from(lengths[at]) / average[at];
        let weight = WEIGHTS[at] * f32::from(counts[at]) / (1.0 - LENGTH + LENGTH * relative);
        sum += weight;
        if weight > most.0 {
            most = (weight, field);
        }
    }
    (sum, most.1)
}

#[expect(clippy::cast_precision_loss, reason = "a count of tools has far fewer than 24 bits")]
fn as_number(count: usize) -> f32 {
    count as f32
}
