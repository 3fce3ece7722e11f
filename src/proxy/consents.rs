//! The consents of users to calls about which a policy had them asked.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use sha2::{Digest as _, Sha256};

use super::{Principal, instance::Instance};
use crate::{base::Lock, catalog::ServerId, policy::ToolCall};

/// Maximum number of tools, and of single calls, that one host's user has agreed to. Further ones
/// replace others, about which the user is asked again.
const MAX_CONSENTS: usize = 1000;

/// The consents of users, by the host.
#[derive(Default)]
pub(super) struct Consents {
    by_principal: Lock<HashMap<Principal, HostConsents>>,
}

#[derive(Default)]
struct HostConsents {
    /// Tools that may be called while the session lasts.
    tools: HashSet<ToolKey>,
    /// Single calls that may be made once.
    calls: HashSet<CallKey>,
}

/// The identity of a tool that a user is asked about: another version of its server needs another
/// consent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ToolKey {
    instance: Instance,
    tool: String,
}

/// The identity of a call that a user is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    tool: ToolKey,
    arguments: ArgumentsDigest,
}

/// A hash of the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ArgumentsDigest([u8; 32]);

impl CallKey {
    pub(super) fn of(instance: Instance, call: &ToolCall) -> Self {
        let tool = ToolKey { instance, tool: call.tool().to_owned() };
        let arguments = ArgumentsDigest(Sha256::digest(call.arguments().as_bytes()).into());
        Self { tool, arguments }
    }

    /// Returns the shared instance of the server, in the version that the user is asked about.
    pub(super) fn instance(&self) -> Instance {
        self.tool.instance
    }
}

/// A consent that a call has used up, if it needed one that holds for a single call.
#[derive(Default)]
#[must_use]
pub(super) struct UsedConsent(Option<(Principal, CallKey)>);

impl Consents {
    /// Returns whether the user has agreed to a call.
    pub(super) fn has(&self, principal: Principal, call: &CallKey) -> bool {
        let all = self.by_principal.lock();
        let consents = all.get(&principal);
        consents.is_some_and(|it| it.tools.contains(&call.tool) || it.calls.contains(call))
    }

    /// Uses up the consent to a call; `None` if the user has not agreed.
    pub(super) fn take(&self, principal: Principal, call: &CallKey) -> Option<UsedConsent> {
        let mut all = self.by_principal.lock();
        let consents = all.get_mut(&principal)?;
        if consents.tools.contains(&call.tool) {
            return Some(UsedConsent::default());
        }
        consents.calls.take(call).map(|call| UsedConsent(Some((principal, call))))
    }

    /// Gives back the consent to a call that was not executed.
    pub(super) fn give_back(&self, used: UsedConsent) {
        if let UsedConsent(Some((principal, call))) = used {
            self.agree_once(principal, call);
        }
    }

    /// Remembers the consent to one call.
    pub(super) fn agree_once(&self, principal: Principal, call: CallKey) {
        let mut all = self.by_principal.lock();
        insert_bounded(&mut all.entry(principal).or_default().calls, call);
    }

    /// Remembers the consent to all calls of a tool while the session lasts.
    pub(super) fn agree_for_session(&self, principal: Principal, call: CallKey) {
        let mut all = self.by_principal.lock();
        insert_bounded(&mut all.entry(principal).or_default().tools, call.tool);
    }

    /// Returns whether the user has agreed to a single call that was not made yet.
    pub(super) fn has_single_calls(&self, principal: Principal) -> bool {
        self.by_principal.lock().get(&principal).is_some_and(|it| !it.calls.is_empty())
    }

    /// Forgets the consent to a single call.
    pub(super) fn withdraw(&self, principal: Principal, call: &CallKey) {
        if let Some(consents) = self.by_principal.lock().get_mut(&principal) {
            consents.calls.remove(call);
        }
    }

    /// Forgets the consents to calls of servers that are not kept.
    pub(super) fn retain(&self, is_kept: impl Fn(ServerId) -> bool) {
        for consents in self.by_principal.lock().values_mut() {
            consents.tools.retain(|tool| is_kept(tool.instance.server));
            consents.calls.retain(|call| is_kept(call.tool.instance.server));
        }
    }

    pub(super) fn forget(&self, principal: Principal) {
        self.by_principal.lock().remove(&principal);
    }
}

/// Inserts a consent, in place of any other if there are too many.
fn insert_bounded<T: Clone + Eq + Hash>(consents: &mut HashSet<T>, consent: T) {
    if consents.len() >= MAX_CONSENTS
        && !consents.contains(&consent)
        && let Some(other) = consents.iter().next().cloned()
    {
        consents.remove(&other);
    }
    consents.insert(consent);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Raw;

    fn call(tool: &str, argument: usize) -> CallKey {
        let params = format!(r#"{{"name": "{tool}", "arguments": {{"n": {argument}}}}}"#);
        let call = ToolCall::read("a", &Raw::parse(params).unwrap()).unwrap();
        CallKey::of(Instance::shared(ServerId(7), 0), &call)
    }

    #[test]
    fn consent_to_one_call_is_used_up_unless_it_is_given_back() {
        let (consents, host) = (Consents::default(), Principal::new());
        consents.agree_once(host, call("x", 1));
        assert!(
            !consents.has(host, &call("x", 2)) && !consents.has(Principal::new(), &call("x", 1))
        );
        let used = consents.take(host, &call("x", 1)).unwrap();
        assert!(consents.take(host, &call("x", 1)).is_none());
        consents.give_back(used);
        let _ = consents.take(host, &call("x", 1)).unwrap();
        assert!(!consents.has(host, &call("x", 1)));
    }

    #[test]
    fn consent_for_the_session_precedes_that_to_one_call() {
        let (consents, host) = (Consents::default(), Principal::new());
        consents.agree_once(host, call("x", 1));
        consents.agree_for_session(host, call("x", 9));
        for _ in 0..3 {
            let used = consents.take(host, &call("x", 1)).unwrap();
            consents.give_back(used);
        }
        assert_eq!(consents.by_principal.lock()[&host].calls.len(), 1);
        consents.forget(host);
        assert!(!consents.has(host, &call("x", 1)));
    }

    #[test]
    fn consents_are_bounded_and_end_with_their_server() {
        let (consents, host) = (Consents::default(), Principal::new());
        let count = || consents.by_principal.lock()[&host].calls.len();
        for number in 0..=MAX_CONSENTS {
            consents.agree_once(host, call("x", number));
            assert!(consents.has(host, &call("x", number)));
        }
        assert_eq!(count(), MAX_CONSENTS);
        let known = (0..MAX_CONSENTS).filter(|number| consents.has(host, &call("x", *number)));
        let known: Vec<usize> = known.collect();
        consents.agree_once(host, call("x", known[0]));
        assert!(known.iter().all(|number| consents.has(host, &call("x", *number))));
        consents.retain(|server| server != ServerId(7));
        assert_eq!(count(), 0);
    }
}
