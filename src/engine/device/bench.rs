//! Speed of a device on models of known shapes with random weights, which are drawn where they are used: a 32B model
//! needs no file and no time on a disk.

use std::time::Instant;

use candle_core::{DType, Device};

use super::network::{Branch, DeviceModel};
use super::place::{Place, card, find, free_memory};
use crate::engine::config::ModelConfig;
use crate::engine::error::EngineError;
use crate::engine::fit::Shape;
use crate::engine::model::PassError;
use crate::engine::{DeviceChoice, DtypeChoice};

/// A shape that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomShape {
    /// Qwen2.5-0.5B.
    Half,
    /// Qwen3-4B.
    Four,
    /// Qwen2.5-32B.
    ThirtyTwo,
}

impl std::str::FromStr for RandomShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "0.5b" => Ok(Self::Half),
            "4b" => Ok(Self::Four),
            "32b" => Ok(Self::ThirtyTwo),
            _ => Err(format!("shape {text:?}: expected 0.5b, 4b or 32b")),
        }
    }
}

impl RandomShape {
    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Half => "0.5b",
            Self::Four => "4b",
            Self::ThirtyTwo => "32b",
        }
    }

    /// Sizes.
    pub fn shape(self) -> Shape {
        match self {
            Self::Half => Shape::QWEN2_HALF,
            Self::Four => Shape::QWEN3_4,
            Self::ThirtyTwo => Shape::QWEN2_32,
        }
    }

    fn config(self) -> Result<ModelConfig, EngineError> {
        let shape = self.shape();
        let family = if self == Self::Four { "Qwen3" } else { "Qwen2" };
        let json = serde_json::json!({
            "architectures": [format!("{family}ForTokenClassification")], "model_type": family.to_lowercase(),
            "vocab_size": shape.vocab, "hidden_size": shape.hidden, "intermediate_size": shape.intermediate,
            "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim, "rope_theta": 1e6,
            "max_position_embeddings": 131_072, "id2label": {"0": "LABEL_0"},
        });
        ModelConfig::parse(json.to_string().as_bytes(), std::path::Path::new("random/config.json"))
    }
}

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSpeed {
    /// Tokens of every text.
    pub tokens: usize,
    /// Texts in one pass.
    pub texts: usize,
    /// Seconds of every run after the first, shortest first.
    pub seconds: Vec<f64>,
    /// Operations of one run: matrix products and half of all pairs of attention.
    pub flops: u64,
}

impl DeviceSpeed {
    /// Of the middle run; 0 without a run.
    pub fn median(&self) -> f64 {
        self.seconds.get(self.seconds.len() / 2).copied().unwrap_or(0.0)
    }

    /// Tokens per second.
    pub fn tokens_per_second(&self) -> f64 {
        (self.tokens * self.texts) as f64 / self.median()
    }

    /// Tera-operations per second.
    pub fn tflops(&self) -> f64 {
        self.flops as f64 / self.median() / 1e12
    }
}

/// What a device did with one shape.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceBench {
    /// `"cuda:0"`.
    pub device: String,
    /// What the maker calls it.
    pub card: Option<String>,
    /// The card's peak for dense bf16 products in TFLOP/s, where it is known.
    pub peak: Option<f64>,
    /// Type of weights and arithmetic.
    pub dtype: &'static str,
    /// `"flash-attn"`, `"sdpa"`, `"tiled"`.
    pub attention: &'static str,
    /// Tokens of one chunk.
    pub chunk: usize,
    /// Bytes of memory that were free with the weights in place.
    pub free_after_load: Option<u64>,
    /// Seconds to draw the weights.
    pub load_seconds: f64,
    /// One for every length.
    pub speeds: Vec<DeviceSpeed>,
}

/// The peak of a card for dense bf16 products with f32 sums, TFLOP/s, by its maker's data sheets.
fn bf16_peak(card: &str) -> Option<f64> {
    // Longer names first: the first that is contained counts.
    let known = [
        ("H100 PCIe", 756.0),
        ("H100 NVL", 835.0),
        ("B200", 2250.0),
        ("GH200", 989.0),
        ("H200", 989.0),
        ("H100", 989.0),
        ("A100", 312.0),
        ("L40S", 362.0),
        ("L4", 121.0),
        ("A10G", 70.0),
        ("A10", 125.0),
        ("RTX 5090", 209.0),
        ("RTX 4090", 165.0),
        ("RTX 3090", 71.0),
    ];
    // "L4" is not "L40".
    let named = |name: &str| card.find(name).is_some_and(|at| !card[at + name.len()..].starts_with(char::is_numeric));
    known.iter().find(|(name, _)| named(name)).map(|(_, peak)| *peak)
}

/// Draws a model of this shape on a device and measures it at these lengths, each `runs` times after one that does not
/// count; at the shortest length also with several texts in one pass.
///
/// # Errors
/// One line: the device is not there, is the CPU, or has no room.
pub fn bench_random(
    shape: RandomShape,
    choice: DeviceChoice,
    dtype: DtypeChoice,
    lengths: &[usize],
    runs: usize,
) -> Result<DeviceBench, EngineError> {
    let (Place::Candle(device, name), _) = find(choice)? else {
        let why = "random shapes are measured on graphics processors; give a checkpoint to measure the CPU with it";
        return Err(EngineError::Device(why.into()));
    };
    measure(&shape.config()?, (device, name), dtype, lengths, runs)
}

