//! Reads and renames tasks in messages: the tasks of 2025-11-25 (basic/utilities/tasks), and the
//! tasks of the extension of 2026-07-28 (SEP-2663).

use std::time::Duration;

use super::Era;
use crate::wire::{Raw, edit};

/// The `_meta` key under which a message of 2025-11-25 names the task that it belongs to.
pub(crate) const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";

/// A task that a result announces.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CreatedTask {
    pub id: String,
    /// The time for which the server keeps the task; `None` if the task does not expire.
    pub ttl: Option<Duration>,
}

/// Returns whether the definition of a tool demands that calls are made as tasks (2025-11-25,
/// basic/utilities/tasks, Tool-Level Negotiation).
pub(crate) fn is_required(tool: &Raw) -> bool {
    let execution = edit::get(tool, "execution");
    let support = execution.and_then(|execution| edit::get_str(&execution, "taskSupport"));
    support.is_some_and(|support| support == "required")
}

/// Returns the task that a result announces in place of the requested result.
pub(crate) fn created(era: Era, result: &Raw) -> Option<CreatedTask> {
    let (task, ttl) = match era {
        Era::Legacy => (edit::get(result, "task")?, "ttl"),
        Era::Modern => {
            let is_task = edit::get_str(result, "resultType")? == "task";
            (is_task.then(|| result.clone())?, "ttlMs")
        }
    };
    let id = edit::get_str(&task, "taskId")?;
    let ttl = edit::get(&task, ttl).and_then(|ttl| ttl.read().ok()).map(Duration::from_millis);
    Some(CreatedTask { id, ttl })
}

/// Returns whether a task has reached a final status.
pub(crate) fn is_over(task: &Raw) -> bool {
    let status = edit::get_str(task, "status");
    status.is_some_and(|status| matches!(status.as_str(), "completed" | "failed" | "cancelled"))
}

/// Returns the id of the task that `params` or a result name in their `_meta`.
pub(crate) fn related(object: &Raw) -> Option<String> {
    let meta = edit::get(object, "_meta")?;
    edit::get_str(&edit::get(&meta, RELATED_TASK_KEY)?, "taskId")
}

/// Returns `object` with the task id `from` replaced by `to` in all places that name a task:
/// `taskId`, `task`, and the related task in `_meta`.
pub(crate) fn renamed(object: &Raw, from: &str, to: &str) -> Raw {
    if from == to {
        return object.clone();
    }
    let to = Raw::encode(to);
    let names = |task: &Raw| edit::get_str(task, "taskId").is_some_and(|id| id == from);
    let mut renamed = object.clone();
    if names(object) {
        renamed = edit::set(&renamed, "taskId", &to);
    }
    if edit::get(object, "task").is_some_and(|task| names(&task)) {
        renamed = edit::set_within(&renamed, "task", &[("taskId", &to)]);
    }
    if let Some(meta) = edit::get(object, "_meta")
        && edit::get(&meta, RELATED_TASK_KEY).is_some_and(|task| names(&task))
    {
        let meta = edit::set_within(&meta, RELATED_TASK_KEY, &[("taskId", &to)]);
        renamed = edit::set(&renamed, "_meta", &meta);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn only_a_tool_that_says_so_requires_tasks() {
        for (tool, is_meant) in [
            (r#"{"execution": {"taskSupport": "required"}}"#, true),
            (r#"{"execution": {"taskSupport": "optional"}}"#, false),
            (r#"{"execution": {"taskSupport": true}}"#, false),
            (r#"{"execution": null}"#, false),
            (r#"{"taskSupport": "required"}"#, false),
        ] {
            assert_eq!(is_required(&raw(tool)), is_meant, "{tool}");
        }
    }

    #[test]
    fn a_created_task_is_read_in_the_form_of_its_era() {
        let legacy = raw(r#"{"task":{"taskId":"a","ttl":1500}}"#);
        let modern = raw(r#"{"resultType":"task","taskId":"a","ttlMs":null}"#);
        let ttl = Some(Duration::from_millis(1500));
        assert_eq!(created(Era::Legacy, &legacy), Some(CreatedTask { id: "a".to_owned(), ttl }));
        assert_eq!(
            created(Era::Modern, &modern),
            Some(CreatedTask { id: "a".to_owned(), ttl: None })
        );
        assert_eq!(created(Era::Legacy, &modern), None);
        assert_eq!(created(Era::Modern, &legacy), None);
    }

    #[test]
    fn a_task_is_renamed_in_every_member_that_names_it() {
        let meta = r#""_meta":{"n":1e2,"io.modelcontextprotocol/related-task":{"taskId":"a"}}"#;
        let given = format!(r#"{{"taskId":"a","task":{{"taskId":"a","x":"a"}},{meta}}}"#);
        assert_eq!(related(&raw(&given)).as_deref(), Some("a"));
        let expected = given.replace(r#""taskId":"a""#, r#""taskId":"b""#);
        assert_eq!(renamed(&raw(&given), "a", "b").to_string(), expected);
        assert_eq!(renamed(&raw(&given), "c", "b").to_string(), given);
    }
}
