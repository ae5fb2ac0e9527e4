//! Weight matrices at rest: kept in the type the file has, widened to f32 where they are used.

/// The numbers of a tensor, in the file's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// IEEE half floats, as bits.
    F16(Vec<u16>),
    /// The upper half of 32-bit floats, as bits.
    Bf16(Vec<u16>),
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F16(v) | Self::Bf16(v) => v.len(),
        }
    }

    /// Appends numbers of the same type; of different types: both are widened to f32 (exact).
    fn append(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::F32(to), Self::F32(from)) => to.extend_from_slice(&from),
            (Self::F16(to), Self::F16(from)) | (Self::Bf16(to), Self::Bf16(from)) => to.extend_from_slice(&from),
            (_, other) => {
                let mut wide = vec![0.0; self.len() + other.len()];
                let (head, tail) = wide.split_at_mut(self.len());
                self.widen(0, head);
                other.widen(0, tail);
                *self = Self::F32(wide);
            }
        }
    }

    /// Writes `out.len()` numbers from `start` on as f32: exact for every type.
    fn widen(&self, start: usize, out: &mut [f32]) {
        let end = start + out.len();
        match self {
            Self::F32(v) => out.copy_from_slice(&v[start..end]),
            Self::F16(v) => out.iter_mut().zip(&v[start..end]).for_each(|(o, h)| *o = f16_to_f32(*h)),
            Self::Bf16(v) => out.iter_mut().zip(&v[start..end]).for_each(|(o, b)| *o = bf16_to_f32(*b)),
        }
    }
}

/// `rows × cols`, row-major: one row an output (or a vocabulary entry).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    rows: usize,
    cols: usize,
    data: Numbers,
}

impl Matrix {
    /// A matrix from numbers that must be `rows * cols` long (the loader has checked the shape).
    pub(super) fn new(rows: usize, cols: usize, data: Numbers) -> Self {
        assert_eq!(data.len(), rows * cols, "matrix shape");
        Self { rows, cols, data }
    }

    /// The rows of `other` below these.
    pub(super) fn stack(mut self, other: Self) -> Self {
        assert_eq!(self.cols, other.cols, "stacked matrices have the same width");
        self.rows += other.rows;
        self.data.append(other.data);
        self
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub(super) fn cols(&self) -> usize {
        self.cols
    }

    /// Bytes one number takes at rest.
    pub(super) fn is_f32(&self) -> bool {
        matches!(self.data, Numbers::F32(_))
    }

    /// `"f32"`, `"f16"` or `"bf16"`.
    pub(super) fn dtype(&self) -> &'static str {
        match self.data {
            Numbers::F32(_) => "f32",
            Numbers::F16(_) => "f16",
            Numbers::Bf16(_) => "bf16",
        }
    }

    /// The rows from `start` to `end` as f32, without a copy when they are f32 already, else widened into `scratch`.
    pub(super) fn rows_f32<'a>(&'a self, start: usize, end: usize, scratch: &'a mut Vec<f32>) -> &'a [f32] {
        match &self.data {
            Numbers::F32(v) => &v[start * self.cols..end * self.cols],
            half => {
                scratch.resize((end - start) * self.cols, 0.0);
                half.widen(start * self.cols, scratch);
                scratch
            }
        }
    }

    /// Writes row `row` into `out` (as long as a row).
    pub(super) fn row_into(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.cols, "row width");
        self.data.widen(row * self.cols, out);
    }

    /// The whole matrix as f32.
    pub(super) fn into_f32(self) -> Vec<f32> {
        match self.data {
            Numbers::F32(v) => v,
            half => {
                let mut wide = vec![0.0; half.len()];
                half.widen(0, &mut wide);
                wide
            }
        }
    }
}

fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Exact, denormals, infinities and NaN included; without branches so that the loop over it is vectorised.
fn f16_to_f32(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let sign = (bits & 0x8000) << 16;
    let rest = bits & 0x7fff;
    // The exponent bias differs by 112: move the bits up and scale by 2^112, which also makes denormals normal.
    let scaled = f32::from_bits(rest << 13) * f32::from_bits((127 + 112) << 23);
    let special = f32::from_bits(0x7f80_0000 | ((rest & 0x3ff) << 13));
    let magnitude = if rest >= 0x7c00 { special } else { scaled };
    f32::from_bits(magnitude.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_widen_exactly() {
        let cases = [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x7bff, 65504.0),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(f16_to_f32(bits).to_bits(), f32::to_bits(value), "{bits:#x}");
        }
        assert!(f16_to_f32(0x7e00).is_nan());
        assert_eq!(bf16_to_f32(0x3f80).to_bits(), 1.0f32.to_bits());
        assert_eq!(bf16_to_f32(0xc049).to_bits(), (-3.140_625_f32).to_bits());
    }

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
        let mixed = bf16.clone().stack(f16);
        assert_eq!((mixed.rows(), mixed.dtype()), (6, "f32"));
        assert_eq!(bf16.clone().stack(bf16).dtype(), "bf16");
    }
}
