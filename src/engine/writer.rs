//! A language model with its tokenizer: text in, text out, piece by piece.

use std::path::Path;

use serde_json::Value;

use super::EngineOptions;
use super::error::EngineError;
use super::generate::Generation;
use super::model::Model;
use super::sample::Sampling;
use super::source::{Source, folder_of};
use super::tokens::TextTokenizer;

/// A language model that writes.
#[derive(Debug)]
pub struct Writer {
    model: Model,
    tokenizer: TextTokenizer,
    /// Ids that end an answer, as generation_config.json or config.json say.
    stop_ids: Vec<u32>,
}

/// A finished answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The text, special tokens left out: what `on_text` got, piece by piece.
    pub text: String,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// The ids behind the text, and why they end.
    pub generation: Generation,
}

impl Writer {
    /// Opens a language model: a Hugging Face folder with a `ForCausalLM`, or a GGUF file.
    ///
    /// # Errors
    /// One line that names the file, what was expected and what to do.
    pub fn open(path: &Path, options: &EngineOptions) -> Result<Self, EngineError> {
        let source = Source::open(path)?;
        let stop_ids = stop_ids(path, (&source.config, &source.config_file))?;
        let tokenizer = source.tokenizer;
        let model = Model::load_from((source.config, &source.config_file), source.weights, options)?;
        if !model.is_language() {
            return Err(EngineError::Unsupported {
                file: source.config_file,
                what: format!("writing with a {}", model.config().class),
                help: "give a language model (Qwen2ForCausalLM or Qwen3ForCausalLM)".into(),
            });
        }
        let (tokenizer, file) = tokenizer.read()?;
        let tokenizer = TextTokenizer::from_bytes(&tokenizer, file)?;
        tokenizer.check_fits(model.config().vocab_size)?;
        Ok(Self { model, tokenizer, stop_ids })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Ids that end an answer, as the model's own files say.
    pub fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    /// Continues `prompt`, special tokens written out (`<|im_start|>`), until one of [`Self::stop_ids`] or of
    /// `sampling.stop_ids`. `on_text` gets the answer piece by piece: whole characters only. A prompt that begins as
    /// the last one did is not computed again where it is equal. `stop` is asked before every layer.
    ///
    /// # Errors
    /// The prompt has no tokens or too many, or a setting makes no sense: one line.
    pub fn complete(
        &mut self,
        prompt: &str,
        sampling: &Sampling,
        stop: &(dyn Fn() -> bool + Sync),
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Written, String> {
        let ids = self.tokenizer.encode(prompt)?.ids;
        let longest = self.model.config().longest_text();
        if ids.len() >= longest {
            return Err(format!("the prompt has {} tokens, the model takes {longest} with its answer", ids.len()));
        }
        let mut sampling = sampling.clone();
        sampling.stop_ids.extend_from_slice(&self.stop_ids);
        let mut pieces = Pieces::new(&self.tokenizer);
        let mut problem = None;
        let generation = self.model.generate(&ids, &sampling, stop, &mut |id| match pieces.push(id) {
            Ok(Some(piece)) => on_text(&piece),
            Ok(None) => {}
            Err(what) => problem = Some(what),
        })?;
        let rest = pieces.rest()?;
        if !rest.is_empty() {
            on_text(&rest);
        }
        match problem {
            Some(what) => Err(what),
            None => Ok(Written { text: pieces.text, prompt_tokens: ids.len(), generation }),
        }
    }
}

/// Ids to text as they come: a character whose bytes are spread over several ids waits for the last of them.
#[derive(Debug)]
struct Pieces<'a> {
    tokenizer: &'a TextTokenizer,
    ids: Vec<u32>,
    /// The ids before `done` are in `text`; those from `from` on are decoded again with new ones, because some
    /// tokenizers write a token differently at the beginning of a text.
    from: usize,
    done: usize,
    text: String,
}

impl<'a> Pieces<'a> {
    fn new(tokenizer: &'a TextTokenizer) -> Self {
        Self { tokenizer, ids: Vec::new(), from: 0, done: 0, text: String::new() }
    }

    /// The text that is complete with this id, if any is.
    fn push(&mut self, id: u32) -> Result<Option<String>, String> {
        self.ids.push(id);
        let known = self.tokenizer.decode(&self.ids[self.from..self.done])?;
        let all = self.tokenizer.decode(&self.ids[self.from..])?;
        let new = all.strip_prefix(&known).unwrap_or(&all);
        if new.is_empty() || new.ends_with(char::REPLACEMENT_CHARACTER) {
            return Ok(None);
        }
        (self.from, self.done) = (self.done, self.ids.len());
        self.text.push_str(new);
        Ok(Some(new.to_string()))
    }

    /// What is left at the end: a character that was never finished, as U+FFFD.
    fn rest(&mut self) -> Result<String, String> {
        let known = self.tokenizer.decode(&self.ids[self.from..self.done])?;
        let all = self.tokenizer.decode(&self.ids[self.from..])?;
        let new = all.strip_prefix(&known).unwrap_or(&all).to_string();
        (self.from, self.done) = (self.done, self.ids.len());
        self.text.push_str(&new);
        Ok(new)
    }
}

/// `eos_token_id` of the generation_config.json beside the weights, else of config.json: a number or a list.
fn stop_ids(path: &Path, (config, config_file): (&[u8], &Path)) -> Result<Vec<u32>, EngineError> {
    let beside = folder_of(path).join("generation_config.json");
    let own = std::fs::read(&beside).ok();
    let files = [(own.as_deref(), beside.as_path()), (Some(config), config_file)];
    for (text, file) in files.into_iter().filter_map(|(text, file)| Some((text?, file))) {
        let help = "expected the file of a Hugging Face model folder: download it anew";
        let wrong = |what: String| EngineError::File { file: file.to_path_buf(), what, help: help.into() };
        let value: Value = serde_json::from_slice(text).map_err(|e| wrong(format!("not JSON ({e})")))?;
        let ids = match value.get("eos_token_id") {
            None | Some(Value::Null) => continue,
            Some(Value::Array(list)) => list.clone(),
            Some(one) => vec![one.clone()],
        };
        let ids: Option<Vec<u32>> = ids.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect();
        return ids.ok_or_else(|| wrong("`eos_token_id`: expected a token id or a list of them".into()));
    }
    Ok(Vec::new())
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
