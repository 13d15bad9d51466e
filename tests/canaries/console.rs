//! The console over what has happened: every screen that tells of a run, the log, and the clipboard.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Outputs;
use super::pty::{Pty, command};
use super::site::{BAD, GOOD, Place};

/// Looks at every host with what failed there, opens a run, copies and exports; so many screens were looked at.
pub fn walk(place: &Place, outputs: &mut Outputs) -> usize {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_muster"));
    let arguments = ["--config", place.config.to_str().unwrap(), "--state-dir", place.state.to_str().unwrap()];
    let mut command = command(&program, &arguments, &place.state);
    command.env("MUSTER_LOG", "trace");
    let mut pty = Pty::start(command, 180, 50);
    let mut screens = Vec::new();
    let mut look = |pty: &Pty| screens.push(pty.text());
    pty.shows("bad-node");
    for _ in BAD.iter().chain(&[("", ""); GOOD.len()]) {
        look(&pty);
        pty.keys("j");
        std::thread::sleep(std::time::Duration::from_millis(40));
    }
    pty.keys("y");
    pty.shows("copied ");
    pty.burst("\u{1b}");
    pty.wait("the message gone", |s| !s.contents().contains("copied "));
    pty.keys("w");
    pty.shows("with hands at the rack");
    look(&pty);
    pty.keys("\r");
    pty.shows("CABLES_WRONG");
    look(&pty);
    pty.keys("y");
    pty.shows("copied ");
    pty.keys("E");
    pty.shows(".md");
    look(&pty);
    pty.keys("v");
    pty.shows("newest at the end");
    look(&pty);
    pty.signal("TERM");
    assert!(pty.ended().success());
    let written = pty.written();
    let copied = copied(&written);
    assert!(copied.len() >= 2, "{} copies", copied.len());
    outputs.push(("the clipboard".to_owned(), copied.join("\n").into_bytes()));
    outputs.push(("the terminal".to_owned(), written.into_bytes()));
    let count = screens.len();
    for (n, screen) in screens.iter().enumerate() {
        // A text that is wrapped, too.
        let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
        outputs.push((format!("screen {n}"), screen.clone().into_bytes()));
        outputs.push((format!("screen {n} in one line"), rows.concat().into_bytes()));
    }
    count
}

/// What was put on the clipboard (OSC 52).
fn copied(written: &str) -> Vec<String> {
    let parts = written.split("\u{1b}]52;c;").skip(1);
    let texts = parts.filter_map(|part| part.split(['\u{7}', '\u{1b}']).next());
    texts.map(|text| String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()).collect()
}
