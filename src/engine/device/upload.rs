//! Brings a checkpoint's tensors to a device, one after the other, in the type they have.

use std::sync::Arc;

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};

use super::place::one_line;
use crate::engine::blocks::BlockType;
use crate::engine::error::EngineError;
use crate::engine::matrix::{Matrix, Numbers};
use crate::engine::weights::Weights;

/// Rows of a matrix, on the device.
#[derive(Debug)]
enum Rows {
    /// In the type of the arithmetic.
    Plain(Tensor),
    /// ggml's blocks, as the file has them.
    Blocks(Arc<QTensor>),
}

/// A matrix with one row an output, on the device.
#[derive(Debug)]
pub(super) struct Weight {
    /// From top to bottom.
    parts: Vec<Rows>,
    /// Type of the arithmetic.
    dtype: DType,
    /// Type of most numbers at rest.
    name: &'static str,
}

impl Weight {
    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.dims().0).sum()
    }

    /// Number of columns.
    pub(super) fn cols(&self) -> usize {
        self.parts.first().map_or(0, |part| part.dims().1)
    }

    /// Type of the arithmetic.
    pub(super) fn arithmetic(&self) -> DType {
        self.dtype
    }

    /// `"bf16"`, `"q4_k"` …
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// `x · Wᵀ` for rows of `x` in the type of the arithmetic; accumulated in f32, given in that type.
    pub(super) fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let parts: Result<Vec<Tensor>> = self.parts.iter().map(|part| part.apply(x, self.dtype)).collect();
        match parts?.as_slice() {
            [only] => Ok(only.clone()),
            several => Tensor::cat(several, 1),
        }
    }

    /// The rows with these numbers, in f32.
    pub(super) fn select(&self, ids: &[u32], device: &Device) -> Result<Tensor> {
        let [part] = self.parts.as_slice() else { candle_core::bail!("an embedding of several types") };
        let ids = Tensor::new(ids, device)?;
        match part {
            Rows::Plain(rows) => rows.index_select(&ids, 0)?.to_dtype(DType::F32),
            Rows::Blocks(rows) => rows.dequantize(device)?.index_select(&ids, 0),
        }
    }
}

impl Rows {
    fn dims(&self) -> (usize, usize) {
        let shape = match self {
            Self::Plain(rows) => rows.shape(),
            Self::Blocks(rows) => rows.shape(),
        };
        // Every part was made with two sides.
        shape.dims2().unwrap_or((0, 0))
    }

    fn apply(&self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        match self {
            Self::Plain(rows) => x.matmul(&rows.t()?),
            // candle widens blocks for Metal on the CPU, so there its kernel for blocks is used, which takes f32.
            Self::Blocks(rows) if x.device().is_metal() => {
                QMatMul::QTensor(rows.clone()).forward(&x.to_dtype(DType::F32)?)?.to_dtype(dtype)
            }
            // Elsewhere widened for this product: candle's kernels for blocks would round the activations to 8 bits.
            Self::Blocks(rows) => {
                let wide = if dtype == DType::F32 {
                    rows.dequantize(x.device())?
                } else {
                    rows.dequantize_f16(x.device())?.to_dtype(dtype)?
                };
                x.matmul(&wide.t()?)
            }
        }
    }
}

/// Where the tensors come from.
#[derive(Debug)]
pub(super) enum Source<'a> {
    /// A checkpoint.
    Weights(&'a mut Weights),
    /// Nowhere: drawn on the device, to measure speed with. Matrices keep the size of what they multiply, norms are 1,
    /// biases 0.
    Random,
}

/// Reads tensors and puts them on the device.
#[derive(Debug)]
pub(super) struct Upload<'a> {
    pub(super) source: Source<'a>,
    pub(super) device: &'a Device,
    /// Type of the arithmetic; plain numbers of other types are converted to it on the device.
    pub(super) dtype: DType,
}

