//! The steps of the demo: what an agent sees of three servers, first without and then with
//! dormouse.

use std::io::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    SERVER_ARGUMENT,
    client::{Client, DemoError},
    themes::THEMES,
};
use crate::protocol::method;

/// One step of the demo.
#[derive(Debug, Serialize)]
pub struct Step {
    /// The title.
    pub title: String,
    /// The lines to show.
    pub lines: Vec<String>,
    /// The same for machines.
    pub data: Value,
}

impl Step {
    fn new(title: impl Into<String>, lines: Vec<String>, data: Value) -> Self {
        Self { title: title.into(), lines, data }
    }
}

/// Runs the demo, and gives each step to `show` as it happens.
///
/// # Errors
/// If one of the processes cannot be started or does not answer.
pub async fn tour(mut show: impl FnMut(Step)) -> Result<(), DemoError> {
    let without = cost_without().await?;
    show(Step::new(
        format!("{} servers, connected directly", THEMES.len()),
        vec![format!("every turn of the model carries {without} bytes of tool definitions")],
        json!({"servers": THEMES.len(), "bytes": without}),
    ));
    let config = config()?;
    let path = config.path().to_string_lossy().into_owned();
    let arguments = ["serve", "--config", &path, "--log-format", "json", "--log-level", "info"];
    let (mut client, greeting) = Client::start(&arguments).await?;
    show(first_list(&client, &greeting, without).await?);
    show(load(&client).await?);
    show(list_after(&client).await?);
    show(call(&client).await?);
    let asleep = client.until_asleep().await?;
    show(Step::new(
        "a second without use",
        vec![
            "notes is asleep: its process is gone, its tools stay, and the next call wakes it"
                .into(),
        ],
        json!({"asleep": asleep["server"]}),
    ));
    client.end().await;
    Ok(())
}

/// Returns the size of all `tools/list` answers of the servers themselves, in bytes.
async fn cost_without() -> Result<usize, DemoError> {
    let mut bytes = 0;
    for theme in &THEMES {
        let (client, _) = Client::start(&[SERVER_ARGUMENT, theme.name]).await?;
        bytes += size(&client.request(method::TOOLS_LIST, json!({})).await?);
        client.end().await;
    }
    Ok(bytes)
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Writes the embedded config to a file for the duration of the demo.
fn config() -> Result<tempfile::NamedTempFile, DemoError> {
    let program = std::env::current_exe()?;
    let servers: serde_json::Map<String, Value> = THEMES
        .iter()
        .map(|theme| {
            let entry = json!({
                "description": theme.description,
                "command": program,
                "args": [SERVER_ARGUMENT, theme.name],
                "idleTimeout": "1s",
            });
            (theme.name.to_owned(), entry)
        })
        .collect();
    let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
    write!(file, "{}", json!({"mcpServers": servers}))?;
    Ok(file)
}

async fn first_list(client: &Client, greeting: &Value, without: usize) -> Result<Step, DemoError> {
    let list = client.request(method::TOOLS_LIST, json!({})).await?;
    let bytes = size(&list) + greeting["instructions"].as_str().map_or(0, str::len);
    let mut lines = vec![
        format!(
            "{bytes} bytes instead of {without}, and the same however many tools the servers have"
        ),
        "no server has been started; this is discover_tool's description:".to_owned(),
    ];
    lines.extend(quoted(list["tools"][0]["description"].as_str().unwrap_or_default()));
    Ok(Step::new(
        "the same servers behind dormouse",
        lines,
        json!({"bytes": bytes, "without": without, "tools": names(&list)}),
    ))
}

async fn load(client: &Client) -> Result<Step, DemoError> {
    let began = std::time::Instant::now();
    let result = client.call("load_mcp", json!({"mcp_name": "notes"})).await?;
    let took = began.elapsed();
    let brought = &result["structuredContent"];
    let notifications = client.notifications();
    let lines = vec![
        format!("took {} ms and brought {}", took.as_millis(), names(brought).join(", ")),
        format!("the host was told: {}", notifications.join(", ")),
    ];
    Ok(Step::new(
        "load_mcp notes",
        lines,
        json!({"result": brought, "notifications": notifications}),
    ))
}

async fn list_after(client: &Client) -> Result<Step, DemoError> {
    let list = client.request(method::TOOLS_LIST, json!({})).await?;
    let description = list["tools"][0]["description"].as_str().unwrap_or_default();
    Ok(Step::new(
        "the list after it",
        quoted(description),
        json!({"bytes": size(&list), "description": description}),
    ))
}

async fn call(client: &Client) -> Result<Step, DemoError> {
    let input = json!({"title": "dormice", "text": "sleep seven months a year"});
    let result = client
        .call("use_tool", json!({"tool_name": "notes/add_note", "tool_input": input}))
        .await?;
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    Ok(Step::new("use_tool notes/add_note", vec![text], result))
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

fn quoted(text: &str) -> Vec<String> {
    text.lines().map(|line| format!("│ {line}")).collect()
}
