//! The forward pass on the CPU: f32, one sequence, chunk by chunk.

mod attention;
mod cache;
mod chunk;
pub(super) mod dense;
mod gemm;
pub(super) mod int8;
mod int8_kernels;
pub(super) mod plain;
pub(super) mod pool;
pub(super) mod rope;
mod scratch;
mod simd;

use super::KvChoice;
use super::config::ModelConfig;
use super::error::EngineError;
use super::machine::memory;
use super::matrix::Matrix;
use super::weights::Weights;
use cache::{Cache, Shape};
use chunk::Chunk;
use dense::Dense;
use gemm::Linear;
use int8::Activations;
use pool::Pool;
use rope::Rope;

/// One transformer layer.
#[derive(Debug)]
struct Layer {
    input_norm: Vec<f32>,
    /// Queries, keys and values in one matrix, in this order.
    qkv: Linear,
    /// RMS norms of each query and key head (Qwen3).
    head_norms: Option<(Vec<f32>, Vec<f32>)>,
    output: Linear,
    mlp_norm: Vec<f32>,
    /// Gate and up in one matrix, in this order.
    gate_up: Linear,
    down: Linear,
}

/// Buffers of one chunk, kept between chunks.
#[derive(Debug, Default)]
struct Buffers {
    residual: Vec<f32>,
    normed: Vec<f32>,
    qkv: Vec<f32>,
    queries: Vec<f32>,
    attention: Vec<f32>,
    gate_up: Vec<f32>,
    product: Vec<f32>,
    quantised: Activations,
}

/// A loaded model with its cache.
#[derive(Debug)]
pub(super) struct CpuModel {
    config: ModelConfig,
    /// One row a token id; a head may multiply by it too.
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    cache: Cache,
    kv_memory: Option<u64>,
    rope: Rope,
    pool: Pool,
    buffers: Buffers,
    /// Type of most weights at rest.
    stored: &'static str,
}

/// How a model is to be run.
#[derive(Debug)]
pub(super) struct Settings {
    /// The threads.
    pub(super) pool: Pool,
    /// Linear layers in 8 bits?
    pub(super) int8: bool,
    /// Type of the cached keys and values.
    pub(super) kv: KvChoice,
    /// Most bytes of them; `None` = three quarters of what is available when a text is read.
    pub(super) kv_memory: Option<u64>,
}

impl Settings {
    /// f32 throughout, as much memory as there is.
    pub(super) fn plain(pool: Pool) -> Self {
        Self { pool, int8: false, kv: KvChoice::F32, kv_memory: None }
    }
}

/// A chunk of a text that is read layer by layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// One past its last token, in the text.
    pub(super) end: usize,
    /// Rows that are computed after the last layer's keys and values (indices into the chunk, ascending).
    pub(super) rows: Vec<usize>,
    /// How many of them are wanted; the rest is there for the same products as elsewhere.
    pub(super) wanted: usize,
}

/// The work was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped;

impl CpuModel {
    /// Reads all tensors of a checkpoint but its head's.
    pub(super) fn load(config: &ModelConfig, weights: &mut Weights, settings: Settings) -> Result<Self, EngineError> {
        let Settings { pool, int8, kv, kv_memory } = settings;
        let hidden = config.hidden;
        let embedding = weights.matrix("model.embed_tokens.weight", config.vocab_size, hidden)?;
        let layers: Result<_, _> = (0..config.layers).map(|i| Layer::load(config, weights, i, int8)).collect();
        let norm = weights.vector("model.norm.weight", hidden)?;
        let (kv_heads, head_dim) = (config.kv_heads, config.head_dim);
        let shape = Shape { layers: config.layers, kv_heads, head_dim, kind: kv };
        Ok(Self {
            embedding,
            layers: layers?,
            norm,
            cache: Cache::new(shape),
            kv_memory,
            rope: Rope::new(config.rotations()),
            pool,
            buffers: Buffers::default(),
            stored: weights.main_type(),
            config: config.clone(),
        })
    }

