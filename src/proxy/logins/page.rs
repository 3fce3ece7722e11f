//! A page at which somebody can log in, for all who wait for that, and how they are brought there.

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
    future::{BoxFuture, Shared, WeakShared},
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    auth::{Login, open_in_browser},
    peer::{CallError, CallOptions},
    protocol::random_token,
    proxy::{Caller, HostId},
    wire::{Raw, edit},
};

/// How long a person may take to log in.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);

pub(super) const ENDING: &str = "dormouse is shutting down";

/// Why a login has not come about, for whoever needs it.
pub(super) type Finished = Result<(), String>;

type Awaited<T> = Shared<BoxFuture<'static, T>>;

/// A page that waits for somebody.
pub(super) struct Page {
    server: String,
    address: Url,
    /// By which legacy hosts know it.
    id: String,
    is_in_browser: AtomicBool,
    // A std mutex: held to find or make one. By legacy host; gone when nobody there needs the login any more.
    dialogs: Mutex<HashMap<HostId, WeakShared<BoxFuture<'static, DialogEnd>>>>,
    finished: Awaited<Finished>,
}

/// What has become of asking the user of a host.
#[derive(Clone)]
enum DialogEnd {
    Finished(Finished),
    /// The request over which it was asked is gone, or its stream.
    Gone,
}

impl Page {
    /// Shows nothing to anybody. It waits for a browser whatever becomes of those who need the login.
    pub(super) fn of(
        server: String,
        login: Login,
        ending: CancellationToken,
        tasks: &TaskTracker,
        when_finished: impl FnOnce() + Send + 'static,
    ) -> Arc<Self> {
        let address = login.address().clone();
        let waiting = tasks.spawn(async move {
            let finished = wait(login, ending).await;
            when_finished();
            finished
        });
        let finished = async move { waiting.await.unwrap_or_else(|_| Err(ENDING.to_owned())) };
        let (id, is_in_browser, dialogs) =
            (random_token::<9>(), AtomicBool::new(false), Mutex::default());
        let finished = finished.boxed().shared();
        Arc::new(Self { server, address, id, is_in_browser, dialogs, finished })
    }

    /// Waits for somebody to log in, for whatever reason they do.
    pub(super) fn finished(&self) -> Awaited<Finished> {
        self.finished.clone()
    }

    /// Opens the page in a browser, and waits.
    pub(super) async fn finished_in_browser(&self) -> Finished {
        if !self.is_in_browser.swap(true, Ordering::Relaxed)
            && !open_in_browser(&self.address).await
        {
            self.is_in_browser.store(false, Ordering::Relaxed);
            return Err("no browser can be opened".to_owned());
        }
        self.finished().await
    }

    /// Has a legacy host show the page to its user, and waits. However many of its requests need it, it is asked once.
    pub(super) async fn finished_at(&self, caller: &Caller) -> Finished {
        loop {
            let (dialog, is_ours) = self.dialog(caller);
            match dialog.await {
                DialogEnd::Finished(finished) => return finished,
                DialogEnd::Gone if is_ours => return Err("its user cannot be asked".to_owned()),
                DialogEnd::Gone => {}
            }
        }
    }

    /// What a host is to show, as the params of `elicitation/create`.
    pub(super) fn question(&self) -> Value {
        let server = &self.server;
        let message = format!(
            "The MCP server {server:?} wants you to log in. The page opens in your browser."
        );
        json!({"mode": "url", "message": message, "url": self.address.as_str()})
    }

    /// The dialog of this caller's host, and whether it is over this request that it is asked.
    fn dialog(&self, caller: &Caller) -> (Awaited<DialogEnd>, bool) {
        let mut dialogs = self.lock_dialogs();
        let open = dialogs.get(&caller.host.id()).and_then(WeakShared::upgrade);
        if let Some(open) = open.filter(|dialog| dialog.peek().is_none()) {
            return (open, false);
        }
        let dialog = self.ask(caller).boxed().shared();
        dialogs.extend(dialog.downgrade().map(|open| (caller.host.id(), open)));
        (dialog, true)
    }

    fn ask(&self, caller: &Caller) -> impl Future<Output = DialogEnd> + Send + use<> {
        let (peer, finished, id) = (caller.peer.clone(), self.finished(), self.id.clone());
        let mut params = self.question();
        params["elicitationId"] = json!(id);
        async move {
            let options = CallOptions::silent_for(PATIENCE);
            let asking = peer.request("elicitation/create", Some(Raw::encode(&params)), options);
            let answer = tokio::select! {
                biased;
                // Somebody has logged in elsewhere; the question is withdrawn.
                finished = finished.clone() => return DialogEnd::Finished(finished),
                answer = asking => answer,
            };
            match answer {
                Ok(Ok(answer)) if edit::get_str(&answer, "action").as_deref() == Some("accept") => {
                    let finished = finished.await;
                    let done = Raw::encode(&json!({"elicitationId": id}));
                    peer.notify("notifications/elicitation/complete", Some(done));
                    DialogEnd::Finished(finished)
                }
                Ok(Ok(_)) => DialogEnd::Finished(Err(DECLINED.to_owned())),
                Ok(Err(_)) => DialogEnd::Finished(Err("its host cannot ask anybody".to_owned())),
                Err(CallError::Closed | CallError::NotSent) => DialogEnd::Gone,
                Err(error) => {
                    DialogEnd::Finished(Err(format!("its host does not answer: {error}")))
                }
            }
        }
    }

    fn lock_dialogs(
        &self,
    ) -> MutexGuard<'_, HashMap<HostId, WeakShared<BoxFuture<'static, DialogEnd>>>> {
        self.dialogs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) const DECLINED: &str = "its user has declined";

/// Waits until a browser has come back with what belongs to this login, and takes that to its end; or until somebody
/// has logged in elsewhere.
async fn wait(mut login: Login, ending: CancellationToken) -> Finished {
    let deadline = Instant::now() + PATIENCE;
    let mut elsewhere = std::pin::pin!(login.made_elsewhere());
    loop {
        let returned = tokio::select! {
            returned = login.returned() => returned,
            () = &mut elsewhere => return Ok(()),
            () = tokio::time::sleep_until(deadline) => {
                return Err(format!("nobody has logged in within {PATIENCE:?}"));
            }
            () = ending.cancelled() => return Err(ENDING.to_owned()),
        };
        if let Some(outcome) = login.take(returned).await {
            return outcome.map_err(|error| error.to_string());
        }
    }
}
