//! The one HTTP client of the process, made when the first server behind a URL is used.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use reqwest::{Client, StatusCode, redirect};

use crate::wire::{http_client_builder, sse::root_cause};

/// Maximum time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The interval at which the system checks whether a silent connection is alive.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of redirects for one request.
const MAX_REDIRECTS: usize = 5;

/// Makes the client on first use, since that reads the system's certificates. Clones are cheap.
#[derive(Clone, Default)]
pub(crate) struct HttpClient(Arc<OnceLock<Result<Client, String>>>);

impl HttpClient {
    pub(super) fn get(&self) -> Result<Client, String> {
        self.0.get_or_init(|| build_client().map_err(|error| root_cause(&error))).clone()
    }
}

fn build_client() -> reqwest::Result<Client> {
    let builder = || {
        http_client_builder()
            .user_agent(concat!("dormouse/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::custom(judge_redirect))
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEPALIVE_INTERVAL)
            .tcp_nodelay(true)
    };
    builder().build().or_else(|error| {
        // A system without certificates can still reach servers that need none.
        tracing::warn!(
            %error,
            "cannot load the system's certificates; https connections will fail",
        );
        builder().tls_certs_only(Vec::new()).build()
    })
}

/// Follows a redirect only if it keeps method and body, and leads to the same origin. Another
/// origin must neither see the headers nor answer in the server's name.
fn judge_redirect(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let same_origin =
        attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if keeps_method && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
