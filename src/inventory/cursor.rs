//! Remembers how far the changes of a list were read, in NetBox's own time, and how far back the next delta reaches.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// NetBox stamps a row when it is saved, and others see it when the transaction ends: a bulk import takes its time (O4).
const OVERLAP: Duration = Duration::from_secs(120);

/// The newest change of a list that was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cursor {
    newest: Timestamp,
    /// When it was seen, by the clock of this machine, of which only differences are used (C-39).
    seen: Instant,
}

impl Cursor {
    pub fn at(newest: Timestamp, now: Instant) -> Self {
        Cursor { newest, seen: now }
    }

    /// Takes a change into account that was told at `now`.
    pub fn saw(cursor: &mut Option<Cursor>, stamp: Option<Timestamp>, now: Instant) {
        let Some(stamp) = stamp else { return };
        if cursor.is_none_or(|cursor| cursor.newest < stamp) {
            *cursor = Some(Cursor::at(stamp, now));
        }
    }

    /// From when on the next delta asks. Rows that were stamped before the newest one may be committed after it was seen.
    /// The longer that is ago the fewer of them can be under way, and after two minutes none: what was imported in bulk is
    /// not read over and over. Rows of the newest moment itself are always asked for again.
    pub fn since(&self, now: Instant) -> Timestamp {
        let left = OVERLAP.saturating_sub(now.saturating_duration_since(self.seen));
        // In whole seconds, and rather one too many.
        let back = SignedDuration::from_secs(left.as_secs() as i64 + i64::from(left.subsec_nanos() > 0));
        self.newest.checked_sub(back).unwrap_or(self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: O4. Case: C-39
    #[test]
    fn a_delta_reaches_back_as_far_as_a_transaction_may_still_be_under_way() {
        let (now, newest) = (Instant::now(), "2026-11-29T08:30:08.055212Z".parse().unwrap());
        let cursor = Cursor::at(newest, now);
        let back = |after: u64| newest - cursor.since(now + Duration::from_millis(after));
        assert_eq!(back(0).get_seconds(), 120);
        assert_eq!(back(30_500).get_seconds(), 90);
        assert_eq!(back(120_000).get_seconds(), 0);
        assert_eq!(cursor.since(now + Duration::from_secs(9999)), newest, "ties are asked for again");
    }

    #[test]
    fn the_cursor_goes_by_the_newest_row_and_never_back() {
        let now = Instant::now();
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        let mut cursor = None;
        Cursor::saw(&mut cursor, at("2026-11-29T09:30:08+01:00"), now);
        Cursor::saw(&mut cursor, at("2026-11-29T08:30:07.9Z"), now + Duration::from_secs(60));
        Cursor::saw(&mut cursor, None, now);
        assert_eq!(cursor, Some(Cursor::at("2026-11-29T08:30:08Z".parse().unwrap(), now)));
    }
}
