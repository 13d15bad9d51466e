//! The example that documents every key, and what it says of each.

/// The example as it is shipped: what is needed is on, what has a default is a comment that shows it.
pub const EXAMPLE: &str = include_str!("../../config.example.toml");

/// The example with every key and table switched on, line for line.
pub fn switched_on() -> String {
    let line = |line: &'static str| line.strip_prefix('#').filter(|rest| is_key(rest)).unwrap_or(line);
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What the comment above a line says, lines counted from 1; empty where there is none.
pub(super) fn said_above(line: usize) -> String {
    let lines: Vec<&str> = EXAMPLE.lines().take(line.saturating_sub(1)).collect();
    let comments = lines.iter().rev().map_while(|line| line.strip_prefix("# "));
    let mut said: Vec<&str> = comments.collect();
    said.reverse();
    said.join(" ")
}

/// Whether a line of the example shows the default of its key: it is a comment, in a table that is none.
pub(super) fn shows_default(line: usize) -> bool {
    let lines: Vec<&str> = EXAMPLE.lines().take(line).collect();
    let header = |line: &&&str| line.starts_with('[') || line.starts_with("#[");
    lines.last().is_some_and(|line| line.starts_with('#'))
        && lines.iter().rev().find(header).is_none_or(|header| header.starts_with('['))
}

fn is_key(rest: &str) -> bool {
    rest.starts_with('[') || rest.split_once(" = ").is_some_and(|(key, _)| is_bare(key))
}

/// A bare key, or one in quotes.
fn is_bare(key: &str) -> bool {
    let inside = key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.is_some() || !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}
