//! The small critic built into the program: a Hugging Face folder like any other, only its bytes are in the binary.

use super::{EngineError, EngineOptions};
use crate::critic::Critic;

/// Opens it, through the same code as a folder.
#[cfg(feature = "embedded-critic")]
pub(super) fn open(options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    use std::path::Path;

    use super::{Identity, Model, assemble};
    use crate::critic::Profile;

    let name = Path::new("assets/critic-mini");
    let config = include_bytes!("../../assets/critic-mini/config.json");
    let weights = include_bytes!("../../assets/critic-mini/model.safetensors");
    let tokenizer = include_bytes!("../../assets/critic-mini/tokenizer.json");
    let profile = include_str!("../../assets/critic-mini/profile.toml");
    let own = || Profile::parse(profile, "embedded profile.toml").map_err(|e| EngineError::Profile(e.to_string()));
    let profile = options.profile.clone().map_or_else(own, Ok)?;
    let model = Model::from_memory(config, weights, name, options)?;
    let note = "the small embedded critic, version 0: a weak guess from the course of events".into();
    let identity = Identity { id: "critic-mini".into(), note: Some(note), path: None };
    assemble(model, (tokenizer, &name.join("tokenizer.json")), profile, identity, options)
}

/// Says that it was left out.
#[cfg(not(feature = "embedded-critic"))]
pub(super) fn open(_options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    Err(EngineError::NoEmbedded)
}
