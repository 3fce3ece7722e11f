//! The form with which a user signs in to the page over HTTP.

use std::time::Duration;

use axum::{
    body::Bytes,
    extract::{Request, State},
    http::{
        StatusCode,
        header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, SET_COOKIE},
    },
    response::{Html, IntoResponse, Response},
};

use super::page::Page;
use crate::control::ApiError;

pub(super) const SIGN_IN_PATH: &str = "/ui/sign-in";
/// Delay of the answer to a wrong token.
const REFUSAL_DELAY: Duration = Duration::from_millis(500);
/// The form is plain HTML, which posts to its own address.
const POLICY: &str =
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Maximum size of the form, in bytes.
const MAX_FORM_BYTES: usize = 16 * 1024;
const FORM: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" \
    content=\"light dark\"><title>dormouse</title><main><h1>dormouse</h1>\
    <form method=\"post\"><p><label>One of <code>apiTokens</code> in the config<br>\
    <input name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus>\
    </label></p><p><button>Sign in</button></p></form></main></html>";

pub(super) async fn form() -> Response {
    answer(StatusCode::OK, "")
}

/// Admits a browser that shows one of the tokens.
pub(super) async fn admit(State(page): State<Page>, request: Request) -> Response {
    if let Err(refusal) = page.entrance.check_origin(&request) {
        return ApiError::from(refusal).into_response();
    }
    let body = axum::body::to_bytes(request.into_body(), MAX_FORM_BYTES).await;
    let cookie = body.ok().and_then(|body| page.entrance.admit(&token(&body)?));
    let Some(cookie) = cookie else {
        tokio::time::sleep(REFUSAL_DELAY).await;
        let why = "<p role=\"alert\">This is not one of the tokens.</p>";
        return answer(StatusCode::UNAUTHORIZED, why);
    };
    let headers = [(SET_COOKIE, cookie), (LOCATION, page.entrance.path().to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn token(body: &Bytes) -> Option<String> {
    let mut fields = url::form_urlencoded::parse(body);
    let (_, token) = fields.find(|(name, _)| name == "token")?;
    Some(token.trim().to_owned())
}

/// Returns the form after an HTML text.
fn answer(status: StatusCode, text: &str) -> Response {
    let headers = [(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-store")];
    (status, headers, Html(FORM.replace("<form", &format!("{text}<form")))).into_response()
}
