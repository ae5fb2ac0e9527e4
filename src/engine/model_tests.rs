use std::path::PathBuf;

use candle_core::Device;

use super::*;
use crate::engine::{DtypeChoice, Ended, Sampling};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine").join(name)
}

fn open(name: &str) -> Model {
    Model::open(&fixture(name), &EngineOptions { threads: Some(1), ..EngineOptions::default() }).unwrap()
}

/// The inputs and PyTorch's values of a fixture.
fn reference(name: &str) -> Vec<(Vec<u32>, Vec<f32>)> {
    let text = std::fs::read(fixture(name).join("reference.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let inputs: Vec<Vec<u32>> = serde_json::from_value(json["inputs"].clone()).unwrap();
    let values = json.get("values").unwrap_or(&json["f32"]);
    let values: Vec<Vec<f32>> = serde_json::from_value(values.clone()).unwrap();
    inputs.into_iter().zip(values).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn chunks_end_at_fixed_places() {
    let ends = |chunks: Chunks, mut start: usize, len: usize| {
        let mut ends = Vec::new();
        while start < len {
            start = chunks.end(start, len);
            ends.push(start);
        }
        ends
    };
    assert_eq!(ends(Chunks::Growing, 0, 1300), [128, 512, 1024, 1300]);
    assert_eq!(ends(Chunks::Growing, 512, 1300), [1024, 1300]);
    assert_eq!(ends(Chunks::Growing, 0, 5), [5]);
    assert_eq!(ends(Chunks::Every(64), 0, 130), [64, 128, 130]);
    assert_eq!(ends(Chunks::Every(0), 0, 3), [1, 2, 3]);
    assert_eq!(ends(Chunks::Whole, 0, 9000), [9000]);
    let floors: Vec<usize> = [0, 127, 128, 511, 512, 1500].map(|at| Chunks::Growing.floor(at)).into();
    assert_eq!(floors, [0, 0, 128, 128, 512, 1024]);
    assert_eq!((Chunks::Every(64).floor(130), Chunks::Whole.floor(130)), (128, 0));
}

#[test]
fn the_candle_path_matches_pytorch_too() {
    let old = ["qwen2-token-1", "qwen2-token-3-f16", "qwen3-token-1-bf16"];
    let new = ["small-two-layer", "small-yarn", "small-yarn-all", "small-linear"];
    for name in old.into_iter().chain(new) {
        let folder = fixture(name);
        let text = std::fs::read(folder.join("config.json")).unwrap();
        let config = ModelConfig::parse(&text, &folder).unwrap();
        let place = Place::Candle(Device::Cpu, "candle".into());
        let weights = Weights::open(&folder).unwrap();
        let options = EngineOptions { dtype: DtypeChoice::F32, ..EngineOptions::default() };
        let mut model = Model::load(config, &text, weights, place, &options).unwrap();
        for (ids, expected) in reference(name).iter().take(3) {
            for chunks in [Chunks::Whole, Chunks::Every(64)] {
                let found = model.values(ids, chunks).unwrap();
                let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(found.len() == expected.len() && worst < 2e-5, "{name} {} tokens: {worst}", ids.len());
            }
        }
        assert_eq!((model.device().as_str(), model.dtype()), ("candle", "f32"));
    }
}

#[test]
fn the_candle_path_writes_what_pytorch_writes() {
    for name in ["small-causal", "small-causal-tied"] {
        let folder = fixture(name);
        let text = std::fs::read(folder.join("config.json")).unwrap();
        let config = ModelConfig::parse(&text, &folder).unwrap();
        let place = Place::Candle(Device::Cpu, "candle".into());
        let weights = Weights::open(&folder).unwrap();
        let mut model = Model::load(config, &text, weights, place, &EngineOptions::default()).unwrap();
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("reference.json")).unwrap()).unwrap();
        let input: Vec<u32> = serde_json::from_value(json["inputs"][2].clone()).unwrap();
        let greedy: Vec<u32> = serde_json::from_value(json["greedy"][2].clone()).unwrap();
        let sampling = Sampling { max_tokens: 32, ..Sampling::default() };
        assert_eq!(model.generate(&input, &sampling, &|| false, &mut |_| {}).unwrap().ids, greedy, "{name}");
    }
}

#[test]
fn chunked_and_whole_are_the_same_bits() {
    let mut model = open("qwen2-token-1");
    let (ids, _) = &reference("qwen2-token-1")[2];
    let whole = bits(&model.values(ids, Chunks::Whole).unwrap());
    for chunks in [Chunks::Growing, Chunks::Every(64), Chunks::Every(100)] {
        assert_eq!(bits(&model.values(ids, chunks).unwrap()), whole, "{chunks:?}");
    }
}

#[test]
fn reading_a_few_places_gives_what_reading_all_gives() {
    let mut model = open("qwen2-token-3-f16");
    let (ids, expected) = &reference("qwen2-token-3-f16")[2];
    let reads = [0, 5, 127, 128, 290];
    let mut found = Vec::new();
    model.run(ids, &reads, &|| false, &mut |i, outputs| found.push((i, outputs.to_vec()))).unwrap();
    assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for (i, outputs) in &found {
        for (label, output) in outputs.iter().enumerate() {
            assert!((output - expected[reads[*i] * 3 + label]).abs() < 2e-5);
        }
    }
    assert_eq!(model.computed(), 291, "what follows the last value is not computed");
}

#[test]
fn a_stopped_pass_leaves_a_usable_model() {
    let mut model = open("qwen2-token-1");
    let (ids, _) = &reference("qwen2-token-1")[2];
    let expected = bits(&open("qwen2-token-1").values(ids, Chunks::Growing).unwrap());
    let early = std::sync::atomic::AtomicUsize::new(0);
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    // In the middle of the second chunk.
    let stop = || early.load(std::sync::atomic::Ordering::Relaxed) > 0 && count(&asked) > 20;
    let reads: Vec<usize> = (0..ids.len()).collect();
    let result = model.run(ids, &reads, &stop, &mut |_, _| _ = count(&early));
    assert_eq!((result, early.into_inner()), (Err(PassError::Stopped), 128), "the first chunk's values were given");
    let mut values = Vec::new();
    model.run(ids, &reads, &|| false, &mut |_, v| values.extend_from_slice(v)).unwrap();
    assert_eq!(bits(&values), expected);
}

#[test]
fn ids_and_places_beyond_the_end_are_errors() {
    let mut model = open("qwen2-token-1");
    let said = model.values(&[1, 5000], Chunks::Whole).unwrap_err();
    assert_eq!(said, "token id 5000 has no row in the embedding of 320");
    let result = model.run(&[1], &[3], &|| false, &mut |_, _| {});
    assert_eq!(result, Err(PassError::Failed("a value beyond the last token".into())));
    assert_eq!(model.values(&[], Chunks::Whole), Ok(Vec::new()));
}

#[test]
fn half_precision_weights_stay_half_unless_asked() {
    assert_eq!(open("qwen3-token-1-bf16").dtype(), "bf16");
    let wide = EngineOptions { dtype: DtypeChoice::F32, threads: Some(1), ..EngineOptions::default() };
    let mut wide = Model::open(&fixture("qwen3-token-1-bf16"), &wide).unwrap();
    assert_eq!(wide.dtype(), "f32");
    let (ids, _) = &reference("qwen3-token-1-bf16")[1];
    let half = open("qwen3-token-1-bf16").values(ids, Chunks::Whole).unwrap();
    let difference =
        wide.values(ids, Chunks::Whole).unwrap().iter().zip(&half).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-6, "widening is exact: {difference}");
}

