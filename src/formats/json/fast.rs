//! Strict JSON read quickly: the same values `serde_json` gives, for texts that are mostly long strings.
//!
//! Trajectories are text with an escape in every line. A string is looked at 32 bytes at a time; one without escapes is
//! a slice of the record, one with them is copied in blocks of what stands between. Anything out of the ordinary (deep
//! nesting, floats, broken escapes) is left to `serde_json` or refused.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::Number;
use wide::u8x16;

use super::map::{Map, Member};
use super::{Value, is_json_space};

/// Deeper values are read without recursion, by the repairing scanner.
const DEPTH: usize = 120;
/// Bytes of a string looked at together.
const BLOCK: usize = 32;

/// More memory than this is not kept for the next value.
const KEPT: usize = 1 << 20;
/// Bytes of a member of an object, about.
const ENTRY: usize = 64;

/// Memory of a reader, for the next one.
#[derive(Default)]
struct Spare {
    members: Vec<Member<'static>>,
    items: Vec<Value<'static>>,
    text: Vec<u8>,
}

thread_local! {
    static SPARE: Cell<Spare> = const { Cell::new(Spare { members: Vec::new(), items: Vec::new(), text: Vec::new() }) };
}

/// The memory of a list for elements of another lifetime: the standard library collects in place.
fn emptied<A, B>(list: Vec<A>) -> Vec<B> {
    list.into_iter().filter_map(|_| None).collect()
}

/// Reads the first value of `bytes`; the offset is just behind it. `None` if it is not strict JSON, or nested deeply.
pub fn prefix(bytes: &[u8]) -> Option<(Value<'_>, usize)> {
    let mut spare = SPARE.take();
    let text = std::mem::take(&mut spare.text);
    let mut reader = Reader { bytes, at: 0, members: emptied(spare.members), items: emptied(spare.items), text };
    reader.space();
    let value = reader.value(0);
    let entries = reader.members.capacity().max(reader.items.capacity());
    if reader.text.len() < KEPT && entries < KEPT / ENTRY {
        SPARE.set(Spare { members: emptied(reader.members), items: emptied(reader.items), text: reader.text });
    }
    Some((value?, reader.at))
}

/// Reads values. Members and elements are collected on stacks and moved out together, so that each object and list is
/// allocated once, in its size.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    members: Vec<Member<'a>>,
    items: Vec<Value<'a>>,
    /// Where a string with escapes is put together; never made shorter.
    text: Vec<u8>,
}

impl<'a> Reader<'a> {
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

    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
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

    fn word(&mut self, word: &[u8], value: Value<'a>) -> Option<Value<'a>> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())?;
        Some(value)
    }

    fn object(&mut self, depth: usize) -> Option<Value<'a>> {
        self.at += 1;
        let first = self.members.len();
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
            self.members.push((key, value));
            if self.take(b'}') {
                return Some(Value::Object(Map::of(self.members.drain(first..).collect())));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value<'a>> {
        self.at += 1;
        let first = self.items.len();
        if self.take(b']') {
            return Some(Value::Array(Vec::new()));
        }
        loop {
            self.space();
            let item = self.value(depth)?;
            self.items.push(item);
            if self.take(b']') {
                return Some(Value::Array(self.items.drain(first..).collect()));
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn number(&mut self) -> Option<Value<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let len = rest.iter().position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let token = rest.get(..len.unwrap_or(rest.len()))?;
        let plain =
            token.len() < 19 && token.iter().all(u8::is_ascii_digit) && (token.len() == 1 || !token.starts_with(b"0"));
        let number = if plain {
            Number::from(token.iter().fold(0_u64, |n, digit| n * 10 + u64::from(digit - b'0')))
        } else {
            serde_json::from_slice(token).ok()?
        };
        self.at += token.len();
        Some(Value::Number(number))
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at + 1;
        let end = special(self.bytes, start)?;
        match self.bytes.get(end)? {
            b'"' => {
                self.at = end + 1;
                std::str::from_utf8(self.bytes.get(start..end)?).ok().map(Cow::Borrowed)
            }
            b'\\' => self.escaped(start, end),
            // Control characters must be escaped.
            _ => None,
        }
    }

    /// A string from `start` on, whose first escape stands at `at`.
    fn escaped(&mut self, start: usize, mut at: usize) -> Option<Cow<'a, str>> {
        let mut len = at - start;
        self.room(len);
        self.text.get_mut(..len)?.copy_from_slice(self.bytes.get(start..at)?);
        loop {
            match self.bytes.get(at)? {
                b'"' => break,
                b'\\' => {
                    let plain = PLAIN.get(usize::from(*self.bytes.get(at + 1)?)).copied().unwrap_or_default();
                    self.room(len);
                    if plain != 0 {
                        *self.text.get_mut(len)? = plain;
                        (at, len) = (at + 2, len + 1);
                    } else {
                        let (read, character) = unicode(self.bytes.get(at..)?)?;
                        let mut utf8 = [0; 4];
                        let decoded = character.encode_utf8(&mut utf8).len();
                        *self.text.get_mut(len..)?.first_chunk_mut()? = utf8;
                        (at, len) = (at + read, len + decoded);
                    }
                }
                _ => return None,
            }
            // What is plain up to the next escape is copied in blocks, the last of them longer than needed.
            loop {
                self.room(len);
                let Some(block) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) else {
                    let next = special(self.bytes, at)?;
                    let plain = self.bytes.get(at..next)?;
                    self.text.get_mut(len..len + plain.len())?.copy_from_slice(plain);
                    (at, len) = (next, len + plain.len());
                    break;
                };
                *self.text.get_mut(len..)?.first_chunk_mut()? = *block;
                let specials = specials(block);
                let plain = specials.trailing_zeros() as usize;
                (at, len) = (at + plain, len + plain);
                if specials != 0 {
                    break;
                }
            }
        }
        self.at = at + 1;
        let text = std::str::from_utf8(self.text.get(..len)?).ok()?;
        Some(Cow::Owned(text.to_owned()))
    }

    /// Makes room for a block behind the first `len` bytes of the text.
    fn room(&mut self, len: usize) {
        if self.text.len() < len + BLOCK {
            self.text.resize((len + BLOCK) * 2, 0);
        }
    }
}

