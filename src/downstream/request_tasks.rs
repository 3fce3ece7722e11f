//! The requests of a host that are in flight, each in a task of its own.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use super::reply_channel::ReplyChannel;
use crate::{base::Lock, peer::Peer, protocol::error, wire::Id};

/// Maximum number of requests of one host in flight. A host with more is out of control, and
/// dormouse refuses further requests.
const MAX_IN_FLIGHT: usize = 10_000;

/// The tasks of a host's requests.
#[derive(Default)]
pub(super) struct RequestTasks {
    running: Arc<Lock<RunningTasks>>,
    tracker: TaskTracker,
}

/// The tasks by id. Hosts must not reuse an id in flight, but dormouse answers each such request.
#[derive(Default)]
struct RunningTasks {
    last: u64,
    tasks: HashMap<(Id, u64), AbortHandle>,
}

impl RequestTasks {
    /// Runs `work`, which answers the request `id`, until it is done or cancelled. Dropping `work`
    /// cancels its requests to servers. A host with too many requests gets an error.
    pub(super) fn spawn(
        &self,
        id: Id,
        reply: &ReplyChannel,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut running = self.running.lock();
        if running.tasks.len() >= MAX_IN_FLIGHT {
            let message = format!("more than {MAX_IN_FLIGHT} requests are in flight");
            return reply.peer.respond(id, Err(error::internal(message)));
        }
        running.last += 1;
        let key = (id, running.last);
        let (shared, done, peer) = (self.running.clone(), key.clone(), reply.peer.clone());
        let open = reply.response.clone();
        // Boxed because each future that wraps it would store it twice: as its argument, and as the
        // future that it polls.
        let work = Box::pin(work);
        let task = self.tracker.spawn(async move {
            let _open = open;
            run_or_report_panic(peer, done.0.clone(), work).await;
            shared.lock().tasks.remove(&done);
        });
        running.tasks.insert(key, task.abort_handle());
    }

    /// Returns whether a request with this id is in flight.
    pub(super) fn is_running(&self, id: &Id) -> bool {
        self.running.lock().tasks.keys().any(|(other, _)| other == id)
    }

    /// Ends the tasks of all requests with this id.
    pub(super) fn cancel(&self, id: &Id) {
        self.running.lock().tasks.retain(|(other, _), task| {
            if other == id {
                task.abort();
            }
            other != id
        });
    }

    /// Ends all tasks.
    pub(super) fn abort_all(&self) {
        for (_, task) in self.running.lock().tasks.drain() {
            task.abort();
        }
    }

    /// Waits until no task runs.
    pub(super) async fn wait_until_idle(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// Runs `work`, which answers the request `id`. If it panics, the host gets an error; the log has
/// the details.
async fn run_or_report_panic(peer: Peer, id: Id, work: impl Future<Output = ()> + Send + 'static) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        let refusal = error::internal("internal error of dormouse while handling this request");
        peer.respond(id, Err(refusal));
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::wire::{Outbox, Raw, write_messages};

    #[tokio::test]
    async fn panic_ends_only_its_own_request() {
        let outbox = Outbox::default();
        let peer = Peer::new(outbox.clone());
        run_or_report_panic(peer.clone(), Id::from(1), async { panic!("on purpose") }).await;
        let answering = peer.clone();
        let work = async move { answering.respond(Id::from(2), Ok(Raw::empty_object())) };
        run_or_report_panic(peer.clone(), Id::from(2), work).await;
        peer.close();
        let (near, mut far) = tokio::io::duplex(4096);
        write_messages(outbox, near).await.unwrap();
        let mut written = String::new();
        far.read_to_string(&mut written).await.unwrap();
        assert!(written.contains(r#""id":1,"error":{"code":-32603"#), "{written}");
        assert!(written.contains(r#""id":2,"result":{}"#), "{written}");
    }
}
