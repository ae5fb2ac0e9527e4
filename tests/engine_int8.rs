//! What the 8-bit path costs in exactness: its values beside those in f32, on the fixtures, on the embedded critic and,
//! if `TRAJSCOPE_REFS` names a folder made by shared/tools/make_reference.py, on the larger checkpoints in it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails loudly and says what it saw")]

use std::path::{Path, PathBuf};

use trajscope::engine::{Chunks, DtypeChoice, EngineOptions, Model};

fn open(folder: &Path, dtype: DtypeChoice, threads: usize) -> Model {
    Model::open(folder, &EngineOptions { dtype, threads: Some(threads), ..EngineOptions::default() }).unwrap()
}

fn ids(model: &Model, count: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * 7919 + i / 7 + 17) % model.config().vocab_size) as u32).collect()
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Largest and mean difference of the 8-bit values to those in f32, as shares of the values' standard deviation.
fn error(folder: &Path, tokens: usize) -> (f64, f64) {
    let mut exact = open(folder, DtypeChoice::F32, 2);
    let ids = ids(&exact, tokens);
    let exact = exact.values(&ids, Chunks::Growing).unwrap();
    let found = open(folder, DtypeChoice::Int8, 2).values(&ids, Chunks::Growing).unwrap();
    assert_eq!(found.len(), exact.len());
    let count = exact.len() as f64;
    let mean = exact.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
    let deviation = (exact.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / count).sqrt();
    let differences: Vec<f64> = found.iter().zip(&exact).map(|(a, b)| f64::from(a - b).abs() / deviation).collect();
    let (max, mean) = (differences.iter().copied().fold(0.0, f64::max), differences.iter().sum::<f64>() / count);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {tokens} tokens, std {deviation:.3}: int8 off by at most {max:.4}, on average {mean:.4} of it");
    assert!(differences.iter().all(|d| d.is_finite()));
    (max, mean)
}

#[test]
fn values_stay_near_those_in_f32() {
    let (max, mean) = error(&here("assets/critic-mini"), 600);
    assert!(mean < 0.08 && max < 0.5, "critic-mini: {mean} {max}");
    for name in ["qwen2-token-1", "qwen2-token-1-newrope", "qwen2-token-3-f16", "qwen3-token-1-bf16"] {
        let (max, mean) = error(&here("tests/fixtures/engine").join(name), 300);
        assert!(mean < 0.08 && max < 0.5, "{name}: {mean} {max}");
        assert!(mean > 1e-4, "{name}: 8 bits cannot be as near as {mean}: did f32 run?");
    }
}

#[test]
fn the_full_reference_checkpoints_stay_near() {
    let Some(folder) = std::env::var_os("TRAJSCOPE_REFS").map(PathBuf::from) else {
        eprintln!("SKIPPED: set TRAJSCOPE_REFS to a folder made by shared/tools/make_reference.py");
        return;
    };
    for name in ["qwen2-token-1", "qwen2-token-1-newrope", "qwen3-token-1"] {
        let (max, mean) = error(&folder.join(name), 2048);
        assert!(mean < 0.08 && max < 0.6, "{name}: {mean} {max}");
    }
}

#[test]
fn chunks_and_threads_do_not_change_a_bit() {
    let folder = here("tests/fixtures/engine/qwen2-token-1");
    let bits = |chunks, threads| {
        let mut model = open(&folder, DtypeChoice::Int8, threads);
        let ids = ids(&model, 300);
        model.values(&ids, chunks).unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    };
    let whole = bits(Chunks::Whole, 1);
    for (chunks, threads) in [(Chunks::Growing, 1), (Chunks::Every(64), 2), (Chunks::Every(100), 1), (Chunks::Whole, 2)]
    {
        assert_eq!(bits(chunks, threads), whole, "{chunks:?} on {threads}");
    }
}

#[test]
fn it_says_what_it_is() {
    let model = open(&here("tests/fixtures/engine/qwen2-token-1"), DtypeChoice::Int8, 1);
    assert_eq!(model.dtype(), "int8");
    assert!(!trajscope::engine::int8_kernel().is_empty());
}
