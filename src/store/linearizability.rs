//! Checks that a store behaves as one value per name that changes in an instant, while several
//! threads use it through two handles, as two processes do: in a directory, and in a Redis server.
//!
//! `DORMOUSE_SEQUENCES=3000 cargo nextest run --lib linearizable` runs more histories than the
//! default.

mod history;

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    FileStore, Store, StoreAddress, StoredVersion, Stores, lease_blocking,
    redis_server::RedisServer,
};
use crate::base::{Lock, SealingKeys, Sequence, check_sequences};
use history::{Operation, Recorded, Removal, check_history};

const DEFAULT_COUNT: u64 = 150;
const THREADS: usize = 3;
const MAX_ACTIONS: usize = 14;
const NAME: &str = "value.v";
const LEASE: &str = "value.lock";
const MAX_BYTES: u64 = 1000;
/// The time for which an obstacle makes writes fail.
const OBSTACLE_TIME: Duration = Duration::from_micros(300);

/// The way in which the users of a value change it; see [`Store`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Discipline {
    Leased,
    Updated,
    /// As `Leased`, while the file is also cut from outside.
    Damaged,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Get,
    Version,
    Put,
    Remove,
    /// Reads a value and writes a longer one under one lease.
    Append,
    /// Replaces the version that this thread has seen last, or one that it looks up now.
    Update {
        is_looked_up: bool,
    },
    /// Cuts the file to no bytes. Does nothing to another store.
    Cut,
    /// Makes writes fail for a while: a directory has the name of the unfinished file. Does nothing
    /// to another store.
    Obstruct,
}

/// The actions of one thread are those with its number.
type Step = (usize, Action);

fn generate(rng: &mut fastrand::Rng) -> Sequence<Discipline, Step> {
    let disciplines = [Discipline::Leased, Discipline::Updated, Discipline::Damaged];
    let setting = disciplines[rng.usize(..disciplines.len())];
    let update = Action::Update { is_looked_up: rng.u8(..4) != 0 };
    let writes = match setting {
        Discipline::Leased => [Action::Put, Action::Remove, Action::Append, Action::Append],
        Discipline::Updated => [update; 4],
        Discipline::Damaged => [Action::Put, Action::Put, Action::Remove, Action::Cut],
    };
    let count = rng.usize(2..=MAX_ACTIONS);
    let action = |rng: &mut fastrand::Rng| match rng.u8(..10) {
        0..2 => Action::Get,
        2..4 => Action::Version,
        4 => Action::Obstruct,
        _ => writes[rng.usize(..writes.len())],
    };
    let events = (0..count).map(|_| (rng.usize(..THREADS), action(rng))).collect();
    Sequence { setting, events }
}

/// One thread that uses the value.
struct User<'a> {
    store: Arc<dyn Store>,
    /// The file of the value, if it has one.
    file: Option<PathBuf>,
    thread: usize,
    clock: &'a AtomicU64,
    history: &'a Lock<Vec<Recorded>>,
    seen: StoredVersion,
    writes: u32,
}

