//! How long writes waited for their commit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::domain::exposition::{Times, slot};

/// Upper bounds in seconds: from a disk that answers at once to one that hangs.
const BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

#[derive(Default)]
pub(super) struct Latency {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
}

impl Latency {
    pub fn add(&self, took: Duration) {
        self.counts[slot(&BOUNDS, took.as_secs_f64())].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took.as_micros().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn times(&self) -> Times {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Times { bounds: &BOUNDS, counts, sum_s: self.sum_us.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}
