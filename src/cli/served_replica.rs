//! The service as one of several replicas: publishes its news, and applies the news of the others.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use tokio::{
    sync::{broadcast::error::RecvError, mpsc},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    proxy::{Event, Fleet},
    store::{Occasion, Replicas, SharedState, SharedStores},
};

/// Maximum number of stored catalogs that wait to be read.
const MAX_WAITING: usize = 1000;

/// The fleet of a replica, as the others know it.
struct SharedFleet {
    fleet: Arc<Fleet>,
    /// The servers whose catalogs others have stored.
    stored: mpsc::Sender<String>,
}

impl SharedState for SharedFleet {
    fn loads(&self) -> Vec<String> {
        self.fleet.operator().replication().loads_for_all()
    }

    fn adopt_loads(&self, names: &[String]) {
        self.fleet.operator().replication().adopt_loads(names);
    }

    fn note_absence(&self) {
        self.fleet.operator().replication().recall_hosts_again();
    }

    fn note_stored_catalog(&self, server: &str) {
        // A catalog that is not read is known when the server is next connected.
        let _ = self.stored.try_send(server.to_owned());
    }
}

/// Joins the replicas that share a store. Returns them, and the task that tells them of this one
/// until `stop` is cancelled. `address`: the address on which this one listens.
pub(super) async fn join(
    shared: &SharedStores,
    fleet: &Arc<Fleet>,
    address: SocketAddr,
    stop: CancellationToken,
) -> (Arc<Replicas>, JoinHandle<()>) {
    let replicas = replicas_of(shared, fleet, address);
    replicas.clone().tell(Vec::new(), Occasion::Regular).await;
    let (joined, fleet) = (replicas.clone(), fleet.clone());
    let telling = tokio::spawn(async move {
        let (stored, waiting) = mpsc::channel(MAX_WAITING);
        let state = SharedFleet { fleet: fleet.clone(), stored };
        let telling = replicas.clone().run(state, stop.clone());
        let news = async {
            tokio::join!(
                tell_of_loads(&replicas, &fleet),
                tell_of_catalogs(&replicas, &fleet),
                read_stored_catalogs(waiting, &fleet),
            )
        };
        tokio::join!(telling, stop.run_until_cancelled(news));
    });
    (joined, telling)
}

/// Tells the others of each catalog that is stored here.
async fn tell_of_catalogs(replicas: &Replicas, fleet: &Fleet) {
    loop {
        for server in fleet.operator().replication().take_written_catalogs().await {
            replicas.tell_of_catalog(&server);
        }
    }
}

/// Tells the others of loads when the catalogs of their servers are stored, so that they can list
/// the tools without connecting the servers.
async fn tell_of_loads(replicas: &Replicas, fleet: &Fleet) {
    let mut events = fleet.operator().events();
    let mut told = Vec::new();
    loop {
        match events.recv().await {
            // A missed event may have been a load.
            Ok(Event::CatalogStored) | Err(RecvError::Lagged(_)) => {}
            Ok(_) => continue,
            Err(RecvError::Closed) => return,
        }
        let loads = fleet.operator().replication().loads_for_all();
        if loads != told {
            let known = replicas.loads_of_others();
            if loads.iter().any(|load| !known.contains(load)) {
                replicas.tell_soon();
            }
            told = loads;
        }
    }
}

/// Reads the catalogs that others have stored, one after the other.
async fn read_stored_catalogs(mut stored: mpsc::Receiver<String>, fleet: &Fleet) {
    while let Some(first) = stored.recv().await {
        // A server may have been told of many times meanwhile.
        let mut servers = BTreeSet::from([first]);
        servers.extend(std::iter::from_fn(|| stored.try_recv().ok()));
        for server in servers {
            fleet.operator().replication().read_stored_catalog(&server).await;
        }
    }
}

/// Returns the replicas that share a store, of which this process is one.
fn replicas_of(shared: &SharedStores, fleet: &Fleet, address: SocketAddr) -> Arc<Replicas> {
    let named = fleet.settings().store.replica_url.clone();
    // An address of all interfaces is none that others can connect to, and a certificate is for a
    // name.
    let has_name = fleet.settings().http.listening.certificate.is_some();
    let is_reachable = !address.ip().is_unspecified() && !has_name;
    let own = is_reachable.then(|| format!("http://{address}"));
    Replicas::new(shared, fleet.operator().mark().to_owned(), named.or(own))
}
