//! The control API: an HTTP interface to a running dormouse (`/api/v1`). It does not check who
//! calls it; the socket and the HTTP guard do.

use axum::{
    Json, Router,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    AppliedChange, BASE_PATH, ConfigChange, NewServer, ServerReport, ServerTool, StatusReport,
    Switch,
    api_state::ApiState,
    api_types::{ApiError, ApiResult, JsonBody, NamePath},
    event_feed::stream_events,
    openapi::document,
    route::{Body, QueryParameter, Route},
};
use crate::{
    base::run_blocking,
    config::ConfigEdit,
    proxy::FoundTool,
    telemetry::{CallRecord, METRICS_CONTENT_TYPE},
};

/// Lists every route: its path, its handler and its description in the `OpenAPI` document.
fn routes() -> Vec<Route<ApiState>> {
    let report = Body::json::<ServerReport>;
    let tools = Body::json::<Vec<ServerTool>>;
    let changed = Body::json::<AppliedChange>;
    vec![
        Route::get("/status", get_status)
            .with_query(&[QueryParameter {
                name: "brief",
                kind: "boolean",
                is_required: false,
                description: "Leaves out the lists of tools, and catalogs that are only on disk",
            }])
            .does("The state of dormouse and its servers", Body::json::<StatusReport>()),
        Route::get("/servers", list_servers)
            .does("The state of each server", Body::json::<Vec<ServerReport>>()),
        Route::post("/servers", add_server)
            .takes(Body::json::<NewServer>())
            .does("Add a server to the config", changed())
            .with_status(StatusCode::CREATED),
        Route::get("/servers/{name}", get_server).does("The state of a server", report()),
        Route::delete("/servers/{name}", remove_server)
            .does("Remove a server from the config", changed()),
        Route::patch("/servers/{name}", set_server_enabled)
            .takes(Body::json::<Switch>())
            .does("Enable or disable a server in the config", changed()),
        Route::post("/servers/{name}/load", load_server)
            .does("Load a server for all hosts, or wake it", report()),
        Route::post("/servers/{name}/sleep", put_server_to_sleep)
            .does("Put a server to sleep", report()),
        Route::post("/servers/{name}/reset", reset_server)
            .does("Clear the failed loads of a server", report()),
        Route::get("/tools", list_tools).does("The known tools of all servers", tools()),
        Route::get("/servers/{name}/tools", list_server_tools)
            .does("The tools of a server", tools()),
        Route::put("/servers/{name}/tools/{tool}", set_tool_enabled)
            .takes(Body::json::<Switch>())
            .does("Switch a tool on or off in the config", changed()),
        Route::get("/servers/{name}/stderr", list_stderr)
            .does("The last lines of a server's standard error", Body::json::<Vec<String>>()),
        Route::get("/calls", list_calls)
            .does("The last calls to servers, oldest first", Body::json::<Vec<CallRecord>>()),
        Route::get("/search", search_tools)
            .with_query(&[QueryParameter {
                name: "query",
                kind: "string",
                is_required: true,
                description: "The purpose of the tool",
            }])
            .does("The tools that an agent would find", Body::json::<Vec<FoundTool>>()),
        Route::post("/reload", reload_config).does("Reload the config", changed()),
        Route::get("/events", stream_events).does(
            "Changes of the servers and the ended calls, as server-sent events",
            Body::Events,
        ),
        Route::get("/openapi.json", get_document).does("This document", Body::AnyJson),
    ]
}

/// The path of the metrics.
const METRICS_PATH: &str = "/metrics";

/// Builds the routes below [`BASE_PATH`], and that of the metrics.
pub(crate) fn router(api: ApiState) -> Router {
    let added = |router: Router<ApiState>, route: Route<ApiState>| route.add_to(router);
    let routes = routes()
        .into_iter()
        .fold(Router::new(), added)
        .method_not_allowed_fallback(|| async {
            let error = "method not allowed; see /api/v1/openapi.json";
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, error)
        })
        .fallback(|| async {
            ApiError::new(StatusCode::NOT_FOUND, "no such route; see /api/v1/openapi.json")
        })
        .with_state(api.clone());
    let metrics = Router::new().route(METRICS_PATH, get(get_metrics)).with_state(api);
    Router::new().nest(BASE_PATH, routes).merge(metrics)
}

/// Returns the `OpenAPI` document of the API.
pub(crate) fn api_document() -> Value {
    document(BASE_PATH, &routes())
}

async fn get_document() -> Json<Value> {
    Json(api_document())
}

/// The query of a request for reports.
#[derive(Default, Deserialize)]
struct ReportQuery {
    /// True if the lists of tools are not wanted.
    #[serde(default)]
    brief: bool,
}

async fn get_status(
    State(api): State<ApiState>,
    query: Result<Query<ReportQuery>, QueryRejection>,
) -> ApiResult<StatusReport> {
    let Query(ReportQuery { brief }) = query?;
    let report = if brief { api.brief_report().await } else { api.report().await };
    report.map(Json)
}

async fn list_servers(State(api): State<ApiState>) -> ApiResult<Vec<ServerReport>> {
    Ok(Json(api.report().await?.servers))
}

async fn get_server(State(api): State<ApiState>, name: NamePath) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    api.server_report(&name).await.map(Json)
}

