//! The bodies of the control API's requests and responses.

use axum::{
    Json,
    extract::{
        Path,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ChangeError;
use crate::{base::with_causes, catalog::ToolSummary, config::Unchanged, proxy::OperateError};

/// Path below which all routes are.
pub(crate) const BASE_PATH: &str = "/api/v1";

/// A server to be added.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewServer {
    /// The name of the new server.
    pub name: String,
    /// The keys of the server, with the names that they have below `mcpServers` in the config.
    pub entry: Map<String, Value>,
    /// True if the new server may replace a server with the same name.
    #[serde(default)]
    pub replace: bool,
}

/// A change of a switch: a server or a tool is switched on or off.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Switch {
    pub enabled: bool,
}

/// A tool with the name of its server.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ServerTool {
    pub server: String,
    #[serde(flatten)]
    pub tool: ToolSummary,
}

/// The reason that a request failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApiError {
    #[serde(skip)]
    status: StatusCode,
    pub error: String,
}

pub(super) type ApiResult<T> = Result<Json<T>, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }

    /// Returns the answer to a request whose work the runtime does not start any more.
    pub(crate) fn shutting_down() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "dormouse is shutting down")
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}

impl From<OperateError> for ApiError {
    fn from(error: OperateError) -> Self {
        let status = match &error {
            OperateError::Unknown(_) => StatusCode::NOT_FOUND,
            OperateError::Load(_) => StatusCode::BAD_GATEWAY,
            OperateError::Awake { .. }
            | OperateError::Disabled { .. }
            | OperateError::OfSessions => StatusCode::CONFLICT,
        };
        Self::new(status, error.to_string())
    }
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        let status = match &error {
            ChangeError::ShuttingDown => return Self::shutting_down(),
            ChangeError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ChangeError::NoConfig => StatusCode::CONFLICT,
            ChangeError::Unchanged(unchanged) => match unchanged {
                Unchanged::Unknown(_) => StatusCode::NOT_FOUND,
                Unchanged::Exists(_) | Unchanged::NotOurs(_) | Unchanged::RuleGone(_) => {
                    StatusCode::CONFLICT
                }
                Unchanged::Config(_)
                | Unchanged::ByHand { .. }
                | Unchanged::RuleByHand { .. }
                | Unchanged::OfAnotherProgram(_) => StatusCode::UNPROCESSABLE_ENTITY,
                Unchanged::Replace(_) => StatusCode::INTERNAL_SERVER_ERROR,
            },
        };
        Self::new(status, with_causes(&error))
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        let message = match &rejection {
            JsonRejection::MissingJsonContentType(_) => {
                "the Content-Type must be application/json".to_owned()
            }
            rejection => format!("the body is not valid: {}", cause(&rejection.body_text())),
        };
        Self::new(rejection.status(), message)
    }
}

/// A JSON body, or the reason for which it cannot be read.
pub(super) type JsonBody<T> = Result<Json<T>, JsonRejection>;

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        let message = format!("the path is not valid: {}", cause(&rejection.body_text()));
        Self::new(rejection.status(), message)
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        let message = format!("the query is not valid: {}", cause(&rejection.body_text()));
        Self::new(rejection.status(), message)
    }
}

/// Returns the message of a rejection without the framework's introduction.
fn cause(text: &str) -> &str {
    text.split_once(": ").map_or(text, |(_, cause)| cause)
}

/// A name in the path, or the reason for which it cannot be read.
pub(super) type NamePath = Result<Path<String>, PathRejection>;

#[cfg(test)]
mod tests {
    use std::{io, path::Path};

    use super::*;
    use crate::base::ReplaceError;

    #[test]
    fn unwritable_config_is_reported_with_the_cause() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let full = ReplaceError::write(Path::new("/etc/d/dormouse.json"), full);
        let error = ApiError::from(ChangeError::from(Unchanged::from(full)));
        assert_eq!(error.status, StatusCode::INTERNAL_SERVER_ERROR);
        insta::assert_snapshot!(error.error);
    }
}
