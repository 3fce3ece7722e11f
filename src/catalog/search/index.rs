//! The search index of a snapshot: all documents, by their words and by their meaning.

use std::{collections::HashMap, sync::Arc};

use super::{
    IndexedOffer, IndexedTools, SearchHit, SearchTarget,
    language::LANGUAGE,
    lexicon::Lexicon,
    meaning::TextMeaning,
    phrase::Phrase,
    postings::{Posting, Postings, as_number},
    query::{QueryTerm, SearchQuery, TermCandidate},
    search_name::{NameMatch, SearchName},
    server_documents::{DocumentField, FIELDS, PerField, ServerDocuments},
};
use crate::catalog::ToolRef;

/// The weight of a word in each field, in the order of `FIELDS`. The fields that all tools of a
/// server share only decide between servers.
const FIELD_WEIGHTS: PerField<f32> = [5.0, 3.0, 2.0, 1.0, 1.0, 0.5, 0.25];
/// The influence of a field's relative length on the weight of its words (`b` in BM25F).
const LENGTH_INFLUENCE: f32 = 0.6;
/// The weight of equal meaning, relative to a match of all words.
const MEANING_WEIGHT: f32 = 0.4;
/// The bonus for a tool whose server the query names. It decides between services that do the same.
const SERVER_NAME_BONUS: f32 = 0.15;
/// Minimum likeness of two meanings. Below it, texts have nothing in common.
const MIN_LIKENESS: f32 = 0.1;

/// The part of the index that is searched.
type Within<'a> = dyn Fn(SearchTarget) -> bool + 'a;

/// The immutable search index of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct SearchIndex {
    /// The tools and servers in config order; the tools of a server in the order of its catalog.
    entries: Vec<IndexEntry>,
    /// The names of all servers.
    servers: Vec<Phrase>,
    postings: Postings,
}

#[derive(Debug)]
struct IndexEntry {
    target: SearchTarget,
    name: SearchName,
    meaning: Option<TextMeaning>,
    /// `true` if an agent may see the tool, and no other entry stands for it.
    is_found: bool,
}

