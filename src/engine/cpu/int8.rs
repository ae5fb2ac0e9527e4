//! Linear layers in 8 bits: weights and activations are whole numbers with one scale for every [`GROUP`] numbers along
//! the depth, products are summed exactly, and only the sums become floats.
//!
//! Weights take one byte each, and eight more for every [`GROUP`] of them (a scale, and minus 128 times their sum).

use std::ops::Range;

use super::gemm::Shared;
use super::int8_kernels::{GROUP, Kernel, OFFSET, PAIR, ROWS, Tile, choose};
use super::pool::{Crew, Pool};
use super::simd;
use crate::engine::matrix::Matrix;

/// Largest quantised activation and weight.
const MOST: f32 = 127.0;
/// Groups of numbers below this are taken for zeros: the inverse of their scale would be beyond f32.
const TINY: f32 = 1e-30;
/// Groups of weights that are gone through for all tokens before the next ones: their panel stays in the first-level
/// cache.
const GROUPS_AT_ONCE: usize = 8;

/// The kernel in use and those that were found wrong on this processor, for people.
pub fn kernel_report() -> String {
    let choice = choose();
    if choice.rejected.is_empty() {
        return choice.kernel.name.into();
    }
    format!("{} ({} gave wrong sums here and is not used)", choice.kernel.name, choice.rejected.join(", "))
}

/// Weights in the order in which a kernel reads them.
#[derive(Debug)]
pub(super) struct Packed {
    kernel: &'static Kernel,
    rows: usize,
    cols: usize,
    /// `panel × group × GROUP / 4 × columns × 4`.
    numbers: Vec<i8>,
    /// `panel × group × columns`: minus [`OFFSET`] times the sum of a group's weights.
    starts: Vec<i32>,
    /// `panel × group × columns`.
    scales: Vec<f32>,
}

impl Packed {
    /// Quantises a matrix for the kernel of this machine.
    pub(super) fn new(matrix: &Matrix) -> Self {
        Self::with_kernel(matrix, choose().kernel)
    }

    fn with_kernel(matrix: &Matrix, kernel: &'static Kernel) -> Self {
        let (rows, cols, columns) = (matrix.rows(), matrix.cols(), kernel.columns);
        let (panels, groups) = (rows.div_ceil(columns), cols.div_ceil(GROUP));
        let mut packed = Self {
            kernel,
            rows,
            cols,
            numbers: vec![0; panels * groups * GROUP * columns],
            starts: vec![0; panels * groups * columns],
            scales: vec![0.0; panels * groups * columns],
        };
        let mut scratch = Vec::new();
        for row in 0..rows {
            let weights = matrix.rows_f32(row, row + 1, &mut scratch);
            for (group, weights) in weights.chunks(GROUP).enumerate() {
                packed.put(row, group, weights);
            }
        }
        packed
    }

    /// Quantises one group of one row into its place.
    fn put(&mut self, row: usize, group: usize, weights: &[f32]) {
        let columns = self.kernel.columns;
        let (panel, column) = (row / columns, row % columns);
        let at = panel * self.groups() + group;
        let mut numbers = [0; GROUP];
        let numbers = &mut numbers[..weights.len()];
        let scale = quantise_weights(weights, numbers);
        let part = |pair: &[i8], sign: i32| pair.iter().map(|n| (i32::from(*n) * sign).max(0)).sum::<i32>();
        assert!(numbers.chunks(2).all(|p| part(p, 1).max(part(p, -1)) <= PAIR), "weights that could saturate");
        let panel = &mut self.numbers[at * GROUP * columns..(at + 1) * GROUP * columns];
        for (i, number) in numbers.iter().enumerate() {
            panel[(i / 4 * columns + column) * 4 + i % 4] = *number;
        }
        self.scales[at * columns + column] = scale;
        self.starts[at * columns + column] = -OFFSET * numbers.iter().map(|n| i32::from(*n)).sum::<i32>();
    }

    /// Inputs.
    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    fn groups(&self) -> usize {
        self.cols.div_ceil(GROUP)
    }

