//! The header of a GGUF file: metadata and where each tensor lies.
//!
//! Read by hand instead of through candle's reader, which does not say at which key a damaged file breaks, takes
//! other byte orders for nonsense, and refuses a whole file for the type of one tensor.

use std::collections::BTreeMap;

use super::super::blocks::BlockType;
use super::super::error::EngineError;
use super::super::matrix::NumberType;
use super::super::weights::Shard;

/// A string longer than this is damage.
const MAX_TEXT: u64 = 16 << 20;
/// More tensors or metadata keys than this are damage.
const MAX_COUNT: u64 = 1 << 20;
/// Bytes read at once.
const WINDOW: usize = 1 << 18;

/// A value of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine) enum Value {
    /// Any whole number.
    Whole(i128),
    /// Either float.
    Float(f64),
    /// Yes or no.
    Flag(bool),
    /// Text.
    Text(String),
    /// Texts.
    Texts(Vec<String>),
    /// Whole numbers.
    Wholes(Vec<i64>),
    /// A list of anything else; nobody needs one.
    Other,
}

/// A tensor as the header has it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine) struct TensorInfo {
    pub(in crate::engine) name: String,
    /// Outermost first (the file has them the other way round).
    pub(in crate::engine) shape: Vec<usize>,
    pub(in crate::engine) kind: Option<NumberType>,
    /// Its type in the words of ggml.
    pub(in crate::engine) dtype: String,
    /// From the start of the file.
    pub(in crate::engine) start: u64,
    /// Bytes; 0 for a type that cannot be read.
    pub(in crate::engine) len: usize,
}

/// A whole header.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine) struct Header {
    pub(in crate::engine) metadata: BTreeMap<String, Value>,
    pub(in crate::engine) tensors: Vec<TensorInfo>,
}

impl Header {
    /// Reads the header of a file.
    pub(in crate::engine) fn read(shard: &mut Shard) -> Result<Self, EngineError> {
        let mut from = Cursor { shard, at: 0, buffer: Vec::new(), used: 0, place: "the header".into() };
        from.check_magic()?;
        let (tensors, keys) = (from.u64()?, from.u64()?);
        if tensors > MAX_COUNT || keys > MAX_COUNT {
            return Err(from.broken(&format!("{tensors} tensors and {keys} metadata keys")));
        }
        let mut metadata = BTreeMap::new();
        for number in 0..keys {
            from.place = format!("metadata key {} of {keys}", number + 1);
            let key = from.text()?;
            from.place = format!("metadata `{key}`");
            let kind = from.u32()?;
            let value = from.value(kind)?;
            metadata.insert(key, value);
        }
        let mut infos = Vec::new();
        for number in 0..tensors {
            from.place = format!("tensor {} of {tensors}", number + 1);
            infos.push(from.tensor()?);
        }
        let alignment = match metadata.get("general.alignment") {
            Some(Value::Whole(n)) if (1..=1 << 20).contains(n) => *n as u64,
            None => 32,
            Some(other) => return Err(from.broken(&format!("general.alignment is {other:?}"))),
        };
        let (start, len) = (from.position().next_multiple_of(alignment), from.shard.len());
        for info in &mut infos {
            info.start = info.start.saturating_add(start);
            let end = info.start.saturating_add(info.len as u64);
            if end > len {
                from.place = format!("tensor `{}`", info.name);
                return Err(from.broken(&format!("cut short: it ends at byte {end}, the file at {len}")));
            }
        }
        Ok(Self { metadata, tensors: infos })
    }
}

/// Reads a file from front to back, a window at a time.
struct Cursor<'a> {
    shard: &'a mut Shard,
    /// Where the buffer begins in the file.
    at: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given out.
    used: usize,
    /// What is being read, for messages.
    place: String,
}

