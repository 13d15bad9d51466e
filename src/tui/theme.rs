//! Themes: what each meaning looks like. Files under `themes/`, read by the parser that would read a user's own.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

use crate::domain::text::neutralize_to;

macro_rules! meanings {
    ($($variant:ident = $key:literal $(or $fallback:ident)?, $about:literal;)*) => {
        /// What a piece of text means. A theme says what that looks like; nothing else names a colour.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Meaning { $(#[doc = $about] $variant,)* }

        impl Meaning {
            /// All of them, in the order of the theme files.
            pub const ALL: &'static [Meaning] = &[$(Meaning::$variant,)*];

            /// The key in a theme file.
            pub fn key(self) -> &'static str { match self { $(Meaning::$variant => $key,)* } }

            /// Which meaning a theme that says nothing of this one falls back to.
            fn fallback(self) -> Option<Meaning> {
                match self { $(Meaning::$variant => meanings!(@fallback $($fallback)?),)* }
            }
        }
    };
    (@fallback $fallback:ident) => { Some(Meaning::$fallback) };
    (@fallback) => { None };
}

meanings! {
    Text = "text", "running text, and the ground of the screen";
    Strong = "strong" or Text, "names and numbers that the eye looks for";
    Muted = "muted" or Text, "what may be passed over";
    Rule = "rule" or Muted, "lines between panes";
    Bar = "bar" or Text, "the header and the footer";
    BarStrong = "bar_strong" or Bar, "what stands out in them";
    Accent = "accent" or Strong, "the heading of the focused pane";
    Key = "key" or Strong, "keys to press";
    Float = "float" or Text, "the ground of dialogs";
    Device = "device" or Float, "the ground of a device in a rack";
    Side = "side" or Text, "the sides of a device in a rack";
    Action = "action" or Strong, "what a person is to do: the brightest of all";
    Ok = "ok" or Text, "done, agrees, up";
    Fail = "fail" or Strong, "failed, differs, down for too long";
    Warn = "warn" or Fail, "done, and to be looked at";
    Unknown = "unknown" or Warn, "not reported";
    Run = "run" or Text, "under way";
    Wait = "wait" or Run, "waits";
    Queued = "queued" or Muted, "not begun";
    Stale = "stale" or Muted, "old readings";
    Mark = "mark" or Strong, "marked for a batch";
    Selection = "selection", "ground of the selected row in the focused pane";
    SelectionIdle = "selection_idle" or Selection, "ground of the selected row elsewhere";
    Input = "input" or Selection, "a field to type in";
    Track = "track" or Muted, "the empty part of a bar";
}

/// A theme, ready to be drawn with.
#[derive(Debug, Clone, PartialEq)]
pub struct Theme {
    pub name: String,
    pub about: String,
    styles: BTreeMap<Meaning, Style>,
}

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Red, green and blue as they are.
    True,
    /// The 6×6×6 cube and the greys.
    Cube,
    Sixteen,
}

/// What is wrong with a theme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThemeError {
    #[error("there is no theme '{}'; there are {known}", neutralize_to(name, 60))]
    Unknown { name: String, known: String },
    #[error("theme '{name}': {message}")]
    Form { name: String, message: String },
    #[error("theme '{name}' inherits from '{}', which inherits from it", neutralize_to(parent, 60))]
    Circle { name: String, parent: String },
    #[error("theme '{name}' has '{}', which is no meaning; the nearest is '{nearest}'", neutralize_to(key, 60))]
    Key { name: String, key: String, nearest: String },
    #[error(
        "theme '{name}': '{}' of '{key}' is no colour (a name of the palette, '#rrggbb', or one of the sixteen)",
        neutralize_to(color, 60)
    )]
    Color { name: String, key: String, color: String },
}

/// The built-in themes: name and file.
const BUILT_IN: [(&str, &str); 6] = [
    ("dark", include_str!("../../themes/dark.toml")),
    ("light", include_str!("../../themes/light.toml")),
    ("contrast", include_str!("../../themes/contrast.toml")),
    ("safe", include_str!("../../themes/safe.toml")),
    ("mono", include_str!("../../themes/mono.toml")),
    ("ansi", include_str!("../../themes/ansi.toml")),
];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    about: String,
    #[serde(default)]
    inherits: Option<String>,
    #[serde(default)]
    palette: BTreeMap<String, String>,
    #[serde(default)]
    meaning: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

