//! The real binary under a pseudo terminal: first frame, sizes, keys, pastes, and every way out.

#[path = "support/pty.rs"]
mod pty;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pty::{Pty, command};
use tempfile::TempDir;
use vt100::Color;

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_muster"))
}

fn demo(arguments: &[&str]) -> (Pty, TempDir) {
    demo_in(100, 32, arguments, &[])
}

fn demo_in(columns: u16, rows: u16, arguments: &[&str], variables: &[(&str, &str)]) -> (Pty, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec!["demo", "--fresh"];
    all.extend(arguments);
    let mut command = command(&binary(), &all, folder.path());
    for (name, value) in variables {
        command.env(name, value);
    }
    (Pty::start(command, columns, rows), folder)
}

/// Cells of the screen that have a colour.
fn colours(pty: &Pty) -> usize {
    pty.look(|s| {
        let cells = (0..32).flat_map(|row| (0..100).map(move |column| (row, column)));
        cells
            .filter_map(|(r, c)| s.cell(r, c))
            .filter(|c| c.fgcolor() != Color::Default || c.bgcolor() != Color::Default)
            .count()
    })
}

/// Goes to a host by the palette.
fn go(pty: &mut Pty, host: &str) {
    pty.keys(":");
    pty.shows("command");
    pty.burst(&format!("host {host}"));
    pty.shows(&format!("host {host}"));
    std::thread::sleep(Duration::from_millis(100));
    pty.keys("\r");
    pty.wait("the host selected", |s| {
        !s.contents().contains("┏") && s.contents().lines().rev().take(6).any(|l| l.trim_start().starts_with(host))
    });
}

/// Proves: U1, U7
#[test]
fn the_demo_shows_its_fleet_and_gives_the_terminal_back() {
    let (mut pty, _folder) = demo(&[]);
    pty.shows("all sites");
    pty.shows("gpu-");
    assert!(pty.look(|s| s.alternate_screen() && s.hide_cursor() && s.bracketed_paste()));
    // A frame may be looked at while it is drawn.
    pty.shows("osl1");
    pty.shows("ams2");
    pty.keys("q");
    assert!(pty.ended().success());
    pty.wait("the terminal given back", |s| !s.alternate_screen());
    assert!(pty.is_given_back());
}

/// Proves: U6, U7
#[test]
fn every_size_shows_what_fits_and_growing_back_restores_it() {
    let (mut pty, _folder) = demo(&[]);
    pty.shows("places");
    for (columns, rows, text) in [
        (60, 20, "last run"),
        (40, 10, "muster needs 60×20"),
        (14, 54, "muster"),
        (1, 1, ""),
        (200, 60, "events"),
        (100, 32, "places"),
    ] {
        pty.resize(columns, rows);
        if columns == 200 {
            // The side shows a host's run only where there is one: the heading is enough.
            pty.wait("the column of details", |s| s.contents().contains("host "));
        } else {
            pty.shows(text);
        }
    }
    pty.keys("?");
    pty.shows("keys of the fleet");
    pty.resize(60, 20);
    pty.shows("j k scroll");
    pty.keys("\u{1b}");
    pty.wait("the help gone", |s| !s.contents().contains("keys of the fleet"));
    pty.keys("q");
    assert!(pty.ended().success());
}

/// Proves: U2, U3, U4, U10
#[test]
fn a_staged_host_is_enrolled_by_two_keys_and_the_view_follows_it_to_the_end() {
    let (mut pty, _folder) = demo(&["--speed", "30"]);
    pty.shows("gpu-a11-36");
    go(&mut pty, "gpu-a11-36");
    pty.keys("e");
    pty.shows("enter starts gpu-a11-36");
    pty.keys("\r");
    pty.shows("running");
    pty.shows("link guard");
    assert!(!pty.written().contains('\u{7}'));
    pty.shows("succeeded");
    pty.shows("by jo");
    pty.wait("the bell", |_| pty.written().contains('\u{7}'));
    pty.keys("q");
    pty.shows("✓ enrolled");
    pty.keys("q");
    assert!(pty.ended().success());
}

/// Proves: U7, G5
#[test]
fn with_runs_under_way_quitting_asks_and_ctrl_c_twice_does_not() {
    let (mut pty, _folder) = demo(&["--speed", "1"]);
    pty.shows("gpu-a11-36");
    go(&mut pty, "gpu-a11-36");
    pty.keys("e");
    pty.shows("enter starts gpu-a11-36");
    pty.keys("\r");
    pty.shows("running");
    pty.keys("q");
    pty.shows("places");
    pty.keys("q");
    pty.shows("quit · 1 run under way");
    pty.keys("\r");
    pty.wait("the question gone", |s| !s.contents().contains("quit · 1 run"));
    pty.keys("\u{3}");
    pty.shows("quit · 1 run under way");
    pty.keys("\u{3}");
    assert!(pty.ended().success());
    pty.wait("the terminal given back", |s| !s.alternate_screen());
}

