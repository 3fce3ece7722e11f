//! The start of the servers of a profile that a host has chosen.

use super::{Fleet, catalogs, servers::Roster};
use crate::{base::run_blocking, catalog::ServerId, config::ProfileName};

impl Fleet {
    /// Starts what a host with a profile needs, unless it has been started: connects its eager
    /// servers in the background, and learns what the hybrid ones have. The start of dormouse
    /// leaves out the servers that the default profile lacks.
    pub(crate) async fn use_profile(&self, profile: Option<&ProfileName>) {
        let Some(added) = profile.and_then(|profile| begin_use(self, profile)) else { return };
        let Some(fleet) = self.this.upgrade() else { return };
        // A host that disconnects must not leave servers that others wait for.
        let starting = self.context.tasks.spawn(async move {
            let (seeded, servers) = (fleet.clone(), added.clone());
            run_blocking(move || catalogs::seed(&seeded, |server| servers.contains(&server))).await;
            let (roster, era) = (fleet.servers.roster(), fleet.audience.first_era());
            for id in added {
                roster.slot(id).begin(era);
            }
        });
        let _ = starting.await;
    }
}

/// Notes that hosts have chosen a profile. Returns the servers that only this profile shows, of
/// the profiles in use; `None` if it was in use.
fn begin_use(fleet: &Fleet, profile: &ProfileName) -> Option<Vec<ServerId>> {
    let profiles = &fleet.settings().profiles;
    let is_in_use =
        |roster: &Roster| roster.is_chosen(profile) || profiles.default_name() == Some(profile);
    if is_in_use(&fleet.servers.roster()) {
        return None;
    }
    let _publication = fleet.board.publish();
    let before = fleet.servers.roster();
    // Another host may have chosen it in the meantime.
    if is_in_use(&before) {
        return None;
    }
    let roster = before.with_profile(profile.clone(), profiles);
    let is_shown = |slots: &Roster, id: ServerId| slots.slot(id).shown.enabled;
    let added = |id: &ServerId| is_shown(&roster, *id) && !is_shown(&before, *id);
    let added: Vec<ServerId> = roster.ids().filter(added).collect();
    fleet.servers.expect_first_attempts_of(&roster, &added);
    fleet.servers.replace(roster.clone());
    Some(added)
}
