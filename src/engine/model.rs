//! A loaded checkpoint, whatever it runs on: token ids in, the head's outputs out.

use std::path::Path;

use super::config::ModelConfig;
use super::device::{Place, fallen_back, find, lacks_room};
use super::error::EngineError;
use super::head::Head;
use super::network::Network;
use super::prefix::Prefixes;
use super::source::Source;
use super::weights::Weights;
use super::{DeviceChoice, EngineOptions};

/// Largest chunk of the forward pass, and the first one, which is small so that the first values come soon.
const CHUNK: usize = 512;
const FIRST_CHUNK: usize = 128;

/// How a text is split for the forward pass. Ends of chunks are fixed places in the text, never relative to where a
/// pass began: then a pass that reuses a cached beginning computes the same products as one that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chunks {
    /// 128 tokens, then up to each multiple of 512.
    #[default]
    Growing,
    /// Up to each multiple of this many tokens (0 counts as 1).
    Every(usize),
    /// Everything at once.
    Whole,
}

impl Chunks {
    /// Where the chunk that begins at `start` ends in a text of `len` tokens.
    fn end(self, start: usize, len: usize) -> usize {
        let end = match self {
            Self::Whole => len,
            Self::Growing if start < FIRST_CHUNK => FIRST_CHUNK,
            Self::Growing => (start + 1).next_multiple_of(CHUNK),
            Self::Every(size) => (start + 1).next_multiple_of(size.max(1)),
        };
        end.min(len)
    }

    /// The last end of a chunk at or before `at`.
    fn floor(self, at: usize) -> usize {
        match self {
            Self::Growing if at >= CHUNK => at / CHUNK * CHUNK,
            Self::Growing if at >= FIRST_CHUNK => FIRST_CHUNK,
            Self::Growing | Self::Whole => 0,
            Self::Every(size) => at / size.max(1) * size.max(1),
        }
    }
}

/// Why a pass gave no values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PassError {
    /// It was told to stop.
    Stopped,
    /// It failed: one line.
    Failed(String),
}

/// A checkpoint ready to run.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    network: Network,
    head: Head,
    /// Hash of config.json and of all tensors.
    hash: blake3::Hash,
    /// The text in the cache, and beginnings of others.
    prefixes: Prefixes<Vec<f32>>,
    /// Tokens that went through the network so far.
    computed: u64,
    /// Values that are asked for next.
    ready: Vec<Ready>,
    chunks: Chunks,
    note: Option<String>,
}

impl Model {
    /// Loads config and weights of a Hugging Face model folder or of a GGUF file.
    pub fn open(path: &Path, options: &EngineOptions) -> Result<Self, EngineError> {
        let source = Source::open(path)?;
        Self::load_from((source.config, &source.config_file), source.weights, options)
    }

    /// Loads a checkpoint that is open: the text of its config.json with the file that it is from, and its weights.
    pub(super) fn load_from(
        (text, file): (Vec<u8>, &Path),
        mut weights: Weights,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        let config = ModelConfig::parse(&text, file)?;
        let (place, note) = Self::place(&config, &mut weights, options)?;
        Self::load(config, &text, weights, place, options).map(|model| Self { note, ..model })
    }

    /// Loads a checkpoint built into the program.
    pub(super) fn from_memory(
        config: &[u8],
        weights: &'static [u8],
        name: &Path,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        let parsed = ModelConfig::parse(config, &name.join("config.json"))?;
        let mut weights = Weights::from_memory(weights.into(), &name.join("model.safetensors"))?;
        let (place, note) = Self::place(&parsed, &mut weights, options)?;
        Self::load(parsed, config, weights, place, options).map(|model| Self { note, ..model })
    }

    /// The wanted place; where it is the program's choice and has no room for the model, the CPU, with a note.
    fn place(
        config: &ModelConfig,
        weights: &mut Weights,
        options: &EngineOptions,
    ) -> Result<(Place, Option<String>), EngineError> {
        let (place, note) = find(options.device)?;
        if let (DeviceChoice::Auto, Place::Candle(device, name)) = (options.device, &place)
            && let Some(why) = lacks_room(config, weights, options.dtype, device)
        {
            return Ok((Place::Cpu, Some(fallen_back(&format!("{name} {why}")))));
        }
        Ok((place, note))
    }

    /// Loads a checkpoint to a place.
    pub(super) fn load(
        config: ModelConfig,
        text: &[u8],
        mut weights: Weights,
        place: Place,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        let network = Network::load(&config, &mut weights, place, options)?;
        let head = Head::load(&config, &mut weights, &network)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(text).update(weights.hash().as_bytes());
        let hash = hasher.finalize();
        let (prefixes, chunks) = (Prefixes::new(options.prefix_bytes()), network.chunks());
        Ok(Self { config, network, head, hash, prefixes, computed: 0, ready: Vec::new(), chunks, note: None })
    }

