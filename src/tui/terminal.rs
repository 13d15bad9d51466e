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

    /// Gives the terminal to the shell until it brings the program back.
    pub fn suspend(&mut self) -> io::Result<()> {
        give_back();
        // The whole group, as the terminal would: what started this program stops with it.
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        enter(self.mouse)?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
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
