//! Causal attention on a device: candle-flash-attn on CUDA, candle's sdpa on Metal, else tiles of plain operations.
//!
//! All three take several sequences at once. Queries are the last tokens of their sequence: the mask is aligned at the
//! bottom right, as both fused kernels have it.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use crate::engine::fit::ATTENTION_TILE;

/// Heads of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heads {
    /// Query heads.
    pub(super) query: usize,
    /// Key and value heads; those of queries that share one are neighbours.
    pub(super) kv: usize,
    /// Width of one head.
    pub(super) dim: usize,
}

impl Heads {
    fn scale(self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }
}

/// One sequence of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Tokens whose queries are asked: the last ones.
    pub(super) rows: usize,
    /// Tokens in all.
    pub(super) tokens: usize,
}

/// What computes attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// candle-flash-attn: one call for all sequences.
    #[cfg(feature = "flash-attn")]
    Flash,
    /// Candle's fused kernel for Metal, sequence by sequence.
    Sdpa,
    /// Products and softmax of candle, in f32, so many rows at a time that memory stays bounded. Holds this many bytes
    /// of scores and their copies at once.
    Tiled(u64),
}

impl Kernel {
    /// The best one for arithmetic in `dtype` on `device`.
    pub(super) fn choose(device: &Device, dtype: DType, heads: Heads) -> Self {
        #[cfg(feature = "flash-attn")]
        if device.is_cuda() && dtype != DType::F32 && heads.dim.is_multiple_of(8) && heads.dim <= 256 {
            return Self::Flash;
        }
        // candle's list for Metal; the wider ones need more threadgroup memory than f32 leaves.
        let widths = [32, 64, 72, 80, 96, 128];
        if device.is_metal() && (widths.contains(&heads.dim) || (heads.dim == 256 && dtype != DType::F32)) {
            return Self::Sdpa;
        }
        Self::Tiled(ATTENTION_TILE)
    }

    /// What it is called in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "flash-attn")]
            Self::Flash => "flash-attn",
            Self::Sdpa => "sdpa",
            Self::Tiled(_) => "tiled",
        }
    }

    /// Attention of `queries` (`query heads × Σ rows × dim`, f32, not scaled) over `keys` and `values` (`kv heads ×
    /// Σ tokens × dim`, in the model's type), all sequences one behind the other. Gives `Σ rows × (query heads · dim)`
    /// in the model's type.
    pub(super) fn attend(
        self,
        heads: Heads,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        sequences: &[Sequence],
    ) -> Result<Tensor> {
        let dtype = keys.dtype();
        match self {
            #[cfg(feature = "flash-attn")]
            Self::Flash => flash(heads, &queries.to_dtype(dtype)?, keys, values, sequences),
            Self::Sdpa => each(queries, keys, values, sequences, |q, k, v, _| sdpa(heads, &q.to_dtype(dtype)?, k, v)),
            Self::Tiled(bytes) => {
                each(queries, keys, values, sequences, |q, k, v, s| tiled(heads, q, k, v, s, bytes))?.to_dtype(dtype)
            }
        }
    }
}

/// Calls `one` for the queries, keys and values of every sequence and puts the rows one below the other.
fn each(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    sequences: &[Sequence],
    one: impl Fn(&Tensor, &Tensor, &Tensor, Sequence) -> Result<Tensor>,
) -> Result<Tensor> {
    let (mut row, mut token, mut found) = (0, 0, Vec::with_capacity(sequences.len()));
    for sequence in sequences {
        let q = queries.narrow(1, row, sequence.rows)?;
        let (k, v) = (keys.narrow(1, token, sequence.tokens)?, values.narrow(1, token, sequence.tokens)?);
        found.push(one(&q, &k, &v, *sequence)?);
        row += sequence.rows;
        token += sequence.tokens;
    }
    match found.as_slice() {
        [only] => Ok(only.clone()),
        _ => Tensor::cat(&found, 0),
    }
}