impl Theme {
    /// The names of the built-in themes.
    pub fn names() -> Vec<&'static str> {
        BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// A built-in theme.
    pub fn named(name: &str) -> Result<Theme, ThemeError> {
        let file = load(name, &mut Vec::new())?;
        build(name, file)
    }

    /// A theme from the text of a file; it may inherit from a built-in one.
    pub fn parse(name: &str, text: &str) -> Result<Theme, ThemeError> {
        let file = read(name, text)?;
        build(name, inherit(name, file, &mut vec![name.to_owned()])?)
    }

    /// The theme for a terminal with so many colours. Themes of the sixteen stay as they are.
    pub fn at_depth(mut self, depth: Depth) -> Theme {
        if depth != Depth::True {
            for style in self.styles.values_mut() {
                style.fg = style.fg.map(to_cube);
                style.bg = style.bg.map(to_cube);
            }
        }
        self
    }

    /// The style of a meaning.
    pub fn style(&self, meaning: Meaning) -> Style {
        self.styles.get(&meaning).copied().unwrap_or_default()
    }
}

fn read(name: &str, text: &str) -> Result<File, ThemeError> {
    toml::from_str(text)
        .map_err(|e| ThemeError::Form { name: name.to_owned(), message: neutralize_to(e.to_string().trim(), 600) })
}

fn load(name: &str, seen: &mut Vec<String>) -> Result<File, ThemeError> {
    let Some((_, text)) = BUILT_IN.iter().find(|(n, _)| *n == name) else {
        return Err(ThemeError::Unknown { name: name.to_owned(), known: Theme::names().join(", ") });
    };
    seen.push(name.to_owned());
    inherit(name, read(name, text)?, seen)
}

/// The file over its parents, key by key.
fn inherit(name: &str, file: File, seen: &mut Vec<String>) -> Result<File, ThemeError> {
    let Some(parent) = file.inherits.clone() else { return Ok(file) };
    if seen.contains(&parent) {
        return Err(ThemeError::Circle { name: name.to_owned(), parent });
    }
    let mut merged = load(&parent, seen)?;
    merged.palette.extend(file.palette);
    merged.meaning.extend(file.meaning);
    merged.about = file.about;
    Ok(merged)
}

fn build(name: &str, file: File) -> Result<Theme, ThemeError> {
    for key in file.meaning.keys() {
        if !Meaning::ALL.iter().any(|m| m.key() == key) {
            let keys: Vec<&str> = Meaning::ALL.iter().map(|m| m.key()).collect();
            let nearest = similar::get_close_matches(key.as_str(), &keys, 1, 0.0).first().copied().unwrap_or_default();
            return Err(ThemeError::Key { name: name.to_owned(), key: key.clone(), nearest: nearest.to_owned() });
        }
    }
    let mut styles = BTreeMap::new();
    for meaning in Meaning::ALL {
        let mut at = Some(*meaning);
        // The chain of fallbacks ends: each step is declared by hand above, and a test walks them all.
        while let Some(m) = at {
            if let Some(entry) = file.meaning.get(m.key()) {
                styles.insert(*meaning, style(name, m.key(), entry, &file.palette)?);
                break;
            }
            at = m.fallback();
        }
    }
    Ok(Theme { name: name.to_owned(), about: file.about, styles })
}

fn style(name: &str, key: &str, entry: &Entry, palette: &BTreeMap<String, String>) -> Result<Style, ThemeError> {
    let color = |text: &String| {
        let found = palette.get(text).unwrap_or(text);
        parse_color(found).ok_or_else(|| ThemeError::Color {
            name: name.to_owned(),
            key: key.to_owned(),
            color: text.clone(),
        })
    };
    let mut style = Style::new();
    style.fg = entry.fg.as_ref().map(color).transpose()?;
    style.bg = entry.bg.as_ref().map(color).transpose()?;
    for (on, modifier) in [
        (entry.bold, Modifier::BOLD),
        (entry.dim, Modifier::DIM),
        (entry.italic, Modifier::ITALIC),
        (entry.underline, Modifier::UNDERLINED),
        (entry.reverse, Modifier::REVERSED),
    ] {
        if on {
            style = style.add_modifier(modifier);
        }
    }
    Ok(style)
}

