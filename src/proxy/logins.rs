//! A login that a host's request has run into: its user is asked to open a page, where that can be, and the request goes
//! on when they are back (MCP 2025-11-25, client/elicitation, URL mode).

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{Caller, Fleet, calls::own, conversation::Binding, forward::with_beats};
use crate::{
    auth::{Login, can_open_browser, open_in_browser},
    catalog::ServerId,
    config::Browser,
    peer::CallOptions,
    protocol::{Era, error, random_token},
    surface::failed,
    wire::{Outcome, Raw, edit},
};

/// How long a person may take to log in.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long a modern host's retry waits, before the host is asked to come back once more.
const LONGEST_RETRY: Duration = Duration::from_secs(25);
/// Of states that were given to hosts which have not come back.
const MOST_WAITING: usize = 1000;

const STATE: &str = "dormouse-login.";
/// Under which a modern host knows the question.
const KEY: &str = "login";

/// The logins that are under way.
#[derive(Default)]
pub(super) struct Logins {
    // A std mutex: held to find or make one. By server; everyone who needs it shares one.
    open: Mutex<HashMap<ServerId, Opening>>,
    // As above. By the state that a modern host comes back with.
    waiting: Mutex<HashMap<String, Waiting>>,
}

type Opening = Shared<BoxFuture<'static, Result<Arc<Open>, String>>>;

/// A page that waits for somebody.
struct Open {
    address: Url,
    /// By which a legacy host knows it.
    id: String,
    /// Whether we have opened it in a browser ourselves.
    is_shown: AtomicBool,
    done: Shared<BoxFuture<'static, Result<(), String>>>,
}

/// A modern host that was asked, and is to come back.
struct Waiting {
    binding: Binding,
    server: ServerId,
    until: Instant,
}

/// How somebody can be brought to log in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The host shows a page to its user.
    Host,
    /// We open it ourselves.
    Browser,
}

/// What has become of a login that a request needs.
pub(super) enum LoginOutcome {
    /// The request can be made once more.
    LoggedIn,
    /// The host has to ask its user, and to come back: the result that says so.
    Asks(Raw),
    /// Nobody can be asked, or nobody has logged in.
    Not,
}

impl Fleet {
    /// Has somebody log in to a server in this way, if there is one.
    pub(super) async fn log_in(
        &self,
        server: ServerId,
        caller: &Caller,
        way: Option<Way>,
    ) -> LoginOutcome {
        let Some(way) = way else { return LoginOutcome::Not };
        let name = self.config_of(server).name.clone();
        let open = match self.open_login(server).await {
            Ok(open) => open,
            Err(why) => {
                tracing::warn!(server = name, why, "nobody can log in");
                return LoginOutcome::Not;
            }
        };
        if way == Way::Host && caller.client.era == Era::Modern {
            let question = question(&name, &open);
            return LoginOutcome::Asks(self.ask_to_come_back(server, caller, Some(&question)));
        }
        if way == Way::Browser && !open.is_shown.swap(true, Ordering::Relaxed) {
            // It waits for whoever comes, however the browser was brought there.
            if !open_in_browser(&open.address).await {
                tracing::warn!(server = name, "no browser can be opened for its login");
                open.is_shown.store(false, Ordering::Relaxed);
                return LoginOutcome::Not;
            }
        }
        if way == Way::Host && !is_accepted(caller, &name, &open).await {
            return LoginOutcome::Not;
        }
        let outcome = with_beats(caller, &waiting_for(&name), open.done.clone()).await;
        if way == Way::Host {
            let done = Raw::encode(&json!({"elicitationId": open.id}));
            caller.peer.notify("notifications/elicitation/complete", Some(done));
        }
        match outcome {
            Ok(()) => LoginOutcome::LoggedIn,
            Err(why) => {
                tracing::warn!(server = name, why, "nobody has logged in");
                LoginOutcome::Not
            }
        }
    }

