//! Notifications on the stream of a host that are not for the host: between this process and the
//! thin client that carries the stream.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    peer::Peer,
    wire::{Notification, Raw},
};

/// The notifications in both directions.
pub(crate) struct SideChannel {
    /// The method of the notifications, which neither hosts nor servers can guess.
    pub method: String,
    pub outgoing: mpsc::Receiver<Raw>,
    pub incoming: IncomingNotices,
}

/// Receives the parameters of the client's notifications.
pub(crate) type IncomingNotices = Arc<dyn Fn(Raw) + Send + Sync>;

/// The direction from the client.
#[derive(Clone)]
pub(super) struct NoticeFilter {
    method: String,
    incoming: IncomingNotices,
}

impl NoticeFilter {
    /// Takes a notification of the client. Returns `false` for one of the host.
    pub(super) fn take(&self, notification: &Notification) -> bool {
        let is_of_client = notification.method == self.method;
        if is_of_client {
            let params = notification.params.clone().unwrap_or_else(Raw::empty_object);
            (self.incoming)(params);
        }
        is_of_client
    }
}

impl SideChannel {
    pub(super) fn filter(&self) -> NoticeFilter {
        NoticeFilter { method: self.method.clone(), incoming: self.incoming.clone() }
    }

    /// Sends the notifications for the client until `ended` is cancelled. Returns the source of
    /// those that are left.
    pub(super) async fn send(
        mut self,
        peer: Peer,
        ended: CancellationToken,
    ) -> mpsc::Receiver<Raw> {
        while let Some(Some(notice)) = ended.run_until_cancelled(self.outgoing.recv()).await {
            peer.notify(&self.method, Some(notice));
        }
        self.outgoing
    }
}
