//! ggml's quantised blocks, as GGUF files hold them: layouts, and their numbers as f32.
//!
//! Written from ggml's description of the formats; every product and difference is rounded where ggml's reference
//! rounds, so that the numbers are the same bit for bit (checked against the `gguf` package of Python).

use super::widen::{f16_to_f32, f32_to_f16};

/// Types of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockType {
    /// 4 bits, scale.
    Q4_0,
    /// 4 bits, scale and offset.
    Q4_1,
    /// 5 bits, scale.
    Q5_0,
    /// 5 bits, scale and offset.
    Q5_1,
    /// 8 bits, scale.
    Q8_0,
    /// 2 bits, sub-blocks of 16 with scale and offset.
    Q2K,
    /// 3 bits, sub-blocks of 16 with scale.
    Q3K,
    /// 4 bits, sub-blocks of 32 with scale and offset.
    Q4K,
    /// 5 bits, sub-blocks of 32 with scale and offset.
    Q5K,
    /// 6 bits, sub-blocks of 16 with scale.
    Q6K,
}

impl BlockType {
    /// Every type.
    pub(super) const ALL: [Self; 10] = [
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
    ];

    /// Its number in GGUF files, its name, numbers in a block, bytes of a block.
    const fn facts(self) -> (u32, &'static str, usize, usize) {
        match self {
            Self::Q4_0 => (2, "q4_0", 32, 18),
            Self::Q4_1 => (3, "q4_1", 32, 20),
            Self::Q5_0 => (6, "q5_0", 32, 22),
            Self::Q5_1 => (7, "q5_1", 32, 24),
            Self::Q8_0 => (8, "q8_0", 32, 34),
            Self::Q2K => (10, "q2_k", 256, 84),
            Self::Q3K => (11, "q3_k", 256, 110),
            Self::Q4K => (12, "q4_k", 256, 144),
            Self::Q5K => (13, "q5_k", 256, 176),
            Self::Q6K => (14, "q6_k", 256, 210),
        }
    }

    /// The type with this number in GGUF files.
    pub(super) fn of_gguf(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.facts().0 == number)
    }

    /// `"q4_k"`.
    pub(super) fn name(self) -> &'static str {
        self.facts().1
    }

    /// Numbers in a block.
    pub(super) fn numbers(self) -> usize {
        self.facts().2
    }

    /// Bytes of a block.
    pub(super) fn bytes(self) -> usize {
        self.facts().3
    }
}

