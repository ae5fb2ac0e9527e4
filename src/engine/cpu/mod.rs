//! The forward pass on the CPU: f32, one sequence, chunk by chunk.

mod attention;
mod cache;
pub(super) mod dense;
mod gemm;
pub(super) mod int8;
mod int8_kernels;
pub(super) mod plain;
pub(super) mod pool;
pub(super) mod rope;
mod simd;

use super::config::ModelConfig;
use super::error::EngineError;
use super::matrix::Matrix;
use super::weights::Weights;
use attention::{Context, Heads, attend};
use cache::Cache;
use dense::Dense;
use gemm::{Input, Linear, Shared};
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
}

/// The work was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopped;

impl CpuModel {
    /// Reads all tensors of a checkpoint but its head's.
    pub(super) fn load(config: &ModelConfig, weights: &mut Weights, settings: Settings) -> Result<Self, EngineError> {
        let Settings { pool, int8 } = settings;
        let hidden = config.hidden;
        let embedding = weights.matrix("model.embed_tokens.weight", config.vocab_size, hidden)?;
        let layers: Result<_, _> = (0..config.layers).map(|i| Layer::load(config, weights, i, int8)).collect();
        let norm = weights.vector("model.norm.weight", hidden)?;
        Ok(Self {
            embedding,
            layers: layers?,
            norm,
            cache: Cache::new(config.layers, config.kv_heads, config.head_dim),
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
    /// ascending). `stop` is asked before every layer; a stopped chunk leaves the cache as it was.
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
        let pool = &*pool;
        let hidden = pool.enter(|| {
            let mut run = Chunk { config, pool, rope, buffers, positions: (start..end).collect() };
            run.embed(embedding, ids);
            let capacity = cache.capacity();
            let last = layers.len().saturating_sub(1);
            for (number, (layer, store)) in layers.iter().zip(&mut cache.layers).enumerate() {
                if stop() {
                    return Err(Stopped);
                }
                // After the last layer's keys and values only the rows that are read go on.
                run.layer(layer, store, capacity, (number == last).then_some(reads));
            }
            Ok(run.normed_residual(norm))
        })?;
        cache.advance(end);
        Ok(hidden)
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

/// One pass over one chunk.
struct Chunk<'a> {
    config: &'a ModelConfig,
    pool: &'a Pool,
    rope: &'a Rope,
    buffers: &'a mut Buffers,
    /// Position in the whole sequence of every row that is still carried.
    positions: Vec<usize>,
}

impl Chunk<'_> {
    fn embed(&mut self, embedding: &Matrix, ids: &[u32]) {
        let width = self.config.hidden;
        self.buffers.residual.resize(ids.len() * width, 0.0);
        for (id, row) in ids.iter().zip(self.buffers.residual.chunks_exact_mut(width)) {
            embedding.row_into(*id as usize, row);
        }
    }

    /// One layer. With `reads`, the keys and values of all rows go into the cache but only these rows are computed
    /// further and carried on.
    fn layer(&mut self, layer: &Layer, store: &mut cache::Layer, capacity: usize, reads: Option<&[usize]>) {
        self.norm(&layer.input_norm);
        let query_width = self.config.heads * self.config.head_dim;
        let all = self.config.qkv_width();
        match reads {
            None => {
                self.project(layer, 0..all);
                self.store_keys(layer, store, capacity, query_width);
                self.gather_queries(layer, all);
            }
            Some(reads) => {
                self.project(layer, query_width..all);
                self.store_keys(layer, store, capacity, 0);
                self.keep_rows(reads);
                self.project(layer, 0..query_width);
                self.gather_queries(layer, query_width);
            }
        }
        if self.positions.is_empty() {
            return;
        }
        let context = Context { keys: &store.keys, values: &store.values, capacity };
        let heads = self.heads();
        let Buffers { queries, attention, .. } = &mut *self.buffers;
        attention.resize(queries.len(), 0.0);
        attend(self.pool, heads, queries, &self.positions, context, attention);
        let rows = self.positions.len();
        let Buffers { residual, attention, quantised, .. } = &mut *self.buffers;
        let input = Input { x: attention, tokens: rows, scratch: quantised };
        layer.output.apply(self.pool, input, 0..self.config.hidden, residual, true);
        self.norm(&layer.mlp_norm);
        self.feed_forward(layer);
    }

    fn heads(&self) -> Heads {
        Heads { query: self.config.heads, kv: self.config.kv_heads, dim: self.config.head_dim }
    }

    /// `normed = rms_norm(residual)`.
    fn norm(&mut self, weight: &[f32]) {
        let (width, eps) = (self.config.hidden, self.config.rms_eps);
        let Buffers { residual, normed, .. } = &mut *self.buffers;
        normed.resize(residual.len(), 0.0);
        rows_in_parallel(self.pool, normed, width, |row, out| {
            simd::rms_norm(&residual[row * width..(row + 1) * width], weight, eps, out);
        });
    }

    fn normed_residual(&mut self, weight: &[f32]) -> Vec<f32> {
        self.norm(weight);
        self.buffers.normed.clone()
    }

    /// `qkv = normed · W[rows]ᵀ + b`.
    fn project(&mut self, layer: &Layer, rows: std::ops::Range<usize>) {
        let Buffers { normed, qkv, quantised, .. } = &mut *self.buffers;
        let tokens = self.positions.len();
        qkv.resize(tokens * rows.len(), 0.0);
        layer.qkv.apply(self.pool, Input { x: normed, tokens, scratch: quantised }, rows, qkv, false);
    }

    /// Turns the keys by their position and puts keys and values into the cache. In a row of `qkv` they begin at
    /// column `at`.
    fn store_keys(&mut self, layer: &Layer, store: &mut cache::Layer, capacity: usize, at: usize) {
        let (dim, kv) = (self.config.head_dim, self.config.kv_heads);
        let width = at + 2 * kv * dim;
        let (rope, positions, eps) = (self.rope, &self.positions, self.config.rms_eps);
        let norm = layer.head_norms.as_ref().map(|(_, key)| key.as_slice());
        let qkv = &self.buffers.qkv;
        let (keys, values) = (Shared::new(&mut store.keys), Shared::new(&mut store.values));
        self.pool.split(positions.len(), |range| {
            let mut scratch = vec![0.0; dim];
            for row in range {
                let (cos, sin) = rope.at(positions[row]);
                for head in 0..kv {
                    let from = row * width + at + head * dim;
                    let key = &qkv[from..from + dim];
                    let value = &qkv[from + kv * dim..from + kv * dim + dim];
                    let to = (head * capacity + positions[row]) * dim;
                    #[expect(unsafe_code, reason = "threads write the slots of different tokens")]
                    // SAFETY: this token's slots belong to this range alone.
                    let (key_slot, value_slot) = unsafe { (keys.part(to, to + dim), values.part(to, to + dim)) };
                    value_slot.copy_from_slice(value);
                    simd::rotate(normed_head(key, norm, eps, &mut scratch), cos, sin, 1.0, key_slot);
                }
            }
        });
    }

    /// Turns and scales the queries and puts them in attention's order. They are the first columns of `qkv`, whose
    /// rows are `width` wide.
    fn gather_queries(&mut self, layer: &Layer, width: usize) {
        let heads = self.heads();
        let (dim, group, count) = (heads.dim, heads.group(), self.positions.len());
        let (rope, positions, eps) = (self.rope, &self.positions, self.config.rms_eps);
        let norm = layer.head_norms.as_ref().map(|(query, _)| query.as_slice());
        let factor = 1.0 / (dim as f32).sqrt();
        let Buffers { qkv, queries, .. } = &mut *self.buffers;
        queries.resize(count * heads.query * dim, 0.0);
        let shared = Shared::new(queries);
        self.pool.split(count, |range| {
            let mut scratch = vec![0.0; dim];
            for row in range {
                let (cos, sin) = rope.at(positions[row]);
                for head in 0..heads.query {
                    let from = row * width + head * dim;
                    let to = (((head / group) * count + row) * group + head % group) * dim;
                    #[expect(unsafe_code, reason = "threads write the slots of different rows")]
                    // SAFETY: this row's slots belong to this range alone.
                    let slot = unsafe { shared.part(to, to + dim) };
                    simd::rotate(normed_head(&qkv[from..from + dim], norm, eps, &mut scratch), cos, sin, factor, slot);
                }
            }
        });
    }

    /// Drops every row but these from what is carried on.
    fn keep_rows(&mut self, reads: &[usize]) {
        let width = self.config.hidden;
        for store in [&mut self.buffers.residual, &mut self.buffers.normed] {
            for (to, from) in reads.iter().enumerate() {
                store.copy_within(from * width..(from + 1) * width, to * width);
            }
            store.truncate(reads.len() * width);
        }
        self.positions = reads.iter().map(|r| self.positions[*r]).collect();
    }

    /// `residual += down(silu(gate) · up)` of `normed`.
    fn feed_forward(&mut self, layer: &Layer) {
        let (rows, inner) = (self.positions.len(), self.config.intermediate);
        let Buffers { residual, normed, gate_up, product, quantised, .. } = &mut *self.buffers;
        gate_up.resize(rows * 2 * inner, 0.0);
        let input = Input { x: normed, tokens: rows, scratch: quantised };
        layer.gate_up.apply(self.pool, input, 0..2 * inner, gate_up, false);
        product.resize(rows * inner, 0.0);
        rows_in_parallel(self.pool, product, inner, |row, out| {
            let (gate, up) = gate_up[row * 2 * inner..(row + 1) * 2 * inner].split_at(inner);
            simd::silu_mul(gate, up, out);
        });
        let input = Input { x: product, tokens: rows, scratch: quantised };
        layer.down.apply(self.pool, input, 0..self.config.hidden, residual, true);
    }
}

/// A query or key head, normalised first if the family does so.
fn normed_head<'a>(head: &'a [f32], norm: Option<&[f32]>, eps: f32, scratch: &'a mut [f32]) -> &'a [f32] {
    match norm {
        Some(weight) => {
            simd::rms_norm(head, weight, eps, scratch);
            scratch
        }
        None => head,
    }
}

/// Calls `work(row, slice)` for every row of `out`, rows spread over the pool.
fn rows_in_parallel(pool: &Pool, out: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let rows = out.len() / width.max(1);
    let shared = Shared::new(out);
    pool.split(rows, |range| {
        for row in range {
            #[expect(unsafe_code, reason = "threads write different rows")]
            // SAFETY: every row is in one range only.
            let slice = unsafe { shared.part(row * width, (row + 1) * width) };
            work(row, slice);
        }
    });
}
