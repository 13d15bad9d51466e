//! One request at a time to each BMC, whoever asks in this process: more at once crash some of them (Q55, B20).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Semaphore;

/// By host and port. A BMC that nobody asks any more leaves nothing behind but its name until the next one is asked.
static TURNS: Mutex<Option<HashMap<String, Weak<Semaphore>>>> = Mutex::new(None);

/// The turns of a BMC: a permit is held for one request. All clients of one BMC have the same.
pub(super) fn of(bmc: &str) -> Arc<Semaphore> {
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let turns = turns.get_or_insert_default();
    if let Some(known) = turns.get(bmc).and_then(Weak::upgrade) {
        return known;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::new(Semaphore::new(1));
    turns.insert(bmc.to_owned(), Arc::downgrade(&turn));
    turn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_one_bmc_share_its_turns_and_those_of_another_do_not() {
        let (one, same, other) = (of("192.0.2.1:443"), of("192.0.2.1:443"), of("192.0.2.2:443"));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same));
        let anew = of("192.0.2.1:443");
        assert_eq!(anew.available_permits(), 1);
    }
}
