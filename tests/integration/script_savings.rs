//! What scripts save on tasks with many calls of published servers.

#[path = "../scripts/tasks.rs"]
mod tasks;

use serde_json::{Value, json};

use self::tasks::{bytes_of_calls, bytes_of_script, prepare, tasks};
use crate::{
    call_log::logged_at_last,
    real_servers::four_servers,
    support::{DaemonHome, text_of},
};

#[tokio::test]
async fn four_tasks_pass_a_tenth_of_the_bytes_through_the_model() {
    let (home, place) = (DaemonHome::new(), tempfile::tempdir().unwrap());
    prepare(place.path());
    let mut host = home.proxy(four_servers(place.path())).set("scripts", true).serve().await;
    let mut count = 0;
    for task in tasks() {
        let input = json!({"folder": place.path().join(task.folder)});
        let arguments = json!({"code": task.code, "input": input});
        let result = host.call("run_script", arguments.clone()).await;
        assert!(result["isError"].is_null(), "{result}");
        assert_eq!(serde_json::from_str::<Value>(text_of(&result)).unwrap(), task.value);
        let logged = logged_at_last(&home, count + task.calls).await;
        let calls = &logged[count..];
        assert_eq!(calls.len(), task.calls, "{}", task.what);
        count = logged.len();
        let (script, calls) = (bytes_of_script(&arguments, &result), bytes_of_calls(calls));
        assert!(script * 10 <= calls, "{}: {script} of {calls} bytes", task.what);
    }
}
