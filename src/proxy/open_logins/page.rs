//! A page at which a user can log in, for all requests that wait for the login.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    auth::{Browser, Login},
    base::{Lock, random_token},
    peer::CallError,
    protocol::method,
    proxy::{
        Caller, HostId,
        asking::{HostQuestion, Reaction},
    },
    wire::{Raw, edit},
};

/// Maximum time for a user to log in after being asked.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

/// The limit of a question to a host; the question ends with its page before that.
const DIALOG_TIMEOUT: Duration = Duration::from_hours(24);

/// The end of a login, with the reason if it failed.
type Finished = Result<(), String>;

pub(in crate::proxy) const CLOSED: &str =
    "the login was stopped: the server's config has changed, or dormouse is shutting down";
pub(in crate::proxy) const DECLINED: &str = "the user declined";

type Dialog = BoxFuture<'static, DialogEnd>;

/// An open login page.
pub(in crate::proxy) struct Page {
    server: String,
    address: Url,
    /// The sentence that names the scopes.
    asks_for: String,
    browser: Browser,
    /// The `elicitationId` under which legacy hosts know the page.
    id: String,
    /// The dialog at each place. A dialog ends when no request there needs the login any more.
    dialogs: Lock<HashMap<DialogPlace, WeakShared<Dialog>>>,
    /// The number of requests that need the login.
    waiting: AtomicUsize,
    /// The time at which the page closes.
    until: Arc<Lock<Instant>>,
    closing: CancellationToken,
    finished: Shared<BoxFuture<'static, Finished>>,
}

/// The login that is made at a page.
pub(in crate::proxy) enum LoginAtPage {
    /// The browser returns to this process.
    Here(Login),
    /// The browser of a person goes by way of the public address of the service, at any replica.
    Public { address: Url, made: BoxFuture<'static, ()> },
}

/// A place at which a page is shown to a user.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DialogPlace {
    /// By a legacy host. A modern host reports the outcome itself.
    Host(HostId),
    Browser,
}

/// The end of a dialog.
#[derive(Clone)]
enum DialogEnd {
    Finished(Finished),
    /// The user will not log in, with the reason.
    Declined(String),
    /// The request over which the host was asked has ended, or its stream has.
    Gone,
}

/// A request that needs the login and keeps the page open.
pub(in crate::proxy) struct Waiter(Arc<Page>);

impl Page {
    /// Makes a page that no user has seen yet. It waits for the login until `closing` is cancelled.
    pub(in crate::proxy) fn of(
        server: String,
        login: LoginAtPage,
        browser: Browser,
        closing: CancellationToken,
        tasks: &TaskTracker,
        when_finished: impl FnOnce() + Send + 'static,
    ) -> Arc<Self> {
        let (address, asks_for) = match &login {
            LoginAtPage::Here(login) => (login.address().clone(), login.asks_for()),
            LoginAtPage::Public { address, .. } => (address.clone(), String::new()),
        };
        let until = Arc::new(Lock::new(Instant::now() + LOGIN_TIMEOUT));
        let waiting = tasks.spawn({
            let (until, closing) = (until.clone(), closing.clone());
            async move {
                let given_up = given_up(&until, closing);
                let finished = match login {
                    LoginAtPage::Here(login) => wait(login, given_up).await,
                    LoginAtPage::Public { made, .. } => tokio::select! {
                        () = made => Ok(()),
                        why = given_up => Err(why),
                    },
                };
                when_finished();
                finished
            }
        });
        let finished = async move { waiting.await.unwrap_or_else(|_| Err(CLOSED.to_owned())) };
        let (dialogs, waiting) = Default::default();
        let (id, finished) = (random_token::<9>(), finished.boxed().shared());
        Arc::new(Self {
            server,
            address,
            asks_for,
            browser,
            id,
            dialogs,
            waiting,
            until,
            closing,
            finished,
        })
    }

