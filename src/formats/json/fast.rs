//! Strict JSON read quickly: the same values `serde_json` gives, for texts that are mostly long strings.
//!
//! Trajectories are text with an escape in every line. The end of a string is found 64 bytes at a time, its text is
//! copied once, and what is between two escapes is copied as a whole. Anything out of the ordinary (deep nesting,
//! floats, broken escapes) is left to `serde_json` or refused.

use serde_json::{Map, Value};

use super::super::skim;
use super::is_json_space;

/// Deeper values are read without recursion, by the repairing scanner.
const DEPTH: usize = 120;

/// Reads the first value of `bytes`; the offset is just behind it. `None` if it is not strict JSON, or nested deeply.
pub fn prefix(bytes: &[u8]) -> Option<(Value, usize)> {
    let mut reader = Reader { bytes, at: 0 };
    reader.space();
    let value = reader.value(0)?;
    Some((value, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(|b| is_json_space(*b)) {
            self.at += 1;
        }
    }

    /// The next byte that is no white space, taken if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.bytes.get(self.at)? {
            b'"' => self.string().map(Value::String),
            b'{' if depth < DEPTH => self.object(depth + 1),
            b'[' if depth < DEPTH => self.list(depth + 1),
            b't' => self.word(b"true", Value::Bool(true)),
            b'f' => self.word(b"false", Value::Bool(false)),
            b'n' => self.word(b"null", Value::Null),
            b'0'..=b'9' | b'-' => self.number(),
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8], value: Value) -> Option<Value> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())?;
        Some(value)
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut members = Map::with_capacity(8);
        if self.take(b'}') {
            return Some(Value::Object(Map::new()));
        }
        loop {
            self.space();
            if self.bytes.get(self.at) != Some(&b'"') {
                return None;
            }
            let key = self.string()?;
            if !self.take(b':') {
                return None;
            }
            self.space();
            let value = self.value(depth)?;
            members.insert(key, value);
            if self.take(b'}') {
                return Some(Value::Object(members));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Some(Value::Array(items));
        }
        loop {
            self.space();
            items.push(self.value(depth)?);
            if self.take(b']') {
                return Some(Value::Array(items));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn number(&mut self) -> Option<Value> {
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let token = rest.get(..len.unwrap_or(rest.len()))?;
        let plain =
            token.len() < 19 && token.iter().all(u8::is_ascii_digit) && (token.len() == 1 || !token.starts_with(b"0"));
        let value = if plain {
            Value::from(token.iter().fold(0_u64, |n, digit| n * 10 + u64::from(digit - b'0')))
        } else {
            serde_json::from_slice(token).ok()?
        };
        self.at += token.len();
        Some(value)
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at + 1;
        let end = skim::string_end(self.bytes, start)?;
        let text = self.bytes.get(start..end - 1)?;
        self.at = end;
        // Control characters must be escaped. Without a way out early, so that many bytes are looked at together.
        if text.iter().fold(u8::MAX, |least, b| least.min(*b)) < 0x20 {
            return None;
        }
        let Some(first) = memchr::memchr(b'\\', text) else {
            return std::str::from_utf8(text).ok().map(str::to_owned);
        };
        unescaped(text, first)
    }
}

/// A text with its escapes resolved; the first of them stands at `first`.
fn unescaped(text: &[u8], first: usize) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let (mut plain, mut rest) = text.split_at_checked(first)?;
    loop {
        out.extend_from_slice(plain);
        let (len, character) = escape(rest)?;
        match character {
            Escape::Byte(byte) => out.push(byte),
            Escape::Char(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = rest.get(len..)?;
        let Some(next) = memchr::memchr(b'\\', rest) else {
            out.extend_from_slice(rest);
            return String::from_utf8(out).ok();
        };
        (plain, rest) = rest.split_at_checked(next)?;
    }
}

enum Escape {
    Byte(u8),
    Char(char),
}

/// The escape that `text` begins with, and its length.
fn escape(text: &[u8]) -> Option<(usize, Escape)> {
    let byte = match text.get(1)? {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        same @ (b'"' | b'\\' | b'/') => *same,
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((2, Escape::Byte(byte)))
}

fn unicode(text: &[u8]) -> Option<(usize, Escape)> {
    let code = |at: usize| {
        let digits = text.get(at..at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit))?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = code(2)?;
    if !(0xD800..0xDC00).contains(&first) {
        // A lone second half has no character, and is refused.
        return Some((6, Escape::Char(char::from_u32(first)?)));
    }
    let second = code(8).filter(|c| text.get(6..8) == Some(br"\u") && (0xDC00..0xE000).contains(c))?;
    Some((12, Escape::Char(char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What `serde_json` makes of it.
    fn reference(bytes: &[u8]) -> Option<(Value, usize)> {
        let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
        let value = stream.next()?.ok()?;
        Some((value, stream.byte_offset()))
    }

    fn same(text: &[u8]) {
        let (ours, theirs) = (prefix(text), reference(text));
        // Behind a number `serde_json` wants the value to end; nobody here depends on it.
        if theirs.is_some() || ours.as_ref().is_some_and(|(v, _)| !v.is_number() && !v.is_null() && !v.is_boolean()) {
            assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn odd_texts_are_read_as_serde_json_reads_them() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "\"",
            "{}",
            "[]",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{a:1}",
            "[01]",
            "[-0]",
            "[-1]",
            "[1.50]",
            "[1e5]",
            "[1E400]",
            "[18446744073709551615]",
            "[18446744073709551616]",
            "[--1]",
            "[1-2]",
            "[.5]",
            "[tru]",
            "[true,false,null]",
            "[nullx]",
            "\"\\u00e4\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\u12\"",
            "\"\\ud83d\\u0041\"",
            "\"\\x\"",
            "\"a\nb\"",
            "\"a\\",
            "\"\\\\\\\"\"",
            "{\"a\":1,\"b\":2,\"a\":3}",
            "{} {}",
            "[1]x",
            "\u{feff}{}",
            "[\"\\/\\b\\f\\n\\r\\t\"]",
            "{\"k\\n\":[{\"x\":{}}]}",
            "\"\u{7f}\u{80}é😀\"",
            "[1 2]",
            "[,1]",
            "{,}",
        ] {
            same(text.as_bytes());
        }
        same(b"\"\xff\"");
        same(b"[\"a\\n\xc3\"]");
        same(&[b'[', b'"', 0, b'"', b']']);
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n)).into_bytes();
        same(&deep(DEPTH));
        assert!(prefix(&deep(DEPTH + 1)).is_none(), "left to the scanner");
    }

    #[test]
    fn escapes_are_resolved_wherever_blocks_end() {
        for pad in 0..140 {
            for tail in ["\\n", "\\\\", "\\\"", "\\u00e4", "\\ud83d\\ude00", "\\\\\\\\", "é"] {
                same(format!("[\"{}{tail}{}\", 1]", "x".repeat(pad), "y".repeat(pad % 7)).as_bytes());
            }
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::String),
            "[a\\\\\"\n\té{}]{0,150}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_read_as_serde_json_reads_them(value in values(), pretty: bool) {
            let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
            prop_assert_eq!(prefix(&text), reference(&text));
        }

        #[test]
        fn broken_texts_are_refused_as_serde_json_refuses_them(value in values(), at: prop::sample::Index, new: u8) {
            let mut text = serde_json::to_vec(&value).unwrap();
            let at = at.index(text.len());
            text[at] = new;
            same(&text);
            same(&text[..at]);
        }

        #[test]
        fn any_bytes_are_read_as_serde_json_reads_them(bytes: Vec<u8>, text in "[{}\\[\\]\":,\\\\u0-9a.e+-]{0,60}") {
            same(&bytes);
            same(text.as_bytes());
        }
    }
}
