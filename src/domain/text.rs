//! Makes text from other systems safe for a terminal (U8).

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Marks that one character may carry. More of them stand for no word of any language, and grow over the lines around.
const MARKS: usize = 3;

/// Replaces every character that a terminal could act on or that hides or reorders text: control and escape characters,
/// bidi controls, zero-width and other invisible format characters, line separators. Tabs and newlines become a blank.
/// So do characters that change how wide others are, and heaps of combining marks: of what is left every character takes
/// as many columns as it says, so that columns stay where they are.
pub fn neutralize(text: &str) -> Cow<'_, str> {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte);
    if text.as_bytes().iter().all(plain) || is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut marks = 0;
    for c in text.chars() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_hostile(c) => out.push('\u{fffd}'),
            _ if marks == MARKS + 1 => out.push('\u{fffd}'),
            _ if marks > MARKS => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_clean(text: &str) -> bool {
    let mut marks = 0;
    text.chars().all(|c| {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        marks <= MARKS && !is_hostile(c)
    })
}

/// Stands on the character before it and takes no column.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && !is_hostile(c) && c.width() == Some(0)
}

/// As [`neutralize`], cut to `max` characters with an ellipsis at the end.
pub fn neutralize_to(text: &str, max: usize) -> String {
    let clean = neutralize(text);
    if clean.chars().count() <= max {
        return clean.into_owned();
    }
    clean.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// What a panic said, as one line that is safe to show.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    neutralize_to(said.unwrap_or("no message"), 500)
}

/// Whether a terminal could act on a character, or it hides or reorders text.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            // Variation selectors and skin tones make the character before them another one, and wider.
            | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: U8
    #[test]
    fn what_a_terminal_could_act_on_is_replaced() {
        assert_eq!(neutralize("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(neutralize("a\u{9b}2Jb\u{7}\u{0}"), "a\u{fffd}2Jb\u{fffd}\u{fffd}");
        assert_eq!(neutralize("gpu\u{202e}10-x\u{200b}\u{2066}"), "gpu\u{fffd}10-x\u{fffd}\u{fffd}");
        assert_eq!(neutralize("two\nlines\tand a tab"), "two lines and a tab");
        assert!(matches!(neutralize("swp14 – grün"), Cow::Borrowed(_)));
        assert!(matches!(neutralize("gru\u{308}n 漢字"), Cow::Borrowed(_)));
    }

    /// Proves: U8
    #[test]
    fn what_changes_how_wide_others_are_is_replaced_and_heaps_of_marks_are_cut() {
        assert_eq!(neutralize("a\u{fe0f}\u{1f44d}\u{1f3fd}"), "a\u{fffd}\u{1f44d}\u{fffd}");
        let heap = format!("e{}x", "\u{301}".repeat(10_000));
        assert_eq!(neutralize(&heap), "e\u{301}\u{301}\u{301}\u{fffd}x");
        assert_eq!(neutralize(&neutralize(&heap)), neutralize(&heap));
    }

    #[test]
    fn a_long_text_is_cut_by_characters() {
        assert_eq!(neutralize_to("äöüß", 3), "äö…");
        assert_eq!(neutralize_to("äöü", 3), "äöü");
    }
}
