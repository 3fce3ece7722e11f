//! What a running dormouse can be asked and told, as HTTP (`/api/v1`). It has no guard of its own.

use std::{convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{
        Path, State,
        rejection::{JsonRejection, PathRejection},
    },
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post, put},
};
use futures_util::{Stream, StreamExt as _, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::{Change, ChangeError, Changed, Changes, Report, ServerReport, openapi::document};
use crate::{
    base::run_blocking,
    catalog::Stock,
    config::ConfigEdit,
    proxy::{self, Fleet, OperateError},
};

/// Several changes that follow each other at once are one event.
const PAUSE: Duration = Duration::from_millis(100);
/// So that nobody takes a quiet stream for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(25);

/// A running dormouse, to be asked and told.
#[derive(Clone)]
pub struct Control {
    pub fleet: Arc<Fleet>,
    /// Absolute; empty where there is none.
    pub config: PathBuf,
    pub changes: Changes,
    /// Ends streams of events.
    pub stop: CancellationToken,
}

/// The way to all of it.
pub const BASE: &str = "/api/v1";

/// All that can be asked and told, below [`BASE`]; the `OpenAPI` document says the same of it.
pub fn router(control: Control) -> Router {
    let routes = Router::new()
        .route("/status", get(status))
        .route("/servers", get(servers).post(add))
        .route("/servers/{name}", get(server).delete(remove).patch(enable))
        .route("/servers/{name}/load", post(load))
        .route("/servers/{name}/sleep", post(sleep))
        .route("/servers/{name}/reset", post(reset))
        .route("/tools", get(tools))
        .route("/servers/{name}/tools", get(tools_of))
        .route("/servers/{name}/tools/{tool}", put(enable_tool))
        .route("/reload", post(reload))
        .route("/events", get(events))
        .route("/openapi.json", get(|| async { Json(document()) }))
        .method_not_allowed_fallback(|| async {
            Refused::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this cannot be done here; see /api/v1/openapi.json",
            )
        })
        .fallback(|| async { Refused::new(StatusCode::NOT_FOUND, "there is nothing here") })
        .with_state(control);
    Router::new().nest(BASE, routes)
}

/// A server to be added.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServer {
    /// What to call it.
    pub name: String,
    /// As in `mcpServers` of the config.
    pub entry: Map<String, Value>,
    /// Put it in the place of one of that name.
    #[serde(default)]
    pub replace: bool,
}

/// Whether a server or a tool is switched on.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    pub enabled: bool,
}

/// A tool, and whose it is.
#[derive(Serialize, JsonSchema)]
pub struct ToolOf {
    pub server: String,
    #[serde(flatten)]
    pub tool: Stock,
}

/// Why something was not done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Refused {
    #[serde(skip)]
    status: StatusCode,
    pub error: String,
}

type Answer<T> = Result<Json<T>, Refused>;

impl Refused {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}

impl From<OperateError> for Refused {
    fn from(error: OperateError) -> Self {
        let status = match &error {
            OperateError::Unknown(_) => StatusCode::NOT_FOUND,
            OperateError::Load(_) => StatusCode::BAD_GATEWAY,
            OperateError::Awake { .. } | OperateError::Disabled(_) | OperateError::OfSessions => {
                StatusCode::CONFLICT
            }
        };
        Self::new(status, error.to_string())
    }
}

