//! JSON skimmed, not read: where the members of a record stand, at several gigabytes a second.
//!
//! Nothing is parsed or checked here. The text is walked 64 bytes at a time with masks of its quotes and brackets (the
//! first stage of simdjson: Langdale & Lemire, "Parsing Gigabytes of JSON per Second", 2019); whoever needs a value
//! hands its bytes to [`super::json`]. Broken JSON gives `None` or a wrong place, never a panic.

use std::ops::Range;

use wide::u8x16;

use super::json::is_space;

/// Bytes looked at together.
const BLOCK: usize = 64;

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key as written, without its quotes (escapes are kept).
    pub key: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// The members of the object that `bytes` begins with, in order, and the offset behind it. `None` if it is no object
/// or does not end.
pub fn members(bytes: &[u8]) -> Option<(Vec<Member>, usize)> {
    let mut at = open(bytes, b'{')?;
    let mut found = Vec::new();
    if let Some(end) = closed(bytes, at, b'}') {
        return Some((found, end));
    }
    loop {
        at = space(bytes, at);
        let key_end = value_end(bytes, at).filter(|_| bytes.get(at) == Some(&b'"'))?;
        let key = at + 1..key_end - 1;
        at = space(bytes, key_end);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        at = space(bytes, at + 1);
        let end = value_end(bytes, at)?;
        found.push(Member { key, value: at..end });
        match next(bytes, end, b'}')? {
            Next::End(end) => return Some((found, end)),
            Next::More(next) => at = next,
        }
    }
}

/// The elements of the list that `bytes` begins with, each given to `each` until it returns `false`. `None` if it is no
/// list or does not end.
pub fn elements(bytes: &[u8], mut each: impl FnMut(Range<usize>) -> bool) -> Option<()> {
    let mut at = open(bytes, b'[')?;
    if closed(bytes, at, b']').is_some() {
        return Some(());
    }
    loop {
        at = space(bytes, at);
        let end = value_end(bytes, at)?;
        if !each(at..end) {
            return Some(());
        }
        match next(bytes, end, b']')? {
            Next::End(_) => return Some(()),
            Next::More(next) => at = next,
        }
    }
}

/// Where the value at a JSON pointer (RFC 6901) stands in `bytes`, which hold one value.
pub fn pointer(bytes: &[u8], pointer: &str) -> Option<Range<usize>> {
    let start = space(bytes, 0);
    let mut range = start..value_end(bytes, start)?;
    for part in pointer.split('/').skip(1) {
        let value = bytes.get(range.clone())?;
        let inner = if value.first() == Some(&b'[') {
            let wanted: usize = part.parse().ok()?;
            let (mut at, mut found) = (0, None);
            elements(value, |element| {
                found = (at == wanted).then_some(element);
                at += 1;
                found.is_none()
            })?;
            found?
        } else {
            let wanted = part.replace("~1", "/").replace("~0", "~");
            // The last one counts, as for every reader of JSON with doubled keys.
            let same = |m: &&Member| value.get(m.key.clone()).is_some_and(|key| key_is(key, &wanted));
            members(value)?.0.iter().rev().find(same)?.value.clone()
        };
        range = range.start + inner.start..range.start + inner.end;
    }
    Some(range)
}

/// Is a key as written this word?
pub fn key_is(written: &[u8], word: &str) -> bool {
    if !written.contains(&b'\\') {
        return written == word.as_bytes();
    }
    let quoted = [b"\"", written, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|key| key == word)
}

enum Next {
    More(usize),
    End(usize),
}

fn open(bytes: &[u8], bracket: u8) -> Option<usize> {
    let at = space(bytes, 0);
    (bytes.get(at) == Some(&bracket)).then_some(at + 1)
}

fn closed(bytes: &[u8], at: usize, bracket: u8) -> Option<usize> {
    let at = space(bytes, at);
    (bytes.get(at) == Some(&bracket)).then_some(at + 1)
}

fn next(bytes: &[u8], at: usize, bracket: u8) -> Option<Next> {
    let at = space(bytes, at);
    match bytes.get(at)? {
        b',' => Some(Next::More(at + 1)),
        b if *b == bracket => Some(Next::End(at + 1)),
        _ => None,
    }
}

fn space(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|b| !is_space(*b)).unwrap_or(rest.len())
}

/// Offset behind the value that starts at `at`.
pub fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at + 1),
        b'{' | b'[' => container_end(bytes, at),
        _ => {
            let rest = bytes.get(at..)?;
            let len = rest.iter().position(|b| is_space(*b) || b",]}".contains(b)).unwrap_or(rest.len());
            (len > 0).then_some(at + len)
        }
    }
}

