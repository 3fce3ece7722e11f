//! Serves hosts and operators over HTTP, from the start to the end.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    certificate::Certificate,
    connections,
    front::HttpFront,
    guard::{Guard, GuardState, HttpAccess, RefusalLog},
    listening_socket::ListeningSocket,
    person_login_steps::PersonLogins,
    quotas::Quotas,
    root_paths::with_servers_at_root,
    routes::router,
};
use crate::{proxy::Fleet, store::Replicas};

/// Maximum time in which the work of sessions ends that were ended.
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(6);

/// The routes over HTTP, and the access to them.
pub(crate) struct HttpRoutes {
    pub access: HttpAccess,
    /// The routes for operators.
    pub api: Router,
    /// True if the endpoints of single servers are also at `/<name>/…`.
    pub serves_at_root: bool,
    /// The replicas that share a store with this process; `None` without a store.
    pub replicas: Option<Arc<Replicas>>,
    /// The pages at which people log in to servers; `None` if they cannot.
    pub person_logins: Option<PersonLogins>,
    /// The certificate that hosts see; `None` if they connect without TLS.
    pub certificate: Option<Arc<Certificate>>,
}

/// Serves hosts, and the API to operators, until `stop` is cancelled; then answers the requests in
/// flight.
///
/// # Errors
/// When the task that accepts connections panics. If connections cannot be accepted, that task
/// retries.
pub(crate) async fn serve(
    fleet: Arc<Fleet>,
    socket: ListeningSocket,
    routes: HttpRoutes,
    stop: CancellationToken,
) -> io::Result<()> {
    let HttpRoutes { access, api, serves_at_root, replicas, person_logins, certificate } = routes;
    let drain_timeout = fleet.settings().http.listening.drain_timeout;
    let address = socket.address()?;
    let guard = Guard::new(access, address);
    let guard_state = Arc::new(GuardState {
        guard,
        fleet: fleet.clone(),
        quotas: Quotas::new(replicas.clone()),
        refusals: RefusalLog::default(),
    });
    let front = Arc::new(HttpFront::new(fleet, address, replicas, person_logins));
    let plain = router(&front, guard_state, api);
    let app = if serves_at_root { with_servers_at_root(plain, &front) } else { plain };
    let expiring = {
        let front = front.clone();
        tokio::spawn(async move { front.expire().await })
    };
    let tls = certificate.as_ref().map(Certificate::acceptor);
    let following =
        certificate.map(|certificate| AbortOnDropHandle::new(tokio::spawn(certificate.follow())));
    let stopping = {
        let (front, stop) = (front.clone(), stop.clone());
        async move {
            stop.cancelled().await;
            // Long-lived streams end now; requests in flight are still answered.
            front.stop.cancel();
            front.fleet.end_logins();
        }
    };
    let mut serving = tokio::spawn({
        let stop = stop.clone();
        async move { tokio::join!(connections::serve(socket, tls, app, stop), stopping) }
    });
    let served = tokio::select! {
        served = &mut serving => served.map(|_| ()),
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(drain_timeout).await;
        } => {
            serving.abort();
            Ok(())
        }
    };
    expiring.abort();
    drop(following);
    front.sessions.end_all().await;
    front.tasks.close();
    let _ = tokio::time::timeout(SESSIONS_TIMEOUT, front.tasks.wait()).await;
    served.map_err(io::Error::other)
}
