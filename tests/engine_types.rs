//! Weights in fewer bits: what `--dtype` does to the values, and that arithmetic stays f32.

#![expect(clippy::unwrap_used, reason = "a test fails loudly and says what it saw")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use trajscope::engine::{Chunks, DtypeChoice, EngineOptions, Model};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn open(folder: &Path, dtype: DtypeChoice) -> Model {
    Model::open(folder, &EngineOptions { dtype, threads: Some(2), ..EngineOptions::default() }).unwrap()
}

/// Ids that look random and are the same every time.
fn ids(count: usize, vocab: usize) -> Vec<u32> {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    (0..count).map(|_| (next() % vocab) as u32).collect()
}

/// Mean and largest difference, and the standard deviation of the first.
fn compare(exact: &[f32], other: &[f32]) -> (f64, f64, f64) {
    assert_eq!(exact.len(), other.len());
    let n = exact.len() as f64;
    let mean = exact.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let deviation = (exact.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / n).sqrt();
    let errors = exact.iter().zip(other).map(|(a, b)| f64::from((a - b).abs()));
    let worst = errors.clone().fold(0.0, |a, b| if b.is_nan() || b > a { b } else { a });
    (errors.sum::<f64>() / n, worst, deviation)
}

#[test]
fn eight_bit_weights_move_the_embedded_critics_values_little() {
    let folder = root().join("assets/critic-mini");
    let mut exact = open(&folder, DtypeChoice::Auto);
    let mut small = open(&folder, DtypeChoice::Q8_0);
    assert_eq!((exact.dtype(), small.dtype()), ("f32", "q8_0"));
    let ids = ids(2000, exact.config().vocab_size);
    let exact = exact.values(&ids, Chunks::Growing).unwrap();
    let found = small.values(&ids, Chunks::Growing).unwrap();
    let (mean, worst, deviation) = compare(&exact, &found);
    println!("q8_0 on the embedded critic: mean {mean:.2e}, worst {worst:.2e}, deviation of the values {deviation:.3}");
    assert!(deviation > 0.01 && mean <= 0.02 * deviation, "mean {mean:e} of deviation {deviation}");
    assert!(mean > 0.0, "eight bits are not f32");
}

/// `reference.json` of the bf16 fixture was computed by PyTorch in f32 from the weights as stored: with f32 tables,
/// norms, softmax and head there is nothing in which a bf16 run could differ from it.
#[test]
fn bfloat16_weights_give_the_values_of_f32_arithmetic_at_4600_tokens() {
    let folder = root().join("tests/fixtures/engine/qwen3-token-1-bf16");
    let reference: Value = serde_json::from_slice(&std::fs::read(folder.join("reference.json")).unwrap()).unwrap();
    let inputs: Vec<Vec<u32>> = serde_json::from_value(reference["inputs"].clone()).unwrap();
    let values: Vec<Vec<f32>> = serde_json::from_value(reference["values"].clone()).unwrap();
    let (ids, expected) = (inputs.last().unwrap(), values.last().unwrap());
    assert!(ids.len() == 4600);
    let kept = open(&folder, DtypeChoice::Auto).values(ids, Chunks::Growing).unwrap();
    let widened = open(&folder, DtypeChoice::F32).values(ids, Chunks::Growing).unwrap();
    let (_, worst, _) = compare(expected, &kept);
    let (_, apart, _) = compare(&widened, &kept);
    println!("bf16 kept against PyTorch f32: {worst:.2e}; against the same weights widened at load: {apart:.2e}");
    assert!(worst <= 2e-5 && apart <= 2e-5);
}

/// Rounding at load is the same rounding as in the file: f16 weights rounded to f16 again are themselves.
#[test]
fn rounding_to_the_files_own_type_changes_nothing() {
    for (name, dtype) in [("qwen2-token-3-f16", DtypeChoice::F16), ("qwen3-token-1-bf16", DtypeChoice::Bf16)] {
        let folder = root().join("tests/fixtures/engine").join(name);
        let (mut kept, mut widened) = (open(&folder, dtype), open(&folder, DtypeChoice::F32));
        assert_eq!((kept.dtype(), widened.dtype()), (dtype.to_string().as_str(), "f32"));
        let ids = ids(200, kept.config().vocab_size);
        let (_, worst, _) =
            compare(&kept.values(&ids, Chunks::Whole).unwrap(), &widened.values(&ids, Chunks::Whole).unwrap());
        assert!(worst <= 2e-6, "{name}: {worst:e}");
    }
}

#[test]
fn f32_weights_rounded_at_load_lose_what_their_type_cannot_hold_and_no_more() {
    let folder = root().join("tests/fixtures/engine/qwen2-token-1");
    let mut exact = open(&folder, DtypeChoice::Auto);
    let ids = ids(500, exact.config().vocab_size);
    let exact = exact.values(&ids, Chunks::Growing).unwrap();
    for (dtype, most) in [(DtypeChoice::F16, 0.005), (DtypeChoice::Bf16, 0.05)] {
        let mut model = open(&folder, dtype);
        assert_eq!(model.dtype(), dtype.to_string());
        let (mean, worst, deviation) = compare(&exact, &model.values(&ids, Chunks::Growing).unwrap());
        println!("{dtype}: mean {mean:.2e}, worst {worst:.2e}, deviation of the values {deviation:.3}");
        assert!(mean > 0.0 && mean <= most * deviation, "{dtype}: mean {mean:e} of deviation {deviation}");
    }
    let options = EngineOptions { dtype: DtypeChoice::Q8_0, ..EngineOptions::default() };
    let said = Model::open(&folder, &options).unwrap_err().to_string();
    let expected = "tensor `model.layers.0.mlp.down_proj.weight`: expected rows of whole blocks of 32 numbers (q8_0), \
                    found rows of 176; choose another type: --dtype bf16";
    assert!(said.contains(expected), "{said}");
}
