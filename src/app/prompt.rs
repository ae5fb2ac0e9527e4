//! A line of text typed at the bottom of the screen, and questions answered with y or n.

use unicode_segmentation::UnicodeSegmentation as _;

use super::key::{Key, KeyInput};

/// What the text is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Words that issues on the Board must contain.
    Filter,
    /// Path of the predictions file.
    ExportPath,
    /// Why an attempt is vetoed.
    VetoReason,
}

/// A question answered with y or n; anything but y is no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Replace this file?
    Overwrite(String),
    /// Leave although what was moved or vetoed was not exported?
    QuitUnsaved,
}

/// What waits at the bottom of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// A line of text.
    Text {
        /// What for.
        purpose: Purpose,
        /// The text so far.
        line: Line,
    },
    /// A question.
    Confirm(Question),
}

/// What a key did to a line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The text changed, or the cursor moved.
    Changed,
    /// Enter: take it.
    Accepted,
    /// Escape: forget it.
    Cancelled,
    /// The key means nothing here.
    Ignored,
}

/// A line of text with a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    text: String,
    /// Byte offset, always between graphemes.
    cursor: usize,
}

impl Line {
    /// A line with the cursor at its end.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cursor: text.len(), text }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What stands before the cursor.
    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Types text at the cursor: control characters are left out, a pasted line end becomes a space.
    pub fn insert(&mut self, typed: &str) {
        let clean: String =
            typed.chars().map(|c| if c == '\n' { ' ' } else { c }).filter(|c| !c.is_control()).collect();
        self.text.insert_str(self.cursor, &clean);
        self.cursor += clean.len();
    }

    /// Handles a key.
    pub fn key(&mut self, input: KeyInput) -> Edit {
        match (input.key, input.ctrl) {
            (Key::Enter, _) => return Edit::Accepted,
            (Key::Esc, _) | (Key::Char('c'), true) => return Edit::Cancelled,
            (Key::Char('u'), true) => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            (Key::Char('w'), true) => {
                let from = self.before_cursor().trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.drain(from..self.cursor);
                self.cursor = from;
            }
            (Key::Char('a'), true) | (Key::Home, _) => self.cursor = 0,
            (Key::Char('e'), true) | (Key::End, _) => self.cursor = self.text.len(),
            (Key::Char(c), false) if !input.alt => self.insert(c.encode_utf8(&mut [0; 4])),
            (Key::Backspace, _) => {
                let from = self.previous();
                self.text.drain(from..self.cursor);
                self.cursor = from;
            }
            (Key::Delete, _) => {
                let to = self.next();
                self.text.drain(self.cursor..to);
            }
            (Key::Left, _) => self.cursor = self.previous(),
            (Key::Right, _) => self.cursor = self.next(),
            _ => return Edit::Ignored,
        }
        Edit::Changed
    }

    fn previous(&self) -> usize {
        self.before_cursor().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |g| self.cursor + g.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut Line, keys: &[&str]) -> Edit {
        keys.iter().map(|k| line.key(k.parse().unwrap())).last().unwrap()
    }

    #[test]
    fn typing_moving_and_deleting_work_on_graphemes() {
        let mut line = Line::new("");
        line.insert("ne\u{301}👩\u{200d}🔬x");
        press(&mut line, &["left", "backspace", "left", "delete"]);
        assert_eq!(line.text(), "nx");
        assert_eq!(press(&mut line, &["y"]), Edit::Changed);
        assert_eq!((line.text(), line.before_cursor()), ("nyx", "ny"));
    }

    #[test]
    fn words_and_the_whole_line_can_be_deleted() {
        let mut line = Line::new("out dir/preds.jsonl");
        press(&mut line, &["ctrl-w"]);
        assert_eq!(line.text(), "out ");
        press(&mut line, &["ctrl-u"]);
        assert_eq!(line.text(), "");
        assert_eq!(press(&mut line, &["backspace", "delete", "home", "end", "left", "right"]), Edit::Changed);
    }

    #[test]
    fn enter_takes_and_escape_forgets() {
        let mut line = Line::new("a");
        assert_eq!(press(&mut line, &["enter"]), Edit::Accepted);
        assert_eq!(press(&mut line, &["esc"]), Edit::Cancelled);
        assert_eq!(press(&mut line, &["ctrl-c"]), Edit::Cancelled);
        assert_eq!(press(&mut line, &["pageup"]), Edit::Ignored);
        assert_eq!(line.text(), "a");
    }

    #[test]
    fn pasted_control_characters_do_not_enter() {
        let mut line = Line::new("");
        line.insert("a\nb\x1b[2J\t");
        assert_eq!(line.text(), "a b[2J");
    }
}
