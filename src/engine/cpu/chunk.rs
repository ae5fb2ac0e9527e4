//! One chunk of tokens through the layers.

use super::attention::{Context, Heads, attend};
use super::cache;
use super::gemm::{Input, Shared};
use super::pool::Crew;
use super::rope::Rope;
use super::{Buffers, Layer, simd};
use crate::engine::config::ModelConfig;
use crate::engine::matrix::Matrix;

/// One pass over one chunk.
pub(super) struct Chunk<'a> {
    pub(super) config: &'a ModelConfig,
    pub(super) crew: &'a Crew<'a>,
    pub(super) rope: &'a Rope,
    pub(super) buffers: &'a mut Buffers,
    /// Position in the whole sequence of every row that is still carried.
    pub(super) positions: Vec<usize>,
}

impl Chunk<'_> {
    pub(super) fn embed(&mut self, embedding: &Matrix, ids: &[u32]) {
        let width = self.config.hidden;
        self.buffers.residual.resize(ids.len() * width, 0.0);
        for (id, row) in ids.iter().zip(self.buffers.residual.chunks_exact_mut(width)) {
            embedding.row_into(*id as usize, row);
        }
    }

    /// Takes up rows that went through earlier layers.
    pub(super) fn resume(&mut self, rows: &[f32]) {
        self.buffers.residual.clear();
        self.buffers.residual.extend_from_slice(rows);
    }

    /// The rows as they are now.
    pub(super) fn residual(&self) -> &[f32] {
        &self.buffers.residual
    }

    /// One layer. With `reads`, the keys and values of all rows go into the cache but only these rows are computed
    /// further and carried on.
    pub(super) fn layer(&mut self, layer: &Layer, store: &mut cache::Layer, capacity: usize, reads: Option<&[usize]>) {
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
        let context = Context { store, capacity };
        let heads = self.heads();
        let Buffers { queries, attention, .. } = &mut *self.buffers;
        attention.resize(queries.len(), 0.0);
        attend(self.crew, heads, queries, &self.positions, context, attention);
        let rows = self.positions.len();
        let Buffers { residual, attention, quantised, .. } = &mut *self.buffers;
        let input = Input { x: attention, tokens: rows, scratch: quantised };
        layer.output.apply(self.crew, input, 0..self.config.hidden, residual, true);
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
        rows_in_parallel(self.crew, normed, width, |row, out| {
            simd::rms_norm(&residual[row * width..(row + 1) * width], weight, eps, out);
        });
    }

    pub(super) fn normed_residual(&mut self, weight: &[f32]) -> Vec<f32> {
        self.norm(weight);
        self.buffers.normed.clone()
    }

    /// `qkv = normed · W[rows]ᵀ + b`.
    fn project(&mut self, layer: &Layer, rows: std::ops::Range<usize>) {
        let Buffers { normed, qkv, quantised, .. } = &mut *self.buffers;
        let tokens = self.positions.len();
        qkv.resize(tokens * rows.len(), 0.0);
        layer.qkv.apply(self.crew, Input { x: normed, tokens, scratch: quantised }, rows, qkv, false);
    }

    /// Turns the keys by their position and puts keys and values into the cache. In a row of `qkv` they begin at
    /// column `at`.
    fn store_keys(&mut self, layer: &Layer, store: &mut cache::Layer, capacity: usize, at: usize) {
        let (dim, kv) = (self.config.head_dim, self.config.kv_heads);
        let width = at + 2 * kv * dim;
        let (rope, positions, eps) = (self.rope, &self.positions, self.config.rms_eps);
        let norm = layer.head_norms.as_ref().map(|(_, key)| key.as_slice());
        let qkv = &self.buffers.qkv;
        let (keys, values) = (store.keys.share(), store.values.share());
        self.crew.split(positions.len(), |range| {
            let (mut scratch, mut turned) = (vec![0.0; dim], vec![0.0; dim]);
            for row in range {
                let (cos, sin) = rope.at(positions[row]);
                for head in 0..kv {
                    let from = row * width + at + head * dim;
                    let key = &qkv[from..from + dim];
                    let value = &qkv[from + kv * dim..from + kv * dim + dim];
                    let to = (head * capacity + positions[row]) * dim;
                    simd::rotate(normed_head(key, norm, eps, &mut scratch), cos, sin, 1.0, &mut turned);
                    #[expect(unsafe_code, reason = "threads write the slots of different tokens")]
                    // SAFETY: this token's slots belong to this range alone.
                    unsafe {
                        keys.put(to, &turned);
                        values.put(to, value);
                    }
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
        self.crew.split(count, |range| {
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
        layer.gate_up.apply(self.crew, input, 0..2 * inner, gate_up, false);
        product.resize(rows * inner, 0.0);
        rows_in_parallel(self.crew, product, inner, |row, out| {
            let (gate, up) = gate_up[row * 2 * inner..(row + 1) * 2 * inner].split_at(inner);
            simd::silu_mul(gate, up, out);
        });
        let input = Input { x: product, tokens: rows, scratch: quantised };
        layer.down.apply(self.crew, input, 0..self.config.hidden, residual, true);
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
fn rows_in_parallel(crew: &Crew<'_>, out: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let rows = out.len() / width.max(1);
    let shared = Shared::new(out);
    crew.split(rows, |range| {
        for row in range {
            #[expect(unsafe_code, reason = "threads write different rows")]
            // SAFETY: every row is in one range only.
            let slice = unsafe { shared.part(row * width, (row + 1) * width) };
            work(row, slice);
        }
    });
}
