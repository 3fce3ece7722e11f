//! A small MCP server on standard input and output, one of the demo's [`super::themes`].

use std::{
    io::{BufRead, Write},
    process::ExitCode,
};

use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use super::themes::{THEMES, Theme, ToolTheme};

/// Serves the theme of this name until the input ends.
pub fn serve(theme: &str, input: impl BufRead, mut output: impl Write) -> ExitCode {
    let Some(theme) = THEMES.iter().find(|known| known.name == theme) else {
        return ExitCode::FAILURE;
    };
    for line in input.lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = request.get("id") else { continue };
        let method = request["method"].as_str().unwrap_or_default();
        let response = match answer(theme, method, &request["params"]) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => json!({
                "jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": message},
            }),
        };
        if writeln!(output, "{response}").and_then(|()| output.flush()).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

type Answer = Result<Value, (ErrorCode, String)>;

fn answer(theme: &Theme, method: &str, params: &Value) -> Answer {
    Ok(match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": theme.name, "version": env!("CARGO_PKG_VERSION")},
            "instructions": theme.instructions,
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": theme.tools.iter().map(definition).collect::<Vec<_>>()}),
        "tools/call" => return call(theme, params),
        "resources/list" => {
            let resource = |(uri, name, _): &(&str, &str, &str)| json!({"uri": uri, "name": name});
            json!({"resources": theme.resources.iter().map(resource).collect::<Vec<_>>()})
        }
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "resources/read" => return read(theme, params),
        "prompts/list" => {
            let prompt = |(name, text): &(&str, &str)| json!({"name": name, "description": text});
            json!({"prompts": theme.prompts.iter().map(prompt).collect::<Vec<_>>()})
        }
        "prompts/get" => return prompt(theme, params),
        _ => return Err((ErrorCode::METHOD_NOT_FOUND, format!("method not found: {method}"))),
    })
}

fn definition(tool: &ToolTheme) -> Value {
    let property = |(name, kind, about): &(&str, &str, &str)| {
        ((*name).to_owned(), json!({"type": kind, "description": about}))
    };
    let properties: serde_json::Map<_, _> = tool.parameters.iter().map(property).collect();
    let required: Vec<&str> = tool.parameters.iter().map(|(name, ..)| *name).collect();
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
    })
}

fn call(theme: &Theme, params: &Value) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    let Some(tool) = theme.tools.iter().find(|tool| tool.name == name) else {
        return Err((ErrorCode::INVALID_PARAMS, format!("unknown tool: {name}")));
    };
    let text = format!(
        "{} of the demo's {} server was called with {}",
        tool.name, theme.name, params["arguments"]
    );
    Ok(json!({"content": [{"type": "text", "text": text}]}))
}

fn read(theme: &Theme, params: &Value) -> Answer {
    let uri = params["uri"].as_str().unwrap_or_default();
    match theme.resources.iter().find(|(known, ..)| *known == uri) {
        Some((uri, _, text)) => Ok(json!({"contents": [{"uri": uri, "text": text}]})),
        None => Err((ErrorCode::RESOURCE_NOT_FOUND, format!("unknown resource: {uri}"))),
    }
}

fn prompt(theme: &Theme, params: &Value) -> Answer {
    let name = params["name"].as_str().unwrap_or_default();
    match theme.prompts.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        })),
        None => Err((ErrorCode::INVALID_PARAMS, format!("unknown prompt: {name}"))),
    }
}
