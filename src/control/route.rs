//! One route of the control API: its handler and its description.

use axum::{
    Router,
    handler::Handler,
    http::StatusCode,
    routing::{self, MethodRouter},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::ApiError;

/// One operation of the API, with handlers of the state `S`.
pub(super) struct Route<S> {
    /// In lower case.
    method: &'static str,
    path: &'static str,
    handler: MethodRouter<S>,
    summary: &'static str,
    query: &'static [QueryParameter],
    takes: Body,
    answers: Body,
    /// The status of an answer that is no error.
    status: StatusCode,
}

/// A parameter of the query of a request.
pub(super) struct QueryParameter {
    pub(super) name: &'static str,
    /// The type in JSON Schema.
    pub(super) kind: &'static str,
    pub(super) is_required: bool,
    pub(super) description: &'static str,
}

/// The content of a request or response body.
pub(super) enum Body {
    Empty,
    AnyJson,
    Events,
    Json(fn(&mut SchemaGenerator) -> Schema),
}

impl Body {
    /// Returns the body of JSON with the schema of `T`.
    pub(super) fn json<T: JsonSchema>() -> Self {
        Self::Json(SchemaGenerator::subschema_for::<T>)
    }

    fn content(&self, generator: &mut SchemaGenerator) -> Option<Value> {
        match self {
            Self::Empty => None,
            Self::AnyJson => Some(json!({"application/json": {}})),
            Self::Events => Some(json!({"text/event-stream": {}})),
            Self::Json(schema) => Some(json!({"application/json": {"schema": schema(generator)}})),
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    fn new(method: &'static str, path: &'static str, handler: MethodRouter<S>) -> Self {
        let status = StatusCode::OK;
        Self {
            method,
            path,
            handler,
            summary: "",
            query: &[],
            takes: Body::Empty,
            answers: Body::Empty,
            status,
        }
    }

    pub(super) fn get<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new("get", path, routing::get(handler))
    }

    pub(super) fn post<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new("post", path, routing::post(handler))
    }

    pub(super) fn put<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new("put", path, routing::put(handler))
    }

    pub(super) fn patch<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new("patch", path, routing::patch(handler))
    }

    pub(super) fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new("delete", path, routing::delete(handler))
    }

    /// Describes the operation and its answer.
    pub(super) fn does(self, summary: &'static str, answers: Body) -> Self {
        Self { summary, answers, ..self }
    }

    /// Describes the parameters of its query.
    pub(super) fn with_query(self, query: &'static [QueryParameter]) -> Self {
        Self { query, ..self }
    }

    /// Describes the body of its requests.
    pub(super) fn takes(self, takes: Body) -> Self {
        Self { takes, ..self }
    }

    pub(super) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn method(&self) -> &'static str {
        self.method
    }

    pub(super) fn path(&self) -> &'static str {
        self.path
    }

    pub(super) fn add_to(self, router: Router<S>) -> Router<S> {
        router.route(self.path, self.handler)
    }

    /// Returns its operation object (`OpenAPI` 3.1).
    pub(super) fn operation(&self, generator: &mut SchemaGenerator) -> Value {
        let refused = Body::json::<ApiError>().content(generator);
        let answer = self.answers.content(generator).unwrap_or_else(|| json!({}));
        let mut operation = json!({
            "summary": self.summary,
            "responses": {
                self.status.as_str(): {"description": "Done", "content": answer},
                "default": {"description": "An error, with its reason", "content": refused},
            },
        });
        let parameters = parameters(self.path).map(|name| {
            let schema = json!({"type": "string"});
            json!({"name": name, "in": "path", "required": true, "schema": schema})
        });
        let query =
            self.query.iter().map(|QueryParameter { name, kind, is_required, description }| {
                json!({
                    "name": name,
                    "in": "query",
                    "required": is_required,
                    "description": description,
                    "schema": {"type": kind},
                })
            });
        operation["parameters"] = parameters.chain(query).collect();
        if let Some(content) = self.takes.content(generator) {
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        operation
    }
}

/// Returns the names in the braces of a path, in their order.
fn parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_of_a_path_is_found() {
        let found = |path| parameters(path).collect::<Vec<_>>();
        assert_eq!(found("/servers/{name}/tools/{tool}"), ["name", "tool"]);
        assert_eq!(found("/hosts/{id}"), ["id"]);
        assert!(found("/servers").is_empty());
    }
}
