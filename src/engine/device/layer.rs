//! One transformer layer on a device.

use candle_core::{DType, Result, Tensor};
use candle_nn::ops::{rms_norm, silu};

use super::upload::{Upload, Weight};
use crate::engine::config::ModelConfig;
use crate::engine::error::EngineError;

/// Weights and cache of one layer.
#[derive(Debug)]
pub(super) struct Layer {
    input_norm: Tensor,
    /// Queries, keys and values in one matrix, one row an output.
    qkv: Weight,
    qkv_bias: Option<Tensor>,
    /// Norms of query and key heads.
    pub(super) head_norms: Option<(Tensor, Tensor)>,
    output: Weight,
    output_bias: Option<Tensor>,
    mlp_norm: Tensor,
    gate_up: Weight,
    down: Weight,
    /// `kv_heads × capacity × head_dim`, in the type of the arithmetic.
    pub(super) keys: Option<Tensor>,
    /// As `keys`.
    pub(super) values: Option<Tensor>,
}

impl Layer {
    /// Reads the tensors of layer `number`.
    pub(super) fn load(
        config: &ModelConfig,
        from: &mut Upload<'_>,
        number: usize,
    ) -> std::result::Result<Self, EngineError> {
        let (hidden, inner) = (config.hidden, config.intermediate);
        let (query, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let name = |part: &str| format!("model.layers.{number}.{part}");
        let heads = [("q", query), ("k", kv), ("v", kv)];
        let biases = heads.map(|(letter, rows)| (name(&format!("self_attn.{letter}_proj.bias")), rows));
        let qkv_bias = config.has_qkv_bias().then(|| from.bias(&biases)).transpose()?;
        let head_norms = if config.has_head_norms() {
            let query = from.norm(&name("self_attn.q_norm.weight"), config.head_dim)?;
            Some((query, from.norm(&name("self_attn.k_norm.weight"), config.head_dim)?))
        } else {
            None
        };
        let output_bias = [(name("self_attn.o_proj.bias"), hidden)];
        let output_bias = config.has_output_bias().then(|| from.bias(&output_bias)).transpose()?;
        let qkv = heads.map(|(letter, rows)| (name(&format!("self_attn.{letter}_proj.weight")), rows));
        let gate_up = ["gate", "up"].map(|part| (name(&format!("mlp.{part}_proj.weight")), inner));
        Ok(Self {
            input_norm: from.norm(&name("input_layernorm.weight"), hidden)?,
            qkv: from.stacked(&qkv, hidden)?,
            qkv_bias,
            head_norms,
            output: from.matrix(&name("self_attn.o_proj.weight"), hidden, query)?,
            output_bias,
            mlp_norm: from.norm(&name("post_attention_layernorm.weight"), hidden)?,
            gate_up: from.stacked(&gate_up, hidden)?,
            down: from.matrix(&name("mlp.down_proj.weight"), hidden, inner)?,
            keys: None,
            values: None,
        })
    }

    /// Type of most of its weights at rest: in files that mix types, the down projection often has a larger one.
    pub(super) fn dtype(&self) -> &'static str {
        self.gate_up.name()
    }

    /// Queries, keys and values of the residual's rows, in this order, f32.
    pub(super) fn project(&self, residual: &Tensor, eps: f32, dtype: DType) -> Result<Tensor> {
        let normed = rms_norm(residual, &self.input_norm, eps)?.to_dtype(dtype)?;
        add(self.qkv.apply(&normed)?.to_dtype(DType::F32)?, self.qkv_bias.as_ref())
    }

    /// The residual after attention's output projection and the feed-forward layer, f32.
    pub(super) fn finish(&self, residual: &Tensor, attended: &Tensor, eps: f32) -> Result<Tensor> {
        let dtype = attended.dtype();
        let projected = self.output.apply(attended)?.to_dtype(DType::F32)?;
        let x = (residual + add(projected, self.output_bias.as_ref())?)?;
        let normed = rms_norm(&x, &self.mlp_norm, eps)?.to_dtype(dtype)?;
        let both = self.gate_up.apply(&normed)?;
        let inner = self.gate_up.rows() / 2;
        // In f32 and rounded once, as PyTorch has it.
        let gate = silu(&both.narrow(1, 0, inner)?.to_dtype(DType::F32)?)?.to_dtype(dtype)?;
        let product = (gate * both.narrow(1, inner, inner)?)?;
        x + self.down.apply(&product)?.to_dtype(DType::F32)?
    }
}

fn add(x: Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    match bias {
        Some(bias) => x.broadcast_add(bias),
        None => Ok(x),
    }
}
