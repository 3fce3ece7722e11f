//! Cuts, keeps and reads the results of all sessions without blocking async tasks.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
    time::Instant,
};

use tokio::sync::{Notify, Semaphore};

use super::{
    content::Content,
    kept_result::{Excerpt, KeptResult},
    preview::PreviewRules,
    result_table::{Fingerprint, LIMITS, ResultTable},
};
use crate::{
    base::{Lock, random_token, run_blocking},
    proxy::Principal,
    surface::ResultPart,
    wire::Raw,
};

/// Maximum number of results that are cut at a time. Each needs memory for its text.
const MAX_CUTS: usize = 4;
/// Maximum number of results that are searched at a time, in all and for one session.
const MAX_SEARCHES: usize = 2;
const MAX_OWN_SEARCHES: usize = 1;

type Table = Lock<ResultTable<Arc<KeptResult>>>;

pub(in crate::proxy) struct KeptResults {
    mark: String,
    table: Arc<Table>,
    hasher: RandomState,
    cuts: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    /// The searches of sessions, so that one with many slow ones delays no other.
    own_searches: Lock<HashMap<Principal, Arc<Semaphore>>>,
    /// Tells the reaper of a new result.
    added: Arc<Notify>,
}

/// A result that was cut.
pub(in crate::proxy) struct Cut {
    pub(in crate::proxy) preview: Raw,
    /// The id by which the rest of it can be read; `None` if it is not kept.
    pub(in crate::proxy) id: Option<String>,
}

/// Results that no session can read any more. Dropping them closes files, which may block.
pub(in crate::proxy) type RemovedResults = Vec<Arc<KeptResult>>;

impl KeptResults {
    /// `mark`: that of the fleet, with which all ids begin.
    pub(in crate::proxy) fn new(mark: &str) -> Self {
        Self {
            mark: mark.to_owned(),
            table: Arc::new(Lock::new(ResultTable::new(LIMITS))),
            hasher: RandomState::new(),
            cuts: Arc::new(Semaphore::new(MAX_CUTS)),
            searches: Arc::new(Semaphore::new(MAX_SEARCHES)),
            own_searches: Lock::default(),
            added: Arc::default(),
        }
    }
}

impl KeptResults {
    /// Returns the notice of new results, for the reaper.
    pub(in crate::proxy) fn added(&self) -> Arc<Notify> {
        self.added.clone()
    }

    /// Cuts a result that is longer than the limit of `rules`, and keeps it for the principal.
    /// Returns `None` if the result is passed on unchanged.
    pub(in crate::proxy) async fn cut(
        &self,
        principal: Principal,
        rules: PreviewRules,
        result: Raw,
    ) -> Option<Cut> {
        let permit = self.cuts.clone().acquire_owned().await.ok()?;
        let (table, mark, hasher) = (self.table.clone(), self.mark.clone(), self.hasher.clone());
        let added = self.added.clone();
        let cutting = run_blocking(move || {
            // The work goes on if the host cancels its request.
            let _permit = permit;
            let content = Content::above(rules.limit, &result)?;
            // The text of the result is in `content`.
            drop(result);
            if rules.saves_nothing(&content) {
                return None;
            }
            let id = keep(&table, (&mark, &hasher), principal, &content);
            let preview = rules.compose(&content, id.as_deref());
            if id.is_some() {
                added.notify_one();
            }
            Some(Cut { preview, id })
        });
        cutting.await.flatten()
    }

    /// Returns a result of the principal; `None` if it is unknown or has been discarded.
    pub(in crate::proxy) fn find(&self, principal: Principal, id: &str) -> Option<Arc<KeptResult>> {
        self.table.lock().get(principal, id, Instant::now()).cloned()
    }

