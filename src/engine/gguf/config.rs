//! What a GGUF file's metadata says of the model, as the config.json it was made from.
//!
//! Written as JSON so that both kinds of checkpoint go through one reader with one set of checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::super::error::EngineError;
use super::header::Value;
use super::tokens::tokenizer_json;

/// Metadata of a file, with its path for messages.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Metadata {
    values: BTreeMap<String, Value>,
    file: PathBuf,
}

/// What the tensors say that the metadata does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// Rows of the embedding.
    pub(super) vocab: usize,
    /// Is there a reward head, in the file or beside it?
    pub(super) head: bool,
    /// Is there a matrix of its own for the language model's head?
    pub(super) untied: bool,
    /// Have the projections of attention biases?
    pub(super) biases: bool,
}

/// The config.json of the model in a file.
fn config_json(meta: &Metadata, found: Found) -> Result<Json, EngineError> {
    let arch = match meta.text("general.architecture")? {
        Some(arch @ ("qwen2" | "qwen3")) => arch,
        Some(other) => {
            return Err(meta.unsupported(format!("architecture `{other}`"), "this version runs qwen2 and qwen3"));
        }
        None => return Err(meta.wrong("general.architecture", "qwen2 or qwen3", "nothing")),
    };
    let key = |name: &str| format!("{arch}.{name}");
    let (hidden, heads) = (meta.needed(&key("embedding_length"))?, meta.needed(&key("attention.head_count"))?);
    let width = meta.whole(&key("attention.key_length"))?.unwrap_or(hidden / heads.max(1));
    for name in ["attention.value_length", "rope.dimension_count"] {
        if let Some(other) = meta.whole(&key(name))?.filter(|n| *n != width) {
            return Err(meta.wrong(&key(name), &format!("the width of a head, {width}"), &other.to_string()));
        }
    }
    let context = meta.needed(&key("context_length"))?;
    if let Some(window) = meta.whole(&key("attention.sliding_window"))?.filter(|n| (1..context).contains(n)) {
        return Err(
            meta.unsupported(format!("sliding attention over {window} tokens"), "use a model with full attention")
        );
    }
    let family = if arch == "qwen2" { "Qwen2" } else { "Qwen3" };
    // 4 = llama.cpp's name for "the head's output at the last token".
    let task = match (found.head, meta.whole(&key("pooling_type"))?) {
        (true, Some(4)) => "SequenceClassification",
        (true, _) => "TokenClassification",
        (false, _) => "CausalLM",
    };
    let mut config = json!({
        "architectures": [format!("{family}For{task}")],
        "model_type": arch,
        "hidden_act": "silu",
        "vocab_size": found.vocab,
        "hidden_size": hidden,
        "intermediate_size": meta.needed(&key("feed_forward_length"))?,
        "num_hidden_layers": meta.needed(&key("block_count"))?,
        "num_attention_heads": heads,
        "num_key_value_heads": meta.whole(&key("attention.head_count_kv"))?.unwrap_or(heads),
        "head_dim": width,
        "rms_norm_eps": meta.float(&key("attention.layer_norm_rms_epsilon"))?,
        "rope_theta": meta.float(&key("rope.freq_base"))?.unwrap_or(10_000.0),
        "max_position_embeddings": context,
        "tie_word_embeddings": !found.untied,
        "use_sliding_window": false,
    });
    if arch == "qwen3" && found.biases {
        config["attention_bias"] = true.into();
    }
    if let Some(end) = meta.whole("tokenizer.ggml.eos_token_id")? {
        config["eos_token_id"] = end.into();
    }
    if let Some(scaling) = rope_scaling(meta, arch)? {
        config["rope_scaling"] = scaling;
    }
    if let Some(Value::Texts(labels)) = meta.get(&key("classifier.output_labels")) {
        let named: Map<String, Json> =
            labels.iter().enumerate().map(|(i, label)| (i.to_string(), Json::from(label.as_str()))).collect();
        config["id2label"] = Json::Object(named);
    }
    Ok(config)
}

