//! A model on a device: token ids in, hidden states out.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::rms_norm;

use super::attention::{Heads, Kernel, Sequence};
use super::embedding::Embedding;
use super::layer::Layer;
use super::place::{free_memory, one_line};
use super::room::{arithmetic, chunk, lacks_room, shape_lacks_room, wish};
use super::upload::{Source, Upload, Weight, out_of_room, put};
use crate::engine::DtypeChoice;
use crate::engine::config::{ModelConfig, Task};
use crate::engine::error::EngineError;
use crate::engine::fit::{Shape, Storage};
use crate::engine::matrix::Matrix;
use crate::engine::model::PassError;
use crate::engine::weights::Weights;

/// Room is made for this many tokens more than asked.
const SPARE: usize = 512;

/// A loaded model with its cache, on one device.
#[derive(Debug)]
pub(in crate::engine) struct DeviceModel {
    config: ModelConfig,
    device: Device,
    name: String,
    /// Type of the arithmetic.
    dtype: DType,
    /// Type of the weights at rest.
    stored: &'static str,
    kernel: Kernel,
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Tensor,
    /// Cosines and sines of the first positions, `positions × head_dim / 2`, f32.
    rope: Option<(Tensor, Tensor)>,
    capacity: usize,
    len: usize,
}

/// A weight matrix with its optional bias on the device: one layer of a head.
#[derive(Debug)]
pub(in crate::engine) struct DeviceLinear {
    weight: Weight,
    bias: Option<Tensor>,
}

/// A text that goes on from the cached tokens.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Branch<'a> {
    /// What follows the cached tokens.
    pub(in crate::engine) ids: &'a [u32],
    /// Indices into `ids`, ascending.
    pub(in crate::engine) reads: &'a [usize],
}

/// One run through all layers.
struct Pass {
    ids: Vec<u32>,
    /// Rows whose hidden states are wanted, ascending.
    reads: Vec<usize>,
    /// Tokens of each sequence that are in this pass, one behind the other; all follow the cached tokens.
    lengths: Vec<usize>,
    /// Do the keys and values go into the cache?
    keep: bool,
}

