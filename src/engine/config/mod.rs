//! config.json of a Hugging Face model folder, both generations of transformers.
//!
//! Read by hand instead of through candle's structs, which refuse `sliding_window: null` and the newer
//! `rope_parameters`, and which cannot say in words what is not supported.

mod read;
mod rope;

use std::path::Path;

use serde_json::Value;

use super::error::EngineError;
use read::Reader;
pub use rope::{RopeScaling, Yarn};

/// Model families the forward pass knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// Qwen2 and Qwen2.5: biases on q, k and v.
    Qwen2,
    /// Qwen3: no biases, RMS norm of every query and key head.
    Qwen3,
}

impl Arch {
    /// Name as in `model_type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
        }
    }
}

/// What the class in `architectures` makes of the last hidden state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The outputs of `score` at every token.
    TokenValues,
    /// The outputs of `score` at the last token (attention is causal: at any other token they are those of the text
    /// that ends there).
    SequenceValues,
    /// The probabilities of the next token.
    Language,
}

/// What the forward pass must know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Family.
    pub arch: Arch,
    /// The class named in `architectures` (`"Qwen2ForTokenClassification"`).
    pub class: String,
    /// What the class is for.
    pub task: Task,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Number of layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Have the projections of attention biases: q, k and v in Qwen2, the output's too in Qwen3?
    pub attention_bias: bool,
    /// Is the embedding also the matrix of the language model's head?
    pub tied: bool,
    /// Epsilon of every RMS norm.
    pub rms_eps: f32,
    /// Base of the rotary embedding.
    pub rope_theta: f64,
    /// How the rotary embedding is stretched.
    pub rope_scaling: RopeScaling,
    /// Positions the model was made for.
    pub max_positions: usize,
    /// Some layers look at this many tokens only: longer texts are refused, shorter ones are full attention.
    pub window: Option<usize>,
    /// Outputs of the head by `id2label` or `num_labels`; `None` = the config does not say, the tensor decides.
    pub num_labels: Option<usize>,
    /// Names of the outputs, in order (empty if the config has no `id2label`).
    pub labels: Vec<String>,
}

/// Largest number any size in a config may have: keeps arithmetic on hostile files from overflowing.
const MAX_SIZE: usize = 1 << 24;

impl ModelConfig {
    /// Reads the text of a config.json; `file` is only for messages.
    pub fn parse(text: &[u8], file: &Path) -> Result<Self, EngineError> {
        let value: Value = serde_json::from_slice(text).map_err(|e| EngineError::File {
            file: file.to_path_buf(),
            what: format!("not JSON ({e})"),
            help: "expected the config.json of a Hugging Face model folder".into(),
        })?;
        let Value::Object(map) = value else {
            return Err(EngineError::File {
                file: file.to_path_buf(),
                what: "expected a JSON object at the top".into(),
                help: "give the config.json of a Hugging Face model folder".into(),
            });
        };
        let reader = Reader { map: &map, file };
        let config = reader.model()?;
        reader.check(&config)?;
        Ok(config)
    }

    /// Width of the fused query, key and value projection.
    pub fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// Have the query, key and value projections biases?
    pub fn has_qkv_bias(&self) -> bool {
        self.attention_bias
    }

    /// Has attention's output projection a bias?
    pub fn has_output_bias(&self) -> bool {
        self.attention_bias && self.arch == Arch::Qwen3
    }

    /// Is every query and key head normalised?
    pub fn has_head_norms(&self) -> bool {
        self.arch == Arch::Qwen3
    }

    /// Most tokens of one text.
    pub fn longest_text(&self) -> usize {
        self.window.map_or(self.max_positions, |window| window.min(self.max_positions))
    }

    /// Angle per position of every pair of a head, and the number all cosines and sines are multiplied by.
    pub fn rotations(&self) -> (Vec<f32>, f32) {
        self.rope_scaling.rotations(self.head_dim, self.rope_theta)
    }
}

#[cfg(test)]
mod tests;
