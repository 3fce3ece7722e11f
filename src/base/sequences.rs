//! Random sequences of events for model-based tests, and the search for the shortest that fails.

use std::{
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The environment variable with the number of sequences that each model-based test runs.
const COUNT_VARIABLE: &str = "DORMOUSE_SEQUENCES";
/// The environment variable with the seed of the first sequence; each further one has the next.
const SEED_VARIABLE: &str = "DORMOUSE_SEED";

/// A setting, and the events that happen in it.
#[derive(Clone, Debug)]
pub(crate) struct Sequence<S, E> {
    pub(crate) setting: S,
    pub(crate) events: Vec<E>,
}

/// Runs `default_count` sequences, each generated from a seed of its own. Returns their number.
///
/// # Panics
/// If `run` returns an error or panics. The message has the shortest sequence that still fails.
pub(crate) fn check_sequences<S: Clone + Debug, E: Clone + Debug>(
    default_count: u64,
    generate: impl Fn(&mut fastrand::Rng) -> Sequence<S, E>,
    mut run: impl FnMut(&Sequence<S, E>) -> Result<(), String>,
) -> u64 {
    let count = number_in(COUNT_VARIABLE).unwrap_or(default_count);
    let first = number_in(SEED_VARIABLE).unwrap_or(0);
    for seed in first..first + count {
        let sequence = generate(&mut fastrand::Rng::with_seed(seed));
        if let Err(failure) = run_caught(&sequence, &mut run) {
            let shortest = shortest_failing(sequence, &mut run);
            let failure = run_caught(&shortest, &mut run).err().unwrap_or(failure);
            panic!("{}", describe(seed, &shortest, &failure));
        }
    }
    count
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn run_caught<T>(
    sequence: &T,
    run: &mut impl FnMut(&T) -> Result<(), String>,
) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| run(sequence))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("without a text")))
    })
}

/// Removes runs of events for as long as the rest fails: long runs first, then single events.
fn shortest_failing<S: Clone, E: Clone>(
    mut sequence: Sequence<S, E>,
    run: &mut impl FnMut(&Sequence<S, E>) -> Result<(), String>,
) -> Sequence<S, E> {
    let mut length = sequence.events.len();
    while length > 0 {
        let mut start = 0;
        let mut is_shorter = false;
        while start < sequence.events.len() {
            let mut candidate = sequence.clone();
            candidate.events.drain(start..(start + length).min(sequence.events.len()));
            if run_caught(&candidate, run).is_err() {
                sequence = candidate;
                is_shorter = true;
            } else {
                start += length;
            }
        }
        // A single event may be removable only after a later one is gone.
        length = if length == 1 && is_shorter { 1 } else { length / 2 };
    }
    sequence
}

fn describe<S: Debug, E: Debug>(seed: u64, sequence: &Sequence<S, E>, failure: &str) -> String {
    let events: Vec<String> =
        sequence.events.iter().map(|event| format!("  {event:?}\n")).collect();
    let (setting, events) = (&sequence.setting, events.concat());
    format!("{failure}\nseed {seed}, shortest failing sequence in {setting:?}:\n{events}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_sequence_is_shrunk_and_printed() {
        let checked = catch_unwind(|| {
            check_sequences(
                1,
                |_| Sequence { setting: "s", events: (0..100).collect() },
                |sequence| {
                    let has = |event: u32| sequence.events.contains(&event);
                    assert!(!(has(7) && has(42)), "seven before {}", 42);
                    Ok(())
                },
            )
        });
        let message = *checked.unwrap_err().downcast::<String>().unwrap();
        let expected =
            "panic: seven before 42\nseed 0, shortest failing sequence in \"s\":\n  7\n  42\n";
        assert_eq!(message, expected);
    }
}
