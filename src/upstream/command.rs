//! The commands to a server's actor.

use tokio::sync::oneshot;

use super::{Lease, LoadError, Recalled, StaysAwake};
use crate::protocol::Era;

pub(super) enum ActorCommand {
    /// A caller needs the server and waits for it.
    Want { host_era: Era, reply: oneshot::Sender<Result<Lease, LoadError>> },
    /// Connects the server although no caller waits.
    Begin { host_era: Era },
    /// Reads the server's lists although no caller needs them.
    Learn,
    /// Treats the server as loaded, as in an earlier run: with its stored catalog, or by connecting
    /// it if there is none. `read` is told when it is known which.
    Restore { read: oneshot::Sender<()> },
    /// Shows a catalog that another process has stored, if the server is asleep here.
    Adopt(Recalled),
    /// A condition that this task cannot await has changed.
    Reevaluate,
    /// Puts the server to sleep now, unless it must stay awake.
    Sleep { reply: oneshot::Sender<Result<(), StaysAwake>> },
    /// Another instance replaces this one, which ends as soon as nothing is in flight.
    Retire,
}
