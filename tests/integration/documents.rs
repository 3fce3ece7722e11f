//! Further configs from the documentation of the four earlier systems, in addition to those in
//! `dialects.rs`. Commands are replaced by servers that exist on this machine.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Cases, Host, Program, Proxy, descendants, eventually, text_of};

const EVERY_TOOL: [&str; 4] = ["add_note", "list_notes", "search_notes", "delete_note"];

/// mcp-proxy's fork: lazy loading for all servers.
#[tokio::test]
async fn lazy_mcp_proxy_servers_show_an_activate_tool() {
    let config = r#"{
        "mcpProxy": {
            "baseURL": "http://localhost:9090", "addr": "127.0.0.1:0", "name": "MCP Proxy",
            "version": "1.0.0", "type": "streamable-http", "options": { "lazyLoad": true }
        },
        "mcpServers": {
            "serena": { "command": "DORMOUSE", "args": ["__demo-server", "notes"], "env": {} },
            "playwright": { "command": "DORMOUSE", "args": ["__demo-server", "notes"], "env": {} }
        }
    }"#;
    let proxy = Proxy::reading("config.json", config).start_service();
    let mut descriptions = Cases::default();
    for server in ["serena", "playwright"] {
        let meta_tool = format!("activate_{server}");
        let mut host = at(&proxy, &format!("/{server}/")).await;
        assert_eq!(host.tool_names().await, std::slice::from_ref(&meta_tool));
        let tools = host.request("tools/list", json!({})).await;
        descriptions.add(&meta_tool, tools["tools"][0]["description"].as_str().unwrap());
        let activated = host.call(&meta_tool, json!({})).await;
        let activated: Value = serde_json::from_str(text_of(&activated)).unwrap();
        assert_eq!((&activated["activated"], &activated["toolCount"]), (&json!(true), &json!(4)));
        let names = host.tool_names().await;
        assert!(EVERY_TOOL.iter().all(|tool| names.contains(&(*tool).to_owned())), "{names:?}");
    }
    insta::assert_snapshot!(descriptions);
}

/// mcp-proxy's fork: lazy loading for one server.
#[tokio::test]
async fn mcp_proxy_servers_are_lazy_one_by_one() {
    let config = r#"{
        "mcpProxy": {
            "baseURL": "http://localhost:9090", "addr": "127.0.0.1:0", "name": "MCP Proxy", "version": "1.0.0"
        },
        "mcpServers": {
            "serena": {
                "command": "DORMOUSE", "args": ["__demo-server", "notes"], "options": { "lazyLoad": true }
            },
            "playwright": {
                "command": "DORMOUSE", "args": ["__demo-server", "notes"], "options": { "lazyLoad": false }
            }
        }
    }"#;
    let proxy = Proxy::reading("config.json", config).start_service();
    assert_eq!(at(&proxy, "/serena/").await.tool_names().await, ["activate_serena"]);
    assert_eq!(at(&proxy, "/playwright/").await.tool_names().await, EVERY_TOOL);
}

/// mcp-proxy: the config of a host that is connected to it.
#[tokio::test]
async fn config_of_an_mcp_proxy_host_is_readable() {
    let config = r#"{ "mcpServers": { "proxy-serena": { "url": "http://127.0.0.1:9/serena/" } } }"#;
    let mut host = Proxy::reading("mcp.json", config).serve().await;
    assert!(host.description().await.contains("proxy-serena"), "it is a server like any other");
    host.end().await;
}

async fn at(proxy: &Program, path: &str) -> Host {
    let mut host = proxy.host(path).await;
    host.initialize(json!({})).await;
    host
}

/// dynamic-mcp's proposal: the startup of each server.
const LAZY_STARTUP: &str = r#"{
    "mcpServers": {
        "filesystem": {
            "description": "File operations",
            "command": "DORMOUSE", "args": ["__demo-server", "notes"],
            "lazy_startup": false  // Eager: connect immediately and stay connected (no idle timeout)
        },
        "backup": {
            "description": "Backup operations (rarely used)",
            "command": "DORMOUSE", "args": ["__demo-server", "weather"],
            "lazy_startup": "pure",  // Pure lazy: connect on first API call
            "idle_timeout": 60
        },
        "docs": {
            "description": "Documentation server (sometimes used)",
            "command": "DORMOUSE", "args": ["__demo-server", "notes"],
            "lazy_startup": "hybrid",  // Hybrid: discover at startup, disconnect, reconnect on use
            "idle_timeout": 1
        }
    }
}"#;

