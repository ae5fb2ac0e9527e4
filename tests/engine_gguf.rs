//! GGUF files against numbers that PyTorch computed from the same weights (tests/fixtures/engine/make_gguf.py), and
//! what is said of files that cannot be used.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails loudly and says what it saw")]

use std::path::{Path, PathBuf};

use serde_json::Value;
use trajscope::critic::{Cancel, Profile};
use trajscope::engine::{Chunks, CriticSpec, DtypeChoice, EngineOptions, Model, open};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/gguf")
}

fn options() -> EngineOptions {
    EngineOptions { threads: Some(2), ..EngineOptions::default() }
}

fn file(name: &str) -> PathBuf {
    fixtures().join(name).join(format!("{name}.gguf"))
}

/// Inputs and PyTorch's values.
fn reference(folder: &Path) -> (Vec<Vec<u32>>, Vec<Vec<f32>>) {
    let text = std::fs::read(folder.join("reference.json")).unwrap();
    let json: Value = serde_json::from_slice(&text).unwrap();
    let values = json.get("values").or_else(|| json.get("f32")).unwrap();
    (serde_json::from_value(json["inputs"].clone()).unwrap(), serde_json::from_value(values.clone()).unwrap())
}

fn worst(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len(), "one row of outputs a token");
    found.iter().zip(expected).map(|(a, b)| if a.is_nan() { f32::INFINITY } else { (a - b).abs() }).fold(0.0, f32::max)
}

fn check(path: &Path, folder: &Path) -> f32 {
    let (inputs, values) = reference(folder);
    let mut model = Model::open(path, &options()).unwrap();
    let mut highest = 0.0f32;
    for (ids, expected) in inputs.iter().zip(&values) {
        for chunks in [Chunks::Whole, Chunks::Every(64), Chunks::Growing] {
            let error = worst(&model.values(ids, chunks).unwrap(), expected);
            assert!(error <= 2e-5, "{}: {} tokens, {chunks:?}: {error:e}", path.display(), ids.len());
            highest = highest.max(error);
        }
    }
    println!("{} ({}): {highest:.2e}", path.display(), model.dtype());
    highest
}

#[test]
fn every_type_gives_pytorchs_values_for_the_weights_it_stands_for() {
    for name in ["qwen2-q4_k_m", "qwen3-mixed", "qwen3-q8_0", "qwen2-halves"] {
        check(&file(name), &fixtures().join(name));
    }
}

/// Checkpoints of shared/tools/make_reference.py as GGUF: `assets/critics/to_gguf.py REFS/NAME GGUFS/NAME f32`.
#[test]
fn the_full_reference_checkpoints_as_gguf() {
    let (Some(refs), Some(ggufs)) = (std::env::var_os("TRAJSCOPE_REFS"), std::env::var_os("TRAJSCOPE_GGUFS")) else {
        eprintln!("SKIPPED: set TRAJSCOPE_REFS and TRAJSCOPE_GGUFS to folders with checkpoints and their GGUF files");
        return;
    };
    for name in ["qwen2-token-1", "qwen3-token-1"] {
        check(&Path::new(&ggufs).join(name), &Path::new(&refs).join(name));
    }
}

#[test]
fn a_folder_with_one_gguf_opens_as_that_file() {
    check(&fixtures().join("qwen2-q4_k_m"), &fixtures().join("qwen2-q4_k_m"));
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.gguf", "b.gguf"] {
        std::fs::copy(file("qwen2-q4_k_m"), folder.path().join(name)).unwrap();
    }
    let said = Model::open(folder.path(), &options()).unwrap_err().to_string();
    assert!(said.contains("2 GGUF files, from a.gguf to b.gguf; name the file"), "{said}");
}

/// Weights widened at load are the same numbers: so are the values, but for the order of sums.
#[test]
fn widened_weights_give_the_same_values_and_rounding_leaves_small_types_alone() {
    let (inputs, values) = reference(&fixtures().join("qwen2-q4_k_m"));
    for (dtype, name) in [(DtypeChoice::F32, "f32"), (DtypeChoice::Bf16, "q4_k"), (DtypeChoice::Q8_0, "q4_k")] {
        let mut model = Model::open(&file("qwen2-q4_k_m"), &EngineOptions { dtype, ..options() }).unwrap();
        assert_eq!(model.dtype(), name);
        assert!(worst(&model.values(&inputs[1], Chunks::Whole).unwrap(), &values[1]) <= 2e-5, "{dtype}");
    }
}

