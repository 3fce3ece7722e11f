//! The tasks that servers have created for hosts: kept, relayed, and forgotten.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    Caller, Fleet, Principal, Subscriber,
    instance::Instance,
    large_results,
    reaper::reap,
    task_table::{Added, Owner, TaskOrigin, Unheard},
};
use crate::{
    catalog::ServerId,
    peer::CallOptions,
    protocol::{Era, method, task},
    upstream::Lease,
    wire::{Notification, Raw, edit},
};

/// Maximum time for which a task is known, however long its server keeps it.
pub(super) const MAX_TTL: Duration = Duration::from_hours(24);

/// The time for which a task is known after its server may have discarded it.
const EXPIRY_MARGIN: Duration = Duration::from_mins(1);

/// Minimum interval between two searches for expired tasks.
const MIN_REST: Duration = Duration::from_secs(1);

/// Maximum time for a server to confirm that a task is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps the task that a result creates, if it does. Returns the result for the host.
pub(super) fn with_task(
    fleet: &Fleet,
    lease: &Lease,
    instance: Instance,
    caller: &Caller,
    result: Raw,
) -> Raw {
    let Some(created) = task::created(lease.greeting().era, &result) else { return result };
    let ttl = created.ttl.map_or(MAX_TTL, |ttl| ttl.min(MAX_TTL));
    let expires = Instant::now() + ttl + EXPIRY_MARGIN;
    let origin = TaskOrigin { instance, id: created.id.clone() };
    let shown = add_task(fleet, caller, origin, lease.another(), expires);
    task::renamed(&result, &created.id, &shown)
}

/// Keeps a task. Returns the id under which the host knows it.
pub(super) fn add_task(
    fleet: &Fleet,
    caller: &Caller,
    origin: TaskOrigin,
    lease: Option<Lease>,
    expires: Instant,
) -> String {
    let Added { shown, unheard } =
        fleet.extensions.tasks.add(owner(caller), origin, lease, expires);
    unsubscribe(fleet, unheard);
    shown
}

/// Starts to forget expired tasks.
pub(super) fn reap_tasks(fleet: &Fleet) {
    reap(fleet, fleet.extensions.tasks.added(), |fleet| {
        let (unheard, next) = fleet.extensions.tasks.expire();
        unsubscribe(fleet, unheard);
        // A task that is added meanwhile may expire earlier.
        Some(next?.clamp(Instant::now() + MIN_REST, Instant::now() + EXPIRY_MARGIN))
    });
}

/// Ends the updates of tasks to which no stream listens.
pub(super) fn unsubscribe(fleet: &Fleet, Unheard(origins): Unheard) {
    for TaskOrigin { instance, id } in origins {
        if let Some(upstream) = fleet.servers.existing(instance) {
            upstream.set_task_subscription(&id, false);
        }
    }
}

/// Passes a status notification on to the host of the task. Returns whether the task is known.
pub(super) fn relay_task(fleet: &Fleet, instance: Instance, notification: &Notification) -> bool {
    let Notification { method, params: Some(params) } = notification else { return false };
    let Some(id) = edit::get_str(params, "taskId") else { return false };
    let owners = fleet.extensions.tasks.owners(&TaskOrigin { instance, id: id.clone() });
    for (owner, shown) in &owners {
        let params = task::renamed(params, &id, shown);
        for host in fleet.audience.sessions_of(*owner) {
            match host.client().map(|client| client.era) {
                Some(Era::Legacy) => host.peer().notify(method, Some(params.clone())),
                Some(Era::Modern) => {
                    let server = instance.server;
                    large_results::tell_of_task(fleet, host, server, shown, params.clone());
                }
                None => {}
            }
        }
    }
    !owners.is_empty()
}

/// Returns the host of the task to which a server's question belongs, and the `params` with the
/// host's id; `None` if the question belongs to no task.
pub(super) fn owner_of_question(
    fleet: &Fleet,
    instance: Instance,
    params: &Raw,
) -> Option<(Principal, Raw)> {
    let origin = TaskOrigin { instance, id: task::related(params)? };
    let (owner, shown) = fleet.extensions.tasks.owners(&origin).into_iter().next()?;
    Some((owner, task::renamed(params, &origin.id, &shown)))
}

/// Removes streams from those that listen to tasks.
pub(super) fn end_task_streams(fleet: &Fleet, is_meant: impl Fn(&Subscriber) -> bool) {
    unsubscribe(fleet, fleet.extensions.tasks.leave(is_meant));
}

pub(super) fn owner(caller: &Caller) -> Owner {
    Owner { principal: caller.host.principal(), user: caller.host.user() }
}

/// Returns the `params` of a call as a task, if the tool accepts nothing else and the caller has
/// not requested a task.
pub(super) fn as_required_task(fleet: &Fleet, server: ServerId, params: &Raw) -> Option<Raw> {
    let snapshot = fleet.board.snapshot();
    let catalogs =
        || snapshot.offers_of(server).filter_map(|(_, offer)| Some(&*offer.exposed()?.catalog));
    // Few servers have such a tool; for others the parameters need not be read.
    if !catalogs().any(|catalog| catalog.tools.iter().any(|tool| tool.requires_task)) {
        return None;
    }
    let [name, task] = edit::get_each(params, ["name", "task"]);
    let name: String = name?.read().ok()?;
    let (catalog, tool) = catalogs().find_map(|catalog| {
        Some((catalog, catalog.tools.iter().find(|tool| tool.name == name)?))
    })?;
    let can_be_task = tool.requires_task
        && catalog.greeting.era == Era::Legacy
        && catalog.greeting.offers("tasks")
        && task.is_none();
    can_be_task.then(|| edit::set(params, "task", &Raw::empty_object()))
}

/// Cancels a task when the caller that waits for it is gone.
pub(super) struct Cancellation {
    tasks: TaskTracker,
    /// The server of the task, and the `params` that name it.
    armed: Option<(Lease, Raw)>,
}

impl Cancellation {
    pub(super) fn new(tasks: TaskTracker, armed: Option<(Lease, Raw)>) -> Self {
        Self { tasks, armed }
    }

    pub(super) fn disarm(mut self) {
        self.armed = None;
    }
}

impl Drop for Cancellation {
    fn drop(&mut self) {
        let Some((lease, params)) = self.armed.take() else { return };
        self.tasks.spawn(async move {
            let options = CallOptions::silent_for(CANCEL_TIMEOUT);
            let cancelled = lease.peer().request(method::TASKS_CANCEL, Some(params), options).await;
            tracing::debug!(?cancelled, "cancelled a task whose caller has disconnected");
        });
    }
}
