//! Text from a language model: one id after another, on the same cache that scoring uses.

use super::model::{Model, PassError};
use super::sample::{Sampling, pick};

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// This id of `stop_ids` came (it is not among the generated ones).
    Stop(u32),
    /// `max_tokens` were made, or the model's longest text is full.
    Length,
    /// It was told to stop.
    Cancelled,
}

/// What was generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The new ids, without those of the prompt.
    pub ids: Vec<u32>,
    /// Why it ended.
    pub ended: Ended,
}

impl Model {
    /// Continues `ids` (at least one) token by token. `on_token` gets every id as soon as it is chosen; `stop` is
    /// asked before every layer. What the cache holds of the same beginning is not computed again, and what is
    /// generated stays in the cache. From the same cache the same call gives the same ids; a beginning that was computed
    /// in other pieces may change the last bit of a logit.
    ///
    /// # Errors
    /// Not a language model, an impossible id or setting, or a failed pass: one line.
    pub fn generate(
        &mut self,
        ids: &[u32],
        sampling: &Sampling,
        stop: &(dyn Fn() -> bool + Sync),
        on_token: &mut dyn FnMut(u32),
    ) -> Result<Generation, String> {
        if !self.is_language() {
            return Err(format!("{}: only a language model can generate", self.config().class));
        }
        sampling.check()?;
        let room = self.config().longest_text().saturating_sub(ids.len());
        let most = sampling.max_tokens.min(room);
        let mut random = sampling.random();
        let mut text = ids.to_vec();
        let made = |text: &[u32], ended| Ok(Generation { ids: text[ids.len()..].to_vec(), ended });
        while text.len() < ids.len() + most {
            let logits = match self.next_logits(&text, stop) {
                Ok(logits) => logits,
                Err(PassError::Stopped) => return made(&text, Ended::Cancelled),
                Err(PassError::Failed(what)) => return Err(what),
            };
            let id = pick(&logits, sampling, &mut random)
                .ok_or("the model's outputs are not numbers: are the weights sound?")?;
            if sampling.stop_ids.contains(&id) {
                return made(&text, Ended::Stop(id));
            }
            text.push(id);
            on_token(id);
        }
        made(&text, Ended::Length)
    }
}
