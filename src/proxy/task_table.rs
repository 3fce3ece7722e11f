//! The known tasks, by the ids under which hosts know them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    base::{Lock, is_mark},
    proxy::{Principal, Subscriber, User, instance::Instance},
    upstream::Lease,
};

/// Maximum number of tasks; the one that expires first is dropped.
const MAX_TASKS: usize = 10_000;
/// Maximum number of tasks of one host.
const MAX_TASKS_OF_HOST: usize = 1_000;
/// Separates the mark of a replica from the id of the server.
const AFTER_MARK: char = '.';
/// Maximum length of an id, in bytes. A task with a longer id is not kept; servers are asked for it
/// each time.
const MAX_ID_BYTES: usize = 1024;

/// The tasks that servers have created for hosts.
pub(in crate::proxy) struct TaskTable {
    /// The prefix of all ids for hosts, by which other replicas recognize them; empty without any.
    prefix: String,
    table: Lock<Table>,
    /// Tells the reaper of a new task.
    added: Arc<Notify>,
}

#[derive(Default)]
struct Table {
    known: HashMap<Key, Task>,
    /// Tasks of sessions that have ended. Only their user can find them again.
    left: Vec<LeftTask>,
}

/// A host and the id that it knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    owner: Principal,
    shown: String,
}

struct Task {
    origin: TaskOrigin,
    user: User,
    /// The lease that keeps the server awake until the host has the result.
    lease: Option<Lease>,
    /// The streams that listen to the task.
    listeners: HashSet<Subscriber>,
    expires: Instant,
}

/// A task of a session that has ended.
struct LeftTask {
    origin: TaskOrigin,
    user: User,
    expires: Instant,
}

/// The host of a task, and its user.
#[derive(Clone, Copy, Debug)]
pub(in crate::proxy) struct Owner {
    pub(in crate::proxy) principal: Principal,
    pub(in crate::proxy) user: User,
}

/// The instance that works on a task, and its id there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::proxy) struct TaskOrigin {
    pub(in crate::proxy) instance: Instance,
    /// The id that the server has given.
    pub(in crate::proxy) id: String,
}

/// Tasks to which no stream listens any more.
#[must_use = "their servers are still asked for updates"]
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::proxy) struct Unheard(pub(in crate::proxy) Vec<TaskOrigin>);

/// The outcome of adding a task.
pub(in crate::proxy) struct Added {
    /// The id for the host: the server's, or another if the host knows a task of another server by
    /// that id.
    pub(in crate::proxy) shown: String,
    pub(in crate::proxy) unheard: Unheard,
}

impl TaskTable {
    /// `mark`: that of the fleet, if other replicas may get the requests about its tasks.
    pub(in crate::proxy) fn new(mark: Option<&str>) -> Self {
        let prefix = mark.map(|mark| format!("{mark}{AFTER_MARK}")).unwrap_or_default();
        Self { prefix, table: Lock::default(), added: Arc::default() }
    }

    /// Returns the notice of new tasks, for the reaper.
    pub(in crate::proxy) fn added(&self) -> Arc<Notify> {
        self.added.clone()
    }

    pub(in crate::proxy) fn add(
        &self,
        owner: Owner,
        origin: TaskOrigin,
        lease: Option<Lease>,
        expires: Instant,
    ) -> Added {
        let Owner { principal: owner, user } = owner;
        let mut table = self.table.lock();
        let key = table.free_key(&self.prefix, owner, &origin);
        let shown = key.shown.clone();
        if shown.len() > MAX_ID_BYTES {
            return Added { shown: origin.id, unheard: Unheard::default() };
        }
        let mut removed = Vec::new();
        if !table.known.contains_key(&key) {
            removed.extend(table.make_room(MAX_TASKS_OF_HOST, |key| key.owner == owner));
            removed.extend(table.make_room(MAX_TASKS, |_| true));
        }
        table.left.retain(|left| !left.origin.is_same_task(&origin));
        let listeners = HashSet::new();
        table.known.insert(key, Task { origin, user, lease, listeners, expires });
        self.added.notify_one();
        Added { shown, unheard: table.unheard(removed) }
    }

