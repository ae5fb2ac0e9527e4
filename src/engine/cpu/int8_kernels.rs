//! The inner loop of the 8-bit products, once for every instruction set, and the choice among them.
//!
//! All kernels give the same bits: their sums are whole numbers below 2^24 and are scaled by the same three roundings.
//! **No intermediate saturates.** AVX2's `vpmaddubsw` adds two products of an unsigned and a signed byte in 16 bits.
//! Activations are stored with 128 added, as 1 to 255; weights are scaled so that of two neighbours the positive parts
//! add up to at most [`PAIR`] = 128 and the negative ones to at least -128. So a pair lies within ±255 · 128 = ±32,640,
//! inside the 16 bits' ±32,767. `dpbusd` (VNNI) adds four products in 32 bits and cannot overflow. A group's sum is at
//! most 64 · 32,640 and the 128s taken off again as much once more: below 2^24, so that its float is exact.
//! The kernels for VNNI have never been run by their authors (no such machine was at hand): therefore every kernel is
//! compared with the plain one before it is used; see [`choose`].

use std::sync::OnceLock;

/// Numbers along the depth that share a scale, in weights as in activations.
pub(super) const GROUP: usize = 128;
/// Rows of activations in a tile.
pub(super) const ROWS: usize = 6;
/// Most that the positive (negative) parts of two neighbouring weights may add up to.
pub(super) const PAIR: i32 = 128;
/// What is added to an activation to make it unsigned.
pub(super) const OFFSET: i32 = 128;
/// Activations of a tile at one step of four along the depth.
const STEP: usize = 4 * ROWS;

/// Some groups of one tile of activations and of one panel of weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tile<'a> {
    /// `group × GROUP / 4 × ROWS × 4`.
    pub(super) activations: &'a [u8],
    /// `group × ROWS`.
    pub(super) activation_scales: &'a [f32],
    /// `group × GROUP / 4 × columns × 4`.
    pub(super) weights: &'a [i8],
    /// `group × columns`: minus [`OFFSET`] times the sum of the weights.
    pub(super) starts: &'a [i32],
    /// `group × columns`.
    pub(super) scales: &'a [f32],
}

/// One implementation.
#[derive(Debug)]
pub(super) struct Kernel {
    /// For people.
    pub(super) name: &'static str,
    /// Outputs of a panel of weights.
    pub(super) columns: usize,
    /// Does this processor have the instructions?
    pub(super) is_available: fn() -> bool,
    run: unsafe fn(Tile<'_>, &mut [f32]),
}

impl Kernel {
    /// Adds the products of a tile and a panel to `out` (`ROWS × columns`).
    pub(super) fn run(&self, tile: Tile<'_>, out: &mut [f32]) {
        debug_assert!((self.is_available)(), "a kernel of this processor");
        #[expect(unsafe_code, reason = "calls a function for an instruction set found at run time")]
        // SAFETY: kernels are handed out by `usable` only, which asks the processor for the instructions.
        unsafe {
            (self.run)(tile, out);
        }
    }
}

/// All kernels, best first; the last one runs everywhere.
pub(super) static KERNELS: &[Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    Kernel { name: "avx512-vnni", columns: 32, is_available: x86::has_avx512_vnni, run: x86::avx512_vnni },
    #[cfg(target_arch = "x86_64")]
    Kernel { name: "avx-vnni", columns: 16, is_available: x86::has_avx_vnni, run: x86::avx_vnni },
    #[cfg(target_arch = "x86_64")]
    Kernel { name: "avx2", columns: 16, is_available: x86::has_avx2, run: x86::avx2 },
    PLAIN,
];

/// The reference: runs everywhere.
pub(super) const PLAIN: Kernel = Kernel { name: "plain", columns: 16, is_available: || true, run: plain };

/// Kernels this processor has the instructions for, best first.
pub(super) fn usable() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().filter(|kernel| (kernel.is_available)())
}