impl Upload<'_> {
    /// A matrix of the checkpoint.
    pub(super) fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> std::result::Result<Weight, EngineError> {
        match &mut self.source {
            Source::Weights(weights) => put(&weights.matrix(name, rows, cols)?, self.dtype, self.device),
            Source::Random => random(rows, cols, self.dtype, self.device).map_err(|e| out_of_room(&e)),
        }
    }

    /// Several matrices of the same width, one below the other.
    pub(super) fn stacked(
        &mut self,
        names: &[(String, usize)],
        cols: usize,
    ) -> std::result::Result<Weight, EngineError> {
        let mut parts = Vec::new();
        let mut name = "f32";
        for (tensor, rows) in names {
            let weight = self.matrix(tensor, *rows, cols)?;
            name = weight.name;
            parts.extend(weight.parts);
        }
        let plain: Option<Vec<Tensor>> =
            parts.iter().map(|part| if let Rows::Plain(rows) = part { Some(rows.clone()) } else { None }).collect();
        if let Some(plain) = plain {
            parts = vec![Rows::Plain(Tensor::cat(&plain, 0).map_err(|e| out_of_room(&e))?)];
        }
        Ok(Weight { parts, dtype: self.dtype, name })
    }

    /// A norm's vector of the checkpoint, in f32.
    pub(super) fn norm(&mut self, name: &str, len: usize) -> std::result::Result<Tensor, EngineError> {
        let numbers = match &mut self.source {
            Source::Weights(weights) => weights.vector(name, len)?,
            Source::Random => vec![1.0; len],
        };
        Tensor::from_vec(numbers, len, self.device).map_err(|e| out_of_room(&e))
    }

    /// Biases of the checkpoint, one behind the other, in f32.
    pub(super) fn bias(&mut self, names: &[(String, usize)]) -> std::result::Result<Tensor, EngineError> {
        let mut numbers = Vec::new();
        for (name, len) in names {
            match &mut self.source {
                Source::Weights(weights) => numbers.extend(weights.vector(name, *len)?),
                Source::Random => numbers.resize(numbers.len() + len, 0.0),
            }
        }
        Tensor::new(numbers, self.device).map_err(|e| out_of_room(&e))
    }
}

/// Normally distributed numbers.
fn random(rows: usize, cols: usize, dtype: DType, device: &Device) -> Result<Weight> {
    let numbers = Tensor::randn(0f32, 1.0 / (cols as f32).sqrt(), (rows, cols), device)?;
    Ok(Weight { parts: vec![Rows::Plain(numbers.to_dtype(dtype)?)], dtype, name: name_of(dtype) })
}

fn name_of(dtype: DType) -> &'static str {
    match dtype {
        DType::BF16 => "bf16",
        DType::F16 => "f16",
        _ => "f32",
    }
}

/// Puts a matrix on the device, plain numbers as `dtype`, blocks as they are.
pub(super) fn put(matrix: &Matrix, dtype: DType, device: &Device) -> std::result::Result<Weight, EngineError> {
    let cols = matrix.cols();
    let name = match matrix.dtype() {
        "f32" | "f16" | "bf16" => name_of(dtype),
        blocks => blocks,
    };
    let parts: Result<Vec<Rows>> =
        matrix.parts().map(|(rows, numbers)| put_rows(numbers, rows.len(), cols, dtype, device)).collect();
    Ok(Weight { parts: parts.map_err(|e| out_of_room(&e))?, dtype, name })
}

fn put_rows(numbers: &Numbers, rows: usize, cols: usize, dtype: DType, device: &Device) -> Result<Rows> {
    let plain = |bytes: &[u8], own: DType| -> Result<Rows> {
        let there = Tensor::from_raw_buffer(bytes, own, &[rows, cols], device)?;
        Ok(Rows::Plain(there.to_dtype(dtype)?))
    };
    match numbers {
        Numbers::F32(v) => Ok(Rows::Plain(Tensor::from_slice(v, (rows, cols), device)?.to_dtype(dtype)?)),
        Numbers::F16(v) => plain(&little_endian(v), DType::F16),
        Numbers::Bf16(v) => plain(&little_endian(v), DType::BF16),
        Numbers::Blocks(kind, bytes) => {
            let storage = QStorage::from_data(bytes.into(), device, ggml(*kind))?;
            Ok(Rows::Blocks(Arc::new(QTensor::new(storage, (rows, cols))?)))
        }
    }
}

/// The bytes of halves, as files have them.
fn little_endian(halves: &[u16]) -> Vec<u8> {
    halves.iter().flat_map(|h| h.to_le_bytes()).collect()
}

/// Candle's name of a type of blocks.
fn ggml(kind: BlockType) -> GgmlDType {
    match kind {
        BlockType::Q4_0 => GgmlDType::Q4_0,
        BlockType::Q4_1 => GgmlDType::Q4_1,
        BlockType::Q5_0 => GgmlDType::Q5_0,
        BlockType::Q5_1 => GgmlDType::Q5_1,
        BlockType::Q8_0 => GgmlDType::Q8_0,
        BlockType::Q2K => GgmlDType::Q2K,
        BlockType::Q3K => GgmlDType::Q3K,
        BlockType::Q4K => GgmlDType::Q4K,
        BlockType::Q5K => GgmlDType::Q5K,
        BlockType::Q6K => GgmlDType::Q6K,
    }
}

/// What is said when a tensor cannot be put on the device although there should be room.
pub(super) fn out_of_room(error: &candle_core::Error) -> EngineError {
    EngineError::Device(format!("the weights cannot be put there ({}); use `--device cpu`", one_line(error)))
}
