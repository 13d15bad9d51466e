//! Each key of the table of actions, pressed on the real program: what it does shows on the screen.
//!
//! The stories below are walked from step to step in one program each. That no row of the table is left out is a test of its
//! own: a new action, or a new key of an old one, needs a step here.

#[path = "support/pty.rs"]
mod pty;

use std::path::PathBuf;
use std::time::Duration;

use muster::tui::action::{Action, TABLE, Where};
use muster::tui::event::Key;
use muster::tui::keymap::{Keymap, Resolved};
use pty::{Pty, bytes, command};
use vt100::Screen;

/// What is seen of a key.
#[derive(Debug, Clone, Copy)]
enum See {
    /// A text comes.
    Text(&'static str),
    /// A text goes.
    Gone(&'static str),
    /// The fleet's cursor is on this host: the strip below tells of it.
    Host(&'static str),
    /// An earlier moment of a replay than before, and a later one.
    Earlier,
    Later,
    /// The whole screen is written once more.
    Redrawn,
    /// The terminal is the shell's until the program is told to go on.
    Stops,
    Ends,
}

use See::{Earlier, Ends, Gone, Host, Later, Redrawn, Stops, Text};
use Where::{Compare, Confirm, Filter, Fleet, Help, History, Launch, Log, Palette, Plan, Power, Run, Walk};

/// A key in a place, and what is seen of it.
type Step = (Where, &'static str, See);

#[rustfmt::skip]
const FLEET: &[Step] = &[
    (Fleet, "j", Host("gpu-a11-38")), (Fleet, "k", Host("gpu-a11-40")),
    (Fleet, "down", Host("gpu-a11-38")), (Fleet, "up", Host("gpu-a11-40")),
    (Fleet, "G", Host("hv-c02-34")), (Fleet, "g g", Host("gpu-a11-40")),
    (Fleet, "end", Host("hv-c02-34")), (Fleet, "home", Host("gpu-a11-40")),
    (Fleet, "ctrl-d", Host("gpu-b06-35")), (Fleet, "ctrl-u", Host("gpu-a11-40")),
    (Fleet, "pgdn", Host("gpu-b06-35")), (Fleet, "pgup", Host("gpu-a11-40")),
    (Fleet, "tab", Text("▌places")), (Fleet, "shift-tab", Text("▌all sites")),
    (Fleet, "h", Text("▌places")), (Fleet, "l", Text("▌all sites")),
    (Fleet, "left", Text("▌places")), (Fleet, "right", Text("▌all sites")),
    (Fleet, "space", Text("◆")), (Fleet, "esc", Gone("◆")),
    (Fleet, "/", Text("enter keep")),
    (Filter, "b", Text("of 32")), (Filter, "0", Text("of 32")), (Filter, "7", Text("9 of 32")), (Filter, "3", Text("5 of 32")),
    (Filter, "enter", Gone("enter keep")),
    (Fleet, "n", Host("gpu-b07-33")), (Fleet, "N", Host("gpu-b07-37")), (Fleet, "esc", Gone("of 32")),
    (Fleet, "y", Text("copied ")), (Fleet, "esc", Gone("copied")),
    (Fleet, "L", Text("the locator of gpu-b07-37 is on")), (Fleet, "esc", Gone("is on")), (Fleet, "esc", Gone("asking")),
    (Fleet, "P", Text("nobody lives on it")), (Power, "j", Text("▌ power off ")), (Power, "k", Text("▌ power on")),
    (Power, "enter", Text("the power of gpu-b07-37")), (Fleet, "esc", Gone("the power of")), (Fleet, "esc", Gone("asking")),
    (Fleet, "ctrl-r", Text("NetBox and Ironic were read")), (Fleet, "esc", Gone("were read")), (Fleet, "esc", Gone("asking")),
    (Fleet, "v", Text("newest at the end")), (Log, "q", Gone("newest at the end")),
    (Fleet, "T", Text("▌ theme dark")),
    (Palette, "down", Text("▌ theme light")), (Palette, "up", Text("▌ theme dark")),
    (Palette, "ctrl-n", Text("▌ theme light")), (Palette, "ctrl-p", Text("▌ theme dark")),
    (Palette, "enter", Gone("┏")), (Fleet, "esc", Gone("theme dark")),
    (Fleet, ":", Text("┏━ command")), (Palette, "esc", Gone("┏")),
    (Fleet, "?", Text("keys of the fleet")), (Help, "esc", Gone("keys of the fleet")),
    (Fleet, "s", Text("by name ▾")), (Fleet, "S", Text("by name ▴")),
    (Fleet, "ctrl-l", Redrawn),
    (Fleet, "ctrl-z", Stops),
    (Fleet, "ctrl-c", Ends),
];

#[rustfmt::skip]
const RUN: &[Step] = &[
    (Fleet, "w", Text("with hands at the rack")), (Walk, "enter", Text("CABLES_WRONG")),
    (Run, "a", Gone("more agree")), (Run, "a", Text("more agree")),
    (Run, "[", Text("[ ] turn")), (Run, "{", Earlier), (Run, "{", Earlier), (Run, "}", Later), (Run, "]", Later),
    (Run, "esc", Gone("replay")),
    (Run, "M", Text("plugged in as NetBox has them")), (Run, "esc", Gone("plugged in")),
    (Run, "f", Text("· running")),
    (Run, "x", Text("[ let it run ]")),
    (Confirm, "tab", Text("[ cancel the run ]")), (Confirm, "left", Text("[ let it run ]")),
    (Confirm, "right", Text("[ cancel the run ]")), (Confirm, "h", Text("[ let it run ]")),
    (Confirm, "l", Text("[ cancel the run ]")), (Confirm, "shift-tab", Text("[ let it run ]")),
    (Confirm, "tab", Text("[ cancel the run ]")), (Confirm, "enter", Text("· cancelled")),
    (Run, "r", Text("· succeeded")),
    (Run, "e", Text("▌[✓] run inspection")),
    (Launch, "space", Text("▌[ ] run inspection")), (Launch, "space", Text("▌[✓] run inspection")),
    (Launch, "tab", Text("▌[ ] force inspection")), (Launch, "shift-tab", Text("▌[✓] run inspection")),
    (Launch, "p", Text(" reads")), (Plan, "esc", Gone("┏━ plan")),
    (Launch, "enter", Gone("┏━ enroll")),
    (Run, "E", Text("is written to")), (Run, "esc", Gone("is written to")),
    (Run, "H", Text("4 runs")),
    (History, "j", Text("succeeded")), (History, "space", Text("1 of 2 marked")),
    (History, "j", Text("failed · took")), (History, "space", Text("2 of 2 marked")),
    (History, "c", Text("two runs")),
    (Compare, "ctrl-d", Text("inspection diff")), (Compare, "ctrl-d", Text("more agree")), (Compare, "a", Gone("more agree")), (Compare, "q", Gone("two runs")),
    (History, "enter", Gone("of 2 marked")), (Run, "q", Text("of 2 marked")), (History, "q", Gone("of 2 marked")),
    (Run, "q", Text("nothing waits for a person here")), (Walk, "q", Text("places")),
    (Fleet, "enter", Text("· succeeded")), (Run, "u", Text("B07 front")),
];

/// What a key means in a place, as the program looks it up.
fn meant(place: Where, keys: &str) -> Option<Action> {
    let map = Keymap::default();
    let mut prefix = None;
    for key in keys.split(' ') {
        let key: Key = key.parse().unwrap();
        match map.resolve(place, prefix, key) {
            Resolved::Prefix => prefix = Some(key),
            Resolved::Action(action) => return Some(action),
            Resolved::Nothing => return None,
        }
    }
    None
}

/// Proves: U6
#[test]
fn every_key_of_every_row_of_the_table_has_a_step_here() {
    let steps: Vec<(Action, Where, &str)> =
        FLEET.iter().chain(RUN).filter_map(|(place, key, _)| Some((meant(*place, key)?, *place, *key))).collect();
    let mut missing = Vec::new();
    for def in TABLE {
        let has = |key: &&&str| {
            steps
                .iter()
                .any(|(action, place, pressed)| *action == def.action && def.works_in(*place) && *pressed == **key)
        };
        missing.extend(def.keys.iter().filter(|key| !has(key)).map(|key| (def.name, key)));
    }
    assert!(missing.is_empty(), "these have no step: {missing:?}");
}

/// Proves: U1, U2, U6, U7, U10
#[test]
fn the_keys_of_the_fleet_do_on_the_real_program_what_the_table_says() {
    walk(FLEET, "8");
}

/// Proves: U3, U4, U5, U6, U11
#[test]
fn the_keys_of_the_stops_and_of_runs_do_on_the_real_program_what_the_table_says() {
    walk(RUN, "60");
}

/// Walks a story from the demo's first frame on, behind its past.
fn walk(story: &[Step], speed: &str) {
    let folder = tempfile::tempdir().unwrap();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_muster"));
    let mut pty = Pty::start(command(&binary, &["demo", "--speed", speed], folder.path()), 100, 32);
    pty.shows("1 for you");
    pty.wait("the first host", |s| on_host(s, "gpu-a11-40"));
    for (at, (place, key, see)) in story.iter().enumerate() {
        let what = format!("step {at}: {key} in {place:?}: {see:?}");
        // Hands look before they press.
        std::thread::sleep(Duration::from_millis(40));
        let (written, moment) = (pty.written().len(), pty.look(replayed));
        pty.keys_of(&bytes(key));
        match see {
            Text(text) => pty.wait(&what, |s| s.contents().contains(text)),
            Gone(text) => pty.wait(&what, |s| !s.contents().contains(text)),
            Host(name) => pty.wait(&what, |s| on_host(s, name)),
            Earlier => pty.wait(&what, |s| replayed(s).is_some_and(|now| Some(now) < moment)),
            Later => pty.wait(&what, |s| replayed(s).is_none_or(|now| Some(now) > moment)),
            Redrawn => pty.wait(&what, |_| pty.written().len() > written + 2000),
            Stops => {
                pty.wait(&what, |s| !s.alternate_screen() && !s.hide_cursor());
                pty.signal("CONT");
                pty.wait(&what, |s| s.alternate_screen() && s.contents().contains("places"));
            }
            Ends => {
                assert!(pty.ended().success(), "{what}");
                pty.wait(&what, |s| !s.alternate_screen());
                assert!(pty.is_given_back(), "{what}");
            }
        }
    }
}

/// Whether the strip of the fleet tells of a host.
fn on_host(screen: &Screen, name: &str) -> bool {
    let contents = screen.contents();
    contents.lines().rev().take(6).any(|line| line.trim_start().starts_with(name))
}

/// The moment of a replay, by its number.
fn replayed(screen: &Screen) -> Option<u32> {
    let contents = screen.contents();
    let (number, _) = contents.split_once("replay ")?.1.split_once(' ')?;
    number.parse().ok()
}