    /// Resolves when a user has logged in, here or elsewhere.
    pub(in crate::proxy) fn finished(&self) -> Shared<BoxFuture<'static, Finished>> {
        self.finished.clone()
    }

    /// Returns the question that has a host show the page.
    pub(in crate::proxy) fn question(&self) -> HostQuestion {
        self.question_with(&json!({}))
    }

    /// Returns the question with further members of its params.
    fn question_with(&self, more: &Value) -> HostQuestion {
        let Self { server, asks_for, .. } = self;
        let message = format!(
            "The MCP server {server:?} requires a login. The page opens in your browser. {asks_for}"
        );
        let message = message.trim_end();
        let mut params = json!({"mode": "url", "message": message, "url": self.address.as_str()});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        let method = method::ELICITATION_CREATE.to_owned();
        HostQuestion { method, params: Some(Raw::encode(&params)) }
    }

    /// Returns the open dialog of a place, or a new one, and whether it is new.
    fn dialog<F>(&self, place: DialogPlace, begin: impl FnOnce() -> F) -> (Shared<Dialog>, bool)
    where
        F: Future<Output = DialogEnd> + Send + 'static,
    {
        let mut dialogs = self.dialogs.lock();
        let open = dialogs.get(&place).and_then(WeakShared::upgrade);
        if let Some(open) = open.filter(|dialog| dialog.peek().is_none()) {
            return (open, false);
        }
        let dialog = begin().boxed().shared();
        dialogs.extend(dialog.downgrade().map(|open| (place, open)));
        (dialog, true)
    }

    /// Opens the page in a browser, and waits.
    fn browse(&self) -> impl Future<Output = DialogEnd> + Send + use<> {
        let (address, finished) = (self.address.clone(), self.finished());
        let browser = self.browser.clone();
        async move {
            if browser.open(&address).await {
                DialogEnd::Finished(finished.await)
            } else {
                DialogEnd::Declined("cannot open a browser".to_owned())
            }
        }
    }

    /// Asks a legacy host to show the page to its user, and waits for the login.
    fn ask(&self, caller: &Caller) -> impl Future<Output = DialogEnd> + Send + use<> {
        let (peer, finished, id) = (caller.peer.clone(), self.finished(), self.id.clone());
        let question = self.question_with(&json!({"elicitationId": id}));
        async move {
            // A login elsewhere withdraws the question.
            let elsewhere = async { drop(finished.clone().await) };
            match question.ask(&peer, DIALOG_TIMEOUT, elsewhere).await {
                Reaction::Withdrawn => DialogEnd::Finished(finished.await),
                Reaction::Answered(answer) if is_accepted(&answer) => {
                    let finished = finished.await;
                    let done = Raw::encode(&json!({"elicitationId": id}));
                    peer.notify(method::ELICITATION_COMPLETE, Some(done));
                    DialogEnd::Finished(finished)
                }
                Reaction::Answered(_) => DialogEnd::Declined(DECLINED.to_owned()),
                Reaction::Refused(_) => {
                    DialogEnd::Declined("the host cannot ask its user".to_owned())
                }
                Reaction::Failed(CallError::Closed | CallError::NotSent) => DialogEnd::Gone,
                Reaction::Failed(error) => {
                    DialogEnd::Declined(format!("the host did not answer: {error}"))
                }
            }
        }
    }
}

pub(in crate::proxy) fn is_accepted(answer: &Raw) -> bool {
    edit::get_str(answer, "action").as_deref() == Some("accept")
}

impl Waiter {
    /// Adds a request that needs the login, and gives its user the full time again.
    pub(in crate::proxy) fn of(page: Arc<Page>) -> Self {
        page.waiting.fetch_add(1, Ordering::Relaxed);
        *page.until.lock() = Instant::now() + LOGIN_TIMEOUT;
        Self(page)
    }

    /// Asks a legacy host to show the page, and waits. All requests of the host share one question.
    pub(in crate::proxy) async fn finished_at(&self, caller: &Caller) -> Finished {
        loop {
            let place = DialogPlace::Host(caller.host.id());
            let (dialog, is_ours) = self.dialog(place, || self.ask(caller));
            match dialog.await {
                DialogEnd::Finished(finished) => return finished,
                DialogEnd::Declined(why) => {
                    self.decline();
                    return Err(why);
                }
                DialogEnd::Gone if is_ours => return Err("the user cannot be asked".to_owned()),
                DialogEnd::Gone => {}
            }
        }
    }

    /// Opens the page in a browser, unless it is open for another request, and waits.
    pub(in crate::proxy) async fn finished_in_browser(&self) -> Finished {
        let (dialog, _) = self.dialog(DialogPlace::Browser, || self.browse());
        match dialog.await {
            DialogEnd::Finished(finished) => finished,
            DialogEnd::Declined(why) => {
                self.decline();
                Err(why)
            }
            DialogEnd::Gone => Err(CLOSED.to_owned()),
        }
    }

    /// Notes that the user will not log in. Closes the page if no other request waits for it, so
    /// that a login in a terminal can use its port.
    pub(in crate::proxy) fn decline(&self) {
        if self.waiting.load(Ordering::Relaxed) == 1 {
            self.closing.cancel();
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for Waiter {
    type Target = Page;

    fn deref(&self) -> &Page {
        &self.0
    }
}

/// Waits until a browser returns with the code of this login, and completes the login; or until a
/// user has logged in elsewhere.
async fn wait(mut login: Login, given_up: impl Future<Output = String>) -> Finished {
    let (mut elsewhere, mut given_up) =
        (std::pin::pin!(login.made_elsewhere()), std::pin::pin!(given_up));
    loop {
        let returned = tokio::select! {
            returned = login.returned() => returned,
            () = &mut elsewhere => return Ok(()),
            why = &mut given_up => return Err(why),
        };
        if let Some(outcome) = login.take(returned).await {
            return outcome.map_err(|error| error.to_string());
        }
    }
}

/// Waits until a login is not waited for any more, and returns the reason. Requests may extend
/// `until` meanwhile.
async fn given_up(until: &Lock<Instant>, closing: CancellationToken) -> String {
    loop {
        let deadline = *until.lock();
        tokio::select! {
            () = tokio::time::sleep_until(deadline) => {}
            () = closing.cancelled() => return CLOSED.to_owned(),
        }
        if *until.lock() <= deadline {
            return format!("no login within {LOGIN_TIMEOUT:?}");
        }
    }
}
