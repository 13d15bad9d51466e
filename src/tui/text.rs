//! Widths, cuts, wraps and the forms of times: text as it stands on a screen.

use std::time::Duration;

use jiff::Timestamp;
use unicode_width::UnicodeWidthChar;

use crate::domain::text::neutralize;

/// Which end of a text survives a cut. Names of hosts differ at their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Start,
    End,
}

/// Columns that a text takes on the screen, where it is neutralized first.
pub fn width(text: &str) -> usize {
    cells(&neutralize(text))
}

/// Columns of a neutralized text.
fn cells(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Columns of one character of a neutralized text.
pub fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The text in at most `max` columns, with an ellipsis where something is cut.
pub fn cut(text: &str, max: usize, keep: Keep) -> String {
    let text = &*neutralize(text);
    if width(text) <= max {
        return text.to_owned();
    }
    match (max, keep) {
        (0, _) => String::new(),
        (1, _) => "…".to_owned(),
        (_, Keep::Start) => {
            let mut out = prefix(text, max - 1).to_owned();
            out.truncate(out.trim_end().len());
            out.push('…');
            out
        }
        (_, Keep::End) => {
            let mut left = max - 1;
            let mut from = text.len();
            for (at, c) in text.char_indices().rev() {
                let w = columns(c);
                if w > left {
                    break;
                }
                left -= w;
                from = at;
            }
            format!("…{}", &text[from..])
        }
    }
}

/// As [`cut`], then filled with blanks to exactly `max` columns.
pub fn pad(text: &str, max: usize, keep: Keep) -> String {
    let mut out = cut(text, max, keep);
    out.extend(std::iter::repeat_n(' ', max.saturating_sub(width(&out))));
    out
}

/// The longest start of a neutralized text that takes at most `max` columns.
pub fn prefix(text: &str, max: usize) -> &str {
    let mut left = max;
    for (at, c) in text.char_indices() {
        let w = columns(c);
        if w > left {
            return &text[..at];
        }
        left -= w;
    }
    text
}

/// The text in lines of at most `max` columns, broken at blanks where there are any.
pub fn wrap(text: &str, max: usize) -> Vec<String> {
    if max == 0 {
        return Vec::new();
    }
    let text = &*neutralize(text);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        let mut rest = word;
        // Measured once: a word may have ten thousand characters.
        let mut room = cells(rest);
        let gap = usize::from(used > 0);
        if used + gap + room > max && used > 0 {
            lines.push(String::new());
            used = 0;
        }
        while room > max {
            // A character wider than the line can't be shown; one of them per line would never end.
            let part = prefix(rest, max);
            if part.is_empty() {
                break;
            }
            let line = lines.last_mut().expect("there is always a last line");
            line.push_str(part);
            rest = &rest[part.len()..];
            room -= cells(part);
            lines.push(String::new());
            used = 0;
        }
        let line = lines.last_mut().expect("there is always a last line");
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(rest);
        used += room;
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// As [`wrap`], in at most so many lines; what is left out is an ellipsis at the end.
pub fn wrap_to(text: &str, max: usize, rows: usize) -> Vec<String> {
    let mut lines = wrap(text, max);
    if lines.len() > rows {
        lines.truncate(rows);
        if let Some(last) = lines.last_mut() {
            let room = prefix(last, max.saturating_sub(1)).trim_end();
            *last = format!("{room}…");
        }
    }
    lines
}

/// Seconds from `from` to `to`; nothing where `to` is earlier.
pub fn seconds(from: Timestamp, to: Timestamp) -> u64 {
    to.duration_since(from).as_secs().max(0) as u64
}

/// A running or remaining time: `0:07`, `3:41`, `1:02:03`.
pub fn clock(seconds: u64) -> String {
    let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
}

/// A length or an age in one unit: `12s`, `5m`, `2h`, `3d`.
pub fn rough(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// What is left until a moment, as a countdown reads: the last second counts.
pub fn left(now: Timestamp, until: Timestamp) -> String {
    let ms = until.duration_since(now).as_millis().max(0) as u64;
    clock(ms.div_ceil(1000))
}

/// `2h ago`.
pub fn ago(now: Timestamp, then: Timestamp) -> String {
    format!("{} ago", rough(seconds(then, now)))
}

/// A budget as a person says it: `5:00`, `40 min`, `4 h`.
pub fn span(duration: Duration) -> String {
    match duration.as_secs() {
        s if s >= 3600 && s.is_multiple_of(3600) => format!("{} h", s / 3600),
        s if s >= 600 && s.is_multiple_of(60) => format!("{} min", s / 60),
        s => clock(s),
    }
}

/// A number in at most four columns, for a table: `9999`, `10k`, `2M`.
pub fn short(n: usize) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{}k", n / 1000),
        _ => format!("{}M", n / 1_000_000),
    }
}

/// One of a kind, or several: `1 host`, `3 hosts`.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_keeps_the_end_that_tells_hosts_apart() {
        assert_eq!(cut("gpu-osl1-b07-39", 8, Keep::End), "…-b07-39");
        assert_eq!(cut("gpu-osl1-b07-39", 8, Keep::Start), "gpu-osl…");
        assert_eq!(cut("gpu", 8, Keep::End), "gpu");
        assert_eq!(pad("äö", 4, Keep::Start), "äö  ");
    }

    #[test]
    fn lines_break_at_blanks_and_long_words_anywhere() {
        assert_eq!(wrap("move the cable of eth0", 9), ["move the", "cable of", "eth0"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert!(wrap("", 10).is_empty());
        assert_eq!(wrap_to("move the cable of eth0", 9, 2), ["move the", "cable of…"]);
    }

    #[test]
    fn times_read_as_a_person_needs_them() {
        assert_eq!([clock(7), clock(221), clock(3723)], ["0:07", "3:41", "1:02:03"]);
        assert_eq!([rough(12), rough(300), rough(7300), rough(300_000)], ["12s", "5m", "2h", "3d"]);
        let now = Timestamp::from_second(100).unwrap();
        assert_eq!(left(now, Timestamp::from_millisecond(101_200).unwrap()), "0:02");
        assert_eq!(left(now, Timestamp::from_second(50).unwrap()), "0:00");
        assert_eq!(span(Duration::from_secs(300)), "5:00");
        assert_eq!(span(Duration::from_secs(14_400)), "4 h");
        assert_eq!([short(9999), short(10_000), short(100_000), short(2_400_000)], ["9999", "10k", "100k", "2M"]);
    }

    proptest! {
        #[test]
        fn no_cut_and_no_line_is_ever_wider_than_it_may_be(text in "[a-z äö漢…\u{301}]{0,40}", max in 0usize..20) {
            for keep in [Keep::Start, Keep::End] {
                prop_assert!(width(&cut(&text, max, keep)) <= max);
            }
            if max >= 2 {
                for line in wrap(&text, max) {
                    prop_assert!(width(&line) <= max, "{line:?}");
                }
            }
        }
    }
}
