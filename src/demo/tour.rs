//! The demo's steps: twelve servers as an agent sees them, first directly and then behind dormouse.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    SERVER_ARGUMENT,
    client::{DemoClient, DemoError},
    scratch::Scratch,
    server_table::{EmbeddedServer, embedded_servers},
};
use crate::protocol::method;

/// Columns of a line. The terminal has 80, and each line is indented by two.
const COLUMNS: usize = 78;
/// Estimated bytes of a token, as in `dormouse status`.
const BYTES_PER_TOKEN: usize = 4;
/// The server that the demo loads and calls.
const SERVER: &str = "github";

/// One screen of the demo.
#[derive(Debug, Serialize)]
pub(crate) struct DemoStep {
    pub title: String,
    /// The text, line by line.
    pub lines: Vec<String>,
    /// The same for programs.
    pub data: Value,
}

impl DemoStep {
    fn new(title: impl Into<String>, lines: Vec<String>, data: Value) -> Self {
        let lines = lines.into_iter().map(cut).collect();
        Self { title: title.into(), lines, data }
    }
}

/// Runs the demo, and gives each step to `show` as it happens.
///
/// # Errors
/// When a process of the demo cannot be started or does not answer.
pub(crate) async fn tour(mut show: impl FnMut(DemoStep)) -> Result<(), DemoError> {
    let servers = embedded_servers();
    let scratch = Scratch::new(&servers)?;
    let (step, direct) = connect_directly(&scratch, &servers).await?;
    show(step);
    show(learn(&scratch).await?);
    let config = scratch.config().to_string_lossy().into_owned();
    let arguments = ["serve", "--config", &config, "--log-format", "json", "--log-level", "info"];
    let (mut client, greeting) = DemoClient::start(&scratch, &arguments).await?;
    show(first_list(&client, &greeting, direct).await?);
    show(search(&client, "refund a customer").await?);
    show(load(&client).await?);
    let input = json!({"owner": "acme", "repo": "shop", "title": "Checkout fails for two coupons"});
    show(call(&client, "create_issue", &input, "a call of an awake server").await?);
    client.until_asleep(SERVER).await?;
    show(DemoStep::new(
        "a second later",
        vec![format!(
            "{SERVER} is asleep: its process has ended. Its tools stay, and a call wakes it."
        )],
        json!({"asleep": SERVER}),
    ));
    let input = json!({"owner": "acme", "repo": "shop", "state": "open"});
    show(call(&client, "list_issues", &input, "a call that wakes the server").await?);
    client.end().await;
    let lines = vec!["next: dormouse import --all".to_owned()];
    show(DemoStep::new("your own servers", lines, json!({"next": "dormouse import --all"})));
    Ok(())
}

/// Connects each server without dormouse. Returns the bytes of all their tool definitions too.
async fn connect_directly(
    scratch: &Scratch,
    servers: &[EmbeddedServer],
) -> Result<(DemoStep, usize), DemoError> {
    let (mut tools, mut bytes) = (0, 0);
    let (mut lines, mut data) = (Vec::new(), Vec::new());
    for server in servers {
        let (client, _) = DemoClient::start(scratch, &[SERVER_ARGUMENT, &server.name]).await?;
        let list = client.request(method::TOOLS_LIST, json!({})).await?;
        client.end().await;
        let (count, size) = (names(&list).len(), size(&list));
        (tools, bytes) = (tools + count, bytes + size);
        lines.push(row(&server.name, count, size));
        data.push(json!({"name": server.name, "tools": count, "bytes": size}));
    }
    lines.push(row("all", tools, bytes));
    lines.push("A host without a tool search sends all of it with every turn.".to_owned());
    let data = json!({"servers": data, "tools": tools, "bytes": bytes, "tokens": tokens(bytes)});
    Ok((
        DemoStep::new(format!("{} servers, connected directly", servers.len()), lines, data),
        bytes,
    ))
}

fn row(name: &str, tools: usize, bytes: usize) -> String {
    let (size, tokens) = (grouped(bytes), grouped(tokens(bytes)));
    format!("{name:<12}{tools:>4} tools {size:>9} bytes  ≈ {tokens:>6} tokens")
}