/// Offset of the first byte from `at` on that does not stand for itself in a string: a quote, a backslash or a control
/// character.
#[inline]
pub fn special(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let specials = specials(block);
        if specials != 0 {
            return Some(at + specials.trailing_zeros() as usize);
        }
        at += BLOCK;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|b| matches!(b, b'"' | b'\\') || *b < 0x20).map(|ahead| at + ahead)
}

/// A bit for each byte that does not stand for itself in a string.
#[inline]
fn specials(block: &[u8; BLOCK]) -> u32 {
    let half = |bytes: Option<&[u8; 16]>| {
        let bytes = u8x16::new(bytes.copied().unwrap_or_default());
        let control = bytes.min(u8x16::splat(0x1F)).simd_eq(bytes);
        let found = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\')) | control;
        found.to_bitmask()
    };
    half(block.first_chunk()) | half(block.last_chunk()) << 16
}

/// What a letter behind a backslash stands for; 0 for those that are no escape by themselves.
#[expect(clippy::indexing_slicing, reason = "in a constant the compiler checks the places")]
static PLAIN: [u8; 256] = {
    let mut plain = [0; 256];
    plain[b'n' as usize] = b'\n';
    plain[b't' as usize] = b'\t';
    plain[b'r' as usize] = b'\r';
    plain[b'b' as usize] = 8;
    plain[b'f' as usize] = 12;
    plain[b'"' as usize] = b'"';
    plain[b'\\' as usize] = b'\\';
    plain[b'/' as usize] = b'/';
    plain
};

/// The character that `text` begins with, as a `\u` escape or two, and the length of that.
fn unicode(text: &[u8]) -> Option<(usize, char)> {
    let code = |at: usize| {
        let digits = text.get(at..at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit))?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let first = code(2).filter(|_| text.get(1) == Some(&b'u'))?;
    if !(0xD800..0xDC00).contains(&first) {
        // A lone second half has no character, and is refused.
        return Some((6, char::from_u32(first)?));
    }
    let second = code(8).filter(|c| text.get(6..8) == Some(br"\u") && (0xDC00..0xE000).contains(c))?;
    Some((12, char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Tree;

    use super::*;

    /// What `serde_json` makes of it.
    fn reference(bytes: &[u8]) -> Option<(Tree, usize)> {
        let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Tree>();
        let value = stream.next()?.ok()?;
        Some((value, stream.byte_offset()))
    }

    /// Also in the order of the members, which comparing alone does not see.
    fn equal(ours: Option<(Value<'_>, usize)>, theirs: Option<(Tree, usize)>, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        assert_eq!(ours.is_some(), theirs.is_some(), "{text}");
        let Some(((ours, end), (theirs, their_end))) = ours.zip(theirs) else { return };
        assert_eq!(ours.to_string(), theirs.to_string(), "{text}");
        assert_eq!((ours, end), (Value::from(theirs), their_end), "{text}");
    }

    fn same(text: &[u8]) {
        let (ours, theirs) = (prefix(text), reference(text));
        // Behind a number `serde_json` wants the value to end; nobody here depends on it.
        if theirs.is_some() || ours.as_ref().is_some_and(|(v, _)| !v.is_number() && !v.is_null() && !v.is_boolean()) {
            equal(ours, theirs, text);
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

    fn values() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            Just(Tree::Null),
            any::<bool>().prop_map(Tree::Bool),
            any::<i64>().prop_map(Tree::from),
            any::<f64>().prop_map(Tree::from),
            any::<String>().prop_map(Tree::String),
            "[a\\\\\"\n\té{}]{0,150}".prop_map(Tree::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::Array),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|m| Tree::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_read_as_serde_json_reads_them(value in values(), pretty: bool) {
            let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
            equal(prefix(&text), reference(&text), &text);
        }

        #[test]
        fn the_repairing_scanner_reads_the_same(value in values(), pretty: bool) {
            let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
            let repaired = super::super::repair::prefix(&text).unwrap();
            prop_assert!(!repaired.repairs.any());
            equal(Some((repaired.value, repaired.end)), reference(&text), &text);
        }

        #[test]
        fn of_repeated_keys_the_last_value_counts_at_the_place_of_the_first(
            members in prop::collection::vec(("[ab\u{e9}]{0,3}", any::<i64>()), 0..70), spaced: bool
        ) {
            let space = if spaced { " \n" } else { "" };
            let members: Vec<String> = members.iter().map(|(key, n)| format!("{space}\"{key}\"{space}:{n}")).collect();
            let text = format!("{{{}}}", members.join(","));
            equal(prefix(text.as_bytes()), reference(text.as_bytes()), text.as_bytes());
            let repaired = super::super::repair::prefix(text.as_bytes()).unwrap();
            equal(Some((repaired.value, repaired.end)), reference(text.as_bytes()), text.as_bytes());
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
