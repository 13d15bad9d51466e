//! A change of a whole text as lines that went and lines that came.
//!
//! Most writes change one value, and stand on one line with an arrow. A file has lines: its text ends each of them with a
//! line feed, and that is how the two are told apart.

use similar::{ChangeTag, TextDiff};

use super::text::neutralize;

/// How a line stands in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Same,
    Gone,
    New,
}

impl Sign {
    pub fn as_str(self) -> &'static str {
        match self {
            Sign::Same => " ",
            Sign::Gone => "-",
            Sign::New => "+",
        }
    }
}

/// Whether a change is one of a text with lines.
pub fn has_lines(before: &str, after: &str) -> bool {
    before.contains('\n') || after.contains('\n')
}

/// The lines of both texts, each safe for a terminal. What is no text with lines (that there was none) has none.
pub fn diff(before: &str, after: &str) -> Vec<(Sign, String)> {
    let text = |side: &str| if side.contains('\n') { side.to_owned() } else { String::new() };
    let (before, after) = (text(before), text(after));
    let diff = TextDiff::from_lines(before.as_str(), after.as_str());
    let line = |change: similar::Change<&str>| {
        let sign = match change.tag() {
            ChangeTag::Equal => Sign::Same,
            ChangeTag::Delete => Sign::Gone,
            ChangeTag::Insert => Sign::New,
        };
        (sign, neutralize(change.value().trim_end_matches(['\r', '\n'])).into_owned())
    };
    diff.iter_all_changes().map(line).collect()
}

/// A text with lines as one line: for places that have no more room.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_went_stand_before_those_that_came() {
        let before = "host a {\n  hardware ethernet 02:aa:00:00:00:02;\n  fixed-address 10.0.0.1;\n}\n";
        let after = before.replace("10.0.0.1", "10.0.0.2");
        let shown: Vec<String> =
            diff(before, &after).into_iter().map(|(sign, line)| format!("{}{line}", sign.as_str())).collect();
        assert_eq!(
            shown,
            [
                " host a {",
                "   hardware ethernet 02:aa:00:00:00:02;",
                "-  fixed-address 10.0.0.1;",
                "+  fixed-address 10.0.0.2;",
                " }"
            ]
        );
        let new = diff("no file", "dhcp-host=02:aa:00:00:00:02,10.0.0.1,a\n");
        assert_eq!(new, [(Sign::New, "dhcp-host=02:aa:00:00:00:02,10.0.0.1,a".to_owned())]);
        assert!(has_lines("no file", "a\n") && !has_lines("on", "off"));
        assert_eq!(diff("", "\u{1b}[31mred\r\n")[0].1, "\u{fffd}[31mred");
    }
}
