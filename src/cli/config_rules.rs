//! The writer of the rules that users agree to, for the config that a fleet serves.

use futures_util::{FutureExt as _, future::BoxFuture};

use crate::{
    config::{ConfigEdit, RuleException},
    control::{ChangeSender, ConfigChange},
    proxy::{RuleNotWritten, RuleWriter},
};

pub(super) struct ConfigRules(pub(super) ChangeSender);

impl RuleWriter for ConfigRules {
    fn add(
        &self,
        exceptions: Vec<RuleException>,
    ) -> BoxFuture<'static, Result<(), RuleNotWritten>> {
        let changes = self.0.clone();
        async move {
            let edit = ConfigEdit::AddRuleExceptions(exceptions);
            let made = changes.make(ConfigChange::Edit(edit)).await;
            made.map(drop).map_err(|error| {
                RuleNotWritten::Config(format!("{:#}", anyhow::Error::from(error)))
            })
        }
        .boxed()
    }
}