    /// How the user of this request's host can be brought to log in; `None` where nobody can be asked.
    pub(super) fn way(&self, caller: &Caller) -> Option<Way> {
        // Other results are not to ask anything (2026-07-28, basic/patterns/mrtr).
        let may_ask = caller.request.as_ref().is_none_or(|request| {
            ["tools/call", "prompts/get", "resources/read"].contains(&request.method.as_str())
        });
        // The browser has to come back to this machine.
        let can_show = caller.host.is_on_this_machine()
            && may_ask
            && edit::get(&caller.client.capabilities, "elicitation")
                .is_some_and(|elicitation| edit::get(&elicitation, "url").is_some());
        if can_show {
            return Some(Way::Host);
        }
        self.way_without_host()
    }

    pub(super) fn way_without_host(&self) -> Option<Way> {
        let may_open = self.settings().browser == Browser::WhenNeeded && can_open_browser();
        may_open.then_some(Way::Browser)
    }

    /// The login of a server that is under way, or a new one.
    async fn open_login(&self, server: ServerId) -> Result<Arc<Open>, String> {
        let opening = {
            let mut open = self.logins.lock_open();
            open.entry(server).or_insert_with(|| begin(self, server)).clone()
        };
        let opened = opening.clone().await;
        if opened.is_err() {
            self.logins.close(server, &opening);
        }
        opened
    }

    /// `question`: for its user, where that has not been asked yet.
    fn ask_to_come_back(
        &self,
        server: ServerId,
        caller: &Caller,
        question: Option<&serde_json::Value>,
    ) -> Raw {
        let state = format!("{STATE}{}", random_token::<32>());
        let waiting =
            Waiting { binding: Binding::of(caller), server, until: Instant::now() + PATIENCE };
        self.logins.keep(state.clone(), waiting);
        let mut result = json!({"resultType": "input_required", "requestState": state});
        if let Some(question) = question {
            result["inputRequests"] = json!({KEY: question});
        }
        Raw::encode(&result)
    }

    /// Waits for the login that a modern host comes back from; what to answer it at once, if anything. `None`: the
    /// request is to be handled as if it were new.
    pub(super) async fn resume_login(&self, caller: &Caller) -> Option<Outcome> {
        let request = caller.request.as_ref()?;
        let params = request.params.as_ref()?;
        let state = edit::get_str(params, "requestState").filter(|s| s.starts_with(STATE))?;
        let Some(server) = self.logins.take(&state, &Binding::of(caller)) else {
            let message = "\"requestState\" has expired, was used before, or is another request's";
            return Some(Err(error::invalid_params(message)));
        };
        let answer = edit::get(params, "inputResponses").and_then(|all| edit::get(&all, KEY));
        let action = answer.and_then(|answer| edit::get_str(&answer, "action"));
        // Who was not asked anything has nothing to answer.
        if action.is_some_and(|action| action != "accept") {
            let name = &self.config_of(server).name;
            let command = self.context.auth.command(name);
            let declined = format!(
                "server {name:?} wants a login, which was declined: run `{command}` in a terminal, then try again"
            );
            return Some(match request.method.as_str() {
                "tools/call" => Ok(own(caller, failed(declined))),
                _ => Err(error::internal(declined)),
            });
        }
        let opening = self.logins.lock_open().get(&server).cloned();
        // One that is over already has either succeeded or is begun anew.
        let open = opening?.now_or_never()?.ok()?;
        match tokio::time::timeout(LONGEST_RETRY, open.done.clone()).await {
            Ok(_) => None,
            Err(_) => Some(Ok(self.ask_to_come_back(server, caller, None))),
        }
    }
}

/// The params of a request without what a host has come back with for us.
pub(super) fn without_answer(params: Raw) -> Raw {
    let is_ours =
        edit::get_str(&params, "requestState").is_some_and(|state| state.starts_with(STATE));
    if is_ours { edit::without(&params, &["inputResponses", "requestState"]) } else { params }
}

