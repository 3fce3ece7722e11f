//! The start of the servers of a profile that a host has chosen.

use super::{Fleet, catalogs, servers::Roster};
use crate::{catalog::ServerId, config::ProfileName};

impl Fleet {
    /// Starts what hosts with a profile need, unless it has been started: connects its eager
    /// servers in the background, and learns what the hybrid ones have. The start of dormouse
    /// leaves out the servers that the default profile lacks. Reads from disk, once.
    pub(crate) fn use_profile(&self, profile: &ProfileName) {
        if self.servers.roster().is_in_use(profile) {
            return;
        }
        let publication = self.board.publish();
        let before = self.servers.roster();
        // Another host may have chosen it in the meantime.
        if before.is_in_use(profile) {
            return;
        }
        let roster = before.with_profile(profile.clone(), &self.settings().profiles);
        let is_added = |id: ServerId| {
            let is_shown = |slots: &Roster| slots.slot(id).shown.enabled;
            is_shown(&roster) && !is_shown(&before)
        };
        let added: Vec<ServerId> = roster.ids().filter(|id| is_added(*id)).collect();
        self.servers.expect_first_attempts_of(&roster, &added);
        self.servers.replace(roster.clone());
        drop(publication);
        catalogs::seed(self, |server| added.contains(&server));
        let era = self.audience.first_era();
        for id in added {
            roster.slot(id).begin(era);
        }
    }
}
