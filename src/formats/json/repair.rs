//! JSON with repairs, read without recursion.

use std::borrow::Cow;

use serde_json::Number;

use super::fast::special;
use super::map::{Map, Member};
use super::{JsonError, MAX_DEPTH, Parsed, Repairs, Value, is_space};

/// Reads the first value of `bytes`; what the text's end cuts is closed.
pub fn prefix(bytes: &[u8]) -> Result<Parsed<'_>, JsonError> {
    Scanner { bytes, at: 0, repairs: Repairs::default(), open: Vec::new(), root: None }.run()
}

enum Open<'a> {
    List(Vec<Value<'a>>),
    Object(Vec<Member<'a>>, Option<Cow<'a, str>>),
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
    open: Vec<Open<'a>>,
    root: Option<Value<'a>>,
}

impl<'a> Scanner<'a> {
    fn run(mut self) -> Result<Parsed<'a>, JsonError> {
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
                    self.open.push(Open::Object(Vec::new(), None));
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
            Some(Open::Object(members, _)) => self.put(Value::Object(Map::of(members))),
            None => Expect::CommaOrEnd,
        }
    }

    fn put(&mut self, value: Value<'a>) -> Expect {
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object(members, key)) => {
                if let Some(key) = key.take() {
                    members.push((key, value));
                }
            }
            None => self.root = Some(value),
        }
        Expect::CommaOrEnd
    }

    /// The text ended: closes everything that is open, without the member that was being read.
    fn close_cut(mut self) -> Result<Parsed<'a>, JsonError> {
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

    fn scalar(&mut self) -> Result<Value<'a>, &'static str> {
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

    fn string(&mut self) -> Result<Cow<'a, str>, &'static str> {
        self.at += 1;
        let (start, mut plain) = (self.at, true);
        let mut out = Vec::new();
        loop {
            let Some(next) = special(self.bytes, self.at) else {
                self.at = self.bytes.len();
                return Err("the string does not end");
            };
            out.extend_from_slice(self.bytes.get(self.at..next).unwrap_or_default());
            self.at = next;
            match self.peek() {
                Some(b'"') => {
                    let text = self.bytes.get(start..self.at).and_then(|text| std::str::from_utf8(text).ok());
                    self.at += 1;
                    return Ok(match text {
                        Some(text) if plain => Cow::Borrowed(text),
                        _ => Cow::Owned(self.utf8(out)),
                    });
                }
                Some(b'\\') => {
                    plain = false;
                    self.escape(&mut out)?;
                }
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
