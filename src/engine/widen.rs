//! Numbers at rest to f32, in the widest instructions the processor has; and back, rounded to the nearest.
//!
//! Weights in half precision or in blocks are widened piece by piece where they are multiplied: a piece is used by
//! every token of a chunk while it lies in the second-level cache, so that widening costs a percent or two.

use super::blocks::{self, BlockType};

/// Widens half floats: exact.
pub(super) fn f16(from: &[u16], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if x86::has_f16c() {
        #[expect(unsafe_code, reason = "calls the copy for an instruction set found at run time")]
        // SAFETY: the processor has AVX2 and F16C, just asked.
        return unsafe { x86::f16(from, to) };
    }
    to.iter_mut().zip(from).for_each(|(o, h)| *o = f16_to_f32(*h));
}

/// Widens the upper halves of floats: exact.
pub(super) fn bf16(from: &[u16], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if x86::has_f16c() {
        #[expect(unsafe_code, reason = "calls the copy for an instruction set found at run time")]
        // SAFETY: the processor has AVX2 and F16C, just asked.
        return unsafe { x86::bf16(from, to) };
    }
    to.iter_mut().zip(from).for_each(|(o, b)| *o = bf16_to_f32(*b));
}

/// Widens whole blocks, as ggml computes their numbers.
pub(super) fn blocks(kind: BlockType, from: &[u8], to: &mut [f32]) {
    assert_eq!(from.len() / kind.bytes() * kind.numbers(), to.len(), "whole blocks");
    #[cfg(target_arch = "x86_64")]
    if x86::has_f16c() {
        #[expect(unsafe_code, reason = "calls the copy for an instruction set found at run time")]
        // SAFETY: the processor has AVX2 and F16C, just asked.
        return unsafe { x86::blocks(kind, from, to) };
    }
    blocks::widen(kind, from, to);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_mm_set_epi64x, _mm256_cvtph_ps};

    use super::{BlockType, bf16_to_f32, blocks as plain, f16_to_f32};

    pub(super) fn has_f16c() -> bool {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("f16c")
    }

    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn f16(from: &[u16], to: &mut [f32]) {
        let ((eights, rest), (wide, wide_rest)) = (from.as_chunks::<8>(), to.as_chunks_mut::<8>());
        for (o, h) in wide.iter_mut().zip(eights) {
            let quad = |i: usize| (0..4).fold(0i64, |bits, k| bits | i64::from(h[i + k]) << (16 * k));
            let eight = _mm256_cvtph_ps(_mm_set_epi64x(quad(4), quad(0)));
            #[expect(unsafe_code, reason = "eight lanes as eight numbers")]
            // SAFETY: both are eight f32 without padding.
            let eight = unsafe { std::mem::transmute::<std::arch::x86_64::__m256, [f32; 8]>(eight) };
            *o = eight;
        }
        wide_rest.iter_mut().zip(rest).for_each(|(o, h)| *o = f16_to_f32(*h));
    }

    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn bf16(from: &[u16], to: &mut [f32]) {
        to.iter_mut().zip(from).for_each(|(o, b)| *o = bf16_to_f32(*b));
    }

    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn blocks(kind: BlockType, from: &[u8], to: &mut [f32]) {
        plain::widen(kind, from, to);
    }
}

/// Exact.
pub(super) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Exact, denormals, infinities and NaN included; without branches so that the loop over it is vectorised.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled into the callers' instruction sets")]
pub(super) fn f16_to_f32(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let sign = (bits & 0x8000) << 16;
    let rest = bits & 0x7fff;
    // The exponent bias differs by 112: move the bits up and scale by 2^112, which also makes denormals normal.
    let scaled = f32::from_bits(rest << 13) * f32::from_bits((127 + 112) << 23);
    let special = f32::from_bits(0x7f80_0000 | ((rest & 0x3ff) << 13));
    let magnitude = if rest >= 0x7c00 { special } else { scaled };
    f32::from_bits(magnitude.to_bits() | sign)
}

/// The nearest bf16, ties to the even one.
pub(super) fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The nearest half float, ties to the even one; infinity above 65,519.
pub(super) fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let rest = bits & 0x7fff_ffff;
    let magnitude = if rest > 0x7f80_0000 {
        0x7e00
    } else if rest >= 0x4780_0000 {
        0x7c00
    } else if rest >= 0x3880_0000 {
        // Normal: exponent bias 112 less, 13 bits of the fraction rounded off (a carry into the exponent is right).
        (rest - (112 << 23) + 0xfff + (rest >> 13 & 1)) >> 13
    } else {
        // Denormal: in steps of 2^-24. Adding 1/2 as a float rounds there, ties to even.
        (f32::from_bits(rest) + 0.5).to_bits() - 0.5f32.to_bits()
    };
    sign | magnitude as u16
}

#[cfg(test)]
#[path = "widen_tests.rs"]
mod tests;
