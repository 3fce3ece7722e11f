//! Changes of the config while hosts are connected.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Host, Proxy, Server, eventually, is_alive, text_of};

/// A home whose config the test rewrites.
struct WatchedConfig {
    directory: tempfile::TempDir,
    servers: Vec<Server>,
}

impl WatchedConfig {
    fn with(servers: impl IntoIterator<Item = Server>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory, servers: servers.into_iter().collect() }
    }

    fn proxy(&self) -> Proxy {
        Proxy::with(self.servers.clone()).at_home(self.directory.path()).set("surface", "direct")
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("dormouse.json")
    }

    fn config(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path()).unwrap()).unwrap()
    }

    /// Replaces the config by renaming a new file, as many editors do.
    fn write(&self, text: &str) {
        let fresh = self.directory.path().join("fresh");
        std::fs::write(&fresh, text).unwrap();
        std::fs::rename(fresh, self.path()).unwrap();
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut config = self.config();
        edit(&mut config);
        self.write(&config.to_string());
    }
}

async fn reloaded(host: &Host, times: usize) {
    eventually("it has reloaded", || host.reloads().len() >= times).await;
}

fn list_changes(host: &Host) -> usize {
    let notifications = host.notifications();
    notifications
        .iter()
        .filter(|method| method.as_str() == "notifications/tools/list_changed")
        .count()
}

#[tokio::test]
async fn reload_touches_only_changed_servers() {
    let home = WatchedConfig::with([
        Server::eager("stays"),
        Server::eager("changes"),
        Server::eager("goes"),
    ]);
    let mut host = home.proxy().serve().await;
    assert!(host.tool_names().await.contains(&"goes__echo".to_owned()));
    let (stays, changes) = (host.started("stays"), host.started("changes"));
    let goes = host.started("goes");

    home.edit(|config| {
        let servers = config["mcpServers"].as_object_mut().unwrap();
        servers.remove("goes");
        servers["changes"]["env"] = json!({"FIXTURE_WORDING": " New."});
        let entry = servers["stays"].clone();
        servers.shift_insert(0, "comes".to_owned(), entry);
    });
    reloaded(&host, 1).await;
    insta::assert_snapshot!(host.logged_at("INFO", " removed=").await);
    host.notification("notifications/tools/list_changed").await;
    eventually("the removed server has ended", || goes.iter().all(|process| !is_alive(*process)))
        .await;
    eventually("the changed server is started again", || host.started("changes").len() == 2).await;
    eventually("the old process of the changed server has ended", || {
        changes.iter().all(|process| !is_alive(*process))
    })
    .await;
    host.logged("awake server=\"comes\"").await;
    let tools = host.request("tools/list", json!({})).await;
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names[0].starts_with("comes__"), "in config order: {names:?}");
    assert!(!names.iter().any(|name| name.starts_with("goes__")), "{names:?}");
    assert!(host.call("goes__echo", json!({})).await["isError"] == true);
    assert!(host.call("changes__echo", json!({})).await["isError"].is_null());
    assert_eq!(host.started("stays")[..1], stays[..], "the unchanged server keeps its process");
    assert!(stays.iter().all(|process| is_alive(*process)));
}

