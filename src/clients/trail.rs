//! Keeps which requests an activity makes, whichever client makes them: what a run's story tells as "requests made" (G15).

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::event::Asked;

/// How many different requests of one attempt are kept; those beyond are counted.
const MOST: usize = 100;

tokio::task_local! {
    static TRAIL: Trail;
}

/// The requests of one attempt.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    asked: Vec<Asked>,
    more: u32,
}

impl Trail {
    /// Does the work; every request that a client makes for it in this task is kept.
    pub fn follow<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        TRAIL.scope(self.clone(), work)
    }

    /// What was asked so far, and how many requests more.
    pub fn take(&self) -> (Vec<Asked>, u32) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        (kept.asked, kept.more)
    }
}

/// A request was answered, or was not. Outside an activity (an observer's poll) nobody keeps it. `request` holds neither
/// query nor body, and everything is neutralized already.
pub fn tell(system: &str, request: &str, answer: impl ToString) {
    let told = TRAIL.try_with(|trail| {
        let mut kept = trail.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answer.to_string();
        let full = kept.asked.len() >= MOST;
        match kept.asked.last_mut() {
            Some(last) if last.system == system && last.request == request && last.answer == answer => last.times += 1,
            _ if full => kept.more += 1,
            _ => kept.asked.push(Asked { system: system.to_owned(), request: request.to_owned(), answer, times: 1 }),
        }
    });
    // No activity: nobody asked for it.
    told.ok();
}

/// Work for a task of its own whose requests belong to the activity at hand.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let trail = TRAIL.try_with(Trail::clone).unwrap_or_default();
    TRAIL.scope(trail, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_in_a_row_are_counted_and_those_of_a_task_of_its_own_are_kept_too() {
        let trail = Trail::default();
        let work = async {
            tell("ironic", "GET /v1/nodes", 200);
            tell("ironic", "GET /v1/nodes", 200);
            tell("ironic", "GET /v1/nodes", 503);
            tokio::spawn(carried(async { tell("netbox", "GET /api", "no answer") })).await.unwrap();
        };
        trail.follow(work).await;
        tell("netbox", "GET /outside", 200);
        let (asked, more) = trail.take();
        let told: Vec<(&str, &str, u32)> =
            asked.iter().map(|a| (a.request.as_str(), a.answer.as_str(), a.times)).collect();
        assert_eq!(told, [("GET /v1/nodes", "200", 2), ("GET /v1/nodes", "503", 1), ("GET /api", "no answer", 1)]);
        assert_eq!(more, 0);
    }

    #[tokio::test]
    async fn what_is_too_much_is_counted() {
        let trail = Trail::default();
        trail.follow(async { (0..MOST + 7).for_each(|n| tell("ironic", &format!("GET /{n}"), 200)) }).await;
        let (asked, more) = trail.take();
        assert_eq!((asked.len(), more), (MOST, 7));
    }
}
