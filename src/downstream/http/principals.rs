//! The hosts without sessions, told apart by what their requests have in common.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::{sender::Sender, token_hash::TokenHash};
use crate::{
    base::Lock,
    catalog::OfferId,
    config::ProfileName,
    downstream::{HostIdentity, identity::ToolListSync},
    protocol::Meta,
    proxy::{Endpoint, Fleet, HostName, Principal},
    store::HostNumber,
    wire::{Raw, Request, edit},
};

/// Maximum number of hosts to remember.
const MAX_PRINCIPALS: usize = 10_000;

/// The hosts without sessions. A host is identified by its token, its endpoint and the client
/// information that it sends.
#[derive(Default)]
pub(super) struct Principals(Lock<HashMap<HostKey, KnownHost>>);

/// The properties that requests of the same host share.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct HostKey {
    token: TokenHash,
    only: Option<OfferId>,
    profile: Option<ProfileName>,
    /// The hash of the client information.
    client: [u8; 32],
}

impl HostKey {
    /// Returns the key of the host of a modern request.
    pub(super) fn of(sender: &Sender, endpoint: &Endpoint, request: &Request) -> Self {
        let meta = request.params.as_ref().and_then(|params| edit::get(params, "_meta"));
        let client = meta.and_then(|meta| edit::get(&meta, Meta::CLIENT_INFO));
        let client = client.unwrap_or_else(Raw::empty_object);
        Self {
            token: sender.token_hash,
            only: endpoint.only,
            profile: endpoint.profile.clone(),
            client: Sha256::digest(client.as_bytes()).into(),
        }
    }

    /// Returns the number by which all replicas know the host.
    pub(super) fn number(&self, fleet: &Fleet) -> HostNumber {
        let digest = self.digest(fleet);
        HostNumber::from_be_bytes(std::array::from_fn(|at| digest[at]))
    }

    /// Returns the name by which all replicas know the host in the store.
    pub(super) fn name(&self, fleet: &Fleet) -> HostName {
        HostName::of(self.digest(fleet))
    }

    fn digest(&self, fleet: &Fleet) -> [u8; 32] {
        let Self { token, only, profile, client } = self;
        // The number of an offer differs between replicas, its name does not.
        let only = only
            .and_then(|offer| fleet.operator().replication().offer_name(offer))
            .unwrap_or_default();
        let profile = profile.as_ref().map_or("", ProfileName::as_str);
        Sha256::new()
            .chain_update(token.user().0.unwrap_or_default())
            .chain_update(client)
            .chain_update(only.len().to_be_bytes())
            .chain_update(only)
            .chain_update(profile)
            .finalize()
            .into()
    }
}

#[derive(Clone)]
struct KnownHost {
    principal: Principal,
    tool_list_sync: Arc<ToolListSync>,
    last_used: Instant,
    /// Cancelled when the host goes on at another replica.
    moved: CancellationToken,
}

impl Principals {
    pub(super) fn identity(
        &self,
        key: HostKey,
        sender: &Sender,
        endpoint: Endpoint,
        is_on_this_machine: bool,
    ) -> HostIdentity {
        let mut known = self.0.lock();
        let now = Instant::now();
        let new = || KnownHost {
            principal: Principal::new(),
            tool_list_sync: Arc::default(),
            last_used: now,
            moved: CancellationToken::new(),
        };
        let known = known.entry(key).or_insert_with(new);
        known.last_used = now;
        let known = known.clone();
        HostIdentity {
            principal: known.principal,
            user: sender.user(),
            person: sender.person.clone(),
            usage: sender.usage.clone(),
            endpoint,
            is_on_this_machine,
            has_further_sessions: true,
            tool_list_sync: known.tool_list_sync,
        }
    }

    /// Returns whether a host is remembered.
    pub(super) fn has(&self, key: &HostKey) -> bool {
        self.0.lock().contains_key(key)
    }

    /// Returns a token that is cancelled when a host goes on at another replica.
    pub(super) fn moved(&self, key: &HostKey) -> CancellationToken {
        self.0.lock().get(key).map(|known| known.moved.clone()).unwrap_or_default()
    }

    /// Notes that a host goes on at another replica. Returns its principal, if it is remembered.
    pub(super) fn hand_over(&self, key: &HostKey) -> Option<Principal> {
        let mut known = self.0.lock();
        let known = known.get_mut(key)?;
        std::mem::take(&mut known.moved).cancel();
        Some(known.principal)
    }

    /// Removes the hosts that have sent no request for `timeout`, and the oldest ones beyond the
    /// maximum number.
    pub(super) fn take_expired(&self, timeout: Duration) -> Vec<(HostKey, Principal)> {
        let mut all = self.0.lock();
        let mut ages: Vec<Instant> = all.values().map(|known| known.last_used).collect();
        ages.sort_unstable_by(|one, other| other.cmp(one));
        let oldest = ages.get(MAX_PRINCIPALS).copied();
        let mut expired = Vec::new();
        all.retain(|key, known| {
            let stays = known.last_used.elapsed() < timeout
                && oldest.is_none_or(|oldest| known.last_used > oldest);
            if !stays {
                expired.push((key.clone(), known.principal));
            }
            stays
        });
        expired
    }
}