    /// As [`super::gemm::Linear::apply`], for inputs that [`Activations::set`] has quantised.
    pub(super) fn apply(
        &self,
        crew: &Crew<'_>,
        input: &Activations,
        bias: Option<&[f32]>,
        rows: Range<usize>,
        out: &mut [f32],
        accumulate: bool,
    ) {
        let columns = self.kernel.columns;
        assert!(input.cols == self.cols && rows.end <= self.rows, "shapes of an 8-bit product");
        assert_eq!(out.len(), input.rows * rows.len(), "shape of the result");
        if out.is_empty() {
            return;
        }
        let first = rows.start / columns;
        let shared = Shared::new(out);
        crew.run(rows.end.div_ceil(columns) - first, |i| {
            let panel = first + i;
            let part = (panel * columns).max(rows.start)..((panel + 1) * columns).min(rows.end);
            self.panel(panel, input, (part, rows.clone()), bias, accumulate, shared);
        });
    }

    /// The outputs `part` of `rows`, all of one panel, for all tokens.
    fn panel(
        &self,
        panel: usize,
        input: &Activations,
        (part, rows): (Range<usize>, Range<usize>),
        bias: Option<&[f32]>,
        accumulate: bool,
        out: Shared<'_>,
    ) {
        let (columns, groups, width) = (self.kernel.columns, self.groups(), rows.len());
        let inside = part.start - panel * columns..part.end - panel * columns;
        let mut buffer = [0.0; ROWS * 32];
        let buffer = &mut buffer[..ROWS * columns];
        for from in (0..groups).step_by(GROUPS_AT_ONCE) {
            let to = (from + GROUPS_AT_ONCE).min(groups);
            let here = panel * groups + from..panel * groups + to;
            for tile in 0..input.tiles() {
                let tokens = tile * ROWS..((tile + 1) * ROWS).min(input.rows);
                for (line, token) in buffer.chunks_exact_mut(columns).zip(tokens.clone()) {
                    let line = &mut line[inside.clone()];
                    let at = token * width + part.start - rows.start;
                    if from > 0 || accumulate {
                        #[expect(unsafe_code, reason = "tasks read and write disjoint columns of the result")]
                        // SAFETY: the columns `part` belong to this task alone.
                        line.copy_from_slice(unsafe { out.part(at, at + part.len()) });
                    } else {
                        line.fill(0.0);
                    }
                    if let (0, Some(bias)) = (from, bias) {
                        line.iter_mut().zip(&bias[part.clone()]).for_each(|(o, b)| *o += b);
                    }
                }
                let (activations, activation_scales) = input.tile(tile, from..to);
                let tile = Tile {
                    activations,
                    activation_scales,
                    weights: &self.numbers[here.start * GROUP * columns..here.end * GROUP * columns],
                    starts: &self.starts[here.start * columns..here.end * columns],
                    scales: &self.scales[here.start * columns..here.end * columns],
                };
                self.kernel.run(tile, buffer);
                for (line, token) in buffer.chunks_exact(columns).zip(tokens) {
                    let at = token * width + part.start - rows.start;
                    #[expect(unsafe_code, reason = "tasks read and write disjoint columns of the result")]
                    // SAFETY: as above.
                    unsafe { out.part(at, at + part.len()) }.copy_from_slice(&line[inside.clone()]);
                }
            }
        }
    }
}

/// Writes a group of weights as whole numbers and returns what they are to be multiplied by. The scale is the smallest that keeps
/// every number within ±127 and neighbours of one sign within ±128 together: with `|a| + |b| ≤ 127` before
/// rounding, which adds at most ½ each, it is at most 128 after.
fn quantise_weights(weights: &[f32], numbers: &mut [i8]) -> f32 {
    let most = simd::largest_pair(weights);
    // A weight that is no number must not vanish: its outputs become NaN.
    let odd: f32 = weights.iter().map(|w| w * 0.0).sum();
    simd::to_bytes(weights, if most > TINY { MOST / most } else { 0.0 }, numbers);
    if most > TINY { most / MOST + odd } else { odd }
}

/// Inputs of a linear layer in 8 bits, in the order in which the kernels read them. Kept between layers, so that its
/// memory is used again.
#[derive(Debug, Default)]
pub(super) struct Activations {
    rows: usize,
    cols: usize,
    /// `tile × group × GROUP / 4 × ROWS × 4`, with [`OFFSET`] added.
    numbers: Vec<u8>,
    /// `tile × group × ROWS`.
    scales: Vec<f32>,
}

