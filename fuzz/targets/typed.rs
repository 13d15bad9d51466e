//! What people type or edit: the configuration, themes, filters; and the one function between any text and a terminal.

use muster::domain::text::{neutralize, neutralize_to};
use muster::tui::model::filter::{Query, subsequence};
use muster::tui::theme::Theme;

use super::is_safe;

pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match muster::config::parse(text, "muster.toml") {
        Ok(settings) => assert!(!settings.sites.is_empty()),
        Err(errors) => {
            // The second with the line shown and marked. A tab may stand in a line of TOML.
            for said in [errors.to_string(), errors.pointed()] {
                assert!(said.lines().all(|line| is_safe(&line.replace('\t', " "))), "{said:?}");
            }
        }
    }
}

pub fn theme(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Theme::parse("own", text) {
        let said = error.to_string();
        assert!(said.lines().all(is_safe), "{said:?}");
    }
}

pub fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let query = Query::parse(&text);
    // Read from what was read it is the same.
    assert_eq!(Query::parse(text.trim()).is_empty(), query.is_empty());
    subsequence("gpu-b07-39", &text);
}

pub fn terminal_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let clean = neutralize(&text);
    assert!(is_safe(&clean), "{clean:?}");
    assert_eq!(neutralize(&clean), clean, "twice is as once");
    assert!(clean.chars().count() <= text.chars().count());
    let cut = neutralize_to(&text, 40);
    assert!(cut.chars().count() <= 40 && is_safe(&cut));
}
