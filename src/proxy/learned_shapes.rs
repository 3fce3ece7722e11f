//! The shapes of results, as far as calls have shown them.

use indexmap::IndexMap;
use serde_json::Value;

use super::instance::Instance;
use crate::{base::Lock, script::ResultShape};

/// Number of results of a tool from which its shape is learned.
const MAX_SAMPLES: usize = 5;
/// Maximum number of tools whose shapes are kept.
const MAX_TOOLS: usize = 1000;
/// Number of places above which a shape is forgotten: it says too little for its size.
const MAX_PLACES: usize = 500;

/// The shapes by instance and tool, the oldest first. Names of members can tell of a user's data,
/// so that hosts with instances of their own do not share them.
#[derive(Default)]
pub(super) struct LearnedShapes(Lock<IndexMap<(Instance, String), Learned>>);

#[derive(Default)]
struct Learned {
    samples: usize,
    shape: ResultShape,
}

impl LearnedShapes {
    /// Returns whether more results of a tool are needed.
    pub(super) fn wants(&self, instance: Instance, tool: &str) -> bool {
        let all = self.0.lock();
        let learned = all.get(&(instance, tool.to_owned()));
        learned.is_none_or(|learned| learned.samples < MAX_SAMPLES)
    }

    pub(super) fn learn(&self, instance: Instance, tool: &str, value: &Value) {
        let mut all = self.0.lock();
        let learned = all.entry((instance, tool.to_owned())).or_default();
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
    pub(super) fn of(&self, instance: Instance, tool: &str) -> Option<ResultShape> {
        let all = self.0.lock();
        let shape = &all.get(&(instance, tool.to_owned()))?.shape;
        (*shape != ResultShape::default()).then(|| shape.clone())
    }
}
