//! The kept results of all sessions, bounded in number, bytes and time.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::proxy::Principal;

/// Maximum numbers and bytes of results: of one session, and of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableLimits {
    pub(super) count: usize,
    pub(super) bytes: usize,
    pub(super) total_count: usize,
    pub(super) total_bytes: usize,
}

pub(super) const LIMITS: TableLimits = TableLimits {
    count: 64,
    bytes: 128 * 1024 * 1024,
    // Each may hold a file open.
    total_count: 256,
    total_bytes: 512 * 1024 * 1024,
};

/// Time for which a result is kept.
pub(super) const MAX_AGE: Duration = Duration::from_hours(1);

/// Results in the order in which they were kept.
#[derive(Debug)]
pub(super) struct ResultTable<T> {
    limits: TableLimits,
    items: VecDeque<Item<T>>,
}

#[derive(Debug)]
struct Item<T> {
    owner: Principal,
    id: String,
    fingerprint: Fingerprint,
    since: Instant,
    result: T,
}

/// The length and a hash of a text, by which a result is recognized that the owner gets again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) bytes: usize,
    pub(super) hash: u64,
}

impl<T> ResultTable<T> {
    pub(super) const fn new(limits: TableLimits) -> Self {
        Self { limits, items: VecDeque::new() }
    }

