//! Where to run, and the forward pass in candle's operations: for graphics processors.
//!
//! It computes what `cpu` computes, chunk by chunk with a reserved cache, in whatever type the weights have; norms,
//! rotations and softmax are f32. On the CPU it is only run by tests, which hold it to the same references.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};

use super::config::ModelConfig;
use super::error::EngineError;
use super::matrix::Matrix;
use super::model::PassError;
use super::weights::Weights;
use super::{DeviceChoice, DtypeChoice};

/// Room is made for this many tokens more than asked.
const SPARE: usize = 512;

/// Where a model runs.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// This project's own forward pass.
    Cpu,
    /// Candle's operations on this device.
    Candle(Device, String),
}

/// Finds the wanted device. With a note if the automatic choice had to fall back.
pub(super) fn find(choice: DeviceChoice) -> std::result::Result<(Place, Option<String>), EngineError> {
    match choice {
        DeviceChoice::Cpu => Ok((Place::Cpu, None)),
        DeviceChoice::Cuda(number) => {
            let name = choice.to_string();
            if !cfg!(feature = "cuda") {
                return Err(not_built(&name, "CUDA", "cuda"));
            }
            let device = Device::new_cuda(number).map_err(|e| not_there(&name, &e))?;
            Ok((Place::Candle(device, name), None))
        }
        DeviceChoice::Metal => {
            if !cfg!(feature = "metal") {
                return Err(not_built("metal", "Metal", "metal"));
            }
            let device = Device::new_metal(0).map_err(|e| not_there("metal", &e))?;
            Ok((Place::Candle(device, "metal:0".into()), None))
        }
        DeviceChoice::Auto => {
            let wanted = if cfg!(feature = "cuda") {
                DeviceChoice::Cuda(0)
            } else if cfg!(feature = "metal") {
                DeviceChoice::Metal
            } else {
                return Ok((Place::Cpu, None));
            };
            match find(wanted) {
                Ok(found) => Ok(found),
                Err(EngineError::Device(why)) => Ok((Place::Cpu, Some(format!("on the CPU, because {why}")))),
                Err(other) => Err(other),
            }
        }
    }
}

fn not_built(name: &str, kind: &str, feature: &str) -> EngineError {
    EngineError::Device(format!(
        "{name}: this trajscope was built without {kind}; build with `--features {feature}`, or use `--device cpu`"
    ))
}

fn not_there(name: &str, error: &candle_core::Error) -> EngineError {
    EngineError::Device(format!("{name}: not available ({}); use `--device cpu`", one_line(error)))
}

fn one_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or("unknown error").trim().to_string()
}

#[derive(Debug)]
struct Layer {
    input_norm: Tensor,
    /// Queries, keys and values in one matrix, one row an output.
    qkv: Tensor,
    qkv_bias: Option<Tensor>,
    head_norms: Option<(Tensor, Tensor)>,
    output: Tensor,
    output_bias: Option<Tensor>,
    mlp_norm: Tensor,
    gate_up: Tensor,
    down: Tensor,
    /// `kv_heads × capacity × head_dim`.
    keys: Option<Tensor>,
    values: Option<Tensor>,
}

/// A loaded model with its cache, on one device.
#[derive(Debug)]
pub(super) struct DeviceModel {
    config: ModelConfig,
    device: Device,
    name: String,
    dtype: DType,
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    frequencies: Vec<f32>,
    /// What every cosine and sine is multiplied by.
    rope_factor: f32,
    capacity: usize,
    len: usize,
}

/// A weight matrix with its optional bias on the device: one layer of a head.
#[derive(Debug)]
pub(super) struct DeviceLinear {
    weight: Tensor,
    bias: Option<Tensor>,
}

/// Reads tensors and puts them on the device.
struct Upload<'a> {
    weights: &'a mut Weights,
    device: &'a Device,
    /// `None` = the type of the file.
    dtype: Option<DType>,
}