/// Case: C-45. Proves: U6
#[test]
fn a_paste_starts_nothing_with_brackets_and_without() {
    let (mut pty, _folder) = demo(&[]);
    pty.shows("gpu-a11-36");
    go(&mut pty, "gpu-a11-36");
    pty.burst("\u{1b}[200~e\n\nr\nx\nq\n\u{1b}[201~");
    pty.shows("paste ignored");
    pty.burst("e\r\r\r");
    pty.shows("was not done");
    pty.burst("\u{1b}");
    std::thread::sleep(Duration::from_millis(200));
    pty.burst("q\nq\nq\n");
    std::thread::sleep(Duration::from_millis(300));
    assert!(pty.child.try_wait().unwrap().is_none(), "a burst ended the console");
    assert!(!pty.text().contains("running"), "{}", pty.text());
}

/// Case: C-44. Proves: U7
#[test]
fn signals_give_the_terminal_back_and_end_the_process() {
    for signal in ["HUP", "TERM", "INT"] {
        let (mut pty, _folder) = demo(&[]);
        pty.shows("gpu-");
        let raw = pty.modes();
        assert!(raw.contains("-icanon") && raw.contains("-echo "), "{raw}");
        pty.signal(signal);
        assert!(pty.ended().success(), "SIG{signal}");
        pty.wait("the terminal given back", |s| !s.alternate_screen());
        assert!(pty.is_given_back(), "SIG{signal}");
    }
}

/// Case: C-44. Proves: U7
#[test]
fn a_dropped_connection_ends_the_process_and_leaves_no_loop_behind() {
    let (mut pty, _folder) = demo(&[]);
    pty.shows("gpu-");
    let began = Instant::now();
    pty.hang_up();
    pty.ended();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// Proves: U7
#[test]
fn ctrl_z_gives_the_shell_its_terminal_and_fg_brings_the_console_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = command(Path::new("/bin/sh"), &["-i"], folder.path());
    shell.env("PS1", "shell> ");
    let mut pty = Pty::start(shell, 100, 32);
    pty.shows("shell>");
    pty.burst(&format!("{} demo --fresh\r", binary().display()));
    pty.wait("the console", |s| s.alternate_screen() && s.contents().contains("gpu-"));
    pty.keys("\u{1a}");
    pty.wait("the shell", |s| !s.alternate_screen() && !s.hide_cursor());
    pty.wait("its prompt", |s| s.contents().trim_end().ends_with("shell>"));
    pty.burst("echo between\r");
    pty.shows("between\n");
    pty.burst("fg\r");
    pty.wait("the console again", |s| s.alternate_screen() && s.contents().contains("gpu-"));
    pty.keys("?");
    pty.shows("keys of the fleet");
    pty.keys("\u{1b}");
    pty.wait("the help gone", |s| !s.contents().contains("keys of the fleet"));
    pty.keys("q");
    pty.wait("the shell", |s| !s.alternate_screen());
    pty.burst("exit\r");
    pty.ended();
}

/// A stop from outside, of which a console that reads keys alone would hear nothing.
///
/// Proves: U7
#[test]
fn a_stop_signal_gives_the_terminal_back_and_going_on_takes_it_again() {
    let (mut pty, _folder) = demo(&[]);
    pty.shows("gpu-");
    let id = pty.child.process_id().unwrap();
    let stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    };
    pty.signal("TSTP");
    pty.wait("the terminal given back", |s| !s.alternate_screen() && !s.hide_cursor());
    pty.wait("the stop", |_| stopped());
    assert!(is_cooked(&pty) && pty.is_given_back(), "{}", pty.modes());
    pty.signal("CONT");
    pty.wait("the console again", |s| s.alternate_screen() && s.contents().contains("gpu-"));
    assert!(!is_cooked(&pty));
    // One that cannot be heard leaves everything as it is; what the shell did meanwhile is undone afterwards.
    pty.signal("STOP");
    pty.wait("the stop", |_| stopped());
    pty.cook();
    pty.signal("CONT");
    pty.wait("raw keys again", |_| !is_cooked(&pty));
    pty.keys("?");
    pty.shows("keys of the fleet");
    pty.keys("\u{1b}");
    pty.wait("the help gone", |s| !s.contents().contains("keys of the fleet"));
    pty.keys("q");
    assert!(pty.ended().success());
    assert!(is_cooked(&pty) && pty.is_given_back());
}

