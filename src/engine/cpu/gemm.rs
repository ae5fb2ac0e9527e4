//! Matrix products through the `gemm` crate: the one place with raw pointers, behind checked functions.

use std::marker::PhantomData;
use std::ops::Range;

use super::int8::{Activations, Packed};
use super::pool::Crew;
use super::scratch;
use crate::engine::matrix::Matrix;

/// A read-only view of a matrix inside a slice. Element `(r, c)` lies at `r * row_stride + c * col_stride`.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// Row-major, rows `stride` apart.
    pub(super) fn rows(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        let view = Self { data, rows, cols, row_stride: stride, col_stride: 1 };
        assert!(last(rows, cols, stride, 1) <= data.len(), "view inside its slice");
        view
    }

    /// The same numbers, rows and columns swapped.
    pub(super) fn transposed(self) -> Self {
        Self { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }
}

/// One past the last element of a strided matrix; 0 if it has none.
fn last(rows: usize, cols: usize, row_stride: usize, col_stride: usize) -> usize {
    if rows == 0 || cols == 0 { 0 } else { (rows - 1) * row_stride + (cols - 1) * col_stride + 1 }
}

/// A slice that several threads write to, each in its own part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a, T = f32> {
    start: *mut T,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

#[expect(unsafe_code, reason = "threads write disjoint columns of one row-major matrix, which slices cannot express")]
mod raw {
    use super::{Shared, View, last};

    // SAFETY: a `Shared` is only a pointer into a slice it borrows mutably; who writes through it promises (in the
    // unsafe functions below) that no two threads touch the same element.
    unsafe impl<T: Send> Send for Shared<'_, T> {}
    // SAFETY: as above.
    unsafe impl<T: Send> Sync for Shared<'_, T> {}

    impl<T> Shared<'_, T> {
        /// The elements from `start` to `end`.
        ///
        /// # Safety
        /// While the result lives, no other thread reads or writes these elements.
        #[expect(clippy::mut_from_ref, reason = "the point of the type; see the safety contract")]
        pub(in super::super) unsafe fn part(&self, start: usize, end: usize) -> &mut [T] {
            assert!(start <= end && end <= self.len, "part inside the slice");
            // SAFETY: in bounds (just checked), exclusive by the caller's promise.
            unsafe { std::slice::from_raw_parts_mut(self.start.add(start), end - start) }
        }
    }

    impl Shared<'_> {
        /// `dst = lhs · rhs`, or `dst += lhs · rhs`; `dst` is row-major from `at` on, its rows `stride` apart.
        ///
        /// # Safety
        /// While this runs, no other thread reads or writes the elements of `dst`.
        pub(in super::super) unsafe fn product(
            &self,
            at: usize,
            stride: usize,
            lhs: View<'_>,
            rhs: View<'_>,
            accumulate: bool,
        ) {
            assert_eq!(lhs.cols, rhs.rows, "inner dimensions");
            assert!(stride >= rhs.cols, "rows of the result do not overlap");
            assert!(at + last(lhs.rows, rhs.cols, stride, 1) <= self.len, "result inside the slice");
            // SAFETY: `View::rows` checked that lhs and rhs lie in their slices, the line above that dst does; dst is
            // borrowed mutably and exclusive by the caller's promise, so it does not overlap lhs or rhs.
            unsafe {
                gemm::gemm(
                    lhs.rows,
                    rhs.cols,
                    lhs.cols,
                    self.start.add(at),
                    1,
                    stride.cast_signed(),
                    accumulate,
                    lhs.data.as_ptr(),
                    lhs.col_stride.cast_signed(),
                    lhs.row_stride.cast_signed(),
                    rhs.data.as_ptr(),
                    rhs.col_stride.cast_signed(),
                    rhs.row_stride.cast_signed(),
                    1.0,
                    1.0,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        }
    }

    /// `dst = lhs · rhs`, or `dst += lhs · rhs`; `dst` row-major and exactly the size of the result.
    pub(in super::super) fn product(dst: &mut [f32], lhs: View<'_>, rhs: View<'_>, accumulate: bool) {
        let stride = rhs.cols;
        // SAFETY: `dst` is borrowed mutably and not shared with any thread.
        unsafe { Shared::new(dst).product(0, stride, lhs, rhs, accumulate) }
    }

    /// One block of columns of `Linear::apply`.
    ///
    /// # Safety
    /// As for [`Shared::product`], for the columns `columns` of `out`.
    pub(super) unsafe fn block(
        out: &Shared<'_>,
        stride: usize,
        column: usize,
        bias: Option<&[f32]>,
        lhs: View<'_>,
        rhs: View<'_>,
        accumulate: bool,
    ) {
        if let Some(bias) = bias {
            for row in 0..lhs.rows {
                let at = row * stride + column;
                // SAFETY: these columns are the caller's alone.
                let part = unsafe { out.part(at, at + bias.len()) };
                if accumulate {
                    part.iter_mut().zip(bias).for_each(|(o, b)| *o += b);
                } else {
                    part.copy_from_slice(bias);
                }
            }
        }
        // SAFETY: these columns are the caller's alone.
        unsafe { out.product(column, stride, lhs, rhs, accumulate || bias.is_some()) }
    }
}

