//! The terminal: taken at the start, given back on every way out: return, error, panic, signal (C-44).

use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::config::settings::OnEnd;
use crate::domain::text::neutralize_to;

/// Characters of a notification: a desktop shows no more.
const TOLD_MAX: usize = 160;

/// Set while the terminal is ours. The panic hook reads it from whatever thread panics.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the console has it. Dropping it gives it back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    mouse: bool,
}

impl Screen {
    /// Takes the terminal. Where that fails half-way, what was done is undone.
    pub fn take(mouse: bool) -> io::Result<Screen> {
        let guard = Guard;
        enter(mouse)?;
        // A frame is one write: over a slow line half a frame is worse than a late one.
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 16, stdout())))?;
        std::mem::forget(guard);
        Ok(Screen { terminal, mouse })
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws a frame in one go.
    pub fn draw(&mut self, frame: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|f| frame(f.buffer_mut()))?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        self.terminal.backend_mut().flush()
    }

    /// Forgets what stands on the screen: the next frame draws every cell.
    pub fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: that asks the terminal where the cursor is, and the answer would go to whoever reads keys.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Puts a text on the clipboard of whoever looks at this terminal.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), crossterm::clipboard::CopyToClipboard::to_clipboard_from(text))
    }

    /// Rings, or has the desktop show a sentence, for whoever does not look at this terminal.
    pub fn tell(&mut self, words: &[u8]) -> io::Result<()> {
        self.terminal.backend_mut().write_all(words)?;
        self.terminal.backend_mut().flush()
    }

    /// Gives the terminal to the shell until it brings the program back.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        // The whole group, as the terminal would: what started this program stops with it. Not by the signal that asks to
        // stop: this program hears that one, and would ask itself.
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
        enter(self.mouse)?;
        self.clear()
    }
}

impl Screen {
    /// Takes the terminal once more: the program was stopped without being asked, and a shell had the terminal meanwhile.
    pub fn take_again(&mut self) -> io::Result<()> {
        // Else raw mode counts as set already.
        disable_raw_mode()?;
        enter(self.mouse)?;
        self.clear()
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
    execute!(stdout(), EndSynchronizedUpdate, DisableMouseCapture, DisableBracketedPaste, Show, LeaveAlternateScreen)
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
