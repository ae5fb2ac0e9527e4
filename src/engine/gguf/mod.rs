//! GGUF files of Qwen2 and Qwen3: config, tensors and tokenizer as a model folder of Hugging Face has them.

mod config;
mod header;
mod names;
mod tokens;

use std::path::{Path, PathBuf};

use super::error::EngineError;
use super::weights::{Entry, Shard, Weights};
use config::Found;
pub(super) use config::Metadata;
use header::{Header, Value};

/// Files beside a GGUF that may have its reward head, as tensors `score.weight` and `score.bias` (or `score.0.*` and
/// `score.2.*` for a head of two layers).
const HEADS: [&str; 2] = ["score.safetensors", "model.safetensors"];

/// An opened GGUF file, or all the parts of a split one.
#[derive(Debug)]
pub(super) struct Gguf {
    /// The config.json of its model.
    pub(super) config: Vec<u8>,
    /// Its tensors and those of the head beside it.
    pub(super) weights: Weights,
    /// What the file says beside its tensors.
    pub(super) metadata: Metadata,
}

impl Gguf {
    /// Reads the headers of a file, or of all the parts if it is one of several.
    pub(super) fn open(file: &Path) -> Result<Self, EngineError> {
        let parts = parts(file);
        let mut weights = Weights::empty(file);
        let mut first: Option<Header> = None;
        for (number, path) in parts.iter().enumerate() {
            let help = "give a GGUF file; of a split one every part must be in the same folder";
            let mut shard = Shard::open(path, help)?;
            let header = Header::read(&mut shard)?;
            check_part(&header, path, number, parts.len())?;
            weights.add(shard, entries(&header, number));
            first.get_or_insert(header);
        }
        let header = first.ok_or_else(|| broken(file, "no parts".into()))?;
        add_head(file, &mut weights)?;
        let rows = |name: &str| weights.shape(name).and_then(|shape| shape.first().copied());
        let found = Found {
            vocab: rows("model.embed_tokens.weight").ok_or_else(|| EngineError::Tensor {
                file: file.to_path_buf(),
                tensor: "token_embd.weight".into(),
                expected: "the embedding".into(),
                found: format!("no such tensor among {}", header.tensors.len()),
                help: "the file holds no model: download it anew".into(),
            })?,
            head: rows("score.weight").or_else(|| rows("score.2.weight")).is_some(),
            untied: rows("lm_head.weight").is_some(),
            biases: rows("model.layers.0.self_attn.q_proj.bias").is_some(),
        };
        let metadata = Metadata::new(header.metadata, file);
        let config = metadata.config_json(found)?;
        Ok(Self { config: config.to_string().into_bytes(), weights, metadata })
    }
}

/// The path of a `-00001-of-00003.gguf` for every part, or the file alone.
fn parts(file: &Path) -> Vec<PathBuf> {
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    split_name(name).map_or_else(
        || vec![file.to_path_buf()],
        |(stem, count)| (1..=count).map(|n| file.with_file_name(format!("{stem}-{n:05}-of-{count:05}.gguf"))).collect(),
    )
}

/// What comes before `-00001-of-00003.gguf`, and the number of parts.
pub(super) fn split_name(name: &str) -> Option<(&str, usize)> {
    let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let five = |text: &str| (text.len() == 5).then(|| text.parse::<usize>().ok()).flatten();
    let (number, count) = (five(number)?, five(count)?);
    (1..=count).contains(&number).then_some((stem, count))
}

/// Is this the part that its name says?
fn check_part(header: &Header, path: &Path, number: usize, count: usize) -> Result<(), EngineError> {
    let whole = |key: &str| match header.metadata.get(key) {
        Some(Value::Whole(n)) => Some(*n as usize),
        _ => None,
    };
    match (whole("split.count").unwrap_or(1).max(1), whole("split.no").unwrap_or(0)) {
        (here, no) if here == count && no == number => Ok(()),
        (here, no) => Err(broken(
            path,
            format!("is part {} of {here} by its metadata, part {} of {count} by its name", no + 1, number + 1),
        )),
    }
}

fn broken(file: &Path, what: String) -> EngineError {
    let help = "name the parts of a split GGUF as llama.cpp does, NAME-00001-of-00003.gguf, all in one folder";
    EngineError::File { file: file.to_path_buf(), what, help: help.into() }
}

/// The tensors that a model may have, under Hugging Face's names.
fn entries(header: &Header, shard: usize) -> Vec<(String, Entry)> {
    let known = header.tensors.iter().filter_map(|info| Some((names::hugging_face(&info.name)?, info)));
    known
        .map(|(name, info)| {
            let entry = Entry {
                shard,
                stored: Some(info.name.clone()),
                dtype: info.dtype.clone(),
                kind: info.kind,
                shape: info.shape.clone(),
                start: info.start,
                len: info.len,
            };
            (name, entry)
        })
        .collect()
}

/// Adds the head from a safetensors file beside the GGUF, if the GGUF has none.
fn add_head(file: &Path, weights: &mut Weights) -> Result<(), EngineError> {
    if weights.has("score.weight") {
        return Ok(());
    }
    for name in HEADS {
        let path = file.with_file_name(name);
        if path.is_file() {
            let mut beside = Weights::empty(&path);
            beside.add_safetensors(Shard::open(&path, "the reward head of the GGUF beside it")?)?;
            if weights.adopt(beside, "score.") {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
