//! JSON as it is found on disk: strict first, then with repairs, each of them counted.
//!
//! The strict reader is `serde_json`. What it refuses goes through an own scanner without recursion, which reads
//! deep nesting, `NaN` and `Infinity`, lone surrogates, trailing commas, raw control characters and invalid UTF-8,
//! and which can close what a cut file left open.

mod fast;

use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value};

/// Deepest nesting read. Real trees reach a depth of 207; far deeper input is an attack on whoever walks it.
pub const MAX_DEPTH: usize = 1_000;

/// What had to be repaired in a text to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repairs {
    /// `NaN`, `Infinity` and `-Infinity`, read as null.
    pub non_finite: usize,
    /// Escaped halves of a surrogate pair, read as U+FFFD.
    pub surrogates: usize,
    /// Commas before a closing bracket, or doubled.
    pub commas: usize,
    /// Control characters that stood unescaped in a string, kept.
    pub controls: usize,
    /// Unknown escapes such as `\x`, kept as they stand.
    pub escapes: usize,
    /// Byte sequences that are not UTF-8, read as U+FFFD.
    pub utf8: usize,
    /// Was the text cut, so that open objects and lists were closed and the unfinished member dropped?
    pub cut: bool,
}

impl Repairs {
    /// Was anything repaired?
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    /// Adds the counts of another text.
    pub fn add(&mut self, other: &Self) {
        self.non_finite += other.non_finite;
        self.surrogates += other.surrogates;
        self.commas += other.commas;
        self.controls += other.controls;
        self.escapes += other.escapes;
        self.utf8 += other.utf8;
        self.cut |= other.cut;
    }

    /// One clause a kind of repair, for a diagnostic; empty if nothing was repaired.
    pub fn describe(&self) -> String {
        let counted = [
            (self.non_finite, "NaN or Infinity read as null"),
            (self.surrogates, "lone surrogate escape read as U+FFFD"),
            (self.commas, "stray comma ignored"),
            (self.controls, "raw control character in a string kept"),
            (self.escapes, "unknown escape kept as text"),
            (self.utf8, "invalid UTF-8 sequence read as U+FFFD"),
        ];
        let parts: Vec<String> =
            counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} × {what}")).collect();
        parts.join(", ")
    }
}

/// A value read with repairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Offset just behind it.
    pub end: usize,
    /// What was repaired.
    pub repairs: Repairs,
}

/// Why a text is not JSON even with repairs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct JsonError {
    /// Byte offset in the text given.
    pub at: usize,
    /// What was found or missing.
    pub what: &'static str,
}

/// Reads the first JSON value of `bytes`, strictly. `None` if it is not valid JSON; the offset is just behind it.
pub fn strict_prefix(bytes: &[u8]) -> Option<(Value, usize)> {
    fast::prefix(bytes)
}

/// Length of the first JSON object or list of `bytes`, read strictly and not kept. `None` if that is not what it is.
pub fn strict_len(bytes: &[u8]) -> Option<usize> {
    if !matches!(bytes.first(), Some(b'{' | b'[')) {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
    stream.next()?.ok()?;
    Some(stream.byte_offset())
}

/// Reads a text that should be exactly one JSON value: strictly, else with repairs.
///
/// # Errors
/// When it is not a value even so, or something follows it, or it is cut.
pub fn parse(bytes: &[u8]) -> Result<Parsed, JsonError> {
    if let Some((value, end)) = fast::prefix(bytes)
        && bytes.get(end..).is_some_and(|rest| rest.iter().all(|b| is_json_space(*b)))
    {
        return Ok(Parsed { value, end: bytes.len(), repairs: Repairs::default() });
    }
    let parsed = repair_prefix(bytes)?;
    if parsed.repairs.cut {
        return Err(JsonError { at: bytes.len(), what: "the text ends inside a value" });
    }
    match bytes.get(parsed.end..).and_then(|rest| rest.iter().position(|b| !is_space(*b))) {
        Some(ahead) => Err(JsonError { at: parsed.end + ahead, what: "something follows the value" }),
        None => Ok(parsed),
    }
}

/// Reads the first JSON value of `bytes` with repairs. If the text ends inside it, what is complete is kept and
/// [`Repairs::cut`] set.
///
/// # Errors
/// When the first value is not JSON even so.
pub fn repair_prefix(bytes: &[u8]) -> Result<Parsed, JsonError> {
    Scanner { bytes, at: 0, repairs: Repairs::default(), open: Vec::new(), root: None }.run()
}

/// White space between the tokens of JSON.
pub fn is_json_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// JSON white space (and NUL, which killed writers leave in runs).
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0)
}

