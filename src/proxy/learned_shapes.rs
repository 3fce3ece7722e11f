//! The shapes of results, as far as calls have shown them.

use indexmap::IndexMap;
use serde_json::Value;

use super::Principal;
use crate::{base::Lock, catalog::ServerId, script::ResultShape};

/// Number of results of a tool from which its shape is learned.
const MAX_SAMPLES: usize = 5;
/// Maximum number of tools whose shapes are kept.
const MAX_TOOLS: usize = 1000;
/// Number of places above which a shape is forgotten: it says too little for its size.
const MAX_PLACES: usize = 500;

/// The shapes, the oldest first.
#[derive(Default)]
pub(super) struct LearnedShapes(Lock<IndexMap<ShapeKey, Learned>>);

/// A tool, and whose results have shown their shape: names of members can be a user's data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShapeKey {
    pub(super) principal: Principal,
    pub(super) server: ServerId,
    pub(super) tool: String,
}

#[derive(Default)]
struct Learned {
    samples: usize,
    shape: ResultShape,
}

impl LearnedShapes {
    /// Returns whether more results of a tool are needed.
    pub(super) fn wants(&self, key: &ShapeKey) -> bool {
        let all = self.0.lock();
        let learned = all.get(key);
        learned.is_none_or(|learned| learned.samples < MAX_SAMPLES)
    }

    pub(super) fn learn(&self, key: ShapeKey, value: &Value) {
        let mut all = self.0.lock();
        let learned = all.entry(key).or_default();
        learned.samples += 1;
        learned.shape.learn(value);
        if learned.shape.places() > MAX_PLACES {
            *learned = Learned { samples: MAX_SAMPLES, shape: ResultShape::default() };
        }
        if all.len() > MAX_TOOLS {
            all.shift_remove_index(0);
        }
    }

    /// Returns the shape of a tool's results; `None` if it is not known.
    pub(super) fn of(&self, key: &ShapeKey) -> Option<ResultShape> {
        let all = self.0.lock();
        let shape = &all.get(key)?.shape;
        (*shape != ResultShape::default()).then(|| shape.clone())
    }
}
