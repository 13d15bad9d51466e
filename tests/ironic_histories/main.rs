//! Thousands of random histories of a node, each lived through by the real workflow on a lab without sockets, and every
//! rule of the never-do list held against what was asked of Ironic.
//!
//! A history is its seed: what the node is like at the beginning, what NetBox wants, what fails, what others do to the node
//! between our read and our write, and when the run is cancelled. A history that breaks a rule is printed with its seed and
//! with all that is not needed for it taken away. `MUSTER_HISTORIES=N` lives through so many (10,000, the default, take two
//! processors two minutes), `MUSTER_HISTORY=SEED` through just one.

mod history;
#[path = "../support/inside.rs"]
mod inside;
mod live;
mod rules;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use history::{History, SHAPES};
use live::{Lived, grounds, live};
use rules::broken;

/// How many histories an ordinary run of the tests lives through.
const BY_DEFAULT: u64 = 10_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// What all histories came to.
#[derive(Default)]
struct Tally {
    ends: BTreeMap<String, u64>,
    requests: u64,
    writes: u64,
    locks: u64,
    overtaken: u64,
    refused: u64,
}

impl Tally {
    fn add(&mut self, lived: &Lived) {
        *self.ends.entry(lived.end.clone()).or_default() += 1;
        self.requests += lived.sent.len() as u64;
        self.writes += lived.sent.iter().filter(|sent| sent.is_write()).count() as u64;
        self.locks += lived.sent.iter().filter(|sent| sent.is_locked()).count() as u64;
        self.overtaken += lived.sent.iter().filter(|sent| sent.is_write() && sent.overtaken).count() as u64;
        self.refused += u64::from(lived.end == "NODE_OWNED_BY_NOVA" || lived.end == "NODE_NEEDS_REVIEW");
    }
}

/// Proves: E6, E7, E9, E10, E11, E13, E14, E15, E17, I3, I6, I7, C7, C8, X2, G9, G12
#[test]
fn no_history_of_a_node_leads_to_a_request_that_the_rules_forbid() {
    let only = number("MUSTER_HISTORY");
    let first = only.unwrap_or(0);
    let count = only.map_or(number("MUSTER_HISTORIES").unwrap_or(BY_DEFAULT), |_| 1);
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let tally = Mutex::new(Tally::default());
    let failed: Mutex<Option<u64>> = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let grounds = grounds();
                let runtime = inside::runtime();
                let mut mine = Tally::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || failed.lock().unwrap().is_some_and(|lower| lower < seed) {
                        break;
                    }
                    let history = History::of(seed);
                    let lived = runtime.block_on(live(&grounds, &history));
                    if only.is_some() {
                        println!("{history:#?}\n{}", lived.story());
                    }
                    if !broken(&history, &lived).is_empty() {
                        let mut failed = failed.lock().unwrap();
                        *failed = Some(failed.map_or(seed, |other| other.min(seed)));
                        break;
                    }
                    mine.add(&lived);
                }
                let mut all = tally.lock().unwrap();
                for (end, times) in mine.ends {
                    *all.ends.entry(end).or_default() += times;
                }
                all.requests += mine.requests;
                all.writes += mine.writes;
                all.locks += mine.locks;
                all.overtaken += mine.overtaken;
                all.refused += mine.refused;
            });
        }
    });
    if let Some(seed) = *failed.lock().unwrap() {
        panic!("{}", explain(seed));
    }
    let tally = tally.into_inner().unwrap();
    println!(
        "{count} histories in {:.1?}: {} requests to Ironic, {} of them writes, {} met a lock, {} were overtaken by others",
        began.elapsed(),
        tally.requests,
        tally.writes,
        tally.locks,
        tally.overtaken
    );
    for (end, times) in &tally.ends {
        println!("{times:>7} {end}");
    }
    // Histories that never come near the rules would prove nothing.
    if count >= 1000 {
        for needed in
            ["enrolled", "cancelled", "NODE_OWNED_BY_NOVA", "NODE_NEEDS_REVIEW", "LINK_ALL_DOWN", "CLEAN_FAILED"]
        {
            assert!(tally.ends.get(needed).is_some_and(|times| *times > count / 1000), "hardly any '{needed}'");
        }
        assert!(tally.locks > count / 20 && tally.overtaken > count / 50, "{} {}", tally.locks, tally.overtaken);
    }
}

/// The same seed is the same history, request by request.
#[test]
fn a_history_is_the_same_each_time() {
    let grounds = grounds();
    let runtime = inside::runtime();
    for seed in 0..40 {
        let history = History::of(seed);
        let story = || runtime.block_on(live(&grounds, &history)).story();
        assert_eq!(story(), story(), "{history:#?}");
    }
}

/// What breaks which rule, with everything left out of the history that is not needed for it.
fn explain(seed: u64) -> String {
    let grounds = grounds();
    let runtime = inside::runtime();
    let breaks = |history: &History| {
        let lived = runtime.block_on(live(&grounds, history));
        let broken = broken(history, &lived);
        (!broken.is_empty()).then_some((broken, lived))
    };
    let mut history = History::of(seed);
    let mut worst = breaks(&history);
    'smaller: loop {
        for smaller in history.smaller() {
            if let Some(found) = breaks(&smaller) {
                (history, worst) = (smaller, Some(found));
                continue 'smaller;
            }
        }
        break;
    }
    let Some((broken, lived)) = worst else { return format!("history {seed} broke a rule once, and now it does not") };
    format!(
        "history {seed} (MUSTER_HISTORY={seed}; on {} of {} shapes):\n{}\n\nthe least of it that breaks them: {history:#?}\n\n{}",
        history.shape,
        SHAPES.len(),
        broken.join("\n"),
        lived.story()
    )
}

/// A check that nothing can fail proves nothing: histories whose book was tampered with break the rules.
#[test]
fn the_rules_are_broken_by_a_book_that_holds_what_they_forbid() {
    let grounds = Arc::new(grounds());
    let runtime = inside::runtime();
    for (name, forge) in rules::FORGERIES {
        let caught = (0..400).any(|seed| {
            let history = History::of(seed);
            let mut lived = runtime.block_on(live(&grounds, &history));
            broken(&history, &lived).is_empty() && forge(&mut lived) && !broken(&history, &lived).is_empty()
        });
        assert!(caught, "nothing notices {name}");
    }
}
