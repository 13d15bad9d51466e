//! Does many independent things a few at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most of a try is waiting: a few for each processor.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(4, |n| 4 * n.get()).min(16)
}

/// The outcome of each, in their order.
pub fn each<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<R>>> = Mutex::new(all.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers().min(all.len()) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    let Some(this) = all.get(n) else { return };
                    let outcome = work(this);
                    done.lock().unwrap()[n] = Some(outcome);
                }
            });
        }
    });
    done.into_inner().unwrap().into_iter().map(Option::unwrap).collect()
}
