//! Element-wise loops, compiled once for every instruction set and chosen at run time.
//!
//! The program is built for any x86-64; without this the compiler would use the vectors of 2003. Sums go over sixteen
//! lanes in a fixed order, so that a result does not depend on how the compiler vectorises.

/// Lanes of every reduction.
const LANES: usize = 16;

/// `a * b + c`, fused where the instruction set has it (elsewhere a fused product would be a library call).
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled into the callers' instruction sets")]
fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Adding 1.5·2^23 rounds to a whole number, which then stands in the low bits, without a call in any instruction set.
const ROUND: f32 = 12_582_912.0;

/// Declares functions with a generic body and one compiled copy for AVX2 with FMA beside the plain one.
macro_rules! vectorised {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$doc])*
        pub(super) fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body<const FMA: bool>($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide($($arg: $ty),*) $(-> $ret)? { body::<true>($($arg),*) }
                if has_avx2() {
                    #[expect(unsafe_code, reason = "calls the copy for an instruction set found at run time")]
                    // SAFETY: the processor has AVX2 and FMA, just asked.
                    return unsafe { wide($($arg),*) };
                }
                body::<false>($($arg),*)
            }
            #[cfg(not(target_arch = "x86_64"))]
            body::<{ cfg!(target_arch = "aarch64") }>($($arg),*)
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

/// e^x to about one unit in the last place for -87 ≤ x ≤ 88; smaller x give about 1e-38, larger ones about 1e38.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled into the callers' instruction sets")]
fn exp<const FMA: bool>(x: f32) -> f32 {
    let x = x.clamp(-87.3, 88.3);
    let shifted = fma::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 in two parts so that the remainder keeps its precision.
    let r = fma::<FMA>(n, -0.693_359_4, x);
    let r = fma::<FMA>(n, 2.121_944_4e-4, r);
    // Taylor's series to r^7 on |r| ≤ 0.35: the first term left out is below 1e-8.
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = fma::<FMA>(p, r, c);
    }
    // The low bits of the shifted number are the whole number itself: 2^n without a conversion.
    let scale = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    p * scale
}