pub(super) use raw::product;

impl<'a, T> Shared<'a, T> {
    /// Lends a slice to several threads.
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), owner: PhantomData }
    }
}

/// A weight matrix with its optional bias: `y = x · Wᵀ + b`.
#[derive(Debug)]
pub(super) struct Linear {
    /// One row an output.
    weight: Weight,
    /// One number an output.
    bias: Option<Vec<f32>>,
}

/// The weights of a layer, as its products want them.
#[derive(Debug)]
enum Weight {
    /// In the file's type, widened to f32 where it is used.
    Wide(Matrix),
    /// In 8 bits, and multiplied so.
    Int8(Packed),
}

/// Inputs of a layer: `tokens × width`, and room for their quantised form.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) x: &'a [f32],
    pub(super) tokens: usize,
    pub(super) scratch: &'a mut Activations,
}

/// Least outputs of one block: below this, packing the inputs again for every block costs more than it spreads.
const MIN_BLOCK: usize = 128;
/// Most multiplications of one block, so that a stop is heeded soon: 13 to 15 ms at the 41 to 48 billion a second that
/// `gemm` was seen to reach on one Zen 3 core.
const TASK: usize = 600 << 20;
/// Most bytes of a half-precision block widened at once: it should stay in the second-level cache.
const WIDE_BYTES: usize = 2 << 20;

impl Linear {
    /// A layer that computes in f32, or in 8 bits.
    pub(super) fn new(weight: Matrix, bias: Option<Vec<f32>>, int8: bool) -> Self {
        let weight = if int8 { Weight::Int8(Packed::new(&weight)) } else { Weight::Wide(weight) };
        Self { weight, bias }
    }

    /// Type of the weights at rest.
    pub(super) fn dtype(&self) -> &'static str {
        match &self.weight {
            Weight::Wide(matrix) => matrix.dtype(),
            Weight::Int8(_) => "int8",
        }
    }

    /// `out[t, ..] = x[t, ..] · W[rows]ᵀ + b[rows]`, or added to `out`. `out` is `tokens × rows.len()`, row-major
    /// without gaps. Blocks of outputs are spread over the crew.
    pub(super) fn apply(
        &self,
        crew: &Crew<'_>,
        input: Input<'_>,
        rows: Range<usize>,
        out: &mut [f32],
        accumulate: bool,
    ) {
        let Input { x, tokens, scratch } = input;
        if tokens == 0 || rows.is_empty() {
            return;
        }
        match &self.weight {
            Weight::Wide(matrix) => {
                wide(matrix, self.bias.as_deref(), crew, (x, tokens), rows, out, accumulate);
            }
            Weight::Int8(packed) => {
                scratch.set(crew, x, tokens, packed.cols());
                packed.apply(crew, scratch, self.bias.as_deref(), rows, out, accumulate);
            }
        }
    }
}

/// `Linear::apply` for weights that are multiplied in f32.
pub(super) fn wide(
    matrix: &Matrix,
    bias: Option<&[f32]>,
    crew: &Crew<'_>,
    (x, tokens): (&[f32], usize),
    rows: Range<usize>,
    out: &mut [f32],
    accumulate: bool,
) {
    let (width, depth) = (rows.len(), matrix.cols());
    assert!(out.len() == tokens * width && rows.end <= matrix.rows(), "shape of the result");
    let input = View::rows(x, tokens, depth, depth);
    let block = block_size(matrix, crew, width, tokens);
    let shared = Shared::new(out);
    crew.run(width.div_ceil(block), |i| {
        let columns = i * block..((i + 1) * block).min(width);
        let (start, end) = (rows.start + columns.start, rows.start + columns.end);
        scratch::with(|scratch| {
            let weights = matrix.rows_f32(start, end, scratch);
            let weights = View::rows(weights, columns.len(), depth, depth).transposed();
            let bias = bias.map(|b| &b[start..end]);
            #[expect(unsafe_code, reason = "blocks of columns are written by one thread each")]
            // SAFETY: block `i` writes only its own columns, and every `i` is given out once.
            unsafe {
                raw::block(&shared, width, columns.start, bias, input, weights, accumulate);
            }
        });
    });
}

