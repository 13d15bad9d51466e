//! From the terminal's events to ours.

use crossterm::event::{Event as Raw, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind};
use jiff::Timestamp;

use super::event::{Code, Event, Key};

/// Our event for one of the terminal's, where it means anything here.
pub fn event(raw: Raw, at: Timestamp) -> Option<Event> {
    match raw {
        Raw::Key(key) => self::key(key).map(|key| Event::Key { key, at }),
        Raw::Paste(text) => Some(Event::Paste(text)),
        Raw::Resize(width, height) => Some(Event::Resize { width, height }),
        Raw::Mouse(mouse) => {
            let (column, row) = (mouse.column, mouse.row);
            match mouse.kind {
                MouseEventKind::ScrollUp => Some(Event::Wheel { column, row, notches: -3 }),
                MouseEventKind::ScrollDown => Some(Event::Wheel { column, row, notches: 3 }),
                MouseEventKind::Down(MouseButton::Left) => Some(Event::Click { column, row, at }),
                _ => None,
            }
        }
        Raw::FocusGained | Raw::FocusLost => None,
    }
}

fn key(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let code = match key.code {
        KeyCode::Char(c) => Code::Char(c),
        KeyCode::Enter => Code::Enter,
        KeyCode::Esc => Code::Esc,
        KeyCode::Tab => Code::Tab,
        KeyCode::BackTab => Code::BackTab,
        KeyCode::Backspace => Code::Backspace,
        KeyCode::Delete => Code::Delete,
        KeyCode::Left => Code::Left,
        KeyCode::Right => Code::Right,
        KeyCode::Up => Code::Up,
        KeyCode::Down => Code::Down,
        KeyCode::Home => Code::Home,
        KeyCode::End => Code::End,
        KeyCode::PageUp => Code::PageUp,
        KeyCode::PageDown => Code::PageDown,
        _ => return None,
    };
    let has = |modifier| key.modifiers.contains(modifier);
    Some(Key { code, ctrl: has(KeyModifiers::CONTROL), alt: has(KeyModifiers::ALT) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_what_tells_them_apart_and_releases_are_none() {
        let now = Timestamp::UNIX_EPOCH;
        let of = |code, modifiers| match event(Raw::Key(KeyEvent::new(code, modifiers)), now) {
            Some(Event::Key { key, .. }) => key.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(KeyCode::Char('d'), KeyModifiers::CONTROL), "ctrl-d");
        assert_eq!(of(KeyCode::Char('G'), KeyModifiers::SHIFT), "G");
        assert_eq!(of(KeyCode::BackTab, KeyModifiers::SHIFT), "shift-tab");
        let mut release = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        release.kind = KeyEventKind::Release;
        assert_eq!(event(Raw::Key(release), now), None);
        assert_eq!(event(Raw::Key(KeyEvent::new(KeyCode::F(5), KeyModifiers::NONE)), now), None);
    }
}
