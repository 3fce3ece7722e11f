//! The tasks that are known, by the ids under which hosts know them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard},
};

use tokio::time::Instant;

use crate::{
    proxy::{Principal, fleet::Subscriber, instance::Instance},
    upstream::Lease,
};

/// Tasks that are known at once. The one that expires first gives way.
const MAX_TASKS: usize = 10_000;
/// Bytes of an id. A task with a longer one is not kept; its servers are asked for it each time.
const MAX_ID_BYTES: usize = 1024;

/// The tasks that servers have created for hosts.
#[derive(Default)]
// A std mutex: held for a look or a change.
pub(in crate::proxy) struct Tasks(Mutex<HashMap<Key, Task>>);

/// A host, and the id that it knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    owner: Principal,
    shown: String,
}

struct Task {
    origin: Origin,
    /// Keeps the server awake until the host has what the task came to.
    lease: Option<Lease>,
    /// The streams that want to hear of it.
    listeners: HashSet<Subscriber>,
    expires: Instant,
}

/// Where a task is worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::proxy) struct Origin {
    pub(in crate::proxy) instance: Instance,
    /// The id that the server gave it.
    pub(in crate::proxy) id: String,
}

impl Tasks {
    /// Adds a task, and returns the id under which its host is to know it: the server's own, or another one where the
    /// host knows a task of another server by that.
    pub(super) fn add(
        &self,
        owner: Principal,
        origin: Origin,
        lease: Option<Lease>,
        expires: Instant,
    ) -> String {
        let mut tasks = self.lock();
        tasks.retain(|_, task| task.expires > Instant::now());
        let key = free_key(&tasks, owner, &origin);
        let shown = key.shown.clone();
        if shown.len() > MAX_ID_BYTES {
            return origin.id;
        }
        if tasks.len() >= MAX_TASKS && !tasks.contains_key(&key) {
            let first =
                tasks.iter().min_by_key(|(_, task)| task.expires).map(|(key, _)| key.clone());
            if let Some(first) = first {
                tasks.remove(&first);
            }
        }
        let listeners = HashSet::new();
        tasks.insert(key, Task { origin, lease, listeners, expires });
        shown
    }

    /// Where the task is worked on that this host knows by this id.
    pub(super) fn find(&self, owner: Principal, shown: &str) -> Option<Origin> {
        self.lock().get(&Key::new(owner, shown)).map(|task| task.origin.clone())
    }

    /// One more lease on the connection on which a task was created, while that lives.
    pub(super) fn lease(&self, owner: Principal, shown: &str) -> Option<Lease> {
        let tasks = self.lock();
        tasks.get(&Key::new(owner, shown))?.lease.as_ref()?.another()
    }

    /// Whether only another host knows a task of this id.
    pub(super) fn is_of_another(&self, owner: Principal, id: &str) -> bool {
        let tasks = self.lock();
        !tasks.contains_key(&Key::new(owner, id))
            && tasks.iter().any(|(key, task)| key.shown == id || task.origin.id == id)
    }

    /// The hosts that know this task, each with the id under which it does.
    pub(super) fn owners(&self, origin: &Origin) -> Vec<(Principal, String)> {
        let tasks = self.lock();
        let known = tasks.iter().filter(|(_, task)| task.origin.is_same_task(origin));
        known.map(|(key, _)| (key.owner, key.shown.clone())).collect()
    }

    /// Lets the server of a task sleep: its host has what the task came to.
    pub(super) fn settle(&self, owner: Principal, shown: &str) {
        if let Some(task) = self.lock().get_mut(&Key::new(owner, shown)) {
            task.lease = None;
        }
    }

    /// Forgets a task that its server does not know any more.
    pub(super) fn remove(&self, owner: Principal, shown: &str) {
        self.lock().remove(&Key::new(owner, shown));
    }

    /// Forgets the tasks of a host.
    pub(in crate::proxy) fn forget(&self, owner: Principal) {
        self.lock().retain(|key, _| key.owner != owner);
    }

    /// Forgets the tasks whose time is over.
    pub(super) fn expire(&self) {
        self.lock().retain(|_, task| task.expires > Instant::now());
    }

