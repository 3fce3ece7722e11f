//! The hosts without sessions, told apart by what their requests have in common.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};

use super::{sender::Sender, token_hash::TokenHash};
use crate::{
    base::Lock,
    catalog::OfferId,
    config::ProfileName,
    downstream::{HostIdentity, identity::ToolListSync},
    proxy::{Endpoint, Principal},
    wire::Raw,
};

/// Maximum number of hosts to remember.
const MAX_PRINCIPALS: usize = 10_000;

/// The hosts without sessions. A host is identified by its token, its endpoint and the client
/// information that it sends.
#[derive(Default)]
pub(super) struct Principals(Lock<HashMap<HostKey, KnownHost>>);

/// The properties that requests of the same host share.
type HostKey = (TokenHash, Option<OfferId>, Option<ProfileName>, [u8; 32]);

#[derive(Clone)]
struct KnownHost {
    principal: Principal,
    tool_list_sync: Arc<ToolListSync>,
    last_used: Instant,
}

impl Principals {
    pub(super) fn identity(
        &self,
        sender: &Sender,
        endpoint: Endpoint,
        is_on_this_machine: bool,
        client: &Raw,
    ) -> HostIdentity {
        let client = Sha256::digest(client.as_bytes()).into();
        let mut known = self.0.lock();
        let now = Instant::now();
        let new = || KnownHost {
            principal: Principal::new(),
            tool_list_sync: Arc::default(),
            last_used: now,
        };
        let key = (sender.token_hash, endpoint.only, endpoint.profile.clone(), client);
        let known = known.entry(key).or_insert_with(new);
        known.last_used = now;
        let known = known.clone();
        HostIdentity {
            principal: known.principal,
            user: sender.user(),
            person: sender.person.clone(),
            endpoint,
            is_on_this_machine,
            has_further_sessions: true,
            tool_list_sync: known.tool_list_sync,
        }
    }

    /// Removes the hosts that have sent no request for `timeout`, and the oldest ones beyond the
    /// maximum number.
    pub(super) fn take_expired(&self, timeout: Duration) -> Vec<Principal> {
        let mut all = self.0.lock();
        let mut ages: Vec<Instant> = all.values().map(|known| known.last_used).collect();
        ages.sort_unstable_by(|one, other| other.cmp(one));
        let oldest = ages.get(MAX_PRINCIPALS).copied();
        let mut expired = Vec::new();
        all.retain(|_, known| {
            let stays = known.last_used.elapsed() < timeout
                && oldest.is_none_or(|oldest| known.last_used > oldest);
            if !stays {
                expired.push(known.principal);
            }
            stays
        });
        expired
    }
}
