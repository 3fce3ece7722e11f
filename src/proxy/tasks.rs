//! Tasks: work of a server that outlives its request (2025-11-25, basic/utilities/tasks; SEP-2663).
//!
//! A host with many servers asks for their tasks at one place. The id of a task leads to its
//! server, which stays awake until the host has the result. If two servers use the same id, the
//! host gets another id for the second task.

mod table;

use std::time::Duration;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use rmcp::model::ErrorCode;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    Caller, Fleet, Principal, Subscriber,
    audience::is_sole,
    calls::{self, Ending, Outbound},
    calls::{ForwardError, Forwarded},
    instance::Instance,
    lists::has_cursor,
    resources::reply,
};
use crate::{
    catalog::ServerId,
    config::Mask,
    peer::CallOptions,
    protocol::{Era, error, extension, method, task},
    surface::shortened,
    upstream::Lease,
    wire::{Notification, Outcome, Raw, edit},
};
use table::{Added, Owner, Unheard};
pub(super) use table::{Origin, Tasks};

/// Maximum time for which a task is known, however long its server keeps it.
const MAX_TTL: Duration = Duration::from_hours(24);
/// The time for which a task is known after its server may have discarded it.
const SLACK: Duration = Duration::from_mins(1);
/// Minimum interval between two searches for expired tasks.
const MIN_REST: Duration = Duration::from_secs(1);
/// Maximum length of a server's error in the log, in characters.
const MAX_LOGGED: usize = 500;
/// Maximum time for a server to list its tasks.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for a server to confirm that a task is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns whether a method is about tasks in this era.
pub(super) fn is_of_tasks(era: Era, method: &str) -> bool {
    match method {
        method::TASKS_GET | method::TASKS_CANCEL => true,
        method::TASKS_RESULT | method::TASKS_LIST => era == Era::Legacy,
        method::TASKS_UPDATE => era == Era::Modern,
        _ => false,
    }
}

impl Fleet {
    /// Subscribes a stream of a modern host to the updates of a task. Returns whether the task is
    /// known.
    pub async fn listen_to_task(&self, caller: &Caller, stream: Subscriber, shown: &str) -> bool {
        let owner = caller.host.principal();
        if self.tasks.find(owner, shown).is_none() {
            let Ok(origin) = adopt_task(self, caller, shown).await else { return false };
            // At an endpoint of one server, every host that knows the id may listen.
            add_task(self, caller, origin, None, Instant::now() + MAX_TTL);
        }
        let Some(origin) = self.tasks.listen(owner, shown, stream) else { return false };
        if let Some(upstream) = self.servers.existing(origin.instance) {
            upstream.set_task_subscription(&origin.id, true);
        }
        true
    }
}

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
    let expires = Instant::now() + ttl + SLACK;
    let origin = Origin { instance, id: created.id.clone() };
    let shown = add_task(fleet, caller, origin, lease.another(), expires);
    task::renamed(&result, &created.id, &shown)
}

/// Keeps a task. Returns the id under which the host knows it.
fn add_task(
    fleet: &Fleet,
    caller: &Caller,
    origin: Origin,
    lease: Option<Lease>,
    expires: Instant,
) -> String {
    let Added { shown, unheard, wants_reaper } =
        fleet.tasks.add(owner(caller), origin, lease, expires);
    unsubscribe(fleet, unheard);
    if wants_reaper {
        reap_tasks(fleet);
    }
    shown
}

/// Starts to forget expired tasks, for as long as there are tasks.
fn reap_tasks(fleet: &Fleet) {
    let (weak, stop) = (fleet.this.clone(), fleet.context.stop.clone());
    fleet.context.tasks.spawn(async move {
        while let Some(fleet) = weak.upgrade() {
            let (unheard, next) = fleet.tasks.expire();
            unsubscribe(&fleet, unheard);
            drop(fleet);
            let Some(next) = next else { return };
            // A task that is added meanwhile may expire earlier.
            let wake = next.clamp(Instant::now() + MIN_REST, Instant::now() + SLACK);
            if stop.run_until_cancelled(tokio::time::sleep_until(wake)).await.is_none() {
                return;
            }
        }
    });
}