/// Which kernel runs, and which ones were found to compute something else than the plain one.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) kernel: &'static Kernel,
    pub(super) rejected: Vec<&'static str>,
}

/// The best kernel that agrees with the plain one on a small product. Decided at first use.
pub(super) fn choose() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    CHOICE.get_or_init(|| first_sound(usable()))
}

fn first_sound(kernels: impl Iterator<Item = &'static Kernel>) -> Choice {
    static FALLBACK: Kernel = PLAIN;
    let mut rejected = Vec::new();
    for kernel in kernels {
        if super::int8::agrees(kernel) {
            return Choice { kernel, rejected };
        }
        tracing::warn!("8-bit kernel {} computes wrong sums on this processor: not used", kernel.name);
        rejected.push(kernel.name);
    }
    Choice { kernel: &FALLBACK, rejected }
}

/// Portable, and what the others are compared with.
fn plain(tile: Tile<'_>, out: &mut [f32]) {
    const COLUMNS: usize = PLAIN.columns;
    let groups = groups::<COLUMNS>(tile);
    let (out, _) = out.as_chunks_mut::<COLUMNS>();
    for (activations, activation_scales, weights, starts, scales) in groups {
        let mut sums = [*starts; ROWS];
        for (a, w) in activations.iter().zip(weights.as_chunks::<{ 4 * COLUMNS }>().0) {
            for (row, a) in sums.iter_mut().zip(a.as_chunks::<4>().0) {
                for (sum, w) in row.iter_mut().zip(w.as_chunks::<4>().0) {
                    *sum += (0..4).map(|i| i32::from(a[i]) * i32::from(w[i])).sum::<i32>();
                }
            }
        }
        for ((row, sums), by) in out.iter_mut().zip(&sums).zip(activation_scales) {
            for ((o, sum), scale) in row.iter_mut().zip(sums).zip(scales) {
                *o += *sum as f32 * (by * scale);
            }
        }
    }
}