fn copy(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn message(bytes: &[u8]) -> String {
    let (_folder, path) = copy(bytes);
    let said = Model::open(&path, &options()).unwrap_err().to_string();
    assert!(said.contains("m.gguf") && !said.contains('\n'), "{said}");
    said
}

/// Replaces the only place where `from` stands.
fn with(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = (0..bytes.len() - from.len()).filter(|i| bytes[*i..].starts_with(from)).collect();
    assert_eq!(places.len(), 1, "{from:?}");
    let mut changed = bytes.to_vec();
    changed[places[0]..places[0] + from.len()].copy_from_slice(to);
    changed
}

#[test]
fn files_that_cannot_be_used_are_refused_in_one_line() {
    let good = std::fs::read(file("qwen2-q4_k_m")).unwrap();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"GGUF".to_vec(), "4 bytes are no GGUF file"),
        (b"<html>not found</html>".to_vec(), "begins with \"<htm\", not with \"GGUF\""),
        ([b"GGUF".as_slice(), &[0, 0, 0, 3], &good[8..]].concat(), "big-endian"),
        ([b"GGUF".as_slice(), &[1, 0, 0, 0], &good[8..]].concat(), "version 1; expected a GGUF file of version 2 or 3"),
        (good[..good.len() - 40].to_vec(), "cut short: it ends at byte"),
        (good[..120].to_vec(), "cut short at byte 120"),
        ([&good[..8], &[0xff; 8], &good[16..]].concat(), "tensors and"),
        (with(&good, b"blk.0.attn_v.weight", b"blk.0.attn_w.weight"), "no such tensor"),
        (with(&good, b"token_embd.weight", b"token_embt.weight"), "tensor `token_embd.weight`: expected the embedding"),
        (with(&good, b"qwen2.block_count", b"qwen2.block_coumt"), "key `qwen2.block_count`: expected a positive"),
        (with(&good, b"\x05\0\0\0\0\0\0\0qwen2\x0c", b"\x05\0\0\0\0\0\0\0llama\x0c"), "architecture `llama`"),
    ];
    for (bytes, part) in cases {
        let said = message(&bytes);
        assert!(said.contains(part), "{said} (expected {part})");
    }
}

#[test]
fn tensors_of_another_shape_or_type_are_named_as_the_file_names_them() {
    let good = std::fs::read(file("qwen2-q4_k_m")).unwrap();
    // The header of a tensor: name, two sides (innermost first), type.
    let header = |name: &[u8], inner: u64, outer: u64, kind: u32| {
        [name, &2u32.to_le_bytes(), &inner.to_le_bytes(), &outer.to_le_bytes(), &kind.to_le_bytes()].concat()
    };
    let from = header(b"blk.0.ffn_gate.weight", 256, 64, 12);
    let said = message(&with(&good, &from, &header(b"blk.0.ffn_gate.weight", 256, 32, 12)));
    assert!(said.contains("tensor `blk.0.ffn_gate.weight`: expected shape [64, 256], found shape [32, 256]"), "{said}");
    let said = message(&with(&good, &from, &header(b"blk.0.ffn_gate.weight", 256, 64, 20)));
    assert!(said.contains("tensor `blk.0.ffn_gate.weight`") && said.contains("found type IQ4_NL"), "{said}");
    let said = message(&with(&good, &from, &header(b"blk.0.ffn_gate.weight", 256, 64, 77)));
    assert!(said.contains("found type number 77"), "{said}");
    // Rows of 64 are no whole blocks of 256.
    let from = header(b"blk.0.ffn_down.weight", 64, 256, 8);
    let said = message(&with(&good, &from, &header(b"blk.0.ffn_down.weight", 64, 256, 12)));
    assert!(said.contains("whole groups of 256 numbers, 144 bytes each, found rows of 64 numbers"), "{said}");
}

#[test]
fn without_a_head_the_message_says_how_to_make_one() {
    let (folder, path) = copy(&std::fs::read(file("qwen3-q8_0")).unwrap());
    let profile = Some(Profile::by_id("mini").unwrap().clone());
    let opened = open(&CriticSpec::Folder(path.clone()), &EngineOptions { profile, ..options() });
    let said = opened.err().unwrap().to_string();
    assert!(said.contains("no reward head") && said.contains("score.safetensors"), "{said}");
    let head = fixtures().join("qwen3-q8_0/score.safetensors");
    std::fs::copy(&head, folder.path().join("model.safetensors")).unwrap();
    check(&path, &fixtures().join("qwen3-q8_0"));
}

