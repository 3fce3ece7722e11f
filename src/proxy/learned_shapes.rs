//! The shapes of results, as far as calls have shown them.

use std::collections::HashMap;

use crate::{base::Lock, catalog::ServerId, script::ResultShape};

/// Number of results of a tool from which its shape is learned.
const MAX_SAMPLES: usize = 5;
/// Maximum number of tools whose shapes are kept.
const MAX_TOOLS: usize = 1000;

/// Number of places above which a shape is forgotten: it says too little for its size.
const MAX_PLACES: usize = 500;

/// The shapes by server and tool.
#[derive(Default)]
pub(super) struct LearnedShapes(Lock<HashMap<(ServerId, String), Learned>>);

#[derive(Default)]
struct Learned {
    samples: usize,
    shape: ResultShape,
}

impl LearnedShapes {
    /// Returns whether more results of a tool are needed.
    pub(super) fn wants(&self, server: ServerId, tool: &str) -> bool {
        let all = self.0.lock();
        match all.get(&(server, tool.to_owned())) {
            Some(learned) => learned.samples < MAX_SAMPLES,
            None => all.len() < MAX_TOOLS,
        }
    }

    pub(super) fn learn(&self, server: ServerId, tool: &str, value: &serde_json::Value) {
        let mut all = self.0.lock();
        let learned = all.entry((server, tool.to_owned())).or_default();
        learned.samples += 1;
        learned.shape.learn(value);
        if learned.shape.places() > MAX_PLACES {
            *learned = Learned { samples: MAX_SAMPLES, shape: ResultShape::default() };
        }
    }

    /// Returns the shape of a tool's results; `None` if it is not known.
    pub(super) fn of(&self, server: ServerId, tool: &str) -> Option<ResultShape> {
        let all = self.0.lock();
        let learned = all.get(&(server, tool.to_owned()));
        let shape = learned.map(|learned| &learned.shape);
        shape.filter(|shape| **shape != ResultShape::default()).cloned()
    }
}