/// Ends the updates of tasks to which no stream listens.
pub(super) fn unsubscribe(fleet: &Fleet, Unheard(origins): Unheard) {
    for Origin { instance, id } in origins {
        if let Some(upstream) = fleet.servers.existing(instance) {
            upstream.set_task_subscription(&id, false);
        }
    }
}

/// Answers a request about one task or about all tasks.
pub(super) async fn handle_task(
    fleet: &Fleet,
    caller: &Caller,
    method: &str,
    params: Raw,
) -> Outcome {
    if method == method::TASKS_LIST {
        return list_tasks(fleet, caller, params).await;
    }
    let Some(shown) = edit::get_str(&params, "taskId") else {
        return Err(error::invalid_params(format!("{method} needs a \"taskId\"")));
    };
    let owner = caller.host.principal();
    let origin = match fleet.tasks.find(owner, &shown) {
        Some(origin) => origin,
        None => adopt_task(fleet, caller, &shown).await?,
    };
    let sent = task::renamed(&params, &shown, &origin.id);
    let answered = ask_origin(fleet, caller, &shown, &origin, method, sent).await;
    if let Ok(outcome) = &answered {
        note_answer(fleet, caller, method, &shown, outcome);
    }
    reply(answered).map(|result| task::renamed(&result, &origin.id, &shown))
}

/// Sends a request to the server of a task: on the connection on which the task was created while
/// that lives, else on the server's present connection.
async fn ask_origin(
    fleet: &Fleet,
    caller: &Caller,
    shown: &str,
    origin: &Origin,
    method: &str,
    params: Raw,
) -> Result<Outcome, ForwardError> {
    let server = origin.instance.server;
    let kept = fleet.tasks.lease(caller.host.principal(), shown);
    let Some(lease) = kept.filter(|lease| !lease.peer().is_closed()) else {
        return calls::forward(fleet, Outbound::new(server, caller, method, Some(params))).await;
    };
    let answered =
        calls::request(fleet, lease, origin.instance, caller, method, Some(params)).await;
    answered.map_err(|cause| ForwardError::new(fleet.servers.config(server).name.clone(), cause))
}

/// Lets the server sleep when the host has the result, and forgets tasks that the server has
/// forgotten.
fn note_answer(fleet: &Fleet, caller: &Caller, method: &str, shown: &str, outcome: &Outcome) {
    let owner = caller.host.principal();
    match (method, outcome) {
        (method::TASKS_RESULT | method::TASKS_CANCEL, Ok(_)) => fleet.tasks.settle(owner, shown),
        // The task contains its result.
        (method::TASKS_GET, Ok(task))
            if caller.client.era == Era::Modern && task::is_over(task) =>
        {
            fleet.tasks.settle(owner, shown);
        }
        (method::TASKS_GET, Err(problem))
            if error::code(problem) == i64::from(ErrorCode::INVALID_PARAMS.0) =>
        {
            unsubscribe(fleet, fleet.tasks.remove(owner, shown));
        }
        _ => {}
    }
}

/// Finds the server of an unknown task, for example of a host that knows the id from an earlier
/// session.
///
/// # Errors
/// If no awake server knows the task, or another host has created it.
async fn adopt_task(fleet: &Fleet, caller: &Caller, id: &str) -> Result<Origin, Raw> {
    let unknown = || error::invalid_params(format!("unknown task: {id}"));
    let at = |instance: Instance| {
        let origin = Origin { instance, id: id.to_owned() };
        (!fleet.tasks.is_of_another(owner(caller), &origin)).then_some(origin)
    };
    if let Some(server) = caller.endpoint().only {
        return at(fleet.instance(server, caller)).ok_or_else(unknown);
    }
    let params = Raw::encode(&json!({"taskId": id}));
    let asked = with_tasks(fleet, caller).into_iter().filter_map(|(instance, lease)| {
        let (origin, kept) = (at(instance)?, lease.another());
        let asked =
            calls::request(fleet, lease, instance, caller, method::TASKS_GET, Some(params.clone()));
        Some(async move { matches!(asked.await, Ok(Ok(_))).then_some((origin, kept)) })
    });
    // Asked concurrently, since one of them may not answer.
    let mut answered: FuturesUnordered<_> = asked.collect();
    while let Some(found) = answered.next().await {
        if let Some((origin, kept)) = found {
            add_task(fleet, caller, origin.clone(), kept, Instant::now() + MAX_TTL);
            return Ok(origin);
        }
    }
    Err(unknown())
}