impl From<ChangeError> for Refused {
    fn from(error: ChangeError) -> Self {
        let status = match &error {
            ChangeError::Unknown(_) => StatusCode::NOT_FOUND,
            ChangeError::Exists(_) | ChangeError::NotOurs(_) | ChangeError::NoConfig => {
                StatusCode::CONFLICT
            }
            ChangeError::Invalid(_) | ChangeError::ByHand(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ChangeError::Unwritable(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

/// A body of JSON, or why it is none.
type Body<T> = Result<Json<T>, JsonRejection>;

impl From<PathRejection> for Refused {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

/// A name in the address, or why it is none.
type Named = Result<Path<String>, PathRejection>;

impl Control {
    /// It reads from disk.
    async fn report(&self) -> Report {
        let (fleet, config) = (self.fleet.clone(), self.config.clone());
        let report = run_blocking(move || Report::of(&fleet, config)).await;
        report.expect("a report is made without a panic")
    }

    async fn report_of(&self, name: &str) -> Result<ServerReport, Refused> {
        let report = self.report().await;
        let found = report.servers.into_iter().find(|server| server.name == name);
        found.ok_or_else(|| OperateError::Unknown(name.to_owned()).into())
    }
}

async fn status(State(control): State<Control>) -> Json<Report> {
    Json(control.report().await)
}

async fn servers(State(control): State<Control>) -> Json<Vec<ServerReport>> {
    Json(control.report().await.servers)
}

async fn server(State(control): State<Control>, name: Named) -> Answer<ServerReport> {
    let Path(name) = name?;
    control.report_of(&name).await.map(Json)
}

async fn add(
    State(control): State<Control>,
    body: Body<NewServer>,
) -> Result<(StatusCode, Json<Changed>), Refused> {
    let Json(NewServer { name, entry, replace }) = body?;
    let changed =
        control.changes.make(Change::Edit(ConfigEdit::Add { name, entry, replace })).await?;
    Ok((StatusCode::CREATED, Json(changed)))
}

async fn remove(State(control): State<Control>, name: Named) -> Answer<Changed> {
    let Path(name) = name?;
    Ok(Json(control.changes.make(Change::Edit(ConfigEdit::Remove { name })).await?))
}

async fn enable(
    State(control): State<Control>,
    name: Named,
    body: Body<Switch>,
) -> Answer<Changed> {
    let Path(name) = name?;
    let Json(Switch { enabled }) = body?;
    Ok(Json(control.changes.make(Change::Edit(ConfigEdit::Enable { name, enabled })).await?))
}

async fn load(State(control): State<Control>, name: Named) -> Answer<ServerReport> {
    let Path(name) = name?;
    control.fleet.load_for_all(&name).await?;
    control.report_of(&name).await.map(Json)
}

async fn sleep(State(control): State<Control>, name: Named) -> Answer<ServerReport> {
    let Path(name) = name?;
    control.fleet.put_to_sleep(&name).await?;
    control.report_of(&name).await.map(Json)
}

async fn reset(State(control): State<Control>, name: Named) -> Answer<ServerReport> {
    let Path(name) = name?;
    let (fleet, server) = (control.fleet.clone(), name.clone());
    run_blocking(move || fleet.reset(&server)).await.expect("a reset does not panic")?;
    control.report_of(&name).await.map(Json)
}

async fn tools(State(control): State<Control>) -> Json<Vec<ToolOf>> {
    let servers = control.report().await.servers;
    Json(servers.into_iter().flat_map(tools_in).collect())
}

async fn tools_of(State(control): State<Control>, name: Named) -> Answer<Vec<ToolOf>> {
    let Path(name) = name?;
    Ok(Json(tools_in(control.report_of(&name).await?).collect()))
}

fn tools_in(server: ServerReport) -> impl Iterator<Item = ToolOf> {
    let ServerReport { name, inventory, .. } = server;
    let tools = inventory.into_iter().flat_map(|inventory| inventory.tools);
    tools.map(move |tool| ToolOf { server: name.clone(), tool })
}

async fn enable_tool(
    State(control): State<Control>,
    names: Result<Path<(String, String)>, PathRejection>,
    body: Body<Switch>,
) -> Answer<Changed> {
    let Path((server, tool)) = names?;
    let known = control.report_of(&server).await?.inventory;
    if known.is_some_and(|known| known.tools.iter().all(|stock| stock.name != tool)) {
        let message = format!("{server:?} has no tool {tool:?}");
        return Err(Refused::new(StatusCode::NOT_FOUND, message));
    }
    let Json(Switch { enabled }) = body?;
    Ok(Json(
        control
            .changes
            .make(Change::Edit(ConfigEdit::EnableTool { server, tool, enabled }))
            .await?,
    ))
}

async fn reload(State(control): State<Control>) -> Answer<Changed> {
    Ok(Json(control.changes.make(Change::Reload).await?))
}

/// First the whole report as `status`, then each server that has changed as `server`, and what is gone as `removed`.
async fn events(
    State(control): State<Control>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stop = control.stop.clone();
    let happened = control.fleet.events();
    let looks =
        stream::unfold((control, happened, None), |(control, mut happened, before)| async {
            let (events, servers) = next_events(&control, &mut happened, before).await?;
            Some((stream::iter(events), (control, happened, Some(servers))))
        });
    let events = looks.flatten().take_until(stop.cancelled_owned());
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// What has changed since `before`, once something has; and how the servers are then.
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
        tokio::time::sleep(PAUSE).await;
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
        // The time until the next attempt is always another.
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