async fn add_server(
    State(api): State<ApiState>,
    body: JsonBody<NewServer>,
) -> Result<(StatusCode, Json<AppliedChange>), ApiError> {
    let Json(NewServer { name, entry, replace }) = body?;
    let changed =
        api.changes.make(ConfigChange::Edit(ConfigEdit::Add { name, entry, replace })).await?;
    Ok((StatusCode::CREATED, Json(changed)))
}

async fn remove_server(State(api): State<ApiState>, name: NamePath) -> ApiResult<AppliedChange> {
    let Path(name) = name?;
    Ok(Json(api.changes.make(ConfigChange::Edit(ConfigEdit::Remove { name })).await?))
}

async fn set_server_enabled(
    State(api): State<ApiState>,
    name: NamePath,
    body: JsonBody<Switch>,
) -> ApiResult<AppliedChange> {
    let Path(name) = name?;
    let Json(Switch { enabled }) = body?;
    Ok(Json(api.changes.make(ConfigChange::Edit(ConfigEdit::Enable { name, enabled })).await?))
}

async fn load_server(State(api): State<ApiState>, name: NamePath) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    let server = api.fleet.operator().load(&name).await?;
    api.server_report(&server).await.map(Json)
}

async fn put_server_to_sleep(
    State(api): State<ApiState>,
    name: NamePath,
) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    api.fleet.operator().sleep(&name).await?;
    api.server_report(&name).await.map(Json)
}

async fn reset_server(State(api): State<ApiState>, name: NamePath) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    let (fleet, server) = (api.fleet.clone(), name.clone());
    let reset = run_blocking(move || fleet.operator().reset(&server)).await;
    reset.ok_or_else(ApiError::shutting_down)??;
    api.server_report(&name).await.map(Json)
}

async fn list_tools(State(api): State<ApiState>) -> ApiResult<Vec<ServerTool>> {
    let servers = api.report().await?.servers;
    Ok(Json(servers.into_iter().flat_map(tools_of_report).collect()))
}

async fn list_server_tools(
    State(api): State<ApiState>,
    name: NamePath,
) -> ApiResult<Vec<ServerTool>> {
    let Path(name) = name?;
    Ok(Json(tools_of_report(api.server_report(&name).await?).collect()))
}

fn tools_of_report(server: ServerReport) -> impl Iterator<Item = ServerTool> {
    let ServerReport { name, inventory, .. } = server;
    let tools = inventory.into_iter().flat_map(|inventory| inventory.tools);
    tools.map(move |tool| ServerTool { server: name.clone(), tool })
}

async fn set_tool_enabled(
    State(api): State<ApiState>,
    names: Result<Path<(String, String)>, PathRejection>,
    body: JsonBody<Switch>,
) -> ApiResult<AppliedChange> {
    let Path((server, tool)) = names?;
    let known = api.server_report(&server).await?.inventory;
    if known.is_some_and(|known| known.tools.iter().all(|stock| stock.name != tool)) {
        let message = format!("server {server:?} has no tool {tool:?}");
        return Err(ApiError::new(StatusCode::NOT_FOUND, message));
    }
    let Json(Switch { enabled }) = body?;
    Ok(Json(
        api.changes
            .make(ConfigChange::Edit(ConfigEdit::EnableTool { server, tool, enabled }))
            .await?,
    ))
}

/// The query of a search.
#[derive(Deserialize)]
struct SearchQuery {
    query: String,
}

async fn search_tools(
    State(api): State<ApiState>,
    query: Result<Query<SearchQuery>, QueryRejection>,
) -> ApiResult<Vec<FoundTool>> {
    let Query(SearchQuery { query }) = query?;
    Ok(Json(api.fleet.operator().search(query).await))
}

async fn list_stderr(State(api): State<ApiState>, name: NamePath) -> ApiResult<Vec<String>> {
    let Path(name) = name?;
    Ok(Json(api.fleet.operator().stderr(&name)?))
}

/// Answers with the metrics, in the text format of Prometheus.
async fn get_metrics(State(api): State<ApiState>) -> impl IntoResponse {
    let text = api.telemetry.metrics_text(&api.fleet);
    ([(CONTENT_TYPE, METRICS_CONTENT_TYPE)], text)
}

async fn list_calls(State(api): State<ApiState>) -> Json<Vec<CallRecord>> {
    let calls = api.telemetry.recent_calls();
    Json(calls.iter().map(|call| CallRecord::clone(call)).collect())
}

async fn reload_config(State(api): State<ApiState>) -> ApiResult<AppliedChange> {
    Ok(Json(api.changes.make(ConfigChange::Reload).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_lists_every_route() {
        let documentation = include_str!("../../docs/reference/http.md");
        let rows =
            documentation.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let documented = rows.flat_map(|cell| cell.split('`'));
        let documented = documented.filter(|text| text.contains(" /"));
        let mut documented: Vec<String> = documented.map(str::to_owned).collect();
        let routes = routes().into_iter().map(|route| {
            let path = route.path().replace('{', "<").replace('}', ">");
            format!("{} {path}", route.method().to_uppercase())
        });
        let mut routes: Vec<String> = routes.collect();
        documented.sort();
        routes.sort();
        assert_eq!(documented, routes);
    }

    #[test]
    fn openapi_document_lists_every_route_and_schema() {
        let document = api_document();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name} is defined");
        }
        insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
    }
}
