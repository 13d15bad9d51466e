//! A frame as text: each row, and below it a letter a cell for its style, so that a change of colour is a line of a diff.

use std::collections::BTreeMap;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The rows with their styles, and the legend of the letters. The commonest style of the frame is a dot.
pub fn styled(buf: &Buffer) -> String {
    let style = |x: u16, y: u16| {
        let cell = &buf[(x, y)];
        describe(cell.fg, cell.bg, cell.modifier)
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for y in 0..buf.area.height {
        for x in 0..buf.area.width {
            *counts.entry(style(x, y)).or_default() += 1;
        }
    }
    let common = counts.iter().max_by_key(|(_, n)| **n).map(|(s, _)| s.clone()).unwrap_or_default();
    // In the order of their text, so that a new style renames few letters.
    let names: BTreeMap<String, char> = counts.into_keys().filter(|s| *s != common).zip(LETTERS.chars()).collect();
    let mut out = String::new();
    for y in 0..buf.area.height {
        let (mut text, mut marks, mut x) = (String::new(), String::new(), 0);
        while x < buf.area.width {
            let symbol = buf[(x, y)].symbol();
            let wide = symbol.width().max(1) as u16;
            text.push_str(symbol);
            let mark = names.get(&style(x, y)).copied().unwrap_or('.');
            marks.extend(std::iter::repeat_n(mark, usize::from(wide)));
            x += wide;
        }
        out.push_str(format!("|{text}").trim_end());
        out.push('\n');
        let marks = marks.trim_end_matches('.');
        if !marks.is_empty() {
            out.push_str(&format!("~{marks}\n"));
        }
    }
    out.push_str(&format!("\n. {common}\n"));
    for (style, name) in names {
        out.push_str(&format!("{name} {style}\n"));
    }
    out
}

fn describe(fg: Color, bg: Color, modifier: Modifier) -> String {
    let name = |color: Color| match color {
        Color::Reset => "-".to_owned(),
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        other => format!("{other:?}").to_lowercase(),
    };
    let modifiers = if modifier.is_empty() { String::new() } else { format!(" {modifier:?}") };
    format!("{} on {}{}", name(fg), name(bg), modifiers.to_lowercase())
}