/// `rope_scaling` as transformers would have it; `None` = not stretched.
fn rope_scaling(meta: &Metadata, arch: &str) -> Result<Option<Json>, EngineError> {
    let key = |name: &str| format!("{arch}.rope.scaling.{name}");
    let kind = match meta.text(&key("type"))? {
        None | Some("none") => return Ok(None),
        Some(kind @ ("linear" | "yarn")) => kind,
        Some(other) => {
            let what = format!("rope scaling `{other}`");
            return Err(meta.unsupported(what, "use a file with linear or YaRN scaling, or none"));
        }
    };
    let Some(factor) = meta.float(&key("factor"))? else {
        return Err(meta.wrong(&key("factor"), "a number", "nothing"));
    };
    let mut scaling = json!({"rope_type": kind, "factor": factor});
    // llama.cpp multiplies these into YaRN's own attention factor, in ways that changed between versions.
    for (name, usual) in
        [("attn_factor", 1.0), ("yarn_attn_factor", 1.0), ("yarn_ext_factor", 1.0), ("yarn_log_multiplier", 0.0)]
    {
        if let Some(value) = meta.float(&key(name))?.filter(|x| (x - usual).abs() > 1e-6) {
            let what = format!("`{}` = {value}", key(name));
            return Err(meta.unsupported(what, "use a file whose scaling is described by its factor alone"));
        }
    }
    let keys = [
        ("original_context_length", "original_max_position_embeddings"),
        ("yarn_beta_fast", "beta_fast"),
        ("yarn_beta_slow", "beta_slow"),
    ];
    for (ours, theirs) in keys {
        if let Some(value) = meta.float(&key(ours))? {
            scaling[theirs] = if value.fract() == 0.0 { Json::from(value as i64) } else { Json::from(value) };
        }
    }
    Ok(Some(scaling))
}

impl Metadata {
    /// Of this file.
    pub(super) fn new(values: BTreeMap<String, Value>, file: &Path) -> Self {
        Self { values, file: file.to_path_buf() }
    }

    /// The config.json of the model.
    pub(super) fn config_json(&self, found: Found) -> Result<Json, EngineError> {
        config_json(self, found)
    }

    /// The tokenizer.json of the model.
    pub(in crate::engine) fn tokenizer_json(&self) -> Result<Vec<u8>, EngineError> {
        tokenizer_json(self)
    }

    /// The file.
    pub(in crate::engine) fn file(&self) -> &Path {
        &self.file
    }

    /// A value, if it is there.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// A text, if it is there.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, EngineError> {
        match self.values.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text", "something else")),
        }
    }

    /// A whole number that is not negative, if it is there.
    pub(super) fn whole(&self, key: &str) -> Result<Option<u64>, EngineError> {
        match self.values.get(key) {
            None => Ok(None),
            Some(Value::Whole(n)) => u64::try_from(*n)
                .map(Some)
                .map_err(|_negative| self.wrong(key, "a whole number of 0 or more", &n.to_string())),
            Some(_) => Err(self.wrong(key, "a whole number", "something else")),
        }
    }

    fn needed(&self, key: &str) -> Result<u64, EngineError> {
        match self.whole(key)? {
            Some(n) if n > 0 => Ok(n),
            Some(n) => Err(self.wrong(key, "a positive whole number", &n.to_string())),
            None => Err(self.wrong(key, "a positive whole number", "nothing")),
        }
    }

    /// A number. Files have f32: the shortest decimal that means the same is what config.json had (1e-6, not
    /// 9.99999997475e-7).
    fn float(&self, key: &str) -> Result<Option<f64>, EngineError> {
        match self.values.get(key) {
            None => Ok(None),
            Some(Value::Float(x)) => Ok(Some((*x as f32).to_string().parse().unwrap_or(*x))),
            Some(Value::Whole(n)) => Ok(Some(*n as f64)),
            Some(_) => Err(self.wrong(key, "a number", "something else")),
        }
    }

    /// A key that is missing or makes no sense.
    pub(super) fn wrong(&self, key: &str, expected: &str, found: &str) -> EngineError {
        EngineError::Config { file: self.file.clone(), key: key.into(), expected: expected.into(), found: found.into() }
    }

    /// Something well formed that is not run.
    pub(super) fn unsupported(&self, what: String, help: &str) -> EngineError {
        EngineError::Unsupported { file: self.file.clone(), what, help: help.into() }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