/// Offset behind the closing quote of the string whose first character is at `from`.
pub fn string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let mut escape = 0;
    let mut at = from;
    let mut blocks = rest.chunks_exact(BLOCK);
    for block in blocks.by_ref() {
        if let Some(end) = quote_in(block, &mut escape) {
            return Some(at + end);
        }
        at += BLOCK;
    }
    let mut last = [b' '; BLOCK];
    let tail = blocks.remainder();
    last.get_mut(..tail.len())?.copy_from_slice(tail);
    quote_in(&last, &mut escape).map(|end| at + end)
}

/// Offset behind the first quote of a block that is not escaped.
#[inline]
fn quote_in(block: &[u8], escape: &mut u64) -> Option<usize> {
    let (quote, backslash) = quotes_of(block);
    let quotes = quote & !escaped(backslash, escape);
    (quotes != 0).then(|| quotes.trailing_zeros() as usize + 1)
}

/// State carried from block to block.
#[derive(Default)]
struct Carry {
    /// All ones while inside a string.
    in_string: u64,
    /// 1 if the first byte of the next block is escaped.
    escaped: u64,
}

/// Offset behind the bracket that closes the one at `from`.
fn container_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut carry = Carry::default();
    let mut depth = 0_u32;
    let rest = bytes.get(from..)?;
    let mut base = from;
    let mut blocks = rest.chunks_exact(BLOCK);
    for block in blocks.by_ref() {
        if let Some(end) = block_end(block, &mut carry, &mut depth) {
            return Some(base + end);
        }
        base += BLOCK;
    }
    let mut last = [b' '; BLOCK];
    let tail = blocks.remainder();
    last.get_mut(..tail.len())?.copy_from_slice(tail);
    block_end(&last, &mut carry, &mut depth).map(|end| base + end)
}

/// Offset in the block behind the bracket that closes the outermost one, if it stands in this block.
fn block_end(block: &[u8], carry: &mut Carry, depth: &mut u32) -> Option<usize> {
    let (quote, backslash) = quotes_of(block);
    let quotes = quote & !escaped(backslash, &mut carry.escaped);
    if quotes == 0 && carry.in_string != 0 {
        // In the midst of a long string, where most of a trajectory is.
        return None;
    }
    let masks = Masks::of(block);
    let inside = prefix_xor(quotes) ^ carry.in_string;
    // The last bit tells the state at the block's end; spread over all bits by the sign.
    carry.in_string = ((inside as i64) >> 63) as u64;
    let (mut opens, mut closes) = (masks.open & !inside, masks.close & !inside);
    if closes.count_ones() < *depth {
        *depth = *depth + opens.count_ones() - closes.count_ones();
        return None;
    }
    while closes != 0 {
        let at = closes.trailing_zeros();
        let before = opens & ((1_u64 << at) - 1);
        *depth += before.count_ones();
        opens ^= before;
        closes &= closes - 1;
        if *depth <= 1 {
            return Some(at as usize + 1);
        }
        *depth -= 1;
    }
    *depth += opens.count_ones();
    None
}

/// The quotes and the backslashes of a block, one bit a byte.
#[inline]
fn quotes_of(block: &[u8]) -> (u64, u64) {
    let (mut quote, mut backslash) = (0_u64, 0_u64);
    for (i, part) in block.chunks_exact(16).enumerate() {
        let Ok(part) = <[u8; 16]>::try_from(part) else { continue };
        let bytes = u8x16::new(part);
        quote |= u64::from(simd_eq(bytes, u8x16::splat(b'"')).to_bitmask()) << (16 * i);
        backslash |= u64::from(simd_eq(bytes, u8x16::splat(b'\\')).to_bitmask()) << (16 * i);
    }
    (quote, backslash)
}

/// The brackets of a block, one bit a byte.
struct Masks {
    open: u64,
    close: u64,
}

impl Masks {
    #[inline]
    fn of(block: &[u8]) -> Self {
        let mut masks = Self { open: 0, close: 0 };
        for (i, part) in block.chunks_exact(16).enumerate() {
            let Ok(part) = <[u8; 16]>::try_from(part) else { continue };
            let bytes = u8x16::new(part);
            // `[` and `]` differ from `{` and `}` by one bit.
            let brackets = bytes | u8x16::splat(0x20);
            let mask = |of: u8x16, byte: u8| u64::from(simd_eq(of, u8x16::splat(byte)).to_bitmask()) << (16 * i);
            masks.open |= mask(brackets, b'{');
            masks.close |= mask(brackets, b'}');
        }
        masks
    }
}