/// Returns the caller's instances that are awake, have tasks, and speak its era.
fn with_tasks(fleet: &Fleet, caller: &Caller) -> Vec<(Instance, Lease)> {
    let era = caller.client.era;
    let roster = fleet.servers.roster();
    let shown = roster.ids().filter(|server| caller.endpoint().shows(*server));
    let awake = shown.filter_map(|server| {
        let instance = fleet.instance(server, caller);
        Some((instance, fleet.servers.existing(instance)?.awake()?))
    });
    let has_tasks = |lease: &Lease| match era {
        Era::Legacy => lease.greeting().offers("tasks"),
        Era::Modern => extension::declares(&lease.greeting().capabilities, extension::TASKS),
    };
    awake.filter(|(_, lease)| lease.greeting().era == era && has_tasks(lease)).collect()
}

/// Lists the tasks of all awake servers, without those of other hosts. A sleeping server has none.
async fn list_tasks(fleet: &Fleet, caller: &Caller, params: Raw) -> Outcome {
    if let Some(server) = caller.endpoint().only
        && is_sole(&fleet.audience.hosts_of(fleet.instance(server, caller)))
    {
        return reply(
            calls::forward(fleet, Outbound::new(server, caller, method::TASKS_LIST, Some(params)))
                .await,
        );
    }
    if has_cursor(&params) {
        return Err(error::invalid_params("unknown cursor: the list of tasks has one page"));
    }
    let lists = with_tasks(fleet, caller).into_iter().map(|(instance, lease)| async move {
        let listed = lease.list(method::TASKS_LIST, "tasks", LIST_TIMEOUT);
        (instance, tokio::time::timeout(LIST_TIMEOUT, listed).await)
    });
    let mut tasks = Vec::new();
    for (instance, listed) in futures_util::future::join_all(lists).await {
        match listed {
            Ok(Ok(listed)) => {
                let visible = |task: &Raw| as_shown(fleet, caller, instance, task);
                tasks.extend(listed.iter().filter_map(visible));
            }
            Ok(Err(error)) => {
                let config = fleet.servers.config(instance.server);
                let error = Mask::of(&config).masked(&error.to_string());
                let error = shortened(&error, MAX_LOGGED);
                tracing::warn!(server = config.name, error, "cannot list its tasks");
            }
            Err(_) => {
                let server = &fleet.servers.config(instance.server).name;
                tracing::warn!(server, "its tasks are left out: it takes too long to list them");
            }
        }
    }
    Ok(edit::set(&Raw::empty_object(), "tasks", &Raw::array(&tasks)))
}

/// Returns a task of a server's list under the id that the host knows; `None` for a task of another
/// host.
fn as_shown(fleet: &Fleet, caller: &Caller, instance: Instance, task: &Raw) -> Option<Raw> {
    let id = edit::get_str(task, "taskId")?;
    let origin = Origin { instance, id };
    let owners = fleet.tasks.owners(&origin);
    match owners.iter().find(|(owner, _)| *owner == caller.host.principal()) {
        Some((_, shown)) => Some(task::renamed(task, &origin.id, shown)),
        None => (!fleet.tasks.is_of_another(owner(caller), &origin)).then(|| task.clone()),
    }
}

