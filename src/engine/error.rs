//! Why a critic could not be opened: always one line that names the file, the place, what was expected and what to do.

use std::path::{Path, PathBuf};

/// A critic that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// A file of the model folder cannot be read.
    #[error("{file}: {what}; {help}", file = .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What happened.
        what: String,
        /// What to do.
        help: String,
    },
    /// A key of config.json is missing or has a value that makes no sense.
    #[error("{file}: key `{key}`: expected {expected}, found {found}", file = .file.display())]
    Config {
        /// The config.json.
        file: PathBuf,
        /// The key, dots for nesting.
        key: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The model is well formed but of a kind this engine does not run.
    #[error("{file}: not supported: {what}; {help}", file = .file.display())]
    Unsupported {
        /// The file that says so.
        file: PathBuf,
        /// What is not supported.
        what: String,
        /// What to do.
        help: String,
    },
    /// A tensor is missing, has another shape, or a type the engine cannot read.
    #[error("{file}: tensor `{tensor}`: expected {expected}, found {found}; {help}", file = .file.display())]
    Tensor {
        /// The file (or the folder, when no file has the tensor).
        file: PathBuf,
        /// Its name.
        tensor: String,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
        /// What to do.
        help: String,
    },
    /// The tokenizer cannot be read or does not belong to the model.
    #[error("{file}: {what}; {help}", file = .file.display())]
    Tokenizer {
        /// The tokenizer.json.
        file: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        help: String,
    },
    /// The profile cannot be read, or asks for something the engine or the model does not have.
    #[error("{0}")]
    Profile(String),
    /// The wanted device is not there.
    #[error("device: {0}")]
    Device(String),
    /// The model was loaded but cannot be run.
    #[error("the model does not run: {0}")]
    Run(String),
    /// The program was built without the small critic.
    #[error(
        "this trajscope was built without the embedded critic; give a model folder with --critic DIR, \
         or build with `--features embedded-critic`"
    )]
    NoEmbedded,
}

impl EngineError {
    /// A file that cannot be read, with the system's own words.
    pub(super) fn io(file: &Path, error: &std::io::Error, help: &str) -> Self {
        Self::File { file: file.to_path_buf(), what: error.to_string(), help: help.to_string() }
    }
}
