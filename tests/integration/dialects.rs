//! Configs of earlier systems, copied from their documentation. Each must behave here as it did
//! there. Only the commands are replaced by servers that exist on this machine.

use serde_json::{Value, json};

use crate::support::{Host, Proxy, descendants, eventually, text_of};

/// The config in dynmcp's "Dynamic Discovery".
const DYNMCP: &str = r#"{ "$schema": "https://dynamicmcp.tools/config.json", "mcp": {
    "filesystem": { "transport": "stdio", "command": "DORMOUSE", "args": ["__demo-server", "notes"] },
    "chrome-devtools": {
        "description": "Chrome browser automation and DevTools control.",
        "transport": "stdio", "command": "DORMOUSE", "args": ["__demo-server", "weather"]
    },
    "aws-knowledge": {
        "description": "AWS documentation, code samples, and best-practice guidance.",
        "transport": "streamable-http", "url": "http://127.0.0.1:9/"
    }
}}"#;

#[tokio::test]
async fn dynmcp_config_lists_described_servers_for_loading() {
    let mut host = Proxy::reading("mcp.json", DYNMCP).serve().await;
    assert_eq!(host.tool_names().await, ["discover_tool", "use_tool", "load_mcp"]);
    let description = host.description().await;
    assert!(description.contains("- chrome-devtools: Chrome browser automation"), "{description}");
    assert!(description.contains("- aws-knowledge: AWS documentation"), "{description}");
    assert!(description.contains("filesystem:"), "it has no description: {description}");
    assert_eq!(descendants(host.serving_id()).len(), 2, "the eager one, and what looks after it");
    let loaded = host.load("chrome-devtools").await;
    assert_eq!(loaded["isError"], Value::Null, "{loaded}");
    host.end().await;
}

/// The config in dynamic-mcp's README and in its proposal for a lazy start.
const DYNAMIC_MCP: &str = r#"{ "mcpServers": {
    "critical": {
        "type": "stdio", "description": "Used all the time", "command": "DORMOUSE",
        "args": ["__demo-server", "notes"], "env": {"TOKEN": "${NOT_SET_ANYWHERE}"},
        "features": {"tools": true, "resources": false, "prompts": false},
        "lazy_startup": false
    },
    "rare": {
        "description": "Rarely used", "command": "DORMOUSE", "args": ["__demo-server", "weather"],
        "lazy_startup": "pure", "idle_timeout": 60, "timeout": {"tools": "1min", "resources": "10s"}
    },
    "mixed": { "description": "Sometimes used", "command": "DORMOUSE", "args": ["__demo-server", "notes"] },
    "off": { "description": "Not used", "command": "nothing", "enabled": false }
}}"#;

#[tokio::test]
async fn dynamic_mcp_config_lists_servers_as_groups() {
    let home = tempfile::tempdir().unwrap();
    let proxy = Proxy::reading("dynamic-mcp.json", DYNAMIC_MCP).at_home(home.path());
    let mut host = proxy.serve().await;
    let tools = host.request("tools/list", json!({})).await;
    let groups = &tools["tools"][0]["description"];
    assert_eq!(host.tool_names().await, ["get_dynamic_tools", "call_dynamic_tool"]);
    for (group, is_there) in [("critical", true), ("rare", true), ("mixed", true), ("off", false)] {
        let line = format!("- {group}: ");
        assert_eq!(groups.as_str().unwrap().contains(&line), is_there, "{groups}");
    }
    let only_the_critical = || descendants(host.serving_id()).len() == 2;
    eventually("the hybrid one sleeps, and the lazy one has never been started", only_the_critical)
        .await;
    let listed = host.call("get_dynamic_tools", json!({"group": "rare"})).await;
    let listed: Value = serde_json::from_str(text_of(&listed)).unwrap();
    assert!(listed[0]["inputSchema"].is_object(), "{listed}");
    let call = json!({"group": "critical", "name": "list_notes", "args": {}});
    let called = host.call("call_dynamic_tool", call).await;
    assert_eq!(
        called["isError"],
        Value::Null,
        "a variable that is not set changes nothing: {called}"
    );
    host.end().await;
}

/// The config in multi-mcp's redesign.
const MULTI_MCP: &str = "servers:
  github:
    command: DORMOUSE __demo-server notes
    always_on: true                  # stays connected at all times
    tools:
      list_notes:
        enabled: true
      add_note:
        enabled: false               # user disabled this
      search_notes:
        enabled: false
      # ... rest of 26 tools

  sequential-thinking:
    command: DORMOUSE __demo-server weather
    always_on: false
    idle_timeout_minutes: 5
    tools:
      # all enabled: true by default

profiles:
  work:
    servers:
      github: [list_notes]
";

#[tokio::test]
async fn multi_mcp_config_lists_enabled_tools() {
    let home = tempfile::tempdir().unwrap();
    let proxy = || Proxy::reading("servers.yaml", MULTI_MCP).at_home(home.path());
    let mut host = proxy().serve().await;
    let is_hidden = |names: &[String], tool: &str| !names.contains(&format!("github__{tool}"));
    let names = host.tool_names().await;
    assert!(is_hidden(&names, "add_note") && is_hidden(&names, "search_notes"), "{names:?}");
    assert!(!is_hidden(&names, "list_notes") && !is_hidden(&names, "delete_note"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("sequential-thinking__")), "{names:?}");
    eventually("the one that is not always on sleeps", || {
        descendants(host.serving_id()).len() == 2
    })
    .await;
    let refused = host.call("github__add_note", json!({"text": "x"})).await;
    insta::assert_snapshot!(text_of(&refused));
    host.end().await;

    let mut host = proxy().argument("--profile").argument("work").serve().await;
    assert_eq!(host.tool_names().await, ["github__list_notes"]);
    host.end().await;
}

