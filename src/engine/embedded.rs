//! The small critic built into the program: a Hugging Face folder like any other, only its bytes are in the binary.

#[cfg(feature = "embedded-critic")]
use std::path::Path;

use super::{EngineError, EngineOptions, Model};
use crate::critic::Critic;

#[cfg(feature = "embedded-critic")]
mod files {
    pub(super) const NAME: &str = "assets/critic-mini";
    pub(super) const CONFIG: &[u8] = include_bytes!("../../assets/critic-mini/config.json");
    pub(super) const WEIGHTS: &[u8] = include_bytes!("../../assets/critic-mini/model.safetensors");
    pub(super) const TOKENIZER: &[u8] = include_bytes!("../../assets/critic-mini/tokenizer.json");
    pub(super) const PROFILE: &str = include_str!("../../assets/critic-mini/profile.toml");
}

/// Its model alone.
#[cfg(feature = "embedded-critic")]
pub(super) fn model(options: &EngineOptions) -> Result<Model, EngineError> {
    Model::from_memory(files::CONFIG, files::WEIGHTS, Path::new(files::NAME), options)
}

/// Opens it, through the same code as a folder.
#[cfg(feature = "embedded-critic")]
pub(super) fn open(options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    use super::{Identity, assemble};
    use crate::critic::Profile;

    let own =
        || Profile::parse(files::PROFILE, "embedded profile.toml").map_err(|e| EngineError::Profile(e.to_string()));
    let profile = options.profile.clone().map_or_else(own, Ok)?;
    let model = model(options)?;
    let note = "the small embedded critic, version 0: a weak guess from the course of events".into();
    let identity = Identity { id: "critic-mini".into(), note: Some(note), path: None };
    let tokenizer = Path::new(files::NAME).join("tokenizer.json");
    assemble(model, (files::TOKENIZER, &tokenizer), profile, identity, options)
}

/// Says that it was left out.
#[cfg(not(feature = "embedded-critic"))]
pub(super) fn model(_options: &EngineOptions) -> Result<Model, EngineError> {
    Err(EngineError::NoEmbedded)
}

/// Says that it was left out.
#[cfg(not(feature = "embedded-critic"))]
pub(super) fn open(_options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    Err(EngineError::NoEmbedded)
}