/// Case: C-46. Proves: U6
#[test]
fn no_color_takes_the_colours_and_the_locale_takes_the_glyphs() {
    let (mut pty, _folder) = demo_in(100, 32, &[], &[("NO_COLOR", "1")]);
    pty.shows("▾ osl1");
    assert_eq!(colours(&pty), 0);
    assert!(
        pty.look(|s| (0..32).any(|row| s.cell(row, 40).is_some_and(|c| c.inverse()))),
        "the selection shows in reverse"
    );
    pty.keys("q");
    pty.ended();
    let (mut pty, _folder) = demo_in(100, 32, &[], &[("LANG", "C")]);
    pty.shows("v osl1");
    assert!(colours(&pty) > 0);
    assert!(pty.text().is_ascii(), "{}", pty.text());
    pty.keys("q");
    pty.ended();
}

#[test]
fn without_a_terminal_it_says_what_needs_none() {
    let folder = tempfile::tempdir().unwrap();
    let out = std::process::Command::new(binary())
        .arg("demo")
        .env("TMPDIR", folder.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("the console needs a terminal"), "{said}");
    assert!(!out.status.success());
}

/// What the child of the next test does: it takes the terminal and panics.
#[test]
#[ignore = "the child of the test below"]
fn child_that_panics() {
    muster::tui::terminal::watch_panics();
    let _screen = muster::tui::terminal::Screen::take(true).unwrap();
    panic!("boom in the midst of a frame");
}

/// Case: C-44. Proves: U7
#[test]
fn a_panic_gives_the_terminal_back_before_it_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let me = std::env::current_exe().unwrap();
    let arguments = ["--exact", "child_that_panics", "--ignored", "--nocapture", "--test-threads=1"];
    let mut pty = Pty::start(command(&me, &arguments, folder.path()), 100, 32);
    assert!(!pty.ended().success());
    pty.shows("boom in the midst of a frame");
    assert!(pty.is_given_back());
    assert!(is_cooked(&pty), "{}", pty.modes());
}

/// What the kernel does with this terminal's keys: canonical mode and echo are what a shell leaves.
fn is_cooked(pty: &Pty) -> bool {
    let modes = pty.modes();
    modes.contains(" icanon") && modes.contains(" echo ") && modes.contains(" isig")
}

/// Case: C-44. Proves: U7
#[test]
fn every_way_out_leaves_the_keyboard_as_a_shell_wants_it() {
    for way in ["HUP", "TERM", "INT", "q"] {
        let (mut pty, _folder) = demo(&[]);
        pty.shows("gpu-");
        assert!(!is_cooked(&pty), "{way}");
        match way {
            "q" => pty.keys("q"),
            signal => pty.signal(signal),
        }
        assert!(pty.ended().success(), "{way}");
        assert!(is_cooked(&pty), "{way}: {}", pty.modes());
        pty.wait("the terminal given back", |s| !s.alternate_screen());
        let written = pty.written();
        // Alternate screen, cursor, pastes, and the modes of a mouse: each is switched off behind where it was switched on.
        for (on, off) in [
            ("\u{1b}[?1049h", "\u{1b}[?1049l"),
            ("\u{1b}[?25l", "\u{1b}[?25h"),
            ("\u{1b}[?2004h", "\u{1b}[?2004l"),
            ("\u{1b}[?1000h", "\u{1b}[?1000l"),
            ("\u{1b}[?1003h", "\u{1b}[?1003l"),
            ("\u{1b}[?1006h", "\u{1b}[?1006l"),
        ] {
            let (on, off) = (written.rfind(on), written.rfind(off));
            assert!(on.is_some() && off > on, "{way}: {on:?} {off:?}");
        }
    }
}

/// What the child of the next test does: its output takes nothing, so that taking the terminal fails behind raw mode.
#[test]
#[ignore = "the child of the test below"]
fn child_whose_screen_cannot_be_taken() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let stdout = rustix::io::dup(std::io::stdout()).unwrap();
    rustix::stdio::dup2_stdout(full).unwrap();
    let taken = muster::tui::terminal::Screen::take(true);
    rustix::stdio::dup2_stdout(stdout).unwrap();
    std::fs::write("told", format!("{:?}", taken.err())).unwrap();
}

/// Case: C-44. Proves: U7
#[test]
fn a_failure_half_way_through_taking_the_terminal_gives_back_what_was_taken() {
    let folder = tempfile::tempdir().unwrap();
    let me = std::env::current_exe().unwrap();
    let script = format!(
        "{} --exact child_whose_screen_cannot_be_taken --ignored --nocapture; echo done $?; sleep 60",
        me.display()
    );
    let mut pty = Pty::start(command(Path::new("/bin/sh"), &["-c", &script], folder.path()), 100, 32);
    pty.shows("done");
    let told = std::fs::read_to_string(folder.path().join("told")).unwrap();
    assert!(told.contains("StorageFull"), "{told}");
    assert!(is_cooked(&pty), "{}", pty.modes());
    assert!(pty.is_given_back());
    pty.signal("KILL");
    pty.ended();
}