#[tokio::test]
async fn dynamic_mcp_servers_start_as_configured() {
    let home = tempfile::tempdir().unwrap();
    // The flag applies to servers that do not set their own timeout.
    let proxy = Proxy::reading("dynamic-mcp.json", LAZY_STARTUP).at_home(home.path());
    let mut host = proxy.argument("--idle-timeout").argument("600").serve().await;
    assert_eq!(host.tool_names().await, ["get_dynamic_tools", "call_dynamic_tool"]);
    let of = |group| json!({"group": group});
    for group in ["docs", "filesystem", "backup"] {
        let listed = host.call("get_dynamic_tools", of(group)).await;
        let listed: Value = serde_json::from_str(text_of(&listed)).unwrap();
        assert!(listed[0]["inputSchema"].is_object(), "{group}: {listed}");
    }
    let call = json!({"group": "docs", "name": "list_notes", "args": {}});
    assert_eq!(host.call("call_dynamic_tool", call).await["isError"], Value::Null);
    let left = || descendants(host.serving_id()).len() == 3;
    eventually("the hybrid one sleeps after its second; the others and the watchdog stay", left)
        .await;
    host.end().await;
}

/// dynamic-mcp's simplest config has only descriptions and commands, so it is read as dormouse's
/// own.
#[tokio::test]
async fn plain_config_is_not_taken_for_dynamic_mcp() {
    let config = r#"{ "mcpServers": {
        "filesystem": { "description": "File operations", "command": "DORMOUSE", "args": ["__demo-server", "notes"] },
        "git": { "description": "Git operations", "command": "DORMOUSE", "args": ["__demo-server", "weather"] }
    } }"#;
    let mut host =
        Proxy::reading("mcp.json", config).argument("--surface").argument("groups").serve().await;
    let tools = host.request("tools/list", json!({})).await;
    let groups = tools["tools"][0]["description"].as_str().unwrap().to_owned();
    for line in ["- filesystem: File operations", "- git: Git operations"] {
        assert!(groups.contains(line), "{groups}");
    }
    host.end().await;
}

/// multi-mcp's redesign: all six servers.
const SERVERS: &str = "servers:
  github:
    command: DORMOUSE __demo-server notes
    always_on: true                  # stays connected at all times
    tools:
      list_notes:
        enabled: true
      add_note:
        enabled: false               # user disabled this
      delete_note:
        enabled: false
      # ... rest of 26 tools

  exa:
    type: sse
    url: http://127.0.0.1:9/mcp?tools=...
    always_on: false                 # lazy: connect on first tool call
    tools:
      web_search_exa:
        enabled: true
      linkedin_search_exa:
        enabled: false
      # ... rest

  obsidian:
    command: DORMOUSE __demo-server notes
    always_on: true
    tools:
      read_note:
        enabled: true
      # ...

  tavily:
    command: DORMOUSE __demo-server weather
    always_on: false
    tools:
      # all enabled: true by default

  sequential-thinking:
    command: DORMOUSE __demo-server weather
    always_on: false
    tools:
      forecast:
        enabled: true

  context7:
    command: DORMOUSE __demo-server notes
    always_on: false
    tools:
      list_notes:
        enabled: true
      search_notes:
        enabled: true
";

#[tokio::test]
async fn multi_mcp_servers_are_always_on_or_wake_on_a_call() {
    let home = tempfile::tempdir().unwrap();
    let mut host = Proxy::reading("servers.yaml", SERVERS).at_home(home.path()).serve().await;
    let names = host.tool_names().await;
    for shown in
        ["github__list_notes", "github__search_notes", "obsidian__list_notes", "context7__add_note"]
    {
        assert!(names.contains(&shown.to_owned()), "{shown}: {names:?}");
    }
    for hidden in ["github__add_note", "github__delete_note"] {
        assert!(!names.contains(&hidden.to_owned()), "{hidden}: {names:?}");
    }
    assert!(names.iter().any(|name| name.starts_with("tavily__")), "{names:?}");
    let always_on = || descendants(host.serving_id()).len() == 3;
    eventually("two servers are on, and the watchdog", always_on).await;
    assert_eq!(host.call("context7__list_notes", json!({})).await["isError"], Value::Null);
    assert_eq!(descendants(host.serving_id()).len(), 4, "the call has woken it");
    host.end().await;
    tokio::time::timeout(Duration::from_secs(30), host.exit()).await.expect("it ends");
}
