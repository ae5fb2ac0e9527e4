use super::super::int8_kernels::{PAIR, usable};
use super::*;
use crate::engine::matrix::Numbers;

/// Numbers between -1 and 1 without a pattern.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

fn matrix(rows: usize, cols: usize, seed: u64) -> Matrix {
    Matrix::new(rows, cols, Numbers::F32(numbers(rows * cols, seed)))
}

fn quantised(x: &[f32], rows: usize, cols: usize) -> Activations {
    let mut input = Activations::default();
    input.set(&Pool::new(1).crew(), x, rows, cols);
    input
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn every_kernel_gives_the_same_bits_for_odd_shapes_ranges_and_threads() {
    assert!(usable().last().is_some_and(|k| k.name == "plain"));
    for (tokens, rows, cols) in [(1, 1, 1), (5, 16, 128), (6, 33, 7), (7, 40, 300), (13, 97, 1300)] {
        let (weights, x) = (matrix(rows, cols, 3), numbers(tokens * cols, 4));
        let (bias, input) = (numbers(rows, 5), quantised(&x, tokens, cols));
        let plain = Packed::with_kernel(&weights, &PLAIN_KERNEL);
        for range in [0..rows, rows / 3..rows, rows / 3..rows / 2 + 1] {
            let mut expected = numbers(tokens * range.len(), 6);
            let before = expected.clone();
            plain.apply(&Pool::new(1).crew(), &input, Some(&bias), range.clone(), &mut expected, true);
            for (kernel, threads) in usable().flat_map(|k| [(k, 1), (k, 2)]) {
                let mut out = before.clone();
                let packed = Packed::with_kernel(&weights, kernel);
                packed.apply(&Pool::new(threads).crew(), &input, Some(&bias), range.clone(), &mut out, true);
                assert_eq!(bits(&out), bits(&expected), "{} {tokens}x{rows}x{cols} {range:?}", kernel.name);
            }
        }
    }
}

/// Sums of one group, straight from the kernel.
fn group_sum(kernel: &'static Kernel, activation: [u8; 2], weight: [i8; 2]) -> Vec<f32> {
    let columns = kernel.columns;
    let activations: Vec<u8> = (0..GROUP * ROWS).map(|i| activation[i % 2]).collect();
    let weights: Vec<i8> = (0..GROUP * columns).map(|i| weight[i % 2]).collect();
    let (starts, ones) = (vec![0; columns], vec![1.0; columns]);
    let tile = Tile {
        activations: &activations,
        activation_scales: &[1.0; ROWS],
        weights: &weights,
        starts: &starts,
        scales: &ones,
    };
    let mut out = vec![0.0; ROWS * columns];
    kernel.run(tile, &mut out);
    out
}

#[test]
fn the_largest_sums_there_can_be_do_not_saturate() {
    let pairs = [[64, 64], [-64, -64], [127, 1], [-127, -1], [1, 127], [127, -127], [-127, 127], [-128, 0]];
    for kernel in usable() {
        for weight in pairs {
            assert!((i32::from(weight[0]) + i32::from(weight[1])).abs() <= PAIR);
            for activation in [[255, 255], [1, 255], [255, 1], [1, 1], [0, 255]] {
                let one: i32 = (0..2).map(|i| i32::from(activation[i]) * i32::from(weight[i])).sum();
                let expected = (one * GROUP as i32 / 2) as f32;
                let found = group_sum(kernel, activation, weight);
                assert!(found.iter().all(|v| v.to_bits() == expected.to_bits()), "{} {weight:?}", kernel.name);
            }
        }
    }
}

/// The bound is needed: past it AVX2 saturates, and this test would see it.
#[test]
fn past_the_bound_avx2_saturates() {
    let Some(kernel) = usable().find(|k| k.name == "avx2") else { return };
    let exact = (2 * 255 * 127 * GROUP as i32 / 2) as f32;
    assert!(group_sum(kernel, [255, 255], [127, 127]).iter().all(|v| *v < exact));
}

#[test]
fn no_two_neighbouring_weights_can_saturate_however_they_lie() {
    let mut groups: Vec<Vec<f32>> = (0..300).map(|seed| numbers(GROUP - seed as usize % 5, seed)).collect();
    groups.extend([vec![1.0; 128], vec![-1.0; 127], vec![1.0, -1.0, 0.5, 0.5], vec![3.0], vec![63.5, 63.5, 127.0]]);
    groups.extend((0..40).map(|i| vec![1.0 + i as f32 / 7.0, 1.0, -0.3, -1.0 - i as f32 / 9.0]));
    for weights in groups {
        let mut found = vec![0; weights.len()];
        let scale = quantise_weights(&weights, &mut found);
        for (pair, exact) in found.chunks(2).zip(weights.chunks(2)) {
            let part = |sign: i32| pair.iter().map(|n| (i32::from(*n) * sign).max(0)).sum::<i32>();
            assert!(part(1) <= PAIR && part(-1) <= PAIR, "{pair:?} of {exact:?}");
            for (number, exact) in pair.iter().zip(exact) {
                assert!((f32::from(*number) * scale - exact).abs() <= 0.501 * scale, "rounded, never cut off");
            }
        }
    }
}

#[test]
fn products_are_near_those_in_f32() {
    let (tokens, rows, cols) = (9, 50, 896);
    let (weights, x) = (matrix(rows, cols, 7), numbers(tokens * cols, 8));
    let mut out = vec![0.0; tokens * rows];
    Packed::new(&weights).apply(&Pool::new(2).crew(), &quantised(&x, tokens, cols), None, 0..rows, &mut out, false);
    let w = weights.into_f32();
    let (mut error, mut size) = (0.0, 0.0);
    for token in 0..tokens {
        for row in 0..rows {
            let exact: f64 = (0..cols).map(|k| f64::from(x[token * cols + k]) * f64::from(w[row * cols + k])).sum();
            error += (f64::from(out[token * rows + row]) - exact).powi(2);
            size += exact.powi(2);
        }
    }
    let relative = (error / size).sqrt();
    assert!(relative < 0.012, "{relative}");
    assert!(relative > 1e-4, "numbers of 8 bits cannot be as near as {relative}");
}

#[test]
fn an_outlier_spoils_only_its_own_group() {
    let cols = 2 * GROUP;
    let mut x = numbers(cols, 9);
    x[3] = 5000.0;
    let weights: Vec<f32> = (0..cols).map(|k| if k < GROUP { 0.0 } else { 1.0 }).collect();
    let packed = Packed::new(&Matrix::new(1, cols, Numbers::F32(weights)));
    let mut out = [0.0];
    packed.apply(&Pool::new(1).crew(), &quantised(&x, 1, cols), None, 0..1, &mut out, false);
    let exact: f32 = x[GROUP..].iter().sum();
    assert!((out[0] - exact).abs() < 0.1, "{} for {exact}", out[0]);
}

#[test]
fn zeros_give_zero_and_what_is_no_number_is_not_lost() {
    let cols = 130;
    let weights = matrix(20, cols, 2);
    let product = |weights: &Matrix, x: &[f32]| {
        let mut out = vec![7.0; 20];
        Packed::new(weights).apply(&Pool::new(1).crew(), &quantised(x, 1, cols), None, 0..20, &mut out, false);
        out
    };
    assert!(product(&weights, &vec![0.0; cols]).iter().all(|v| *v == 0.0));
    for odd in [f32::NAN, f32::INFINITY] {
        let mut x = numbers(cols, 1);
        x[129] = odd;
        assert!(product(&weights, &x).iter().all(|v| v.is_nan()), "{odd} in the input");
        let mut w = weights.clone().into_f32();
        w[5] = odd;
        let out = product(&Matrix::new(20, cols, Numbers::F32(w)), &numbers(cols, 1));
        assert!(out[0].is_nan() && out[1..].iter().all(|v| v.is_finite()), "{odd} in the weights");
    }
    let tiny = vec![1e-38; cols];
    assert!(product(&weights, &tiny).iter().all(|v| *v == 0.0), "too small to have an inverse scale");
}

#[test]
fn every_usable_kernel_passes_the_check_before_first_use() {
    for kernel in usable() {
        assert!(agrees(kernel), "{}", kernel.name);
    }
    assert_eq!(kernel_report(), usable().next().unwrap().name);
}

#[test]
fn weights_take_a_byte_and_eight_more_a_group() {
    let packed = Packed::new(&matrix(64, 256, 1));
    let bytes = packed.numbers.len() + 4 * packed.starts.len() + 4 * packed.scales.len();
    assert_eq!(bytes, 64 * 256 + 64 * 2 * 8);
}
