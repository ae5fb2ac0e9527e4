//! What is made of the last hidden state: a linear head, a head of two layers, or a language model's.

use super::config::{ModelConfig, Task};
use super::error::EngineError;
use super::model::{Model, PassError};
use super::network::{Network, Projection};
use super::tokens::TextTokenizer;
use super::weights::Weights;
use crate::critic::Profile;

/// Rows of logits that are in memory at once: at 150,000 ids 20 MB.
const LOGIT_ROWS: usize = 32;

#[derive(Debug)]
enum Kind {
    /// `score.weight`, `score.bias`.
    Linear(Projection),
    /// `score.0`, ReLU, `score.2`.
    TwoLayer(Projection, Projection),
    /// `lm_head`, or the embedding.
    Language(Projection),
}

/// A model's head.
#[derive(Debug)]
pub(super) struct Head {
    kind: Kind,
    /// Width of a hidden state.
    hidden: usize,
    /// Outputs of the last layer: labels, or ids of the vocabulary.
    width: usize,
    /// Of a language model: the ids whose probabilities are added up to one output, for every output.
    choices: Vec<Vec<u32>>,
}

impl Head {
    /// Reads the head's tensors.
    pub(super) fn load(config: &ModelConfig, weights: &mut Weights, network: &Network) -> Result<Self, EngineError> {
        let hidden = config.hidden;
        let (kind, width) = if config.task == Task::Language {
            (Kind::Language(language(config, weights, network)?), config.vocab_size)
        } else if weights.has("score.0.weight") {
            let labels = outputs(None, "score.2.weight", hidden, weights)?;
            let first = layer("score.0", hidden, hidden, weights, network)?;
            (Kind::TwoLayer(first, layer("score.2", labels, hidden, weights, network)?), labels)
        } else {
            let labels = outputs(config.num_labels, "score.weight", hidden, weights)?;
            (Kind::Linear(layer("score", labels, hidden, weights, network)?), labels)
        };
        Ok(Self { kind, hidden, width, choices: Vec::new() })
    }

    /// Numbers per read.
    pub(super) fn outputs(&self) -> usize {
        if self.is_language() { self.choices.len() } else { self.width }
    }

    /// Outputs of the last layer: labels, or ids of the vocabulary.
    pub(super) fn logit_width(&self) -> usize {
        self.width
    }

    /// Is it a language model's?
    pub(super) fn is_language(&self) -> bool {
        matches!(self.kind, Kind::Language(_))
    }

    /// Says which probabilities a language model's outputs are. The ids are below the vocabulary's size.
    pub(super) fn choose(&mut self, choices: Vec<Vec<u32>>) {
        self.choices = choices;
    }

    /// The outputs for rows of hidden states: labels, or logarithms of the chosen probabilities.
    pub(super) fn apply(&self, network: &Network, states: &[f32]) -> Result<Vec<f32>, PassError> {
        match &self.kind {
            Kind::Linear(only) => network.project(only, states),
            Kind::TwoLayer(first, second) => {
                let mut inner = network.project(first, states)?;
                for value in &mut inner {
                    // `max` would turn NaN into 0.
                    if *value < 0.0 {
                        *value = 0.0;
                    }
                }
                network.project(second, &inner)
            }
            Kind::Language(projection) => {
                let mut outputs = Vec::new();
                for rows in states.chunks(LOGIT_ROWS * self.hidden) {
                    let logits = network.project(projection, rows)?;
                    outputs
                        .extend(logits.chunks_exact(self.width).flat_map(|row| log_probabilities(row, &self.choices)));
                }
                Ok(outputs)
            }
        }
    }

    /// The outputs of the last layer for rows of hidden states: of a language model all logits.
    pub(super) fn logits(&self, network: &Network, states: &[f32]) -> Result<Vec<f32>, PassError> {
        match &self.kind {
            Kind::Language(projection) => network.project(projection, states),
            Kind::Linear(_) | Kind::TwoLayer(..) => self.apply(network, states),
        }
    }
}

/// Makes the model's outputs those the profile reads, and checks that the one it wants is among them.
pub(super) fn fit(model: &mut Model, profile: &Profile, tokenizer: &TextTokenizer) -> Result<(), EngineError> {
    let refuse = |what: String| Err(EngineError::Profile(format!("profile {}: {what}", profile.id)));
    let (tokens, class) = (&profile.head.tokens, &model.config().class);
    match (model.is_language(), tokens.is_empty()) {
        (true, true) => {
            return refuse(format!(
                "{class} is a language model, no reward head: no `score.weight`, in a GGUF file no \
                 `cls.output.weight`; beside a GGUF file the checkpoint's `score.*` tensors may lie in a \
                 score.safetensors (assets/critics/to_gguf.py makes it), or name the tokens whose probabilities are the value, \
                 [head] tokens = [\"YES\", \"NO\"]"
            ));
        }
        (false, false) => return refuse(format!("[head] tokens is for language models, this is a {class}: remove it")),
        (false, true) => {}
        (true, false) => {
            let mut choices = Vec::new();
            for token in tokens {
                let ids: Result<Vec<u32>, EngineError> =
                    token.spellings().iter().map(|text| one_token(text, profile, tokenizer)).collect();
                choices.push(ids?);
            }
            model.choose_tokens(&choices).map_err(EngineError::Profile)?;
        }
    }
    if profile.head.index >= model.labels() {
        return refuse(format!(
            "head.index is {}, the model's head has {} output(s); choose one of them (counted from 0)",
            profile.head.index,
            model.labels()
        ));
    }
    Ok(())
}

