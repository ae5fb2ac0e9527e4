//! The small critic built into the program.

use super::{EngineError, EngineOptions};
use crate::critic::Critic;

/// Opens it; goes through the same code as a folder.
#[cfg(not(feature = "embedded-critic"))]
pub(super) fn open(_options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    Err(EngineError::NoEmbedded)
}

#[cfg(feature = "embedded-critic")]
pub(super) fn open(_options: &EngineOptions) -> Result<Box<dyn Critic>, EngineError> {
    Err(EngineError::NoEmbedded)
}
