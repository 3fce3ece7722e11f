//! Sessions that go on at this replica, because the one that has opened them is gone.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::{
    front::HttpFront,
    sender::Sender,
    session_ticket::SessionTicket,
    sessions::{HttpSession, SessionNumbers},
};
use crate::{
    catalog::Changes,
    downstream::{HostIdentity, Session},
    peer::Peer,
    protocol::method,
    proxy::{Endpoint, Host as _},
    wire::Raw,
};

/// All lists of a host.
const ALL_LISTS: Changes = Changes { tools: true, resources: true, prompts: true };

/// The message to a host whose session goes on at another replica.
const LOST_WITH_REPLICA: &str = "the process that served this session has ended, and another one \
    continues it. These are lost: requests in flight, subscriptions to resources, results above 1 \
    MiB that were cut, and the state of servers that ran for this session alone";

/// Reads the id of a session of another replica. Returns `None` if the id is of no such session, or
/// does not tell enough to open it again.
pub(super) fn ticket_of_other_replica(
    front: &HttpFront,
    id: &str,
    endpoint: &Endpoint,
    sender: &Sender,
) -> Option<SessionTicket> {
    let replicas = front.replicas.as_ref()?;
    let ticket = SessionTicket::open(replicas.keys(), sender.token_hash, id)?;
    // A session of this replica has ended, and so has one that was ended here before.
    let is_foreign = ticket.mark != replicas.mark() && !front.sessions.has_ended(id);
    (is_foreign && ticket.params.is_some() && ticket.is_for(endpoint)).then_some(ticket)
}

/// Opens the session of a replica that is gone again, as far as its id tells.
pub(super) fn reopen(
    front: &Arc<HttpFront>,
    id: &str,
    endpoint: &Endpoint,
    sender: &Sender,
) -> Option<Arc<HttpSession>> {
    let ticket = ticket_of_other_replica(front, id, endpoint, sender)?;
    let params = Raw::parse(Bytes::from(ticket.params?)).ok()?;
    // A service of several replicas has no user at its machines.
    let identity = HostIdentity::of_single_session(endpoint.clone(), false).with_sender(
        sender.user(),
        sender.person.clone(),
        sender.usage.clone(),
    );
    // The host may still answer questions of the other replica, which must not be taken for answers
    // to questions of this one.
    let last_id = u64::from(fastrand::u32(..)) << 16;
    let attach = |outbox| {
        let peer = Peer::counting_from(last_id, outbox);
        let session = Session::attach(front.fleet.clone(), peer, identity);
        session.resume(&params);
        session
    };
    let stop = front.stop.child_token();
    let session = HttpSession::new(
        SessionNumbers::of_reopened(id.to_owned()),
        sender.token_hash,
        endpoint.clone(),
        ticket.is_primed,
        stop,
        attach,
    );
    let (kept, surplus) = front.sessions.keep_first(session.clone());
    if let Some(surplus) = surplus {
        front.tasks.spawn(async move { surplus.end().await });
    }
    if Arc::ptr_eq(&kept, &session) {
        tracing::info!("a session of another replica continues here");
        // The lists may differ, and the host has no other way to learn of it.
        session.session.announce(ALL_LISTS);
        let lost = json!({"level": "warning", "logger": "dormouse", "data": LOST_WITH_REPLICA});
        session.session.peer().notify(method::MESSAGE, Some(Raw::encode(&lost)));
    } else {
        front.tasks.spawn(async move { session.end().await });
    }
    Some(kept)
}