#[test]
fn the_parts_of_a_split_file_are_read_together_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<PathBuf> = (1..=3).map(|i| folder.path().join(format!("m-{i:05}-of-00003.gguf"))).collect();
    for (bytes, path) in split(&std::fs::read(file("qwen2-q4_k_m")).unwrap()).iter().zip(&names) {
        std::fs::write(path, bytes).unwrap();
    }
    let expected = fixtures().join("qwen2-q4_k_m");
    check(&names[0], &expected);
    check(&names[2], &expected);
    check(folder.path(), &expected);
    std::fs::rename(&names[1], folder.path().join("away")).unwrap();
    let said = Model::open(&names[0], &options()).unwrap_err().to_string();
    assert!(said.contains("m-00002-of-00003.gguf") && said.contains("every part must be in the same folder"), "{said}");
    std::fs::copy(&names[0], &names[1]).unwrap();
    let said = Model::open(&names[0], &options()).unwrap_err().to_string();
    assert!(said.contains("is part 1 of 3 by its metadata, part 2 of 3 by its name"), "{said}");
    let alone = folder.path().join("alone.gguf");
    std::fs::copy(&names[0], &alone).unwrap();
    let said = Model::open(&alone, &options()).unwrap_err().to_string();
    assert!(said.contains("alone.gguf: is part 1 of 3"), "{said}");
}

/// Splits a GGUF into a part with the metadata alone and two with half of the tensors each, as llama-gguf-split does.
fn split(whole: &[u8]) -> Vec<Vec<u8>> {
    let mut at = 8;
    let u64_at = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
    let (tensors, keys) = (u64_at(at), u64_at(at + 8));
    at += 16;
    let metadata = at;
    for _ in 0..keys {
        at += 8 + u64_at(at) as usize;
        let kind = u32_at(at);
        at += 4;
        let size = |kind: u32, at: usize| match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 => 8 + u64_at(at) as usize,
            _ => 8,
        };
        if kind == 9 {
            let (kind, count) = (u32_at(at), u64_at(at + 4));
            at += 12;
            (0..count).for_each(|_| at += size(kind, at));
        } else {
            at += size(kind, at);
        }
    }
    let metadata = &whole[metadata..at];
    let mut infos = Vec::new();
    for _ in 0..tensors {
        let start = at;
        at += 8 + u64_at(at) as usize;
        at += 4 + 8 * u32_at(at) as usize + 4;
        infos.push((whole[start..at].to_vec(), u64_at(at) as usize));
        at += 8;
    }
    let data = &whole[at.next_multiple_of(32)..];
    let end = |i: usize| infos.get(i + 1).map_or(data.len(), |(_, next)| *next);
    let half = infos.len() / 2;
    let key = |name: &str, kind: u32, value: &[u8]| {
        [&(name.len() as u64).to_le_bytes(), name.as_bytes(), &kind.to_le_bytes(), value].concat()
    };
    [0..0, 0..half, half..infos.len()]
        .into_iter()
        .enumerate()
        .map(|(number, range)| {
            let own = if number == 0 { (keys + 2, metadata) } else { (2, &[][..]) };
            let mut part = b"GGUF\x03\0\0\0".to_vec();
            part.extend((range.len() as u64).to_le_bytes());
            part.extend(own.0.to_le_bytes());
            part.extend(own.1);
            part.extend(key("split.no", 2, &(number as u16).to_le_bytes()));
            part.extend(key("split.count", 2, &3u16.to_le_bytes()));
            let mut bytes: Vec<u8> = Vec::new();
            for i in range {
                part.extend(&infos[i].0);
                part.extend((bytes.len() as u64).to_le_bytes());
                bytes.extend(&data[infos[i].1..end(i)]);
            }
            part.resize(part.len().next_multiple_of(32), 0);
            part.extend(bytes);
            part
        })
        .collect()
}

#[test]
fn a_gguf_scores_a_trajectory_as_a_critic_with_the_tokenizer_in_it() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/critic_mini/fixed.traj");
    let run = trajscope::formats::load(&[run], &|_| {}).trajectories.pop().unwrap();
    let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
    profile.max_tokens = 4096;
    let options = EngineOptions { profile: Some(profile), ..options() };
    let mut scored = Vec::new();
    // With the tokenizer in the file, and with the one it was made from beside it.
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(file("qwen2-q4_k_m"), folder.path().join("m.gguf")).unwrap();
    std::fs::copy(fixtures().join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    for path in [file("qwen2-q4_k_m"), folder.path().to_path_buf()] {
        let mut critic = open(&CriticSpec::Folder(path), &options).unwrap();
        assert_eq!(critic.info().dtype, "q4_k");
        let scores = critic.score(&run, &Cancel::default(), &mut |_| {}).unwrap();
        assert!(scores.actions.iter().any(|a| a.reward.is_some()), "{scores:?}");
        scored.push((scores.tokens, scores.actions));
    }
    assert_eq!(scored[0], scored[1]);
}
