//! Weight matrices at rest: kept in the type the file has, widened to f32 where they are used.

use std::ops::Range;

pub(super) use super::numbers::{NumberType, Numbers};

/// Some rows of a matrix, all of one type.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    /// One past its last row, counted in the whole matrix.
    end: usize,
    data: Numbers,
}

/// `rows × cols`, row-major: one row an output (or a vocabulary entry).
///
/// Matrices of different types that are stacked keep them: in files quantised as Q4_K_M the value projection often has
/// more bits than those of queries and keys, and widening all three would undo the quantisation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    cols: usize,
    parts: Vec<Part>,
}

impl Matrix {
    /// A matrix from numbers that must be `rows * cols` long (the loader has checked the shape), `cols` a whole number
    /// of the type's groups.
    pub(super) fn new(rows: usize, cols: usize, data: Numbers) -> Self {
        assert_eq!(data.len(), rows * cols, "matrix shape");
        assert!(cols.is_multiple_of(data.kind().group()), "rows of whole groups");
        Self { cols, parts: vec![Part { end: rows, data }] }
    }

    /// The rows of `other` below these.
    pub(super) fn stack(mut self, other: Self) -> Self {
        assert_eq!(self.cols, other.cols, "stacked matrices have the same width");
        let mut start = 0;
        for part in other.parts {
            let end = self.rows() + part.end - start;
            start = part.end;
            let apart = match self.parts.last_mut() {
                Some(last) => last.data.append(part.data).inspect(|()| last.end = end),
                None => Err(part.data),
            };
            if let Err(data) = apart {
                self.parts.push(Part { end, data });
            }
        }
        self
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.parts.last().map_or(0, |p| p.end)
    }

    /// Number of columns.
    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    /// Are all its numbers f32 already?
    pub(super) fn is_f32(&self) -> bool {
        self.parts.iter().all(|p| p.data.kind() == NumberType::F32)
    }

