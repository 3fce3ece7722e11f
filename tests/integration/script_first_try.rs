//! Scripts that a model wrote from descriptions alone (`tests/scripts/first_try`).

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use crate::{
    real_servers::real,
    support::{Proxy, text_of},
};

const MODULES: [&str; 10] =
    ["auth", "billing", "cache", "deploy", "email", "feeds", "gateway", "hooks", "index", "jobs"];

/// Numbers that look random, and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Writes the data of the tasks.
fn prepare(place: &Path) {
    let mut numbers = Numbers(7);
    for (position, module) in MODULES.iter().enumerate() {
        let folder = place.join(module);
        fs::create_dir(&folder).unwrap();
        let depends_on =
            |step: &usize| (MODULES[(position + step) % 10].to_owned(), json!("^1.0.0"));
        let dependencies: Map<String, Value> =
            [1, 3, 5 + position % 3].iter().map(depends_on).collect();
        let version = format!("1.{}.{}", numbers.below(10), numbers.below(10));
        let package = json!({"name": module, "version": version, "dependencies": dependencies});
        fs::write(folder.join("package.json"), format!("{package:#}")).unwrap();
        let mut text = format!("# {module}\n\nThe {module} module.\n\n");
        for number in 0..numbers.below(5) {
            writeln!(text, "- TODO {number}: improve part {number} of {module}").unwrap();
        }
        fs::write(folder.join("README.md"), text).unwrap();
        let mut log = String::new();
        for number in 0..400 {
            let level =
                ["INFO", "INFO", "WARN", "ERROR"][usize::try_from(numbers.below(4)).unwrap()];
            let (day, took) = (1 + numbers.below(27), 1 + numbers.below(900));
            writeln!(
                log,
                "2026-11-{day:02}T10:00:00 {level} {module} event {number} took {took} ms"
            )
            .unwrap();
        }
        fs::write(folder.join("app.log"), log).unwrap();
    }
    let mut people = "name,team,age\n".to_owned();
    for number in 0..50 {
        let team = ["red", "blue", "green"][usize::try_from(numbers.below(3)).unwrap()];
        writeln!(people, "person{number},{team},{}", 20 + numbers.below(40)).unwrap();
    }
    fs::write(place.join("people.csv"), people).unwrap();
}

/// Returns the scripts in the order of their tasks.
fn scripts() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/first_try");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "ts")).collect();
    scripts.sort();
    scripts
}

#[tokio::test]
async fn scripts_written_from_descriptions_alone_do_their_tasks() {
    let place = tempfile::tempdir().unwrap();
    // The server answers with real paths.
    let data = place.path().canonicalize().unwrap().join("data");
    fs::create_dir(&data).unwrap();
    prepare(&data);
    let memory = json!({"MEMORY_FILE_PATH": place.path().join("memory.json")});
    let servers = [
        real("files", "mcp-server-filesystem", &json!([data])),
        real("memory", "mcp-server-memory", &json!([])).set("env", memory),
        real("everything", "mcp-server-everything", &json!(["stdio"])),
    ];
    let mut host = Proxy::with(servers).set("scripts", true).serve().await;
    let data = data.to_str().unwrap();
    let mut answers = Vec::new();
    for path in scripts() {
        let code = fs::read_to_string(&path).unwrap().replace("DATA", data);
        let arguments = json!({"code": code, "input": {"min": 30, "max": 40}});
        let result = host.call("run_script", arguments).await;
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(result["isError"].is_null(), "{name}: {result}");
        let kinds = result["content"].as_array().unwrap().iter().map(|it| it["type"].to_string());
        let kinds = kinds.collect::<Vec<_>>().join(" ");
        answers.push(format!("{name} ({kinds})\n{}", text_of(&result).replace(data, "DATA")));
    }
    insta::assert_snapshot!(answers.join("\n\n"));
}
