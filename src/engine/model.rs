//! A loaded checkpoint, whatever it runs on: token ids in, the head's outputs out.

use std::path::Path;

use super::config::ModelConfig;
use super::cpu::pool::{Pool, default_threads};
use super::cpu::{CpuModel, Settings};
use super::device::{DeviceModel, Place, find};
use super::error::EngineError;
use super::weights::Weights;
use super::{DtypeChoice, EngineOptions, help};

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

#[derive(Debug)]
enum Network {
    Cpu(Box<CpuModel>),
    Device(Box<DeviceModel>),
}

/// A checkpoint ready to run.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    labels: usize,
    network: Network,
    /// Hash of config.json and of all tensors.
    hash: blake3::Hash,
    /// Ids of the tokens in the cache.
    cached: Vec<u32>,
    chunks: Chunks,
    note: Option<String>,
}

impl Model {
    /// Loads config.json and the weights of a Hugging Face model folder.
    pub fn open(folder: &Path, options: &EngineOptions) -> Result<Self, EngineError> {
        let file = folder.join("config.json");
        let text = std::fs::read(&file).map_err(|e| EngineError::io(&file, &e, help::FOLDER))?;
        let config = ModelConfig::parse(&text, &file)?;
        let (place, note) = find(options.device)?;
        Self::load(config, &text, Weights::open(folder)?, place, options).map(|model| Self { note, ..model })
    }

    /// Loads a checkpoint built into the program.
    pub(super) fn from_memory(
        config: &[u8],
        weights: &'static [u8],
        name: &Path,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        let parsed = ModelConfig::parse(config, &name.join("config.json"))?;
        let weights = Weights::from_memory(weights.into(), &name.join("model.safetensors"))?;
        let (place, note) = find(options.device)?;
        Self::load(parsed, config, weights, place, options).map(|model| Self { note, ..model })
    }

    /// Loads a checkpoint to a place.
    pub(super) fn load(
        config: ModelConfig,
        text: &[u8],
        mut weights: Weights,
        place: Place,
        options: &EngineOptions,
    ) -> Result<Self, EngineError> {
        let labels = head_outputs(&config, &weights)?;
        let network = match place {
            Place::Cpu => {
                let pool = Pool::new(options.threads.unwrap_or_else(default_threads).max(1));
                weights.store_as(options.dtype);
                let settings = Settings { pool, int8: options.dtype == DtypeChoice::Int8 };
                Network::Cpu(Box::new(CpuModel::load(&config, labels, &mut weights, settings)?))
            }
            Place::Candle(device, name) => {
                let place = (device, name);
                Network::Device(Box::new(DeviceModel::load(&config, labels, &mut weights, place, options.dtype)?))
            }
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update(text).update(weights.hash().as_bytes());
        let hash = hasher.finalize();
        Ok(Self { config, labels, network, hash, cached: Vec::new(), chunks: Chunks::default(), note: None })
    }

    /// What config.json says.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Outputs of the head.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// Where it runs: `"cpu"`, `"cuda:0"`, `"metal:0"`.
    pub fn device(&self) -> String {
        match &self.network {
            Network::Cpu(_) => "cpu".into(),
            Network::Device(model) => model.name().into(),
        }
    }

    /// Type of the weights in memory; on the CPU all arithmetic is f32 whatever this is.
    pub fn dtype(&self) -> &'static str {
        match &self.network {
            Network::Cpu(model) => model.dtype(),
            Network::Device(model) => model.dtype(),
        }
    }

    /// Threads of the forward pass on the CPU; 1 elsewhere.
    pub fn threads(&self) -> usize {
        match &self.network {
            Network::Cpu(model) => model.threads(),
            Network::Device(_) => 1,
        }
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
        let mut values = Vec::new();
        self.forget();
        let before = std::mem::replace(&mut self.chunks, chunks);
        let done = self.run(ids, &reads, &|| false, &mut |_, outputs| values.extend_from_slice(outputs));
        self.chunks = before;
        match done {
            Ok(()) => Ok(values),
            Err(PassError::Stopped) => Err("stopped".into()),
            Err(PassError::Failed(what)) => Err(what),
        }
    }

    /// Empties the cache.
    pub fn forget(&mut self) {
        self.cached.clear();
        self.truncate(0);
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
        let Some(len) = reads.last().map(|last| last + 1) else { return Ok(()) };
        let ids = ids.get(..len).ok_or_else(|| PassError::Failed("a value beyond the last token".into()))?;
        if let Some(id) = ids.iter().find(|id| **id as usize >= self.config.vocab_size) {
            let rows = self.config.vocab_size;
            return Err(PassError::Failed(format!("token id {id} has no row in the embedding of {rows}")));
        }
        let mut start = self.reuse(ids, reads[0]);
        self.reserve(len)?;
        let mut next = 0;
        while start < len {
            if stop() {
                return Err(PassError::Stopped);
            }
            let end = self.chunks.end(start, len);
            let here = reads[next..].partition_point(|r| *r < end);
            let chunk_reads: Vec<usize> = reads[next..next + here].iter().map(|r| r - start).collect();
            let outputs = self.append(&ids[start..end], &chunk_reads, stop)?;
            self.cached.extend_from_slice(&ids[start..end]);
            for (i, row) in outputs.chunks_exact(self.labels).enumerate() {
                found(next + i, row);
            }
            next += here;
            start = end;
        }
        Ok(())
    }

    /// Cuts the cache back to what `ids` begins with: a whole number of chunks, before the first value to read.
    fn reuse(&mut self, ids: &[u32], first_read: usize) -> usize {
        let common = self.cached.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let keep = self.chunks.floor(common.min(first_read));
        self.cached.truncate(keep);
        self.truncate(keep);
        keep
    }

    fn truncate(&mut self, len: usize) {
        match &mut self.network {
            Network::Cpu(model) => model.truncate(len),
            Network::Device(model) => model.truncate(len),
        }
    }

    fn reserve(&mut self, len: usize) -> Result<(), PassError> {
        match &mut self.network {
            Network::Cpu(model) => {
                model.reserve(len);
                Ok(())
            }
            Network::Device(model) => model.reserve(len),
        }
    }

    fn append(
        &mut self,
        ids: &[u32],
        reads: &[usize],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<f32>, PassError> {
        match &mut self.network {
            Network::Cpu(model) => model.append(ids, reads, stop).map_err(|_stopped| PassError::Stopped),
            Network::Device(model) => model.append(ids, reads, stop),
        }
    }
}

/// The number of outputs: what config.json says, else what the tensor's shape says.
fn head_outputs(config: &ModelConfig, weights: &Weights) -> Result<usize, EngineError> {
    match (config.num_labels, weights.shape("score.weight")) {
        (Some(labels), _) => Ok(labels),
        (None, Some([labels, _])) => Ok(*labels),
        (None, shape) => Err(EngineError::Tensor {
            file: weights.origin().to_path_buf(),
            tensor: "score.weight".into(),
            expected: format!("a head of shape [labels, {}]", config.hidden),
            found: shape.map_or("no such tensor".into(), |s| format!("shape {s:?}")),
            help: "this checkpoint has no reward head: it is a language model, not a critic".into(),
        }),
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
