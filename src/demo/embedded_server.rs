//! A small MCP server on standard input and output: one of the servers of the table.

use std::{
    io::{BufRead, Write},
    process::ExitCode,
};

use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use super::{
    definitions::definitions,
    server_table::{EmbeddedServer, SimplePrompt, TextResource, embedded_servers},
};
use crate::protocol::method;

/// The hidden argument that makes the program one of the demo's servers.
pub(crate) const SERVER_ARGUMENT: &str = "__demo-server";

/// Serves the embedded server of this name until the input ends.
pub(crate) fn serve(name: &str, input: impl BufRead, mut output: impl Write) -> ExitCode {
    let Some(server) = embedded_servers().into_iter().find(|server| server.name == name) else {
        return ExitCode::FAILURE;
    };
    for line in input.lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = request.get("id") else { continue };
        let name = request["method"].as_str().unwrap_or_default();
        let response = match answer(&server, name, &request["params"]) {
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

type ToolAnswer = Result<Value, (ErrorCode, String)>;

fn answer(server: &EmbeddedServer, name: &str, params: &Value) -> ToolAnswer {
    Ok(match name {
        method::INITIALIZE => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": server.name, "version": env!("CARGO_PKG_VERSION")},
            "instructions": server.instructions,
        }),
        method::PING => json!({}),
        method::TOOLS_LIST => json!({"tools": definitions(server)}),
        method::TOOLS_CALL => return call(server, params),
        method::RESOURCES_LIST => {
            let resource = |it: &TextResource| json!({"uri": it.uri, "name": it.name});
            json!({"resources": server.resources.iter().map(resource).collect::<Vec<_>>()})
        }
        method::RESOURCE_TEMPLATES_LIST => json!({"resourceTemplates": []}),
        method::RESOURCES_READ => return read(server, params),
        method::PROMPTS_LIST => {
            let prompt =
                |it: &SimplePrompt| json!({"name": it.name, "description": it.description});
            json!({"prompts": server.prompts.iter().map(prompt).collect::<Vec<_>>()})
        }
        method::PROMPTS_GET => return prompt(server, params),
        _ => return Err((ErrorCode::METHOD_NOT_FOUND, format!("method not found: {name}"))),
    })
}

fn call(server: &EmbeddedServer, params: &Value) -> ToolAnswer {
    let name = params["name"].as_str().unwrap_or_default();
    if !definitions(server).iter().any(|tool| tool["name"] == name) {
        return Err((ErrorCode::INVALID_PARAMS, format!("unknown tool: {name}")));
    }
    let text = format!(
        "{name} of the demo's {} server was called with {}",
        server.name, params["arguments"]
    );
    Ok(json!({"content": [{"type": "text", "text": text}]}))
}

fn read(server: &EmbeddedServer, params: &Value) -> ToolAnswer {
    let uri = params["uri"].as_str().unwrap_or_default();
    match server.resources.iter().find(|resource| resource.uri == uri) {
        Some(TextResource { uri, text, .. }) => {
            Ok(json!({"contents": [{"uri": uri, "text": text}]}))
        }
        None => Err((ErrorCode::RESOURCE_NOT_FOUND, format!("unknown resource: {uri}"))),
    }
}

fn prompt(server: &EmbeddedServer, params: &Value) -> ToolAnswer {
    let name = params["name"].as_str().unwrap_or_default();
    match server.prompts.iter().find(|prompt| prompt.name == name) {
        Some(SimplePrompt { description, .. }) => Ok(json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": description}}],
        })),
        None => Err((ErrorCode::INVALID_PARAMS, format!("unknown prompt: {name}"))),
    }
}