    /// Returns whether a result of this size can be kept at all.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.limits.bytes.min(self.limits.total_bytes)
    }

    /// Keeps the owner's equal result for longer. Returns its id; `None` if there is none.
    pub(super) fn renew(
        &mut self,
        owner: Principal,
        fingerprint: Fingerprint,
        now: Instant,
    ) -> Option<String> {
        let is_same = |item: &Item<T>| item.owner == owner && item.fingerprint == fingerprint;
        let at = self.items.iter().position(is_same)?;
        let item = Item { since: now, ..self.items.remove(at)? };
        let id = item.id.clone();
        self.items.push_back(item);
        Some(id)
    }

    /// Keeps a result for which there is room. The oldest are removed and returned: those of the
    /// owner above the limits of one session, and those of all above the limits of all.
    pub(super) fn put(
        &mut self,
        owner: Principal,
        id: String,
        (fingerprint, result): (Fingerprint, T),
        now: Instant,
    ) -> Vec<T> {
        let mut removed = self.remove_expired(now);
        self.items.push_back(Item { owner, id, fingerprint, since: now, result });
        let TableLimits { count, bytes, total_count, total_bytes } = self.limits;
        self.shrink((count, bytes), |of| of == owner, &mut removed);
        self.shrink((total_count, total_bytes), |_| true, &mut removed);
        removed
    }

    pub(super) fn get(&self, owner: Principal, id: &str, now: Instant) -> Option<&T> {
        let mut items = self.items.iter();
        let found = items.find(|item| item.owner == owner && item.id == id)?;
        (now.duration_since(found.since) < MAX_AGE).then_some(&found.result)
    }

    fn remove_expired(&mut self, now: Instant) -> Vec<T> {
        let is_expired = |item: &Item<T>| now.duration_since(item.since) >= MAX_AGE;
        let expired = self.items.iter().take_while(|item| is_expired(item)).count();
        self.items.drain(..expired).map(|item| item.result).collect()
    }

    /// Removes what is older than [`MAX_AGE`]. Returns when to call this again; `None` if nothing
    /// is kept any more.
    pub(super) fn expire(&mut self, now: Instant) -> (Vec<T>, Option<Instant>) {
        let expired = self.remove_expired(now);
        let next = self.items.front().map(|oldest| oldest.since + MAX_AGE);
        (expired, next)
    }

    /// Removes everything of one owner.
    pub(super) fn forget(&mut self, owner: Principal) -> Vec<T> {
        let all = std::mem::take(&mut self.items);
        let (removed, kept) = all.into_iter().partition(|item| item.owner == owner);
        self.items = kept;
        VecDeque::into_iter(removed).map(|item: Item<T>| item.result).collect()
    }

    fn shrink(
        &mut self,
        (count, bytes): (usize, usize),
        is_of: impl Fn(Principal) -> bool,
        removed: &mut Vec<T>,
    ) {
        loop {
            let of = self.items.iter().filter(|item| is_of(item.owner));
            let (number, size) =
                of.fold((0, 0), |(n, size), item| (n + 1, size + item.fingerprint.bytes));
            if number <= count && size <= bytes {
                return;
            }
            let Some(at) = self.items.iter().position(|item| is_of(item.owner)) else { return };
            removed.extend(self.items.remove(at).map(|item| item.result));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: TableLimits = TableLimits { count: 3, bytes: 20, total_count: 5, total_bytes: 30 };

    fn text(bytes: usize, hash: u64) -> Fingerprint {
        Fingerprint { bytes, hash }
    }

    proptest! {
        #[test]
        fn limits_hold_and_the_newest_result_is_there(
            puts in proptest::collection::vec((0..3_usize, 1..20_usize, 0..1500_u64), 1..40),
        ) {
            let owners = [Principal::new(), Principal::new(), Principal::new()];
            let mut table = ResultTable::new(SMALL);
            let mut now = Instant::now();
            for (number, (owner, bytes, seconds)) in puts.into_iter().enumerate() {
                now += Duration::from_secs(seconds);
                let owner = owners[owner];
                prop_assert!(table.has_room_for(bytes));
                table.put(owner, number.to_string(), (text(bytes, number as u64), number), now);
                prop_assert_eq!(table.get(owner, &number.to_string(), now), Some(&number));
                let size = |items: &VecDeque<Item<usize>>, owner: Option<Principal>| {
                    let of = items.iter().filter(|item| owner.is_none_or(|it| it == item.owner));
                    of.fold((0, 0), |(n, bytes), item| (n + 1, bytes + item.fingerprint.bytes))
                };
                let (all, bytes) = size(&table.items, None);
                prop_assert!(all <= SMALL.total_count && bytes <= SMALL.total_bytes);
                for owner in owners {
                    let (own, bytes) = size(&table.items, Some(owner));
                    prop_assert!(own <= SMALL.count && bytes <= SMALL.bytes);
                }
            }
        }
    }

    #[test]
    fn result_is_there_for_its_owner_until_it_expires() {
        let (owner, other, now) = (Principal::new(), Principal::new(), Instant::now());
        let mut table = ResultTable::new(LIMITS);
        table.put(owner, "a".to_owned(), (text(1, 1), ()), now);
        assert!(table.get(owner, "a", now).is_some());
        assert!(table.get(other, "a", now).is_none() && table.get(owner, "b", now).is_none());
        assert!(table.get(owner, "a", now + MAX_AGE).is_none());
        assert_eq!(table.forget(other).len(), 0);
        assert_eq!(table.forget(owner).len(), 1);
        assert!(!table.has_room_for(usize::MAX));
    }

    #[test]
    fn equal_result_of_the_owner_is_kept_once_and_for_longer() {
        let (owner, other, now) = (Principal::new(), Principal::new(), Instant::now());
        let mut table = ResultTable::new(SMALL);
        table.put(owner, "a".to_owned(), (text(7, 1), ()), now);
        table.put(owner, "b".to_owned(), (text(7, 2), ()), now);
        let later = now + MAX_AGE / 2;
        assert_eq!(table.renew(owner, text(7, 1), later).as_deref(), Some("a"));
        for (owner, of) in [(owner, text(8, 1)), (owner, text(7, 3)), (other, text(7, 1))] {
            assert_eq!(table.renew(owner, of, later), None);
        }
        assert_eq!(table.remove_expired(now + MAX_AGE).len(), 1);
        assert!(table.get(owner, "a", now + MAX_AGE).is_some());
    }

    #[test]
    fn next_expiry_is_that_of_the_oldest_result() {
        let (owner, now) = (Principal::new(), Instant::now());
        let later = now + MAX_AGE / 2;
        let mut table = ResultTable::new(SMALL);
        table.put(owner, "a".to_owned(), (text(7, 1), ()), now);
        table.put(owner, "b".to_owned(), (text(7, 2), ()), later);
        assert_eq!(table.expire(now + MAX_AGE), (vec![()], Some(later + MAX_AGE)));
        assert_eq!(table.expire(later + MAX_AGE), (vec![()], None));
    }
}
