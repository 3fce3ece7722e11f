//! Logins that requests of hosts need: the host's user is asked to open a page, and the request
//! goes on after the login (MCP 2025-11-25, client/elicitation, URL mode).

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::{forward_error::ForwardError, heartbeat::with_beats, shape::shape};
use crate::{
    auth::{Auth, LoginError, LoginOwner},
    catalog::ServerId,
    config::ServerConfig,
    protocol::{Era, method},
    proxy::{
        Caller, Event, Fleet,
        asking::{Continuation, HostQuestion, RequestProgress},
        open_logins::{
            CLOSED, DECLINED, LoginAtPage, OpeningPage, Page, Waiter, WantedLogin, is_accepted,
        },
    },
    wire::{Outcome, Raw, edit},
};

/// Maximum time for which a modern host's retry waits before the host is asked to retry again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(25);

/// Maximum time for a modern host to retry, also to learn that its page is closed.
const QUESTION_TIMEOUT: Duration = Duration::from_mins(10);

/// The key of the question in `inputRequests`.
const KEY: &str = "login";

/// The channel on which a user is asked to log in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoginChannel {
    /// The host shows a page to its user.
    Host,
    /// Dormouse opens the page in a browser of this machine.
    Browser,
}

/// Has a user log in to a server. Returns whether a user has done so; `false` if there is no user
/// to ask.
///
/// # Errors
/// [`ForwardError::Asks`] with the result that has the host ask its user and retry, or
/// [`ForwardError::NotLoggedIn`].
pub(super) async fn log_in(
    fleet: &Fleet,
    server: ServerId,
    caller: &Caller,
    ask: AskLogin,
) -> Result<bool, ForwardError> {
    let wanted = WantedLogin { server, owner: fleet.instance(server, caller).login_owner() };
    let Some(channel) = login_channel(fleet, caller, wanted, ask) else { return Ok(false) };
    let waiting = async {
        let page = login_page(fleet, wanted).await?;
        match (channel, caller.client.era) {
            (LoginChannel::Host, Era::Modern) => {
                return Ok(Some(ask_to_come_back(fleet, wanted, caller, page, true)));
            }
            (LoginChannel::Host, Era::Legacy) => page.finished_at(caller).await?,
            (LoginChannel::Browser, _) => page.finished_in_browser().await?,
        }
        Ok(None)
    };
    let name = fleet.servers.config(server).name.clone();
    let message = format!("waiting for a login to server {name}");
    let outcome = with_beats(caller, &message, waiting).await;
    if let Ok(Some(question)) = outcome {
        return Err(ForwardError::Asks(question));
    }
    outcome.map(|_| true).map_err(|why| not_logged_in(fleet, wanted, why))
}

fn not_logged_in(fleet: &Fleet, wanted: WantedLogin, why: String) -> ForwardError {
    let server = fleet.servers.config(wanted.server).name.clone();
    tracing::warn!(server, why, "login not completed");
    let remedy = fleet.context.auth.remedy(&server, wanted.owner);
    ForwardError::NotLoggedIn { server, why, remedy }
}

/// Returns the channel to the user of a host; `None` if no user can be asked.
fn login_channel(
    fleet: &Fleet,
    caller: &Caller,
    wanted: WantedLogin,
    ask: AskLogin,
) -> Option<LoginChannel> {
    // Other results are not to ask anything (2026-07-28, basic/patterns/mrtr).
    let may_ask = caller.request.as_ref().is_none_or(|request| {
        [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ]
            .contains(&request.method.as_str())
    });
    // The browser has to come back to this machine, or to the public address.
    let is_of_person = wanted.owner.is_some();
    let can_show = ask == AskLogin::ThroughHost
        && (is_of_person || caller.host.is_on_this_machine())
        && may_ask
        && caller.client.elicitation().url;
    if can_show {
        return Some(LoginChannel::Host);
    }
    if is_of_person { None } else { channel_without_host(fleet) }
}

fn channel_without_host(fleet: &Fleet) -> Option<LoginChannel> {
    let may_open = fleet.settings().loading.interactive && fleet.context.auth.browser().can_open();
    may_open.then_some(LoginChannel::Browser)
}

