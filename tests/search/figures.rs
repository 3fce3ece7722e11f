//! The share of requests whose right tool came first, among the first five and the first ten, and
//! its mean reciprocal rank.

use std::fmt;

const CUTS: [u32; 3] = [1, 5, 10];

#[derive(Default)]
pub struct Figures {
    requests: u32,
    within: [u32; CUTS.len()],
    reciprocal_ranks: f64,
}

impl Figures {
    /// Adds a request; `rank` is the position of the right tool, if it was found.
    pub fn add(&mut self, rank: Option<u32>) {
        self.requests += 1;
        let Some(rank) = rank else { return };
        for (within, cut) in self.within.iter_mut().zip(CUTS) {
            *within += u32::from(rank <= cut);
        }
        self.reciprocal_ranks += 1.0 / f64::from(rank);
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = f64::from(self.requests.max(1));
        for within in self.within {
            write!(f, "{:.2} ", f64::from(within) / requests)?;
        }
        write!(f, "{:.2}", self.reciprocal_ranks / requests)
    }
}
