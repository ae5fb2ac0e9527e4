//! Causal attention in tiles: scores of a tile of queries against a tile of keys never leave the second-level cache.

use super::cache::Layer;
use super::gemm::{Shared, View, product};
use super::pool::Crew;
use super::scratch;
use super::simd;

/// Rows of a tile of queries (query heads that share keys are rows of one tile).
const QUERY_ROWS: usize = 256;
/// Keys of a tile. Tiles start at multiples of this in the whole sequence, so a query meets the same tiles whichever
/// chunk it is in.
const KEYS: usize = 256;

/// Numbers of heads and their width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    pub(super) query: usize,
    pub(super) kv: usize,
    pub(super) dim: usize,
}

impl Heads {
    /// Query heads that share one key and value head.
    pub(super) fn group(self) -> usize {
        self.query / self.kv
    }
}

/// Keys and values of one layer, as in the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) store: &'a Layer,
    pub(super) capacity: usize,
}

/// Attention of the queries at `positions` (ascending) over all keys up to and including each query's own position.
///
/// `queries` is `kv head × query × head of the group × dim`, scaled already; `out` becomes `query × head × dim`.
pub(super) fn attend(
    crew: &Crew<'_>,
    heads: Heads,
    queries: &[f32],
    positions: &[usize],
    context: Context<'_>,
    out: &mut [f32],
) {
    let (count, group) = (positions.len(), heads.group());
    assert!(queries.len() == count * heads.query * heads.dim && out.len() == queries.len(), "shapes of attention");
    let per_tile = tile_queries(crew, heads, count);
    let tiles = count.div_ceil(per_tile);
    let shared = Shared::new(out);
    crew.run(tiles * heads.kv, |task| {
        // Late queries see more keys: largest tasks first, so that no thread is left with one at the end.
        let (tile, head) = (tiles - 1 - task / heads.kv, task % heads.kv);
        let start = tile * per_tile;
        let end = (start + per_tile).min(count);
        let width = group * heads.dim;
        let base = head * count * width;
        let queries = &queries[base + start * width..base + end * width];
        scratch::with(|result| {
            tile_attention(heads, head, queries, &positions[start..end], context, result);
            for (i, row) in result.chunks_exact(width).enumerate() {
                let at = ((start + i) * heads.kv + head) * width;
                #[expect(unsafe_code, reason = "tasks write disjoint parts of the output")]
                // SAFETY: the part of this query and this group of heads belongs to this task alone.
                let part = unsafe { shared.part(at, at + width) };
                part.copy_from_slice(row);
            }
        });
    });
}

/// Queries of one tile: full tiles, but enough of them that every thread gets some.
fn tile_queries(crew: &Crew<'_>, heads: Heads, count: usize) -> usize {
    let full = (QUERY_ROWS / heads.group()).max(1);
    let fair = (count * heads.kv).div_ceil(2 * crew.threads()).max(8);
    full.min(fair).min(count.max(1))
}

/// One tile of queries of one group of heads; `result` becomes `query × head of the group × dim`.
fn tile_attention(
    heads: Heads,
    head: usize,
    queries: &[f32],
    positions: &[usize],
    context: Context<'_>,
    result: &mut Vec<f32>,
) {
    let (group, dim) = (heads.group(), heads.dim);
    let rows = positions.len() * group;
    let visible = positions.last().map_or(0, |p| p + 1);
    let mut sums = vec![0.0; rows];
    let mut highest = vec![f32::NEG_INFINITY; rows];
    result.clear();
    result.resize(rows * dim, 0.0);
    let base = head * context.capacity * dim;
    scratch::with(|scores| {
        scratch::with(|widened| {
            for first in (0..visible).step_by(KEYS) {
                let keys = KEYS.min(visible - first);
                let range = base + first * dim..base + (first + keys) * dim;
                scores.resize(rows * keys, 0.0);
                let key_rows = View::rows(context.store.keys.read(range.clone(), widened), keys, dim, dim);
                product(scores, View::rows(queries, rows, dim, dim), key_rows.transposed(), false);
                for (row, line) in scores.chunks_exact_mut(keys).enumerate() {
                    let seen = (positions[row / group] + 1).saturating_sub(first).min(keys);
                    let acc = &mut result[row * dim..(row + 1) * dim];
                    simd::softmax_step(line, seen, &mut highest[row], &mut sums[row], acc);
                }
                let values = View::rows(context.store.values.read(range, widened), keys, dim, dim);
                product(result, View::rows(scores, rows, keys, keys), values, true);
            }
        });
    });
    for (row, sum) in result.chunks_exact_mut(dim).zip(&sums) {
        let factor = 1.0 / sum;
        for v in row {
            *v *= factor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::KvChoice;
    use crate::engine::cpu::cache::{Shape, Store};
    use crate::engine::cpu::pool::Pool;

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| (((i + seed) * 7919 + 13) % 1009) as f32 / 300.0 - 1.7).collect()
    }

    /// The definition, in f64.
    fn naive(heads: Heads, queries: &[f32], positions: &[usize], context: Context<'_>) -> Vec<f32> {
        let (Store::F32(keys), Store::F32(values)) = (&context.store.keys, &context.store.values) else {
            panic!("a store in f32")
        };
        let (group, dim) = (heads.group(), heads.dim);
        let mut out = vec![0.0; queries.len()];
        for (i, position) in positions.iter().enumerate() {
            for head in 0..heads.query {
                let (kv, member) = (head / group, head % group);
                let query = &queries[((kv * positions.len() + i) * group + member) * dim..][..dim];
                let at = |store: &[f32], t: usize, d: usize| f64::from(store[(kv * context.capacity + t) * dim + d]);
                let scores: Vec<f64> = (0..=*position)
                    .map(|t| (0..dim).map(|d| f64::from(query[d]) * at(keys, t, d)).sum::<f64>())
                    .collect();
                let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for d in 0..dim {
                    let value: f64 = weights.iter().enumerate().map(|(t, w)| w * at(values, t, d)).sum();
                    out[(i * heads.query + head) * dim + d] = (value / sum) as f32;
                }
            }
        }
        out
    }

    #[test]
    fn tiles_match_the_definition() {
        let capacity = 700;
        for (query, kv, dim) in [(1, 1, 4), (4, 2, 8), (6, 1, 16), (14, 2, 8)] {
            let heads = Heads { query, kv, dim };
            let (keys, values) = (numbers(kv * capacity * dim, 1), numbers(kv * capacity * dim, 5));
            let store = Layer { keys: Store::F32(keys), values: Store::F32(values) };
            let context = Context { store: &store, capacity };
            for positions in
                [vec![0], (0..70).collect(), vec![3, 255, 256, 257, 511, 600], (250..530).collect::<Vec<_>>()]
            {
                let queries: Vec<f32> = numbers(positions.len() * query * dim, 9).iter().map(|v| v / 4.0).collect();
                let expected = naive(heads, &queries, &positions, context);
                for threads in [1, 2] {
                    let mut out = vec![f32::NAN; queries.len()];
                    attend(&Pool::new(threads).crew(), heads, &queries, &positions, context, &mut out);
                    let worst = out.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    assert!(worst < 2e-5, "{heads:?} {} queries: {worst}", positions.len());
                }
            }
        }
    }

    #[test]
    fn no_queries_no_work() {
        let heads = Heads { query: 2, kv: 1, dim: 4 };
        let store = Shape { layers: 1, kv_heads: 1, head_dim: 4, kind: KvChoice::F32 }.layer(0);
        attend(&Pool::new(1).crew(), heads, &[], &[], Context { store: &store, capacity: 0 }, &mut []);
    }
}