    /// Forgets the tokens from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.cache.truncate(len);
    }

    /// A copy of the keys and values of some tokens.
    pub(super) fn save(&self, from: usize, to: usize) -> Vec<f32> {
        self.cache.save(from, to)
    }

    /// Puts such a copy of `tokens` tokens behind the cached ones, for which room is made.
    pub(super) fn restore(&mut self, tokens: usize, saved: &[f32]) {
        self.cache.reserve(self.cache.len() + tokens);
        self.cache.restore(tokens, saved);
    }

    /// Makes room for `tokens` in all.
    pub(super) fn reserve(&mut self, tokens: usize) {
        self.cache.reserve(tokens);
    }

    /// Threads in use.
    pub(super) fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Type of most weights at rest, or of the arithmetic if that is not f32.
    pub(super) fn dtype(&self) -> &'static str {
        if self.layers.iter().any(|l| l.down.dtype() == "int8") { "int8" } else { self.stored }
    }

    /// Appends `ids` to the cached tokens and returns the normalised last hidden states at `reads` (indices into `ids`,
    /// ascending). `stop` is asked before every task, a block of a product at most; a stopped chunk leaves the cache
    /// as it was.
    pub(super) fn append(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>, Stopped> {
        let start = self.cache.len();
        let end = start + ids.len();
        self.cache.reserve(end);
        self.rope.reserve(end);
        let Self { config, embedding, layers, norm, cache, rope, pool, buffers, .. } = self;
        let hidden = pool.enter(stop, |crew| {
            let mut run = Chunk { config, crew, rope, buffers, positions: (start..end).collect() };
            run.embed(embedding, ids);
            let capacity = cache.capacity();
            let last = layers.len().saturating_sub(1);
            for (number, (layer, store)) in layers.iter().zip(&mut cache.layers).enumerate() {
                // After the last layer's keys and values only the rows that are read go on.
                run.layer(layer, store, capacity, (number == last).then_some(reads));
                if crew.is_stopped() {
                    return Err(Stopped);
                }
            }
            let hidden = run.normed_residual(norm);
            if crew.is_stopped() { Err(Stopped) } else { Ok(hidden) }
        })?;
        cache.advance(end);
        Ok(hidden)
    }

    /// Do the keys and values of `tokens` tokens take more memory than they may? Then a text is better read by
    /// [`Self::by_layers`].
    pub(super) fn is_too_long(&self, tokens: usize) -> bool {
        let needed = self.cache.shape().bytes(tokens);
        let held = self.cache.shape().bytes(self.cache.capacity());
        let most = self.kv_memory.or_else(|| Some((memory()?.available + held) / 4 * 3));
        most.is_some_and(|most| needed > most)
    }

    /// Reads `ids` from scratch, layer by layer instead of chunk by chunk: only one layer's keys and values are alive,
    /// and one row of `hidden` numbers a token. Computes in the same chunks (`parts`) what [`Self::append`]
    /// computes, to the last bit, but gives the hidden states only at the end and caches nothing.
    pub(super) fn by_layers(
        &mut self,
        ids: &[u32],
        parts: &[Part],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>, Stopped> {
        self.cache.clear();
        self.rope.reserve(ids.len());
        let Self { config, embedding, layers, norm, cache, rope, pool, buffers, .. } = self;
        let width = config.hidden;
        pool.enter(stop, |crew| {
            let mut residual = vec![0.0; ids.len() * width];
            let mut store = cache.shape().layer(ids.len());
            let mut hidden = Vec::new();
            for (number, layer) in layers.iter().enumerate() {
                let mut start = 0;
                for &Part { end, ref rows, wanted } in parts {
                    let part = start * width..end * width;
                    let mut run = Chunk { config, crew, rope, buffers, positions: (start..end).collect() };
                    if number == 0 {
                        run.embed(embedding, &ids[start..end]);
                    } else {
                        run.resume(&residual[part.clone()]);
                    }
                    if number + 1 == layers.len() {
                        run.layer(layer, &mut store, ids.len(), Some(rows));
                        hidden.extend_from_slice(&run.normed_residual(norm)[..wanted * width]);
                    } else {
                        run.layer(layer, &mut store, ids.len(), None);
                        residual[part].copy_from_slice(run.residual());
                    }
                    if crew.is_stopped() {
                        return Err(Stopped);
                    }
                    start = end;
                }
            }
            Ok(hidden)
        })
    }

    /// Is this the embedding's own matrix?
    pub(super) fn embeds_by(&self, matrix: &Matrix) -> bool {
        self.embedding == *matrix
    }

    /// `x · Wᵀ + b` for rows of `x`: one layer of a head. Without `dense`, W is the embedding.
    pub(super) fn project(&self, dense: Option<&Dense>, x: &[f32]) -> Vec<f32> {
        match dense {
            Some(Dense { weight, bias }) => dense::apply(&self.pool, weight, bias.as_deref(), x),
            None => dense::apply(&self.pool, &self.embedding, None, x),
        }
    }
}

impl Layer {
    fn load(config: &ModelConfig, weights: &mut Weights, number: usize, int8: bool) -> Result<Self, EngineError> {
        let hidden = config.hidden;
        let (query, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let name = |part: &str| format!("model.layers.{number}.{part}");
        let mut part =
            |letter: &str, rows| weights.matrix(&name(&format!("self_attn.{letter}_proj.weight")), rows, hidden);
        let qkv = part("q", query)?.stack(part("k", kv)?).stack(part("v", kv)?);
        let mut bias = Vec::new();
        if config.has_qkv_bias() {
            for (letter, rows) in [("q", query), ("k", kv), ("v", kv)] {
                bias.extend(weights.vector(&name(&format!("self_attn.{letter}_proj.bias")), rows)?);
            }
        }
        let head_norms = if config.has_head_norms() {
            let query = weights.vector(&name("self_attn.q_norm.weight"), config.head_dim)?;
            Some((query, weights.vector(&name("self_attn.k_norm.weight"), config.head_dim)?))
        } else {
            None
        };
        let gate = weights.matrix(&name("mlp.gate_proj.weight"), config.intermediate, hidden)?;
        let up = weights.matrix(&name("mlp.up_proj.weight"), config.intermediate, hidden)?;
        let plain = |weight| Linear::new(weight, None, int8);
        let output_bias = name("self_attn.o_proj.bias");
        let output_bias = config.has_output_bias().then(|| weights.vector(&output_bias, hidden)).transpose()?;
        Ok(Self {
            input_norm: weights.vector(&name("input_layernorm.weight"), hidden)?,
            qkv: Linear::new(qkv, config.has_qkv_bias().then_some(bias), int8),
            head_norms,
            output: Linear::new(weights.matrix(&name("self_attn.o_proj.weight"), hidden, query)?, output_bias, int8),
            mlp_norm: weights.vector(&name("post_attention_layernorm.weight"), hidden)?,
            gate_up: plain(gate.stack(up)),
            down: plain(weights.matrix(&name("mlp.down_proj.weight"), hidden, config.intermediate)?),
        })
    }
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
