//! The tokenizer in a GGUF file, as the tokenizer.json it was made from.
//!
//! The file has tokens, their kinds and the merges, but not how text is split before: only a name for that, `qwen2`
//! for all models of these families. Written as JSON so that one reader makes both kinds of tokenizer.

use std::collections::HashSet;

use serde_json::{Map, Value as Json, json};

use super::super::error::EngineError;
use super::config::Metadata;
use super::header::Value;

/// How Qwen2, Qwen2.5 and Qwen3 split text before the merges.
const QWEN2_SPLIT: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// What to do when the tokenizer in the file cannot be used.
const BESIDE: &str = "put the model's own tokenizer.json beside the file";

/// Kinds of tokens, by llama.cpp's numbers.
const NORMAL: i64 = 1;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
const UNUSED: i64 = 5;

/// The tokenizer.json of the model in a file.
pub(super) fn tokenizer_json(meta: &Metadata) -> Result<Vec<u8>, EngineError> {
    let expect = |key: &str, wanted: &str| match meta.text(key)? {
        Some(found) if found == wanted => Ok(()),
        found => Err(wrong(meta, &format!("`{key}` is {:?}, expected {wanted:?}", found.unwrap_or("missing")))),
    };
    expect("tokenizer.ggml.model", "gpt2")?;
    expect("tokenizer.ggml.pre", "qwen2")?;
    let tokens = texts(meta, "tokenizer.ggml.tokens")?;
    let merges = texts(meta, "tokenizer.ggml.merges")?;
    let kinds = match meta.get("tokenizer.ggml.token_type") {
        Some(Value::Wholes(kinds)) if kinds.len() == tokens.len() => kinds,
        _ => return Err(wrong(meta, "`tokenizer.ggml.token_type`: expected a number for every token")),
    };
    let (mut vocab, mut added) = (Map::new(), Vec::new());
    for (id, (token, kind)) in tokens.iter().zip(kinds).enumerate() {
        match *kind {
            // Rows that only fill the embedding up.
            UNUSED => {}
            CONTROL | USER_DEFINED => added.push(json!({
                "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": *kind == CONTROL,
            })),
            NORMAL => {
                vocab.insert(token.clone(), id.into());
            }
            other => {
                return Err(wrong(meta, &format!("token {id} {token:?} is of kind {other}, expected 1, 3, 4 or 5")));
            }
        }
    }
    let known: HashSet<&str> = vocab.keys().map(String::as_str).collect();
    if let Some(merge) = merges.iter().find(|merge| !is_merge(merge, &known)) {
        return Err(wrong(meta, &format!("merge {merge:?} is not of two tokens that make a third")));
    }
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let split = json!({"type": "Split", "pattern": {"Regex": QWEN2_SPLIT}, "behavior": "Isolated", "invert": false});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": level, "decoder": level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": Json::Object(vocab), "merges": merges,
        },
    });
    Ok(tokenizer.to_string().into_bytes())
}

/// Two known tokens with a space between, which together are a known token.
fn is_merge(merge: &str, known: &HashSet<&str>) -> bool {
    merge
        .split_once(' ')
        .is_some_and(|(a, b)| known.contains(a) && known.contains(b) && known.contains([a, b].concat().as_str()))
}

fn texts<'a>(meta: &'a Metadata, key: &str) -> Result<&'a [String], EngineError> {
    match meta.get(key) {
        Some(Value::Texts(texts)) => Ok(texts),
        // An empty list has no type worth the name.
        Some(Value::Wholes(none)) if none.is_empty() => Ok(&[]),
        Some(_) => Err(wrong(meta, &format!("`{key}` is not a list of texts"))),
        None => Err(wrong(meta, &format!("`{key}` is missing"))),
    }
}

fn wrong(meta: &Metadata, what: &str) -> EngineError {
    EngineError::Tokenizer { file: meta.file().to_path_buf(), what: format!("tokenizer: {what}"), help: BESIDE.into() }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
