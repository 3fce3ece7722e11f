//! The process that serves the page, and the routes of the page for a process that serves HTTP.

use std::{net::Ipv4Addr, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use axum::Router;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    config_view::ConfigView,
    entrance::Entrance,
    page::Page,
    page_logins::PageLogins,
    routes::{self, OPEN_PATH},
};
use crate::{
    auth::Browser,
    cli::{
        arguments::UiArguments, output::is_output_lost, runtime, settings, shared_flags::Options,
        signals::cancel_when_asked, state_stores::StateStores,
    },
    config::ConfigFile,
    downstream::http::{ListeningSocket, serve_connections},
};

pub(in crate::cli) fn run(options: &Options, typed: &UiArguments) -> anyhow::Result<ExitCode> {
    if cfg!(not(unix)) {
        bail!("not supported on Windows yet: commands cannot reach a running dormouse");
    }
    let file = settings::find_trusted(options)?;
    settings::say_which(&file);
    let config = settings::parse(&file, options)?;
    let stores = StateStores::of(&config.settings)?;
    let logins = PageLogins::new(stores.auth(Some(&file), options));
    let view = Arc::new(ConfigView::new(options.clone(), &file));
    let runtime = runtime()?;
    let served = runtime.block_on(serve(typed, view, logins));
    // A request may still wait for a process that hangs.
    runtime.shutdown_background();
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the routes of the page of a process that serves hosts over HTTP. Any of `tokens` opens
/// the page.
pub(in crate::cli) fn router_over_http(
    options: &Options,
    file: &ConfigFile,
    tokens: Vec<String>,
) -> Router {
    let entrance = Arc::new(Entrance::with_tokens(tokens));
    let view = Arc::new(ConfigView::new(options.clone(), file));
    routes::with_tokens(Page { entrance, view, logins: None })
}

/// Maximum time to answer requests in flight when the command ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the page until a signal asks the process to end.
async fn serve(
    typed: &UiArguments,
    view: Arc<ConfigView>,
    logins: Arc<PageLogins>,
) -> anyhow::Result<()> {
    let listener = ListeningSocket::bind((Ipv4Addr::LOCALHOST, typed.port).into()).await;
    let listener =
        listener.with_context(|| format!("cannot listen on 127.0.0.1:{}", typed.port))?;
    let (entrance, ticket) = Entrance::with_ticket();
    let address = format!("http://{}{OPEN_PATH}{ticket}", listener.address()?);
    let address = Url::parse(&address)?;
    let stop = CancellationToken::new();
    let _signals = cancel_when_asked(stop.clone(), false);
    outln!("{address}");
    let is_opened = !typed.no_browser && Browser::Here.open(&address).await;
    if is_opened {
        errln!("A browser should have opened this address.");
    } else if is_output_lost() {
        bail!("cannot print the address of the page");
    } else {
        errln!("Open this address in a browser.");
    }
    errln!("It works once, for one browser. Press Ctrl-C to end the page.");
    let page = Page { entrance: Arc::new(entrance), view, logins: Some(logins.clone()) };
    let router = routes::with_ticket(page);
    tokio::select! {
        () = serve_connections(listener, None, router, stop.clone()) => {}
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN_TIMEOUT).await;
        } => {}
    }
    logins.end().await;
    Ok(())
}