/// Returns the open page of a login, or a new one.
async fn login_page(fleet: &Fleet, wanted: WantedLogin) -> Result<Waiter, String> {
    let begin = |number, closing| open_page(fleet, wanted, number, closing);
    let opening = fleet.calls.logins.opening(wanted, begin);
    let opened = opening.page.await;
    if opened.is_err() {
        fleet.calls.logins.forget(wanted, opening.number);
    }
    opened.map(Waiter::of)
}

/// Returns the result that has a modern host retry. `is_asked`: the result has the host ask its
/// user.
fn ask_to_come_back(
    fleet: &Fleet,
    wanted: WantedLogin,
    caller: &Caller,
    page: Waiter,
    is_asked: bool,
) -> Raw {
    let questions: &[(String, HostQuestion)] =
        if is_asked { &[(KEY.to_owned(), page.question())] } else { &[] };
    let weak = fleet.this.clone();
    let then: Continuation = Box::new(move |caller, responses| {
        Box::pin(
            async move { resume_login(&*weak.upgrade()?, wanted, page, &caller, &responses).await },
        )
    });
    fleet.asking.ask_by_result(caller, questions, QUESTION_TIMEOUT, RequestProgress::Unsent, then)
}

/// Waits for the login that a modern host comes back from. Returns what to answer it at once, if
/// anything; `None` where the request is to be handled as if it were new.
async fn resume_login(
    fleet: &Fleet,
    wanted: WantedLogin,
    page: Waiter,
    caller: &Caller,
    responses: &Raw,
) -> Option<Outcome> {
    let request = caller.request.as_ref()?;
    let answer = edit::get(responses, KEY);
    // If the user was not asked, no answer is expected.
    let is_awaited = answer.is_none_or(|answer| is_accepted(&answer));
    let patience = if is_awaited { RETRY_TIMEOUT } else { Duration::ZERO };
    let finished = match tokio::time::timeout(patience, page.finished()).await {
        Ok(finished) => finished,
        Err(_) if is_awaited => {
            return Some(Ok(ask_to_come_back(fleet, wanted, caller, page, false)));
        }
        Err(_) => {
            page.decline();
            Err(DECLINED.to_owned())
        }
    };
    let failed = not_logged_in(fleet, wanted, finished.err()?);
    Some(shape(caller, &request.method, Err(failed)))
}

/// Begins a login, which continues even if all requests that need it are cancelled.
fn open_page(
    fleet: &Fleet,
    wanted: WantedLogin,
    number: u64,
    closing: CancellationToken,
) -> OpeningPage {
    let (auth, config) = (fleet.context.auth.clone(), fleet.servers.config(wanted.server));
    let tasks = fleet.context.tasks.clone();
    let fleet = fleet.this.clone();
    let opening = tasks.clone().spawn({
        let closing = closing.clone();
        async move {
            let login = tokio::select! {
                login = begin_login(&auth, &config, wanted.owner) => {
                    login.map_err(|error| error.to_string())?
                }
                () = closing.cancelled() => return Err(CLOSED.to_owned()),
            };
            let forget = move || {
                if let Some(fleet) = fleet.upgrade() {
                    // Later requests begin another login.
                    fleet.calls.logins.forget(wanted, number);
                    fleet.events.send(Event::LoginEnded);
                }
            };
            Ok(Page::of(
                config.name.clone(),
                login,
                auth.browser().clone(),
                closing,
                &tasks,
                forget,
            ))
        }
    });
    let page = async move { opening.await.unwrap_or_else(|_| Err(CLOSED.to_owned())) };
    OpeningPage { number, page: page.boxed().shared(), closing }
}

async fn begin_login(
    auth: &Auth,
    server: &ServerConfig,
    owner: Option<LoginOwner>,
) -> Result<LoginAtPage, LoginError> {
    match owner {
        None => Ok(LoginAtPage::Here(auth.begin_browser_login(server, &[]).await?)),
        Some(owner) => {
            let (address, made) = auth.public_login_of(server, owner)?;
            Ok(LoginAtPage::Public { address, made })
        }
    }
}

/// The user that may be asked to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum AskLogin {
    /// The host's user, through the host or in a browser.
    ThroughHost,
    /// A user at this machine, in a browser: hosts list at their start and must not ask then.
    InBrowser,
}
