//! The page that a browser shows at the end of a login, or instead of one.

use axum::{
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use super::LoginError;

/// The page that a browser shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoginPage {
    LoggedIn {
        server: String,
    },
    Failed {
        why: String,
    },
    /// The person has to choose the identity provider that knows them.
    Choice {
        server: String,
        /// The names of the providers, with the addresses to go on with.
        providers: Vec<(String, String)>,
    },
}

impl LoginPage {
    /// Returns the page for the outcome of a login to a server.
    pub(super) fn of(server: &str, outcome: &Result<(), LoginError>) -> Self {
        match outcome {
            Ok(()) => Self::LoggedIn { server: server.to_owned() },
            Err(error) => Self::Failed { why: error.to_string() },
        }
    }
}

impl IntoResponse for LoginPage {
    fn into_response(self) -> Response {
        let (status, title, text) = match self {
            Self::LoggedIn { server } => (
                StatusCode::OK,
                "You are logged in",
                escaped(&format!("dormouse can use {server} now. You can close this page.")),
            ),
            Self::Failed { why } => {
                let next = "The program that asked you to log in shows what to do next.";
                (
                    StatusCode::BAD_REQUEST,
                    "You are not logged in",
                    escaped(&format!("{why}. {next}")),
                )
            }
            Self::Choice { server, providers } => {
                let links = providers.iter().map(|(name, address)| {
                    format!("<br><a href=\"{}\">{}</a>", escaped(address), escaped(name))
                });
                let text = format!("choose your identity provider. {}", links.collect::<String>());
                (StatusCode::OK, "Log in", format!("To use {}: {text}", escaped(&server)))
            }
        };
        let page = PAGE_TEMPLATE
            .replace("{script}", HIDE_CODE_SCRIPT)
            .replace("{title}", title)
            .replace("{text}", &text);
        let script = BASE64_STANDARD.encode(Sha256::digest(HIDE_CODE_SCRIPT));
        let policy = format!(
            "default-src 'none'; frame-ancestors 'none'; style-src 'unsafe-inline'; \
                script-src 'sha256-{script}'"
        );
        let headers = [
            (header::CACHE_CONTROL, "no-store"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        ];
        (status, headers, Html(page)).into_response()
    }
}

/// Removes the code from the address bar, and so from screenshots and the browser's history.
const HIDE_CODE_SCRIPT: &str = "history.replaceState(null, '', location.pathname)";

const PAGE_TEMPLATE: &str = "<!doctype html>
<html lang=\"en\"><meta charset=\"utf-8\"><title>{title} · dormouse</title>
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<style>body{font:1.1rem/1.5 system-ui,sans-serif;\
max-width:32rem;margin:20vh auto;padding:0 1rem}</style>
<script>{script}</script>
<h1>{title}</h1>
<p>{text}</p>
</html>
";

fn escaped(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '&' => "&amp;".to_owned(),
            '"' => "&quot;".to_owned(),
            c => c.to_string(),
        })
        .collect()
}