impl Cursor<'_> {
    fn position(&self) -> u64 {
        self.at + self.used as u64
    }

    fn broken(&self, what: &str) -> EngineError {
        EngineError::File {
            file: self.shard.path().to_path_buf(),
            what: format!("{}: {what}", self.place),
            help: "the file is damaged or not complete: download it anew".into(),
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u8], EngineError> {
        if self.buffer.len() - self.used < count {
            let (start, len) = (self.position(), self.shard.len());
            let left = len.saturating_sub(start);
            if left < count as u64 {
                return Err(self.broken(&format!("cut short at byte {len}")));
            }
            let size = (count.max(WINDOW) as u64).min(left) as usize;
            self.buffer.resize(size, 0);
            self.shard.read_at(start, &mut self.buffer)?;
            (self.at, self.used) = (start, 0);
        }
        self.used += count;
        Ok(&self.buffer[self.used - count..self.used])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EngineError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, EngineError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, EngineError> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<String, EngineError> {
        let len = self.u64()?;
        if len > MAX_TEXT {
            return Err(self.broken(&format!("a text of {len} bytes")));
        }
        let bytes = self.take(len as usize)?.to_vec();
        String::from_utf8(bytes).map_err(|e| self.broken(&format!("text that is not UTF-8 ({})", e.utf8_error())))
    }

    fn check_magic(&mut self) -> Result<(), EngineError> {
        let file = self.shard.path().to_path_buf();
        let not = |what: String| EngineError::File {
            file: file.clone(),
            what,
            help: "expected a GGUF file of version 2 or 3: download it anew, or convert the model anew".into(),
        };
        if self.shard.len() < 8 {
            return Err(not(format!("{} bytes are no GGUF file", self.shard.len())));
        }
        let mut first = [0; 8];
        self.shard.read_at(0, &mut first)?;
        let [magic @ .., a, b, c, d] = first;
        if magic != *b"GGUF" {
            return Err(not(format!("begins with {:?}, not with \"GGUF\"", magic.escape_ascii().to_string())));
        }
        match u32::from_le_bytes([a, b, c, d]) {
            2 | 3 => {
                self.take(8)?;
                Ok(())
            }
            version if (1..=0xffff).contains(&version.swap_bytes()) => {
                Err(not("big-endian numbers; this program reads little-endian files".into()))
            }
            version => Err(not(format!("version {version}"))),
        }
    }

    fn value(&mut self, kind: u32) -> Result<Value, EngineError> {
        Ok(match kind {
            7 => Value::Flag(self.take(1)?[0] != 0),
            6 => Value::Float(f64::from(f32::from_le_bytes(self.array()?))),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            8 => Value::Text(self.text()?),
            9 => {
                let (kind, count) = (self.u32()?, self.u64()?);
                self.list(kind, count)?
            }
            _ => Value::Whole(self.whole(kind)?),
        })
    }

    /// A whole number of any width.
    fn whole(&mut self, kind: u32) -> Result<i128, EngineError> {
        Ok(match kind {
            0 => i128::from(self.take(1)?[0]),
            1 => i128::from(self.take(1)?[0].cast_signed()),
            2 => i128::from(u16::from_le_bytes(self.array()?)),
            3 => i128::from(i16::from_le_bytes(self.array()?)),
            4 => i128::from(self.u32()?),
            5 => i128::from(i32::from_le_bytes(self.array()?)),
            10 => i128::from(self.u64()?),
            11 => i128::from(i64::from_le_bytes(self.array()?)),
            other => return Err(self.broken(&format!("value type {other}, which GGUF does not have"))),
        })
    }

    fn list(&mut self, kind: u32, count: u64) -> Result<Value, EngineError> {
        // The least a value takes: no list is longer than what is left of the file.
        let least = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            _ => 8,
        };
        if count.saturating_mul(least) > self.shard.len() - self.position() {
            return Err(self.broken(&format!("a list of {count} values in a file that ends before")));
        }
        match kind {
            8 => {
                let texts: Result<_, _> = (0..count).map(|_| self.text()).collect();
                Ok(Value::Texts(texts?))
            }
            0..=5 | 10 | 11 => {
                let mut numbers = Vec::new();
                for _ in 0..count {
                    let number = self.whole(kind)?;
                    numbers.push(i64::try_from(number).unwrap_or(i64::MAX));
                }
                Ok(Value::Wholes(numbers))
            }
            6 | 7 | 12 => {
                for _ in 0..count {
                    self.take(least as usize)?;
                }
                Ok(Value::Other)
            }
            9 => Err(self.broken("a list of lists")),
            other => Err(self.broken(&format!("a list of value type {other}, which GGUF does not have"))),
        }
    }

    fn tensor(&mut self) -> Result<TensorInfo, EngineError> {
        let name = self.text()?;
        self.place = format!("tensor `{name}`");
        let sides = self.u32()?;
        if !(1..=4).contains(&sides) {
            return Err(self.broken(&format!("{sides} dimensions")));
        }
        let mut shape = Vec::new();
        for _ in 0..sides {
            let side = self.u64()?;
            let side = usize::try_from(side).ok().filter(|n| (1..1 << 32).contains(n));
            shape.push(side.ok_or_else(|| self.broken("a side of no or of absurd length"))?);
        }
        shape.reverse();
        let number = self.u32()?;
        let start = self.u64()?;
        let kind = number_type(number);
        let count = shape.iter().try_fold(1usize, |n, side| n.checked_mul(*side));
        let len = match (kind, count) {
            (None, _) => 0,
            // A number of numbers that is no whole number of blocks is refused, with its shape, when it is read.
            (Some(kind), Some(count)) => kind.bytes_of(count).unwrap_or(0),
            (Some(_), None) => return Err(self.broken("a shape of absurd size")),
        };
        Ok(TensorInfo { name, shape, kind, dtype: type_name(number), start, len })
    }
}

fn number_type(number: u32) -> Option<NumberType> {
    match number {
        0 => Some(NumberType::F32),
        1 => Some(NumberType::F16),
        30 => Some(NumberType::Bf16),
        other => BlockType::of_gguf(other).map(NumberType::Block),
    }
}

/// ggml's name of a tensor type.
fn type_name(number: u32) -> String {
    let others = [
        (9, "Q8_1"),
        (15, "Q8_K"),
        (16, "IQ2_XXS"),
        (17, "IQ2_XS"),
        (18, "IQ3_XXS"),
        (19, "IQ1_S"),
        (20, "IQ4_NL"),
        (21, "IQ3_S"),
        (22, "IQ2_S"),
        (23, "IQ4_XS"),
        (24, "I8"),
        (25, "I16"),
        (26, "I32"),
        (27, "I64"),
        (28, "F64"),
        (29, "IQ1_M"),
        (34, "TQ1_0"),
        (35, "TQ2_0"),
        (39, "MXFP4"),
        (40, "NVFP4"),
    ];
    match (number_type(number), others.iter().find(|(n, _)| *n == number)) {
        (Some(kind), _) => kind.name().to_uppercase(),
        (None, Some((_, name))) => (*name).into(),
        (None, None) => format!("number {number}"),
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