#[inline]
fn simd_eq(a: u8x16, b: u8x16) -> u8x16 {
    a.simd_eq(b)
}

/// Bytes that stand behind an odd number of backslashes.
fn escaped(backslash: u64, carry: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    if backslash == 0 {
        return std::mem::take(carry);
    }
    let backslash = backslash & !*carry;
    let follows = (backslash << 1) | *carry;
    let odd_starts = backslash & !EVEN & !follows;
    let (even_sequences, overflow) = odd_starts.overflowing_add(backslash);
    *carry = u64::from(overflow);
    (EVEN ^ (even_sequences << 1)) & follows
}

/// Every bit is the parity of the bits up to it: ones between an opening and a closing quote.
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn keys(text: &str) -> Vec<(&str, &str)> {
        let (members, end) = members(text.as_bytes()).unwrap();
        assert_eq!(end, text.trim_end().len());
        members.into_iter().map(|m| (&text[m.key], &text[m.value])).collect()
    }

    #[test]
    fn members_are_found_without_reading_them() {
        let text = r#" {"a": 1, "b" : "x\"y\\", "c":[{"d":"]}"},[]], "e":{}, "f": null} "#;
        let expected = [("a", "1"), ("b", r#""x\"y\\""#), ("c", r#"[{"d":"]}"},[]]"#), ("e", "{}"), ("f", "null")];
        assert_eq!(keys(text), expected);
        assert!(keys("{}").is_empty());
        for broken in ["", "[", "{", r#"{"a"#, r#"{"a":"#, r#"{"a":1"#, r#"{"a":[1}"#, "{1:2}", r#"{"a" 1}"#] {
            assert!(members(broken.as_bytes()).is_none(), "{broken}");
        }
    }

    #[test]
    fn escapes_are_followed_over_the_ends_of_blocks() {
        for pad in 0..140 {
            for slashes in 0..6 {
                let inner = format!("{}{}\"", "x".repeat(pad), "\\\\".repeat(slashes));
                let text = format!(r#"{{"k":["{inner},"]"],"z":1}}"#);
                let parsed: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(parsed["z"], 1);
                assert_eq!(keys(&text)[1], ("z", "1"), "{text}");
                let odd = format!(r#"{{"k":["{}{}\"]","]"],"z":1}}"#, "x".repeat(pad), "\\\\".repeat(slashes));
                assert_eq!(serde_json::from_str::<Value>(&odd).unwrap()["z"], 1);
                assert_eq!(keys(&odd)[1], ("z", "1"), "{odd}");
            }
        }
    }

    #[test]
    fn pointers_lead_to_the_bytes() {
        let text = r#"{"a/b":[10,{"c":"x"}],"d~":{"e":[[],[7]]},"a":1,"a":2}"#;
        let at = |p: &str| pointer(text.as_bytes(), p).map(|r| &text[r]);
        assert_eq!(at(""), Some(text));
        assert_eq!(at("/a~1b/1/c"), Some("\"x\""));
        assert_eq!(at("/d~0/e/1/0"), Some("7"));
        assert_eq!(at("/a"), Some("2"));
        assert_eq!(at("/a~1b/2"), None);
        assert_eq!(at("/x"), None);
        let escaped = "{\"k\\u00e4y\": 5}";
        assert_eq!(pointer(escaped.as_bytes(), "/käy").map(|r| &escaped[r]), Some("5"));
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(value_end(text.as_bytes(), 0), Some(text.len()));
        assert_eq!(value_end(&text.as_bytes()[..text.len() - 1], 0), None);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(|n| json!(n)),
            "[a\\\\\"{}\\[\\]:, \n]{0,90}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::btree_map("[a\\\\\"{}]{0,6}", inner, 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn skimming_agrees_with_reading(value in values(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            prop_assert_eq!(value_end(text.as_bytes(), 0), Some(text.len()));
            if let Value::Object(object) = &value {
                let (found, _) = members(text.as_bytes()).unwrap();
                prop_assert_eq!(found.len(), object.len());
                for (member, (key, inner)) in found.iter().zip(object) {
                    prop_assert!(key_is(text[member.key.clone()].as_bytes(), key));
                    let read: Value = serde_json::from_str(&text[member.value.clone()]).unwrap();
                    prop_assert_eq!(&read, inner);
                }
            }
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, text in "[{}\\[\\]\":,\\\\0a ]{0,80}") {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                let places = (members(bytes), elements(bytes, |_| true), pointer(bytes, "/0/a"));
                prop_assert!(places.2.is_none_or(|range| range.end <= bytes.len()));
            }
        }
    }
}
