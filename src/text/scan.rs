//! Cuts one line of foreign text into harmless runs and everything that is not.
//!
//! Control sequences follow ECMA-48 (CSI, OSC and the other strings, in their 7-bit and 8-bit forms). A sequence that
//! is malformed or not closed on its line loses its introducer only: what follows stays readable.

/// What stands at the head of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Characters to show as they are.
    Text(&'a str),
    /// A horizontal tab.
    Tab,
    /// A carriage return inside the line.
    Return,
    /// Select graphic rendition, with its parameters.
    Sgr(&'a str),
    /// Erase in line, with its parameter.
    Erase(&'a str),
    /// A character that would show as nothing or reorder its neighbours.
    Hidden(char),
    /// Anything else that must not reach a screen.
    Dropped,
}

/// Longest run of parameter bytes believed to be one: real ones have under 30.
const MAX_PARAMETERS: usize = 64;

/// Reads tokens off the front of a line.
pub(super) struct Scanner<'a> {
    rest: &'a str,
    /// No string terminator follows in this line: looking again for every unclosed introducer would be quadratic.
    no_terminator: bool,
}

impl<'a> Scanner<'a> {
    /// Scans `line`, which holds no `\n`.
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line, no_terminator: false }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn escape(&mut self) -> Token<'a> {
        let mut after = self.rest.bytes().skip(1);
        match after.next() {
            Some(b'[') => self.control_sequence(2),
            Some(b']' | b'P' | b'X' | b'^' | b'_') => self.string(2),
            Some(0x20..=0x2f) => {
                let more = after.take_while(|b| (0x20..=0x2f).contains(b)).count();
                let closed = self.rest.as_bytes().get(2 + more).is_some_and(|b| (0x30..=0x7e).contains(b));
                self.drop(if closed { 3 + more } else { 1 })
            }
            Some(0x30..=0x7e) => self.drop(2),
            _ => self.drop(1),
        }
    }

    fn drop(&mut self, bytes: usize) -> Token<'a> {
        self.take(bytes);
        Token::Dropped
    }

    /// A CSI sequence whose introducer is `introducer` bytes long.
    fn control_sequence(&mut self, introducer: usize) -> Token<'a> {
        let body = self.rest.as_bytes().get(introducer..).unwrap_or_default();
        let count = |from: usize, class: std::ops::RangeInclusive<u8>| {
            body.iter().skip(from).take(MAX_PARAMETERS).take_while(|b| class.contains(b)).count()
        };
        let parameters = count(0, 0x30..=0x3f);
        let intermediates = count(parameters, 0x20..=0x2f);
        let last = parameters + intermediates;
        let Some(last_byte) = body.get(last).filter(|b| (0x40..=0x7e).contains(*b)).copied() else {
            return self.drop(introducer);
        };
        let sequence = self.take(introducer + last + 1);
        let parameters = sequence.get(introducer..introducer + parameters).unwrap_or_default();
        let plain = intermediates == 0 && parameters.bytes().all(|b| b.is_ascii_digit() || b == b';' || b == b':');
        match last_byte {
            b'm' if plain => Token::Sgr(parameters),
            b'K' if plain => Token::Erase(parameters),
            _ => Token::Dropped,
        }
    }

    /// A control string (OSC, DCS, SOS, PM, APC): hyperlinks, titles, pictures.
    fn string(&mut self, introducer: usize) -> Token<'a> {
        let body = self.rest.get(introducer..).unwrap_or_default();
        let ends = |c: char| matches!(c, '\u{7}' | '\u{9c}' | '\u{1b}');
        // Any escape ends a control string; ESC \ is the regular way and is taken with it.
        let end = if self.no_terminator { None } else { body.find(ends) };
        let Some(end) = end else {
            self.no_terminator = true;
            return self.drop(introducer);
        };
        let tail = body.get(end..).unwrap_or_default();
        let terminator = match tail.chars().next() {
            Some('\u{7}') => 1,
            Some('\u{9c}') => '\u{9c}'.len_utf8(),
            _ if tail.starts_with("\u{1b}\\") => 2,
            _ => 0,
        };
        if terminator == 0 {
            // Interrupted, not closed: as for a string that never ends, its text is shown.
            return self.drop(introducer);
        }
        self.drop(introducer + end + terminator)
    }
}