    /// Adds a stream to those that want to hear of a task.
    pub(super) fn listen(
        &self,
        owner: Principal,
        shown: &str,
        stream: Subscriber,
    ) -> Option<Origin> {
        let mut tasks = self.lock();
        let task = tasks.get_mut(&Key::new(owner, shown))?;
        task.listeners.insert(stream);
        Some(task.origin.clone())
    }

    /// Takes streams away, and returns the tasks to which nobody listens any more.
    pub(super) fn leave(&self, is_meant: impl Fn(&Subscriber) -> bool) -> Vec<Origin> {
        let mut unheard = Vec::new();
        for task in self.lock().values_mut().filter(|task| !task.listeners.is_empty()) {
            task.listeners.retain(|listener| !is_meant(listener));
            if task.listeners.is_empty() {
                unheard.push(task.origin.clone());
            }
        }
        unheard
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Task>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Key {
    fn new(owner: Principal, shown: &str) -> Self {
        Self { owner, shown: shown.to_owned() }
    }
}

impl Origin {
    /// Whether both are one task: of one server, whose config may have changed in between.
    fn is_same_task(&self, other: &Self) -> bool {
        self.id == other.id
            && self.instance.server == other.instance.server
            && self.instance.owner == other.instance.owner
    }
}

/// The key under which a task is kept: that which it has already, or the first that is free.
fn free_key(tasks: &HashMap<Key, Task>, owner: Principal, origin: &Origin) -> Key {
    let known =
        tasks.iter().find(|(key, task)| key.owner == owner && task.origin.is_same_task(origin));
    if let Some((key, _)) = known {
        return key.clone();
    }
    let candidates = (2..).map(|number| format!("{}-{number}", origin.id));
    let mut candidates = std::iter::once(origin.id.clone()).chain(candidates);
    let free = candidates.find(|shown| !tasks.contains_key(&Key::new(owner, shown)));
    Key { owner, shown: free.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalog::ServerId;

    fn origin(server: usize, id: &str) -> Origin {
        let instance = Instance { server: ServerId(server), version: 0, owner: None };
        Origin { instance, id: id.to_owned() }
    }

    fn add(tasks: &Tasks, owner: Principal, origin: Origin) -> String {
        tasks.add(owner, origin, None, Instant::now() + Duration::from_mins(1))
    }

    #[test]
    fn an_id_that_two_servers_use_is_shown_as_two() {
        let (tasks, host) = (Tasks::default(), Principal::new());
        assert_eq!(add(&tasks, host, origin(0, "t")), "t");
        assert_eq!(add(&tasks, host, origin(1, "t")), "t-2");
        assert_eq!(add(&tasks, host, origin(1, "t")), "t-2", "it is the same task");
        assert_eq!(tasks.find(host, "t"), Some(origin(0, "t")));
        assert_eq!(tasks.find(host, "t-2"), Some(origin(1, "t")));
    }

    #[test]
    fn a_task_is_known_to_its_own_host_alone() {
        let (tasks, one, other) = (Tasks::default(), Principal::new(), Principal::new());
        add(&tasks, one, origin(0, "t"));
        assert_eq!(tasks.find(other, "t"), None);
        assert!(tasks.is_of_another(other, "t"));
        assert!(!tasks.is_of_another(one, "t"));
        assert!(!tasks.is_of_another(other, "u"));
        tasks.forget(one);
        assert!(!tasks.is_of_another(other, "t"));
    }

    #[test]
    fn an_endless_id_is_not_kept() {
        let (tasks, host, id) = (Tasks::default(), Principal::new(), "t".repeat(MAX_ID_BYTES + 1));
        assert_eq!(add(&tasks, host, origin(0, &id)), id);
        assert_eq!(tasks.find(host, &id), None);
    }

    #[test]
    fn what_expires_first_gives_way_to_new_tasks() {
        let (tasks, host) = (Tasks::default(), Principal::new());
        for number in 0..=MAX_TASKS {
            let expires = Instant::now() + Duration::from_secs(60 + number as u64);
            tasks.add(host, origin(0, &number.to_string()), None, expires);
        }
        assert_eq!(tasks.find(host, "0"), None);
        assert!(tasks.find(host, "1").is_some());
    }
}