/// Outputs of one block: two blocks a thread so that a late thread does not hold up the rest, in multiples of 16, and
/// no more than a stop can wait for.
fn block_size(matrix: &Matrix, crew: &Crew<'_>, width: usize, tokens: usize) -> usize {
    let threads = crew.threads();
    let fair = if threads == 1 { width } else { width.div_ceil(2 * threads).max(MIN_BLOCK) };
    let most = if matrix.is_f32() { width } else { (WIDE_BYTES / 4 / matrix.cols().max(1)).max(64) };
    let quick = (TASK / (tokens * matrix.cols()).max(1)).max(MIN_BLOCK);
    fair.min(most).min(quick).next_multiple_of(16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::pool::Pool;
    use crate::engine::matrix::Numbers;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0).collect()
    }

    fn naive(x: &[f32], w: &[f32], b: Option<&[f32]>, tokens: usize, rows: Range<usize>, depth: usize) -> Vec<f32> {
        let mut out = Vec::new();
        for t in 0..tokens {
            for r in rows.clone() {
                let dot: f64 = (0..depth).map(|k| f64::from(x[t * depth + k]) * f64::from(w[r * depth + k])).sum();
                out.push((dot + b.map_or(0.0, |b| f64::from(b[r]))) as f32);
            }
        }
        out
    }

    fn close(a: &[f32], b: &[f32]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4)
    }

    #[test]
    fn products_match_the_definition_for_odd_sizes_and_any_number_of_threads() {
        for threads in [1, 2, 3] {
            let pool = Pool::new(threads);
            for (tokens, width, depth) in [(1, 1, 1), (1, 300, 40), (5, 7, 3), (33, 531, 65), (64, 16, 128)] {
                let (x, w, b) = (numbers(tokens * depth), numbers(width * depth), numbers(width));
                let layer = Linear::new(Matrix::new(width, depth, Numbers::F32(w.clone())), Some(b.clone()), false);
                let mut out = vec![f32::NAN; tokens * width];
                let mut scratch = Activations::default();
                layer.apply(&pool.crew(), Input { x: &x, tokens, scratch: &mut scratch }, 0..width, &mut out, false);
                let expected = naive(&x, &w, Some(&b), tokens, 0..width, depth);
                assert!(close(&out, &expected), "{tokens}x{width}x{depth} on {threads}");
                layer.apply(&pool.crew(), Input { x: &x, tokens, scratch: &mut scratch }, 0..width, &mut out, true);
                let twice: Vec<f32> = expected.iter().map(|v| 2.0 * v).collect();
                assert!(close(&out, &twice), "accumulated {tokens}x{width}x{depth} on {threads}");
            }
        }
    }

    #[test]
    fn a_range_of_outputs_and_half_precision_weights() {
        let (tokens, width, depth) = (4, 20, 8);
        let x = numbers(tokens * depth);
        let bits: Vec<u16> = numbers(width * depth).iter().map(|v| (v.to_bits() >> 16) as u16).collect();
        let wide: Vec<f32> = bits.iter().map(|b| f32::from_bits(u32::from(*b) << 16)).collect();
        let layer = Linear::new(Matrix::new(width, depth, Numbers::Bf16(bits)), None, false);
        let mut out = vec![f32::NAN; tokens * 13];
        let input = Input { x: &x, tokens, scratch: &mut Activations::default() };
        layer.apply(&Pool::new(2).crew(), input, 5..18, &mut out, false);
        assert!(close(&out, &naive(&x, &wide, None, tokens, 5..18, depth)));
    }

    #[test]
    fn strided_views_multiply() {
        // 2×2 blocks inside wider rows.
        let (a, b) = ([1.0, 2.0, 9.0, 3.0, 4.0, 9.0], [5.0, 6.0, 7.0, 8.0]);
        let mut out = [0.0; 4];
        product(&mut out, View::rows(&a, 2, 2, 3), View::rows(&b, 2, 2, 2), false);
        assert!(close(&out, &[19.0, 22.0, 43.0, 50.0]));
        product(&mut out, View::rows(&a, 2, 2, 3), View::rows(&b, 2, 2, 2).transposed(), true);
        assert!(close(&out, &[36.0, 45.0, 82.0, 103.0]));
    }

    #[test]
    #[should_panic(expected = "view inside its slice")]
    fn a_view_beyond_its_slice_is_refused() {
        let _view = View::rows(&[0.0; 5], 2, 3, 3);
    }
}