/// Case: C-44. Proves: U7
///
/// The terminal goes away without a word to this process: it has been taken out of the terminal's reach (another session),
/// as under some multiplexers. It must end by what it reads, and not spin on a dead terminal.
#[test]
fn a_console_that_hears_no_hangup_ends_all_the_same_and_does_not_spin() {
    let folder = tempfile::tempdir().unwrap();
    // The shell leads the session and ignores the hangup; the console is in a session of its own and hears of none.
    let script =
        format!("exec 3<&0; trap '' HUP; setsid {} demo --fresh <&3 & echo pid $! >pid; wait", binary().display());
    let mut pty = Pty::start(command(Path::new("/bin/sh"), &["-c", &script], folder.path()), 100, 32);
    pty.wait("the console", |s| s.alternate_screen() && s.contents().contains("gpu-"));
    let text = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let pid: u32 = text.trim().trim_start_matches("pid ").parse().unwrap();
    pty.hang_up();
    let began = Instant::now();
    let alive = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
    };
    while alive() {
        assert!(began.elapsed() < Duration::from_secs(15), "the console outlives its terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Case: C-44. Proves: U7, G5
#[test]
fn a_console_that_is_terminated_loses_no_run_and_the_next_one_goes_on_with_it() {
    let lab = tempfile::tempdir().unwrap();
    let config = lab.path().join("muster.toml");
    let mut server = std::process::Command::new(binary())
        .args(["lab", "--speed", "20", "--write-config"])
        .arg(&config)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.stdout.take().unwrap()), &mut ready).unwrap();
    let console = || {
        let mut command = command(&binary(), &["--config", config.to_str().unwrap()], lab.path());
        command.env("MUSTER_STATE_DIR", lab.path().join("state"));
        Pty::start(command, 100, 32)
    };
    let mut pty = console();
    pty.shows("gpu-b06-31");
    assert!(colours(&pty) > 0);
    pty.keys(":");
    pty.shows("command");
    pty.burst("theme mono");
    pty.shows("▌ theme mono");
    std::thread::sleep(Duration::from_millis(100));
    pty.keys("\r");
    pty.wait("the theme", |s| !s.contents().contains("┏"));
    go(&mut pty, "gpu-b06-31");
    pty.keys("e");
    pty.shows("enter starts gpu-b06-31");
    pty.keys("\r");
    pty.shows("running");
    pty.signal("TERM");
    assert!(pty.ended().success());
    assert!(is_cooked(&pty) && pty.is_given_back());
    let mut pty = console();
    pty.shows("gpu-b06-31");
    assert_eq!(colours(&pty), 0, "the theme that was chosen is kept");
    go(&mut pty, "gpu-b06-31");
    pty.keys("\r");
    pty.shows("succeeded");
    pty.keys("q");
    pty.keys("q");
    pty.ended();
    server.kill().unwrap();
    server.wait().unwrap();
}

/// A scanner's keys, on the program that other keys run: a code of the demo's first rack, one of nobody, and a lone key.
///
/// Case: C-45. Proves: U6, U10
#[test]
fn a_scanner_selects_a_device_and_presses_no_key() {
    let (mut pty, _folder) = demo(&[]);
    pty.shows("gpu-a11-36");
    go(&mut pty, "gpu-a11-36");
    let serial = pty.text().split("serial ").nth(1).map(|rest| rest.split_whitespace().next().unwrap().to_owned());
    let serial = serial.unwrap_or_else(|| panic!("no serial on the screen:\n{}", pty.text()));
    go(&mut pty, "gpu-a11-34");
    pty.burst(&format!("{}\r", serial.to_lowercase()));
    pty.wait("the scanned host", |s| {
        s.contents().lines().rev().take(6).any(|l| l.trim_start().starts_with("gpu-a11-36"))
    });
    std::thread::sleep(Duration::from_millis(100));
    // One that scans `x`, `e` and Enter, in bytes that come one by one.
    for byte in ["x", "e", "-", "9", "\r"] {
        pty.burst(byte);
        std::thread::sleep(Duration::from_millis(2));
    }
    pty.shows("no device with serial or asset tag 'xe-9'");
    assert!(!pty.text().contains("┏"), "{}", pty.text());
    std::thread::sleep(Duration::from_millis(100));
    pty.keys("?");
    pty.shows("keys of the fleet");
    pty.keys("\u{1b}");
    pty.wait("the help gone", |s| !s.contents().contains("keys of the fleet"));
    pty.keys("\u{1b}");
    pty.wait("the message gone", |s| !s.contents().contains("no device with"));
    pty.keys("q");
    assert!(pty.ended().success());
}