fn measure(
    config: &ModelConfig,
    (device, name): (Device, String),
    dtype: DtypeChoice,
    lengths: &[usize],
    runs: usize,
) -> Result<DeviceBench, EngineError> {
    let start = Instant::now();
    let place = (device.clone(), name.clone());
    let dtype = if dtype == DtypeChoice::F32 { DType::F32 } else { DType::BF16 };
    let mut model = DeviceModel::random(config, place, dtype)?;
    let wait = || device.synchronize().map_err(|e| EngineError::Device(format!("{name}: {e}")));
    wait()?;
    let card = card(&device);
    let mut bench = DeviceBench {
        peak: card.as_deref().and_then(bf16_peak),
        card,
        dtype: model.dtype(),
        attention: model.attention(),
        chunk: model.chunk(),
        free_after_load: free_memory(&device),
        load_seconds: start.elapsed().as_secs_f64(),
        speeds: Vec::new(),
        device: name.clone(),
    };
    let mut cases: Vec<(usize, usize)> = lengths.iter().map(|tokens| (*tokens, 1)).collect();
    cases.extend(lengths.first().map(|tokens| (*tokens, TEXTS)));
    for (tokens, texts) in cases {
        let mut seconds = Vec::new();
        for run in 0..=runs {
            let start = Instant::now();
            run_once(&mut model, config, tokens, texts).map_err(|e| EngineError::Device(words(&e)))?;
            wait()?;
            if run > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        seconds.sort_by(f64::total_cmp);
        let shape = Shape::of(config, 1);
        let (tokens64, texts64) = (tokens as u64, texts as u64);
        let flops = (shape.flops_per_token() * tokens64 + shape.attention_flops(tokens64)) * texts64;
        bench.speeds.push(DeviceSpeed { tokens, texts, seconds, flops });
    }
    Ok(bench)
}

/// Texts that are packed into one pass.
const TEXTS: usize = 5;

/// Reads a value at every fortieth of a text, as a trajectory of 40 actions does.
fn run_once(model: &mut DeviceModel, config: &ModelConfig, tokens: usize, texts: usize) -> Result<(), PassError> {
    let ids: Vec<u32> = (0..tokens).map(|i| (i * 7919 % config.vocab_size) as u32).collect();
    let every = (tokens / 40).max(1);
    model.truncate(0);
    model.reserve(tokens)?;
    if texts > 1 {
        let reads: Vec<usize> = (0..tokens).step_by(every).collect();
        return model.branches(&vec![Branch { ids: &ids, reads: &reads }; texts], &|| false).map(drop);
    }
    for (chunk, ids) in ids.chunks(model.chunk()).enumerate() {
        let start = chunk * model.chunk();
        let reads: Vec<usize> = (0..ids.len()).filter(|i| (start + i).is_multiple_of(every)).collect();
        model.append(ids, &reads, &|| false)?;
    }
    Ok(())
}

fn words(error: &PassError) -> String {
    match error {
        PassError::Stopped => "stopped".into(),
        PassError::Failed(what) => what.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_known_by_the_names_their_drivers_give() {
        let peaks = [
            ("NVIDIA H200", Some(989.0)),
            ("NVIDIA H100 80GB HBM3", Some(989.0)),
            ("NVIDIA H100 PCIe", Some(756.0)),
            ("NVIDIA A100-SXM4-80GB", Some(312.0)),
            ("NVIDIA L40S", Some(362.0)),
            ("NVIDIA L40", None),
            ("NVIDIA L4", Some(121.0)),
            ("NVIDIA A10G", Some(70.0)),
            ("NVIDIA GeForce RTX 4090", Some(165.0)),
            ("Tesla T4", None),
        ];
        for (card, peak) in peaks {
            assert_eq!(bf16_peak(card), peak, "{card}");
        }
    }

    #[test]
    fn the_shapes_are_those_of_the_models() {
        for (name, shape) in [("0.5b", RandomShape::Half), ("4b", RandomShape::Four), ("32b", RandomShape::ThirtyTwo)] {
            assert_eq!((name.parse(), shape.name()), (Ok(shape), name));
            assert_eq!(Shape::of(&shape.config().unwrap(), 1), shape.shape());
        }
        assert!("7b".parse::<RandomShape>().unwrap_err().contains("expected 0.5b"));
        let said = bench_random(RandomShape::Half, DeviceChoice::Cpu, DtypeChoice::Auto, &[8], 1).unwrap_err();
        assert!(said.to_string().contains("graphics processors"), "{said}");
    }

    #[test]
    fn a_tiny_random_model_is_drawn_and_measured() {
        let config = ModelConfig {
            vocab_size: 64,
            hidden: 32,
            intermediate: 48,
            layers: 2,
            heads: 4,
            kv_heads: 2,
            head_dim: 8,
            ..RandomShape::Four.config().unwrap()
        };
        let place = (Device::Cpu, "candle".to_string());
        let bench = measure(&config, place, DtypeChoice::Auto, &[40, 80], 2).unwrap();
        assert_eq!((bench.dtype, bench.attention, bench.card, bench.peak), ("bf16", "tiled", None, None));
        let cases: Vec<_> = bench.speeds.iter().map(|s| (s.tokens, s.texts, s.seconds.len())).collect();
        assert_eq!(cases, [(40, 1, 2), (80, 1, 2), (40, 5, 2)]);
        assert!(bench.speeds.iter().all(|s| s.tokens_per_second() > 0.0 && s.tflops() > 0.0));
        assert_eq!(bench.speeds[2].flops, 5 * bench.speeds[0].flops);
    }
}