impl Upload<'_> {
    fn tensor(&self, matrix: Matrix) -> std::result::Result<Tensor, EngineError> {
        let own = match matrix.dtype() {
            "f16" => DType::F16,
            "f32" => DType::F32,
            // bf16; blocks have no arithmetic of their own here.
            _ => DType::BF16,
        };
        let shape = (matrix.rows(), matrix.cols());
        let dtype = self.dtype.unwrap_or(own);
        let made = Tensor::from_vec(matrix.into_f32(), shape, &Device::Cpu);
        made.and_then(|t| t.to_dtype(dtype)?.to_device(self.device)).map_err(|e| out_of_room(&e))
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> std::result::Result<Tensor, EngineError> {
        let matrix = self.weights.matrix(name, rows, cols)?;
        self.tensor(matrix)
    }

    fn vector(&mut self, name: &str, len: usize, dtype: DType) -> std::result::Result<Tensor, EngineError> {
        let made = Tensor::from_vec(self.weights.vector(name, len)?, len, &Device::Cpu);
        made.and_then(|t| t.to_dtype(dtype)?.to_device(self.device)).map_err(|e| out_of_room(&e))
    }
}

fn out_of_room(error: &candle_core::Error) -> EngineError {
    EngineError::Device(format!("the weights cannot be put there ({}); use `--device cpu`", one_line(error)))
}

