//! Puts text from outside into Markdown so that it stays text: no markup, no HTML, no link, no mention, no new table cell.

use crate::domain::story::clean;

/// A sentence for a table's cell or a line.
pub(super) fn prose(text: &str) -> String {
    let text = clean::text(text);
    let mut out = String::with_capacity(text.len() + 8);
    let chars: Vec<char> = text.trim().chars().collect();
    for (n, c) in chars.iter().copied().enumerate() {
        let neighbour = |place: Option<usize>| place.and_then(|p| chars.get(p)).is_some_and(|c| c.is_alphanumeric());
        match c {
            // Inside a word it is only a character.
            '_' if neighbour(n.checked_sub(1)) && neighbour(Some(n + 1)) => out.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // In a span of its own the sign pings nobody and refers to no ticket.
            '@' | '#' => out.extend(['`', c, '`']),
            c => out.push(c),
        }
    }
    if out.is_empty() { "–".to_owned() } else { out }
}

/// A name or a value in a table's cell, as code.
pub(super) fn code(text: &str) -> String {
    let text = clean::text(text);
    match text.trim() {
        "" => "–".to_owned(),
        // A code span cannot hold these in every renderer.
        text if text.contains(['`', '|', '\\']) => prose(text),
        text => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: G15
    #[test]
    fn nothing_from_outside_becomes_markup() {
        for (said, told) in [
            ("eth0 sees 'leaf|1' <img src=x>", "eth0 sees 'leaf\\|1' &lt;img src=x&gt;"),
            ("**bold** `code` [a](b) ![p](u)", "\\*\\*bold\\*\\* \\`code\\` \\[a\\](b) !\\[p\\](u)"),
            ("node_lock _x_ ~y~", "node_lock \\_x\\_ \\~y\\~"),
            ("ask @team about #12", "ask `@`team about `#`12"),
            ("a\nb\u{1b}[0m", "a b\u{fffd}\\[0m"),
            ("a \\| b", "a \\\\\\| b"),
            ("", "–"),
        ] {
            assert_eq!(prose(said), told);
        }
        assert_eq!(code("gpu-b07-37"), "`gpu-b07-37`");
        assert_eq!(code("a`b|c"), "a\\`b\\|c");
        assert_eq!(code(" "), "–");
    }
}
