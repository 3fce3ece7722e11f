//! What messages say of tasks: those of 2025-11-25 (basic/utilities/tasks), and those of the extension of 2026-07-28
//! (SEP-2663).

use std::time::Duration;

use super::Era;
use crate::wire::{Raw, edit};

/// The `_meta` key by which a message of 2025-11-25 names the task that it belongs to.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What a result says of the task that it has created.
#[derive(Debug, PartialEq, Eq)]
pub struct Created {
    pub id: String,
    /// How long the server keeps the task; `None` where it does not end.
    pub ttl: Option<Duration>,
}

/// The task that a result stands for, in place of what the request asked for.
pub fn created(era: Era, result: &Raw) -> Option<Created> {
    let (task, ttl) = match era {
        Era::Legacy => (edit::get(result, "task")?, "ttl"),
        Era::Modern => {
            let is_task = edit::get_str(result, "resultType")? == "task";
            (is_task.then(|| result.clone())?, "ttlMs")
        }
    };
    let id = edit::get_str(&task, "taskId")?;
    let ttl = edit::get(&task, ttl).and_then(|ttl| ttl.read().ok()).map(Duration::from_millis);
    Some(Created { id, ttl })
}

/// Whether a task in this status does not change any more.
pub fn is_over(task: &Raw) -> bool {
    let status = edit::get_str(task, "status");
    status.is_some_and(|status| matches!(status.as_str(), "completed" | "failed" | "cancelled"))
}

/// The id of the task that the `params` or the result of another method name in their `_meta`.
pub fn related(object: &Raw) -> Option<String> {
    let meta = edit::get(object, "_meta")?;
    edit::get_str(&edit::get(&meta, RELATED)?, "taskId")
}

/// `object` with the task of the id `from` under the id `to`, wherever it is named: as `taskId`, in `task`, and as
/// the task that the object belongs to.
pub fn renamed(object: &Raw, from: &str, to: &str) -> Raw {
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
        && edit::get(&meta, RELATED).is_some_and(|task| names(&task))
    {
        let meta = edit::set_within(&meta, RELATED, &[("taskId", &to)]);
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
    fn each_era_says_in_its_own_way_that_a_result_is_a_task() {
        let legacy = raw(r#"{"task":{"taskId":"a","ttl":1500}}"#);
        let modern = raw(r#"{"resultType":"task","taskId":"a","ttlMs":null}"#);
        let ttl = Some(Duration::from_millis(1500));
        assert_eq!(created(Era::Legacy, &legacy), Some(Created { id: "a".to_owned(), ttl }));
        assert_eq!(created(Era::Modern, &modern), Some(Created { id: "a".to_owned(), ttl: None }));
        assert_eq!(created(Era::Legacy, &modern), None);
        assert_eq!(created(Era::Modern, &legacy), None);
    }

    #[test]
    fn a_task_is_renamed_wherever_it_is_named_and_nowhere_else() {
        let meta = r#""_meta":{"n":1e2,"io.modelcontextprotocol/related-task":{"taskId":"a"}}"#;
        let given = format!(r#"{{"taskId":"a","task":{{"taskId":"a","x":"a"}},{meta}}}"#);
        assert_eq!(related(&raw(&given)).as_deref(), Some("a"));
        let expected = given.replace(r#""taskId":"a""#, r#""taskId":"b""#);
        assert_eq!(renamed(&raw(&given), "a", "b").to_string(), expected);
        assert_eq!(renamed(&raw(&given), "c", "b").to_string(), given);
    }
}
