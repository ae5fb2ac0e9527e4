//! How much memory a model needs, and what would fit into the memory that is there: arithmetic only.
//!
//! ```text
//! need = weights (by their type) + keys and values (tokens × layers × 2 × kv_heads × head_dim) + one chunk's buffers
//! ```
//! Gigabytes are 10⁹ bytes, as files and cards are sold by.

use super::config::ModelConfig;

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// 32-bit floats.
    F32,
    /// 16-bit floats, either kind.
    Half,
    /// GGUF: blocks of 32 with one scale, 8.5 bits a weight.
    Q8_0,
    /// GGUF: 6.5625 bits a weight.
    Q6K,
    /// GGUF: a mixture of 4.5 and 6.5625 bits a weight, as llama.cpp's `Q4_K_M` mixes them.
    Q4KM,
}

impl Storage {
    /// From the most exact to the smallest.
    pub const ALL: [Self; 5] = [Self::F32, Self::Half, Self::Q8_0, Self::Q6K, Self::Q4KM];

    /// How a user gets it.
    pub fn words(self) -> &'static str {
        match self {
            Self::F32 => "`--dtype f32`",
            Self::Half => "`--dtype bf16`",
            Self::Q8_0 => "`--dtype q8_0`",
            Self::Q6K => "a Q6_K GGUF",
            Self::Q4KM => "a Q4_K_M GGUF",
        }
    }

    /// The storage of weights whose type has this name in [`super::Model::dtype`]; for types that are not in this list
    /// the next larger one.
    pub fn of_dtype(name: &str) -> Self {
        match name {
            "bf16" | "f16" => Self::Half,
            "q8_0" | "int8" => Self::Q8_0,
            "q6_k" | "q5_k" | "q5_0" | "q5_1" => Self::Q6K,
            "q4_k" | "q4_0" | "q4_1" | "q3_k" | "q2_k" => Self::Q4KM,
            _ => Self::F32,
        }
    }
}

/// The sizes of a model that memory depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the embedding.
    pub vocab: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Width of the feed-forward layer.
    pub intermediate: u64,
    /// Number of layers.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Width of one head.
    pub head_dim: u64,
    /// Rows of a head that is a matrix of its own: labels, or the vocabulary of an untied language model.
    pub outputs: u64,
}

impl Shape {
    /// Qwen2.5-0.5B as a critic.
    pub const QWEN2_HALF: Self = Self {
        vocab: 151_936,
        hidden: 896,
        intermediate: 4864,
        layers: 24,
        heads: 14,
        kv_heads: 2,
        head_dim: 64,
        outputs: 1,
    };
    /// Qwen3-4B as a critic.
    pub const QWEN3_4: Self = Self {
        vocab: 151_936,
        hidden: 2560,
        intermediate: 9728,
        layers: 36,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        outputs: 1,
    };
    /// Qwen2.5-32B as a critic.
    pub const QWEN2_32: Self = Self {
        vocab: 152_064,
        hidden: 5120,
        intermediate: 27_648,
        layers: 64,
        heads: 40,
        kv_heads: 8,
        head_dim: 128,
        outputs: 1,
    };

    /// Of a model whose head has this many rows of its own.
    pub fn of(config: &ModelConfig, outputs: usize) -> Self {
        Self {
            vocab: config.vocab_size as u64,
            hidden: config.hidden as u64,
            intermediate: config.intermediate as u64,
            layers: config.layers as u64,
            heads: config.heads as u64,
            kv_heads: config.kv_heads as u64,
            head_dim: config.head_dim as u64,
            outputs: outputs as u64,
        }
    }

