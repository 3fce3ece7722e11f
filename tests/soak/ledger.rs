//! Everything that was called, answered and executed, and what was wrong with it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    path::Path,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

/// Findings that are kept; more are only counted.
const MAX_KEPT: usize = 50;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A call without an answer, or a notification that never came.
    Lost,
    /// Something that belongs to another host or call.
    Crossed,
    /// A call that was executed or answered twice.
    Doubled,
    /// Something that stays after its owner has gone.
    Leaked,
}

impl Fault {
    pub const ALL: [Self; 4] = [Self::Lost, Self::Crossed, Self::Doubled, Self::Leaked];
}

/// The end of a call, as its host saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Answered,
    /// Refused with an error; the server may have executed the call.
    Failed,
}

#[derive(Default)]
pub struct Ledger {
    endings: Mutex<HashMap<String, Ending>>,
    findings: Mutex<Vec<(Fault, String)>>,
    counts: Mutex<BTreeMap<Fault, u64>>,
    started: AtomicU64,
    /// Errands by kind.
    errands: Mutex<BTreeMap<&'static str, u64>>,
    /// Notifications that hosts waited for and got.
    pub notified: AtomicU64,
    /// Questions that hosts were asked.
    pub questions: AtomicU64,
    pub hosts: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Ledger {
    pub fn find(&self, fault: Fault, what: impl Into<String>) {
        *lock(&self.counts).entry(fault).or_default() += 1;
        let mut findings = lock(&self.findings);
        if findings.len() < MAX_KEPT {
            findings.push((fault, what.into()));
        }
    }

    pub fn begin(&self, errand: &'static str) {
        self.started.fetch_add(1, Ordering::Relaxed);
        *lock(&self.errands).entry(errand).or_default() += 1;
    }

    /// Notes that the call with this payload was answered with what it asked for.
    pub fn answered(&self, payload: &str) {
        lock(&self.endings).insert(payload.to_owned(), Ending::Answered);
    }

    pub fn failed(&self, payload: &str) {
        lock(&self.endings).insert(payload.to_owned(), Ending::Failed);
    }

    pub fn count(&self, fault: Fault) -> u64 {
        lock(&self.counts).get(&fault).copied().unwrap_or_default()
    }

    pub fn findings(&self) -> Vec<(Fault, String)> {
        lock(&self.findings).clone()
    }

    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    pub fn errands(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.errands).clone()
    }

    /// Returns how many calls were answered, and how many were refused with an error.
    pub fn ended(&self) -> (usize, usize) {
        let endings = lock(&self.endings);
        let answered = endings.values().filter(|ending| **ending == Ending::Answered).count();
        (answered, endings.len() - answered)
    }

    /// Compares what hosts saw with what servers executed, and returns the number of executions.
    ///
    /// # Errors
    /// If a journal cannot be read.
    pub fn audit(&self, journals: &Path) -> io::Result<u64> {
        let mut executed: HashMap<String, u64> = HashMap::new();
        for file in std::fs::read_dir(journals)? {
            for payload in std::fs::read_to_string(file?.path())?.lines() {
                *executed.entry(payload.to_owned()).or_default() += 1;
            }
        }
        for (payload, count) in executed.iter().filter(|(_, count)| **count > 1) {
            self.find(Fault::Doubled, format!("{payload} was executed {count} times"));
        }
        let known: HashSet<&String> = executed.keys().collect();
        let unexecuted: Vec<String> = lock(&self.endings)
            .iter()
            .filter(|(payload, ending)| **ending == Ending::Answered && !known.contains(payload))
            .map(|(payload, _)| format!("{payload} was answered and never executed"))
            .collect();
        for what in unexecuted {
            self.find(Fault::Crossed, what);
        }
        Ok(executed.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_finds_doubled_and_unexecuted_calls() {
        let journals = tempfile::tempdir().unwrap();
        std::fs::write(journals.path().join("one"), "a\nb\n").unwrap();
        std::fs::write(journals.path().join("two"), "b\n").unwrap();
        let ledger = Ledger::default();
        for payload in ["a", "b", "c"] {
            ledger.answered(payload);
        }
        ledger.failed("d");
        assert_eq!(ledger.audit(journals.path()).unwrap(), 3);
        assert_eq!(ledger.count(Fault::Doubled), 1);
        assert_eq!(ledger.count(Fault::Crossed), 1);
        assert_eq!(ledger.ended(), (3, 1));
    }
}
