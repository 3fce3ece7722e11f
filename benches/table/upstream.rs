//! The upstream server of the bench: `upstream TOOLS DELAY_MS`.
//!
//! Its tools have schemas of ordinary size. `echo` returns its arguments, and `size` returns a text
//! of the requested number of bytes.

use std::{
    io::{BufRead, Write},
    time::Duration,
};

use serde_json::{Value, json};

pub fn serve(arguments: &[String]) {
    let number =
        |index: usize| arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(0);
    let tools = number(0);
    std::thread::sleep(Duration::from_millis(number(1)));
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let request: Value = serde_json::from_str(&line).expect("the bench sends JSON");
        let Some(id) = request.get("id") else { continue };
        let result = answer(&request, usize::try_from(tools).expect("a small number"));
        writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
            .and_then(|()| output.flush())
            .expect("the bench reads");
    }
}

pub fn answer(request: &Value, tools: usize) -> String {
    let params = &request["params"];
    match request["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"},
        })
        .to_string(),
        "tools/list" => {
            let names = ["echo".to_owned(), "size".to_owned()].into_iter();
            let names = names.chain((2..tools.max(2)).map(|number| format!("tool_{number}")));
            json!({"tools": names.map(|name| tool(&name)).collect::<Vec<_>>()}).to_string()
        }
        "tools/call" if params["name"] == "size" => {
            let bytes = params["arguments"]["bytes"].as_u64().unwrap_or_default();
            let text = "x".repeat(usize::try_from(bytes).expect("it fits memory"));
            format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)
        }
        "tools/call" => {
            json!({"content": [{"type": "text", "text": params["arguments"].to_string()}]})
                .to_string()
        }
        _ => "{}".to_owned(),
    }
}

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Does one thing of the kind that tools do, and says so in a sentence or \
            two. It also says when not to use it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "What it is to be done to"},
                "limit": {"type": "integer", "description": "The largest number of results"},
            },
            "required": ["path"],
        },
    })
}