/// One group: activations, their scales, weights, starts, scales.
type Group<'a, const COLUMNS: usize> =
    (&'a [[u8; STEP]], &'a [f32; ROWS], &'a [i8], &'a [i32; COLUMNS], &'a [f32; COLUMNS]);

/// The groups of a tile.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled into the callers' instruction sets")]
fn groups<const COLUMNS: usize>(tile: Tile<'_>) -> impl Iterator<Item = Group<'_, COLUMNS>> {
    let activations = tile.activations.chunks_exact(GROUP * ROWS).map(|a| a.as_chunks::<STEP>().0);
    let weights = tile.weights.chunks_exact(GROUP * COLUMNS);
    let (scales, starts) = (tile.scales.as_chunks::<COLUMNS>().0, tile.starts.as_chunks::<COLUMNS>().0);
    let rest = weights.zip(starts).zip(scales);
    let all = activations.zip(tile.activation_scales.as_chunks::<ROWS>().0).zip(rest);
    all.map(|((a, by), ((w, starts), scales))| (a, by, w, starts, scales))
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vectors are loaded from and stored to arrays of their size")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_add_epi32, _mm256_add_ps, _mm256_cvtepi32_ps, _mm256_dpbusd_avx_epi32, _mm256_loadu_ps,
        _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_set1_epi16,
        _mm256_set1_epi32, _mm256_set1_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32,
        _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_storeu_ps,
    };

    use super::{ROWS, Tile, groups};

    pub(super) fn has_avx2() -> bool {
        std::arch::is_x86_feature_detected!("avx2")
    }

    pub(super) fn has_avx_vnni() -> bool {
        has_avx2() && std::arch::is_x86_feature_detected!("avxvnni")
    }

    pub(super) fn has_avx512_vnni() -> bool {
        std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vnni")
    }

    /// Four bytes of activations as they lie.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must be compiled into the callers' instruction sets")]
    fn four(bytes: [u8; 4]) -> i32 {
        i32::from_le_bytes(bytes)
    }

    /// A kernel of `ROWS × 2` vectors; `$dot` adds four products to each lane.
    macro_rules! kernel {
        ($name:ident, $features:literal, $lanes:literal, $set:ident, $setf:ident, $load:ident, $loadf:ident,
         $storef:ident, $float:ident, $mul:ident, $add:ident, |$acc:ident, $x:ident, $w:ident| $dot:expr) => {
            #[target_feature(enable = $features)]
            pub(super) fn $name(tile: Tile<'_>, out: &mut [f32]) {
                const COLUMNS: usize = 2 * $lanes;
                let (out, _) = out.as_chunks_mut::<COLUMNS>();
                for (activations, activation_scales, weights, starts, scales) in groups::<COLUMNS>(tile) {
                    // SAFETY: two vectors of `$lanes` numbers each lie in an array of `COLUMNS`.
                    let start = unsafe { [$load(starts.as_ptr().cast()), $load(starts.as_ptr().add($lanes).cast())] };
                    let mut sums = [start; ROWS];
                    for (a, w) in activations.iter().zip(weights.as_chunks::<{ 4 * COLUMNS }>().0) {
                        // SAFETY: two vectors of `4 * $lanes` bytes each lie in an array of `4 * COLUMNS`.
                        let w = unsafe { [$load(w.as_ptr().cast()), $load(w.as_ptr().add(4 * $lanes).cast())] };
                        for (row, a) in sums.iter_mut().zip(a.as_chunks::<4>().0) {
                            let $x = $set(four(*a));
                            for (sum, $w) in row.iter_mut().zip(w) {
                                let $acc = *sum;
                                *sum = $dot;
                            }
                        }
                    }
                    for ((row, sums), by) in out.iter_mut().zip(sums).zip(activation_scales) {
                        for (half, sum) in sums.into_iter().enumerate() {
                            let at = half * $lanes;
                            // SAFETY: the vector at `half * $lanes` lies in arrays of `2 * $lanes` numbers.
                            unsafe {
                                let scale = $mul($setf(*by), $loadf(scales.as_ptr().add(at)));
                                let slot = row.as_mut_ptr().add(at);
                                $storef(slot, $add($loadf(slot), $mul($float(sum), scale)));
                            }
                        }
                    }
                }
            }
        };
    }

    kernel!(
        avx2,
        "avx2",
        8,
        _mm256_set1_epi32,
        _mm256_set1_ps,
        _mm256_loadu_si256,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_cvtepi32_ps,
        _mm256_mul_ps,
        _mm256_add_ps,
        |acc, x, w| _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)))
    );
    kernel!(
        avx_vnni,
        "avx2,avxvnni",
        8,
        _mm256_set1_epi32,
        _mm256_set1_ps,
        _mm256_loadu_si256,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_cvtepi32_ps,
        _mm256_mul_ps,
        _mm256_add_ps,
        |acc, x, w| _mm256_dpbusd_avx_epi32(acc, x, w)
    );
    kernel!(
        avx512_vnni,
        "avx512f,avx512vnni",
        16,
        _mm512_set1_epi32,
        _mm512_set1_ps,
        _mm512_loadu_si512,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_cvtepi32_ps,
        _mm512_mul_ps,
        _mm512_add_ps,
        |acc, x, w| _mm512_dpbusd_epi32(acc, x, w)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(tile: Tile<'_>, out: &mut [f32]) {
        plain(tile, out);
        out[1] += 1.0;
    }

    #[test]
    fn a_kernel_with_wrong_sums_is_passed_over_and_named() {
        static WRONG: Kernel = Kernel { name: "wrong", columns: 16, is_available: || true, run: wrong };
        static SOUND: Kernel = PLAIN;
        let choice = first_sound([&WRONG, &SOUND].into_iter());
        assert_eq!((choice.kernel.name, choice.rejected), ("plain", vec!["wrong"]));
        let choice = first_sound([&WRONG].into_iter());
        assert_eq!(choice.kernel.name, "plain");
    }
}