impl<'a> Iterator for Scanner<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let first = self.rest.chars().next()?;
        Some(match first {
            '\t' => {
                self.take(1);
                Token::Tab
            }
            '\r' => {
                self.take(1);
                Token::Return
            }
            '\u{1b}' => self.escape(),
            '\u{9b}' => self.control_sequence(first.len_utf8()),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => self.string(first.len_utf8()),
            c if c.is_control() => self.drop(c.len_utf8()),
            c if is_hidden(c) => {
                self.take(c.len_utf8());
                Token::Hidden(c)
            }
            _ => {
                let end = self.rest.find(|c: char| c.is_control() || is_hidden(c)).unwrap_or(self.rest.len());
                Token::Text(self.take(end))
            }
        })
    }
}

/// Is it one of the characters that hide or reorder text (bidirectional controls, zero-width spaces, line separators,
/// tags)? They are shown by number, because a reviewer of a patch must see them. Joiners and variation selectors are
/// not among them: scripts and emoji need them.
pub(super) fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(line: &str) -> Vec<Token<'_>> {
        Scanner::new(line).collect()
    }

    #[test]
    fn both_forms_of_csi_are_read() {
        assert_eq!(tokens("\u{1b}[1;31mx"), [Token::Sgr("1;31"), Token::Text("x")]);
        assert_eq!(tokens("\u{9b}0Kx"), [Token::Erase("0"), Token::Text("x")]);
        assert_eq!(tokens("\u{1b}[?25l\u{1b}[2J"), [Token::Dropped, Token::Dropped]);
        assert_eq!(tokens("\u{1b}[>4;1m"), [Token::Dropped], "a private sequence that ends in m is not SGR");
    }

    #[test]
    fn broken_sequences_lose_their_introducer_only() {
        assert_eq!(tokens("\u{1b}[31é"), [Token::Dropped, Token::Text("31é")]);
        assert_eq!(tokens("\u{1b}]0;title"), [Token::Dropped, Token::Text("0;title")]);
        assert_eq!(tokens("\u{1b}"), [Token::Dropped]);
        assert_eq!(tokens("\u{1b}é"), [Token::Dropped, Token::Text("é")]);
        let long = format!("\u{1b}[{}m", "1;".repeat(100));
        assert!(matches!(tokens(&long).as_slice(), [Token::Dropped, Token::Text(text)] if text.len() == 201));
    }

    #[test]
    fn strings_end_in_all_three_ways() {
        for end in ["\u{7}", "\u{1b}\\", "\u{9c}"] {
            assert_eq!(tokens(&format!("\u{1b}]8;;http://e.invalid{end}link")), [Token::Dropped, Token::Text("link")]);
            assert_eq!(tokens(&format!("\u{9d}0;t{end}x")), [Token::Dropped, Token::Text("x")]);
        }
        assert_eq!(
            tokens("\u{1b}]0;t\u{1b}[1mx"),
            [Token::Dropped, Token::Text("0;t"), Token::Sgr("1"), Token::Text("x")]
        );
    }

    #[test]
    fn charset_selection_goes_whole() {
        assert_eq!(tokens("\u{1b}(Bx\u{1b}=y"), [Token::Dropped, Token::Text("x"), Token::Dropped, Token::Text("y")]);
        assert_eq!(tokens("\u{1b}(é"), [Token::Dropped, Token::Text("(é")]);
    }

    #[test]
    fn unclosed_strings_stay_linear() {
        let line = "\u{1b}]".repeat(200_000);
        let started = std::time::Instant::now();
        assert_eq!(Scanner::new(&line).count(), 200_000);
        assert!(started.elapsed().as_secs() < 5);
    }
}
