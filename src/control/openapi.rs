//! The `OpenAPI` document of the control API.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use super::{
    ApiError, AppliedChange, BASE_PATH, NewServer, ServerReport, ServerTool, StatusReport, Switch,
};

/// One operation of the API.
struct Route {
    /// In lower case.
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    sent: BodyKind,
    answer: BodyKind,
}

/// The content of a request or response body.
enum BodyKind {
    None,
    /// Any JSON.
    Any,
    Events,
    Json(fn(&mut SchemaGenerator) -> Schema),
}

const fn route(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    sent: BodyKind,
    answer: BodyKind,
) -> Route {
    Route { method, path, summary, sent, answer }
}

const REPORT: BodyKind = BodyKind::of::<ServerReport>();
const CHANGED: BodyKind = BodyKind::of::<AppliedChange>();
const SWITCH: BodyKind = BodyKind::of::<Switch>();

/// All operations that `api.rs` routes.
const ROUTES: [Route; 15] = [
    route(
        "get",
        "/status",
        "The state of dormouse and its servers",
        BodyKind::None,
        BodyKind::of::<StatusReport>(),
    ),
    route(
        "get",
        "/servers",
        "The state of each server",
        BodyKind::None,
        BodyKind::of::<Vec<ServerReport>>(),
    ),
    route("post", "/servers", "Add a server to the config", BodyKind::of::<NewServer>(), CHANGED),
    route("get", "/servers/{name}", "The state of a server", BodyKind::None, REPORT),
    route("delete", "/servers/{name}", "Remove a server from the config", BodyKind::None, CHANGED),
    route("patch", "/servers/{name}", "Enable or disable a server in the config", SWITCH, CHANGED),
    route(
        "post",
        "/servers/{name}/load",
        "Load a server for all hosts, or wake it",
        BodyKind::None,
        REPORT,
    ),
    route("post", "/servers/{name}/sleep", "Put a server to sleep", BodyKind::None, REPORT),
    route(
        "post",
        "/servers/{name}/reset",
        "Clear the failed loads of a server",
        BodyKind::None,
        REPORT,
    ),
    route(
        "get",
        "/tools",
        "The known tools of all servers",
        BodyKind::None,
        BodyKind::of::<Vec<ServerTool>>(),
    ),
    route(
        "get",
        "/servers/{name}/tools",
        "The tools of a server",
        BodyKind::None,
        BodyKind::of::<Vec<ServerTool>>(),
    ),
    route(
        "put",
        "/servers/{name}/tools/{tool}",
        "Switch a tool on or off in the config",
        SWITCH,
        CHANGED,
    ),
    route("post", "/reload", "Reload the config", BodyKind::None, CHANGED),
    route(
        "get",
        "/events",
        "Changes of the servers, as server-sent events",
        BodyKind::None,
        BodyKind::Events,
    ),
    route("get", "/openapi.json", "This document", BodyKind::None, BodyKind::Any),
];

impl BodyKind {
    const fn of<T: JsonSchema>() -> Self {
        Self::Json(SchemaGenerator::subschema_for::<T>)
    }

    fn content(&self, generator: &mut SchemaGenerator) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Any => Some(json!({"application/json": {}})),
            Self::Events => Some(json!({"text/event-stream": {}})),
            Self::Json(schema) => Some(json!({"application/json": {"schema": schema(generator)}})),
        }
    }
}

impl Route {
    fn operation(&self, generator: &mut SchemaGenerator) -> Value {
        let refused = BodyKind::of::<ApiError>().content(generator);
        // A request that creates a server is answered with 201.
        let done = if (self.method, self.path) == ("post", "/servers") { "201" } else { "200" };
        let answer = self.answer.content(generator).unwrap_or_else(|| json!({}));
        let mut operation = json!({
            "summary": self.summary,
            "responses": {
                done: {"description": "Done", "content": answer},
                "default": {"description": "An error, with its reason", "content": refused},
            },
        });
        let is_named = |name: &&str| self.path.contains(&format!("{{{name}}}"));
        let parameters = ["name", "tool"].into_iter().filter(is_named).map(|name| {
            let schema = json!({"type": "string"});
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        });
        operation["parameters"] = parameters.collect();
        if let Some(content) = self.sent.content(generator) {
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        operation
    }
}

/// Builds the `OpenAPI` 3.1 document.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    let mut paths = json!({});
    for route in &ROUTES {
        paths[format!("{BASE_PATH}{}", route.path)][route.method] = route.operation(&mut generator);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "dormouse",
            "summary": "The API of a running instance",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": generator.take_definitions(true),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openapi_document_lists_every_route_and_schema() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name} is defined");
        }
        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    }
}
