//! What the environment says of the terminal: how many colours, and whether it has more than ASCII (C-46).

use super::theme::Depth;

/// What the console looks like before anybody chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub theme: String,
    pub depth: Depth,
    pub ascii: bool,
}

/// Reads the environment through `var`; `theme` and `ascii` are what was asked for by configuration or switch.
pub fn look(var: impl Fn(&str) -> Option<String>, theme: Option<&str>, ascii: bool) -> Found {
    let set = |name: &str| var(name).filter(|v| !v.is_empty());
    let term = set("TERM").unwrap_or_default();
    // The first that is set decides, as the C library has it.
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| set(name)).unwrap_or_default().to_lowercase();
    let utf8 = locale.contains("utf-8") || locale.contains("utf8");
    let bare = matches!(term.as_str(), "" | "dumb" | "linux" | "vt100" | "vt220");
    let colorterm = set("COLORTERM").unwrap_or_default().to_lowercase();
    let depth = if colorterm.contains("truecolor") || colorterm.contains("24bit") || term.contains("direct") {
        Depth::True
    } else if term.contains("256color") {
        Depth::Cube
    } else {
        Depth::Sixteen
    };
    // NO_COLOR takes the colours and nothing else; a terminal that knows no colours gets none either.
    let theme = if set("NO_COLOR").is_some() || matches!(term.as_str(), "" | "dumb" | "vt100" | "vt220") {
        "mono"
    } else {
        theme.unwrap_or(if depth == Depth::Sixteen { "ansi" } else { "dark" })
    };
    Found { theme: theme.to_owned(), depth, ascii: ascii || !utf8 || bare }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(vars: &[(&str, &str)]) -> (String, Depth, bool) {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        let found = look(var, None, false);
        (found.theme, found.depth, found.ascii)
    }

    /// Case: C-46. Proves: U6
    #[test]
    fn no_color_takes_colour_only_and_the_locale_takes_the_glyphs() {
        let utf8 = ("LANG", "en_GB.UTF-8");
        let xterm = ("TERM", "xterm-256color");
        let is = |theme: &str, depth, ascii| (theme.to_owned(), depth, ascii);
        assert_eq!(found(&[utf8, xterm, ("COLORTERM", "truecolor")]), is("dark", Depth::True, false));
        assert_eq!(found(&[utf8, xterm]), is("dark", Depth::Cube, false));
        assert_eq!(found(&[utf8, xterm, ("NO_COLOR", "1")]), is("mono", Depth::Cube, false));
        assert_eq!(found(&[utf8, xterm, ("NO_COLOR", "")]), is("dark", Depth::Cube, false));
        assert_eq!(found(&[("LANG", "C"), xterm]), is("dark", Depth::Cube, true));
        assert_eq!(found(&[("LC_ALL", "C"), utf8, xterm]), is("dark", Depth::Cube, true));
        assert_eq!(found(&[utf8, ("TERM", "linux")]), is("ansi", Depth::Sixteen, true));
        assert_eq!(found(&[utf8, ("TERM", "dumb")]), is("mono", Depth::Sixteen, true));
        assert_eq!(found(&[utf8, ("TERM", "xterm")]), is("ansi", Depth::Sixteen, false));
    }

    #[test]
    fn what_was_asked_for_wins_over_what_was_found_but_not_over_no_color() {
        let var = |name: &str| (name == "TERM").then(|| "xterm-256color".to_owned());
        assert_eq!(look(var, Some("light"), false).theme, "light");
        let no_color = |name: &str| matches!(name, "NO_COLOR" | "TERM").then(|| "xterm".to_owned());
        assert_eq!(look(no_color, Some("light"), true).theme, "mono");
    }
}
