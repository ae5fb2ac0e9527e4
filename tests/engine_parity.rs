//! The forward pass against numbers that PyTorch computed (tests/fixtures/engine/make.py, and the larger checkpoints
//! of shared/tools/make_reference.py if `TRAJSCOPE_REFS` names the folder it wrote).

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails loudly and says what it saw")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use trajscope::engine::config::Task;
use trajscope::engine::{Chunks, EngineOptions, Model, Sampling};

/// Largest difference to PyTorch's f32 that is let pass: PyTorch itself is 5e-6 away from exact arithmetic.
const TOLERANCE: f32 = 2e-5;
/// The same for logits of sequence heads and language models, which are larger numbers.
const LOGIT_TOLERANCE: f32 = 1e-4;
/// Of a language model the reference has this many logits.
const FIRST_LOGITS: usize = 64;

struct Reference {
    inputs: Vec<Vec<u32>>,
    values: Vec<Vec<f32>>,
    /// Of a language model: the choices, and the logarithms of their probabilities at every token.
    choices: Vec<Vec<u32>>,
    log_probabilities: Vec<Vec<f32>>,
    /// The ids PyTorch continues the first inputs with.
    greedy: Vec<Vec<u32>>,
}

fn reference(folder: &Path) -> Reference {
    let text = std::fs::read(folder.join("reference.json")).unwrap();
    let json: Value = serde_json::from_slice(&text).unwrap();
    let floats = json.get("values").or_else(|| json.get("f32")).unwrap();
    let list = |key: &str| json.get(key).cloned().unwrap_or(Value::Array(Vec::new()));
    Reference {
        inputs: serde_json::from_value(list("inputs")).unwrap(),
        values: serde_json::from_value(floats.clone()).unwrap(),
        choices: serde_json::from_value(list("choices")).unwrap(),
        log_probabilities: serde_json::from_value(list("log_probabilities")).unwrap(),
        greedy: serde_json::from_value(list("greedy")).unwrap(),
    }
}

/// What the model gives where the reference looked: the values of every token, or the logits of the last one.
fn outputs(model: &mut Model, ids: &[u32], chunks: Chunks) -> Vec<f32> {
    let last = [ids.len() - 1];
    match model.config().task {
        Task::TokenValues => model.values(ids, chunks).unwrap(),
        Task::SequenceValues => model.logits(ids, &last, chunks).unwrap(),
        Task::Language => model.logits(ids, &last, chunks).unwrap()[..FIRST_LOGITS].to_vec(),
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
        let tolerance = if model.config().task == Task::TokenValues { TOLERANCE } else { LOGIT_TOLERANCE };
        model.choose_tokens(&reference.choices).map_or_else(|_| assert!(!model.is_language()), |()| ());
        for (ids, expected) in reference.inputs.iter().zip(&reference.values) {
            for chunks in chunkings {
                let found = outputs(&mut model, ids, chunks);
                let error = worst(&found, expected);
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                println!("{name}: {} tokens, {chunks:?}, {threads} thread(s): {error:.2e}", ids.len());
                assert!(error <= tolerance, "{name}: {} tokens, {chunks:?}: {error:e}", ids.len());
                highest = highest.max(error);
            }
        }
        for (ids, expected) in reference.inputs.iter().zip(&reference.log_probabilities) {
            for chunks in chunkings {
                let error = worst(&model.values(ids, chunks).unwrap(), expected);
                assert!(error <= LOGIT_TOLERANCE, "{} tokens, {chunks:?}: log-probabilities {error:e}", ids.len());
                highest = highest.max(error);
            }
        }
        for (ids, expected) in reference.inputs.iter().zip(&reference.greedy) {
            assert_eq!(expected.len(), 32);
            let sampling = Sampling { max_tokens: 32, ..Sampling::default() };
            let made = model.generate(ids, &sampling, &|| false, &mut |_| {}).unwrap();
            assert_eq!(made.ids, *expected, "{} tokens continued", ids.len());
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
fn sequence_heads_of_one_and_more_labels() {
    check(&fixtures().join("small-seq-1"));
    // In this one config.json is of the older kind and no tensor has the prefix `model.`.
    check(&fixtures().join("small-seq-3"));
}

#[test]
fn the_two_layer_head_of_reward_models() {
    check(&fixtures().join("small-two-layer"));
}

#[test]
fn language_models_with_tied_and_own_heads_and_the_probabilities_of_chosen_tokens() {
    for name in ["small-causal-tied", "small-causal"] {
        assert_eq!(reference(&fixtures().join(name)).log_probabilities.len(), 3);
        check(&fixtures().join(name));
    }
}

#[test]
fn stretched_rotations_and_attention_biases() {
    for name in ["small-yarn", "small-yarn-all", "small-linear", "small-half"] {
        check(&fixtures().join(name));
    }
}

/// The model as PyTorch runs it in bf16 is far from itself in f32; ours, with the same bf16 weights, is less far.
#[test]
fn half_precision_weights_are_no_further_from_f32_than_pytorchs_own_half_precision() {
    for name in ["small-half", "small-yarn-all"] {
        let folder = fixtures().join(name);
        let json: Value = serde_json::from_slice(&std::fs::read(folder.join("half.json")).unwrap()).unwrap();
        let ids: Vec<u32> = serde_json::from_value(json["input"].clone()).unwrap();
        let exact: Vec<f32> = serde_json::from_value(json["f32"].clone()).unwrap();
        assert_eq!((ids.len(), exact.len()), (4600, 4600));
        let mut model = Model::open(&folder, &EngineOptions::default()).unwrap();
        assert_eq!(model.dtype(), "bf16");
        let found = model.values(&ids, Chunks::Growing).unwrap();
        let errors: Vec<f64> = found.iter().zip(&exact).map(|(a, b)| f64::from((a - b).abs())).collect();
        let max = errors.iter().copied().fold(0.0, f64::max);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let theirs = |key: &str| json["torch_bf16"][key].as_f64().unwrap();
        println!("{name}: bf16 weights, 4600 tokens, against f32: max {max:.3e}, mean {mean:.3e};");
        println!("PyTorch's bf16: max {:.3e}, mean {:.3e}", theirs("max"), theirs("mean"));
        assert!(max <= theirs("max") && mean <= theirs("mean"), "{name}");
    }
}

#[test]
fn the_full_reference_checkpoints() {
    let Some(folder) = std::env::var_os("TRAJSCOPE_REFS").map(PathBuf::from) else {
        eprintln!("SKIPPED: set TRAJSCOPE_REFS to a folder made by shared/tools/make_reference.py");
        return;
    };
    for name in [
        "qwen2-token-1",
        "qwen2-token-1-newrope",
        "qwen3-token-1",
        "qwen2-seq-1",
        "qwen3-seq-1",
        "qwen3-seq-27",
        "qwen2-causal",
        "qwen3-causal",
    ] {
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
