//! The forward pass, whatever it runs on: token ids in, hidden states out, and the products a head is made of.

use super::config::ModelConfig;
use super::cpu::dense::Dense;
use super::cpu::pool::{Pool, default_threads};
use super::cpu::{CpuModel, Part, Settings};
use super::device::{DeviceLinear, DeviceModel, Place};
use super::error::EngineError;
use super::matrix::{Matrix, Numbers};
use super::model::{Chunks, PassError};
use super::weights::Weights;
use super::{DtypeChoice, EngineOptions};

/// A loaded model with its cache, without its head.
#[derive(Debug)]
pub(super) enum Network {
    /// This project's own forward pass.
    Cpu(Box<CpuModel>),
    /// Candle's operations.
    Device(Box<DeviceModel>),
}

/// One layer of a head, kept where the network is.
#[derive(Debug)]
pub(super) enum Projection {
    /// On the CPU.
    Cpu(Dense),
    /// On a device.
    Device(DeviceLinear),
    /// The embedding's own matrix.
    Embedding,
}

impl Network {
    /// Reads all tensors of a checkpoint but its head's.
    pub(super) fn load(
        config: &ModelConfig,
        weights: &mut Weights,
        place: Place,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        match place {
            Place::Cpu => {
                let pool = Pool::new(options.threads.unwrap_or_else(default_threads).max(1));
                weights.store_as(options.dtype);
                let (kv, kv_memory) = (options.kv, options.kv_memory);
                let settings = Settings { pool, int8: options.dtype == DtypeChoice::Int8, kv, kv_memory };
                Ok(Self::Cpu(Box::new(CpuModel::load(config, weights, settings)?)))
            }
            Place::Candle(device, name) => {
                let place = (device, name);
                Ok(Self::Device(Box::new(DeviceModel::load(config, weights, place, options.dtype)?)))
            }
        }
    }

    /// How texts are split unless the caller says otherwise.
    pub(super) fn chunks(&self) -> Chunks {
        match self {
            Self::Cpu(_) => Chunks::default(),
            Self::Device(model) => Chunks::Every(model.chunk()),
        }
    }

    /// Where it runs: `"cpu"`, `"cuda:0"`, `"metal:0"`.
    pub(super) fn device(&self) -> String {
        match self {
            Self::Cpu(_) => "cpu".into(),
            Self::Device(model) => model.name().into(),
        }
    }

    /// What computes attention on a device; `None` = this project's own on the CPU.
    pub(super) fn attention(&self) -> Option<&'static str> {
        match self {
            Self::Cpu(_) => None,
            Self::Device(model) => Some(model.attention()),
        }
    }

    /// Type of the weights in memory.
    pub(super) fn dtype(&self) -> &'static str {
        match self {
            Self::Cpu(model) => model.dtype(),
            Self::Device(model) => model.dtype(),
        }
    }

    /// Threads of the forward pass on the CPU; 1 elsewhere.
    pub(super) fn threads(&self) -> usize {
        match self {
            Self::Cpu(model) => model.threads(),
            Self::Device(_) => 1,
        }
    }

    /// Forgets the tokens from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Self::Cpu(model) => model.truncate(len),
            Self::Device(model) => model.truncate(len),
        }
    }

    /// A copy of the keys and values of some tokens; `None` where that is not done.
    pub(super) fn save(&self, from: usize, to: usize) -> Option<Vec<f32>> {
        match self {
            Self::Cpu(model) => Some(model.save(from, to)),
            Self::Device(_) => None,
        }
    }

    /// Puts such a copy of `tokens` tokens behind those there are.
    pub(super) fn restore(&mut self, tokens: usize, saved: &[f32]) {
        if let Self::Cpu(model) = self {
            model.restore(tokens, saved);
        }
    }

    /// Makes room for `len` tokens in all.
    pub(super) fn reserve(&mut self, len: usize) -> Result<(), PassError> {
        match self {
            Self::Cpu(model) => {
                model.reserve(len);
                Ok(())
            }
            Self::Device(model) => model.reserve(len),
        }
    }

    /// Appends `ids` to the cached tokens and returns the normalised last hidden states at `reads` (indices into `ids`,
    /// ascending), `hidden` numbers each. `stop` is asked before every layer; a stopped chunk leaves the cache as it
    /// was.
    pub(super) fn append(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>, PassError> {
        match self {
            Self::Cpu(model) => model.append(ids, reads, stop).map_err(|_stopped| PassError::Stopped),
            Self::Device(model) => model.append(ids, reads, stop),
        }
    }

    /// Would the keys and values of a text of `len` tokens take more memory than they may, and can it be read without
    /// them?
    pub(super) fn is_too_long(&self, len: usize) -> bool {
        matches!(self, Self::Cpu(model) if model.is_too_long(len))
    }

    /// Reads `ids` from scratch layer by layer in these parts: the states that [`Self::append`] would give for each,
    /// one after another, with the keys and values of one layer only. Nothing is cached.
    pub(super) fn by_layers(
        &mut self,
        ids: &[u32],
        parts: &[Part],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>, PassError> {
        match self {
            Self::Cpu(model) => model.by_layers(ids, parts, stop).map_err(|_stopped| PassError::Stopped),
            Self::Device(_) => Err(PassError::Failed("layer by layer runs on the CPU only".into())),
        }
    }

    /// Is this the embedding's own matrix? On a device nobody looks: it counts as another one.
    pub(super) fn embeds_by(&self, matrix: &Matrix) -> bool {
        matches!(self, Self::Cpu(model) if model.embeds_by(matrix))
    }

    /// Puts one layer of a head where the network is: in f32, or in the type it has if it is `large`.
    pub(super) fn keep(&self, weight: Matrix, bias: Option<Vec<f32>>, large: bool) -> Result<Projection, EngineError> {
        match self {
            Self::Cpu(_) => {
                let (rows, cols) = (weight.rows(), weight.cols());
                let weight = if large { weight } else { Matrix::new(rows, cols, Numbers::F32(weight.into_f32())) };
                Ok(Projection::Cpu(Dense { weight, bias }))
            }
            Self::Device(model) => Ok(Projection::Device(model.linear(&weight, bias, large)?)),
        }
    }

    /// `x · Wᵀ + b` for rows of `x`.
    pub(super) fn project(&self, projection: &Projection, x: &[f32]) -> Result<Vec<f32>, PassError> {
        match (self, projection) {
            (Self::Cpu(model), Projection::Cpu(dense)) => Ok(model.project(Some(dense), x)),
            (Self::Cpu(model), Projection::Embedding) => Ok(model.project(None, x)),
            (Self::Device(model), Projection::Device(linear)) => model.project(Some(linear), x),
            (Self::Device(model), Projection::Embedding) => model.project(None, x),
            _ => Err(PassError::Failed("the head lies on another device than the model: a defect of trajscope".into())),
        }
    }
}
