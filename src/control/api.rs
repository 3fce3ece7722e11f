//! The control API: an HTTP interface to a running dormouse (`/api/v1`). It does not check who
//! calls it; the socket and the HTTP guard do.

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
    response::sse::{Event, KeepAlive, Sse},
    routing::{get, post, put},
};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::{
    AppliedChange, BASE_PATH, ChangeSender, ConfigChange, NewServer, ServerReport, ServerTool,
    StatusReport, Switch,
    api_types::{ApiError, ApiResult, JsonBody, NamePath},
    openapi::document,
};
use crate::{
    base::run_blocking,
    config::ConfigEdit,
    proxy::{self, Fleet, OperateError},
};

/// Changes within this time are reported as one event.
const EVENT_DELAY: Duration = Duration::from_millis(100);
/// Interval of comments in a quiet event stream, so that clients do not take it for dead.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(25);

/// Everything that the handlers of the control API need.
#[derive(Clone)]
pub struct Control {
    pub fleet: Arc<Fleet>,
    /// The absolute path of the config; empty if there is none.
    pub config: PathBuf,
    pub changes: ChangeSender,
    /// Ends the event streams.
    pub stop: CancellationToken,
}

/// Builds the routes below [`BASE_PATH`]. `openapi` describes the same routes.
pub fn router(control: Control) -> Router {
    let routes = Router::new()
        .route("/status", get(get_status))
        .route("/servers", get(list_servers).post(add_server))
        .route("/servers/{name}", get(get_server).delete(remove_server).patch(set_server_enabled))
        .route("/servers/{name}/load", post(load_server))
        .route("/servers/{name}/sleep", post(put_server_to_sleep))
        .route("/servers/{name}/reset", post(reset_server))
        .route("/tools", get(list_tools))
        .route("/servers/{name}/tools", get(list_server_tools))
        .route("/servers/{name}/tools/{tool}", put(set_tool_enabled))
        .route("/reload", post(reload_config))
        .route("/events", get(stream_events))
        .route("/openapi.json", get(|| async { Json(document()) }))
        .method_not_allowed_fallback(|| async {
            ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed; see /api/v1/openapi.json",
            )
        })
        .fallback(|| async {
            ApiError::new(
                StatusCode::NOT_FOUND,
                "no such route; see \
            /api/v1/openapi.json",
            )
        })
        .with_state(control);
    Router::new().nest(BASE_PATH, routes)
}

impl Control {
    /// Builds the report on a blocking thread, because it reads from disk.
    async fn report(&self) -> StatusReport {
        let (fleet, config) = (self.fleet.clone(), self.config.clone());
        let report = run_blocking(move || StatusReport::of(&fleet, config)).await;
        report.expect("a report is made without a panic")
    }

    async fn server_report(&self, name: &str) -> Result<ServerReport, ApiError> {
        let report = self.report().await;
        let found = report.servers.into_iter().find(|server| server.name == name);
        found.ok_or_else(|| OperateError::Unknown(name.to_owned()).into())
    }
}

async fn get_status(State(control): State<Control>) -> Json<StatusReport> {
    Json(control.report().await)
}

async fn list_servers(State(control): State<Control>) -> Json<Vec<ServerReport>> {
    Json(control.report().await.servers)
}

async fn get_server(State(control): State<Control>, name: NamePath) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    control.server_report(&name).await.map(Json)
}

async fn add_server(
    State(control): State<Control>,
    body: JsonBody<NewServer>,
) -> Result<(StatusCode, Json<AppliedChange>), ApiError> {
    let Json(NewServer { name, entry, replace }) = body?;
    let changed =
        control.changes.make(ConfigChange::Edit(ConfigEdit::Add { name, entry, replace })).await?;
    Ok((StatusCode::CREATED, Json(changed)))
}

async fn remove_server(State(control): State<Control>, name: NamePath) -> ApiResult<AppliedChange> {
    let Path(name) = name?;
    Ok(Json(control.changes.make(ConfigChange::Edit(ConfigEdit::Remove { name })).await?))
}

async fn set_server_enabled(
    State(control): State<Control>,
    name: NamePath,
    body: JsonBody<Switch>,
) -> ApiResult<AppliedChange> {
    let Path(name) = name?;
    let Json(Switch { enabled }) = body?;
    Ok(Json(control.changes.make(ConfigChange::Edit(ConfigEdit::Enable { name, enabled })).await?))
}

async fn load_server(State(control): State<Control>, name: NamePath) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    control.fleet.operator().load(&name).await?;
    control.server_report(&name).await.map(Json)
}

