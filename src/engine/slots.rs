//! Shares out the places of activities at work, so that a site whose systems hang keeps no other waiting (C-49).
//!
//! A site takes a further place only while what it leaves free is at least a third of what it would hold. So one site
//! alone has at most three quarters of all places; two that hang leave a seventh, and so on: there is always room for a
//! site that has none. Whoever waits comes up by the fewest places held, among equals by the longest wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Below so many places there is nothing to share.
const SHARED_FROM: usize = 4;

/// All places.
pub(super) struct Slots {
    places: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<Arc<str>, usize>,
    taken: usize,
    waiting: BTreeMap<Arc<str>, VecDeque<(u64, oneshot::Sender<Slot>)>>,
    /// Counts who came.
    came: u64,
}

/// A place at work; given back when it is dropped.
pub(super) struct Slot {
    slots: Arc<Slots>,
    site: Arc<str>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.give_back(&self.site);
    }
}

impl Slots {
    pub(super) fn new(places: usize) -> Arc<Slots> {
        Arc::new(Slots { places: places.max(1), state: Mutex::default() })
    }

    /// Waits for a place for an activity of this site. Whoever stops waiting takes none.
    pub(super) async fn acquire(self: &Arc<Self>, site: &Arc<str>) -> Slot {
        loop {
            let (give, given) = oneshot::channel();
            {
                let mut state = self.state();
                state.came += 1;
                let came = state.came;
                state.waiting.entry(Arc::clone(site)).or_default().push_back((came, give));
            }
            self.grant();
            if let Ok(slot) = given.await {
                return slot;
            }
        }
    }

    fn give_back(self: &Arc<Self>, site: &Arc<str>) {
        {
            let mut state = self.state();
            state.taken = state.taken.saturating_sub(1);
            if let Some(held) = state.held.get_mut(site) {
                *held -= 1;
                if *held == 0 {
                    state.held.remove(site);
                }
            }
        }
        self.grant();
    }

    /// Gives what is free to those that wait. A place whose taker has gone comes back by being dropped, without the lock.
    fn grant(self: &Arc<Self>) {
        loop {
            let next = self.state().next(self.places);
            let Some((site, give)) = next else { return };
            drop(give.send(Slot { slots: Arc::clone(self), site }));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes a place for the next that may have one.
    fn next(&mut self, places: usize) -> Option<(Arc<str>, oneshot::Sender<Slot>)> {
        loop {
            let free = places.saturating_sub(self.taken);
            let held = |site: &Arc<str>| self.held.get(site).copied().unwrap_or(0);
            let may = self.waiting.iter().filter(|(site, _)| is_allowed(held(site), free, places));
            let site = may
                .filter_map(|(site, line)| Some((held(site), line.front()?.0, site)))
                .min_by_key(|(held, came, _)| (*held, *came))
                .map(|(_, _, site)| Arc::clone(site))?;
            let line = self.waiting.get_mut(&site)?;
            let (_, give) = line.pop_front()?;
            if line.is_empty() {
                self.waiting.remove(&site);
            }
            if give.is_closed() {
                continue;
            }
            self.taken += 1;
            *self.held.entry(Arc::clone(&site)).or_default() += 1;
            return Some((site, give));
        }
    }
}

/// Whether a site with so many places may have one more of those that are free.
fn is_allowed(held: usize, free: usize, places: usize) -> bool {
    free > 0 && (held == 0 || places < SHARED_FROM || held < 3 * (free - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use proptest::prelude::*;

    fn take(slots: &Arc<Slots>, site: &str) -> Option<Slot> {
        slots.acquire(&Arc::from(site)).now_or_never()
    }

    /// Proves: G13
    #[test]
    fn a_site_that_hangs_leaves_a_quarter_and_the_next_one_a_part_of_that() {
        let slots = Slots::new(32);
        let hog: Vec<Slot> = std::iter::from_fn(|| take(&slots, "hog")).collect();
        assert_eq!(hog.len(), 24);
        let second: Vec<Slot> = std::iter::from_fn(|| take(&slots, "second")).collect();
        assert_eq!(second.len(), 6);
        assert!(take(&slots, "third").is_some());
        // Those that gave up waiting took nothing with them.
        drop((hog, second));
        assert_eq!(slots.state().taken, 0);
        assert_eq!(std::iter::from_fn(|| take(&slots, "hog")).collect::<Vec<_>>().len(), 24);
    }

    #[test]
    fn few_places_are_not_shared_and_one_is_enough() {
        for places in 1..SHARED_FROM {
            let slots = Slots::new(places);
            assert_eq!(std::iter::from_fn(|| take(&slots, "a")).collect::<Vec<_>>().len(), places);
        }
    }

    proptest! {
        #[test]
        fn never_more_than_there_are_and_always_one_for_a_site_that_has_none(
            places in 4..40usize,
            asks in proptest::collection::vec((0..6usize, any::<bool>()), 1..200),
        ) {
            let slots = Slots::new(places);
            let mut had: Vec<(usize, Slot)> = Vec::new();
            for (site, gives_back) in asks {
                if gives_back && !had.is_empty() {
                    drop(had.remove(site % had.len()));
                    continue;
                }
                let slot = take(&slots, &site.to_string());
                let has_none = had.iter().all(|(other, _)| *other != site);
                if has_none && had.len() < places {
                    prop_assert!(slot.is_some());
                }
                had.extend(slot.map(|slot| (site, slot)));
                prop_assert!(had.len() <= places);
                prop_assert_eq!(slots.state().taken, had.len());
            }
        }
    }
}
