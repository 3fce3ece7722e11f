//! `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{Caller, Fleet};
use crate::{
    catalog::{Presence, Snapshot},
    config::{Startup, Surface},
    protocol::error,
    upstream::{Kinds, Phase},
    wire::{Outcome, Raw, edit},
};

/// How long a list waits for servers that are awake. One that hangs must not withhold the others'.
const PATIENCE: Duration = Duration::from_secs(2);

impl Fleet {
    pub(super) async fn list_tools(&self, caller: &Caller) -> Outcome {
        self.started().await;
        self.load_sole(caller).await?;
        let host = caller.host.as_ref();
        if host.endpoint().view(&self.snapshot()).shows_known() {
            self.recall_all().await;
        }
        let snapshot = self.snapshot_for(host);
        Ok(list("tools", &host.endpoint().view(&snapshot).tools()))
    }

    pub(super) async fn list_resources(&self, caller: &Caller) -> Outcome {
        let snapshot = self.fresh(caller, Kinds::RESOURCES).await?;
        Ok(list("resources", &snapshot.resources()))
    }

    pub(super) async fn list_templates(&self, caller: &Caller) -> Outcome {
        let snapshot = self.fresh(caller, Kinds::TEMPLATES).await?;
        Ok(list("resourceTemplates", &snapshot.templates()))
    }

    pub(super) async fn list_prompts(&self, caller: &Caller) -> Outcome {
        let snapshot = self.fresh(caller, Kinds::PROMPTS).await?;
        let prompts = snapshot.prompts().into_iter();
        let prompts: Vec<Raw> = prompts
            .filter(|exposed| exposed.is_listed)
            .map(|exposed| {
                if exposed.name == exposed.prompt.name {
                    exposed.prompt.raw.clone()
                } else {
                    edit::set(&exposed.prompt.raw, "name", &Raw::encode(&exposed.name))
                }
            })
            .collect();
        Ok(list("prompts", &prompts))
    }

    /// Loads the only server there is to see, where nothing else would: its own tools are all that is
    /// shown, so that asking for them is using it.
    async fn load_sole(&self, caller: &Caller) -> Result<(), Raw> {
        let endpoint = caller.endpoint();
        let Some(server) = endpoint.only.filter(|_| endpoint.surface == Surface::Direct) else {
            return Ok(());
        };
        let snapshot = self.snapshot_for(caller.host.as_ref());
        let presence = snapshot.view(server).map(|view| &view.presence);
        let is_unknown = matches!(presence, Some(Presence::Offered { .. }));
        // An eager one is on its way, and is announced when it comes; unless somebody has to do something for that.
        let upstream = self.existing(self.instance(server, caller));
        let wants_login =
            upstream.is_some_and(|upstream| upstream.status().phase == Phase::AwaitingLogin);
        let is_coming = self.config_of(server).startup == Startup::Eager && !wants_login;
        if !is_unknown || is_coming {
            return Ok(());
        }
        // Hosts list when they start, and are not to ask their users then.
        match self.lease_asking(server, caller, self.way_without_host()).await {
            Ok(_) => {
                self.loaded_by(caller.host.principal(), server);
                Ok(())
            }
            Err(error) => Err(error::internal(error.to_string())),
        }
    }

    /// What there is to see, once every awake server has been asked; sleeping ones, and those that take
    /// too long, answer from their catalog.
    async fn fresh(&self, caller: &Caller, kinds: Kinds) -> Result<std::sync::Arc<Snapshot>, Raw> {
        self.started().await;
        self.load_sole(caller).await?;
        let endpoint = caller.endpoint();
        let _listing = self.listing(caller.host.id());
        let quiet_until = Instant::now() + PATIENCE;
        let asking = TaskTracker::new();
        for server in self.roster().ids().filter(|server| endpoint.shows(*server)) {
            let upstream = self.existing(self.instance(server, caller));
            if let Some(upstream) = upstream.filter(|upstream| upstream.awake().is_some()) {
                asking.spawn(async move { upstream.relist(kinds, quiet_until).await });
            }
        }
        asking.close();
        // What comes later is announced.
        let _ = tokio::time::timeout_at(quiet_until, asking.wait()).await;
        Ok(self.snapshot_for(caller.host.as_ref()))
    }
}

fn list(member: &str, items: &[Raw]) -> Raw {
    edit::set(&Raw::empty_object(), member, &Raw::encode(items))
}