    /// Returns the origin of the task that a host knows by this id.
    pub(in crate::proxy) fn find(&self, owner: Principal, shown: &str) -> Option<TaskOrigin> {
        self.table.lock().known.get(&Key::new(owner, shown)).map(|task| task.origin.clone())
    }

    /// Returns another lease on the connection on which a task was created, while that lives.
    pub(in crate::proxy) fn lease(&self, owner: Principal, shown: &str) -> Option<Lease> {
        let table = self.table.lock();
        table.known.get(&Key::new(owner, shown))?.lease.as_ref()?.another()
    }

    /// Returns whether a task is another host's, or belongs to an ended session of another user.
    pub(in crate::proxy) fn is_of_another(&self, host: Owner, origin: &TaskOrigin) -> bool {
        let table = self.table.lock();
        let Owner { principal: owner, user } = host;
        let mut known = table.known.iter().filter(|(_, task)| task.origin.is_same_task(origin));
        let mut left = table.left.iter().filter(|left| left.origin.is_same_task(origin));
        let is_own = known.any(|(key, _)| key.owner == owner);
        let has_owner = table.known.values().any(|task| task.origin.is_same_task(origin));
        !is_own && (has_owner || left.any(|left| left.user != user))
    }

    /// Returns the hosts that know a task, with the id of each.
    pub(in crate::proxy) fn owners(&self, origin: &TaskOrigin) -> Vec<(Principal, String)> {
        let table = self.table.lock();
        let known = table.known.iter().filter(|(_, task)| task.origin.is_same_task(origin));
        known.map(|(key, _)| (key.owner, key.shown.clone())).collect()
    }

    /// Lets the server of a task sleep, since the host has the result.
    pub(in crate::proxy) fn settle(&self, owner: Principal, shown: &str) {
        if let Some(task) = self.table.lock().known.get_mut(&Key::new(owner, shown)) {
            task.lease = None;
        }
    }

    /// Forgets a task that its server no longer knows.
    pub(in crate::proxy) fn remove(&self, owner: Principal, shown: &str) -> Unheard {
        let mut table = self.table.lock();
        let removed = table.known.remove(&Key::new(owner, shown));
        table.unheard(removed.into_iter().collect())
    }

    /// Forgets a host; its tasks are left to its user.
    pub(in crate::proxy) fn forget(&self, owner: Principal) -> Unheard {
        let mut table = self.table.lock();
        let theirs = table.known.extract_if(|key, _| key.owner == owner);
        let theirs: Vec<Task> = theirs.map(|(_, task)| task).collect();
        table.left.extend(theirs.iter().map(|Task { origin, user, expires, .. }| LeftTask {
            origin: origin.clone(),
            user: *user,
            expires: *expires,
        }));
        let surplus = table.left.len().saturating_sub(MAX_TASKS);
        table.left.drain(..surplus);
        table.unheard(theirs)
    }

    /// Forgets expired tasks. Returns the time of the next expiry, or `None` if there are no tasks
    /// left.
    pub(in crate::proxy) fn expire(&self) -> (Unheard, Option<Instant>) {
        let mut table = self.table.lock();
        let now = Instant::now();
        let over = table.known.extract_if(|_, task| task.expires <= now);
        let over: Vec<Task> = over.map(|(_, task)| task).collect();
        table.left.retain(|left| left.expires > now);
        let left = table.left.iter().map(|left| left.expires);
        let next = table.known.values().map(|task| task.expires).chain(left).min();
        (table.unheard(over), next)
    }

    /// Adds a stream that listens to a task.
    pub(in crate::proxy) fn listen(
        &self,
        owner: Principal,
        shown: &str,
        stream: Subscriber,
    ) -> Option<TaskOrigin> {
        let mut table = self.table.lock();
        let task = table.known.get_mut(&Key::new(owner, shown))?;
        task.listeners.insert(stream);
        Some(task.origin.clone())
    }

