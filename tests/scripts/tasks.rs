//! Tasks with many calls of published servers, and the scripts that do them. Tests and benches
//! share them.

use std::{fs, path::Path};

use serde_json::{Value, json};

pub struct Task {
    pub what: &'static str,
    /// The script.
    pub code: &'static str,
    /// The folder of its data, below the directory that [`prepare`] fills.
    pub folder: &'static str,
    /// The number of calls that it makes.
    pub calls: usize,
    /// The value of the script.
    pub value: Value,
}

pub fn tasks() -> [Task; 4] {
    [
        Task {
            what: "read 30 packages, and build their graph in the memory",
            code: include_str!("graph.ts"),
            folder: "packages",
            calls: 33,
            value: json!({"packages": 30, "relations": 90}),
        },
        Task {
            what: "find the overdue ones among 200 invoices, and add them up",
            code: include_str!("notes.ts"),
            folder: "notes",
            calls: 11,
            value: json!({"overdue": 25, "owed": 2400}),
        },
        Task {
            what: "look at 200 resources, and name some",
            code: include_str!("resources.ts"),
            folder: "resources",
            calls: 200,
            value: json!({
                "read": 200,
                "found": ["25", "50", "75", "100", "125", "150", "175", "200"],
            }),
        },
        Task {
            what: "follow a trail of 31 notes, and collect open questions",
            code: include_str!("trail.ts"),
            folder: "trail",
            calls: 31,
            value: json!({"steps": 31, "questions": ["why 5?", "why 15?", "why 25?"]}),
        },
    ]
}

/// Writes the data of all tasks below a directory.
pub fn prepare(directory: &Path) {
    for Task { folder, .. } in tasks() {
        fs::create_dir(directory.join(folder)).expect("a directory that can be written");
    }
    let write = |path: String, text: String| {
        fs::write(directory.join(path), text).expect("a directory that can be written");
    };
    for number in 0..30 {
        let dependencies: Vec<_> =
            [1, 7, 11].iter().map(|step| format!("package-{}", (number + step) % 30)).collect();
        let package = json!({
            "name": format!("package-{number}"),
            "version": format!("1.{number}.0"),
            "description": "A package with an ordinary description. ".repeat(10),
            "dependencies": dependencies,
        });
        write(format!("packages/{number}.json"), format!("{package:#}"));
    }
    for number in 0..200 {
        let state = if number % 8 == 0 { "overdue" } else { "paid" };
        let text = format!("Invoice {number}\n{state}: {number}\n{}", "As agreed. ".repeat(80));
        write(format!("notes/{number:03}.txt"), text);
    }
    for number in 0..31 {
        let name = if number == 0 { "start".to_owned() } else { format!("n{number}") };
        let state = if number % 10 == 5 { "open" } else { "done" };
        let next = if number < 30 { format!("next: n{}", number + 1) } else { String::new() };
        let filling = "So it was. ".repeat(30);
        let text = format!("state: {state}\nquestion: why {number}?\n{filling}\n{next}");
        write(format!("trail/{name}.txt"), text);
    }
}

/// Returns the bytes that pass through the model if it makes the calls itself: the arguments and
/// results of these lines of `dormouse log --json`.
pub fn bytes_of_calls(calls: &[Value]) -> usize {
    let size =
        |call: &Value| call["bytesIn"].as_u64().zip(call["bytesOut"].as_u64()).map(|(i, o)| i + o);
    let bytes: u64 = calls.iter().map(|call| size(call).expect("sizes")).sum();
    usize::try_from(bytes).expect("it fits into memory")
}

/// Returns the bytes that pass through the model if a script makes the calls.
pub fn bytes_of_script(arguments: &Value, result: &Value) -> usize {
    arguments.to_string().len() + result.to_string().len()
}
