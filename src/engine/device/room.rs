//! What has room on a device.

use candle_core::{DType, Device};

use super::place::{free_memory, has_bf16};
use crate::engine::DtypeChoice;
use crate::engine::config::ModelConfig;
use crate::engine::fit::{Shape, Storage, Wish};
use crate::engine::weights::Weights;

/// A model that has no room for a text of this many tokens is not loaded.
const LEAST_TOKENS: u64 = 1024;

/// Tokens of one chunk: as many as keep a large card (200 TFLOP/s) busy for about a tenth of a second, so that work can
/// still be stopped.
pub(super) fn chunk(shape: &Shape) -> usize {
    let tokens = (2e13 / shape.flops_per_token() as f64) as usize;
    let lower = if tokens.is_power_of_two() { tokens } else { tokens.next_power_of_two() / 2 };
    lower.clamp(512, 4096)
}

/// What a model with texts of this many tokens needs.
pub(super) fn wish(config: &ModelConfig, storage: Storage, dtype: DType, tokens: u64) -> Wish {
    let shape = Shape::of(config, 1);
    Wish { chunk: chunk(&shape) as u64, shape, storage, cache_number: dtype.size_in_bytes() as u64, tokens }
}

/// Why a checkpoint has no room on a device, and what would; `None` = it has, or nobody knows what is free.
pub(in crate::engine) fn lacks_room(
    config: &ModelConfig,
    weights: &mut Weights,
    choice: DtypeChoice,
    device: &Device,
) -> Option<String> {
    weights.store_as(choice);
    let stored = weights.type_of("model.layers.0.mlp.gate_proj.weight")?;
    let dtype = arithmetic(stored, device);
    let storage = match Storage::of_dtype(stored) {
        Storage::Half if dtype == DType::F32 => Storage::F32,
        storage => storage,
    };
    shape_lacks_room(config, storage, dtype, free_memory(device)?)
}

/// As [`lacks_room`], for a model of which only the sizes are known.
pub(super) fn shape_lacks_room(config: &ModelConfig, storage: Storage, dtype: DType, free: u64) -> Option<String> {
    let least = wish(config, storage, dtype, LEAST_TOKENS);
    if least.bytes() <= free {
        return None;
    }
    Wish { tokens: (config.max_positions as u64).min(32_768), ..least }.advice(Some(free))
}

/// The type of the arithmetic for weights of type `stored`: theirs where the device has it, bf16 for blocks.
pub(super) fn arithmetic(stored: &str, device: &Device) -> DType {
    match stored {
        "f16" => DType::F16,
        // f16 overflows where bf16 does not, so a card without bf16 computes in f32.
        "f32" => DType::F32,
        _ if has_bf16(device) => DType::BF16,
        _ => DType::F32,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_card_that_is_too_small_is_known_before_anything_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen3-token-1-bf16");
        let config = ModelConfig::parse(&std::fs::read(folder.join("config.json")).unwrap(), &folder).unwrap();
        let least = wish(&config, Storage::Half, DType::BF16, LEAST_TOKENS).bytes();
        assert_eq!(shape_lacks_room(&config, Storage::Half, DType::BF16, least), None);
        let said = shape_lacks_room(&config, Storage::Half, DType::BF16, least - 1).unwrap();
        assert!(said.starts_with("needs 0.") && said.contains("for 32,768 tokens"), "{said}");
        let mut weights = Weights::open(&folder).unwrap();
        assert_eq!(
            lacks_room(&config, &mut weights, DtypeChoice::Auto, &Device::Cpu),
            None,
            "nobody says what is free"
        );
        let name = "model.layers.0.mlp.down_proj.weight";
        assert_eq!((weights.type_of(name), weights.type_of("score.missing")), (Some("bf16"), None));
        weights.store_as(DtypeChoice::F32);
        assert_eq!(weights.type_of(name), Some("f32"));
    }

    #[test]
    fn arithmetic_is_in_the_type_of_the_weights() {
        let of = |stored| arithmetic(stored, &Device::Cpu);
        assert_eq!(["f32", "f16", "bf16", "q4_k"].map(of), [DType::F32, DType::F16, DType::BF16, DType::BF16]);
    }

    #[test]
    fn chunks_are_shorter_for_larger_models() {
        assert_eq!([Shape::QWEN2_HALF, Shape::QWEN3_4, Shape::QWEN2_32].map(|s| chunk(&s)), [4096, 2048, 512]);
    }
}
