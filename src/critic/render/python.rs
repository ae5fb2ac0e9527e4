//! JSON values printed as Python prints them (`str` and `repr` of what `json.loads` returns): OpenHands' conversion
//! of tool calls formats arguments with Python's string formatting, so a critic has seen `True`, not `true`.

use serde_json::value::RawValue;

/// Deeper values are not printed: a hostile file must not overflow the stack.
const MAX_DEPTH: usize = 100;

/// A JSON object's members in Python's order: a repeated key keeps its first place and gets its last value.
#[derive(Debug)]
pub(super) struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(String, &'de RawValue)> = Vec::new();
                let mut at = std::collections::HashMap::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    if let Some(&i) = at.get(&key) {
                        let slot: Option<&mut (String, &'de RawValue)> = members.get_mut::<usize>(i);
                        if let Some(slot) = slot {
                            slot.1 = value;
                        }
                    } else {
                        at.insert(key.clone(), members.len());
                        members.push((key, value));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Visitor).map(Members)
    }
}

/// An argument's value as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Printed {
    /// A JSON string, unquoted.
    Str(String),
    /// Anything else, printed by Python's `str`.
    Other(String),
}

/// `str(json.loads(raw))`; `None` if the value is nested too deeply or cannot be decoded.
pub(super) fn print(raw: &RawValue) -> Option<Printed> {
    if raw.get().starts_with('"') {
        return serde_json::from_str(raw.get()).ok().map(Printed::Str);
    }
    let mut out = String::new();
    repr_value(raw.get(), 0, &mut out)?;
    Some(Printed::Other(out))
}

/// Appends `repr(json.loads(raw))`.
fn repr_value(raw: &str, depth: usize, out: &mut String) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    match raw.as_bytes().first()? {
        b'{' => {
            let members: Members<'_> = serde_json::from_str(raw).ok()?;
            out.push('{');
            for (i, (key, value)) in members.0.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                repr_str(key, out);
                out.push_str(": ");
                repr_value(value.get(), depth + 1, out)?;
            }
            out.push('}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                repr_value(item.get(), depth + 1, out)?;
            }
            out.push(']');
        }
        b'"' => repr_str(&serde_json::from_str::<String>(raw).ok()?, out),
        b't' => out.push_str("True"),
        b'f' => out.push_str("False"),
        b'n' => out.push_str("None"),
        _ => out.push_str(&number(raw)?),
    }
    Some(())
}

/// A JSON number: integers keep all their digits, everything else is a double.
fn number(raw: &str) -> Option<String> {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return Some(if digits == "0" { "0".to_owned() } else { raw.to_owned() });
    }
    raw.parse().ok().map(float)
}

/// `repr` of a double: the shortest digits that read back, scientific below 1e-4 and from 1e16 on.
pub(super) fn float(value: f64) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return if value < 0.0 { format!("-{name}") } else { name.to_owned() };
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let fixed = format!("{value}");
    if fixed.contains('.') { fixed } else { format!("{fixed}.0") }
}

/// Appends `repr` of a string.
pub(super) fn repr_str(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c if !c.is_ascii() && is_printable(c) => out.push(c),
            c => {
                let n = u32::from(c);
                let (mark, digits) = match n {
                    0..=0xff => ('x', 2),
                    0x100..=0xffff => ('u', 4),
                    _ => ('U', 8),
                };
                out.extend(['\\', mark]);
                out.extend((0..digits).rev().filter_map(|i| char::from_digit((n >> (4 * i)) & 0xf, 16)));
            }
        }
    }
    out.push(quote);
}

/// Python's `str.isprintable` of one character: neither a control, format, surrogate, private or unassigned
/// character nor a separator. Rust's `Debug` of a string escapes by the same rule (from its second character on; the
/// first one's combining marks are escaped too); only the Unicode versions may differ.
fn is_printable(c: char) -> bool {
    let text: String = ['a', c].iter().collect();
    text.escape_debug().eq(text.chars())
}

/// `str.lstrip()`: Python counts four ASCII separators as white space that Rust does not.
pub(super) fn lstrip(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn py(json: &str) -> String {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        match print(raw).unwrap() {
            Printed::Str(s) | Printed::Other(s) => s,
        }
    }

    #[test]
    fn constants_and_containers_are_pythons() {
        assert_eq!(py("true"), "True");
        assert_eq!(py("null"), "None");
        assert_eq!(py(r#"[ 1 , "a",[false], {} , [] ]"#), "[1, 'a', [False], {}, []]");
        assert_eq!(py(r#"{"k": {"x": null}, "it's": "say \"hi\""}"#), r#"{'k': {'x': None}, "it's": 'say "hi"'}"#);
    }

    #[test]
    fn a_repeated_key_keeps_its_place_and_takes_the_last_value() {
        assert_eq!(py(r#"{"a": 1, "b": 2, "a": 3}"#), "{'a': 3, 'b': 2}");
    }

    #[test]
    fn strings_at_the_top_are_raw_and_inside_are_quoted() {
        assert_eq!(py(r#""a\n'b'""#), "a\n'b'");
        assert_eq!(py(r#"["a\n\t\\'b'"]"#), r#"["a\n\t\\'b'"]"#);
        assert_eq!(py(r#"["both ' and \""]"#), r#"['both \' and "']"#);
        assert_eq!(py("[\"\\u0000\\u001b\\u007f\\u0085\\u00a0\\u200b\\u2028\\ufeff\"]"), {
            r"['\x00\x1b\x7f\x85\xa0\u200b\u2028\ufeff']"
        });
        assert_eq!(py(r#"["é ü 中 😀 e\u0301"]"#), "['é ü 中 😀 e\u{301}']");
        assert_eq!(py(r#"["\udb40\udc01"]"#), r"['\U000e0001']");
    }

    #[test]
    fn integers_keep_their_digits_and_floats_are_repr() {
        let cases = [
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("-0", "0"),
            ("-7", "-7"),
            ("-0.0", "-0.0"),
            ("0.0", "0.0"),
            ("1.0", "1.0"),
            ("1e0", "1.0"),
            ("100000000000000.5", "100000000000000.5"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("1.5e22", "1.5e+22"),
            ("1e100", "1e+100"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.25e-7", "1.25e-07"),
            ("0.1", "0.1"),
            ("1e999", "inf"),
            ("-1e999", "-inf"),
        ];
        for (json, expected) in cases {
            assert_eq!(py(json), expected, "{json}");
        }
    }

    #[test]
    fn too_deep_is_refused_not_a_crash() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let outcome = serde_json::from_str::<&RawValue>(&deep).ok().and_then(print);
        assert_eq!(outcome, None);
    }

    #[test]
    fn lstrip_is_pythons() {
        assert_eq!(lstrip(" \n\t\x1c\x1f\u{85}\u{a0}\u{3000}x "), "x ");
        assert_eq!(lstrip("\u{200b}x"), "\u{200b}x");
    }
}
