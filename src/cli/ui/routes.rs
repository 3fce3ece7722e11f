//! The routes of the page and of its API, which are below the secret path of the page.

use std::collections::HashMap;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Path, Query, Request, State},
    http::{
        HeaderValue, Method, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, REFERRER_POLICY,
            SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
        },
    },
    middleware::{Next, from_fn_with_state, map_response},
    response::{Html, IntoResponse, Redirect, Response},
    routing::{any, get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    assets::ASSETS,
    call_feed::NextCalls,
    config_view::{ConfigView, SavingsView},
    definition_diff::DefinitionDiff,
    entrance::{HTTP_PATH, Refusal},
    overview::Overview,
    page::{Page, PageResult},
    sign_in::{self, SIGN_IN_PATH},
};
use crate::{
    base::with_causes,
    catalog::ToolSummary,
    cli::operate::ServerOperation,
    config::{ConfigEdit, Isolation},
    control::{ApiError, Switch},
    proxy::FoundTool,
};

/// The page uses only its own files and its own API, and is in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Maximum size of the body of a request, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 1000;

/// The path before a ticket.
pub(super) const OPEN_PATH: &str = "/open/";

/// Builds the routes of a page that a ticket opens, for a listener that serves nothing else.
pub(super) fn with_ticket(page: Page) -> Router {
    let open_path = format!("{OPEN_PATH}{{ticket}}");
    let door = Router::new().route(&open_path, get(open)).with_state(page.clone());
    router(page)
        .merge(door)
        // Browsers ask for it, whatever the page says.
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .fallback(|| async { ApiError::new(StatusCode::NOT_FOUND, "nothing is here") })
        .layer(map_response(with_headers))
}

/// Builds the routes of a page that tokens open, and those of its form below [`HTTP_PATH`].
pub(super) fn with_tokens(page: Page) -> Router {
    let without_slash = HTTP_PATH.trim_end_matches('/');
    let door = Router::new()
        .route(without_slash, get(|| async { Redirect::to(SIGN_IN_PATH) }))
        .route(HTTP_PATH, get(|| async { Redirect::to(SIGN_IN_PATH) }))
        // The secret path of a process that has ended, in a browser that still shows its page.
        .route(&format!("{HTTP_PATH}{{*rest}}"), any(from_earlier_process))
        .route(SIGN_IN_PATH, get(sign_in::form).post(sign_in::admit))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(page.clone());
    router(page).layer(map_response(with_headers)).merge(door)
}

/// Sends a browser to the form. Requests of a page that is still shown get an error.
async fn from_earlier_process(request: Request) -> Response {
    if request.uri().path().contains("/api/") {
        return ApiError::from(Refusal::NotSignedIn).into_response();
    }
    Redirect::to(SIGN_IN_PATH).into_response()
}

/// Builds the routes of the page and of its API.
fn router(page: Page) -> Router {
    let at = |path: &str| format!("{}{path}", page.entrance.path());
    let of_server = |part: &str| at(&format!("api/servers/{{name}}/{part}"));
    let files = ASSETS.iter().fold(Router::new(), |router, asset| {
        let answer = || async { ([(CONTENT_TYPE, asset.content_type)], asset.content) };
        router.route(&at(asset.name), get(answer))
    });
    let checking = from_fn_with_state(page.clone(), check);
    files
        .route(&at("api/overview"), get(overview))
        .route(&at("api/calls"), get(calls))
        .route(&at("api/savings"), get(savings))
        .route(&at("api/search"), get(search))
        .route(&of_server("tools"), get(tools))
        .route(&of_server("tool-enabled"), post(set_tool_enabled))
        .route(&of_server("changes"), get(definition_changes))
        .route(&of_server("approve"), post(approve))
        .route(&of_server("stderr"), get(stderr))
        .route(&of_server("{operation}"), post(operate))
        .route(&of_server("enabled"), post(set_enabled))
        .route(&of_server("isolation"), post(set_isolation))
        .route(&of_server("login"), post(log_in))
        .with_state(page)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .route_layer(checking)
}

/// Refuses requests that are not from the page of an admitted browser.
async fn check(State(page): State<Page>, request: Request, next: Next) -> Response {
    let Page { entrance, .. } = page;
    match entrance.check(&request) {
        Ok(()) => next.run(request).await,
        // A browser that has an old address.
        Err(Refusal::NotSignedIn) if request.uri().path() == entrance.path() => {
            Redirect::to(SIGN_IN_PATH).into_response()
        }
        Err(refusal) => ApiError::from(refusal).into_response(),
    }
}