#[test]
fn greedy_ids_are_pytorchs_and_scoring_after_them_is_as_if_nothing_had_been_generated() {
    for name in ["small-causal", "small-causal-tied"] {
        let text = std::fs::read(fixture(name).join("reference.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let inputs: Vec<Vec<u32>> = serde_json::from_value(json["inputs"].clone()).unwrap();
        let greedy: Vec<Vec<u32>> = serde_json::from_value(json["greedy"].clone()).unwrap();
        let sampling = Sampling { max_tokens: 32, ..Sampling::default() };
        let mut model = open(name);
        let mut seen = Vec::new();
        // From the longest to the shortest and back: each finds another one's text in the cache.
        for i in [2, 1, 0, 1, 2] {
            let made = model.generate(&inputs[i], &sampling, &|| false, &mut |id| seen.push(id)).unwrap();
            assert_eq!((made.ids, made.ended), (greedy[i].clone(), Ended::Length), "{name}");
        }
        assert_eq!(seen.len(), 5 * 32);
        let whole = [inputs[2].clone(), greedy[2].clone()].concat();
        assert_eq!(
            (model.prefixes.live().len(), model.prefixes.regular()),
            (whole.len() - 1, inputs[2].len()),
            "the last id is not read"
        );
        model.choose_tokens(&[vec![7], vec![11, 12]]).unwrap();
        let reads = [0, inputs[2].len() + 3, whole.len() - 1];
        let run = |model: &mut Model| {
            let mut values = Vec::new();
            model.run(&whole, &reads, &|| false, &mut |_, v| values.extend_from_slice(v)).unwrap();
            bits(&values)
        };
        let mut fresh = open(name);
        fresh.choose_tokens(&[vec![7], vec![11, 12]]).unwrap();
        assert_eq!(run(&mut model), run(&mut fresh));
    }
}

#[test]
fn a_language_model_has_no_values_until_tokens_are_chosen() {
    let mut model = open("small-causal");
    assert_eq!((model.is_language(), model.labels()), (true, 0));
    assert!(model.values(&[1, 2], Chunks::Whole).unwrap_err().contains("say which tokens' probabilities"));
    assert_eq!(model.logits(&[1, 2], &[0, 1], Chunks::Whole).unwrap().len(), 2 * 96);
    assert_eq!(model.choose_tokens(&[vec![96]]).unwrap_err(), "token id 96: the vocabulary has 96");
    model.choose_tokens(&[vec![1]]).unwrap();
    assert_eq!(model.values(&[1, 2], Chunks::Whole).unwrap().len(), 2);
    let mut other = open("small-seq-1");
    assert!(other.choose_tokens(&[vec![1]]).unwrap_err().contains("no tokens can be chosen"));
    let said = other.generate(&[1], &Sampling::default(), &|| false, &mut |_| {}).unwrap_err();
    assert_eq!(said, "Qwen3ForSequenceClassification: only a language model can generate");
}

/// A copy of a fixture with a changed config.json.
fn with_config(name: &str, change: impl FnOnce(&mut serde_json::Value)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    let file = copy.path().join("config.json");
    let mut json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut json);
    std::fs::write(&file, json.to_string()).unwrap();
    copy
}

#[test]
fn a_text_longer_than_a_sliding_window_is_refused_and_a_shorter_one_is_full_attention() {
    let folder = with_config("small-linear", |json| {
        json["use_sliding_window"] = true.into();
        json["sliding_window"] = 50.into();
        json["max_window_layers"] = 1.into();
    });
    let mut model = Model::open(folder.path(), &EngineOptions::default()).unwrap();
    let text = std::fs::read(folder.path().join("reference.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let inputs: Vec<Vec<u32>> = serde_json::from_value(json["inputs"].clone()).unwrap();
    let said = model.values(&inputs[2], Chunks::Whole).unwrap_err();
    assert!(said.starts_with("90 tokens: this model has sliding attention over 50 tokens"), "{said}");
    let found = model.values(&inputs[1], Chunks::Whole).unwrap();
    let expected: Vec<f32> = serde_json::from_value(json["f32"][1].clone()).unwrap();
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 2e-5));
}

#[test]
fn tied_weights_follow_the_file_more_than_its_config() {
    let ids = [5, 9, 2];
    let logits = |folder: &Path| {
        let mut model = Model::open(folder, &EngineOptions::default()).map_err(|e| e.to_string())?;
        Ok::<_, String>(bits(&model.logits(&ids, &[2], Chunks::Whole).unwrap()))
    };
    // A file with a head of its own is not tied, whatever config.json says.
    let said_tied = with_config("small-causal", |json| json["tie_word_embeddings"] = true.into());
    assert_eq!(logits(said_tied.path()), logits(&fixture("small-causal")));
    let untied = with_config("small-causal-tied", |json| json["tie_word_embeddings"] = false.into());
    let said = logits(untied.path()).unwrap_err();
    assert!(said.contains("tensor `lm_head.weight`: expected shape [96, 32], found no such tensor among"), "{said}");
}

#[test]
fn a_resumed_pass_gives_the_bits_of_a_whole_one_for_every_head_and_rotation() {
    for name in ["small-yarn", "small-yarn-all", "small-linear", "small-two-layer", "small-seq-3", "small-causal"] {
        let (ids, _) = reference(name).pop().unwrap();
        // Twice the text, so that the first whole chunk is in the cache.
        let ids = [ids.clone(), ids.clone()].concat();
        let reads = [ids.len() / 2, ids.len() - 1];
        let open = || {
            let mut model = open(name);
            if model.is_language() {
                model.choose_tokens(&[vec![7], vec![11, 12]]).unwrap();
            }
            model
        };
        let run = |model: &mut Model, ids: &[u32], reads: &[usize]| {
            let mut values = Vec::new();
            model.run(ids, reads, &|| false, &mut |_, v| values.extend_from_slice(v)).unwrap();
            bits(&values)
        };
        let fresh = run(&mut open(), &ids, &reads);
        let mut model = open();
        run(&mut model, &ids[..ids.len() - 10], &[ids.len() / 2 - 40]);
        assert_eq!(run(&mut model, &ids, &reads), fresh, "{name}");
    }
}

#[test]
fn a_head_that_is_not_as_it_should_be_is_named_with_shape_and_file() {
    let said = |name: &str, change: fn(&mut serde_json::Value)| {
        let folder = with_config(name, change);
        Model::open(folder.path(), &EngineOptions::default()).unwrap_err().to_string()
    };
    let token = |json: &mut serde_json::Value| json["architectures"] = serde_json::json!(["Qwen2ForRewardModel"]);
    let without = said("small-causal", token);
    assert!(without.contains("tensor `score.weight`: expected a head of shape [labels, 32], found no such tensor"));
    let causal = |json: &mut serde_json::Value| json["architectures"] = serde_json::json!(["Qwen2ForCausalLM"]);
    let without = said("small-two-layer", causal);
    assert!(without.contains("tensor `lm_head.weight`: expected shape [96, 32], found no such tensor"), "{without}");
    let labels = |json: &mut serde_json::Value| json["id2label"] = serde_json::json!({"0": "a", "1": "b"});
    let wrong = said("small-seq-3", labels);
    assert!(wrong.contains("model.safetensors: tensor `score.weight`: expected shape [2, 32], found shape [3, 32]"));
    let bias = |json: &mut serde_json::Value| json["attention_bias"] = true.into();
    let without = said("small-seq-1", bias);
    assert!(
        without.contains("`model.layers.0.self_attn.q_proj.bias`: expected shape [64], found no such"),
        "{without}"
    );
}

#[test]
fn a_text_too_long_for_the_cache_is_read_layer_by_layer_with_the_same_values() {
    let open = |kv_memory| {
        let options = EngineOptions { threads: Some(2), kv_memory, ..EngineOptions::default() };
        Model::open(&fixture("qwen2-token-1"), &options).unwrap()
    };
    let (ids, _) = &reference("qwen2-token-1")[3];
    let ids = &ids[..1300];
    for reads in [(0..ids.len()).collect::<Vec<_>>(), vec![3, 127, 128, 600, 1299], vec![700]] {
        let run = |model: &mut Model| {
            let mut values = Vec::new();
            model.run(ids, &reads, &|| false, &mut |i, v| values.push((i, bits(v)))).unwrap();
            values
        };
        let (mut plain, mut tight) = (open(None), open(Some(1000)));
        assert_eq!(run(&mut tight), run(&mut plain));
        assert_eq!((tight.prefixes.live().len(), plain.prefixes.live().len()), (0, reads[reads.len() - 1] + 1));
        assert_eq!(tight.run(ids, &reads, &|| true, &mut |_, _| {}), Err(PassError::Stopped));
    }
}
