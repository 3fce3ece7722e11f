//! Files of earlier releases (`tests/golden`), and of later ones.

use std::fs;

use serde_json::json;

use crate::support::{Cases, Golden, redacted};

/// Returns the output of a command with the lines of its log last. A thread of its own writes them,
/// so that they may come anywhere.
fn with_log_last(said: &str) -> String {
    let (log, output): (Vec<_>, Vec<_>) = said.lines().partition(|line| line.contains(" WARN "));
    [output, log].concat().join("\n")
}

#[tokio::test]
async fn files_of_each_release_are_read() {
    for (release, golden) in Golden::all() {
        let mut cases = Cases::default();
        for arguments in [&["list"][..], &["approve", "notes"], &["get", "spare"]] {
            cases.add(arguments.join(" "), &golden.run(arguments).await);
        }
        let (code, said) = golden.run_in("project", &["list"]).await;
        cases.add("list of a trusted project", &format!("{said}exit code {code:?}"));
        insta::assert_snapshot!(format!("files_of_{release}"), cases);
    }
}

#[tokio::test]
async fn server_of_each_release_is_loaded_from_its_files() {
    for (release, golden) in Golden::all() {
        // The server is not installed, so that only the files know its tools.
        let mut host = golden.proxy().serve().await;
        let description = host.description().await;
        assert!(
            description.contains("Notes. Use when writing.\n- read: Reads."),
            "{release}: {description}"
        );
        assert!(host.load("notes").await["isError"].is_null(), "{release}: it was loaded before");
    }
}

#[tokio::test]
async fn app_connected_by_each_release_is_restored() {
    for (release, golden) in Golden::all() {
        let said = golden.run(&["disconnect", "cursor", "--yes"]).await;
        let copy = golden.file("data/dormouse/backups", "json");
        let copy =
            copy.file_name().unwrap().to_string_lossy().ends_with("-mcp.json").then_some(copy);
        let before = fs::read_to_string(copy.expect("the copy comes first")).unwrap();
        golden.home.assert_file(".cursor/mcp.json", &before);
        insta::assert_snapshot!(format!("disconnect_{release}"), redacted(&said));
    }
}

#[tokio::test]
async fn configs_of_other_systems_are_converted_as_by_each_release() {
    for (release, golden) in Golden::all() {
        fs::remove_file(golden.home.path().join(".cursor/mcp.json")).unwrap();
        let mut dialects = 0;
        for file in fs::read_dir(golden.home.path().join("dialects")).unwrap() {
            let file = file.unwrap().path();
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            let config = format!("again/{stem}.json");
            let file = file.to_string_lossy();
            golden.run(&["import", &file, "--all", "--yes", "--config", &config]).await;
            let (again, then) =
                (golden.config(&config), golden.config(&format!("converted/{stem}.json")));
            assert_eq!(again, then, "{release}: {file}");
            dialects += 1;
        }
        assert_eq!(dialects, 4);
    }
}

#[tokio::test]
async fn catalog_of_a_newer_format_is_left_alone() {
    for (_, golden) in Golden::all() {
        golden.install_notes();
        let catalog = golden.file("cache", "catalog");
        let text = fs::read_to_string(&catalog).unwrap();
        let newer = text.replacen("\"dormouse-catalog\":1", "\"dormouse-catalog\":2", 1);
        assert_ne!(newer, text);
        fs::write(&catalog, &newer).unwrap();
        let mut host = golden.proxy().serve().await;
        assert!(host.use_tool("notes/echo", json!({})).await["isError"].is_null());
        host.logged("cannot store the catalog").await;
        host.end().await;
        let mut warnings = host.warnings();
        warnings.sort();
        warnings.dedup();
        let mut cases = Cases::default();
        let key = catalog.file_stem().unwrap().to_string_lossy().into_owned();
        cases.add("served", &warnings.join("\n").replace(&key, "<key>"));
        for arguments in [&["list"][..], &["approve", "notes"], &["refresh", "notes"]] {
            let (code, said) = golden.run_in(".", arguments).await;
            let said = said.replace(&key, "<key>");
            let said = format!("{}\nexit code {code:?}", with_log_last(&said));
            cases.add(arguments.join(" "), &said);
        }
        insta::assert_snapshot!("catalog_of_a_newer_format", cases);
        assert_eq!(fs::read_to_string(&catalog).unwrap(), newer);
    }
}

#[tokio::test]
async fn login_of_a_newer_format_is_left_alone() {
    for (_, golden) in Golden::all() {
        let login = golden.file("data/dormouse/logins", "json");
        let text = fs::read_to_string(&login).unwrap();
        let newer = text.replacen("\"version\": 1", "\"version\": 2", 1);
        assert_ne!(newer, text);
        fs::write(&login, &newer).unwrap();
        let mut host = golden.proxy().serve().await;
        let result = host.load("issues").await;
        assert_eq!(result["isError"], true, "nothing listens there: {result}");
        host.logged("cannot load server").await;
        host.end().await;
        let mut cases = Cases::default();
        let key = login.file_stem().unwrap().to_string_lossy().into_owned();
        cases.add("served", &host.warnings().join("\n").replace(&key, "<key>"));
        let said = golden.run(&["list"]).await.replace(&key, "<key>");
        cases.add("list", &with_log_last(&said));
        insta::assert_snapshot!("login_of_a_newer_format", cases);
        assert_eq!(fs::read_to_string(&login).unwrap(), newer);
    }
}
