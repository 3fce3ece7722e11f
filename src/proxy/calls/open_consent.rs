//! A consent that a user has been asked for, until the answer is there.

use super::{denial::Denial, permission_question::UserAnswer};
use crate::{
    config::RuleException,
    policy::NoException,
    protocol::LogLevel,
    proxy::{
        Caller, Fleet, Principal,
        consents::CallKey,
        rule_writer::{RuleNotWritten, WRITE_TIMEOUT},
    },
};

/// A consent that the user has been asked for.
pub(super) struct OpenConsent {
    pub(super) principal: Principal,
    /// `server/tool`
    pub(super) tool: String,
    pub(super) key: CallKey,
    /// The rules that "always" adds, or the reason that there are none.
    pub(super) exceptions: Result<Vec<RuleException>, NoException>,
}

impl OpenConsent {
    /// Remembers the answer of the user, unless the server has been replaced since.
    ///
    /// # Errors
    /// If the user does not agree.
    pub(super) async fn apply(
        self,
        fleet: &Fleet,
        caller: &Caller,
        answer: UserAnswer,
    ) -> Result<(), Denial> {
        let is_current = fleet.servers.is_current(self.key.instance());
        let consents = &fleet.calls.consents;
        match answer {
            UserAnswer::No => return Err(Denial::Declined { tool: self.tool }),
            _ if !is_current => {}
            UserAnswer::Once => consents.agree_once(self.principal, self.key),
            UserAnswer::ForSession => consents.agree_for_session(self.principal, self.key),
            UserAnswer::Always => {
                // If the rule cannot be written, the consent holds for this session.
                consents.agree_for_session(self.principal, self.key.clone());
                self.write_rules(fleet, caller).await;
            }
        }
        Ok(())
    }

    /// Adds the rules to the config. The host shows its user a failure as a log message, since the
    /// result of the call is the server's.
    async fn write_rules(self, fleet: &Fleet, caller: &Caller) {
        let tool = self.tool;
        match write(fleet, self.exceptions).await {
            Ok(()) => tracing::info!(tool, "added a rule to the config that allows the tool"),
            Err(why) => {
                let warning =
                    format!("{tool} is allowed for this session, but not by a rule: {why}");
                tracing::warn!("{warning}");
                fleet.audience.log_to(caller, LogLevel::Warning, &warning);
            }
        }
    }
}

async fn write(
    fleet: &Fleet,
    exceptions: Result<Vec<RuleException>, NoException>,
) -> Result<(), RuleNotWritten> {
    let exceptions = exceptions?;
    let writer = fleet.calls.rule_writer.get().ok_or(RuleNotWritten::NoConfig)?;
    let written = tokio::time::timeout(WRITE_TIMEOUT, writer.add(exceptions)).await;
    written.unwrap_or(Err(RuleNotWritten::TimedOut))
}