#[cfg(feature = "flash-attn")]
fn flash(heads: Heads, queries: &Tensor, keys: &Tensor, values: &Tensor, sequences: &[Sequence]) -> Result<Tensor> {
    let ends = |length: fn(&Sequence) -> usize| {
        let mut ends = vec![0u32];
        ends.extend(sequences.iter().scan(0, |end, s| {
            *end += length(s) as u32;
            Some(*end)
        }));
        let longest = sequences.iter().map(length).max().unwrap_or(0);
        Tensor::new(ends, queries.device()).map(|ends| (ends, longest))
    };
    let (rows, most_rows) = ends(|s| s.rows)?;
    let (tokens, most_tokens) = ends(|s| s.tokens)?;
    // Views are enough: the kernel takes any stride between tokens and heads.
    let (q, k, v) = (queries.transpose(0, 1)?, keys.transpose(0, 1)?, values.transpose(0, 1)?);
    let attended =
        candle_flash_attn::flash_attn_varlen(&q, &k, &v, &rows, &tokens, most_rows, most_tokens, heads.scale(), true)?;
    attended.reshape((q.dim(0)?, heads.query * heads.dim))
}

/// Candle's kernel for Metal. It exists everywhere but computes only there.
fn sdpa(heads: Heads, queries: &Tensor, keys: &Tensor, values: &Tensor) -> Result<Tensor> {
    let rows = queries.dim(1)?;
    let queries = queries.contiguous()?.unsqueeze(0)?;
    let (keys, values) = (keys.unsqueeze(0)?, values.unsqueeze(0)?);
    // One query sees everything, and the kernel for one query knows no mask.
    let attended = candle_nn::ops::sdpa(&queries, &keys, &values, None, rows > 1, heads.scale(), 1.0)?;
    rows_of_heads(&attended.squeeze(0)?)
}

/// Queries by tiles of rows against all keys they may see, in f32.
fn tiled(
    heads: Heads,
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    sequence: Sequence,
    bytes: u64,
) -> Result<Tensor> {
    let Heads { query, kv, dim } = heads;
    let group = query / kv;
    let queries = (queries * f64::from(heads.scale()))?;
    let (keys, values) = (keys.to_dtype(DType::F32)?, values.to_dtype(DType::F32)?);
    let before = sequence.tokens - sequence.rows;
    // Scores, scores with the mask, and weights are alive together.
    let per_row = (3 * 4 * query * sequence.tokens) as u64;
    let step = ((bytes / per_row.max(1)) as usize).clamp(1, sequence.rows.max(1));
    let mut found = Vec::new();
    for row in (0..sequence.rows).step_by(step) {
        let count = step.min(sequence.rows - row);
        let visible = before + row + count;
        // Heads that share keys are neighbours: they become rows of one product.
        let q = queries.narrow(1, row, count)?.contiguous()?.reshape((kv, group * count, dim))?;
        let mut scores = q.matmul(&keys.narrow(1, 0, visible)?.t()?)?;
        if count > 1 {
            scores = masked(&scores.reshape((query, count, visible))?)?;
        }
        let weights = softmax_last_dim(&scores.reshape((kv, group * count, visible))?)?;
        let attended = weights.matmul(&values.narrow(1, 0, visible)?.contiguous()?)?;
        found.push(rows_of_heads(&attended.reshape((query, count, dim))?)?);
    }
    Tensor::cat(&found, 0)
}

/// Scores of the last `count` tokens (`heads × count × visible`) with minus infinity for what comes after each: that is
/// among the last `count` columns, so that the mask is small however long the text is.
fn masked(scores: &Tensor) -> Result<Tensor> {
    let (_, count, visible) = scores.dims3()?;
    let row = |r: usize| (0..count).map(move |t| if t > r { f32::NEG_INFINITY } else { 0.0 });
    let mask = Tensor::from_vec((0..count).flat_map(row).collect(), (count, count), scores.device())?;
    let last = scores.narrow(2, visible - count, count)?.broadcast_add(&mask)?;
    if count == visible { Ok(last) } else { Tensor::cat(&[&scores.narrow(2, 0, visible - count)?, &last], 2) }
}

