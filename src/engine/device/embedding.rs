//! The rows of token ids: on the device, or, where they are blocks, in main memory.

use candle_core::{DType, Device, Result, Tensor};

use super::upload::{Weight, put};
use crate::engine::error::EngineError;
use crate::engine::matrix::Matrix;

/// An embedding. Blocks cannot be picked row by row on a device, and widening all of them for a few rows would take
/// more memory than they save: they stay in main memory, and the rows that are asked for travel.
#[derive(Debug)]
pub(super) struct Embedding {
    here: Option<Matrix>,
    there: Option<Weight>,
}

impl From<Weight> for Embedding {
    fn from(weight: Weight) -> Self {
        Self { here: None, there: Some(weight) }
    }
}

impl Embedding {
    /// With `product` it can also be multiplied by, as the head of a language model.
    pub(super) fn new(
        matrix: Matrix,
        product: bool,
        dtype: DType,
        device: &Device,
    ) -> std::result::Result<Self, EngineError> {
        let plain = matches!(matrix.dtype(), "f32" | "f16" | "bf16");
        let there = if plain || product { Some(put(&matrix, dtype, device)?) } else { None };
        Ok(Self { here: (!plain).then_some(matrix), there })
    }

    /// The rows of these ids, in f32.
    pub(super) fn rows(&self, ids: &[u32], device: &Device) -> Result<Tensor> {
        match (&self.here, &self.there) {
            (Some(matrix), _) => {
                let width = matrix.cols();
                let mut rows = vec![0.0; ids.len() * width];
                for (id, row) in ids.iter().zip(rows.chunks_exact_mut(width)) {
                    matrix.row_into(*id as usize, row);
                }
                Tensor::from_vec(rows, (ids.len(), width), device)
            }
            (None, Some(weight)) => weight.select(ids, device),
            (None, None) => candle_core::bail!("no embedding was loaded"),
        }
    }

    /// As a matrix of a head.
    pub(super) fn weight(&self) -> Result<&Weight> {
        match &self.there {
            Some(weight) => Ok(weight),
            None => candle_core::bail!("the embedding was not loaded as a head"),
        }
    }
}