/// A config as multi-mcp writes it: every key of every server, with or without a value.
const WRITTEN_BY_MULTI_MCP: &str = "servers:
  notes:
    always_on: off
    args: [__demo-server, notes]
    command: DORMOUSE
    env: {}
    idle_timeout_minutes: 5
    tools: {}
    triggers: []
    type: stdio
    url: null
  remote:
    always_on: false
    args: []
    command: null
    env: {}
    idle_timeout_minutes: 5
    tools:
      t: {enabled: true, stale: false, description: '', input_schema: {}}
    triggers: []
    type: stdio
    url: http://127.0.0.1:9/
profiles: {}
retrieval: {enabled: false, top_k: 10}
sources: []
";

#[tokio::test]
async fn file_written_by_multi_mcp_loads_without_warnings() {
    let config = WRITTEN_BY_MULTI_MCP
        .replace("[__demo-server, notes]", "['-c', 'exec \"$DEMO\" __demo-server notes']");
    let config = config.replace("command: DORMOUSE", "command: sh");
    let proxy = Proxy::reading("servers.yaml", &config);
    let mut host = proxy.environment("DEMO", env!("CARGO_BIN_EXE_dormouse")).serve().await;
    assert!(host.tool_names().await.contains(&"notes__list_notes".to_owned()));
    let is_warning = |line: &&String| line.contains("servers.yaml:");
    assert_eq!(host.log().iter().find(is_warning), None);
    host.end().await;
}

#[tokio::test]
async fn refresh_keeps_the_format_of_multi_mcp() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("servers.yaml");
    let before = MULTI_MCP.replace("DORMOUSE", env!("CARGO_BIN_EXE_dormouse"));
    std::fs::write(&config, before.replace("      search_notes:", "      burn_notes:")).unwrap();
    let mut refresh = crate::support::dormouse();
    refresh.env("XDG_CACHE_HOME", home.path()).args(["refresh", "github", "--config"]).arg(&config);
    let refreshed = refresh.output().await.unwrap();
    assert!(refreshed.status.success(), "{refreshed:?}");
    let after = std::fs::read_to_string(&config).unwrap();
    let expected = "      add_note:
        enabled: false               # user disabled this
      burn_notes:
        enabled: false
        stale: true
";
    assert!(after.contains(expected), "{after}");
    let tools = after.split("  sequential-thinking:").next().unwrap();
    for tool in ["search_notes", "delete_note"] {
        assert!(tools.contains(&format!("{tool}:")), "{after}");
    }
    assert!(!tools.contains("_note: true") && !tools.contains("_notes: true"), "{after}");
}

/// The config for lazy loading of mcp-proxy's fork, with options from the README of the original.
const MCP_PROXY: &str = r#"{
  "mcpProxy": {
    "baseURL": "https://mcp.example.com", "addr": "127.0.0.1:0", "name": "MCP Proxy", "version": "1.0.0",
    "type": "streamable-http",
    "options": { "lazyLoad": true, "logEnabled": true }
  },
  "mcpServers": {
    "serena": { "command": "DORMOUSE", "args": ["__demo-server", "notes"], "env": {} },
    "playwright": {
      "command": "DORMOUSE", "args": ["__demo-server", "notes"], "timeout": 30000000000,
      "options": {
        "lazyLoad": false, "authTokens": ["secret"],
        "toolFilter": { "mode": "block", "list": ["delete_note"] }
      }
    },
    "filtered": {
      "command": "DORMOUSE", "args": ["__demo-server", "notes"],
      "options": { "lazyLoad": false, "toolFilter": { "mode": "allow", "list": ["list_notes"] } }
    },
    "gone": { "command": "nothing", "options": { "disabled": true } }
  }
}"#;

#[tokio::test]
async fn mcp_proxy_config_has_an_endpoint_per_server() {
    let proxy = Proxy::reading("config.json", MCP_PROXY).start_service();
    let mut serena = proxy.host("/serena/").await;
    serena.initialize(json!({})).await;
    assert_eq!(serena.tool_names().await, ["activate_serena"]);
    let activated = serena.call("activate_serena", json!({})).await;
    let activated: Value = serde_json::from_str(text_of(&activated)).unwrap();
    assert_eq!((&activated["activated"], &activated["toolCount"]), (&json!(true), &json!(4)));
    assert_eq!(serena.tool_names().await.len(), 5, "the meta-tool stays");

    let mut filtered = proxy.host("/filtered/mcp").await;
    filtered.initialize(json!({})).await;
    assert_eq!(filtered.tool_names().await, ["list_notes"]);
    let mut over_sse = proxy.sse_host("/filtered/sse").await;
    over_sse.initialize(json!({})).await;
    assert_eq!(over_sse.tool_names().await, ["list_notes"]);

    let token = [("authorization", "Bearer secret")];
    let mut playwright = Host::over_http(&proxy.url("/playwright/").await, &token);
    playwright.initialize(json!({})).await;
    assert_eq!(playwright.tool_names().await, ["add_note", "list_notes", "search_notes"]);
    let client = crate::support::http_client();
    for path in ["/_healthz", "/healthz"] {
        let asked = client.get(proxy.url(path).await).header("host", "mcp.example.com").send();
        assert_eq!(asked.await.unwrap().status(), 200, "{path}");
    }
    let from_elsewhere = client.post(proxy.url("/serena/").await).header("host", "mcp.example.com");
    assert_ne!(from_elsewhere.body("{}").send().await.unwrap().status(), 403, "baseURL names it");
    for (path, status) in [("/playwright/", 401), ("/gone/", 401), ("/mcp", 401)] {
        let asked = client.post(proxy.url(path).await).body("{}").send().await.unwrap();
        assert_eq!(asked.status(), status, "{path}");
    }
}
