//! The numbers of a tensor at rest, in whichever type a file or the user chose.

use super::blocks::{self, BlockType};
use super::widen;

/// A type of numbers at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberType {
    /// 32-bit floats.
    F32,
    /// IEEE half floats.
    F16,
    /// The upper half of 32-bit floats.
    Bf16,
    /// ggml's blocks: a few bits a number and a scale for each block.
    Block(BlockType),
}

impl NumberType {
    /// `"bf16"`, `"q8_0"` …
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Block(block) => block.name(),
        }
    }

    /// Numbers that are stored together; rows are whole numbers of these.
    pub(super) fn group(self) -> usize {
        match self {
            Self::Block(block) => block.numbers(),
            _ => 1,
        }
    }

    /// Bytes of one group.
    pub(super) fn group_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Block(block) => block.bytes(),
        }
    }

    /// Bytes of `count` numbers; `None` if they are not a whole number of groups, or too many to count.
    pub(super) fn bytes_of(self, count: usize) -> Option<usize> {
        if count.is_multiple_of(self.group()) { (count / self.group()).checked_mul(self.group_bytes()) } else { None }
    }

    /// Does a number take at least as much room as one of `other`?
    pub(super) fn at_least(self, other: Self) -> bool {
        self.group_bytes() * other.group() >= other.group_bytes() * self.group()
    }
}

/// Numbers of one type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// IEEE half floats, as bits.
    F16(Vec<u16>),
    /// The upper half of 32-bit floats, as bits.
    Bf16(Vec<u16>),
    /// Blocks, as the bytes of a GGUF file.
    Blocks(BlockType, Vec<u8>),
}

impl Numbers {
    /// Nothing yet, with room for `count` numbers.
    pub(super) fn with_room(kind: NumberType, count: usize) -> Self {
        match kind {
            NumberType::F32 => Self::F32(Vec::with_capacity(count)),
            NumberType::F16 => Self::F16(Vec::with_capacity(count)),
            NumberType::Bf16 => Self::Bf16(Vec::with_capacity(count)),
            NumberType::Block(block) => {
                Self::Blocks(block, Vec::with_capacity(count / block.numbers() * block.bytes()))
            }
        }
    }

    /// Their type.
    pub(super) fn kind(&self) -> NumberType {
        match self {
            Self::F32(_) => NumberType::F32,
            Self::F16(_) => NumberType::F16,
            Self::Bf16(_) => NumberType::Bf16,
            Self::Blocks(block, _) => NumberType::Block(*block),
        }
    }

    /// How many numbers.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F16(v) | Self::Bf16(v) => v.len(),
            Self::Blocks(block, bytes) => bytes.len() / block.bytes() * block.numbers(),
        }
    }

    /// Appends numbers of the same type; gives them back if they are of another.
    pub(super) fn append(&mut self, other: Self) -> Result<(), Self> {
        match (self, other) {
            (Self::F32(to), Self::F32(from)) => to.extend_from_slice(&from),
            (Self::F16(to), Self::F16(from)) | (Self::Bf16(to), Self::Bf16(from)) => to.extend_from_slice(&from),
            (Self::Blocks(kind, to), Self::Blocks(other, from)) if *kind == other => to.extend_from_slice(&from),
            (_, other) => return Err(other),
        }
        Ok(())
    }

    /// Appends numbers of this type as a file has them: little-endian, whole groups.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        match self {
            Self::F32(v) => v.extend(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
            Self::F16(v) | Self::Bf16(v) => v.extend(bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b))),
            Self::Blocks(_, v) => v.extend_from_slice(bytes),
        }
    }

    /// Appends floats, rounded to this type; a whole number of groups. `false` = a finite one is too large for it.
    ///
    /// Into blocks only Q8_0 is written: the other types are made by tools that weigh which errors matter.
    pub(super) fn push_f32(&mut self, floats: &[f32]) -> bool {
        match self {
            Self::F32(v) => v.extend_from_slice(floats),
            Self::F16(v) => {
                v.extend(floats.iter().map(|x| widen::f32_to_f16(*x)));
                return floats
                    .iter()
                    .zip(&v[v.len() - floats.len()..])
                    .all(|(x, h)| !x.is_finite() || h & 0x7c00 != 0x7c00);
            }
            Self::Bf16(v) => v.extend(floats.iter().map(|x| widen::f32_to_bf16(*x))),
            Self::Blocks(BlockType::Q8_0, v) => return blocks::quantise_q8_0(floats, v),
            Self::Blocks(..) => return false,
        }
        true
    }

    /// Writes `out.len()` numbers from `start` on as f32. Exact for floats; for blocks as ggml computes it. Both ends
    /// are ends of groups.
    pub(super) fn widen(&self, start: usize, out: &mut [f32]) {
        let end = start + out.len();
        match self {
            Self::F32(v) => out.copy_from_slice(&v[start..end]),
            Self::F16(v) => widen::f16(&v[start..end], out),
            Self::Bf16(v) => widen::bf16(&v[start..end], out),
            Self::Blocks(block, bytes) => {
                let at = |number: usize| number / block.numbers() * block.bytes();
                widen::blocks(*block, &bytes[at(start)..at(end)], out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_counted_in_whole_groups() {
        let q8_0 = NumberType::Block(BlockType::Q8_0);
        assert_eq!((q8_0.bytes_of(64), q8_0.bytes_of(65)), (Some(68), None));
        assert_eq!(NumberType::Block(BlockType::Q4K).bytes_of(512), Some(288));
        assert_eq!(NumberType::F32.bytes_of(usize::MAX), None);
        assert!(NumberType::Bf16.at_least(q8_0) && !q8_0.at_least(NumberType::F16));
        assert!(NumberType::F16.at_least(NumberType::Bf16) && NumberType::F32.at_least(NumberType::F32));
        assert!(!NumberType::Block(BlockType::Q6K).at_least(q8_0));
    }

    #[test]
    fn floats_are_rounded_to_the_nearest_and_too_large_ones_are_noticed() {
        let floats = [1.0, -2.0, 0.1, 65504.0];
        let wide = |kind| {
            let mut numbers = Numbers::with_room(kind, 4);
            assert!(numbers.push_f32(&floats));
            let mut out = [0.0; 4];
            numbers.widen(0, &mut out);
            out.map(f32::to_bits)
        };
        assert_eq!(wide(NumberType::F32), floats.map(f32::to_bits));
        assert_eq!(wide(NumberType::Bf16), [1.0f32, -2.0, 0.100_097_656, 65536.0].map(f32::to_bits));
        assert_eq!(wide(NumberType::F16), [1.0f32, -2.0, 0.099_975_586, 65504.0].map(f32::to_bits));
        assert!(!Numbers::F16(Vec::new()).push_f32(&[65520.0]));
        assert!(Numbers::F16(Vec::new()).push_f32(&[f32::INFINITY]), "what was infinite stays so");
        assert!(!Numbers::Blocks(BlockType::Q4K, Vec::new()).push_f32(&[0.0; 256]));
    }

    #[test]
    fn bytes_of_a_file_are_numbers() {
        let mut numbers = Numbers::with_room(NumberType::Bf16, 2);
        numbers.push_bytes(&[0x80, 0x3f, 0x00, 0x40]);
        assert_eq!((numbers.len(), &numbers), (2, &Numbers::Bf16(vec![0x3f80, 0x4000])));
        let mut numbers = Numbers::with_room(NumberType::F32, 1);
        numbers.push_bytes(&1.5f32.to_le_bytes());
        assert_eq!(numbers, Numbers::F32(vec![1.5]));
    }
}
