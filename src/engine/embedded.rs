//! The small critic built into the program: a Hugging Face folder like any other, only its bytes are in the binary.

use super::{EngineError, EngineOptions};
use crate::critic::Critic;

/// Opens it, through the same code as a folder.
#[cfg(feature = "embedded-critic")]
pub(super) fn open(options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    use std::path::Path;

    use super::{Identity, Model, assemble};
    use crate::critic::Profile;

    // STAND-IN until assets/critic-mini is there: random weights, whose rewards mean nothing.
    let name = Path::new("tests/fixtures/engine/qwen2-token-1-newrope");
    let config = include_bytes!("../../tests/fixtures/engine/qwen2-token-1-newrope/config.json");
    let weights = include_bytes!("../../tests/fixtures/engine/qwen2-token-1-newrope/model.safetensors");
    let tokenizer = include_bytes!("../../tests/fixtures/engine/qwen2-token-1/tokenizer.json");
    let profile = include_str!("../../assets/critic-mini/profile.toml");
    let own = || Profile::parse(profile, "embedded profile.toml").map_err(|e| EngineError::Profile(e.to_string()));
    let profile = options.profile.clone().map_or_else(own, Ok)?;
    let model = Model::from_memory(config, weights, name, options)?;
    let identity =
        Identity { id: "random-stand-in".into(), note: Some("random weights: means nothing".into()), path: None };
    assemble(model, (tokenizer, &name.join("tokenizer.json")), profile, identity, options)
}

/// Says that it was left out.
#[cfg(not(feature = "embedded-critic"))]
pub(super) fn open(_options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    Err(EngineError::NoEmbedded)
}