    /// Keeps a result that another process has cut for the principal, as that one has encoded it.
    pub(in crate::proxy) async fn adopt(&self, principal: Principal, id: String, encoded: Vec<u8>) {
        let (table, hasher, added) = (self.table.clone(), self.hasher.clone(), self.added.clone());
        let keeping = run_blocking(move || {
            let content = KeptResult::decode(&encoded)?;
            let kept = Arc::new(KeptResult::keep(&content)?);
            let (result, now) = ((fingerprint(&hasher, &content), kept), Instant::now());
            let mut table = table.lock();
            // Another request may have read the same.
            if table.get(principal, &id, now).is_none() {
                let removed = table.put(principal, id, result, now);
                drop(table);
                drop(removed);
            }
            added.notify_one();
            std::io::Result::Ok(())
        });
        if let Some(Err(error)) = keeping.await {
            tracing::debug!(%error, "cannot keep a large result of another process");
        }
    }

    /// Returns a part of a result of the principal.
    ///
    /// # Errors
    /// If the result is not kept, or has no such part.
    pub(in crate::proxy) async fn read(
        &self,
        principal: Principal,
        id: &str,
        part: ResultPart,
    ) -> Result<Excerpt, String> {
        let Some(kept) = self.find(principal, id) else {
            return Err("the result is unknown or has been discarded; call the tool again".into());
        };
        let permits = match part {
            ResultPart::Page(_) => None,
            ResultPart::Grep { .. } | ResultPart::JsonPath { .. } => {
                let own = self.own_searches(principal).acquire_owned().await;
                Some((own, self.searches.clone().acquire_owned().await))
            }
        };
        let reading = run_blocking(move || {
            let _permits = permits;
            kept.read(&part)
        });
        reading.await.unwrap_or_else(|| Err("dormouse is ending".into()))
    }

    fn own_searches(&self, principal: Principal) -> Arc<Semaphore> {
        let mut all = self.own_searches.lock();
        // Principals without a search leave nothing behind, though they may live for days.
        all.retain(|_, own| Arc::strong_count(own) > 1);
        let own = all.entry(principal);
        own.or_insert_with(|| Arc::new(Semaphore::new(MAX_OWN_SEARCHES))).clone()
    }

    /// Forgets results that are too old. Returns when to call this again; `None` if nothing is kept
    /// any more.
    #[must_use = "dropping the results may block"]
    pub(in crate::proxy) fn expire(&self) -> (RemovedResults, Option<Instant>) {
        self.table.lock().expire(Instant::now())
    }

    /// Forgets the results of a principal that has ended.
    #[must_use = "dropping them may block"]
    pub(in crate::proxy) fn forget(&self, principal: Principal) -> RemovedResults {
        self.table.lock().forget(principal)
    }
}

/// Keeps a result. Returns its id: that of an equal result if there is one; `None` if there is no
/// room. May block.
fn keep(
    table: &Table,
    (mark, hasher): (&str, &RandomState),
    principal: Principal,
    content: &Content,
) -> Option<String> {
    let fingerprint = fingerprint(hasher, content);
    if !table.lock().has_room_for(fingerprint.bytes) {
        return None;
    }
    let known = table.lock().renew(principal, fingerprint, Instant::now());
    if known.is_some() {
        return known;
    }
    let kept = KeptResult::keep(content).inspect_err(
        |error| tracing::warn!(%error, "cannot keep a large result in a temporary file"),
    );
    let (id, kept) = (format!("{mark}{}", random_token::<9>()), Arc::new(kept.ok()?));
    let removed = table.lock().put(principal, id.clone(), (fingerprint, kept), Instant::now());
    drop(removed);
    Some(id)
}

fn fingerprint(hasher: &RandomState, content: &Content) -> Fingerprint {
    let Content { text, json, .. } = content;
    Fingerprint { bytes: text.len(), hash: hasher.hash_one((text, json)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn searches_of_one_session_wait_for_each_other_and_leave_nothing_behind() {
        let (results, one, other) = (KeptResults::new("mark"), Principal::new(), Principal::new());
        let searching = results.own_searches(one).acquire_owned().await.unwrap();
        assert_eq!(results.own_searches(one).available_permits(), 0);
        assert_eq!(results.own_searches(other).available_permits(), 1);
        drop(searching);
        assert_eq!(results.own_searches(one).available_permits(), 1);
        assert_eq!(results.own_searches.lock().len(), 1);
    }
}
