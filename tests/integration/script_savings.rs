//! What scripts save on tasks with many calls of published servers.

#[path = "../scripts/tasks.rs"]
mod tasks;

use serde_json::{Value, json};

use self::tasks::{bytes_of_calls, bytes_of_script, prepare, tasks};
use crate::{
    real_servers::four_servers,
    support::{DaemonHome, text_of},
};

async fn logged(home: &DaemonHome) -> Vec<Value> {
    let (_, said) = home.run(&["log", "--json", "-n", "1000"]).await;
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the calls of a script, once as many as these are in the log.
async fn calls_of_run(home: &DaemonHome, run: u64, count: usize) -> Vec<Value> {
    for _ in 0..100 {
        let mut calls = logged(home).await;
        calls.retain(|call| call["script"]["run"] == run);
        if calls.len() >= count {
            return calls;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{count} calls are logged")
}

#[tokio::test]
async fn four_tasks_pass_a_tenth_of_the_bytes_through_the_model() {
    let (home, place) = (DaemonHome::new(), tempfile::tempdir().unwrap());
    prepare(place.path());
    let mut host = home.proxy(four_servers(place.path())).set("scripts", true).serve().await;
    for (run, task) in (1..).zip(tasks()) {
        let input = json!({"folder": place.path().join(task.folder)});
        let arguments = json!({"code": task.code, "input": input});
        let result = host.call("run_script", arguments.clone()).await;
        assert!(result["isError"].is_null(), "{result}");
        assert_eq!(serde_json::from_str::<Value>(text_of(&result)).unwrap(), task.value);
        let calls = calls_of_run(&home, run, task.calls).await;
        assert_eq!(calls.len(), task.calls, "{}", task.what);
        let (script, calls) = (bytes_of_script(&arguments, &result), bytes_of_calls(&calls));
        assert!(script * 10 <= calls, "{}: {script} of {calls} bytes", task.what);
    }
}
