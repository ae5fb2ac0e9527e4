//! `trajscope doctor`: does the forward pass compute the right thing on this very machine?

use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::qwen2;
use safetensors::tensor::{Dtype, TensorView};

use super::config::{Arch, ModelConfig, RopeScaling, Task};
use super::cpu::pool::{Pool, default_threads, physical_cores};
use super::cpu::{CpuModel, Settings};
use super::weights::Weights;

/// What [`self_check`] found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SelfCheck {
    /// Largest difference between our hidden states and candle-transformers' on a small random Qwen2, or why there is
    /// none.
    pub max_abs_diff: Option<f32>,
    /// Largest difference that is all right for f32.
    pub tolerance: f32,
    /// Tokens compared.
    pub tokens: usize,
    /// Why the comparison could not be made.
    pub problem: Option<String>,
    /// One line a device: `"cpu"`, and what came of looking for the graphics processors that were built in.
    pub devices: Vec<String>,
    /// Vector instructions the processor has, of those that are used.
    pub instruction_sets: Vec<&'static str>,
    /// Threads used unless the user says otherwise.
    pub threads: usize,
    /// Physical cores.
    pub cores: usize,
}

impl SelfCheck {
    /// Was the comparison made, and is it good?
    pub fn is_good(&self) -> bool {
        self.max_abs_diff.is_some_and(|diff| diff <= self.tolerance)
    }
}

/// Tokens of the comparison: more than one tile of queries.
const TOKENS: usize = 64;

/// Runs a small random model through our forward pass and through candle-transformers', and looks at the machine.
pub fn self_check() -> SelfCheck {
    let (max_abs_diff, problem) = match compare() {
        Ok(diff) => (Some(diff), None),
        Err(why) => (None, Some(why)),
    };
    SelfCheck {
        max_abs_diff,
        problem,
        tolerance: 2e-5,
        tokens: TOKENS,
        devices: super::device::devices(),
        instruction_sets: instruction_sets(),
        threads: default_threads(),
        cores: physical_cores(),
    }
}

fn compare() -> Result<f32, String> {
    let config = small_config();
    let tensors = random_tensors(&config);
    let ids: Vec<u32> = (0..TOKENS).map(|i| ((i * 37 + 11) % config.vocab_size) as u32).collect();
    let ours = our_hidden(&config, &tensors, &ids)?;
    let theirs = candle_hidden(&config, &tensors, &ids).map_err(|e| format!("candle-transformers: {e}"))?;
    if ours.len() != theirs.len() {
        return Err(format!("{} hidden numbers of ours, {} of candle-transformers", ours.len(), theirs.len()));
    }
    // NaN must not pass: `max` would drop it.
    let worst = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
    Ok(worst.fold(0.0, |a, b| if b.is_nan() || b > a { b } else { a }))
}

fn small_config() -> ModelConfig {
    ModelConfig {
        arch: Arch::Qwen2,
        class: "Qwen2ForTokenClassification".into(),
        task: Task::TokenValues,
        vocab_size: 101,
        hidden: 64,
        intermediate: 144,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        attention_bias: true,
        tied: false,
        rms_eps: 1e-6,
        rope_theta: 1e6,
        rope_scaling: RopeScaling::Default,
        max_positions: 1024,
        window: None,
        num_labels: Some(1),
        labels: Vec::new(),
    }
}

type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