async fn put_server_to_sleep(
    State(control): State<Control>,
    name: NamePath,
) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    control.fleet.operator().sleep(&name).await?;
    control.server_report(&name).await.map(Json)
}

async fn reset_server(State(control): State<Control>, name: NamePath) -> ApiResult<ServerReport> {
    let Path(name) = name?;
    let (fleet, server) = (control.fleet.clone(), name.clone());
    run_blocking(move || fleet.operator().reset(&server)).await.expect("a reset does not panic")?;
    control.server_report(&name).await.map(Json)
}

async fn list_tools(State(control): State<Control>) -> Json<Vec<ServerTool>> {
    let servers = control.report().await.servers;
    Json(servers.into_iter().flat_map(tools_of_report).collect())
}

async fn list_server_tools(
    State(control): State<Control>,
    name: NamePath,
) -> ApiResult<Vec<ServerTool>> {
    let Path(name) = name?;
    Ok(Json(tools_of_report(control.server_report(&name).await?).collect()))
}

fn tools_of_report(server: ServerReport) -> impl Iterator<Item = ServerTool> {
    let ServerReport { name, inventory, .. } = server;
    let tools = inventory.into_iter().flat_map(|inventory| inventory.tools);
    tools.map(move |tool| ServerTool { server: name.clone(), tool })
}

async fn set_tool_enabled(
    State(control): State<Control>,
    names: Result<Path<(String, String)>, PathRejection>,
    body: JsonBody<Switch>,
) -> ApiResult<AppliedChange> {
    let Path((server, tool)) = names?;
    let known = control.server_report(&server).await?.inventory;
    if known.is_some_and(|known| known.tools.iter().all(|stock| stock.name != tool)) {
        let message = format!("server {server:?} has no tool {tool:?}");
        return Err(ApiError::new(StatusCode::NOT_FOUND, message));
    }
    let Json(Switch { enabled }) = body?;
    Ok(Json(
        control
            .changes
            .make(ConfigChange::Edit(ConfigEdit::EnableTool { server, tool, enabled }))
            .await?,
    ))
}

async fn reload_config(State(control): State<Control>) -> ApiResult<AppliedChange> {
    Ok(Json(control.changes.make(ConfigChange::Reload).await?))
}

/// Streams events: first the whole report as `status`, then each changed server as `server` and
/// each removed one as `removed`.
async fn stream_events(
    State(control): State<Control>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stop = control.stop.clone();
    let happened = control.fleet.operator().events();
    let batches =
        stream::unfold((control, happened, None), |(control, mut happened, before)| async {
            let (events, servers) = next_events(&control, &mut happened, before).await?;
            Some((stream::iter(events), (control, happened, Some(servers))))
        });
    let events = batches.flatten().take_until(stop.cancelled_owned());
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL))
}

/// Waits for a difference from `before`. Returns its events and the servers' current reports.
async fn next_events(
    control: &Control,
    happened: &mut broadcast::Receiver<proxy::Event>,
    before: Option<Vec<ServerReport>>,
) -> Option<(Vec<Event>, Vec<ServerReport>)> {
    let Some(before) = before else {
        let report = control.report().await;
        return Some((vec![event("status", &report)], report.servers));
    };
    loop {
        wait_for_change(happened).await?;
        tokio::time::sleep(EVENT_DELAY).await;
        // The report shows the changes of the pause too.
        *happened = happened.resubscribe();
        let servers = control.report().await.servers;
        let events = differences(&before, &servers);
        if !events.is_empty() {
            return Some((events, servers));
        }
    }
}

/// Waits for an event that reports of servers may show. Returns `None` when there will be no more.
async fn wait_for_change(happened: &mut broadcast::Receiver<proxy::Event>) -> Option<()> {
    loop {
        match happened.recv().await {
            Ok(proxy::Event::CallEnded(_)) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return Some(()),
            Err(RecvError::Closed) => return None,
        }
    }
}

fn differences(before: &[ServerReport], now: &[ServerReport]) -> Vec<Event> {
    let of = |servers: &[ServerReport], name: &str| {
        let found = servers.iter().find(|server| server.name == name)?;
        // The time until the next attempt differs at each report.
        serde_json::to_value(ServerReport { retry_in: None, ..found.clone() }).ok()
    };
    let changed = now.iter().filter(|server| of(before, &server.name) != of(now, &server.name));
    let gone = before.iter().filter(|server| of(now, &server.name).is_none());
    let gone = gone.map(|server| event("removed", &json!({"name": server.name})));
    changed.map(|server| event("server", server)).chain(gone).collect()
}

fn event(name: &'static str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    event.json_data(data).unwrap_or_else(|_| Event::default().event(name))
}
