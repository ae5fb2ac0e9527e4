//! Terminal events as messages to the application.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::app::{Key, KeyInput, Msg};

/// The message of a terminal event; `None` for what the application does not know (releases, mouse, focus).
pub(super) fn message(event: Event) -> Option<Msg> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key_input(key).map(Msg::Key),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Resize(columns, rows) => Some(Msg::Resize(columns, rows)),
        _ => None,
    }
}

/// Control and Z: the shell's sign to stop a job, which raw mode keeps from the system.
pub(super) fn is_suspend(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    key.kind == KeyEventKind::Press && key.code == KeyCode::Char('z') && key.modifiers == KeyModifiers::CONTROL
}

fn key_input(event: KeyEvent) -> Option<KeyInput> {
    let key = match event.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::F(number) => Key::F(number),
        _ => return None,
    };
    let held = |modifier| event.modifiers.contains(modifier);
    Some(KeyInput::new(key, held(KeyModifiers::CONTROL), held(KeyModifiers::ALT), held(KeyModifiers::SHIFT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Msg> {
        message(Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn keys_with_their_modifiers() {
        let ctrl_d = KeyInput::new(Key::Char('d'), true, false, false);
        assert!(matches!(pressed(KeyCode::Char('d'), KeyModifiers::CONTROL), Some(Msg::Key(key)) if key == ctrl_d));
        let upper = KeyInput::new(Key::Char('G'), false, false, false);
        assert!(matches!(pressed(KeyCode::Char('G'), KeyModifiers::SHIFT), Some(Msg::Key(key)) if key == upper));
        let page = KeyInput::new(Key::PageDown, false, true, false);
        assert!(matches!(pressed(KeyCode::PageDown, KeyModifiers::ALT), Some(Msg::Key(key)) if key == page));
        assert!(pressed(KeyCode::CapsLock, KeyModifiers::NONE).is_none());
    }

    #[test]
    fn repeats_count_and_releases_do_not() {
        let of = |kind| message(Event::Key(KeyEvent::new_with_kind(KeyCode::Down, KeyModifiers::NONE, kind)));
        assert!(of(KeyEventKind::Repeat).is_some());
        assert!(of(KeyEventKind::Release).is_none());
    }

    #[test]
    fn other_events() {
        assert!(matches!(message(Event::Resize(80, 24)), Some(Msg::Resize(80, 24))));
        assert!(matches!(message(Event::Paste("a\nb".to_owned())), Some(Msg::Paste(text)) if text == "a\nb"));
        assert!(message(Event::FocusLost).is_none());
    }

    #[test]
    fn only_control_z_suspends() {
        let key = |c, modifiers| Event::Key(KeyEvent::new(KeyCode::Char(c), modifiers));
        assert!(is_suspend(&key('z', KeyModifiers::CONTROL)));
        assert!(!is_suspend(&key('z', KeyModifiers::NONE)));
        assert!(!is_suspend(&key('c', KeyModifiers::CONTROL)));
    }
}