fn one_token(text: &str, profile: &Profile, tokenizer: &TextTokenizer) -> Result<u32, EngineError> {
    let encoded = tokenizer.encode(text).map_err(EngineError::Profile)?;
    match encoded.ids.as_slice() {
        [id] => Ok(*id),
        ids => Err(EngineError::Profile(format!(
            "profile {}: head.tokens: {text:?} is {} tokens of this model, expected one; choose a text that is one",
            profile.id,
            ids.len()
        ))),
    }
}

/// For every choice the logarithm of the sum of its ids' probabilities, by softmax over all logits, in f64.
fn log_probabilities(logits: &[f32], choices: &[Vec<u32>]) -> Vec<f32> {
    let whole = log_sum(logits.iter().copied());
    let chosen = |ids: &Vec<u32>| log_sum(ids.iter().filter_map(|id| logits.get(*id as usize)).copied());
    choices.iter().map(|ids| (chosen(ids) - whole) as f32).collect()
}

/// `ln(Σ eˣ)`, NaN if one is.
fn log_sum(values: impl Iterator<Item = f32> + Clone) -> f64 {
    if values.clone().any(f32::is_nan) {
        return f64::NAN;
    }
    let highest = values.clone().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
    if highest == f64::NEG_INFINITY {
        return highest;
    }
    highest + values.map(|v| (f64::from(v) - highest).exp()).sum::<f64>().ln()
}

/// The matrix of a language model's head: its own, or the embedding's if the two are tied. A file with both is
/// believed more than its config.json, as transformers does.
fn language(config: &ModelConfig, weights: &mut Weights, network: &Network) -> Result<Projection, EngineError> {
    if config.tied && !weights.has("lm_head.weight") {
        return Ok(Projection::Embedding);
    }
    let weight = weights.matrix("lm_head.weight", config.vocab_size, config.hidden)?;
    if config.tied && network.embeds_by(&weight) {
        return Ok(Projection::Embedding);
    }
    network.keep(weight, None, true)
}

/// `name.weight` and, if it is there, `name.bias`.
fn layer(
    name: &str,
    rows: usize,
    cols: usize,
    weights: &mut Weights,
    network: &Network,
) -> Result<Projection, EngineError> {
    let weight = weights.matrix(&format!("{name}.weight"), rows, cols)?;
    let bias = format!("{name}.bias");
    let bias = if weights.has(&bias) { Some(weights.vector(&bias, rows)?) } else { None };
    network.keep(weight, bias, false)
}

/// The number of outputs: what config.json says, else what the tensor's shape says.
fn outputs(said: Option<usize>, tensor: &str, hidden: usize, weights: &Weights) -> Result<usize, EngineError> {
    match (said, weights.shape(tensor)) {
        (Some(labels), _) => Ok(labels),
        (None, Some([labels, _])) if *labels > 0 => Ok(*labels),
        (None, shape) => Err(EngineError::Tensor {
            file: weights.origin().to_path_buf(),
            tensor: tensor.into(),
            expected: format!("a head of shape [labels, {hidden}]"),
            found: shape.map_or("no such tensor".into(), |s| format!("shape {s:?}")),
            help: "this checkpoint has no reward head, whatever its config.json says".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_are_those_of_softmax_and_spellings_add_up() {
        let logits = [1000.0, 1001.0, 999.0, -5.0];
        let total = 1f64 + 1f64.exp() + (-1f64).exp();
        let found = log_probabilities(&logits, &[vec![0], vec![1, 2], vec![3], vec![]]);
        assert!((f64::from(found[0]) + total.ln()).abs() < 1e-6);
        assert!((f64::from(found[1]) - ((1f64.exp() + (-1f64).exp()) / total).ln()).abs() < 1e-6);
        assert!((f64::from(found[2]) + 1005.0 + total.ln()).abs() < 1e-3);
        assert!(found[3].is_infinite() && found[3] < 0.0, "no spelling, no probability");
        assert!(log_probabilities(&[1.0, f32::NAN], &[vec![0]])[0].is_nan());
    }
}