#[tokio::test]
async fn saved_scripts_follow_the_config() {
    let config = WatchedConfig::with([Server::lazy("a")]);
    let mut host = config.proxy().serve().await;
    let triage = json!({"file": "sub/triage.ts", "description": "Sorts"});
    config.edit(|config| config["scripts"] = json!({"triage": triage, "run_script": true}));
    host.notification("notifications/tools/list_changed").await;
    let names = host.tool_names().await;
    for name in ["triage", "run_script"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    let file = config.path().with_file_name("sub").join("triage.ts");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(file, "return 'next to the config'").unwrap();
    assert_eq!(text_of(&host.call("triage", json!({})).await), "next to the config");
}

#[tokio::test]
async fn requests_in_flight_survive_a_reload() {
    let home = WatchedConfig::with([Server::eager("a")]);
    let mut host = home.proxy().serve().await;
    host.tool_names().await;
    let (old, before) = (host.started("a"), list_changes(&host));
    let slow = json!({"name": "a__slow", "arguments": {"ms": 1500}});
    let slow = host.send("tools/call", slow).await;
    host.server_noted("a", "tools/call").await;
    home.edit(|config| config["mcpServers"]["a"]["timeouts"] = json!({"call": "1m"}));
    reloaded(&host, 1).await;
    assert!(host.call("a__echo", json!({})).await["isError"].is_null(), "a new process answers");
    let answer = host.answer(slow).await;
    assert_eq!(text_of(&answer["result"]), "slept");
    eventually("the old process ends", || !is_alive(old[0])).await;
    assert_eq!(list_changes(&host), before, "its list has not changed");
}

#[tokio::test]
async fn hiding_a_tool_needs_no_new_connection() {
    let home = WatchedConfig::with([Server::eager("a")]);
    let mut host = home.proxy().serve().await;
    assert!(host.tool_names().await.contains(&"a__echo".to_owned()));
    let before = list_changes(&host);
    home.edit(|config| config["mcpServers"]["a"]["tools"] = json!({"echo": false}));
    reloaded(&host, 1).await;
    assert!(!host.tool_names().await.contains(&"a__echo".to_owned()));
    assert_eq!(list_changes(&host), before + 1);
    let refused = host.call("a__echo", json!({})).await;
    insta::assert_snapshot!(text_of(&refused));
    // Rewriting the same content changes nothing.
    home.edit(|_| {});
    home.edit(|config| config["mcpServers"]["a"]["maxResultBytes"] = json!(1000));
    reloaded(&host, 2).await;
    assert_eq!((host.started("a").len(), list_changes(&host)), (1, before + 1));
}

#[tokio::test]
async fn invalid_config_is_reported_once_and_ignored() {
    let home = WatchedConfig::with([Server::eager("a")]);
    let mut host = home.proxy().serve().await;
    let names = host.tool_names().await;
    for _ in 0..3 {
        home.write("{\n  \"mcpServers\": {\"a\": {\"comand\": \"x\"}}\n}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    insta::assert_snapshot!(host.logged_at("ERROR", "dormouse.json").await);
    let log = host.log();
    let errors: Vec<&String> = log.iter().filter(|line| line.contains(" ERROR ")).collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(host.tool_names().await, names);
    assert!(host.call("a__echo", json!({})).await["isError"].is_null());
}

#[tokio::test]
async fn reload_clears_strikes_of_a_changed_server() {
    let home = WatchedConfig::with([Server::lazy("a").script("exit_at", "spawn")]);
    let mut host = home.proxy().set("surface", "discover").serve().await;
    for _ in 0..3 {
        assert_eq!(host.load("a").await["isError"], true);
    }
    assert!(!host.description().await.contains("- a: "));
    home.edit(|config| {
        let script: Value =
            serde_json::from_str(config["mcpServers"]["a"]["args"][0].as_str().unwrap()).unwrap();
        let mut script = script;
        script.as_object_mut().unwrap().remove("exit_at");
        config["mcpServers"]["a"]["args"][0] = json!(script.to_string());
    });
    reloaded(&host, 1).await;
    assert!(host.description().await.contains("- a: "), "the server is offered again");
    assert_eq!(host.load("a").await["isError"], Value::Null);
}

#[tokio::test]
async fn linked_config_is_watched() {
    let home = WatchedConfig::with([Server::eager("a")]);
    let mut host = home.proxy().serve().await;
    host.tool_names().await;
    let config = home.config();
    host.end().await;

    // Links as Kubernetes mounts a ConfigMap.
    let volume = home.directory.path().join("volume");
    let publish = |version: &str, config: &Value| {
        let directory = volume.join(version);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("config.json"), config.to_string()).unwrap();
        std::os::unix::fs::symlink(version, volume.join("fresh")).unwrap();
        std::fs::rename(volume.join("fresh"), volume.join("..data")).unwrap();
    };
    publish("..1", &config);
    std::os::unix::fs::symlink("..data/config.json", volume.join("config.json")).unwrap();
    let mut host = serve(&volume.join("config.json"), home.directory.path()).await;
    assert!(host.tool_names().await.contains(&"a__echo".to_owned()));
    for (times, version, is_shown) in [(1, "..2", false), (2, "..3", true)] {
        let mut config = config.clone();
        config["mcpServers"]["a"]["tools"] = json!({"echo": is_shown});
        publish(version, &config);
        reloaded(&host, times).await;
        assert_eq!(host.tool_names().await.contains(&"a__echo".to_owned()), is_shown);
    }
    host.signal(nix::sys::signal::Signal::SIGHUP);
    assert!(host.call("a__echo", json!({})).await["isError"].is_null(), "dormouse keeps running");
    host.end().await;
}

/// Starts dormouse with the config at this path.
async fn serve(config: &Path, home: &Path) -> Host {
    let mut host = Proxy::with_config_at(config).at_home(home).start();
    host.initialize(json!({})).await;
    host
}

#[tokio::test]
async fn calls_to_unchanged_servers_survive_reloads() {
    const CALLS: usize = 1000;
    const REWRITES: usize = 50;
    let names = ["a", "b", "c", "d", "e"];
    let home = WatchedConfig::with(names.map(Server::eager));
    let mut host = home.proxy().serve().await;
    host.tool_names().await;
    let config = home.config();
    let mut calls = Vec::new();
    for number in 0..CALLS {
        let call = json!({"name": format!("{}__slow", names[number % 5]), "arguments": {"ms": number % 40}});
        calls.push((number % 5, host.send("tools/call", call).await));
        if number % (CALLS / REWRITES) == 0 {
            let mut config = config.clone();
            let servers = config["mcpServers"].as_object_mut().unwrap();
            match (number / (CALLS / REWRITES)) % 4 {
                // The entries of `a` and `b` never change.
                0 => servers["d"]["env"] = json!({"ROUND": number.to_string()}),
                1 => drop(servers.remove("e")),
                2 => {
                    let entry = servers["c"].clone();
                    servers.shift_insert(0, format!("new{number}"), entry);
                }
                _ => {
                    home.write("{\"mcpServers\": ");
                    continue;
                }
            }
            let reloads = host.reloads().len();
            home.write(&config.to_string());
            eventually("the change is read", || host.reloads().len() > reloads).await;
        }
    }
    let mut failed = Vec::new();
    for (server, id) in calls {
        let answer = host.answer(id).await;
        if server < 2 && answer["result"]["content"][0]["text"] != "slept" {
            failed.push(answer);
        }
    }
    assert!(failed.is_empty(), "{} failed: {:?}", failed.len(), failed[0]);
    assert_eq!((host.started("a").len(), host.started("b").len()), (1, 1));
    let reloads = host.reloads().len();
    assert!(reloads > 20, "{reloads} reloads");
}