impl DeviceModel {
    /// Reads all tensors of a checkpoint but its head's onto `device`.
    pub(super) fn load(
        config: &ModelConfig,
        weights: &mut Weights,
        (device, name): (Device, String),
        dtype: DtypeChoice,
    ) -> std::result::Result<Self, EngineError> {
        // Candle multiplies bf16 on the CPU only by widening everything on every call.
        let dtype = match dtype {
            _ if device.is_cpu() => Some(DType::F32),
            DtypeChoice::Auto => None,
            DtypeChoice::F32 => Some(DType::F32),
            DtypeChoice::Bf16 => Some(DType::BF16),
            DtypeChoice::F16 => Some(DType::F16),
            DtypeChoice::Q8_0 | DtypeChoice::Int8 => {
                return Err(EngineError::Device(format!("{name}: {dtype} runs on the CPU only; use --dtype bf16")));
            }
        };
        let mut upload = Upload { weights, device: &device, dtype };
        let embedding = upload.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden)?;
        let dtype = embedding.dtype();
        upload.dtype = Some(dtype);
        let layers: std::result::Result<_, _> =
            (0..config.layers).map(|i| Layer::load(config, &mut upload, i)).collect();
        let norm = upload.vector("model.norm.weight", config.hidden, dtype)?;
        let (frequencies, rope_factor) = config.rotations();
        Ok(Self {
            config: config.clone(),
            name,
            dtype,
            embedding,
            layers: layers?,
            norm,
            frequencies,
            rope_factor,
            capacity: 0,
            len: 0,
            device,
        })
    }

    /// Name of the device.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Type of weights and arithmetic.
    pub(super) fn dtype(&self) -> &'static str {
        match self.dtype {
            DType::BF16 => "bf16",
            DType::F16 => "f16",
            _ => "f32",
        }
    }

    /// Forgets the tokens from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes room for `tokens` in all, keeping what is there.
    pub(super) fn reserve(&mut self, tokens: usize) -> std::result::Result<(), PassError> {
        if tokens <= self.capacity {
            return Ok(());
        }
        self.grow(tokens + SPARE).map_err(|e| self.failed(&e))
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
        self.capacity = capacity;
        Ok(())
    }

    /// As `CpuModel::append`.
    pub(super) fn append(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> std::result::Result<Vec<f32>, PassError> {
        self.reserve(self.len + ids.len())?;
        match self.forward(ids, reads, stop) {
            Ok(Some(outputs)) => {
                self.len += ids.len();
                Ok(outputs)
            }
            Ok(None) => Err(PassError::Stopped),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &candle_core::Error) -> PassError {
        PassError::Failed(format!("{}: {}; try `--device cpu`", self.name, one_line(error)))
    }

    /// `None` = stopped.
    fn forward(&self, ids: &[u32], reads: &[usize], stop: &(dyn Fn() -> bool + Sync)) -> Result<Option<Vec<f32>>> {
        let start = self.len;
        let all: Vec<usize> = (start..start + ids.len()).collect();
        let read: Vec<usize> = reads.iter().map(|r| start + r).collect();
        let rows = Tensor::from_vec(reads.iter().map(|r| *r as u32).collect(), reads.len(), &self.device)?;
        let mut x = self.embedding.index_select(&Tensor::new(ids, &self.device)?, 0)?;
        let turns = self.turns(&all)?;
        let queries_end = self.config.heads * self.config.head_dim;
        for (number, layer) in self.layers.iter().enumerate() {
            if stop() {
                return Ok(None);
            }
            let mut normed = rms_norm(&x, &layer.input_norm, self.config.rms_eps)?;
            let kv = layer.project(&normed, queries_end, self.config.qkv_width() - queries_end)?;
            self.store(layer, &kv, start, &turns)?;
            let last = number + 1 == self.layers.len();
            if last && reads.is_empty() {
                return Ok(Some(Vec::new()));
            }
            // After the last layer's keys and values only the rows that are read go on.
            let positions = if last { &read } else { &all };
            let query_turns = if last { self.turns(&read)? } else { turns.clone() };
            if last {
                x = x.index_select(&rows, 0)?;
                normed = normed.index_select(&rows, 0)?;
            }
            let queries = layer.project(&normed, 0, queries_end)?;
            let attended = self.attend(layer, &queries, positions, start + ids.len(), &query_turns)?;
            x = (x + attended.matmul(&layer.output.t()?)?)?;
            if let Some(bias) = &layer.output_bias {
                x = x.broadcast_add(bias)?;
            }
            let normed = rms_norm(&x, &layer.mlp_norm, self.config.rms_eps)?;
            let both = normed.matmul(&layer.gate_up.t()?)?;
            let inner = self.config.intermediate;
            let product = (silu(&both.narrow(1, 0, inner)?)? * both.narrow(1, inner, inner)?)?;
            x = (x + product.matmul(&layer.down.t()?)?)?;
        }
        let hidden = rms_norm(&x, &self.norm, self.config.rms_eps)?.to_dtype(DType::F32)?;
        Ok(Some(hidden.flatten_all()?.to_vec1()?))
    }

    /// As `CpuModel::project`.
    pub(super) fn project(&self, linear: Option<&DeviceLinear>, x: &[f32]) -> std::result::Result<Vec<f32>, PassError> {
        let (weight, bias) = linear.map_or((&self.embedding, None), |linear| (&linear.weight, linear.bias.as_ref()));
        let run = || -> Result<Vec<f32>> {
            let width = weight.dim(1)?;
            let x = Tensor::from_slice(x, (x.len() / width, width), &self.device)?.to_dtype(weight.dtype())?;
            let mut outputs = x.matmul(&weight.t()?)?.to_dtype(DType::F32)?;
            if let Some(bias) = bias {
                outputs = outputs.broadcast_add(bias)?;
            }
            outputs.flatten_all()?.to_vec1()
        };
        run().map_err(|e| self.failed(&e))
    }

    /// Puts one layer of a head on the device: in f32, or in the model's type if it is `large`.
    pub(super) fn linear(
        &self,
        weight: Matrix,
        bias: Option<Vec<f32>>,
        large: bool,
    ) -> std::result::Result<DeviceLinear, EngineError> {
        let dtype = if large { self.dtype } else { DType::F32 };
        let (rows, cols) = (weight.rows(), weight.cols());
        let put = |numbers: Vec<f32>, shape: &[usize], dtype| {
            let made = Tensor::from_vec(numbers, shape, &Device::Cpu);
            made.and_then(|t| t.to_dtype(dtype)?.to_device(&self.device)).map_err(|e| out_of_room(&e))
        };
        let weight = put(weight.into_f32(), &[rows, cols], dtype)?;
        Ok(DeviceLinear { weight, bias: bias.map(|bias| put(bias, &[rows], DType::F32)).transpose()? })
    }

    /// Cosines and sines of some positions, each `positions × head_dim / 2`, f32.
    fn turns(&self, positions: &[usize]) -> Result<(Tensor, Tensor)> {
        let shape = (positions.len(), self.frequencies.len());
        let angles = || positions.iter().flat_map(|p| self.frequencies.iter().map(|f| f64::from(*p as f32 * f)));
        let cos: Vec<f32> = angles().map(|a| a.cos() as f32 * self.rope_factor).collect();
        let sin: Vec<f32> = angles().map(|a| a.sin() as f32 * self.rope_factor).collect();
        Ok((Tensor::from_vec(cos, shape, &self.device)?, Tensor::from_vec(sin, shape, &self.device)?))
    }

    /// `rows × (heads · dim)` to `heads × rows × dim`, normalised (Qwen3) and turned by position.
    fn turn(&self, x: &Tensor, norm: Option<&Tensor>, (cos, sin): &(Tensor, Tensor)) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let dim = self.config.head_dim;
        let mut heads = x.reshape((rows, width / dim, dim))?.transpose(0, 1)?.contiguous()?;
        if let Some(weight) = norm {
            heads = rms_norm(&heads, weight, self.config.rms_eps)?;
        }
        let wide = heads.to_dtype(DType::F32)?.unsqueeze(0)?;
        candle_nn::rotary_emb::rope(&wide, cos, sin)?.squeeze(0)?.to_dtype(self.dtype)
    }

    fn store(&self, layer: &Layer, kv: &Tensor, start: usize, turns: &(Tensor, Tensor)) -> Result<()> {
        let width = self.config.kv_heads * self.config.head_dim;
        let keys = self.turn(&kv.narrow(1, 0, width)?, layer.head_norms.as_ref().map(|n| &n.1), turns)?;
        let values = kv.narrow(1, width, width)?.reshape((kv.dim(0)?, self.config.kv_heads, self.config.head_dim))?;
        let values = values.transpose(0, 1)?.contiguous()?;
        for (store, new) in [(&layer.keys, keys), (&layer.values, values)] {
            if let Some(store) = store {
                store.slice_set(&new.contiguous()?, 1, start)?;
            }
        }
        Ok(())
    }

    /// Causal attention of the queries at `positions` over the first `visible` tokens: `rows × (heads · dim)`.
    fn attend(
        &self,
        layer: &Layer,
        queries: &Tensor,
        positions: &[usize],
        visible: usize,
        turns: &(Tensor, Tensor),
    ) -> Result<Tensor> {
        let (kv, dim, rows) = (self.config.kv_heads, self.config.head_dim, positions.len());
        let group = self.config.heads / kv;
        let (Some(keys), Some(values)) = (&layer.keys, &layer.values) else {
            candle_core::bail!("no room was made in the cache");
        };
        let queries = self.turn(queries, layer.head_norms.as_ref().map(|n| &n.0), turns)?;
        // Heads that share keys are neighbours: they become rows of one product.
        let queries = queries.contiguous()?.reshape((kv, group * rows, dim))?;
        let scores = queries.matmul(&keys.narrow(1, 0, visible)?.t()?)?.to_dtype(DType::F32)?;
        let scores = (scores * (1.0 / (dim as f64).sqrt()))?.reshape((kv, group, rows, visible))?;
        let at: Vec<u32> = positions.iter().map(|p| *p as u32).collect();
        let at = Tensor::from_vec(at, (rows, 1), &self.device)?;
        let later = Tensor::arange(0, visible as u32, &self.device)?.reshape((1, visible))?.broadcast_gt(&at)?;
        let hidden = (later.to_dtype(DType::F32)? * -1e30)?;
        let weights = softmax_last_dim(&scores.broadcast_add(&hidden)?)?.to_dtype(self.dtype)?;
        let weights = weights.reshape((kv, group * rows, visible))?;
        let attended = weights.matmul(&values.narrow(1, 0, visible)?)?;
        attended.reshape((self.config.heads, rows, dim))?.transpose(0, 1)?.reshape((rows, self.config.heads * dim))
    }
}

