//! The layers of a head on the CPU: always in f32, whatever the layers of the network are computed in.

use super::gemm::wide;
use super::pool::Pool;
use super::simd;
use crate::engine::matrix::Matrix;

/// A weight matrix with its optional bias: `y = x · Wᵀ + b`.
#[derive(Debug)]
pub(in crate::engine) struct Dense {
    /// One row an output.
    pub(in crate::engine) weight: Matrix,
    /// One number an output.
    pub(in crate::engine) bias: Option<Vec<f32>>,
}

/// Layers of at most this many outputs are computed output by output.
const FEW_OUTPUTS: usize = 64;

/// `x · Wᵀ + b` for rows of `x`.
pub(super) fn apply(pool: &Pool, weight: &Matrix, bias: Option<&[f32]>, x: &[f32]) -> Vec<f32> {
    let (outputs, width) = (weight.rows(), weight.cols());
    let rows = x.len() / width;
    let mut out = vec![0.0; rows * outputs];
    if outputs > FEW_OUTPUTS || !weight.is_f32() {
        if rows > 0 {
            pool.enter(&|| false, |crew| wide(weight, bias, crew, (x, rows), 0..outputs, &mut out, false));
        }
        return out;
    }
    // A value must not depend on how many others are read with it: one dot product each.
    let mut scratch = Vec::new();
    let weights = weight.rows_f32(0, outputs, &mut scratch);
    for (row, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(outputs)) {
        for (label, (weight, out)) in weights.chunks_exact(width).zip(out).enumerate() {
            *out = simd::dot(row, weight) + bias.map_or(0.0, |b| b[label]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::matrix::Numbers;

    #[test]
    fn few_and_many_outputs_match_the_definition() {
        let number = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
        let (rows, width) = (3, 40);
        let x: Vec<f32> = (0..rows * width).map(number).collect();
        for outputs in [1, FEW_OUTPUTS, FEW_OUTPUTS + 1, 300] {
            let weights: Vec<f32> = (0..outputs * width).map(|i| number(i + 5)).collect();
            let bias: Vec<f32> = (0..outputs).map(|i| number(i + 9)).collect();
            let matrix = Matrix::new(outputs, width, Numbers::F32(weights.clone()));
            let found = apply(&Pool::new(2), &matrix, Some(&bias), &x);
            assert_eq!(found.len(), rows * outputs);
            for (i, found) in found.iter().enumerate() {
                let (row, output) = (i / outputs, i % outputs);
                let exact: f64 =
                    (0..width).map(|k| f64::from(x[row * width + k]) * f64::from(weights[output * width + k])).sum();
                assert!((f64::from(*found) - exact - f64::from(bias[output])).abs() < 1e-4, "{outputs} outputs");
            }
            assert!(apply(&Pool::new(1), &matrix, None, &[]).is_empty());
        }
    }
}
