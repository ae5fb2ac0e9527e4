//! Keys as the application sees them: an own type, so that neither the state nor its tests know a terminal library.

use std::fmt;
use std::str::FromStr;

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A character as typed (`'G'` is shift and g).
    Char(char),
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Shift and tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// A function key.
    F(u8),
}

/// Names of the keys that are not characters, as the key map and the help write them.
const NAMED: [(&str, Key); 15] = [
    ("space", Key::Char(' ')),
    ("enter", Key::Enter),
    ("esc", Key::Esc),
    ("tab", Key::Tab),
    ("backtab", Key::BackTab),
    ("backspace", Key::Backspace),
    ("delete", Key::Delete),
    ("up", Key::Up),
    ("down", Key::Down),
    ("left", Key::Left),
    ("right", Key::Right),
    ("pageup", Key::PageUp),
    ("pagedown", Key::PageDown),
    ("home", Key::Home),
    ("end", Key::End),
];

/// A key press with its modifiers, in one canonical form (see [`KeyInput::new`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyInput {
    /// The key.
    pub key: Key,
    /// Control was held.
    pub ctrl: bool,
    /// Alt was held.
    pub alt: bool,
    /// Shift was held; always false for characters, which carry it in themselves.
    pub shift: bool,
}

impl KeyInput {
    /// The canonical form: terminals report shift with characters or do not, and report shift-tab in two ways.
    pub fn new(key: Key, ctrl: bool, alt: bool, shift: bool) -> Self {
        match key {
            Key::Char(c) => {
                let upper = shift && !ctrl && c.is_ascii_lowercase();
                let c = if upper { c.to_ascii_uppercase() } else { c };
                let c = if ctrl { c.to_ascii_lowercase() } else { c };
                Self { key: Key::Char(c), ctrl, alt, shift: false }
            }
            Key::Tab if shift => Self { key: Key::BackTab, ctrl, alt, shift: false },
            Key::BackTab => Self { key: Key::BackTab, ctrl, alt, shift: false },
            key => Self { key, ctrl, alt, shift },
        }
    }

    /// A key without modifiers.
    pub fn plain(key: Key) -> Self {
        Self::new(key, false, false, false)
    }

    /// A typed character.
    pub fn char(c: char) -> Self {
        Self::plain(Key::Char(c))
    }
}

impl FromStr for KeyInput {
    type Err = String;

    /// Reads `"g"`, `"G"`, `"ctrl-r"`, `"shift-up"`, `"f1"`, `"-"`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (mut ctrl, mut alt, mut shift) = (false, false, false);
        let mut rest = text;
        while let Some((modifier, after)) = rest.split_once('-') {
            let flag = match modifier {
                "ctrl" => &mut ctrl,
                "alt" => &mut alt,
                "shift" => &mut shift,
                _ => break,
            };
            *flag = true;
            rest = after;
        }
        let named = NAMED.iter().find(|(name, _)| *name == rest).map(|(_, key)| *key);
        let function = rest.strip_prefix('f').and_then(|n| n.parse::<u8>().ok()).filter(|n| (1..=12).contains(n));
        let mut chars = rest.chars();
        let single = match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() => Some(Key::Char(c)),
            _ => None,
        };
        let key = named.or(function.map(Key::F)).or(single);
        key.map(|key| Self::new(key, ctrl, alt, shift)).ok_or_else(|| {
            format!("{text:?} is not a key: expected one character or a name such as enter, pageup, ctrl-r, shift-up")
        })
    }
}

impl fmt::Display for KeyInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (held, name) in [(self.ctrl, "ctrl-"), (self.alt, "alt-"), (self.shift, "shift-")] {
            if held {
                f.write_str(name)?;
            }
        }
        if let Some((name, _)) = NAMED.iter().find(|(_, key)| *key == self.key) {
            return f.write_str(name);
        }
        match self.key {
            Key::Char(c) => write!(f, "{c}"),
            Key::F(n) => write!(f, "f{n}"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["g", "G", "ctrl-r", "shift-up", "f1", "f12", "-", "space", "alt-x", "?", "ctrl-space", "]"] {
            let key: KeyInput = text.parse().unwrap();
            assert_eq!(key.to_string(), text);
        }
    }

    #[test]
    fn the_two_ways_of_reporting_shift_are_one() {
        assert_eq!(KeyInput::new(Key::Char('g'), false, false, true), KeyInput::char('G'));
        assert_eq!(KeyInput::new(Key::Char('G'), false, false, true), KeyInput::char('G'));
        assert_eq!(KeyInput::new(Key::Tab, false, false, true), KeyInput::plain(Key::BackTab));
        assert_eq!(KeyInput::new(Key::Char('R'), true, false, false), "ctrl-r".parse().unwrap());
    }

    #[test]
    fn a_key_that_is_none_is_named_in_the_error() {
        let error = "hyper-x".parse::<KeyInput>().unwrap_err();
        assert!(error.contains("hyper-x"), "{error}");
        assert!("".parse::<KeyInput>().is_err());
        assert!("f13".parse::<KeyInput>().is_err());
    }
}
