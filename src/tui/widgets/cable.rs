//! How a cable is called at the rack: its label and the colour that a person sees.

use crate::domain::link::CableEnd;

/// NetBox's palette, as hex and as a word.
const COLORS: [(&str, &str); 27] = [
    ("aa1409", "dark red"),
    ("f44336", "red"),
    ("e91e63", "pink"),
    ("ffe4e1", "rose"),
    ("ff66ff", "fuchsia"),
    ("9c27b0", "purple"),
    ("673ab7", "dark purple"),
    ("3f51b5", "indigo"),
    ("2196f3", "blue"),
    ("03a9f4", "light blue"),
    ("00bcd4", "cyan"),
    ("009688", "teal"),
    ("00ffff", "aqua"),
    ("2f6a31", "dark green"),
    ("4caf50", "green"),
    ("8bc34a", "light green"),
    ("cddc39", "lime"),
    ("ffeb3b", "yellow"),
    ("ffc107", "amber"),
    ("ff9800", "orange"),
    ("ff5722", "dark orange"),
    ("795548", "brown"),
    ("c0c0c0", "light grey"),
    ("9e9e9e", "grey"),
    ("607d8b", "dark grey"),
    ("111111", "black"),
    ("ffffff", "white"),
];

/// The word for a cable's colour; as NetBox has it where the palette doesn't know it.
pub fn color_word(color: &str) -> &str {
    let hex = color.trim_start_matches('#');
    COLORS.iter().find(|(h, _)| h.eq_ignore_ascii_case(hex)).map_or(color, |(_, word)| word)
}

/// `W-0398 blue`, or what of it there is.
pub fn cable_name(cable: &CableEnd) -> String {
    let parts = [cable.label.as_deref(), cable.color.as_deref().map(color_word)];
    parts.into_iter().flatten().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(" ")
}

/// `leaf-b07-1 swp15`.
pub fn far_end(cable: &CableEnd) -> String {
    format!("{} {}", cable.switch, cable.port)
}
