use serde_json::Value;

use super::*;

/// A safetensors file from `(name, dtype, shape, bytes)`.
pub(in crate::engine) fn safetensors(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let info = serde_json::json!({
            "dtype": dtype, "shape": shape, "data_offsets": [data.len(), data.len() + bytes.len()]
        });
        header.insert((*name).to_string(), info);
        data.extend_from_slice(bytes);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(&data);
    file
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

fn two_tensors() -> Vec<u8> {
    safetensors(&[
        ("model.norm.weight", "F32", &[2], floats(&[1.0, 2.0])),
        ("score.weight", "BF16", &[1, 2], vec![0x80, 0x3f, 0x00, 0x40]),
    ])
}

#[test]
fn single_file_and_bytes_in_memory_read_alike() {
    let dir = folder(&[("model.safetensors", &two_tensors())]);
    let mut file = Weights::open(dir.path()).unwrap();
    let mut memory = Weights::from_memory(two_tensors().into(), Path::new("embedded")).unwrap();
    for weights in [&mut file, &mut memory] {
        assert_eq!(weights.vector("model.norm.weight", 2).unwrap(), [1.0, 2.0]);
        assert_eq!(weights.matrix("score.weight", 1, 2).unwrap().into_f32(), [1.0, 2.0]);
        assert!(!weights.has("score.bias"));
    }
    assert_eq!(file.hash(), memory.hash());
}

#[test]
fn the_model_prefix_may_be_missing() {
    let bytes = safetensors(&[("norm.weight", "F32", &[1], floats(&[3.0]))]);
    let dir = folder(&[("model.safetensors", &bytes)]);
    let mut weights = Weights::open(dir.path()).unwrap();
    assert!(weights.has("model.norm.weight"));
    assert_eq!(weights.vector("model.norm.weight", 1).unwrap(), [3.0]);
}

#[test]
fn shards_are_opened_by_the_index_and_a_missing_one_is_named() {
    let a = safetensors(&[("model.norm.weight", "F32", &[1], floats(&[1.0]))]);
    let b = safetensors(&[("score.weight", "F32", &[1, 1], floats(&[2.0]))]);
    let index = br#"{"weight_map": {"model.norm.weight": "a.safetensors", "score.weight": "b.safetensors"}}"#;
    let dir = folder(&[("model.safetensors.index.json", index), ("a.safetensors", &a), ("b.safetensors", &b)]);
    let mut weights = Weights::open(dir.path()).unwrap();
    assert_eq!(weights.matrix("score.weight", 1, 1).unwrap().into_f32(), [2.0]);
    std::fs::remove_file(dir.path().join("b.safetensors")).unwrap();
    let said = Weights::open(dir.path()).unwrap_err().to_string();
    assert!(said.contains("b.safetensors") && said.contains("download the missing file"), "{said}");
}

#[test]
fn an_index_cannot_lead_out_of_the_folder() {
    let index = br#"{"weight_map": {"x": "../../etc/passwd"}}"#;
    let dir = folder(&[("model.safetensors.index.json", index)]);
    let said = Weights::open(dir.path()).unwrap_err().to_string();
    assert!(said.contains("is not a file name"), "{said}");
}

#[test]
fn missing_and_wrong_tensors_are_named_with_shapes_and_file() {
    let dir = folder(&[("model.safetensors", &two_tensors())]);
    let mut weights = Weights::open(dir.path()).unwrap();
    let missing = weights.matrix("model.layers.3.mlp.up_proj.weight", 4, 2).unwrap_err().to_string();
    assert!(missing.contains("model.layers.3.mlp.up_proj.weight") && missing.contains("[4, 2]"), "{missing}");
    assert!(missing.contains("no such tensor among 2 in 1 file(s)"), "{missing}");
    let wrong = weights.matrix("score.weight", 1, 3).unwrap_err().to_string();
    assert!(wrong.contains("model.safetensors: tensor `score.weight`"), "{wrong}");
    assert!(wrong.contains("expected shape [1, 3], found shape [1, 2]"), "{wrong}");
}

#[test]
fn a_type_that_cannot_be_read_is_said() {
    let bytes = safetensors(&[("model.norm.weight", "I8", &[2], vec![1, 2])]);
    let dir = folder(&[("model.safetensors", &bytes)]);
    let said = Weights::open(dir.path()).unwrap().vector("model.norm.weight", 2).unwrap_err().to_string();
    assert!(said.contains("expected type F32, F16, BF16, or in GGUF"), "{said}");
}

#[test]
fn cut_or_foreign_files_are_one_line() {
    let whole = two_tensors();
    let cases: [(&[u8], &str); 5] = [
        (b"", "failed to fill"),
        (b"<html>not found</html>", "not safetensors or cut short"),
        (&whole[..whole.len() - 1], "cut short: tensor"),
        (b"\x02\0\0\0\0\0\0\0[]", "not a JSON object"),
        (b"\x0b\0\0\0\0\0\0\0{\"a\":[1,2]}", "make no sense"),
    ];
    for (bytes, part) in cases {
        let dir = folder(&[("model.safetensors", bytes)]);
        let said = Weights::open(dir.path()).unwrap_err().to_string();
        assert!(said.contains("model.safetensors") && said.contains(part) && !said.contains('\n'), "{said}");
    }
}

#[test]
fn a_folder_without_weights_says_what_is_wanted() {
    let dir = folder(&[]);
    let said = Weights::open(dir.path()).unwrap_err().to_string();
    assert!(said.contains("no model.safetensors and no model.safetensors.index.json"), "{said}");
    let dir = folder(&[("pytorch_model.bin", b"x")]);
    assert!(Weights::open(dir.path()).unwrap_err().to_string().contains("only pytorch_model.bin"));
}
