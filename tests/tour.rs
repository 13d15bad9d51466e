//! The keystrokes of docs/tour.md, pressed on the real program as they stand there.

#[path = "support/pty.rs"]
mod pty;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pty::{Pty, bytes, command};

/// A row of the page: keys, and what is to show.
struct Step {
    keys: Vec<String>,
    shows: Option<String>,
}

/// The rows of the page's table.
fn steps() -> Vec<Step> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tour.md")).unwrap();
    let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        Step { keys: quoted(cells[1]), shows: quoted(cells[2]).into_iter().next() }
    })
    .collect()
}

/// Proves: U4, U5, U6
#[test]
fn the_tour_leads_from_a_failed_host_to_an_available_one_by_the_keys_of_the_page() {
    let steps = steps();
    assert!(steps.len() > 10 && steps.iter().filter(|step| step.shows.is_some()).count() > 10);
    let folder = tempfile::tempdir().unwrap();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_muster"));
    let mut pty = Pty::start(command(&binary, &["demo", "--speed", "60"], folder.path()), 100, 32);
    let began = Instant::now();
    for step in &steps {
        // Hands read what they waited for before they press the next key.
        std::thread::sleep(Duration::from_millis(60));
        step.keys.iter().for_each(|key| pty.keys_of(&bytes(key)));
        if let Some(text) = &step.shows {
            pty.shows(text);
        }
    }
    assert!(pty.ended().success());
    println!("the tour took {:?}", began.elapsed());
}