/// Widens whole blocks. Compiled into each instruction set of `widen::blocks`, which is what to call.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled into the callers' instruction sets")]
pub(super) fn widen(kind: BlockType, bytes: &[u8], out: &mut [f32]) {
    match kind {
        BlockType::Q4_0 => each(bytes, out, q4_0),
        BlockType::Q4_1 => each(bytes, out, q4_1),
        BlockType::Q5_0 => each(bytes, out, q5_0),
        BlockType::Q5_1 => each(bytes, out, q5_1),
        BlockType::Q8_0 => each(bytes, out, q8_0),
        BlockType::Q2K => each(bytes, out, q2_k),
        BlockType::Q3K => each(bytes, out, q3_k),
        BlockType::Q4K => each(bytes, out, q4_k),
        BlockType::Q5K => each(bytes, out, q5_k),
        BlockType::Q6K => each(bytes, out, q6_k),
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn each<const BYTES: usize, const NUMBERS: usize>(
    bytes: &[u8],
    out: &mut [f32],
    one: impl Fn(&[u8; BYTES], &mut [f32; NUMBERS]),
) {
    for (block, out) in bytes.as_chunks::<BYTES>().0.iter().zip(out.as_chunks_mut::<NUMBERS>().0) {
        one(block, out);
    }
}

/// The half float at byte `at`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn half(block: &[u8], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// `N` bytes from `at` on.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn part<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&block[at..at + N]);
    part
}

/// The low halves of 16 bytes, then their high halves. Whole numbers are unpacked as bytes before they become floats:
/// that way the compiler uses whole vectors.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn nibbles(quants: [u8; 16]) -> [u8; 32] {
    let mut all = [0; 32];
    for i in 0..16 {
        all[i] = quants[i] & 15;
        all[i + 16] = quants[i] >> 4;
    }
    all
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let (scale, quants) = (half(block, 0), nibbles(part(block, 2)));
    for i in 0..32 {
        out[i] = (i32::from(quants[i]) - 8) as f32 * scale;
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (scale, offset, quants) = (half(block, 0), half(block, 2), nibbles(part(block, 4)));
    for i in 0..32 {
        out[i] = f32::from(quants[i]) * scale + offset;
    }
}

/// The fifth bits of a Q5 block, as 0 or 16.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn fifth_bits(block: &[u8], at: usize) -> [u8; 32] {
    let bits = u32::from_le_bytes(part(block, at));
    std::array::from_fn(|i| (((bits >> i) & 1) << 4) as u8)
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let (scale, fifth, quants) = (half(block, 0), fifth_bits(block, 2), nibbles(part(block, 6)));
    for i in 0..32 {
        out[i] = (i32::from(quants[i] | fifth[i]) - 16) as f32 * scale;
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (scale, offset, fifth) = (half(block, 0), half(block, 2), fifth_bits(block, 4));
    let quants = nibbles(part(block, 8));
    for i in 0..32 {
        out[i] = f32::from(quants[i] | fifth[i]) * scale + offset;
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let (scale, quants) = (half(block, 0), part::<32>(block, 2));
    for i in 0..32 {
        out[i] = f32::from(quants[i].cast_signed()) * scale;
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (scales, scale, offset) = (part::<16>(block, 0), half(block, 80), half(block, 82));
    for (side, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        // Halves of 128 numbers share 32 bytes; four runs of 32 lie two bits apart in them.
        let packed = part::<32>(block, 16 + side * 32);
        for (run, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let quants = packed.map(|b| b >> (2 * run) & 3);
            for (odd, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                let sub = scales[side * 8 + run * 2 + odd];
                let (by, minus) = (scale * f32::from(sub & 15), offset * f32::from(sub >> 4));
                for i in 0..16 {
                    out[i] = by * f32::from(quants[odd * 16 + i]) - minus;
                }
            }
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let (scales, scale) = (part::<12>(block, 96), half(block, 108));
    for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let quants = part::<16>(block, 32 + sub / 8 * 32 + sub % 2 * 16);
        let masks = part::<16>(block, sub % 2 * 16);
        let (shift, bit) = (sub % 8 / 2 * 2, sub / 2);
        let low = if sub < 8 { scales[sub] & 15 } else { scales[sub - 8] >> 4 };
        let high = (scales[8 + sub % 4] >> (sub / 4 * 2)) & 3;
        let by = scale * (i32::from(low | high << 4) - 32) as f32;
        for i in 0..16 {
            let third = (masks[i] >> bit & 1) << 2;
            out[i] = by * (i32::from((quants[i] >> shift) & 3 | third) - 4) as f32;
        }
    }
}

/// Scale and offset of each of eight sub-blocks: 6 bits each, packed into 12 bytes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn scales_and_offsets(packed: [u8; 12]) -> [(u8, u8); 8] {
    let mut all = [(0, 0); 8];
    for i in 0..4 {
        all[i] = (packed[i] & 63, packed[i + 4] & 63);
        let low = packed[i + 8];
        all[i + 4] = (low & 15 | packed[i] >> 6 << 4, low >> 4 | packed[i + 4] >> 6 << 4);
    }
    all
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (scale, offset, subs) = (half(block, 0), half(block, 2), scales_and_offsets(part(block, 4)));
    for (pair, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let quants = part::<32>(block, 16 + pair * 32);
        let (low, high) = (subs[2 * pair], subs[2 * pair + 1]);
        let (low_by, low_minus) = (scale * f32::from(low.0), offset * f32::from(low.1));
        let (high_by, high_minus) = (scale * f32::from(high.0), offset * f32::from(high.1));
        for i in 0..32 {
            out[i] = low_by * f32::from(quants[i] & 15) - low_minus;
            out[i + 32] = high_by * f32::from(quants[i] >> 4) - high_minus;
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (scale, offset, subs) = (half(block, 0), half(block, 2), scales_and_offsets(part(block, 4)));
    let fifth = part::<32>(block, 16);
    for (pair, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let quants = part::<32>(block, 48 + pair * 32);
        let (low, high) = (subs[2 * pair], subs[2 * pair + 1]);
        let (low_by, low_minus) = (scale * f32::from(low.0), offset * f32::from(low.1));
        let (high_by, high_minus) = (scale * f32::from(high.0), offset * f32::from(high.1));
        for i in 0..32 {
            let bits = fifth[i] >> (2 * pair);
            out[i] = low_by * f32::from(quants[i] & 15 | (bits & 1) << 4) - low_minus;
            out[i + 32] = high_by * f32::from(quants[i] >> 4 | (bits >> 1 & 1) << 4) - high_minus;
        }
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `widen`")]
fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (scales, scale) = (part::<16>(block, 192), half(block, 208));
    for (side, out) in out.as_chunks_mut::<128>().0.iter_mut().enumerate() {
        // Halves of 128 numbers: four runs of 32, low four bits in 64 bytes, high two bits in 32.
        let (low, high) = (part::<64>(block, side * 64), part::<32>(block, 128 + side * 32));
        let mut quants = [0; 128];
        for i in 0..32 {
            quants[i] = low[i] & 15 | (high[i] & 3) << 4;
            quants[i + 32] = low[i + 32] & 15 | (high[i] >> 2 & 3) << 4;
            quants[i + 64] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
            quants[i + 96] = low[i + 32] >> 4 | high[i] >> 6 << 4;
        }
        for (sub, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let by = scale * f32::from(scales[side * 8 + sub].cast_signed());
            for i in 0..16 {
                out[i] = by * (i32::from(quants[sub * 16 + i]) - 32) as f32;
            }
        }
    }
}

/// Appends Q8_0 blocks of a whole number of 32 floats, by ggml's rule: the scale is the largest magnitude over 127.
/// `false` = a number is not finite, or so large that its scale is not.
pub(super) fn quantise_q8_0(floats: &[f32], out: &mut Vec<u8>) -> bool {
    let mut good = true;
    for block in floats.as_chunks::<32>().0 {
        let largest = block.iter().fold(0.0f32, |a, x| a.max(x.abs()));
        let scale = largest / 127.0;
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let bits = f32_to_f16(scale);
        good &= bits & 0x7c00 != 0x7c00 && block.iter().all(|x| x.is_finite());
        out.extend_from_slice(&bits.to_le_bytes());
        out.extend(block.iter().map(|x| ((x * inverse).round() as i8).cast_unsigned()));
    }
    good
}
