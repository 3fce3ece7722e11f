//! A host that records what it gets.

use std::sync::Arc;

use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::scenario::Item;
use crate::{
    base::Lock,
    downstream::{HostIdentity, Session, reply_channel::ReplyChannel, session::HostHandler},
    peer::{MessageHandler as _, Peer},
    protocol::{ClientIdentity, Meta, adapt, is_error_result, method},
    proxy::{EndpointChoice, Fleet},
    wire::{Id, Message, Notification, Outbox, Raw, Request, edit},
};

/// The queued bytes above which a host that drops notifications does so.
const DROPS_ABOVE: usize = 3000;

/// Turns of the runtime in which a host reads what is queued.
const YIELDS: u32 = 20;

/// A host that records what it gets.
pub(super) struct RecordingHost {
    session: Arc<Session>,
    handler: HostHandler,
    outbox: Outbox,
    pub(super) drops: bool,
    is_reading: watch::Sender<bool>,
    got: Arc<Lock<Vec<(Instant, Message)>>>,
}

impl RecordingHost {
    pub(super) fn attach(fleet: &Arc<Fleet>, drops: bool) -> Self {
        let outbox = if drops { Outbox::dropping_above(DROPS_ABOVE) } else { Outbox::default() };
        let peer = Peer::new(outbox.clone());
        let identity =
            HostIdentity::of_single_session(fleet.endpoint(EndpointChoice::default()), true);
        let session = Session::attach(fleet.clone(), peer.clone(), identity);
        let reply = ReplyChannel { peer, response: None };
        let handler = HostHandler::new(session.clone(), reply);
        let is_reading = watch::Sender::new(true);
        let got = Arc::<Lock<Vec<_>>>::default();
        tokio::spawn(read(outbox.clone(), is_reading.subscribe(), got.clone()));
        Self { session, handler, outbox, drops, is_reading, got }
    }

    pub(super) fn request(&self, id: u64, method: &str, params: &Value, is_modern: bool) {
        let mut params = Raw::encode(params);
        if is_modern {
            params = adapt::with_modern_meta(&ClientIdentity::ourselves(), &params);
        }
        let (id, method) = (Id::from(id), method.to_owned());
        self.handler.request(Request { id, method, params: Some(params) });
    }

    pub(super) fn notify(&self, method: &str, params: Option<Raw>) {
        self.handler.notification(Notification { method: method.to_owned(), params });
    }

    pub(super) fn read(&self, is_reading: bool) {
        self.is_reading.send_replace(is_reading);
    }

    /// Returns and forgets the messages that the host has got.
    pub(super) fn take_got(&self) -> Vec<(Instant, Message)> {
        std::mem::take(&mut *self.got.lock())
    }

    /// Ends the session. Messages that were queued before do not count.
    pub(super) async fn detach(&self) {
        self.session.detach().await;
        self.read(true);
        for _ in 0..YIELDS {
            tokio::task::yield_now().await;
        }
        self.take_got();
    }

    /// Returns the number of messages and queued bytes since the last look.
    pub(super) fn unread(&self) -> usize {
        self.got.lock().len() + self.outbox.waiting()
    }
}

impl Drop for RecordingHost {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

/// Reads the messages of a host while it reads.
async fn read(
    outbox: Outbox,
    mut is_reading: watch::Receiver<bool>,
    got: Arc<Lock<Vec<(Instant, Message)>>>,
) {
    let mut messages = std::collections::VecDeque::new();
    while is_reading.wait_for(|is_reading| *is_reading).await.is_ok()
        && outbox.take(&mut messages).await
    {
        // A host that has stopped reading while it waited has not read these.
        if is_reading.wait_for(|is_reading| *is_reading).await.is_err() {
            return;
        }
        let now = Instant::now();
        outbox.note_written(messages.iter().map(Message::weight).sum());
        got.lock().extend(messages.drain(..).map(|message| (now, message)));
    }
}

/// Returns a message in the model's terms.
///
/// # Panics
/// If the model has no term for it.
pub(super) fn item(message: &Message) -> Item {
    match message {
        Message::Response(response) => {
            let id = response.id.as_ref().and_then(Id::as_u64).expect("an id of the host");
            let text = response.outcome.as_ref().ok().and_then(text_of);
            Item::Answer { id, text }
        }
        Message::Notification(Notification { method, params }) => {
            let params = params.clone().unwrap_or_else(Raw::empty_object);
            let meta = edit::get(&params, "_meta");
            let stream = meta.and_then(|meta| edit::get(&meta, Meta::SUBSCRIPTION_ID));
            let stream = stream.and_then(|stream| stream.read().ok());
            let number = |name| edit::get(&params, name).and_then(|number| number.read().ok());
            match method.as_str() {
                method::TOOLS_LIST_CHANGED => Item::ToolsChanged { stream },
                method::RESOURCES_LIST_CHANGED => Item::ResourcesChanged { stream },
                method::RESOURCE_UPDATED => {
                    Item::Updated { number: number("number").expect("the server's"), stream }
                }
                method::MESSAGE => Item::Logged { number: number("data").expect("the server's") },
                method::SUBSCRIPTIONS_ACKNOWLEDGED => {
                    let accepted = edit::get(&params, "notifications");
                    let uris = accepted.and_then(|all| edit::get(&all, "resourceSubscriptions"));
                    let uris = uris.and_then(|uris| uris.read().ok()).unwrap_or_default();
                    Item::Acknowledged { stream: stream.expect("a stream"), uris }
                }
                other => panic!("unexpected notification {other}"),
            }
        }
        Message::Request(request) => panic!("unexpected request {}", request.method),
    }
}

/// Returns the text of a tool's result, and an empty one for other results; `None` for a failure.
fn text_of(result: &Raw) -> Option<String> {
    if is_error_result(result) {
        return None;
    }
    let content = edit::get(result, "content").and_then(|content| edit::elements(&content));
    let first = content.and_then(|content| edit::get_str(content.first()?, "text"));
    Some(first.unwrap_or_default())
}
