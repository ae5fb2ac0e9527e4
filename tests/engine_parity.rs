//! The forward pass against numbers that PyTorch computed (tests/fixtures/engine/make.py, and the larger checkpoints
//! of shared/tools/make_reference.py if `TRAJSCOPE_REFS` names the folder it wrote).

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails loudly and says what it saw")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use trajscope::engine::{Chunks, EngineOptions, Model};

/// Largest difference to PyTorch's f32 that is let pass: PyTorch itself is 5e-6 away from exact arithmetic.
const TOLERANCE: f32 = 2e-5;

struct Reference {
    inputs: Vec<Vec<u32>>,
    values: Vec<Vec<f32>>,
}

fn reference(folder: &Path) -> Reference {
    let text = std::fs::read(folder.join("reference.json")).unwrap();
    let json: Value = serde_json::from_slice(&text).unwrap();
    let floats = json.get("values").or_else(|| json.get("f32")).unwrap();
    let rows = |value: &Value| value.as_array().unwrap().clone();
    Reference {
        inputs: rows(&json["inputs"])
            .iter()
            .map(|row| rows(row).iter().map(|id| id.as_u64().unwrap() as u32).collect())
            .collect(),
        values: rows(floats).iter().map(|row| rows(row).iter().map(|v| v.as_f64().unwrap() as f32).collect()).collect(),
    }
}

fn worst(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len(), "one row of outputs a token");
    found.iter().zip(expected).map(|(a, b)| if a.is_nan() { f32::INFINITY } else { (a - b).abs() }).fold(0.0, f32::max)
}

/// Every length, whole and in chunks, on one thread and on two.
fn check(folder: &Path) -> f32 {
    let reference = reference(folder);
    let mut highest = 0.0f32;
    let runs = [(1, [Chunks::Whole, Chunks::Every(64)]), (2, [Chunks::Every(512), Chunks::Growing])];
    for (threads, chunkings) in runs {
        let options = EngineOptions { threads: Some(threads), ..EngineOptions::default() };
        let mut model = Model::open(folder, &options).unwrap();
        for (ids, expected) in reference.inputs.iter().zip(&reference.values) {
            for chunks in chunkings {
                let found = model.values(ids, chunks).unwrap();
                let error = worst(&found, expected);
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                println!("{name}: {} tokens, {chunks:?}, {threads} thread(s): {error:.2e}", ids.len());
                assert!(error <= TOLERANCE, "{name}: {} tokens, {chunks:?}: {error:e}", ids.len());
                highest = highest.max(error);
            }
        }
    }
    highest
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine")
}

#[test]
fn sharded_checkpoint_with_the_older_config() {
    check(&fixtures().join("qwen2-token-1"));
}

#[test]
fn single_file_with_the_newer_config() {
    check(&fixtures().join("qwen2-token-1-newrope"));
}

#[test]
fn three_outputs_and_half_precision_weights() {
    check(&fixtures().join("qwen2-token-3-f16"));
}

#[test]
fn qwen3_with_head_norms_and_bfloat16_weights() {
    check(&fixtures().join("qwen3-token-1-bf16"));
}

#[test]
fn the_full_reference_checkpoints() {
    let Some(folder) = std::env::var_os("TRAJSCOPE_REFS").map(PathBuf::from) else {
        eprintln!("SKIPPED: set TRAJSCOPE_REFS to a folder made by shared/tools/make_reference.py");
        return;
    };
    for name in ["qwen2-token-1", "qwen2-token-1-newrope", "qwen3-token-1"] {
        check(&folder.join(name));
    }
}

/// A reader of the references that looked at the wrong thing could not tell right from wrong: it must fail here.
#[test]
fn the_wrong_weights_do_not_pass() {
    let reference = reference(&fixtures().join("qwen2-token-1"));
    let mut model = Model::open(&fixtures().join("qwen2-token-1-newrope"), &EngineOptions::default()).unwrap();
    let found = model.values(&reference.inputs[1], Chunks::Whole).unwrap();
    assert!(worst(&found, &reference.values[1]) > 0.05);
}