fn parse_color(text: &str) -> Option<Color> {
    if let Some(hex) = text.strip_prefix('#') {
        let all_hex = hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        let value = u32::from_str_radix(hex, 16).ok().filter(|_| all_hex)?;
        return Some(Color::Rgb((value >> 16) as u8, (value >> 8) as u8, value as u8));
    }
    Some(match text {
        "default" => Color::Reset,
        "black" => Color::Black,
        "red" => Color::Red,
        "green" => Color::Green,
        "yellow" => Color::Yellow,
        "blue" => Color::Blue,
        "magenta" => Color::Magenta,
        "cyan" => Color::Cyan,
        "grey" => Color::Gray,
        "dark grey" => Color::DarkGray,
        "light red" => Color::LightRed,
        "light green" => Color::LightGreen,
        "light yellow" => Color::LightYellow,
        "light blue" => Color::LightBlue,
        "light magenta" => Color::LightMagenta,
        "light cyan" => Color::LightCyan,
        "white" => Color::White,
        _ => return None,
    })
}

/// The nearest of the 256 colours that are the same on every terminal: the cube and the greys.
fn to_cube(color: Color) -> Color {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let Color::Rgb(r, g, b) = color else { return color };
    let nearest = |v: u8| (0..6).min_by_key(|i| LEVELS[*i].abs_diff(v)).unwrap_or(0);
    let (i, j, k) = (nearest(r), nearest(g), nearest(b));
    let cube = (16 + 36 * i + 6 * j + k, [LEVELS[i], LEVELS[j], LEVELS[k]]);
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let step = (mean.saturating_sub(3) / 10).min(23) as u8;
    let grey = (232 + usize::from(step), [8 + 10 * step; 3]);
    let distance = |c: [u8; 3]| -> u32 { c.iter().zip([r, g, b]).map(|(x, y)| u32::from(x.abs_diff(y)).pow(2)).sum() };
    let (index, _) = if distance(grey.1) < distance(cube.1) { grey } else { cube };
    Color::Indexed(index as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_theme_has_a_style_for_every_meaning() {
        for name in Theme::names() {
            let theme = Theme::named(name).unwrap();
            assert!(!theme.about.is_empty(), "{name}");
            for meaning in Meaning::ALL {
                assert!(theme.styles.contains_key(meaning), "{name} {}", meaning.key());
            }
        }
    }

    /// Proves: U6
    #[test]
    fn mono_has_no_colour_and_ansi_only_the_sixteen() {
        for (name, allowed) in [("mono", false), ("ansi", true)] {
            for (meaning, style) in Theme::named(name).unwrap().styles {
                for color in [style.fg, style.bg].into_iter().flatten() {
                    assert!(allowed && !matches!(color, Color::Rgb(..) | Color::Indexed(_)), "{name} {meaning:?}");
                }
            }
        }
    }

    /// Of two colours, by WCAG 2.1.
    fn contrast(a: Color, b: Color) -> f64 {
        let luminance = |color: Color| {
            let Color::Rgb(r, g, b) = color else { panic!("{color:?}") };
            let part = |v: u8| {
                let v = f64::from(v) / 255.0;
                if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_text_can_be_read_on_its_ground_and_on_the_selection() {
        // Lines and empty bars are no text.
        let drawn = [Meaning::Rule, Meaning::Track];
        for (name, least) in [("dark", 4.5), ("light", 4.5), ("safe", 4.5), ("contrast", 7.0)] {
            let theme = Theme::named(name).unwrap();
            let ground = |meaning| theme.style(meaning).bg.unwrap();
            for meaning in Meaning::ALL.iter().filter(|meaning| !drawn.contains(meaning)) {
                let Some(fg) = theme.style(*meaning).fg else { continue };
                let own = theme.style(*meaning).bg.unwrap_or_else(|| match meaning {
                    Meaning::BarStrong => ground(Meaning::Bar),
                    _ => ground(Meaning::Text),
                });
                let found = contrast(fg, own);
                assert!(found >= least, "{name}: {} has {found:.1} on its ground", meaning.key());
                // On the selected row it has to be told apart, if not with the same ease.
                let selected = contrast(fg, ground(Meaning::Selection));
                let exempt = matches!(meaning, Meaning::Bar | Meaning::BarStrong | Meaning::Input | Meaning::Float);
                assert!(exempt || selected >= 3.0, "{name}: {} has {selected:.1} when selected", meaning.key());
            }
        }
    }

    /// Red and green as they look without the cones for one of them (Viénot, Brettel and Mollon 1999, in linear light).
    #[test]
    fn the_safe_theme_tells_done_from_failed_without_red_or_green_cones() {
        let linear = |v: u8| (f64::from(v) / 255.0).powf(2.2);
        let seen = |color: Option<Color>, matrix: [[f64; 3]; 3]| {
            let Some(Color::Rgb(r, g, b)) = color else { panic!("{color:?}") };
            let rgb = [linear(r), linear(g), linear(b)];
            matrix.map(|row| row.iter().zip(rgb).map(|(m, v)| m * v).sum::<f64>().clamp(0.0, 1.0).powf(1.0 / 2.2))
        };
        let protan = [[0.1124, 0.8876, 0.0], [0.1124, 0.8876, 0.0], [0.0040, -0.0040, 1.0]];
        let deutan = [[0.2928, 0.7072, 0.0], [0.2928, 0.7072, 0.0], [-0.0223, 0.0223, 1.0]];
        let theme = Theme::named("safe").unwrap();
        for matrix in [protan, deutan] {
            let of = |meaning| seen(theme.style(meaning).fg, matrix);
            for (a, b) in [(Meaning::Ok, Meaning::Fail), (Meaning::Ok, Meaning::Warn), (Meaning::Run, Meaning::Fail)] {
                let distance = of(a).iter().zip(of(b)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
                assert!(distance > 0.3, "{a:?} and {b:?}: {distance:.2}");
            }
        }
    }

    #[test]
    fn ok_and_fail_differ_in_brightness_too() {
        let luminance = |color: Option<Color>| match color {
            Some(Color::Rgb(r, g, b)) => 0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b),
            other => panic!("{other:?}"),
        };
        for name in ["dark", "light", "safe"] {
            let theme = Theme::named(name).unwrap();
            let (ok, fail) = (luminance(theme.style(Meaning::Ok).fg), luminance(theme.style(Meaning::Fail).fg));
            assert!((ok - fail).abs() > 10.0, "{name}: {ok} {fail}");
        }
    }

    #[test]
    fn a_terminal_of_256_colours_gets_the_nearest_of_them() {
        assert_eq!(to_cube(Color::Rgb(255, 0, 0)), Color::Indexed(196));
        assert_eq!(to_cube(Color::Rgb(18, 18, 18)), Color::Indexed(233));
        assert_eq!(to_cube(Color::LightRed), Color::LightRed);
        let theme = Theme::named("dark").unwrap().at_depth(Depth::Cube);
        assert!(matches!(theme.style(Meaning::Fail).fg, Some(Color::Indexed(_))));
        assert_ne!(theme.style(Meaning::Text).bg, theme.style(Meaning::Selection).bg, "the selection still shows");
    }

    #[test]
    fn a_theme_that_cannot_be_used_says_why() {
        let wrong = |text: &str| Theme::parse("mine", text).unwrap_err().to_string();
        assert_eq!(
            wrong("[meaning]\nfial = { bold = true }"),
            "theme 'mine' has 'fial', which is no meaning; the nearest is 'fail'"
        );
        assert!(wrong("inherits = 'dark'\n[meaning]\nok = { fg = 'greenish' }").contains("'greenish' of 'ok'"));
        assert!(
            wrong("inherits = 'drak'")
                .contains("there is no theme 'drak'; there are dark, light, contrast, safe, mono, ansi")
        );
        let parsed = Theme::parse("mine", "inherits = 'dark'\n[palette]\ngreen = '#00ff00'").unwrap();
        assert_eq!(parsed.style(Meaning::Ok).fg, Some(Color::Rgb(0, 255, 0)));
    }
}
