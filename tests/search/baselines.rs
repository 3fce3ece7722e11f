//! Simple search methods for comparison: occurrences of the request's words, and BM25 over all text
//! of a tool, without stop words, stems or fields.

use std::collections::{HashMap, HashSet};

use dormouse::internals::catalog::{Snapshot, ToolRef};
use serde_json::Value;

use crate::BEST;

/// Counts the words of the request that occur in a tool's name and description.
pub struct Substrings {
    tools: Vec<(String, String)>,
}

impl Substrings {
    pub fn new(snapshot: &Snapshot) -> Self {
        let text = |at| {
            let (_, tool) = snapshot.tools().tool(at);
            format!("{} {}", tool.name, tool.description).to_lowercase()
        };
        Self { tools: all(snapshot).map(|at| (snapshot.tools().qualified(at), text(at))).collect() }
    }

    pub fn search(&self, request: &str) -> Vec<String> {
        let words: HashSet<String> = words(request).collect();
        best(self.tools.iter().map(|(name, text)| {
            let found = words.iter().filter(|word| text.contains(word.as_str()));
            (found.map(|_| 1.0).sum(), name)
        }))
    }
}

/// Robertson's BM25 with the usual constants.
pub struct PlainBm25 {
    tools: Vec<(String, HashMap<String, f64>)>,
    /// The number of tools with each word.
    spread: HashMap<String, f64>,
    average: f64,
}

impl PlainBm25 {
    pub fn new(snapshot: &Snapshot) -> Self {
        let (mut tools, mut spread, mut all_words) = (Vec::new(), HashMap::new(), 0.0);
        for at in all(snapshot) {
            let mut counts = HashMap::new();
            for word in words(&text(snapshot, at)) {
                *counts.entry(word).or_default() += 1.0;
            }
            for word in counts.keys() {
                *spread.entry(word.clone()).or_default() += 1.0;
            }
            all_words += counts.values().sum::<f64>();
            tools.push((snapshot.tools().qualified(at), counts));
        }
        let average = all_words / tools.iter().map(|_| 1.0).sum::<f64>();
        Self { tools, spread, average }
    }

    pub fn search(&self, request: &str) -> Vec<String> {
        const SATURATION: f64 = 1.2;
        const LENGTH: f64 = 0.75;
        let all: f64 = self.tools.iter().map(|_| 1.0).sum();
        let words: Vec<String> = words(request).collect();
        best(self.tools.iter().map(|(name, counts)| {
            let length = counts.values().sum::<f64>() / self.average;
            let score = words.iter().filter_map(|word| {
                let (count, spread) = (counts.get(word)?, self.spread.get(word)?);
                let rarity = (1.0 + (all - spread + 0.5) / (spread + 0.5)).ln();
                let norm = SATURATION * (1.0 - LENGTH + LENGTH * length);
                Some(rarity * count * (SATURATION + 1.0) / (count + norm))
            });
            (score.sum(), name)
        }))
    }
}

fn all(snapshot: &Snapshot) -> impl Iterator<Item = ToolRef> {
    snapshot.offers.iter().enumerate().flat_map(|(at, offer)| {
        let tools = offer.exposed().map_or(0, |exposed| exposed.catalog.tools.len());
        (0..tools).map(move |tool| ToolRef { offer: at, tool })
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

/// Returns the text of a tool: of its server, its definition and its parameters.
fn text(snapshot: &Snapshot, at: ToolRef) -> String {
    let (server, tool) = snapshot.tools().tool(at);
    let about = server.description.as_deref().unwrap_or_default();
    let definition = tool.raw.to_value();
    let title = definition["title"].as_str().unwrap_or_default();
    let mut text = format!("{} {about} {} {title} {}", server.name, tool.name, tool.description);
    add_parameters(&mut text, &definition["inputSchema"]);
    text
}

fn add_parameters(text: &mut String, schema: &Value) {
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        let description = parameter["description"].as_str().unwrap_or_default();
        text.push_str(&format!(" {name} {description}"));
        add_parameters(text, parameter);
        add_parameters(text, &parameter["items"]);
    }
}

/// Returns the best tools; of equal ones, the first.
fn best<'a>(scored: impl Iterator<Item = (f64, &'a String)>) -> Vec<String> {
    let mut found: Vec<(f64, &String)> = scored.filter(|(score, _)| *score > 0.0).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(BEST).map(|(_, name)| name.clone()).collect()
}