enum Open {
    List(Vec<Value>),
    Object(Map<String, Value>, Option<String>),
}

#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    CommaOrEnd,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    repairs: Repairs,
    open: Vec<Open>,
    root: Option<Value>,
}

impl Scanner<'_> {
    fn run(mut self) -> Result<Parsed, JsonError> {
        let mut expect = Expect::Value;
        while self.root.is_none() {
            self.skip_space();
            let Some(byte) = self.peek() else {
                return self.close_cut();
            };
            let step = match expect {
                Expect::Value => self.value(byte),
                Expect::ValueOrEnd => self.value_or_end(byte),
                Expect::KeyOrEnd => self.key_or_end(byte),
                Expect::CommaOrEnd => self.comma_or_end(byte),
            };
            match step {
                Ok(next) => expect = next,
                // A token that runs into the end of the text is a cut, not an error.
                Err(_) if self.at >= self.bytes.len() => return self.close_cut(),
                Err(what) => return Err(JsonError { at: self.at, what }),
            }
        }
        Ok(Parsed { value: self.root.unwrap_or(Value::Null), end: self.at, repairs: self.repairs })
    }

    fn value(&mut self, byte: u8) -> Result<Expect, &'static str> {
        match byte {
            b'{' | b'[' => {
                if self.open.len() >= MAX_DEPTH {
                    return Err("nested deeper than 1000 levels");
                }
                self.at += 1;
                if byte == b'{' {
                    self.open.push(Open::Object(Map::new(), None));
                    Ok(Expect::KeyOrEnd)
                } else {
                    self.open.push(Open::List(Vec::new()));
                    Ok(Expect::ValueOrEnd)
                }
            }
            b'"' => {
                let text = self.string()?;
                Ok(self.put(Value::String(text)))
            }
            _ => {
                let value = self.scalar()?;
                Ok(self.put(value))
            }
        }
    }

    fn value_or_end(&mut self, byte: u8) -> Result<Expect, &'static str> {
        match byte {
            b']' => self.close(byte),
            b',' => Ok(self.stray_comma(Expect::ValueOrEnd)),
            _ => self.value(byte),
        }
    }

    fn key_or_end(&mut self, byte: u8) -> Result<Expect, &'static str> {
        match byte {
            b'}' => self.close(byte),
            b',' => Ok(self.stray_comma(Expect::KeyOrEnd)),
            b'"' => {
                let name = self.string()?;
                self.skip_space();
                if self.peek() != Some(b':') {
                    return Err("a colon is missing after a key");
                }
                self.at += 1;
                if let Some(Open::Object(_, key)) = self.open.last_mut() {
                    *key = Some(name);
                }
                Ok(Expect::Value)
            }
            _ => Err("a key in double quotes was expected"),
        }
    }

    fn comma_or_end(&mut self, byte: u8) -> Result<Expect, &'static str> {
        if byte != b',' {
            return self.close(byte);
        }
        self.at += 1;
        let in_list = matches!(self.open.last(), Some(Open::List(_)));
        self.skip_space();
        if matches!(self.peek(), Some(b']' | b'}')) {
            self.repairs.commas += 1;
        }
        Ok(if in_list { Expect::ValueOrEnd } else { Expect::KeyOrEnd })
    }

    fn stray_comma(&mut self, next: Expect) -> Expect {
        self.at += 1;
        self.repairs.commas += 1;
        next
    }

    fn close(&mut self, byte: u8) -> Result<Expect, &'static str> {
        let fits = match self.open.last() {
            Some(Open::List(_)) => byte == b']',
            Some(Open::Object(..)) => byte == b'}',
            None => false,
        };
        if !fits {
            return Err("a comma or the right closing bracket was expected");
        }
        self.at += 1;
        Ok(self.pop())
    }

    fn pop(&mut self) -> Expect {
        match self.open.pop() {
            Some(Open::List(items)) => self.put(Value::Array(items)),
            Some(Open::Object(members, _)) => self.put(Value::Object(members)),
            None => Expect::CommaOrEnd,
        }
    }

    fn put(&mut self, value: Value) -> Expect {
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(members, key)) => {
                if let Some(key) = key.take() {
                    // Of duplicate keys the last one wins, as in Python.
                    members.insert(key, value);
                }
            }
            None => self.root = Some(value),
        }
        Expect::CommaOrEnd
    }

    /// The text ended: closes everything that is open, without the member that was being read.
    fn close_cut(mut self) -> Result<Parsed, JsonError> {
        if self.open.is_empty() {
            return Err(JsonError { at: self.at.min(self.bytes.len()), what: "the text ends before a value" });
        }
        while !self.open.is_empty() {
            let _next = self.pop();
        }
        self.repairs.cut = true;
        let value = self.root.unwrap_or(Value::Null);
        Ok(Parsed { value, end: self.bytes.len(), repairs: self.repairs })
    }

    fn scalar(&mut self) -> Result<Value, &'static str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = rest
            .iter()
            .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))
            .unwrap_or(rest.len());
        let token = std::str::from_utf8(rest.get(..len).unwrap_or_default()).unwrap_or_default();
        let value = match token {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            "NaN" | "nan" | "-NaN" | "Infinity" | "-Infinity" | "inf" | "-inf" => {
                self.repairs.non_finite += 1;
                Value::Null
            }
            _ if len == rest.len() && self.open.is_empty() && token.is_empty() => {
                return Err("a value was expected");
            }
            _ => {
                let Ok(number) = serde_json::from_str::<Number>(token) else {
                    if len == rest.len() {
                        self.at = self.bytes.len();
                    }
                    return Err("a JSON value was expected");
                };
                Value::Number(number)
            }
        };
        self.at += len;
        Ok(value)
    }

    fn string(&mut self) -> Result<String, &'static str> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(len) = rest.iter().position(|b| matches!(b, b'"' | b'\\') || *b < 0x20) else {
                self.at = self.bytes.len();
                return Err("the string does not end");
            };
            out.extend_from_slice(rest.get(..len).unwrap_or_default());
            self.at += len;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.utf8(out));
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(control) => {
                    self.repairs.controls += 1;
                    out.push(control);
                    self.at += 1;
                }
                None => return Err("the string does not end"),
            }
        }
    }

    fn utf8(&mut self, bytes: Vec<u8>) -> String {
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                self.repairs.utf8 += error.as_bytes().utf8_chunks().filter(|c| !c.invalid().is_empty()).count();
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let Some(&kind) = self.bytes.get(self.at + 1) else {
            self.at = self.bytes.len();
            return Err("the string does not end");
        };
        self.at += 2;
        let plain = match kind {
            b'"' | b'\\' | b'/' => kind,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let decoded = self.unicode();
                out.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                self.repairs.escapes += 1;
                out.push(b'\\');
                kind
            }
        };
        out.push(plain);
        Ok(())
    }

    /// Behind `\u`: one character, from one escape or a surrogate pair.
    fn unicode(&mut self) -> char {
        let Some(first) = self.hex4() else {
            self.repairs.escapes += 1;
            return char::REPLACEMENT_CHARACTER;
        };
        if (0xD800..0xDC00).contains(&first) && self.bytes.get(self.at..self.at + 2) == Some(br"\u") {
            let back = self.at;
            self.at += 2;
            if let Some(second @ 0xDC00..0xE000) = self.hex4() {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            self.at = back;
        }
        char::from_u32(first).unwrap_or_else(|| {
            self.repairs.surrogates += 1;
            char::REPLACEMENT_CHARACTER
        })
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        let text = std::str::from_utf8(digits).ok()?;
        let code = u32::from_str_radix(text, 16).ok()?;
        self.at += 4;
        Some(code)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests;