/// Begins a login. It waits for its browser whatever becomes of those who have asked for it.
fn begin(fleet: &Fleet, server: ServerId) -> Opening {
    let (auth, config) = (fleet.context.auth.clone(), fleet.config_of(server));
    let (tasks, stop) = (fleet.context.tasks.clone(), fleet.context.stop.clone());
    let waiting_room = fleet.this.clone();
    let waiters = tasks.clone();
    let beginning = tasks.spawn(async move {
        let login = tokio::select! {
            login = auth.log_in(&config, &[]) => login.map_err(|error| error.to_string())?,
            () = stop.cancelled() => return Err(ENDING.to_owned()),
        };
        let address = login.address().clone();
        let waiting = waiters.spawn(async move {
            let finished = wait(login, stop).await;
            if let Some(fleet) = waiting_room.upgrade() {
                // Whoever needs it now begins another.
                fleet.logins.lock_open().remove(&server);
            }
            finished
        });
        let done = async move { waiting.await.unwrap_or_else(|_| Err(ENDING.to_owned())) };
        let (id, is_shown) = (random_token::<9>(), AtomicBool::new(false));
        Ok(Arc::new(Open { address, id, is_shown, done: done.boxed().shared() }))
    });
    async move { beginning.await.unwrap_or_else(|_| Err(ENDING.to_owned())) }.boxed().shared()
}

const ENDING: &str = "dormouse is shutting down";

/// Waits until a browser has come back with what belongs to this login, and takes that to its end.
async fn wait(mut login: Login, stop: CancellationToken) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let returned = tokio::select! {
            returned = login.returned() => returned,
            () = tokio::time::sleep_until(deadline) => {
                return Err(format!("nobody has within {PATIENCE:?}"));
            }
            () = stop.cancelled() => return Err(ENDING.to_owned()),
        };
        if let Some(outcome) = login.take(returned).await {
            return outcome.map_err(|error| error.to_string());
        }
    }
}

/// What a modern host asks its user.
fn question(server: &str, open: &Open) -> serde_json::Value {
    let params = json!({"mode": "url", "message": message(server), "url": open.address.as_str()});
    json!({"method": "elicitation/create", "params": params})
}

/// Whether a legacy host's user opens the page.
async fn is_accepted(caller: &Caller, server: &str, open: &Open) -> bool {
    let mut params = question(server, open)["params"].take();
    params["elicitationId"] = json!(open.id);
    let asking = caller.peer.request(
        "elicitation/create",
        Some(Raw::encode(&params)),
        CallOptions::silent_for(PATIENCE),
    );
    let answer = with_beats(caller, &waiting_for(server), asking).await;
    matches!(answer, Ok(Ok(answer)) if edit::get_str(&answer, "action").as_deref() == Some("accept"))
}

fn waiting_for(server: &str) -> String {
    format!("waiting for a login to server {server}")
}

fn message(server: &str) -> String {
    format!("The MCP server {server:?} wants you to log in. The page opens in your browser.")
}

impl Logins {
    fn keep(&self, state: String, waiting: Waiting) {
        let mut all = self.lock_waiting();
        let now = Instant::now();
        all.retain(|_, waiting| waiting.until > now);
        if all.len() >= MOST_WAITING {
            let oldest = all.iter().min_by_key(|(_, waiting)| waiting.until);
            let oldest = oldest.map(|(state, _)| state.clone());
            oldest.and_then(|state| all.remove(&state));
        }
        all.insert(state, waiting);
    }

    /// Takes an opening out that has come to nothing, and no later one.
    fn close(&self, server: ServerId, opening: &Opening) {
        let mut open = self.lock_open();
        if open.get(&server).is_some_and(|current| current.ptr_eq(opening)) {
            open.remove(&server);
        }
    }

    /// The server of a state that is this request's.
    fn take(&self, state: &str, binding: &Binding) -> Option<ServerId> {
        let mut all = self.lock_waiting();
        // Somebody else's is left to whom it belongs to.
        all.get(state).filter(|waiting| waiting.binding == *binding)?;
        let waiting = all.remove(state)?;
        (waiting.until > Instant::now()).then_some(waiting.server)
    }

    fn lock_open(&self) -> MutexGuard<'_, HashMap<ServerId, Opening>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