impl DeviceModel {
    /// Reads all tensors of a checkpoint but its head's onto a device.
    pub(in crate::engine) fn load(
        config: &ModelConfig,
        weights: &mut Weights,
        (device, name): (Device, String),
        dtype: DtypeChoice,
    ) -> std::result::Result<Self, EngineError> {
        if dtype == DtypeChoice::Int8 {
            let why = "int8 arithmetic is the CPU's; use `--dtype q8_0` or `--dtype bf16` here";
            return Err(EngineError::Device(format!("{name}: {why}")));
        }
        if let Some(why) = lacks_room(config, weights, dtype, &device) {
            return Err(EngineError::Device(format!("{name}: {why}")));
        }
        weights.store_as(dtype);
        let embedding = weights.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden)?;
        let dtype = arithmetic(embedding.dtype(), &device);
        let product = config.tied && config.task == Task::Language;
        let embedding = Embedding::new(embedding, product, dtype, &device)?;
        let upload = Upload { source: Source::Weights(weights), device: &device, dtype };
        Self::assemble(config, embedding, upload, name)
    }

    /// A model with random weights, which are drawn on the device.
    pub(super) fn random(
        config: &ModelConfig,
        (device, name): (Device, String),
        dtype: DType,
    ) -> std::result::Result<Self, EngineError> {
        let storage = if dtype == DType::F32 { Storage::F32 } else { Storage::Half };
        let lacks = free_memory(&device).and_then(|free| shape_lacks_room(config, storage, dtype, free));
        if let Some(why) = lacks {
            return Err(EngineError::Device(format!("{name}: {why}")));
        }
        let mut upload = Upload { source: Source::Random, device: &device, dtype };
        let embedding = Embedding::from(upload.matrix("", config.vocab_size, config.hidden)?);
        Self::assemble(config, embedding, upload, name)
    }

    fn assemble(
        config: &ModelConfig,
        embedding: Embedding,
        mut upload: Upload<'_>,
        name: String,
    ) -> std::result::Result<Self, EngineError> {
        let layers: std::result::Result<Vec<_>, _> =
            (0..config.layers).map(|i| Layer::load(config, &mut upload, i)).collect();
        let layers = layers?;
        let (device, dtype) = (upload.device.clone(), upload.dtype);
        Ok(Self {
            kernel: Kernel::choose(&device, dtype, heads(config)),
            config: config.clone(),
            name,
            dtype,
            stored: layers.first().map_or("f32", Layer::dtype),
            embedding,
            norm: upload.norm("model.norm.weight", config.hidden)?,
            layers,
            rope: None,
            capacity: 0,
            len: 0,
            device,
        })
    }

    /// Name of the device.
    pub(in crate::engine) fn name(&self) -> &str {
        &self.name
    }

    /// Type of the weights in memory.
    pub(in crate::engine) fn dtype(&self) -> &'static str {
        self.stored
    }

    /// What computes attention: `"flash-attn"`, `"sdpa"`, `"tiled"`.
    pub(in crate::engine) fn attention(&self) -> &'static str {
        self.kernel.name()
    }

    /// Tokens of one chunk.
    pub(in crate::engine) fn chunk(&self) -> usize {
        chunk(&Shape::of(&self.config, 1))
    }

    /// Forgets the tokens from `len` on.
    pub(in crate::engine) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes room for `tokens` in all, keeping what is there.
    pub(in crate::engine) fn reserve(&mut self, tokens: usize) -> std::result::Result<(), PassError> {
        if tokens <= self.capacity {
            return Ok(());
        }
        if let Some(why) = self.text_lacks_room(tokens as u64) {
            return Err(PassError::Failed(format!("{}: {why}", self.name)));
        }
        self.grow(tokens + SPARE).map_err(|e| self.failed(&e))
    }

    /// Why a text of this many tokens has no room beside the weights, and what would; `None` = it has, or nobody knows
    /// what is free.
    fn text_lacks_room(&self, tokens: u64) -> Option<String> {
        let wish = wish(&self.config, Storage::of_dtype(self.stored), self.dtype, tokens);
        // What the model has already is not free, but counts as its own.
        let own = wish.shape.weight_bytes(wish.storage)
            + wish.shape.cache_bytes_per_token(wish.cache_number) * self.capacity as u64;
        wish.advice(Some(free_memory(&self.device)? + own))
    }

    fn grow(&mut self, capacity: usize) -> Result<()> {
        let shape = (self.config.kv_heads, capacity, self.config.head_dim);
        for layer in &mut self.layers {
            for store in [&mut layer.keys, &mut layer.values] {
                let grown = Tensor::zeros(shape, self.dtype, &self.device)?;
                if let Some(old) = store.as_ref().filter(|_| self.len > 0) {
                    grown.slice_set(&old.narrow(1, 0, self.len)?.contiguous()?, 1, 0)?;
                }
                *store = Some(grown);
            }
        }
        self.rope = Some(turns(&self.config, capacity, &self.device)?);
        self.capacity = capacity;
        Ok(())
    }

    /// As `CpuModel::append`.
    pub(in crate::engine) fn append(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> std::result::Result<Vec<f32>, PassError> {
        self.reserve(self.len + ids.len())?;
        let pass = Pass { ids: ids.to_vec(), reads: reads.to_vec(), lengths: vec![ids.len()], keep: true };
        let states = self.run(&pass, stop)?;
        self.len += ids.len();
        Ok(states)
    }

    /// Runs several texts in one pass, each as if it alone followed the cached tokens, which stay as they are. Gives
    /// the hidden states at the reads of all, one behind the other.
    pub(in crate::engine) fn branches(
        &mut self,
        branches: &[Branch<'_>],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> std::result::Result<Vec<f32>, PassError> {
        let mut pass = Pass { ids: Vec::new(), reads: Vec::new(), lengths: Vec::new(), keep: false };
        for branch in branches.iter().filter(|b| !b.ids.is_empty()) {
            pass.reads.extend(branch.reads.iter().map(|r| pass.ids.len() + r));
            pass.ids.extend_from_slice(branch.ids);
            pass.lengths.push(branch.ids.len());
        }
        let longest = pass.lengths.iter().copied().max().unwrap_or(0);
        self.reserve(self.len + longest)?;
        self.run(&pass, stop)
    }

    fn run(&self, pass: &Pass, stop: &(dyn Fn() -> bool + Sync)) -> std::result::Result<Vec<f32>, PassError> {
        if pass.ids.is_empty() {
            return Ok(Vec::new());
        }
        self.forward(pass, stop).map_err(|e| self.failed(&e))?.ok_or(PassError::Stopped)
    }

    fn failed(&self, error: &candle_core::Error) -> PassError {
        let said = one_line(error);
        let full = said.to_lowercase().replace('_', " ").contains("out of memory");
        let wish = wish(&self.config, Storage::of_dtype(self.stored), self.dtype, self.capacity as u64);
        let more = if full { wish.advice(None).map(|needs| format!("{needs}; ")) } else { None };
        PassError::Failed(format!("{}: {said}; {}try `--device cpu`", self.name, more.unwrap_or_default()))
    }

    /// `None` = stopped.
    fn forward(&self, pass: &Pass, stop: &(dyn Fn() -> bool + Sync)) -> Result<Option<Vec<f32>>> {
        let (eps, heads) = (self.config.rms_eps, heads(&self.config));
        let (query, kv) = (heads.query * heads.dim, heads.kv * heads.dim);
        let sequences: Vec<Sequence> =
            pass.lengths.iter().map(|rows| Sequence { rows: *rows, tokens: self.len + rows }).collect();
        let turns = self.turns_of(pass)?;
        let mut x = self.embedding.rows(&pass.ids, &self.device)?;
        for (number, layer) in self.layers.iter().enumerate() {
            if stop() {
                return Ok(None);
            }
            let qkv = layer.project(&x, eps, self.dtype)?;
            let (query_norm, key_norm) = layer.head_norms.as_ref().map_or((None, None), |(q, k)| (Some(q), Some(k)));
            let keys = self.turn(&qkv.narrow(1, query, kv)?, key_norm, &turns)?.to_dtype(self.dtype)?;
            let values = by_head(&qkv.narrow(1, query + kv, kv)?, heads.dim)?.to_dtype(self.dtype)?;
            let keys = self.context(layer.keys.as_ref(), &keys, pass)?;
            let values = self.context(layer.values.as_ref(), &values, pass)?;
            let last = number + 1 == self.layers.len();
            if last && pass.reads.is_empty() {
                break;
            }
            let queries = self.turn(&qkv.narrow(1, 0, query)?, query_norm, &turns)?;
            let mut attended = self.kernel.attend(heads, &queries, &keys, &values, &sequences)?;
            if last {
                // Beyond the last layer's attention only the rows that are read go on.
                let rows: Vec<u32> = pass.reads.iter().map(|r| *r as u32).collect();
                let rows = Tensor::new(rows, &self.device)?;
                x = x.index_select(&rows, 0)?;
                attended = attended.index_select(&rows, 0)?;
            }
            x = layer.finish(&x, &attended, eps)?;
        }
        if pass.reads.is_empty() {
            return Ok(Some(Vec::new()));
        }
        Ok(Some(rms_norm(&x, &self.norm, eps)?.flatten_all()?.to_vec1()?))
    }

    /// Cosines and sines of the rows of a pass.
    fn turns_of(&self, pass: &Pass) -> Result<(Tensor, Tensor)> {
        let Some((cos, sin)) = &self.rope else { candle_core::bail!("no room was made in the cache") };
        let of = |table: &Tensor| -> Result<Tensor> {
            let parts: Result<Vec<Tensor>> = pass.lengths.iter().map(|rows| table.narrow(0, self.len, *rows)).collect();
            Tensor::cat(&parts?, 0)?.contiguous()
        };
        Ok((of(cos)?, of(sin)?))
    }

    /// `rows × (heads · dim)` to `heads × rows × dim`, normalised (Qwen3) and turned by position, f32.
    fn turn(&self, x: &Tensor, norm: Option<&Tensor>, (cos, sin): &(Tensor, Tensor)) -> Result<Tensor> {
        let mut heads = by_head(x, self.config.head_dim)?;
        if let Some(weight) = norm {
            heads = rms_norm(&heads, weight, self.config.rms_eps)?;
        }
        candle_nn::rotary_emb::rope(&heads.unsqueeze(0)?, cos, sin)?.squeeze(0)
    }

    /// What the queries of a pass look at: cached keys (or values) and the pass's own.
    fn context(&self, store: Option<&Tensor>, own: &Tensor, pass: &Pass) -> Result<Tensor> {
        let Some(store) = store else { candle_core::bail!("no room was made in the cache") };
        if pass.keep {
            store.slice_set(&own.contiguous()?, 1, self.len)?;
            return store.narrow(1, 0, self.len + own.dim(1)?);
        }
        let mut parts = Vec::new();
        let mut row = 0;
        for rows in &pass.lengths {
            if self.len > 0 {
                parts.push(store.narrow(1, 0, self.len)?);
            }
            parts.push(own.narrow(1, row, *rows)?);
            row += rows;
        }
        Tensor::cat(&parts, 1)
    }

    /// As `CpuModel::project`.
    pub(in crate::engine) fn project(
        &self,
        linear: Option<&DeviceLinear>,
        x: &[f32],
    ) -> std::result::Result<Vec<f32>, PassError> {
        let run = || -> Result<Vec<f32>> {
            let weight = linear.map_or_else(|| self.embedding.weight(), |linear| Ok(&linear.weight))?;
            let width = weight.cols();
            let x = Tensor::from_slice(x, (x.len() / width, width), &self.device)?;
            let mut outputs = weight.apply(&x.to_dtype(weight.arithmetic())?)?.to_dtype(DType::F32)?;
            if let Some(bias) = linear.and_then(|linear| linear.bias.as_ref()) {
                outputs = outputs.broadcast_add(bias)?;
            }
            outputs.flatten_all()?.to_vec1()
        };
        run().map_err(|e| self.failed(&e))
    }

    /// Puts one layer of a head on the device: in f32, or in the model's type if it is `large`.
    pub(in crate::engine) fn linear(
        &self,
        weight: &Matrix,
        bias: Option<Vec<f32>>,
        large: bool,
    ) -> std::result::Result<DeviceLinear, EngineError> {
        let weight = put(weight, if large { self.dtype } else { DType::F32 }, &self.device)?;
        let bias = bias.map(|bias| Tensor::new(bias, &self.device)).transpose().map_err(|e| out_of_room(&e))?;
        Ok(DeviceLinear { weight, bias })
    }
}

fn heads(config: &ModelConfig) -> Heads {
    Heads { query: config.heads, kv: config.kv_heads, dim: config.head_dim }
}

/// `rows × (heads · dim)` to `heads × rows × dim`.
fn by_head(x: &Tensor, dim: usize) -> Result<Tensor> {
    let (rows, width) = x.dims2()?;
    x.reshape((rows, width / dim, dim))?.transpose(0, 1)?.contiguous()
}

/// Cosines and sines of the first `count` positions, as the CPU's tables have them.
fn turns(config: &ModelConfig, count: usize, device: &Device) -> Result<(Tensor, Tensor)> {
    let (frequencies, factor) = config.rotations();
    let angles = || (0..count).flat_map(|p| frequencies.iter().map(move |f| f64::from(p as f32 * f)));
    let table = |of: fn(f64) -> f64| {
        let numbers: Vec<f32> = angles().map(|a| of(a) as f32 * factor).collect();
        Tensor::from_vec(numbers, (count, frequencies.len()), device)
    };
    Ok((table(f64::cos)?, table(f64::sin)?))
}
