//! The consents of users to calls about which a policy had them asked.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use super::Principal;
use crate::{
    base::Lock,
    config::PolicyRule,
    policy::{RuleList, ToolCall},
};

/// Maximum number of tools, and of single calls, that one host's user has agreed to. The user is
/// asked again for further ones.
const MAX_CONSENTS: usize = 1000;

/// Writes rules into the config.
pub(crate) trait RuleWriter: Send + Sync {
    /// Adds a rule to a list, before another rule. Resolves when the rule is in force.
    ///
    /// # Errors
    /// A sentence, if the config cannot be changed.
    fn add_rule(&self, addition: RuleAddition) -> BoxFuture<'static, Result<(), String>>;
}

/// A rule that a user adds.
#[derive(Clone, Debug)]
pub(crate) struct RuleAddition {
    pub list: RuleList,
    pub rule: PolicyRule,
    /// The rule that it precedes.
    pub before: PolicyRule,
}

/// The consents of users, by the host.
#[derive(Default)]
pub(super) struct Consents {
    by_principal: Lock<HashMap<Principal, HostConsents>>,
    writer: OnceLock<Arc<dyn RuleWriter>>,
}

#[derive(Default)]
struct HostConsents {
    /// Tools that may be called while the session lasts.
    tools: HashSet<AskedTool>,
    /// Single calls that may be made once.
    calls: HashSet<CallDigest>,
}

/// A tool that a user is asked about. Names of servers and tools may contain any separator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AskedTool {
    server: String,
    tool: String,
}

impl AskedTool {
    pub(super) fn of(call: &ToolCall<'_>) -> Self {
        Self { server: call.server().to_owned(), tool: call.tool().to_owned() }
    }
}

/// The identity of a call: a hash of the tool and the arguments.
type CallDigest = [u8; 32];

impl Consents {
    /// Returns whether the user has agreed to a call. A consent to one call is used up.
    pub(super) fn take(&self, principal: Principal, call: &ToolCall<'_>) -> bool {
        let mut all = self.by_principal.lock();
        let Some(consents) = all.get_mut(&principal) else { return false };
        consents.tools.contains(&AskedTool::of(call)) || consents.calls.remove(&digest(call))
    }

    /// Remembers the consent to one call.
    pub(super) fn agree_once(&self, principal: Principal, call: CallDigest) {
        let mut all = self.by_principal.lock();
        let calls = &mut all.entry(principal).or_default().calls;
        if calls.len() < MAX_CONSENTS {
            calls.insert(call);
        }
    }

    /// Remembers the consent to all calls of a tool while the session lasts.
    pub(super) fn agree_for_session(&self, principal: Principal, tool: AskedTool) {
        let mut all = self.by_principal.lock();
        let tools = &mut all.entry(principal).or_default().tools;
        if tools.len() < MAX_CONSENTS {
            tools.insert(tool);
        }
    }

    pub(super) fn forget(&self, principal: Principal) {
        self.by_principal.lock().remove(&principal);
    }

    /// Sets the writer of rules. The first one stays.
    pub(super) fn set_writer(&self, writer: Arc<dyn RuleWriter>) {
        let _ = self.writer.set(writer);
    }

    pub(super) fn writer(&self) -> Option<&Arc<dyn RuleWriter>> {
        self.writer.get()
    }
}

/// Returns the identity of a call.
pub(super) fn digest(call: &ToolCall<'_>) -> CallDigest {
    let mut digest = Sha256::new();
    for name in [call.server(), call.tool()] {
        digest.update(name.len().to_le_bytes());
        digest.update(name);
    }
    digest.update(call.arguments().as_bytes());
    digest.finalize().into()
}