/// Random weights under Hugging Face's names, scaled so that activations stay of order one.
fn random_tensors(config: &ModelConfig) -> Tensors {
    let (h, i) = (config.hidden, config.intermediate);
    let (q, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_string(), vec![config.vocab_size, h]),
        ("model.norm.weight".to_string(), vec![h]),
        ("score.weight".to_string(), vec![1, h]),
    ];
    for layer in 0..config.layers {
        let parts = [
            ("input_layernorm.weight", vec![h]),
            ("self_attn.q_proj.weight", vec![q, h]),
            ("self_attn.q_proj.bias", vec![q]),
            ("self_attn.k_proj.weight", vec![kv, h]),
            ("self_attn.k_proj.bias", vec![kv]),
            ("self_attn.v_proj.weight", vec![kv, h]),
            ("self_attn.v_proj.bias", vec![kv]),
            ("self_attn.o_proj.weight", vec![h, q]),
            ("post_attention_layernorm.weight", vec![h]),
            ("mlp.gate_proj.weight", vec![i, h]),
            ("mlp.up_proj.weight", vec![i, h]),
            ("mlp.down_proj.weight", vec![h, i]),
        ];
        shapes.extend(parts.into_iter().map(|(name, shape)| (format!("model.layers.{layer}.{name}"), shape)));
    }
    let mut random = Random(0x5eed);
    shapes
        .into_iter()
        .map(|(name, shape)| {
            let count = shape.iter().product();
            let scale = match shape.as_slice() {
                [_, width] if !name.contains("embed") => 2.0 / (*width as f32).sqrt(),
                _ => 0.6,
            };
            let base = if name.contains("norm") { 1.0 } else { 0.0 };
            let numbers = (0..count).map(|_| base + scale * random.next()).collect();
            (name, shape, numbers)
        })
        .collect()
}

/// A small generator of numbers between -1 and 1: the check needs the same ones every time, not good ones.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
}

fn our_hidden(config: &ModelConfig, tensors: &Tensors, ids: &[u32]) -> Result<Vec<f32>, String> {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|t| t.2.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let views: Result<Vec<_>, _> = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, shape, _), bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect();
    let file = views.and_then(|views| safetensors::serialize(views, None)).map_err(|e| e.to_string())?;
    let weights = Weights::from_memory(file.into(), Path::new("self-check"));
    let model = weights.and_then(|mut w| CpuModel::load(config, &mut w, Settings::plain(Pool::new(default_threads()))));
    let mut model = model.map_err(|e| e.to_string())?;
    let reads: Vec<usize> = (0..ids.len()).collect();
    model.append(ids, &reads, &|| false).map_err(|_stopped| "stopped".into())
}

fn candle_hidden(config: &ModelConfig, tensors: &Tensors, ids: &[u32]) -> candle_core::Result<Vec<f32>> {
    let device = Device::Cpu;
    let mut map = HashMap::new();
    for (name, shape, numbers) in tensors {
        map.insert(name.clone(), Tensor::from_slice(numbers, shape.as_slice(), &device)?);
    }
    let theirs = qwen2::Config {
        vocab_size: config.vocab_size,
        hidden_size: config.hidden,
        intermediate_size: config.intermediate,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        num_key_value_heads: config.kv_heads,
        max_position_embeddings: config.max_positions,
        sliding_window: config.max_positions,
        max_window_layers: config.layers,
        tie_word_embeddings: false,
        rope_theta: config.rope_theta,
        rms_norm_eps: f64::from(config.rms_eps),
        use_sliding_window: false,
        hidden_act: candle_nn::Activation::Silu,
    };
    let mut model = qwen2::Model::new(&theirs, VarBuilder::from_tensors(map, DType::F32, &device))?;
    let input = Tensor::new(ids, &device)?.unsqueeze(0)?;
    model.forward(&input, 0, None)?.flatten_all()?.to_vec1()
}

#[cfg(target_arch = "x86_64")]
pub(super) fn instruction_sets() -> Vec<&'static str> {
    let found = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("avx512", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    found.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn instruction_sets() -> Vec<&'static str> {
    if cfg!(target_arch = "aarch64") { vec!["neon"] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_forward_pass_agrees_with_candle_transformers() {
        let check = self_check();
        assert!(check.is_good(), "{check:?}");
        assert!(check.devices.contains(&"cpu".to_string()) && check.threads >= 1);
    }

    #[test]
    fn a_wrong_weight_is_noticed() {
        let config = small_config();
        let mut tensors = random_tensors(&config);
        let ids = [5, 6, 7];
        let theirs = candle_hidden(&config, &tensors, &ids).unwrap();
        tensors.iter_mut().find(|t| t.0.ends_with("1.self_attn.v_proj.bias")).unwrap().2[3] += 1.0;
        let ours = our_hidden(&config, &tensors, &ids).unwrap();
        assert!(ours.iter().zip(&theirs).any(|(a, b)| (a - b).abs() > 1e-3));
        assert!(!SelfCheck { max_abs_diff: Some(f32::NAN), tolerance: 1.0, ..SelfCheck::default() }.is_good());
    }
}