    /// The matrices of one layer: rows, columns, and whether Q4_K_M may give it more bits.
    fn matrices(&self) -> [(u64, u64, bool); 7] {
        let (query, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        [
            (query, self.hidden, false),
            (kv, self.hidden, false),
            (kv, self.hidden, true),
            (self.hidden, query, false),
            (self.intermediate, self.hidden, false),
            (self.intermediate, self.hidden, false),
            (self.hidden, self.intermediate, true),
        ]
    }

    /// Number of weights in matrices; those of norms and biases do not count beside them.
    pub fn parameters(&self) -> u64 {
        let layer: u64 = self.matrices().iter().map(|(rows, cols, _)| rows * cols).sum();
        layer * self.layers + (self.vocab + self.outputs) * self.hidden
    }

    /// Multiplications and additions of one token's matrix products (attention's own not counted).
    pub fn flops_per_token(&self) -> u64 {
        2 * (self.parameters() - (self.vocab + self.outputs) * self.hidden)
    }

    /// Additions and multiplications of attention for a text of `tokens`, causal: half of all pairs.
    pub fn attention_flops(&self, tokens: u64) -> u64 {
        2 * self.layers * self.heads * self.head_dim * tokens * (tokens + 1)
    }

    /// Bytes of all weights.
    pub fn weight_bytes(&self, storage: Storage) -> u64 {
        let matrices = self.matrices();
        let layers: u64 = (0..self.layers)
            .map(|layer| {
                let rich = more_bits(layer, self.layers);
                matrices.iter().map(|(rows, cols, may)| bytes(*rows, *cols, storage, rich && *may)).sum::<u64>()
            })
            .sum();
        // Heads are kept in f32.
        layers + bytes(self.vocab, self.hidden, storage, false) + 4 * self.outputs * self.hidden
    }

    /// Bytes of the keys and values of one token, of `number` bytes each.
    pub fn cache_bytes_per_token(&self, number: u64) -> u64 {
        2 * self.layers * self.kv_heads * self.head_dim * number
    }

    /// About the largest sum of buffers that are alive at once while a chunk runs on a device: the residual and its
    /// norm in f32, the widest products in the type of the arithmetic, and a tile of attention.
    pub fn chunk_bytes(&self, tokens: u64, number: u64) -> u64 {
        let qkv = (self.heads + 2 * self.kv_heads) * self.head_dim;
        let row = self.hidden * 4 * 3 + (2 * qkv + 4 * self.intermediate) * number + 4 * self.intermediate;
        tokens * row + ATTENTION_TILE
    }
}

/// Most bytes of attention scores that are alive at once, in f32.
pub const ATTENTION_TILE: u64 = 256 << 20;

/// Layers whose value and down projections Q4_K_M stores in Q6_K: the first and last eighth and every third between.
fn more_bits(layer: u64, layers: u64) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

/// Bytes of one matrix. Rows that are no whole number of K-quants' 256 are stored in the next larger type of 32.
fn bytes(rows: u64, cols: u64, storage: Storage, rich: bool) -> u64 {
    let whole = cols.is_multiple_of(256);
    let per_256 = match storage {
        Storage::F32 => 1024,
        Storage::Half => 512,
        Storage::Q6K if whole => 210,
        Storage::Q4KM if rich && whole => 210,
        Storage::Q4KM if !rich => {
            if whole {
                144
            } else {
                176
            }
        }
        Storage::Q8_0 | Storage::Q6K | Storage::Q4KM => 272,
    };
    rows * cols * per_256 / 256
}

/// A model, how it is stored, and how long its texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// The model.
    pub shape: Shape,
    /// Its weights.
    pub storage: Storage,
    /// Bytes of one number in the cache of keys and values.
    pub cache_number: u64,
    /// Tokens of the longest text.
    pub tokens: u64,
    /// Tokens of one chunk.
    pub chunk: u64,
}

impl Wish {
    /// Bytes in all.
    pub fn bytes(&self) -> u64 {
        self.base() + self.cache()
    }

    fn weights(&self) -> u64 {
        self.shape.weight_bytes(self.storage)
    }

    fn cache(&self) -> u64 {
        self.shape.cache_bytes_per_token(self.cache_number) * self.tokens
    }

    /// What is needed before the first token is kept.
    fn base(&self) -> u64 {
        self.weights() + self.shape.chunk_bytes(self.chunk, self.cache_number)
    }

    /// The longest text that fits into `free` bytes, in whole thousands (1,024); 0 = none.
    fn longest(&self, free: u64) -> u64 {
        let room = free.saturating_sub(self.base());
        let tokens = room / self.shape.cache_bytes_per_token(self.cache_number).max(1);
        (tokens / 1024 * 1024).min(self.tokens)
    }

    /// One line on why it does not fit into `free` bytes and what would; `None` if it fits. Where nobody knows what is
    /// free, the line says what is needed.
    pub fn advice(&self, free: Option<u64>) -> Option<String> {
        let needs = format!(
            "needs {} of weights + {} for {} tokens + about {} to work in",
            gigabytes(self.weights()),
            gigabytes(self.cache()),
            thousands(self.tokens),
            gigabytes(self.base() - self.weights()),
        );
        let Some(free) = free else { return Some(format!("{needs}; how much is free is not known here")) };
        if self.bytes() <= free {
            return None;
        }
        Some(format!("{needs}; {} are free: {}", gigabytes(free), self.ways_out(free)))
    }

    /// What would fit: fewer tokens, then smaller weights.
    fn ways_out(&self, free: u64) -> String {
        let mut ways = Vec::new();
        let fewer = self.longest(free);
        if fewer > 0 {
            ways.push(format!("`--max-tokens {fewer}` would fit"));
        }
        let own = self.weights();
        let smaller = Storage::ALL.into_iter().map(|storage| Self { storage, ..*self }).filter(|w| w.weights() < own);
        let mut too_big = Vec::new();
        for wish in smaller {
            let name = format!("{} ({})", wish.storage.words(), gigabytes(wish.weights()));
            match wish.longest(free) {
                0 => too_big.push(name),
                n if n == wish.tokens => {
                    ways.push(format!("{name} would fit"));
                    break;
                }
                n => ways.push(format!("{name} would with `--max-tokens {n}`")),
            }
        }
        if ways.is_empty() {
            let but =
                if too_big.is_empty() { String::new() } else { format!("{} would not either; ", too_big.join(", ")) };
            return format!("{but}use `--device cpu` or a smaller model");
        }
        ways.join("; ")
    }
}

/// `"65.5 GB"`; below a tenth of a gigabyte in megabytes.
pub fn gigabytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes < 1e8 { format!("{:.1} MB", bytes / 1e6) } else { format!("{:.1} GB", bytes / 1e9) }
}

/// `32,768`.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