/// Has `dormouse refresh` learn the catalogs of all servers.
async fn learn(scratch: &Scratch) -> Result<DemoStep, DemoError> {
    let config = scratch.config().to_string_lossy().into_owned();
    let began = Instant::now();
    let output = scratch.command(&["refresh", "--config", &config])?.output().await?;
    let elapsed = began.elapsed();
    if !output.status.success() {
        return Err(DemoError::Refresh(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    let lines = vec![format!(
        "took {}: each server was started once, to learn its tools, and ended",
        milliseconds(elapsed)
    )];
    Ok(DemoStep::new(
        "dormouse refresh",
        lines,
        json!({"milliseconds": elapsed.as_secs_f64() * 1000.0}),
    ))
}

async fn first_list(
    client: &DemoClient,
    greeting: &Value,
    direct: usize,
) -> Result<DemoStep, DemoError> {
    let list = client.request(method::TOOLS_LIST, json!({})).await?;
    let bytes = size(&list) + greeting["instructions"].as_str().map_or(0, str::len);
    let tenths = 1000 - 1000 * bytes / direct;
    let saved = format!("{}.{}", tenths / 10, tenths % 10);
    let mut lines = vec![
        format!(
            "{} bytes ≈ {} tokens instead of {} ≈ {}: {saved} % less",
            grouped(bytes),
            grouped(tokens(bytes)),
            grouped(direct),
            grouped(tokens(direct)),
        ),
        format!("tools in the list: {}", names(&list).join(", ")),
        "No server runs. The agent sees one line for each:".to_owned(),
    ];
    let description = list["tools"][0]["description"].as_str().unwrap_or_default();
    lines.extend(description.lines().filter(|line| line.starts_with("- ")).map(quoted));
    let data = json!({
        "bytes": bytes, "tokens": tokens(bytes), "directBytes": direct,
        "savedTenthsOfPercent": tenths, "tools": names(&list),
    });
    Ok(DemoStep::new("the same servers behind dormouse", lines, data))
}

async fn search(client: &DemoClient, query: &str) -> Result<DemoStep, DemoError> {
    let began = Instant::now();
    let result = client.call("discover_tool", json!({"query": query})).await?;
    let elapsed = began.elapsed();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let found: Vec<Value> = serde_json::Deserializer::from_str(text)
        .into_iter::<Vec<Value>>()
        .find_map(Result::ok)
        .unwrap_or_default();
    let mut lines = vec![format!(
        "took {}, over all tools of all sleeping servers; the best of {}:",
        milliseconds(elapsed),
        found.len()
    )];
    let matches = found.iter().take(4);
    lines.extend(matches.map(|tool| {
        let text = |key: &str| tool[key].as_str().unwrap_or_default();
        quoted(&format!("{}: {}", text("name"), text("description")))
    }));
    let data =
        json!({"query": query, "milliseconds": elapsed.as_secs_f64() * 1000.0, "found": found});
    Ok(DemoStep::new(format!("discover_tool {{\"query\": \"{query}\"}}"), lines, data))
}

async fn load(client: &DemoClient) -> Result<DemoStep, DemoError> {
    let began = Instant::now();
    let result = client.call("load_mcp", json!({"mcp_name": SERVER})).await?;
    let elapsed = began.elapsed();
    let loaded = &result["structuredContent"];
    let notifications = client.notifications();
    let lines = vec![
        format!("took {}: the server was started and its tools were read", milliseconds(elapsed)),
        format!("the host was notified: {}", notifications.join(", ")),
    ];
    let data = json!({
        "milliseconds": elapsed.as_secs_f64() * 1000.0,
        "result": loaded,
        "notifications": notifications,
    });
    Ok(DemoStep::new(format!("load_mcp {{\"mcp_name\": \"{SERVER}\"}}"), lines, data))
}

async fn call(
    client: &DemoClient,
    tool: &str,
    input: &Value,
    title: &str,
) -> Result<DemoStep, DemoError> {
    let arguments = json!({"tool_name": format!("{SERVER}/{tool}"), "tool_input": input});
    let began = Instant::now();
    let result = client.call("use_tool", arguments).await?;
    let elapsed = began.elapsed();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let lines = vec![
        format!("use_tool {SERVER}/{tool} {input}"),
        format!("took {}; the answer:", milliseconds(elapsed)),
        quoted(text),
    ];
    let data = json!({"milliseconds": elapsed.as_secs_f64() * 1000.0, "result": result});
    Ok(DemoStep::new(title, lines, data))
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn tokens(bytes: usize) -> usize {
    bytes / BYTES_PER_TOKEN
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

fn milliseconds(elapsed: Duration) -> String {
    format!("{:.1} ms", elapsed.as_secs_f64() * 1000.0)
}

/// Returns the digits of `number` in groups of three: `12,345`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut groups: Vec<&str> = Vec::new();
    let mut rest = digits.as_str();
    while rest.len() > 3 {
        let (front, group) = rest.split_at(rest.len() - 3);
        groups.push(group);
        rest = front;
    }
    groups.push(rest);
    groups.reverse();
    groups.join(",")
}

fn quoted(line: &str) -> String {
    format!("│ {line}")
}

/// Returns `line`, shortened to the width of the screen.
fn cut(line: String) -> String {
    if line.chars().count() <= COLUMNS {
        return line;
    }
    let kept: String = line.chars().take(COLUMNS - 1).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(cut("é".repeat(100)).chars().count(), COLUMNS);
    }
}
