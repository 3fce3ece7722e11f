//! Tasks: work of a server that outlives its request (2025-11-25, basic/utilities/tasks; SEP-2663).
//!
//! A host with many servers asks for their tasks at one place. The id of a task leads to its
//! server, which stays awake until the host has the result. If two servers use the same id, the
//! host gets another id for the second task.

use std::time::Duration;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use rmcp::model::ErrorCode;
use serde_json::json;
use tokio::time::Instant;

use super::{
    Caller, Fleet, Principal, Subscriber,
    audience::is_sole,
    calls::{self, Call},
    for_log::for_log,
    instance::Instance,
    known_tasks::{MAX_TTL, add_task, owner, unsubscribe},
    large_results,
    task_table::{TaskOrigin, without_mark},
};
use crate::{
    protocol::{Era, error, extension, has_cursor, method, task},
    upstream::Lease,
    wire::{Outcome, Raw, edit},
};

/// Maximum time for a server to list its tasks.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

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
    pub(crate) async fn listen_to_task(
        &self,
        caller: &Caller,
        stream: Subscriber,
        shown: &str,
    ) -> bool {
        let owner = caller.host.principal();
        if self.extensions.tasks.find(owner, shown).is_none() {
            let Ok(origin) = adopt_task(self, caller, shown).await else { return false };
            // At an endpoint of one server, every host that knows the id may listen.
            add_task(self, caller, origin, None, Instant::now() + MAX_TTL);
        }
        let Some(origin) = self.extensions.tasks.listen(owner, shown, stream) else { return false };
        if let Some(upstream) = self.servers.existing(origin.instance) {
            upstream.set_task_subscription(&origin.id, true);
        }
        true
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
    let origin = match fleet.extensions.tasks.find(owner, &shown) {
        Some(origin) => origin,
        None => adopt_task(fleet, caller, &shown).await?,
    };
    let sent = task::renamed(&params, &shown, &origin.id);
    let call = Call::new(origin.instance.server, caller, method, Some(sent));
    let answered = calls::run(fleet, at_origin(fleet, call, owner, &shown, &origin)).await;
    if let Ok(outcome) = &answered {
        note_answer(fleet, caller, method, &shown, outcome);
    }
    let shaped = calls::shape(caller, method, answered);
    large_results::bound_in_task(fleet, caller, origin.instance.server, method, shaped)
        .await
        .map(|result| task::renamed(&result, &origin.id, &shown))
}

/// Sends a request about a task on the connection on which the task was created while that lives,
/// else on the server's present connection.
fn at_origin<'a>(
    fleet: &Fleet,
    call: Call<'a>,
    owner: Principal,
    shown: &str,
    origin: &TaskOrigin,
) -> Call<'a> {
    let kept = fleet.extensions.tasks.lease(owner, shown);
    match kept.filter(|lease| !lease.peer().is_closed()) {
        Some(lease) => call.on(origin.instance, lease),
        None => call,
    }
}

/// Lets the server sleep when the host has the result, and forgets tasks that the server has
/// forgotten.
fn note_answer(fleet: &Fleet, caller: &Caller, method: &str, shown: &str, outcome: &Outcome) {
    let owner = caller.host.principal();
    match (method, outcome) {
        (method::TASKS_RESULT | method::TASKS_CANCEL, Ok(_)) => {
            fleet.extensions.tasks.settle(owner, shown);
        }
        // The task contains its result.
        (method::TASKS_GET, Ok(task))
            if caller.client.era == Era::Modern && task::is_over(task) =>
        {
            fleet.extensions.tasks.settle(owner, shown);
        }
        (method::TASKS_GET, Err(problem))
            if error::has_code(problem, ErrorCode::INVALID_PARAMS) =>
        {
            unsubscribe(fleet, fleet.extensions.tasks.remove(owner, shown));
        }
        _ => {}
    }
}

/// Finds the server of an unknown task, for example of a host that knows the id from an earlier
/// session.
///
/// # Errors
/// If no awake server knows the task, or another host has created it.
async fn adopt_task(fleet: &Fleet, caller: &Caller, id: &str) -> Result<TaskOrigin, Raw> {
    let unknown = || error::invalid_params(format!("unknown task: {id}"));
    let id = without_mark(id);
    let at = |instance: Instance| {
        let origin = TaskOrigin { instance, id: id.to_owned() };
        (!fleet.extensions.tasks.is_of_another(owner(caller), &origin)).then_some(origin)
    };
    if let Some(server) = caller.endpoint().only_server() {
        return at(fleet.instance(server, caller)).ok_or_else(unknown);
    }
    let params = Raw::encode(&json!({"taskId": id}));
    let asked = with_tasks(fleet, caller).into_iter().filter_map(|(instance, lease)| {
        let (origin, kept) = (at(instance)?, lease.another());
        let call = Call::new(instance.server, caller, method::TASKS_GET, Some(params.clone()));
        let asked = calls::run(fleet, call.on(instance, lease));
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
    let shown = fleet.shown_instances(caller).into_iter();
    let awake = shown.filter_map(|(instance, upstream)| Some((instance, upstream.awake()?)));
    let has_tasks = |lease: &Lease| match era {
        Era::Legacy => lease.greeting().offers("tasks"),
        Era::Modern => extension::declares(&lease.greeting().capabilities, extension::TASKS),
    };
    awake.filter(|(_, lease)| lease.greeting().era == era && has_tasks(lease)).collect()
}

/// Lists the tasks of all awake servers, without those of other hosts. A sleeping server has none.
async fn list_tasks(fleet: &Fleet, caller: &Caller, params: Raw) -> Outcome {
    if let Some(server) = caller.endpoint().only_server()
        && is_sole(&fleet.hosts_of(fleet.instance(server, caller)))
    {
        let call = Call::new(server, caller, method::TASKS_LIST, Some(params));
        return calls::answer(fleet, call).await;
    }
    if has_cursor(&params) {
        return Err(error::invalid_params("unknown cursor: the list of tasks has only one page"));
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
                let error = for_log(&error.to_string(), &[&config]);
                tracing::warn!(server = config.name, error, "cannot list the tasks of a server");
            }
            Err(_) => {
                let server = &fleet.servers.config(instance.server).name;
                tracing::warn!(
                    server,
                    "listing the tasks of a server takes too long; leaving them out"
                );
            }
        }
    }
    Ok(edit::set(&Raw::empty_object(), "tasks", &Raw::array(&tasks)))
}

/// Returns a task of a server's list under the id that the host knows; `None` for a task of another
/// host.
fn as_shown(fleet: &Fleet, caller: &Caller, instance: Instance, task: &Raw) -> Option<Raw> {
    let id = edit::get_str(task, "taskId")?;
    let origin = TaskOrigin { instance, id };
    let owners = fleet.extensions.tasks.owners(&origin);
    match owners.iter().find(|(owner, _)| *owner == caller.host.principal()) {
        Some((_, shown)) => Some(task::renamed(task, &origin.id, shown)),
        None => {
            (!fleet.extensions.tasks.is_of_another(owner(caller), &origin)).then(|| task.clone())
        }
    }
}
