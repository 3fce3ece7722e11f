//! `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{
    Caller, Fleet,
    calls::{AskLogin, Outbound},
    resources::reply,
};
use crate::{
    catalog::{Presence, Snapshot},
    config::{AlwaysLoad, Features, Isolation, Pin, Startup},
    protocol::{error, method},
    upstream::{Kinds, Phase, offerable},
    wire::{Outcome, Raw, edit},
};

/// How long a list waits for servers that are awake. One that hangs must not withhold the others'.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether a list is asked for from some page on.
pub(super) fn has_cursor(params: &Raw) -> bool {
    edit::get(params, "cursor").is_some_and(|cursor| cursor.as_bytes() != b"null")
}

impl Fleet {
    pub(super) async fn list_tools(&self, caller: &Caller) -> Outcome {
        self.started().await;
        self.load_sole(caller).await?;
        self.caught_up(caller).await;
        if self.board.view(caller.viewer(), &self.board.snapshot()).shows_known() {
            self.recall_all().await;
        }
        Ok(self.board.tools(caller.viewer()).result.clone())
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

    /// The list as the only server there is to see gives it: its own pages, cursors and hints, and what it shows to this
    /// host alone. `None` where dormouse has something to say in it, or where the server would have to be woken for it.
    pub(super) async fn list_of_sole(
        &self,
        caller: &Caller,
        method: &str,
        params: Option<&Raw>,
    ) -> Option<Outcome> {
        let endpoint = caller.endpoint();
        let server = endpoint.passes_through()?;
        let config = self.servers.config(server);
        let is_edited = !config.tools.allows_all()
            || config.features != Features::default()
            || config.pin == Pin::Block
            || self.settings().always_load == AlwaysLoad::Loaded;
        if is_edited {
            return None;
        }
        self.started().await;
        if let Err(refusal) = self.load_sole(caller).await {
            return Some(Err(refusal));
        }
        let upstream = self.servers.existing(self.instance(server, caller))?;
        // What another host's instance has listed is not this host's.
        let is_shared = config.isolation == Isolation::Shared;
        let is_known = is_shared && self.context.reads_lists && !params.is_some_and(has_cursor);
        if upstream.awake().is_none() && is_known {
            return None;
        }
        let listed =
            reply(self.forward(Outbound::new(server, caller, method, params.cloned())).await);
        let catalog = upstream.catalog().filter(|_| method == method::TOOLS_LIST);
        Some(match catalog {
            Some(catalog) => listed.map(|page| offerable(&config, catalog.greeting.era, page)),
            None => listed,
        })
    }

    /// Waits for servers that have just said that their lists have changed: what is listed then is what they mean.
    async fn caught_up(&self, caller: &Caller) {
        let endpoint = caller.endpoint();
        let roster = self.servers.roster();
        let shown = roster.ids().filter(|server| endpoint.shows(*server));
        let upstreams =
            shown.filter_map(|server| self.servers.existing(self.instance(server, caller)));
        let all = futures_util::future::join_all(upstreams.map(|upstream| async move {
            upstream.caught_up().await;
        }));
        // What comes later is announced.
        let _ = tokio::time::timeout(LIST_TIMEOUT, all).await;
    }

    /// Loads the only server there is to see, where nothing else would: its own tools are all that is
    /// shown, so that asking for them is using it.
    async fn load_sole(&self, caller: &Caller) -> Result<(), Raw> {
        let endpoint = caller.endpoint();
        let Some(server) = endpoint.passes_through() else {
            return Ok(());
        };
        let snapshot = self.board.snapshot_for(caller.viewer());
        let presence = snapshot.view(server).map(|view| &view.presence);
        // An eager one is on its way, and is announced when it comes; unless somebody has to do something for that.
        let upstream = self.servers.existing(self.instance(server, caller));
        let is_own = self.servers.config(server).isolation == Isolation::Session;
        let is_unknown = if is_own {
            upstream.as_ref().is_none_or(|upstream| upstream.catalog().is_none())
        } else {
            matches!(presence, Some(Presence::Offered { .. }))
        };
        let wants_login = upstream
            .as_ref()
            .is_some_and(|upstream| upstream.status().phase == Phase::AwaitingLogin);
        let has_failed =
            upstream.is_some_and(|upstream| upstream.status().phase == Phase::BackingOff);
        let is_eager = self.servers.config(server).startup == Startup::Eager && !is_own;
        let is_coming = is_eager && !wants_login && !has_failed;
        if !is_unknown || is_coming {
            return Ok(());
        }
        // Hosts list when they start, and are not to ask their users then.
        match self.lease_asking(server, caller, AskLogin::InBrowser).await {
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
        let _listing = self.audience.begin_listing(caller.host.id());
        let quiet_until = Instant::now() + LIST_TIMEOUT;
        let asking = TaskTracker::new();
        for server in self.servers.roster().ids().filter(|server| endpoint.shows(*server)) {
            let upstream = self.servers.existing(self.instance(server, caller));
            if let Some(upstream) = upstream.filter(|upstream| upstream.awake().is_some()) {
                asking.spawn(async move { upstream.relist(kinds, quiet_until).await });
            }
        }
        asking.close();
        // What comes later is announced.
        let _ = tokio::time::timeout_at(quiet_until, asking.wait()).await;
        Ok(self.board.snapshot_for(caller.viewer()))
    }
}

fn list(member: &str, items: &[Raw]) -> Raw {
    edit::set(&Raw::empty_object(), member, &Raw::array(items))
}
