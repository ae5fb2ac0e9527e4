//! What a plain product of f32 matrices gives on this machine: the measure for everything that is made of such.

use std::time::Instant;

use super::gemm::{View, product};
use super::pool::Pool;

/// Rows of the product: a chunk of the forward pass.
const ROWS: usize = 512;

/// Billions of additions and multiplications a second of `512 × inner · inner × columns` on all threads at once, the
/// best of `rounds`. Each thread has matrices of its own.
pub(in crate::engine) fn plain_gflops(pool: &Pool, inner: usize, columns: usize, rounds: usize) -> f64 {
    let threads = pool.threads();
    let columns = columns.div_ceil(threads).max(1);
    // Small numbers, all different: some processors are quicker with zeros.
    let numbers = |n: usize| -> Vec<f32> { (0..n).map(|i| (i % 1021) as f32 / 1021.0 - 0.5).collect() };
    let (left, right) = (numbers(ROWS * inner), numbers(columns * inner));
    let mut best = 0.0f64;
    // One round more: the first warms up.
    for _ in 0..=rounds.max(1) {
        let started = Instant::now();
        pool.crew().run(threads, |_| {
            let mut out = vec![0.0; ROWS * columns];
            let right = View::rows(&right, columns, inner, inner).transposed();
            product(&mut out, View::rows(&left, ROWS, inner, inner), right, false);
            std::hint::black_box(&out);
        });
        let work = 2.0 * (ROWS * inner * columns * threads) as f64;
        best = best.max(work / started.elapsed().as_secs_f64() / 1e9);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_takes_time_on_any_number_of_threads() {
        for threads in [1, 2] {
            let gflops = plain_gflops(&Pool::new(threads), 64, 96, 2);
            assert!(gflops > 0.0 && gflops < 1e6, "{gflops} GFLOP/s");
        }
    }
}
