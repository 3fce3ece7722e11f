//! `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::Fleet;
use crate::{
    surface::View,
    upstream::Kinds,
    wire::{Raw, edit},
};

/// How long a list waits for servers that are awake. One that hangs must not withhold the others'.
const PATIENCE: Duration = Duration::from_secs(2);

impl Fleet {
    pub(super) async fn list_tools(&self) -> Raw {
        self.started().await;
        let snapshot = self.snapshot();
        list("tools", &View { snapshot: &snapshot, settings: &self.settings }.tools())
    }

    pub(super) async fn list_resources(&self) -> Raw {
        self.relist(Kinds::RESOURCES).await;
        list("resources", &self.snapshot().resources(self.settings.listing))
    }

    pub(super) async fn list_templates(&self) -> Raw {
        self.relist(Kinds::TEMPLATES).await;
        list("resourceTemplates", &self.snapshot().templates(self.settings.listing))
    }

    pub(super) async fn list_prompts(&self) -> Raw {
        self.relist(Kinds::PROMPTS).await;
        let snapshot = self.snapshot();
        let prompts = snapshot.prompts(self.settings.listing).into_iter();
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
        list("prompts", &prompts)
    }

    /// Asks every awake server; sleeping ones, and those that take too long, answer from their catalog.
    async fn relist(&self, kinds: Kinds) {
        self.started().await;
        let quiet_until = Instant::now() + PATIENCE;
        let asking = TaskTracker::new();
        for upstream in self.upstreams().iter().filter(|upstream| upstream.awake().is_some()) {
            let upstream = upstream.clone();
            asking.spawn(async move { upstream.relist(kinds, quiet_until).await });
        }
        asking.close();
        // What comes later is announced.
        let _ = tokio::time::timeout_at(quiet_until, asking.wait()).await;
    }
}

fn list(member: &str, items: &[Raw]) -> Raw {
    edit::set(&Raw::empty_object(), member, &Raw::encode(items))
}
