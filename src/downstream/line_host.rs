//! A host at the other end of two byte streams, with one message per line: on standard input and
//! output, over a pipe in this process, or over a socket.

use std::{io, sync::Arc, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use super::{
    HostIdentity, Session, reply_channel::ReplyChannel, session::HostHandler,
    side_channel::NoticeFilter,
};
use crate::{
    peer::{Peer, read_messages},
    proxy::{EndpointChoice, Fleet},
    wire::{LineReader, Outbox, write_messages},
};

/// Maximum time to write the last bytes.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// The connection of one host, and its session.
pub(super) struct LineHost {
    session: Arc<Session>,
    peer: Peer,
    max_message_bytes: usize,
    notices: Option<NoticeFilter>,
    writing: AbortOnDropHandle<io::Result<()>>,
}

impl LineHost {
    /// Attaches a host whose messages are read by [`Self::read`], and starts to write to `output`.
    pub(super) fn attach<W>(fleet: Arc<Fleet>, output: W) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Self::attach_again(fleet, output, 0)
    }

    /// Attaches a host that another process has served before. The ids of requests to the host
    /// follow `last_id`.
    pub(super) fn attach_again<W>(fleet: Arc<Fleet>, output: W, last_id: u64) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let max_message_bytes = fleet.settings().limits.max_message_bytes;
        let outbox = Outbox::default();
        let peer = Peer::counting_from(last_id, outbox.clone());
        let writing = AbortOnDropHandle::new(tokio::spawn(write_messages(outbox, output)));
        let identity =
            HostIdentity::of_single_session(fleet.endpoint(EndpointChoice::default()), true);
        let session = Session::attach(fleet, peer.clone(), identity);
        Self { session, peer, max_message_bytes, notices: None, writing }
    }

    #[must_use]
    pub(super) fn with_notices(self, notices: Option<NoticeFilter>) -> Self {
        Self { notices, ..self }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Gives the messages of the host to its session until `input` ends.
    ///
    /// # Errors
    /// When `input` cannot be read.
    pub(super) fn read<R>(&self, input: R) -> impl Future<Output = io::Result<()>> + use<R>
    where
        R: AsyncRead + Unpin,
    {
        let reply = ReplyChannel { peer: self.peer.clone(), response: None };
        let handler = Arc::new(HostHandler {
            session: self.session.clone(),
            reply,
            notices: self.notices.clone(),
        });
        let limit = self.max_message_bytes;
        read_messages(LineReader::new(input, limit), limit, self.peer.clone(), handler)
    }

    /// Waits until nothing can be written to the host any more.
    pub(super) async fn unwritable(&mut self) {
        // A failure to write is the end of the host, as its disconnect is.
        let _ = (&mut self.writing).await;
    }

    /// Ends the session, and writes what is queued for the host.
    pub(super) async fn end(mut self) {
        self.session.detach().await;
        self.peer.close();
        if !self.writing.is_finished() {
            // A host that has stopped reading must not delay the end.
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, &mut self.writing).await;
        }
    }
}
