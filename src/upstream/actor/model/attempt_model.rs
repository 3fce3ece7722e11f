//! The reference model of one attempt: when it opens its connection, and when and how it ends.

use super::scenario::{LOAD_TIMEOUT, Millis, Phased, Plan};
use crate::{protocol::Era, upstream::server_state::model::Failure};

/// An attempt in progress.
#[derive(Clone, Debug)]
pub(super) struct AttemptModel {
    pub(super) era: Era,
    pub(super) reads_lists: bool,
    pub(super) is_study: bool,
    pub(super) progress: Progress,
}

#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// The previous connection is still ending: that of this number, if it is known to end.
    WaitsForEnd {
        previous: Option<usize>,
        until: Millis,
    },
    Runs(Timeline),
}

/// The course of an attempt, which its plan determines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    pub(super) number: usize,
    /// The time from which the server can send, and until which it can if the attempt fails.
    pub(super) opened: Option<Millis>,
    pub(super) closed: Option<Millis>,
    pub(super) ends: Millis,
    pub(super) outcome: Result<(), Failure>,
}

impl Timeline {
    pub(super) fn of(number: usize, plan: Plan, begins: Millis, reads_lists: bool) -> Self {
        let deadline = begins + LOAD_TIMEOUT;
        let failed = |opened, closed, ends, failure| Self {
            number,
            opened,
            closed,
            ends,
            outcome: Err(failure),
        };
        let opened = match finish(plan.opening, begins, deadline) {
            Ok(at) => at,
            Err((at, failure)) => return failed(None, None, at, failure),
        };
        let mut now = opened;
        let lists = reads_lists.then_some(plan.lists);
        for phase in [Some(plan.handshake), lists].into_iter().flatten() {
            match finish(phase, now, deadline) {
                Ok(at) => now = at,
                // The end of the connection is part of the attempt.
                Err((at, failure)) => {
                    return failed(Some(opened), Some(at), at + plan.ending, failure);
                }
            }
        }
        Self { number, opened: Some(opened), closed: None, ends: now, outcome: Ok(()) }
    }

    /// Returns whether a notification of the server arrives now.
    pub(super) fn is_open(&self, now: Millis) -> bool {
        self.opened.is_some_and(|at| at <= now) && self.closed.is_none_or(|at| now < at)
    }
}

/// Returns when a phase that begins at `now` succeeds, or when and why it fails.
fn finish(phase: Phased, now: Millis, deadline: Millis) -> Result<Millis, (Millis, Failure)> {
    match phase {
        Phased::Takes(delay) if now + delay <= deadline => Ok(now + delay),
        Phased::Fails(delay, failure) if now + delay <= deadline => Err((now + delay, failure)),
        _ => Err((deadline, Failure::Ordinary)),
    }
}