/// Sum of the lanes, in a fixed order.
#[inline(always)]
#[expect(clippy::inline_always, reason = "must be compiled into the callers' instruction sets")]
fn sum_lanes(lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    let mut lanes = lanes;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

vectorised! {
    /// `out = x / sqrt(mean(x²) + eps) · weight`.
    fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        let (chunks, rest) = x.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] = fma::<FMA>(chunk[i], chunk[i], lanes[i]);
            }
        }
        let sum = sum_lanes(lanes) + rest.iter().map(|v| v * v).sum::<f32>();
        let scale = 1.0 / (sum / x.len() as f32 + eps).sqrt();
        for ((o, v), w) in out.iter_mut().zip(x).zip(weight) {
            *o = (v * scale) * w;
        }
    }

    /// Dot product.
    fn dot(a: &[f32], b: &[f32]) -> f32 {
        let ((ac, ar), (bc, br)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        let mut lanes = [0.0; LANES];
        for (x, y) in ac.iter().zip(bc) {
            for i in 0..LANES {
                lanes[i] = fma::<FMA>(x[i], y[i], lanes[i]);
            }
        }
        sum_lanes(lanes) + ar.iter().zip(br).map(|(x, y)| x * y).sum::<f32>()
    }

    /// `out = silu(gate) · up`.
    fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((o, g), u) in out.iter_mut().zip(gate).zip(up) {
            *o = g / (1.0 + exp::<FMA>(-g)) * u;
        }
    }

    /// Rotates one head: the pairs are `(x[i], x[i + half])`, turned by the angle whose cosine and sine are given;
    /// the result is multiplied by `scale`.
    fn rotate(x: &[f32], cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) {
        let half = cos.len();
        let (first, second) = x.split_at(half);
        let (out_first, out_second) = out.split_at_mut(half);
        for i in 0..half.min(sin.len()).min(second.len()).min(out_second.len()) {
            out_first[i] = (first[i] * cos[i] - second[i] * sin[i]) * scale;
            out_second[i] = (second[i] * cos[i] + first[i] * sin[i]) * scale;
        }
    }

    /// One step of softmax over a row of scores that arrives in pieces. Of `row` the first `valid` scores count, the
    /// rest becomes 0. `max` and `sum` are the running maximum and sum; `acc`, the running weighted sum, is scaled
    /// down when the maximum rises. `row` then holds the weights of this piece.
    fn softmax_step(row: &mut [f32], valid: usize, max: &mut f32, sum: &mut f32, acc: &mut [f32]) {
        let (scores, hidden) = row.split_at_mut(valid);
        hidden.fill(0.0);
        if scores.is_empty() {
            return;
        }
        let (chunks, rest) = scores.as_chunks::<LANES>();
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for chunk in chunks {
            for i in 0..LANES {
                lanes[i] = if chunk[i] > lanes[i] { chunk[i] } else { lanes[i] };
            }
        }
        let highest = lanes.iter().chain(rest).fold(*max, |a, b| a.max(*b));
        if highest > *max {
            let shrink = exp::<FMA>(*max - highest);
            *sum *= shrink;
            for a in acc.iter_mut() {
                *a *= shrink;
            }
            *max = highest;
        }
        let mut lanes = [0.0; LANES];
        let (chunks, rest) = scores.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for i in 0..LANES {
                chunk[i] = exp::<FMA>(chunk[i] - highest);
                lanes[i] += chunk[i];
            }
        }
        let mut tail = 0.0;
        for score in rest {
            *score = exp::<FMA>(*score - highest);
            tail += *score;
        }
        *sum += sum_lanes(lanes) + tail;
    }

    /// Writes `x` as whole numbers from -127 to 127 with 128 added, and returns what they are to be multiplied by.
    /// A number that is none makes the scale one that is none.
    fn quantise(x: &[f32], out: &mut [u8]) -> f32 {
        let (chunks, rest) = x.as_chunks::<LANES>();
        let (mut highest, mut odd) = ([0.0; LANES], [0.0; LANES]);
        for chunk in chunks {
            for i in 0..LANES {
                let size = chunk[i].abs();
                highest[i] = if size > highest[i] { size } else { highest[i] };
                odd[i] += chunk[i] * 0.0;
            }
        }
        let most = highest.iter().copied().chain(rest.iter().map(|v| v.abs())).fold(0.0, f32::max);
        let odd = sum_lanes(odd) + rest.iter().map(|v| v * 0.0).sum::<f32>();
        // Below that the inverse would be infinite: such numbers are taken for zeros.
        let factor = if most > 1e-30 { 127.0 / most } else { 0.0 };
        for (o, v) in out.iter_mut().zip(x) {
            *o = ((v * factor + ROUND).to_bits() as u8).wrapping_add(128);
        }
        if most > 1e-30 { most / 127.0 + odd } else { odd }
    }

    /// `out = x · factor`, rounded; the products must lie within ±127.
    fn to_bytes(x: &[f32], factor: f32, out: &mut [i8]) {
        for (o, v) in out.iter_mut().zip(x) {
            *o = (v * factor + ROUND).to_bits() as i8;
        }
    }

    /// The largest sum of the positive parts, or of the negative parts, of two neighbours.
    fn largest_pair(x: &[f32]) -> f32 {
        let (pairs, rest) = x.as_chunks::<2>();
        let part = |v: f32| if v > 0.0 { v } else { 0.0 };
        let mut most = rest.first().map_or(0.0, |v| v.abs());
        for [a, b] in pairs {
            let (up, down) = (part(*a) + part(*b), part(-a) + part(-b));
            let larger = if up > down { up } else { down };
            most = if larger > most { larger } else { most };
        }
        most
    }

    /// `e^x` for every element, in place.
    #[cfg(test)]
    fn exp_all(x: &mut [f32]) {
        for v in x.iter_mut() {
            *v = exp::<FMA>(*v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_good_to_single_precision() {
        let mut values: Vec<f32> = (-8700..8800).map(|i| i as f32 / 100.0 + 0.003).collect();
        let exact: Vec<f64> = values.iter().map(|v| f64::from(*v).exp()).collect();
        exp_all(&mut values);
        for (found, exact) in values.iter().zip(exact) {
            assert!((f64::from(*found) / exact - 1.0).abs() < 3e-7, "{found} for {exact}");
        }
        let mut ends = [f32::NEG_INFINITY, -1000.0, 0.0];
        exp_all(&mut ends);
        assert!(ends[0] < 1e-37 && ends[1] < 1e-37);
        assert_eq!(ends[2].to_bits(), 1.0f32.to_bits());
    }

    #[test]
    fn a_nan_is_not_lost() {
        let mut row = [0.0, f32::NAN, 1.0];
        let (mut max, mut sum, mut acc) = (f32::NEG_INFINITY, 0.0, [0.0; 2]);
        softmax_step(&mut row, 3, &mut max, &mut sum, &mut acc);
        assert!(sum.is_nan());
    }

    #[test]
    fn softmax_in_pieces_is_softmax() {
        let scores: Vec<f32> = (0..53).map(|i| ((i * 37) % 29) as f32 / 3.0 - 40.0).collect();
        let (mut max, mut sum, mut acc) = (f32::NEG_INFINITY, 0.0, [0.0f32]);
        for piece in scores.chunks(20) {
            let mut row = piece.to_vec();
            row.extend([99.0; 3]);
            softmax_step(&mut row, piece.len(), &mut max, &mut sum, &mut acc);
            assert!(row[piece.len()..].iter().all(|v| v.to_bits() == 0));
            // The weighted sum of the scores themselves.
            acc[0] += row.iter().zip(piece).map(|(w, s)| w * s).sum::<f32>();
        }
        let weights: Vec<f64> = scores.iter().map(|s| f64::from(*s).exp()).collect();
        let exact =
            weights.iter().zip(&scores).map(|(w, s)| w * f64::from(*s)).sum::<f64>() / weights.iter().sum::<f64>();
        assert!((f64::from(acc[0] / sum) - exact).abs() < 1e-4);
        let before = (max, sum);
        softmax_step(&mut [1.0, 2.0], 0, &mut max, &mut sum, &mut acc);
        assert_eq!((max, sum), before);
    }

    #[test]
    fn norm_dot_silu_and_rotation_match_their_definitions() {
        let x: Vec<f32> = (0..37).map(|i| (i as f32 * 0.7).sin()).collect();
        let w: Vec<f32> = (0..37).map(|i| 1.0 + i as f32 / 100.0).collect();
        let mut out = vec![0.0; 37];
        rms_norm(&x, &w, 1e-6, &mut out);
        let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / 37.0;
        for i in 0..37 {
            let exact = f64::from(x[i]) / (mean + 1e-6).sqrt() * f64::from(w[i]);
            assert!((f64::from(out[i]) - exact).abs() < 1e-6);
        }
        let exact: f64 = x.iter().zip(&w).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        assert!((f64::from(dot(&x, &w)) - exact).abs() < 1e-5);
        silu_mul(&x, &w, &mut out);
        for i in 0..37 {
            let exact = f64::from(x[i]) / (1.0 + (-f64::from(x[i])).exp()) * f64::from(w[i]);
            assert!((f64::from(out[i]) - exact).abs() < 1e-6);
        }
        let mut turned = [0.0; 4];
        rotate(&[1.0, 2.0, 3.0, 4.0], &[0.0, 1.0], &[1.0, 0.0], 2.0, &mut turned);
        assert!(turned.iter().zip([-6.0, 4.0, 2.0, 8.0]).all(|(a, b)| (a - b).abs() < 1e-6));
        let mut far = [0.0; 2];
        silu_mul(&[-200.0, 200.0], &[1.0, 1.0], &mut far);
        assert!(far[0].abs() < 1e-30 && (far[1] - 200.0).abs() < 1e-3);
    }
}