    /// Type of most of its numbers: `"f32"`, `"bf16"`, `"q4_k"` …
    pub(super) fn dtype(&self) -> &'static str {
        self.parts().max_by_key(|(rows, _)| rows.len()).map_or("f32", |(_, data)| data.kind().name())
    }

    /// The rows of each type, from top to bottom, with their numbers.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Range<usize>, &Numbers)> {
        let starts = std::iter::once(0).chain(self.parts.iter().map(|p| p.end));
        starts.zip(&self.parts).map(|(start, p)| (start..p.end, &p.data))
    }

    /// The rows from `start` to `end` as f32, without a copy when they are f32 already, else widened into `scratch`.
    pub(super) fn rows_f32<'a>(&'a self, start: usize, end: usize, scratch: &'a mut Vec<f32>) -> &'a [f32] {
        for (rows, data) in self.parts() {
            if let Numbers::F32(v) = data
                && rows.start <= start
                && end <= rows.end
            {
                return &v[(start - rows.start) * self.cols..(end - rows.start) * self.cols];
            }
        }
        scratch.resize((end - start) * self.cols, 0.0);
        self.widen_rows(start, scratch);
        scratch
    }

    /// Writes row `row` into `out` (as long as a row).
    pub(super) fn row_into(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.cols, "row width");
        self.widen_rows(row, out);
    }

    /// The whole matrix as f32.
    pub(super) fn into_f32(mut self) -> Vec<f32> {
        if let [Part { data: Numbers::F32(v), .. }] = self.parts.as_mut_slice() {
            return std::mem::take(v);
        }
        let mut wide = vec![0.0; self.rows() * self.cols];
        self.widen_rows(0, &mut wide);
        wide
    }

    /// Writes whole rows from `first` on into `out`, as many as fit.
    fn widen_rows(&self, first: usize, out: &mut [f32]) {
        let last = first + out.len() / self.cols.max(1);
        for (rows, data) in self.parts() {
            let (start, end) = (rows.start.max(first), rows.end.min(last));
            if start < end {
                let here = &mut out[(start - first) * self.cols..(end - first) * self.cols];
                data.widen((start - rows.start) * self.cols, here);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::blocks::BlockType;

    #[test]
    fn rows_of_every_type_are_read_alike() {
        let f32s = Matrix::new(3, 2, Numbers::F32(vec![1.0, 2.0, 3.0, 4.0, -5.0, 0.5]));
        let bf16 = Matrix::new(3, 2, Numbers::Bf16(vec![0x3f80, 0x4000, 0x4040, 0x4080, 0xc0a0, 0x3f00]));
        let f16 = Matrix::new(3, 2, Numbers::F16(vec![0x3c00, 0x4000, 0x4200, 0x4400, 0xc500, 0x3800]));
        for matrix in [&f32s, &bf16, &f16] {
            let mut scratch = Vec::new();
            assert_eq!(matrix.rows_f32(1, 3, &mut scratch), [3.0, 4.0, -5.0, 0.5]);
            let mut row = [0.0; 2];
            matrix.row_into(2, &mut row);
            assert_eq!(row.map(f32::to_bits), [-5.0f32, 0.5].map(f32::to_bits));
            assert_eq!(matrix.clone().into_f32(), [1.0, 2.0, 3.0, 4.0, -5.0, 0.5]);
        }
        assert_eq!([f32s.dtype(), bf16.dtype(), f16.dtype()], ["f32", "bf16", "f16"]);
        assert_eq!([f32s.is_f32(), bf16.is_f32()], [true, false]);
    }

    #[test]
    fn stacked_matrices_of_one_type_become_one_and_others_keep_theirs() {
        let bf16 = |first| Matrix::new(1, 2, Numbers::Bf16(vec![first, 0x4000]));
        let f32s = |rows: usize| Matrix::new(rows, 2, Numbers::F32((0..2 * rows).map(|i| i as f32).collect()));
        let same = bf16(0x3f80).stack(bf16(0xbf80));
        assert_eq!((same.rows(), same.parts().count(), same.dtype()), (2, 1, "bf16"));
        let mixed = f32s(3).stack(same).stack(f32s(1)).stack(f32s(2));
        let found: Vec<_> = mixed.parts().map(|(rows, data)| (rows, data.kind().name())).collect();
        assert_eq!(found, [(0..3, "f32"), (3..5, "bf16"), (5..8, "f32")]);
        assert_eq!((mixed.rows(), mixed.dtype(), mixed.is_f32()), (8, "f32", false));
        let all = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, -1.0, 2.0, 0.0, 1.0, 0.0, 1.0, 2.0, 3.0];
        for (start, end) in [(0, 8), (1, 2), (2, 4), (3, 5), (4, 6), (6, 8), (5, 5)] {
            assert_eq!(mixed.rows_f32(start, end, &mut Vec::new()), &all[2 * start..2 * end], "{start}..{end}");
        }
        assert_eq!(mixed.into_f32(), all);
    }

    #[test]
    fn rows_of_blocks_are_widened_where_they_are_read() {
        let mut numbers = Numbers::with_room(NumberType::Block(BlockType::Q8_0), 192);
        let floats: Vec<f32> = (0..192).map(|i| (i % 64) as f32 * 2.0).collect();
        assert!(numbers.push_f32(&floats));
        let matrix = Matrix::new(3, 64, numbers);
        let mut row = [0.0; 64];
        matrix.row_into(2, &mut row);
        assert!(row.iter().zip(&floats[..64]).all(|(a, b)| (a - b).abs() < 0.51), "{row:?}");
        assert_eq!(matrix.rows_f32(2, 3, &mut Vec::new()), row);
        assert_eq!(matrix.dtype(), "q8_0");
    }

    #[test]
    #[should_panic(expected = "rows of whole groups")]
    fn a_row_must_be_whole_blocks() {
        let _matrix = Matrix::new(2, 16, Numbers::Blocks(BlockType::Q8_0, vec![0; 34]));
    }
}