/// `heads × rows × dim` to `rows × (heads · dim)`.
fn rows_of_heads(x: &Tensor) -> Result<Tensor> {
    let (heads, rows, dim) = x.dims3()?;
    x.transpose(0, 1)?.reshape((rows, heads * dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: Heads = Heads { query: 4, kv: 2, dim: 8 };

    /// Numbers between -1 and 1 that look random.
    fn numbers(shape: (usize, usize, usize), seed: u64) -> Tensor {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        let count = shape.0 * shape.1 * shape.2;
        Tensor::from_vec((0..count).map(|_| next()).collect::<Vec<f32>>(), shape, &Device::Cpu).unwrap()
    }

    /// Attention of one sequence, number by number in f64.
    #[expect(clippy::needless_range_loop, reason = "the indices of the formula")]
    fn plain(queries: &Tensor, keys: &Tensor, values: &Tensor) -> Vec<f32> {
        let all = |t: &Tensor| t.to_vec3::<f32>().unwrap();
        let (queries, keys, values) = (all(queries), all(keys), all(values));
        let (rows, tokens) = (queries[0].len(), keys[0].len());
        let mut out = Vec::new();
        for row in 0..rows {
            for head in 0..HEADS.query {
                let of = head / (HEADS.query / HEADS.kv);
                let sees = tokens - rows + row + 1;
                let dot = |a: &[f32], b: &[f32]| -> f64 { a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum() };
                let scores: Vec<f64> = (0..sees)
                    .map(|t| (dot(&queries[head][row], &keys[of][t]) * f64::from(HEADS.scale())).exp())
                    .collect();
                let total: f64 = scores.iter().sum();
                for d in 0..HEADS.dim {
                    let sum: f64 = (0..sees).map(|t| scores[t] * f64::from(values[of][t][d])).sum();
                    out.push((sum / total) as f32);
                }
            }
        }
        out
    }

    fn worst(found: &Tensor, expected: &[f32]) -> f32 {
        let found: Vec<f32> = found.flatten_all().unwrap().to_vec1().unwrap();
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn tiles_of_any_size_give_plain_attention() {
        let sequence = Sequence { rows: 11, tokens: 29 };
        let (q, k, v) = (numbers((4, 11, 8), 1), numbers((2, 29, 8), 2), numbers((2, 29, 8), 3));
        let expected = plain(&q, &k, &v);
        // One row at a time, three, and everything at once.
        for bytes in [0, 3 * 3 * 4 * 4 * 29, 1 << 20] {
            let found = Kernel::Tiled(bytes).attend(HEADS, &q, &k, &v, &[sequence]).unwrap();
            assert_eq!(found.dims(), [11, 32]);
            assert!(worst(&found, &expected) < 1e-6, "{bytes}: {}", worst(&found, &expected));
        }
    }

    #[test]
    fn packed_sequences_do_not_see_each_other() {
        let sequences =
            [Sequence { rows: 3, tokens: 5 }, Sequence { rows: 1, tokens: 9 }, Sequence { rows: 4, tokens: 4 }];
        let (q, k, v) = (numbers((4, 8, 8), 4), numbers((2, 18, 8), 5), numbers((2, 18, 8), 6));
        let mut expected = Vec::new();
        let (mut row, mut token) = (0, 0);
        for Sequence { rows, tokens } in sequences {
            let keys = |t: &Tensor| t.narrow(1, token, tokens).unwrap();
            expected.extend(plain(&q.narrow(1, row, rows).unwrap(), &keys(&k), &keys(&v)));
            (row, token) = (row + rows, token + tokens);
        }
        let found = Kernel::Tiled(1 << 20).attend(HEADS, &q, &k, &v, &sequences).unwrap();
        assert!(worst(&found, &expected) < 1e-6);
    }

    #[test]
    fn half_precision_keys_are_scored_in_f32() {
        let sequence = Sequence { rows: 40, tokens: 40 };
        let (q, k, v) = (numbers((4, 40, 8), 7), numbers((2, 40, 8), 8), numbers((2, 40, 8), 9));
        let round = |t: &Tensor| t.to_dtype(DType::BF16).unwrap();
        let (k, v) = (round(&k), round(&v));
        let found = Kernel::Tiled(1 << 12).attend(HEADS, &q, &k, &v, &[sequence]).unwrap();
        assert_eq!(found.dtype(), DType::BF16);
        let wide = |t: &Tensor| t.to_dtype(DType::F32).unwrap();
        let expected = plain(&q, &wide(&k), &wide(&v));
        // Nothing but the result is rounded: half a unit in the last place of bf16.
        for (a, b) in wide(&found).flatten_all().unwrap().to_vec1::<f32>().unwrap().iter().zip(&expected) {
            assert!((a - b).abs() <= b.abs() / 256.0 + 1e-6, "{a} {b}");
        }
    }

    #[test]
    fn the_fused_kernels_are_for_their_devices() {
        let kernel = Kernel::choose(&Device::Cpu, DType::BF16, HEADS);
        assert_eq!((kernel, kernel.name()), (Kernel::Tiled(ATTENTION_TILE), "tiled"));
        let (q, k) = (numbers((4, 2, 8), 1), numbers((2, 2, 8), 2));
        let refused = Kernel::Sdpa.attend(HEADS, &q, &k, &k, &[Sequence { rows: 2, tokens: 2 }]);
        assert!(refused.is_err(), "candle has no sdpa for the CPU");
    }
}