async fn with_headers(mut response: Response) -> Response {
    let headers: [(_, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(HeaderMap::from_iter(headers));
    response
}

/// Admits the browser that shows the ticket, and sends it to the page. The answer is a page and no
/// redirect: after one, browsers would not send the cookie if another site has the link.
async fn open(
    State(Page { entrance, .. }): State<Page>,
    Path(ticket): Path<String>,
    request: Request,
) -> Response {
    // A program that looks whether the address exists must not use the ticket up.
    if *request.method() == Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    if let Err(refusal) = entrance.check_origin(&request) {
        return ApiError::from(refusal).into_response();
    }
    let Some(cookie) = entrance.admit(&ticket) else {
        let used = "This address has been used, or is not complete. Run `dormouse ui` again.\n";
        return (StatusCode::UNAUTHORIZED, used).into_response();
    };
    let path = entrance.path();
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>dormouse</title>\
        <meta http-equiv=\"refresh\" content=\"0; url={path}\"><a href=\"{path}\">dormouse</a>"
    );
    ([(SET_COOKIE, cookie)], Html(page)).into_response()
}

async fn overview(State(page): State<Page>) -> PageResult<Overview> {
    let logins = page.logins.as_ref().map(|logins| logins.progress());
    page.run(|view| view.overview(logins)).await.map(Json)
}

/// The query of a request for calls.
#[derive(Deserialize)]
struct CallsQuery {
    after: u64,
}

async fn calls(
    State(page): State<Page>,
    Query(CallsQuery { after }): Query<CallsQuery>,
) -> PageResult<NextCalls> {
    page.run(move |view| Ok(view.calls_after(after))).await.map(Json)
}

async fn savings(State(page): State<Page>) -> PageResult<SavingsView> {
    page.run(ConfigView::savings).await.map(Json)
}

/// The query of a search.
#[derive(Deserialize)]
struct SearchQuery {
    query: String,
}

async fn search(
    State(page): State<Page>,
    Query(SearchQuery { query }): Query<SearchQuery>,
) -> PageResult<HashMap<&'static str, Vec<FoundTool>>> {
    let query: String = query.chars().take(MAX_QUERY_CHARS).collect();
    let hits = page.run(move |view| view.search(&query)).await?;
    Ok(Json(HashMap::from([("hits", hits)])))
}

async fn tools(
    State(page): State<Page>,
    Path(server): Path<String>,
) -> PageResult<Vec<ToolSummary>> {
    page.run(move |view| view.tools(&server)).await.map(Json)
}

async fn definition_changes(
    State(page): State<Page>,
    Path(server): Path<String>,
) -> PageResult<Vec<DefinitionDiff>> {
    page.run(move |view| view.definition_changes(&server)).await.map(Json)
}

async fn stderr(State(page): State<Page>, Path(server): Path<String>) -> PageResult<Vec<String>> {
    page.run(move |view| view.stderr(&server)).await.map(Json)
}

async fn operate(
    State(page): State<Page>,
    Path((server, operation)): Path<(String, ServerOperation)>,
) -> PageResult<Value> {
    page.run(move |view| view.operate(&server, operation)).await.map(done)
}

/// The tool that a user approves, as the user has seen it.
#[derive(Deserialize)]
struct Approval {
    tool: String,
    definition: String,
}

async fn approve(
    State(page): State<Page>,
    Path(server): Path<String>,
    Json(Approval { tool, definition }): Json<Approval>,
) -> PageResult<Value> {
    page.run(move |view| view.approve(&server, &tool, &definition)).await.map(done)
}

async fn set_enabled(
    State(page): State<Page>,
    Path(name): Path<String>,
    Json(Switch { enabled }): Json<Switch>,
) -> PageResult<Value> {
    page.run(move |view| view.edit(&ConfigEdit::Enable { name, enabled })).await.map(done)
}

/// The switch of a tool. Its name is in the body, since a path cannot have the name `..`.
#[derive(Deserialize)]
struct ToolSwitch {
    tool: String,
    enabled: bool,
}

async fn set_tool_enabled(
    State(page): State<Page>,
    Path(server): Path<String>,
    Json(ToolSwitch { tool, enabled }): Json<ToolSwitch>,
) -> PageResult<Value> {
    let edit = ConfigEdit::EnableTool { server, tool, enabled };
    page.run(move |view| view.edit(&edit)).await.map(done)
}

/// The hosts that use the same process of a server.
#[derive(Deserialize)]
struct Sharing {
    isolation: Isolation,
}

async fn set_isolation(
    State(page): State<Page>,
    Path(name): Path<String>,
    Json(Sharing { isolation }): Json<Sharing>,
) -> PageResult<Value> {
    page.run(move |view| view.edit(&ConfigEdit::Isolate { name, isolation })).await.map(done)
}

async fn log_in(State(page): State<Page>, Path(server): Path<String>) -> PageResult<Value> {
    let Some(logins) = page.logins.clone() else {
        let elsewhere = "a login ends at the machine of dormouse: run `dormouse login` there";
        return Err(ApiError::new(StatusCode::CONFLICT, elsewhere));
    };
    let server = page.run(move |view| view.server(&server)).await?;
    let address = logins.begin(&server).await;
    let address =
        address.map_err(|error| ApiError::new(StatusCode::BAD_GATEWAY, with_causes(&error)))?;
    Ok(Json(json!({ "address": address })))
}

/// Returns the answer to a request that has done something.
fn done((): ()) -> Json<Value> {
    Json(json!({}))
}