/// Passes a status notification on to the host of the task. Returns whether the task is known.
pub(super) fn relay_task(fleet: &Fleet, instance: Instance, notification: &Notification) -> bool {
    let Notification { method, params: Some(params) } = notification else { return false };
    let Some(id) = edit::get_str(params, "taskId") else { return false };
    let owners = fleet.tasks.owners(&Origin { instance, id: id.clone() });
    for (owner, shown) in &owners {
        let params = task::renamed(params, &id, shown);
        for host in fleet.audience.sessions_of(*owner) {
            match host.client().map(|client| client.era) {
                Some(Era::Legacy) => host.peer().notify(method, Some(params.clone())),
                Some(Era::Modern) => host.task_updated(shown, &params),
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
    let origin = Origin { instance, id: task::related(params)? };
    let (owner, shown) = fleet.tasks.owners(&origin).into_iter().next()?;
    Some((owner, task::renamed(params, &origin.id, &shown)))
}

/// Removes streams from those that listen to tasks.
pub(super) fn end_task_streams(fleet: &Fleet, is_meant: impl Fn(&Subscriber) -> bool) {
    unsubscribe(fleet, fleet.tasks.leave(is_meant));
}

fn owner(caller: &Caller) -> Owner {
    Owner { principal: caller.host.principal(), user: caller.host.user() }
}

/// Returns the `params` of a call as a task, if the tool accepts nothing else and the caller has
/// not requested a task.
pub(super) fn as_required_task(fleet: &Fleet, server: ServerId, params: &Raw) -> Option<Raw> {
    let snapshot = fleet.board.snapshot();
    let catalog = &snapshot.view(server)?.exposed()?.catalog;
    let name = edit::get_str(params, "name").unwrap_or_default();
    let tool = catalog.tools.iter().find(|tool| tool.name == name);
    let support = tool.and_then(|tool| edit::get(&tool.raw, "execution"));
    let is_required = support
        .and_then(|execution| edit::get_str(&execution, "taskSupport"))
        .is_some_and(|support| support == "required");
    let can_be_task = catalog.greeting.era == Era::Legacy
        && catalog.greeting.offers("tasks")
        && edit::get(params, "task").is_none();
    (is_required && can_be_task).then(|| edit::set(params, "task", &Raw::empty_object()))
}

/// Returns the result of a task that dormouse made of a call, when the task is done.
pub(super) async fn await_task(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    created: Raw,
) -> Outcome {
    let Some(task) = task::created(Era::Legacy, &created) else {
        return calls::called(fleet, caller, server, Ok(Ok(created)));
    };
    let owner = caller.host.principal();
    let id = fleet.tasks.find(owner, &task.id).map_or_else(|| task.id.clone(), |origin| origin.id);
    let (instance, lease) = match calls::lease(fleet, server, caller).await {
        Ok(leased) => leased,
        Err(error) => return reply(Err(error)),
    };
    let params = Raw::encode(&json!({"taskId": id}));
    let cancellation = Cancellation {
        tasks: fleet.context.tasks.clone(),
        armed: lease.another().map(|lease| (lease, params.clone())),
    };
    // If the server asks something, a modern host leaves; its retry gets the result.
    let (here, parked) = match caller.client.era {
        Era::Legacy => (Some(cancellation), None),
        Era::Modern => (None, Some(cancellation)),
    };
    let ending = Ending { answered_as: Some(method::TOOLS_CALL), cancellation: parked };
    let method = method::TASKS_RESULT;
    let forwarded = Forwarded { fleet, lease, instance, caller, method };
    let answered = calls::send_forwarded(fleet, forwarded, Some(params), ending).await;
    if let Some(cancellation) = here {
        cancellation.disarm();
    }
    unsubscribe(fleet, fleet.tasks.remove(owner, &task.id));
    let name = fleet.servers.config(server).name.clone();
    let answered = answered.map_err(|cause| ForwardError::new(name, cause));
    calls::called(fleet, caller, server, answered)
}

/// Cancels a task when the caller that waits for it is gone.
pub(super) struct Cancellation {
    tasks: TaskTracker,
    /// The server of the task, and the `params` that name it.
    armed: Option<(Lease, Raw)>,
}

impl Cancellation {
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
            tracing::debug!(?cancelled, "cancelled a task whose caller has gone");
        });
    }
}