impl User<'_> {
    fn act(&mut self, action: Action) {
        match action {
            Action::Get => self.record(|user| Operation::Get(user.read())),
            Action::Version => self.look_up(),
            Action::Put => {
                let value = self.next_value();
                self.leased(|user| {
                    user.record(|user| {
                        let is_done = user.store.put(NAME, value.as_bytes()).is_ok();
                        Operation::Put { value, is_done }
                    });
                });
            }
            Action::Remove => self.leased(|user| {
                user.record(|user| Operation::Remove(user.store.remove(NAME).ok()));
            }),
            Action::Append => {
                let added = self.next_value();
                self.record(|user| user.append(&added));
            }
            Action::Update { is_looked_up } => {
                if is_looked_up {
                    self.look_up();
                }
                let (seen, value) = (self.seen, self.next_value());
                self.record(|user| {
                    let is_done = user.store.update(NAME, seen, value.as_bytes()).ok();
                    Operation::Update { seen, value, is_done }
                });
            }
            Action::Cut => {
                let Some(path) = self.file.clone() else { return };
                self.record(|_| {
                    let file = fs::File::options().write(true).open(path);
                    Operation::Cut { is_done: file.and_then(|file| file.set_len(0)).is_ok() }
                });
            }
            Action::Obstruct => {
                let Some(path) = &self.file else { return };
                let obstacle = path.with_file_name("value.v.new");
                if fs::create_dir(&obstacle).is_ok() {
                    std::thread::sleep(OBSTACLE_TIME);
                    fs::remove_dir(&obstacle).expect("the obstacle is removable");
                }
            }
        }
    }

    fn look_up(&mut self) {
        self.record(|user| {
            user.seen = user.store.version(NAME).unwrap();
            Operation::Version(user.seen)
        });
    }

    fn read(&self) -> Option<String> {
        let value = self.store.get(NAME, MAX_BYTES).expect("the value is readable");
        value.map(|value| String::from_utf8(value).expect("a value of this test"))
    }

    fn append(&mut self, added: &str) -> Operation {
        let mut appended = None;
        self.leased(|user| {
            let before = user.read();
            let after = format!("{}{added}", before.clone().unwrap_or_default());
            let is_done = user.store.put(NAME, after.as_bytes()).is_ok();
            appended = Some(Operation::Append { before, after, is_done });
        });
        appended.expect("the lease was had")
    }

    fn leased(&mut self, work: impl FnOnce(&mut Self)) {
        let _lease = lease_blocking(self.store.as_ref(), LEASE).expect("a lease");
        work(self);
    }

    fn record(&mut self, operate: impl FnOnce(&mut Self) -> Operation) {
        let began = self.clock.fetch_add(1, Ordering::SeqCst);
        let operation = operate(self);
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        let thread = self.thread;
        self.history.lock().push(Recorded { began, ended, thread, operation });
    }

    /// Returns a value that no other write has. All have one length.
    fn next_value(&mut self) -> String {
        self.writes += 1;
        format!("{}.{:02} ", self.thread, self.writes)
    }
}

/// Runs the threads of a sequence at the same time, through two handles on one store. Returns their
/// history.
fn run(
    sequence: &Sequence<Discipline, Step>,
    stores: &[Arc<dyn Store>; 2],
    file: Option<&PathBuf>,
) -> Vec<Recorded> {
    let (clock, history) = (AtomicU64::new(0), Lock::default());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, file) = (stores[thread % stores.len()].clone(), file.cloned());
            let (clock, history) = (&clock, &history);
            let steps = sequence.events.iter().filter(move |(of, _)| *of == thread);
            scope.spawn(move || {
                let seen = StoredVersion::default();
                let mut user = User { store, file, thread, clock, history, seen, writes: 0 };
                steps.for_each(|(_, action)| user.act(*action));
            });
        }
    });
    std::mem::take(&mut *history.lock())
}

#[test]
fn values_of_a_directory_are_linearizable() {
    let mut failed_writes = 0;
    let mut refused_updates = 0;
    let count = check_sequences(DEFAULT_COUNT, generate, |sequence| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = || Arc::new(FileStore::new(directory.path())) as Arc<dyn Store>;
        let file = directory.path().join(NAME);
        let history = run(sequence, &[store(), store()], Some(&file));
        failed_writes += history.iter().filter(|one| one.operation.has_failed()).count();
        refused_updates += history.iter().filter(|one| one.operation.is_refused()).count();
        check_history(history, Removal::Forgotten)
    });
    println!("{count} histories, {failed_writes} failed writes, {refused_updates} updates refused");
    let is_complete = count < DEFAULT_COUNT || failed_writes > 0 && refused_updates > 0;
    assert!(is_complete, "no write fails, or no update is refused");
}

#[test]
fn values_of_a_redis_server_are_linearizable() {
    let Some(server) = RedisServer::start() else { return };
    let keys = SealingKeys::new(["a key with at least thirty-two bytes"]).expect("a long key");
    let (mut refused_updates, mut installations) = (0, 0);
    let count = check_sequences(DEFAULT_COUNT, generate, |sequence| {
        installations += 1;
        let address = StoreAddress {
            url: server.url(),
            prefix: format!("history{installations}"),
            keys: keys.clone(),
            certificates: None,
        };
        let store = || Stores::shared(&address).expect("a valid address").catalogs;
        let history = run(sequence, &[store(), store()], None);
        refused_updates += history.iter().filter(|one| one.operation.is_refused()).count();
        check_history(history, Removal::Recorded)
    });
    println!("{count} histories, {refused_updates} updates refused");
    assert!(count < DEFAULT_COUNT || refused_updates > 0, "no update is refused");
}
