//! A page at which somebody can log in, for all who wait for that, and how they are brought there.

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
    auth::{Login, open_in_browser},
    base::Lock,
    peer::CallError,
    protocol::{method, random_token},
    proxy::{
        Caller, HostId,
        asking::{HostQuestion, Reaction},
    },
    wire::{Raw, edit},
};

/// How long a person may take to log in, once asked.
const LOGIN_TIMEOUT: Duration = Duration::from_mins(5);

/// It ends with its page.
const DIALOG_TIMEOUT: Duration = Duration::from_hours(24);

/// Why a login has not come about, for whoever needs it.
type Finished = Result<(), String>;

pub(super) const CLOSED: &str =
    "its page was closed: its config has changed, or dormouse is shutting down";
pub(super) const DECLINED: &str = "its user was asked, and has not agreed";

type Dialog = BoxFuture<'static, DialogEnd>;

/// A page that waits for somebody.
pub(super) struct Page {
    server: String,
    address: Url,
    /// Names the scopes.
    asks_for: String,
    /// By which legacy hosts know it.
    id: String,
    /// Gone when nobody there needs the login any more.
    dialogs: Lock<HashMap<Place, WeakShared<Dialog>>>,
    /// Those who need the login.
    waiting: AtomicUsize,
    /// How long the page is open.
    until: Arc<Lock<Instant>>,
    closing: CancellationToken,
    finished: Shared<BoxFuture<'static, Finished>>,
}

/// Where a page is shown to somebody.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// By a legacy host. A modern one says itself what has become of it.
    Host(HostId),
    Browser,
}

/// What has become of showing it.
#[derive(Clone)]
enum DialogEnd {
    Finished(Finished),
    /// Whoever was asked will not log in: why.
    Declined(String),
    /// The request over which a host was asked is gone, or its stream.
    Gone,
}

/// Somebody who needs the login: for them the page stays open.
pub(super) struct Waiter(Arc<Page>);

impl Page {
    /// Shows nothing to anybody. It waits for a browser whatever becomes of those who need the login, but for `closing`.
    pub(super) fn of(
        server: String,
        login: Login,
        closing: CancellationToken,
        tasks: &TaskTracker,
        when_finished: impl FnOnce() + Send + 'static,
    ) -> Arc<Self> {
        let (address, asks_for) = (login.address().clone(), login.asks_for());
        let until = Arc::new(Lock::new(Instant::now() + LOGIN_TIMEOUT));
        let waiting = tasks.spawn({
            let (until, closing) = (until.clone(), closing.clone());
            async move {
                let finished = wait(login, &until, closing).await;
                when_finished();
                finished
            }
        });
        let finished = async move { waiting.await.unwrap_or_else(|_| Err(CLOSED.to_owned())) };
        let (dialogs, waiting) = Default::default();
        let (id, finished) = (random_token::<9>(), finished.boxed().shared());
        Arc::new(Self { server, address, asks_for, id, dialogs, waiting, until, closing, finished })
    }

    /// Waits for somebody to log in, wherever they do.
    pub(super) fn finished(&self) -> Shared<BoxFuture<'static, Finished>> {
        self.finished.clone()
    }

    /// Returns the question that has a host show the page.
    pub(super) fn question(&self) -> HostQuestion {
        self.question_with(&json!({}))
    }

    /// Returns the question with further members of its params.
    fn question_with(&self, more: &Value) -> HostQuestion {
        let Self { server, asks_for, .. } = self;
        let message = format!(
            "The MCP server {server:?} wants you to log in. The page opens in your browser. {asks_for}"
        );
        let message = message.trim_end();
        let mut params = json!({"mode": "url", "message": message, "url": self.address.as_str()});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        let method = method::ELICITATION_CREATE.to_owned();
        HostQuestion { method, params: Some(Raw::encode(&params)) }
    }

    /// The dialog that is open in this place, or else a new one; and whether it is new.
    fn dialog<F>(&self, place: Place, begin: impl FnOnce() -> F) -> (Shared<Dialog>, bool)
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
        async move {
            if open_in_browser(&address).await {
                DialogEnd::Finished(finished.await)
            } else {
                DialogEnd::Declined("no browser can be opened".to_owned())
            }
        }
    }

    /// Has a legacy host show the page to its user, and waits.
    fn ask(&self, caller: &Caller) -> impl Future<Output = DialogEnd> + Send + use<> {
        let (peer, finished, id) = (caller.peer.clone(), self.finished(), self.id.clone());
        let question = self.question_with(&json!({"elicitationId": id}));
        async move {
            // Where somebody logs in elsewhere, the question is withdrawn.
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
                    DialogEnd::Declined("its host cannot ask anybody".to_owned())
                }
                Reaction::Failed(CallError::Closed | CallError::NotSent) => DialogEnd::Gone,
                Reaction::Failed(error) => {
                    DialogEnd::Declined(format!("its host does not answer: {error}"))
                }
            }
        }
    }
}

pub(super) fn is_accepted(answer: &Raw) -> bool {
    edit::get_str(answer, "action").as_deref() == Some("accept")
}

impl Waiter {
    /// Somebody more who needs the login, and has as much time for it as the first.
    pub(super) fn of(page: Arc<Page>) -> Self {
        page.waiting.fetch_add(1, Ordering::Relaxed);
        *page.until.lock() = Instant::now() + LOGIN_TIMEOUT;
        Self(page)
    }

    /// Has a legacy host show the page to its user, and waits. However many of its requests need the login, it is asked
    /// once.
    pub(super) async fn finished_at(&self, caller: &Caller) -> Finished {
        loop {
            let place = Place::Host(caller.host.id());
            let (dialog, is_ours) = self.dialog(place, || self.ask(caller));
            match dialog.await {
                DialogEnd::Finished(finished) => return finished,
                DialogEnd::Declined(why) => {
                    self.decline();
                    return Err(why);
                }
                DialogEnd::Gone if is_ours => return Err("its user cannot be asked".to_owned()),
                DialogEnd::Gone => {}
            }
        }
    }

    /// Opens the page in a browser, unless that was done for somebody who waits still, and waits.
    pub(super) async fn finished_in_browser(&self) -> Finished {
        let (dialog, _) = self.dialog(Place::Browser, || self.browse());
        match dialog.await {
            DialogEnd::Finished(finished) => finished,
            DialogEnd::Declined(why) => {
                self.decline();
                Err(why)
            }
            DialogEnd::Gone => Err(CLOSED.to_owned()),
        }
    }

    /// Whoever was asked will not log in. Unless somebody else may, the page is closed: a login in a terminal may want its
    /// port.
    pub(super) fn decline(&self) {
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

/// Waits until a browser has come back with what belongs to this login, and takes that to its end; or until somebody
/// has logged in elsewhere.
async fn wait(mut login: Login, until: &Lock<Instant>, closing: CancellationToken) -> Finished {
    let mut elsewhere = std::pin::pin!(login.made_elsewhere());
    loop {
        let deadline = *until.lock();
        let returned = tokio::select! {
            returned = login.returned() => returned,
            () = &mut elsewhere => return Ok(()),
            () = tokio::time::sleep_until(deadline) => {
                if *until.lock() > deadline {
                    // Somebody else needs it by now.
                    continue;
                }
                return Err(format!("nobody has logged in within {LOGIN_TIMEOUT:?}"));
            }
            () = closing.cancelled() => return Err(CLOSED.to_owned()),
        };
        if let Some(outcome) = login.take(returned).await {
            return outcome.map_err(|error| error.to_string());
        }
    }
}