    /// What config.json says.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Numbers per read: the outputs of the head, or the probabilities chosen with [`Model::choose_tokens`].
    pub fn labels(&self) -> usize {
        self.head.outputs()
    }

    /// Is it a language model? Then [`Model::choose_tokens`] says what its values are.
    pub fn is_language(&self) -> bool {
        self.head.is_language()
    }

    /// Makes a language model's values the logarithms of probabilities of the next token: one number for every
    /// choice, of the sum of its ids' probabilities among all the vocabulary.
    ///
    /// # Errors
    /// Not a language model, or an id beyond its vocabulary: one line.
    pub fn choose_tokens(&mut self, choices: &[Vec<u32>]) -> Result<(), String> {
        if !self.is_language() {
            return Err(format!(
                "{}: its values are the outputs of its head, no tokens can be chosen",
                self.config.class
            ));
        }
        let rows = self.config.vocab_size;
        if let Some(id) = choices.iter().flatten().find(|id| **id as usize >= rows) {
            return Err(format!("token id {id}: the vocabulary has {rows}"));
        }
        self.head.choose(choices.to_vec());
        self.prefixes.forget_values();
        Ok(())
    }

    /// Where it runs: `"cpu"`, `"cuda:0"`, `"metal:0"`.
    pub fn device(&self) -> String {
        self.network.device()
    }

