//! JSON as it is found on disk: strict first, then with repairs, each of them counted.
//!
//! The strict reader takes what `serde_json` takes. What it refuses goes through a scanner without recursion, which reads
//! deep nesting, `NaN` and `Infinity`, lone surrogates, trailing commas, raw control characters and invalid UTF-8,
//! and which can close what a cut file left open.

mod fast;
mod map;
mod repair;
mod value;

use serde::de::IgnoredAny;

pub use self::map::Map;
pub use self::value::Value;

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
pub struct Parsed<'a> {
    /// The value.
    pub value: Value<'a>,
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
pub fn strict_prefix(bytes: &[u8]) -> Option<(Value<'_>, usize)> {
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
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, JsonError> {
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
pub fn repair_prefix(bytes: &[u8]) -> Result<Parsed<'_>, JsonError> {
    repair::prefix(bytes)
}

/// White space between the tokens of JSON.
pub fn is_json_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// JSON white space (and NUL, which killed writers leave in runs).
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0)
}

/// A value written as JSON.
macro_rules! json {
    ($($json:tt)+) => { $crate::formats::json::Value::from(serde_json::json!($($json)+)) };
}
pub(crate) use json;

#[cfg(test)]
mod tests;
