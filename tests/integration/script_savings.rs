//! What scripts save on tasks with many calls of published servers.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    real_servers::four_servers,
    support::{DaemonHome, Host, text_of},
};

/// Bytes that pass through the model: of the calls themselves, and of a script that makes them.
struct Bytes {
    calls: usize,
    of_calls: u64,
    of_script: u64,
}

/// Runs a script on the four servers, and compares it with its calls as the log has them.
async fn compare(home: &DaemonHome, host: &mut Host, code: &str, input: Value) -> (Value, Bytes) {
    let before = logged(home).await.len();
    let arguments = json!({"code": code, "input": input});
    let sent = arguments.to_string().len();
    let result = host.call("run_script", arguments).await;
    assert!(result["isError"].is_null(), "{result}");
    let calls = loop {
        let calls = logged(home).await.split_off(before);
        // The log is written by a task of its own.
        if calls.iter().filter(|call| call["outcome"] == "succeeded").count() == calls.len()
            && !calls.is_empty()
        {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            if logged(home).await.len() == before + calls.len() {
                break calls;
            }
        }
    };
    let size =
        |call: &Value| call["bytesIn"].as_u64().unwrap() + call["bytesOut"].as_u64().unwrap();
    let bytes = Bytes {
        calls: calls.len(),
        of_calls: calls.iter().map(size).sum(),
        of_script: u64::try_from(sent + result.to_string().len()).unwrap(),
    };
    (serde_json::from_str(text_of(&result)).unwrap(), bytes)
}

async fn logged(home: &DaemonHome) -> Vec<Value> {
    let (_, said) = home.run(&["log", "--json", "-n", "1000"]).await;
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes 30 packages, 200 notes and a trail of 31 notes below a directory.
fn prepare(directory: &Path) {
    for folder in ["packages", "notes", "trail"] {
        fs::create_dir(directory.join(folder)).unwrap();
    }
    for number in 0..30 {
        let dependencies: Vec<_> =
            [1, 7, 11].iter().map(|step| format!("package-{}", (number + step) % 30)).collect();
        let package = json!({
            "name": format!("package-{number}"),
            "version": format!("1.{number}.0"),
            "description": "A package with an ordinary description. ".repeat(10),
            "dependencies": dependencies,
        });
        let path = directory.join("packages").join(format!("{number}.json"));
        fs::write(path, format!("{package:#}")).unwrap();
    }
    for number in 0..200 {
        let state = if number % 8 == 0 { "overdue" } else { "paid" };
        let text = format!("Invoice {number}\n{state}: {number}\n{}", "As agreed. ".repeat(80));
        fs::write(directory.join("notes").join(format!("{number:03}.txt")), text).unwrap();
    }
    for number in 0..31 {
        let name = if number == 0 { "start".to_owned() } else { format!("n{number}") };
        let state = if number % 10 == 5 { "open" } else { "done" };
        let next = if number < 30 { format!("next: n{}", number + 1) } else { String::new() };
        let text = format!(
            "state: {state}\nquestion: why {number}?\n{}\n{next}",
            "So it was. ".repeat(30)
        );
        fs::write(directory.join("trail").join(format!("{name}.txt")), text).unwrap();
    }
}

#[tokio::test]
async fn three_tasks_pass_a_tenth_of_the_bytes_through_the_model() {
    let (home, place) = (DaemonHome::new(), tempfile::tempdir().unwrap());
    prepare(place.path());
    let mut host = home.proxy(four_servers(place.path())).set("scripts", true).serve().await;
    for (code, folder, expected, calls) in [
        (
            include_str!("../scripts/graph.ts"),
            "packages",
            json!({"packages": 30, "relations": 90}),
            33,
        ),
        (include_str!("../scripts/notes.ts"), "notes", json!({"overdue": 25, "owed": 2400}), 11),
        (
            include_str!("../scripts/trail.ts"),
            "trail",
            json!({"steps": 31, "questions": ["why 5?", "why 15?", "why 25?"]}),
            31,
        ),
    ] {
        let input = json!({"folder": place.path().join(folder)});
        let (value, bytes) = compare(&home, &mut host, code, input).await;
        assert_eq!((&value, bytes.calls), (&expected, calls));
        assert!(bytes.of_script * 10 <= bytes.of_calls, "{}", bytes.of_script);
    }
}
