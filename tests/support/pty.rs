//! A program under a pseudo terminal: what it draws, what is typed into it, how it ends.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use vt100::{Parser, Screen};

/// Long enough for a machine that builds something else meanwhile; a test that passes never waits so long.
const PATIENCE: Duration = Duration::from_secs(40);

/// A running program and its screen.
pub struct Pty {
    screen: Arc<Mutex<Parser>>,
    written: Arc<Mutex<String>>,
    tty: Option<PathBuf>,
    keyboard: Box<dyn Write + Send>,
    master: Option<Box<dyn MasterPty + Send>>,
    closing: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
    pub child: Box<dyn Child + Send + Sync>,
}

/// A terminal as most people have it: everything that tests inherit from who runs them is set.
pub fn command(program: &Path, arguments: &[&str], state: &Path) -> CommandBuilder {
    let mut command = CommandBuilder::new(program);
    command.args(arguments);
    command.cwd(state);
    for name in ["NO_COLOR", "LC_ALL", "LC_CTYPE", "MUSTER_CONFIG", "MUSTER_LOG", "TMUX"] {
        command.env_remove(name);
    }
    for (name, value) in [
        ("TERM", "xterm-256color"),
        ("COLORTERM", "truecolor"),
        ("LANG", "C.UTF-8"),
        ("RUST_BACKTRACE", "0"),
        ("USER", "jo"),
    ] {
        command.env(name, value);
    }
    for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "MUSTER_STATE_DIR", "TMPDIR"] {
        command.env(name, state);
    }
    command
}

/// What a terminal sends for a key by the name that the table of actions has for it; two keys with a blank between are two.
pub fn bytes(keys: &str) -> Vec<String> {
    let one = |key: &str| match key {
        "enter" => "\r".to_owned(),
        "esc" => "\u{1b}".to_owned(),
        "tab" => "\t".to_owned(),
        "shift-tab" => "\u{1b}[Z".to_owned(),
        "space" => " ".to_owned(),
        "backspace" => "\u{7f}".to_owned(),
        "up" => "\u{1b}[A".to_owned(),
        "down" => "\u{1b}[B".to_owned(),
        "right" => "\u{1b}[C".to_owned(),
        "left" => "\u{1b}[D".to_owned(),
        "home" => "\u{1b}[H".to_owned(),
        "end" => "\u{1b}[F".to_owned(),
        "pgup" => "\u{1b}[5~".to_owned(),
        "pgdn" => "\u{1b}[6~".to_owned(),
        _ => match key.strip_prefix("ctrl-").map(|c| c.as_bytes()) {
            Some([c @ b'a'..=b'z']) => char::from(c - b'a' + 1).to_string(),
            Some(_) => panic!("no terminal sends '{key}'"),
            None if key.chars().count() == 1 => key.to_owned(),
            None => panic!("'{key}' is no key"),
        },
    };
    keys.split(' ').map(one).collect()
}

impl Pty {
    /// Starts a command on a screen of a size.
    pub fn start(command: CommandBuilder, columns: u16, rows: u16) -> Pty {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        // Else the reader never sees the end.
        drop(pair.slave);
        let parser = Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0);
        let screen = Arc::new(Mutex::new(parser));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let drawn = screen.clone();
        let written = Arc::new(Mutex::new(String::new()));
        let kept = written.clone();
        let tty = pair.master.tty_name();
        let closing = Arc::new(AtomicBool::new(false));
        let closed = closing.clone();
        let reader = thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                drawn.lock().unwrap().process(&bytes[..n]);
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
                if closed.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        let keyboard = pair.master.take_writer().unwrap();
        Pty { screen, written, tty, keyboard, master: Some(pair.master), closing, reader: Some(reader), child }
    }

    /// Types bytes at once, as a paste does.
    pub fn burst(&mut self, bytes: &str) {
        self.keyboard.write_all(bytes.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Types characters as hands do: never two at once.
    pub fn keys(&mut self, text: &str) {
        for c in text.chars() {
            self.burst(&c.to_string());
            thread::sleep(Duration::from_millis(60));
        }
    }

    /// Presses keys as hands do, each in whatever it sends.
    pub fn keys_of(&mut self, keys: &[String]) {
        for (n, key) in keys.iter().enumerate() {
            if n > 0 {
                thread::sleep(Duration::from_millis(60));
            }
            self.burst(key);
        }
    }

    /// The screen's text.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Looks at the screen.
    pub fn look<T>(&self, look: impl FnOnce(&Screen) -> T) -> T {
        look(self.screen.lock().unwrap().screen())
    }

    /// Waits until the screen is as wanted; shows it when it never is.
    #[track_caller]
    pub fn wait(&self, what: &str, is: impl Fn(&Screen) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !self.look(&is) {
            assert!(Instant::now() < end, "{what} did not come; the screen was:\n{}", self.text());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for a text.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        self.wait(&format!("'{text}'"), |s| s.contents().contains(text));
    }

    /// Everything that was ever written to it.
    pub fn written(&self) -> String {
        self.written.lock().unwrap().clone()
    }

    /// The terminal's modes as `stty` tells them, also when the program has gone: the terminal is still there.
    pub fn modes(&self) -> String {
        let tty = std::fs::File::open(self.tty.as_ref().unwrap()).unwrap();
        let out = std::process::Command::new("stty").arg("-a").stdin(tty).output().unwrap();
        String::from_utf8(out.stdout).unwrap().replace('\n', " ")
    }

    /// Sets the modes that a shell has, as one does when it gets the terminal.
    pub fn cook(&self) {
        let tty = std::fs::File::open(self.tty.as_ref().unwrap()).unwrap();
        assert!(std::process::Command::new("stty").arg("sane").stdin(tty).status().unwrap().success());
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        let (c, r) = (columns.try_into().unwrap(), rows.try_into().unwrap());
        self.screen.lock().unwrap().screen_mut().set_size(r, c);
        self.master.as_ref().unwrap().resize(size(columns, rows)).unwrap();
    }

    /// Closes the terminal, as a dropped connection does.
    pub fn hang_up(&mut self) {
        // The kernel hangs up when nobody has the other end: the reader lets go of its own at the next thing drawn.
        self.closing.store(true, Ordering::SeqCst);
        self.resize(90, 30);
        self.reader.take().unwrap().join().unwrap();
        self.keyboard = Box::new(std::io::sink());
        self.master = None;
    }

    /// Sends the program a signal by its name.
    pub fn signal(&self, name: &str) {
        let id = self.child.process_id().unwrap().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the program's end.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            if Instant::now() > end {
                self.child.kill().ok();
                panic!("it did not end; the screen was:\n{}", self.text());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the terminal was given back: no alternate screen, no mouse, no bracketed paste, a cursor.
    pub fn is_given_back(&self) -> bool {
        self.look(|s| {
            !s.alternate_screen()
                && !s.hide_cursor()
                && !s.bracketed_paste()
                && s.mouse_protocol_mode() == vt100::MouseProtocolMode::None
        })
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.child.kill().ok();
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}
