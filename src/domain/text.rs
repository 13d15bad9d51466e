//! Makes text from other systems safe for a terminal (U8).

use std::borrow::Cow;

/// Replaces every character that a terminal could act on or that hides or reorders text: control and escape characters,
/// bidi controls, zero-width and other invisible format characters, line separators. Tabs and newlines become a blank.
pub fn neutralize(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| match c {
                '\n' | '\r' | '\t' => ' ',
                c if is_hostile(c) => '\u{fffd}',
                c => c,
            })
            .collect(),
    )
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

fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
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
    }

    #[test]
    fn a_long_text_is_cut_by_characters() {
        assert_eq!(neutralize_to("äöüß", 3), "äö…");
        assert_eq!(neutralize_to("äöü", 3), "äöü");
    }
}