    /// Removes streams.
    pub(in crate::proxy) fn leave(&self, is_meant: impl Fn(&Subscriber) -> bool) -> Unheard {
        let mut table = self.table.lock();
        let mut left = Vec::new();
        for task in table.known.values_mut().filter(|task| !task.listeners.is_empty()) {
            task.listeners.retain(|listener| !is_meant(listener));
            if task.listeners.is_empty() {
                left.push(task.origin.clone());
            }
        }
        table.unheard_of(left)
    }
}

impl Table {
    /// Removes the task that expires first if `max` of the tasks for which `is_meant` holds exist.
    fn make_room(&mut self, max: usize, is_meant: impl Fn(&Key) -> bool) -> Option<Task> {
        let meant = || self.known.iter().filter(|(key, _)| is_meant(key));
        if meant().count() < max {
            return None;
        }
        let first = meant().min_by_key(|(_, task)| task.expires)?.0.clone();
        self.known.remove(&first)
    }

    fn unheard(&self, removed: Vec<Task>) -> Unheard {
        let listened = removed.into_iter().filter(|task| !task.listeners.is_empty());
        self.unheard_of(listened.map(|task| task.origin).collect())
    }

    /// Returns those of the tasks to which no stream of any host listens.
    fn unheard_of(&self, mut origins: Vec<TaskOrigin>) -> Unheard {
        let is_heard = |origin: &TaskOrigin| {
            let mut known = self.known.values();
            known.any(|task| !task.listeners.is_empty() && task.origin.is_same_task(origin))
        };
        origins.retain(|origin| !is_heard(origin));
        Unheard(origins)
    }

    /// Returns the key of a task: the present one, or the first that is free.
    fn free_key(&self, prefix: &str, owner: Principal, origin: &TaskOrigin) -> Key {
        let mut known = self.known.iter();
        let known =
            known.find(|(key, task)| key.owner == owner && task.origin.is_same_task(origin));
        if let Some((key, _)) = known {
            return key.clone();
        }
        let own = format!("{prefix}{}", origin.id);
        let candidates = (2..).map(|number| format!("{own}-{number}"));
        let mut candidates = std::iter::once(own.clone()).chain(candidates);
        let free = candidates.find(|shown| !self.known.contains_key(&Key::new(owner, shown)));
        Key { owner, shown: free.unwrap_or_default() }
    }
}

/// Returns the id that the server has given to the task of a replica that is gone, in the id by
/// which hosts know it.
pub(in crate::proxy) fn without_mark(shown: &str) -> &str {
    match shown.split_once(AFTER_MARK) {
        Some((mark, id)) if is_mark(mark) => id,
        _ => shown,
    }
}

impl Key {
    fn new(owner: Principal, shown: &str) -> Self {
        Self { owner, shown: shown.to_owned() }
    }
}

