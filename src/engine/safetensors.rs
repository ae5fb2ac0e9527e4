//! Headers of safetensors files, and which files a model folder has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::EngineError;
use super::matrix::NumberType;
use super::weights::{Entry, Shard};

/// Safetensors headers are far below this; a larger length means that the file is something else.
const MAX_HEADER: u64 = 100 << 20;

/// `model.safetensors` of a folder, or all the shards that `model.safetensors.index.json` names.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let single = folder.join("model.safetensors");
    let index = folder.join("model.safetensors.index.json");
    if single.is_file() {
        return Ok(vec![single]);
    }
    if index.is_file() {
        return shards_of_index(&index);
    }
    let other = [("pytorch_model.bin", "a pickle"), ("pytorch_model.bin.index.json", "pickles")];
    let found = other.iter().find(|(name, _)| folder.join(name).is_file());
    Err(EngineError::File {
        file: folder.to_path_buf(),
        what: match found {
            Some((name, kind)) => format!("no model.safetensors, only {name} ({kind})"),
            None => "no model.safetensors and no model.safetensors.index.json".into(),
        },
        help: "give a model folder with safetensors weights (transformers: `model.save_pretrained(DIR)`)".into(),
    })
}

/// The tensors of a file, which will be number `number` of its checkpoint.
pub(super) fn entries(shard: &mut Shard, number: usize) -> Result<Vec<(String, Entry)>, EngineError> {
    let mut size = [0; 8];
    shard.read_at(0, &mut size)?;
    let (size, len) = (u64::from_le_bytes(size), shard.len());
    if size > MAX_HEADER || size.saturating_add(8) > len {
        return Err(broken(shard, &format!("header of {size} bytes in a file of {len}: not safetensors or cut short")));
    }
    let mut header = vec![0; size as usize];
    shard.read_at(8, &mut header)?;
    let header: Value =
        serde_json::from_slice(&header).map_err(|e| broken(shard, &format!("header is not JSON ({e})")))?;
    let Value::Object(header) = header else {
        return Err(broken(shard, "header is not a JSON object"));
    };
    let mut entries = Vec::new();
    for (name, info) in &header {
        if name == "__metadata__" {
            continue;
        }
        let entry = entry(number, info, 8 + size)
            .ok_or_else(|| broken(shard, &format!("tensor `{name}`: dtype, shape and data_offsets make no sense")))?;
        let end = entry.start.saturating_add(entry.len as u64);
        if end > len {
            return Err(broken(shard, &format!("cut short: tensor `{name}` ends at byte {end} of {len}")));
        }
        entries.push((name.clone(), entry));
    }
    Ok(entries)
}

fn broken(shard: &Shard, what: &str) -> EngineError {
    EngineError::File {
        file: shard.path().to_path_buf(),
        what: what.into(),
        help: "expected a safetensors file: download it anew".into(),
    }
}

/// One line of a safetensors header; `None` if it contradicts itself.
fn entry(shard: usize, info: &Value, data_start: u64) -> Option<Entry> {
    let dtype = info.get("dtype")?.as_str()?.to_string();
    let shape = info.get("shape")?.as_array()?;
    let shape: Option<Vec<usize>> = shape.iter().map(|n| n.as_u64().and_then(|n| usize::try_from(n).ok())).collect();
    let shape = shape?;
    let offsets = info.get("data_offsets")?.as_array()?;
    let [start, end] = offsets.as_slice() else { return None };
    let (start, end) = (start.as_u64()?, end.as_u64()?);
    let len = usize::try_from(end.checked_sub(start)?).ok()?;
    let size = match dtype.as_str() {
        "F64" | "I64" | "U64" => 8,
        "F32" | "I32" | "U32" => 4,
        "F16" | "BF16" | "I16" | "U16" => 2,
        "I8" | "U8" | "BOOL" | "F8_E4M3" | "F8_E5M2" => 1,
        _ => 0,
    };
    let numbers = shape.iter().try_fold(1usize, |n, side| n.checked_mul(*side))?;
    if size > 0 && numbers.checked_mul(size)? != len {
        return None;
    }
    let kind = match dtype.as_str() {
        "F32" => Some(NumberType::F32),
        "F16" => Some(NumberType::F16),
        "BF16" => Some(NumberType::Bf16),
        _ => None,
    };
    Some(Entry { shard, stored: None, dtype, kind, shape, start: data_start.checked_add(start)?, len })
}

/// The files a `model.safetensors.index.json` names, in order of their names.
fn shards_of_index(index: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let help = "expected an index with `weight_map`: tensor name to file name; download it anew";
    let text = std::fs::read(index).map_err(|e| EngineError::io(index, &e, help))?;
    let broken = |what: String| EngineError::File { file: index.to_path_buf(), what, help: help.to_string() };
    let value: Value = serde_json::from_slice(&text).map_err(|e| broken(format!("not JSON ({e})")))?;
    let Some(Value::Object(map)) = value.get("weight_map") else {
        return Err(broken("key `weight_map` missing".into()));
    };
    let mut files = BTreeSet::new();
    for (tensor, file) in map {
        let name = file.as_str().filter(|name| !name.contains(['/', '\\']) && !name.is_empty());
        let name = name.ok_or_else(|| broken(format!("`weight_map`: tensor `{tensor}`: {file} is not a file name")))?;
        files.insert(index.with_file_name(name));
    }
    if files.is_empty() {
        return Err(broken("`weight_map` is empty".into()));
    }
    Ok(files.into_iter().collect())
}
