//! `tools/list`, `resources/list`, `resources/templates/list` and `prompts/list`.

use super::Fleet;
use crate::{
    surface::View,
    upstream::Kinds,
    wire::{Raw, edit},
};

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
        self.relist(Kinds::RESOURCES).await;
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

    /// Asks every awake server; sleeping ones answer from their catalog.
    async fn relist(&self, kinds: Kinds) {
        self.started().await;
        let asking: Vec<_> = self
            .upstreams()
            .iter()
            .filter(|upstream| upstream.awake().is_some())
            .cloned()
            .map(|upstream| tokio::spawn(async move { upstream.relist(kinds).await }))
            .collect();
        for asked in asking {
            // A task that panicked leaves the list as it was.
            let _ = asked.await;
        }
    }
}

fn list(member: &str, items: &[Raw]) -> Raw {
    edit::set(&Raw::empty_object(), member, &Raw::encode(items))
}
