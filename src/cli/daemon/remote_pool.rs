//! The servers of the running daemon, for a command that would otherwise start them itself.

use std::{env, path::PathBuf, sync::Arc};

use super::{choice, own_place, thin_client};
use crate::{
    base::run_blocking,
    cli::shared_flags::Options,
    config::{ConfigFile, Settings},
    daemon::{DaemonPlace, join},
    upstream::{JoinedServer, Joining, PoolFuture, PoolStream, ServerPool},
};

/// The pool of a daemon in another process.
struct RemotePool {
    place: DaemonPlace,
}

/// Returns the servers of the daemon for a config. Returns `None` if the daemon is not wanted. The
/// daemon is not started.
pub(in crate::cli) fn remote_pool(
    file: &ConfigFile,
    options: &Options,
    settings: &Settings,
) -> Option<Arc<dyn ServerPool>> {
    if !choice::is_for_daemon(options, settings, |name| env::var(name).ok()) {
        return None;
    }
    let config: PathBuf = std::path::absolute(&file.path).ok()?;
    Some(Arc::new(RemotePool { place: own_place::place_of(&config)? }))
}

impl ServerPool for RemotePool {
    fn join<'a>(&'a self, joining: Joining<'a>) -> PoolFuture<'a> {
        Box::pin(async move {
            joining.config.shared_identity()?;
            let (place, server) = (self.place.clone(), joining.config.name.clone());
            let joined = run_blocking(move || {
                let world = thin_client::own_world().ok()?;
                let joined = join(&place, world, &server);
                if let Err(error) = &joined {
                    tracing::warn!(server, %error, "starting the server without the daemon");
                }
                joined.ok().flatten()
            });
            let stream = joined.await.flatten()?;
            stream.set_nonblocking(true).ok()?;
            let stream = tokio::net::UnixStream::from_std(stream).ok()?;
            Some(JoinedServer { stream: Box::new(stream) as PoolStream, stderr: None })
        })
    }
}