    /// Type of the weights in memory; on the CPU all arithmetic is f32 whatever this is.
    pub fn dtype(&self) -> &'static str {
        self.network.dtype()
    }

    /// Threads of the forward pass on the CPU; 1 elsewhere.
    pub fn threads(&self) -> usize {
        self.network.threads()
    }

    /// What computes attention on a device; `None` = this project's own on the CPU.
    pub(super) fn attention(&self) -> Option<&'static str> {
        self.network.attention()
    }

    /// Tokens that went through the network since the model was loaded: what was reused is not in it.
    pub fn computed(&self) -> u64 {
        self.computed
    }

    /// What should be said about the choice of device.
    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Hash of config.json and the weights.
    pub(super) fn hash(&self) -> &blake3::Hash {
        &self.hash
    }

    /// The head's outputs at every token, `labels` numbers each, computed from scratch in the given chunks.
    pub fn values(&mut self, ids: &[u32], chunks: Chunks) -> Result<Vec<f32>, String> {
        let reads: Vec<usize> = (0..ids.len()).collect();
        self.fresh(ids, &reads, Reading::Values, chunks)
    }

    /// The logits at some tokens (ascending indices into `ids`), computed from scratch in the given chunks: of a
    /// language model one number for every id of the vocabulary, of any other its head's outputs.
    pub fn logits(&mut self, ids: &[u32], at: &[usize], chunks: Chunks) -> Result<Vec<f32>, String> {
        self.fresh(ids, at, Reading::Logits, chunks)
    }

    /// The head's outputs at some tokens (ascending indices into `ids`). Of what the last call read, the same beginning
    /// is not computed again; the values are the same bits as without it.
    pub fn values_at(&mut self, ids: &[u32], at: &[usize]) -> Result<Vec<f32>, String> {
        let mut values = Vec::new();
        match self.read(ids, at, Reading::Values, &|| false, &mut |_, outputs| values.extend_from_slice(outputs)) {
            Ok(()) => Ok(values),
            Err(PassError::Stopped) => Err("stopped".into()),
            Err(PassError::Failed(what)) => Err(what),
        }
    }

    fn fresh(&mut self, ids: &[u32], at: &[usize], what: Reading, chunks: Chunks) -> Result<Vec<f32>, String> {
        let mut values = Vec::new();
        self.forget();
        let before = std::mem::replace(&mut self.chunks, chunks);
        let done = self.read(ids, at, what, &|| false, &mut |_, outputs| values.extend_from_slice(outputs));
        self.chunks = before;
        // What comes later has its own chunks.
        self.forget();
        match done {
            Ok(()) => Ok(values),
            Err(PassError::Stopped) => Err("stopped".into()),
            Err(PassError::Failed(what)) => Err(what),
        }
    }

    /// Empties the cache.
    pub fn forget(&mut self) {
        self.cut(0);
    }

    /// Reads the head's outputs at `reads` (ascending indices into `ids`); `found(i, outputs)` is called for read `i`
    /// as soon as its chunk is done. What the cache holds of the same beginning is not computed again.
    pub(super) fn run(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
        found: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), PassError> {
        if let Some(outputs) = self.take_ready(ids, reads) {
            outputs.chunks_exact(self.labels().max(1)).enumerate().for_each(|(i, row)| found(i, row));
            return Ok(());
        }
        self.read(ids, reads, Reading::Values, stop, found)
    }

    fn read(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        what: Reading,
        stop: &(dyn Fn() -> bool + Sync),
        found: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<(), PassError> {
        let Some(len) = reads.last().map(|last| last + 1) else { return Ok(()) };
        let ids = ids.get(..len).ok_or_else(|| PassError::Failed("a value beyond the last token".into()))?;
        self.check(ids)?;
        let width = self.width(what)?;
        if self.network.is_too_long(len) {
            self.forget();
            let parts = resume::parts(&self.network, self.chunks, reads, len);
            let states = self.network.by_layers(ids, &parts, stop)?;
            self.outputs(what, &states)?.chunks_exact(width).enumerate().for_each(|(i, row)| found(i, row));
            return Ok(());
        }
        let mut start = self.resume(ids, reads, what)?;
        let mut next = reads.partition_point(|r| *r < start);
        for (i, value) in reads[..next].iter().enumerate().filter_map(|(i, r)| Some((i, self.prefixes.value(*r)?))) {
            found(i, value);
        }
        while start < len {
            if stop() {
                return Err(PassError::Stopped);
            }
            let end = self.chunks.end(start, len);
            let here = reads[next..].partition_point(|r| *r < end);
            let chunk_reads = resume::rows(&self.network, &reads[next..next + here], start..end);
            let mut states = self.network.append(&ids[start..end], &chunk_reads, stop)?;
            states.truncate(here * self.config.hidden);
            self.extend(&ids[start..end], true);
            for (i, row) in self.outputs(what, &states)?.chunks_exact(width).enumerate() {
                if matches!(what, Reading::Values) {
                    self.prefixes.note(reads[next + i], row);
                }
                found(next + i, row);
            }
            next += here;
            start = end;
        }
        Ok(())
    }

    /// Numbers per read.
    fn width(&self, what: Reading) -> Result<usize, PassError> {
        let width = match what {
            Reading::Values => self.labels(),
            Reading::Logits => self.head.logit_width(),
        };
        let class = &self.config.class;
        let problem = || PassError::Failed(format!("{class}: say which tokens' probabilities are its values"));
        if width == 0 { Err(problem()) } else { Ok(width) }
    }

    /// What the head makes of hidden states.
    fn outputs(&self, what: Reading, states: &[f32]) -> Result<Vec<f32>, PassError> {
        match what {
            Reading::Values => self.head.apply(&self.network, states),
            Reading::Logits => self.head.logits(&self.network, states),
        }
    }

    /// The logits of the token after `text`. All that the cache holds of the same beginning is used, however it was
    /// computed.
    pub(super) fn next_logits(
        &mut self,
        text: &[u32],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>, PassError> {
        self.check(text)?;
        let last =
            text.len().checked_sub(1).ok_or_else(|| PassError::Failed("nothing to continue: no tokens".into()))?;
        let mut start = self.prefixes.common(text).min(last);
        let regular = start <= self.prefixes.regular() && self.chunks.floor(start) == start;
        self.cut(start);
        self.network.reserve(text.len())?;
        loop {
            let end = self.chunks.end(start, text.len());
            let read = if end == text.len() { vec![last - start] } else { Vec::new() };
            let states = self.network.append(&text[start..end], &read, stop)?;
            self.extend(&text[start..end], regular);
            start = end;
            if start == text.len() {
                return self.head.logits(&self.network, &states);
            }
        }
    }

    /// Can these ids be read at all?
    fn check(&self, ids: &[u32]) -> Result<(), PassError> {
        let rows = self.config.vocab_size;
        if let Some(id) = ids.iter().find(|id| **id as usize >= rows) {
            return Err(PassError::Failed(format!("token id {id} has no row in the embedding of {rows}")));
        }
        match self.config.window {
            Some(window) if ids.len() > window => Err(PassError::Failed(format!(
                "{} tokens: this model has sliding attention over {window} tokens, which is only run for texts that \
                 are no longer; use --max-tokens {window}",
                ids.len()
            ))),
            _ => Ok(()),
        }
    }

    /// The network has these tokens behind the others.
    fn extend(&mut self, ids: &[u32], regular: bool) {
        self.prefixes.extend(ids, regular);
        self.computed += ids.len() as u64;
    }

    /// Forgets the tokens from `len` on.
    fn cut(&mut self, len: usize) {
        self.prefixes.cut(len);
        self.network.truncate(len);
    }
}

/// What is wanted at a read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// The values: `labels` numbers.
    Values,
    /// All outputs of the last layer.
    Logits,
}

#[path = "resume.rs"]
mod resume;

#[cfg(test)]
#[path = "sharing_tests.rs"]
mod sharing_tests;

#[path = "together.rs"]
mod together;
use together::Ready;

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