impl TaskOrigin {
    /// Returns whether both are the same task; the server's config may have changed in between.
    fn is_same_task(&self, other: &Self) -> bool {
        self.id == other.id
            && self.instance.server == other.instance.server
            && self.instance.owner == other.instance.owner
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{catalog::ServerId, proxy::HostId};

    fn origin(server: usize, id: &str) -> TaskOrigin {
        let instance = Instance { server: ServerId(server), version: 0, owner: None };
        TaskOrigin { instance, id: id.to_owned() }
    }

    fn host() -> Owner {
        Owner { principal: Principal::new(), user: User::default() }
    }

    fn of_user(number: u8) -> Owner {
        Owner { user: User(Some([number; 32])), ..host() }
    }

    fn add(tasks: &TaskTable, owner: Owner, origin: TaskOrigin) -> String {
        tasks.add(owner, origin, None, Instant::now() + Duration::from_mins(1)).shown
    }

    #[test]
    fn id_has_the_mark_of_its_replica() {
        let mark = crate::base::new_mark();
        let (tasks, host) = (TaskTable::new(Some(&mark)), host());
        let shown = add(&tasks, host, origin(0, "a.b"));
        assert_eq!(shown, format!("{mark}.a.b"));
        assert_eq!(tasks.find(host.principal, &shown), Some(origin(0, "a.b")));
        assert_eq!((without_mark(&shown), without_mark("a.b")), ("a.b", "a.b"));
    }

    #[test]
    fn shared_task_id_is_shown_as_two_ids() {
        let (tasks, host) = (TaskTable::new(None), host());
        assert_eq!(add(&tasks, host, origin(0, "t")), "t");
        assert_eq!(add(&tasks, host, origin(1, "t")), "t-2");
        assert_eq!(add(&tasks, host, origin(1, "t")), "t-2", "it is the same task");
        assert_eq!(tasks.find(host.principal, "t"), Some(origin(0, "t")));
        assert_eq!(tasks.find(host.principal, "t-2"), Some(origin(1, "t")));
    }

    #[test]
    fn task_is_known_only_to_its_host() {
        let (tasks, one, other) = (TaskTable::new(None), of_user(1), of_user(1));
        add(&tasks, one, origin(0, "t"));
        assert_eq!(tasks.find(other.principal, "t"), None);
        assert!(tasks.is_of_another(other, &origin(0, "t")));
        assert!(!tasks.is_of_another(one, &origin(0, "t")));
        assert!(!tasks.is_of_another(other, &origin(1, "t")), "another server has an id like it");
    }

    #[test]
    fn tasks_of_an_ended_session_belong_to_its_user() {
        let (tasks, one, same, other) = (TaskTable::new(None), of_user(1), of_user(1), of_user(2));
        add(&tasks, one, origin(0, "t"));
        assert_eq!(tasks.forget(one.principal), Unheard::default());
        assert!(!tasks.is_of_another(same, &origin(0, "t")));
        assert!(tasks.is_of_another(other, &origin(0, "t")));
        add(&tasks, same, origin(0, "t"));
        assert_eq!(tasks.find(same.principal, "t"), Some(origin(0, "t")));
        assert!(tasks.is_of_another(one, &origin(0, "t")));
    }

    #[test]
    fn updates_end_with_the_last_listener() {
        let (tasks, one, other) = (TaskTable::new(None), host(), host());
        let stream = |number: u64| Subscriber { host: HostId(number), stream: None };
        for (host, number) in [(one, 1), (other, 2)] {
            add(&tasks, host, origin(0, "t"));
            tasks.listen(host.principal, "t", stream(number));
        }
        assert_eq!(tasks.remove(one.principal, "t"), Unheard::default());
        assert_eq!(tasks.leave(|left| left.host == HostId(2)), Unheard(vec![origin(0, "t")]));
        tasks.listen(other.principal, "t", stream(2));
        assert_eq!(tasks.forget(other.principal), Unheard(vec![origin(0, "t")]));
    }

    #[test]
    fn an_endless_id_is_not_kept() {
        let (tasks, host, id) = (TaskTable::new(None), host(), "t".repeat(MAX_ID_BYTES + 1));
        assert_eq!(add(&tasks, host, origin(0, &id)), id);
        assert_eq!(tasks.find(host.principal, &id), None);
    }

    #[test]
    fn earliest_expiring_task_yields_to_new_tasks_of_its_host() {
        let (tasks, host, other) = (TaskTable::new(None), host(), host());
        add(&tasks, other, origin(0, "other"));
        for number in 0..=MAX_TASKS_OF_HOST {
            let expires = Instant::now() + Duration::from_secs(90 + number as u64);
            let _ = tasks.add(host, origin(0, &number.to_string()), None, expires);
        }
        assert_eq!(tasks.find(host.principal, "0"), None);
        assert!(tasks.find(host.principal, "1").is_some());
        assert!(tasks.find(other.principal, "other").is_some());
    }

    #[test]
    fn next_expiry_is_that_of_the_next_task() {
        let (tasks, host) = (TaskTable::new(None), host());
        let (past, future) = (Instant::now(), Instant::now() + Duration::from_mins(1));
        let _ = tasks.add(host, origin(0, "a"), None, past);
        let _ = tasks.add(host, origin(0, "b"), None, future);
        assert_eq!(tasks.expire(), (Unheard::default(), Some(future)));
        assert_eq!(tasks.find(host.principal, "a"), None);
        let _ = tasks.remove(host.principal, "b");
        assert_eq!(tasks.expire().1, None);
    }
}
