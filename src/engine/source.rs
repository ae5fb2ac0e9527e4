//! Where a critic's parts are: a model folder of Hugging Face, or a GGUF file.

use std::path::{Path, PathBuf};

use super::error::EngineError;
use super::gguf::{Gguf, Metadata, split_name};
use super::help;
use super::weights::Weights;

/// The parts of a checkpoint, opened.
#[derive(Debug)]
pub(super) struct Source {
    /// Its config.json.
    pub(super) config: Vec<u8>,
    /// The file that says so, for messages.
    pub(super) config_file: PathBuf,
    /// Its tensors.
    pub(super) weights: Weights,
    /// Where its tokenizer is.
    pub(super) tokenizer: TokenizerAt,
}

/// Where a tokenizer is.
#[derive(Debug)]
pub(super) enum TokenizerAt {
    /// In a tokenizer.json.
    File(PathBuf),
    /// In the metadata of a GGUF file.
    Gguf(Box<Metadata>),
}

impl TokenizerAt {
    /// Its tokenizer.json, and the file that it is from.
    pub(super) fn read(&self) -> Result<(Vec<u8>, &Path), EngineError> {
        match self {
            Self::File(file) => match std::fs::read(file) {
                Ok(bytes) => Ok((bytes, file)),
                Err(error) => Err(EngineError::io(file, &error, help::FOLDER)),
            },
            Self::Gguf(metadata) => Ok((metadata.tokenizer_json()?, metadata.file())),
        }
    }
}

impl Source {
    /// Opens a folder with config.json and safetensors, a folder with a GGUF file, or a GGUF file.
    pub(super) fn open(path: &Path) -> Result<Self, EngineError> {
        match gguf_file(path)? {
            Some(file) => Self::gguf(&file),
            None => Self::folder(path),
        }
    }

    fn folder(folder: &Path) -> Result<Self, EngineError> {
        if !folder.is_dir() {
            let what = if folder.exists() { "is a file, not a folder" } else { "no such folder" };
            return Err(EngineError::File { file: folder.to_path_buf(), what: what.into(), help: help::FOLDER.into() });
        }
        let config_file = folder.join("config.json");
        let config = std::fs::read(&config_file).map_err(|e| EngineError::io(&config_file, &e, help::FOLDER))?;
        let tokenizer = TokenizerAt::File(folder.join("tokenizer.json"));
        Ok(Self { config, config_file, weights: Weights::open(folder)?, tokenizer })
    }

    fn gguf(file: &Path) -> Result<Self, EngineError> {
        let gguf = Gguf::open(file)?;
        let beside = file.with_file_name("tokenizer.json");
        let tokenizer =
            if beside.is_file() { TokenizerAt::File(beside) } else { TokenizerAt::Gguf(Box::new(gguf.metadata)) };
        Ok(Self { config: gguf.config, config_file: file.to_path_buf(), weights: gguf.weights, tokenizer })
    }
}

/// The folder that may have a profile.toml for a critic at `path`.
pub(super) fn folder_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(path) }
}

/// Is this the name of a GGUF file?
pub(super) fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf"))
}

/// The GGUF file that is meant: the path itself, or the only one of a folder that has no safetensors model.
fn gguf_file(path: &Path) -> Result<Option<PathBuf>, EngineError> {
    if !path.is_dir() {
        return Ok(is_gguf(path).then(|| path.to_path_buf()));
    }
    let model = ["model.safetensors", "model.safetensors.index.json"];
    if path.join("config.json").is_file() && model.iter().any(|name| path.join(name).is_file()) {
        return Ok(None);
    }
    let list = std::fs::read_dir(path).map_err(|e| EngineError::io(path, &e, help::FOLDER))?;
    let mut files: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| is_gguf(p)).collect();
    files.sort();
    // The parts of a split file are one.
    files.dedup_by_key(|file| {
        let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        split_name(&name).map_or(name.clone(), |(stem, _)| stem.to_string())
    });
    match files.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        [one, .., last] => Err(EngineError::File {
            file: path.to_path_buf(),
            what: format!("{} GGUF files, from {} to {}", files.len(), name(one), name(last)),
            help: "name the file instead of the folder".into(),
        }),
    }
}

fn name(file: &Path) -> String {
    file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}