impl Layer {
    fn load(config: &ModelConfig, from: &mut Upload<'_>, number: usize) -> std::result::Result<Self, EngineError> {
        let (hidden, inner) = (config.hidden, config.intermediate);
        let (query, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let dtype = from.dtype.unwrap_or(DType::F32);
        let name = |part: &str| format!("model.layers.{number}.{part}");
        let parts = [("q", query), ("k", kv), ("v", kv)];
        let mut fused = from.weights.matrix(&name("self_attn.q_proj.weight"), query, hidden)?;
        for (letter, rows) in &parts[1..] {
            fused =
                fused.stack(from.weights.matrix(&name(&format!("self_attn.{letter}_proj.weight")), *rows, hidden)?);
        }
        let qkv_bias = if config.has_qkv_bias() {
            let mut biases = Vec::new();
            for (letter, rows) in parts {
                biases.push(from.vector(&name(&format!("self_attn.{letter}_proj.bias")), rows, dtype)?);
            }
            Some(Tensor::cat(&biases, 0).map_err(|e| out_of_room(&e))?)
        } else {
            None
        };
        let output_bias = name("self_attn.o_proj.bias");
        let output_bias = config.has_output_bias().then(|| from.vector(&output_bias, hidden, dtype)).transpose()?;
        let head_norms = if config.has_head_norms() {
            let query = from.vector(&name("self_attn.q_norm.weight"), config.head_dim, dtype)?;
            Some((query, from.vector(&name("self_attn.k_norm.weight"), config.head_dim, dtype)?))
        } else {
            None
        };
        let gate = from.weights.matrix(&name("mlp.gate_proj.weight"), inner, hidden)?;
        let up = from.weights.matrix(&name("mlp.up_proj.weight"), inner, hidden)?;
        Ok(Self {
            input_norm: from.vector(&name("input_layernorm.weight"), hidden, dtype)?,
            qkv: from.tensor(fused)?,
            qkv_bias,
            head_norms,
            output: from.matrix(&name("self_attn.o_proj.weight"), hidden, query)?,
            output_bias,
            mlp_norm: from.vector(&name("post_attention_layernorm.weight"), hidden, dtype)?,
            gate_up: from.tensor(gate.stack(up))?,
            down: from.matrix(&name("mlp.down_proj.weight"), hidden, inner)?,
            keys: None,
            values: None,
        })
    }

    /// Outputs `first` to `first + count` of the fused projection.
    fn project(&self, x: &Tensor, first: usize, count: usize) -> Result<Tensor> {
        let projected = x.matmul(&self.qkv.narrow(0, first, count)?.t()?)?;
        match &self.qkv_bias {
            Some(bias) => projected.broadcast_add(&bias.narrow(0, first, count)?),
            None => Ok(projected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_was_not_built_in_is_refused_with_a_way_out() {
        if !cfg!(feature = "cuda") {
            let said = find(DeviceChoice::Cuda(1)).unwrap_err().to_string();
            assert!(
                said.contains("cuda:1") && said.contains("--features cuda") && said.contains("--device cpu"),
                "{said}"
            );
        }
        if !cfg!(feature = "metal") {
            assert!(find(DeviceChoice::Metal).unwrap_err().to_string().contains("--features metal"));
        }
        assert!(matches!(find(DeviceChoice::Cpu), Ok((Place::Cpu, None))));
        assert!(find(DeviceChoice::Auto).is_ok(), "the automatic choice always finds something");
    }
}
