//! The login pages that are open, shared by the requests that wait for them.

mod page;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::future::{BoxFuture, Shared};
use tokio_util::sync::CancellationToken;

use crate::{auth::LoginOwner, base::Lock, catalog::ServerId};

pub(super) use page::{CLOSED, DECLINED, LoginAtPage, Page, Waiter, is_accepted};

/// A login that requests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WantedLogin {
    pub(super) server: ServerId,
    /// The person whose login it is; `None` for that of all hosts.
    pub(super) owner: Option<LoginOwner>,
}

/// Logins in progress.
#[derive(Default)]
pub(super) struct OpenLogins {
    /// The open page of each login, shared by all requests that need it.
    open: Lock<HashMap<WantedLogin, OpeningPage>>,
    /// The number of pages opened so far.
    opened: AtomicU64,
    /// Cancelled when dormouse ends: no user is waited for any more.
    ending: CancellationToken,
}

/// A page that is being opened or is open.
#[derive(Clone)]
pub(super) struct OpeningPage {
    pub(super) number: u64,
    pub(super) page: Shared<BoxFuture<'static, Result<Arc<Page>, String>>>,
    pub(super) closing: CancellationToken,
}

impl OpenLogins {
    /// Returns the page of a login: the open one, or another that `begin` opens under a number
    /// and with a token that ends it.
    pub(super) fn opening(
        &self,
        login: WantedLogin,
        begin: impl FnOnce(u64, CancellationToken) -> OpeningPage,
    ) -> OpeningPage {
        let mut open = self.open.lock();
        let begin = || {
            let number = self.opened.fetch_add(1, Ordering::Relaxed);
            begin(number, self.ending.child_token())
        };
        open.entry(login).or_insert_with(begin).clone()
    }

    /// Removes an opening that has ended, and no later one.
    pub(super) fn forget(&self, login: WantedLogin, number: u64) {
        let mut open = self.open.lock();
        if open.get(&login).is_some_and(|opening| opening.number == number) {
            open.remove(&login);
        }
    }

    /// Closes the pages of servers whose connection is not kept.
    pub(super) fn close_all_but(&self, is_kept: impl Fn(ServerId) -> bool) {
        self.open.lock().retain(|login, opening| {
            let is_kept = is_kept(login.server);
            if !is_kept {
                opening.closing.cancel();
            }
            is_kept
        });
    }

    /// Closes all pages, also those that are opened later.
    pub(super) fn end(&self) {
        self.ending.cancel();
    }
}