impl Activations {
    /// Quantises `x` (`rows × cols`).
    pub(super) fn set(&mut self, crew: &Crew<'_>, x: &[f32], rows: usize, cols: usize) {
        assert_eq!(x.len(), rows * cols, "shape of the input");
        (self.rows, self.cols) = (rows, cols);
        let (tiles, groups) = (self.tiles(), self.groups());
        self.numbers.resize(tiles * groups * GROUP * ROWS, 0);
        self.scales.resize(tiles * groups * ROWS, 0.0);
        let (numbers, scales) = (Shared::new(&mut self.numbers), Shared::new(&mut self.scales));
        crew.split(tiles, |range| {
            for tile in range {
                let (from, to) = (tile * groups, (tile + 1) * groups);
                #[expect(unsafe_code, reason = "threads write different tiles")]
                // SAFETY: every tile is in one range only.
                let (numbers, scales) = unsafe {
                    (numbers.part(from * GROUP * ROWS, to * GROUP * ROWS), scales.part(from * ROWS, to * ROWS))
                };
                let first = tile * ROWS;
                let x = &x[first * cols..((first + ROWS) * cols).min(x.len())];
                quantise_tile(x, cols, numbers, scales);
            }
        });
    }

    fn tiles(&self) -> usize {
        self.rows.div_ceil(ROWS)
    }

    fn groups(&self) -> usize {
        self.cols.div_ceil(GROUP)
    }

    /// Some groups of a tile: numbers and scales.
    fn tile(&self, tile: usize, groups: Range<usize>) -> (&[u8], &[f32]) {
        let (from, to) = (tile * self.groups() + groups.start, tile * self.groups() + groups.end);
        (&self.numbers[from * GROUP * ROWS..to * GROUP * ROWS], &self.scales[from * ROWS..to * ROWS])
    }
}

/// Quantises up to [`ROWS`] rows. Rows that are not there keep what was there: their results are not used.
fn quantise_tile(x: &[f32], cols: usize, numbers: &mut [u8], scales: &mut [f32]) {
    let mut line = [0; GROUP];
    for (row, x) in x.chunks_exact(cols).enumerate() {
        for (group, x) in x.chunks(GROUP).enumerate() {
            // What a short last group lacks meets weights of zero.
            scales[group * ROWS + row] = simd::quantise(x, &mut line[..x.len()]);
            let to = &mut numbers[group * GROUP * ROWS..(group + 1) * GROUP * ROWS];
            for (step, four) in line.as_chunks::<4>().0.iter().enumerate() {
                to[(step * ROWS + row) * 4..(step * ROWS + row) * 4 + 4].copy_from_slice(four);
            }
        }
    }
}

/// Does a kernel give the same bits as the plain one, at the ends of the range as well as inside?
pub(super) fn agrees(kernel: &'static Kernel) -> bool {
    let (rows, cols, tokens) = (kernel.columns + 3, 2 * GROUP + 24, ROWS + 1);
    let extreme = |i: usize| if (i / 2).is_multiple_of(3) { 1.0 } else { -1.0 };
    let mixed = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 504.0 - 1.0;
    let numbers: [&dyn Fn(usize) -> f32; 3] = [&extreme, &mixed, &|_| 1.0];
    numbers.iter().all(|number| {
        let product = |kernel| {
            let weights = (0..rows * cols).map(number).collect();
            let weights = Matrix::new(rows, cols, crate::engine::matrix::Numbers::F32(weights));
            let x: Vec<f32> = (0..tokens * cols).map(|i| number(i + 1)).collect();
            let pool = Pool::new(1);
            let mut input = Activations::default();
            input.set(&pool.crew(), &x, tokens, cols);
            let mut out = vec![0.0; tokens * rows];
            Packed::with_kernel(&weights, kernel).apply(&pool.crew(), &input, None, 0..rows, &mut out, false);
            out.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        product(kernel) == product(&PLAIN_KERNEL)
    })
}

/// What the others are compared with.
static PLAIN_KERNEL: Kernel = super::int8_kernels::PLAIN;

#[cfg(test)]
#[path = "int8_tests.rs"]
mod tests;