impl SearchIndex {
    pub(in crate::catalog) fn of(offers: &[IndexedOffer<'_>]) -> Self {
        let mut lexicon = Lexicon::new(&LANGUAGE);
        let all: Vec<Arc<ServerDocuments>> =
            offers.iter().map(|offer| documents(offer, &mut lexicon)).collect();
        let lengths = average_lengths(&all);
        let mut index = Self::default();
        let mut positions = HashMap::new();
        for (position, (offer, documents)) in offers.iter().zip(&all).enumerate() {
            index.servers.push(Phrase::of(offer.name));
            index.add_entries(position, offer, documents);
            index.add_stems(documents, &lengths, &mut positions);
        }
        index.postings.of_stem.iter_mut().for_each(Vec::shrink_to_fit);
        index.postings.positions = positions.into_iter().collect();
        index.postings.entry_count = index.entries.len();
        index
    }

    fn add_entries(
        &mut self,
        position: usize,
        offer: &IndexedOffer<'_>,
        documents: &ServerDocuments,
    ) {
        match &offer.tools {
            IndexedTools::Known { tools, found, .. } => {
                let tools = tools.iter().enumerate();
                let documents = &documents.documents;
                self.entries.extend(tools.zip(documents).map(|((tool, definition), document)| {
                    IndexEntry {
                        target: SearchTarget::Tool(ToolRef { offer: position, tool }),
                        name: SearchName::of_tool(offer.server_name, &definition.name),
                        meaning: document.meaning.clone(),
                        is_found: definition.is_for_model() && found.binary_search(&tool).is_ok(),
                    }
                }));
            }
            IndexedTools::Unknown => {
                let name = SearchName::of_server(offer.name);
                let meaning = documents.documents[0].meaning.clone();
                let target = SearchTarget::Offer(position);
                self.entries.push(IndexEntry { target, name, meaning, is_found: true });
            }
            IndexedTools::None => {}
        }
    }

    /// Adds the stems of the entries that were added last.
    fn add_stems(
        &mut self,
        documents: &ServerDocuments,
        lengths: &PerField<f32>,
        positions: &mut HashMap<Arc<str>, usize>,
    ) {
        let stems = documents.stems.iter();
        let positions: Vec<usize> = stems
            .map(|stem| {
                *positions.entry(stem.clone()).or_insert_with(|| {
                    self.postings.of_stem.push(Vec::new());
                    self.postings.of_stem.len() - 1
                })
            })
            .collect();
        let first = self.entries.len() - documents.documents.len();
        for (entry, document) in (first..).zip(&documents.documents) {
            let entry = u32::try_from(entry).expect("fewer tools than that fit into memory");
            for (stem, counts) in &document.stems {
                let (weight, field) = weight_of(*counts, document.lengths, lengths);
                self.postings.of_stem[positions[*stem as usize]].push(Posting {
                    entry,
                    weight,
                    field,
                });
            }
        }
    }

    /// Returns the best results for `query`, best first.
    pub(in crate::catalog) fn search(
        &self,
        query: &str,
        within: &Within<'_>,
        limit: usize,
    ) -> Vec<SearchHit> {
        self.find(&SearchQuery::of(query, &self.postings), within, limit)
    }

    /// As `search`, by words only.
    pub(in crate::catalog) fn search_words(
        &self,
        query: &str,
        within: &Within<'_>,
        limit: usize,
    ) -> Vec<SearchHit> {
        let query = SearchQuery { meaning: None, ..SearchQuery::of(query, &self.postings) };
        self.find(&query, within, limit)
    }

    fn find(&self, query: &SearchQuery<'_>, within: &Within<'_>, limit: usize) -> Vec<SearchHit> {
        let mut scores = self.scores_by_words(query);
        let named: Vec<bool> =
            self.servers.iter().map(|server| query.phrase.mentions(server)).collect();
        for (score, entry) in scores.iter_mut().zip(&self.entries) {
            *score += MEANING_WEIGHT * likeness(entry.meaning.as_ref(), query).unwrap_or(0.0);
            *score += if named[entry.target.offer()] { SERVER_NAME_BONUS } else { 0.0 };
            *score += entry.name.matched_by(&query.phrase).map_or(0.0, NameMatch::score);
        }
        let is_within = |entry: &IndexEntry| entry.is_found && within(entry.target);
        let mut found: Vec<(usize, f32)> = scores.into_iter().enumerate().collect();
        found.retain(|(entry, score)| *score > 0.0 && is_within(&self.entries[*entry]));
        // The sort is stable, so that equal scores keep config order.
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.keep_a_server(&mut found, limit);
        let found = found.into_iter();
        found
            .map(|(entry, score)| SearchHit {
                target: self.entries[entry].target,
                score,
                reasons: self.reasons(entry, query),
            })
            .collect()
    }

    /// Truncates the results to `limit`. The best of the servers whose tools are not known is
    /// always included: it may have exactly the tool that the user wants.
    fn keep_a_server(&self, found: &mut Vec<(usize, f32)>, limit: usize) {
        let is_server = |(entry, _): &&(usize, f32)| {
            matches!(self.entries[*entry].target, SearchTarget::Offer(_))
        };
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

    /// Returns for each entry the share of the query's words that it contains, between 0 and 1.
    fn scores_by_words(&self, query: &SearchQuery<'_>) -> Vec<f32> {
        let mut scores = vec![0.0; self.entries.len()];
        let all = query.rarity();
        for term in &query.terms {
            // Only the best candidate for a word counts for each entry.
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

    fn reasons(&self, entry: usize, query: &SearchQuery<'_>) -> Vec<String> {
        let IndexEntry { target, name, meaning, .. } = &self.entries[entry];
        let mut evidence: Vec<(f32, String)> =
            query.terms.iter().filter_map(|term| evidence(term, entry)).collect();
        if let Some(likeness) = likeness(meaning.as_ref(), query) {
            let score = MEANING_WEIGHT * likeness * query.rarity();
            evidence.push((score, format!("meaning: {likeness:.2}")));
        }
        if query.phrase.mentions(&self.servers[target.offer()]) {
            evidence.push((SERVER_NAME_BONUS * query.rarity(), "its server's name".to_owned()));
        }
        evidence.sort_by(|a, b| b.0.total_cmp(&a.0));
        let named = name.matched_by(&query.phrase).map(|matched| matched.reason().to_owned());
        named.into_iter().chain(evidence.into_iter().map(|(_, reason)| reason)).collect()
    }
}

/// Returns the likeness of a query's and a tool's meaning, if both are known and the likeness is
/// not accidental.
fn likeness(meaning: Option<&TextMeaning>, query: &SearchQuery<'_>) -> Option<f32> {
    let likeness = query.meaning.as_ref()?.likeness(meaning?);
    (likeness >= MIN_LIKENESS).then_some(likeness)
}

/// Returns the contribution of a term to the score of an entry, and the reason for it.
fn evidence(term: &QueryTerm<'_>, entry: usize) -> Option<(f32, String)> {
    let of_entry = |candidate: &TermCandidate<'_>| {
        let at = candidate.postings.binary_search_by_key(&entry, |posting| posting.entry as usize);
        let posting = candidate.postings[at.ok()?];
        let score = candidate.worth * posting.saturated();
        Some((score, format!("{}: {}", posting.field.name(), candidate.stem)))
    };
    term.candidates.iter().filter_map(of_entry).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Returns the documents of a server. Those of known tools are created once for each catalog.
fn documents(offer: &IndexedOffer<'_>, lexicon: &mut Lexicon<'_>) -> Arc<ServerDocuments> {
    match &offer.tools {
        IndexedTools::Known { tools, documents, .. } => documents
            .get_or_init(|| Arc::new(ServerDocuments::of_tools(offer, tools, lexicon)))
            .clone(),
        IndexedTools::Unknown => Arc::new(ServerDocuments::of_offer(offer, lexicon)),
        IndexedTools::None => Arc::default(),
    }
}

fn average_lengths(all: &[Arc<ServerDocuments>]) -> PerField<f32> {
    let mut sums = PerField::default();
    for document in all.iter().flat_map(|documents| &documents.documents) {
        for (sum, length) in sums.iter_mut().zip(document.lengths) {
            *sum += f32::from(length);
        }
    }
    let count: usize = all.iter().map(|documents| documents.documents.len()).sum();
    sums.map(|sum: f32| (sum / as_number(count.max(1))).max(1.0))
}

/// Returns the weight of a word in a document according to BM25F, and the field that contributes
/// most of it.
fn weight_of(
    counts: PerField<u8>,
    lengths: PerField<u16>,
    average: &PerField<f32>,
) -> (f32, DocumentField) {
    let mut sum = 0.0;
    let mut most = (0.0, DocumentField::Name);
    for (at, field) in FIELDS.into_iter().enumerate() {
        let relative = f32::from(lengths[at]) / average[at];
        let weight = FIELD_WEIGHTS[at] * f32::from(counts[at])
            / (1.0 - LENGTH_INFLUENCE + LENGTH_INFLUENCE * relative);
        sum += weight;
        if weight > most.0 {
            most = (weight, field);
        }
    }
    (sum, most.1)
}
