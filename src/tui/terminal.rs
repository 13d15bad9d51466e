//! The terminal: taken at the start, given back on every way out: return, error, panic, signal (C-44).

use std::io::{self, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::execute;
use crossterm::style::ResetColor;
use crossterm::terminal::{
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::paint::Painter;
use crate::config::settings::OnEnd;
use crate::domain::text::neutralize_to;

/// Characters of a notification: a desktop shows no more.
const TOLD_MAX: usize = 160;

/// Set while the terminal is ours. The panic hook reads it from whatever thread panics.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the console has it. Dropping it gives it back.
pub struct Screen {
    mouse: bool,
    painter: Painter,
    /// What stands there; `None`: nothing that is known.
    stands: Option<Buffer>,
    /// The frame before that, for its memory.
    spare: Buffer,
    bytes: Vec<u8>,
}

impl Screen {
    /// Takes the terminal. Where that fails half-way, what was done is undone.
    pub fn take(mouse: bool) -> io::Result<Screen> {
        let guard = Guard;
        enter(mouse)?;
        std::mem::forget(guard);
        Ok(Screen { mouse, painter: Painter::default(), stands: None, spare: Buffer::default(), bytes: Vec::new() })
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        size()
    }

    /// Draws a frame in one write: over a slow line half a frame is worse than a late one. A frame that differs in nothing
    /// writes nothing, and is told as `false`.
    pub fn draw(&mut self, frame: impl FnOnce(&mut Buffer)) -> io::Result<bool> {
        let (width, height) = self.size()?;
        let mut next = std::mem::take(&mut self.spare);
        next.resize(Rect::new(0, 0, width, height));
        next.reset();
        frame(&mut next);
        self.bytes.clear();
        self.bytes.extend(BEGIN);
        self.painter.paint(self.stands.as_ref(), &next, &mut self.bytes);
        let differs = self.bytes.len() > BEGIN.len();
        if differs {
            self.bytes.extend(END);
            // Where this fails, nobody knows what stands there.
            let before = self.stands.take();
            write_all(&self.bytes)?;
            self.spare = before.unwrap_or_default();
        } else {
            self.spare = self.stands.take().unwrap_or_default();
        }
        self.stands = Some(next);
        Ok(differs)
    }

    /// Forgets what stands on the screen: the next frame draws every cell.
    pub fn clear(&mut self) {
        self.painter.forget();
        self.stands = None;
    }

    /// Puts a text on the clipboard of whoever looks at this terminal.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(stdout(), crossterm::clipboard::CopyToClipboard::to_clipboard_from(text))
    }

    /// Rings, or has the desktop show a sentence, for whoever does not look at this terminal.
    pub fn tell(&mut self, words: &[u8]) -> io::Result<()> {
        write_all(words)
    }

    /// Gives the terminal to the shell until it brings the program back.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        // The whole group, as the terminal would: what started this program stops with it. Not by the signal that asks to
        // stop: this program hears that one, and would ask itself.
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
        enter(self.mouse)?;
        self.clear();
        Ok(())
    }

    /// Takes the terminal once more: the program was stopped without being asked, and a shell had the terminal meanwhile.
    pub fn take_again(&mut self) -> io::Result<()> {
        // Else raw mode counts as set already.
        disable_raw_mode()?;
        enter(self.mouse)?;
        self.clear();
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// The bytes that tell something by bell or notification. Inside tmux a notification goes through to the terminal outside,
/// where tmux has `allow-passthrough` on; its bell is tmux's own business.
pub fn telling(sentence: &str, on_end: OnEnd, in_tmux: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if matches!(on_end, OnEnd::Osc9 | OnEnd::Both) {
        // Ended by BEL: it is in no text that was neutralized, and needs no second escape inside of tmux's own string.
        let notice = format!("\u{1b}]9;muster: {}\u{7}", neutralize_to(sentence, TOLD_MAX));
        match in_tmux {
            true => {
                out.extend(format!("\u{1b}Ptmux;{}\u{1b}\\", notice.replace('\u{1b}', "\u{1b}\u{1b}")).into_bytes())
            }
            false => out.extend(notice.into_bytes()),
        }
    }
    if matches!(on_end, OnEnd::Bell | OnEnd::Both) {
        out.push(7);
    }
    out
}

/// A terminal that knows synchronized updates shows a frame when it is whole (DEC private mode 2026).
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

fn write_all(bytes: &[u8]) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, Hide, EnableBracketedPaste)?;
    if mouse {
        execute!(stdout(), EnableMouseCapture)?;
    }
    Ok(())
}

/// Puts everything back, once. Errors are left: where the terminal is gone nobody reads them.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Also where the mouse was never asked for: turning it off twice is harmless, leaving it on is not.
    execute!(
        stdout(),
        EndSynchronizedUpdate,
        ResetColor,
        DisableMouseCapture,
        DisableBracketedPaste,
        Show,
        LeaveAlternateScreen
    )
    .ok();
    disable_raw_mode().ok();
    stdout().flush().ok();
}

/// Before a panic of the console's own thread is printed, the terminal is given back. A panic elsewhere (a step of a run)
/// is caught there and goes to the log: printed it would only tear the screen.
pub fn watch_panics() {
    let console: ThreadId = thread::current().id();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if thread::current().id() == console || !TAKEN.load(Ordering::SeqCst) {
            give_back();
            before(info);
        } else {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            tracing::error!(place, "a task panicked");
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: U8, U10
    #[test]
    fn an_end_is_told_as_the_configuration_says_and_no_text_breaks_out_of_it() {
        let told = |sentence: &str, on_end, tmux| String::from_utf8(telling(sentence, on_end, tmux)).unwrap();
        assert_eq!(told("x failed", OnEnd::None, true), "");
        assert_eq!(told("x failed", OnEnd::Bell, true), "\u{7}");
        assert_eq!(told("x failed", OnEnd::Osc9, false), "\u{1b}]9;muster: x failed\u{7}");
        assert_eq!(told("x", OnEnd::Both, true), "\u{1b}Ptmux;\u{1b}\u{1b}]9;muster: x\u{7}\u{1b}\\\u{7}");
        let hostile = told("a\u{7}b\u{1b}\\c\u{9c}d\n\u{202e}", OnEnd::Osc9, true);
        assert_eq!(hostile.matches(|c: char| c.is_control()).count(), 5, "{hostile:?}: only our own");
        let long = told(&"x".repeat(10_000), OnEnd::Osc9, false);
        assert!(long.len() < 200, "{}", long.len());
    }
}
