//! Tensors of a checkpoint under Hugging Face's names, whatever kind of file holds them: one safetensors file or
//! several, bytes built into the program, GGUF.
//!
//! Files are read tensor by tensor and not mapped: a mapped file that shrinks kills the process, and reading each
//! tensor once, a piece at a time into its last place, keeps a single copy in memory. What is read is hashed on the
//! way, for the fingerprint.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::DtypeChoice;
use super::blocks::BlockType;
use super::error::EngineError;
use super::matrix::{Matrix, NumberType, Numbers};
use super::safetensors;

/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// Where a tensor's numbers lie.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Index of its file.
    pub(super) shard: usize,
    /// Its name in the file, if that is another.
    pub(super) stored: Option<String>,
    /// Its type in the file's words.
    pub(super) dtype: String,
    /// Its type; `None` = one that cannot be read.
    pub(super) kind: Option<NumberType>,
    /// Outermost first: a matrix is `[rows, cols]`.
    pub(super) shape: Vec<usize>,
    /// From the start of the file.
    pub(super) start: u64,
    /// Bytes.
    pub(super) len: usize,
}

#[derive(Debug)]
enum Bytes {
    File(File),
    Memory(Cow<'static, [u8]>),
}

/// One file of a checkpoint.
#[derive(Debug)]
pub(super) struct Shard {
    path: PathBuf,
    bytes: Bytes,
    len: u64,
}

/// An opened checkpoint.
#[derive(Debug)]
pub(super) struct Weights {
    shards: Vec<Shard>,
    entries: BTreeMap<String, Entry>,
    /// Folder or file, for messages about tensors that are nowhere.
    origin: PathBuf,
    hasher: blake3::Hasher,
    /// The type that matrices get in memory; `None` = that of the file.
    store: Option<NumberType>,
    /// How many numbers of the layers' matrices have each type in memory.
    counts: BTreeMap<&'static str, usize>,
}

impl Weights {
    /// Opens `model.safetensors` of a folder, or all the shards that `model.safetensors.index.json` names.
    pub(super) fn open(folder: &Path) -> Result<Self, EngineError> {
        let mut weights = Self::empty(folder);
        for path in safetensors::files(folder)? {
            let help = "every shard that the index names must be there: download the missing file";
            weights.add_safetensors(Shard::open(&path, help)?)?;
        }
        Ok(weights)
    }

    /// A checkpoint in memory.
    pub(super) fn from_memory(bytes: Cow<'static, [u8]>, name: &Path) -> Result<Self, EngineError> {
        let mut weights = Self::empty(name);
        weights.add_safetensors(Shard::in_memory(bytes, name))?;
        Ok(weights)
    }

    /// Without tensors yet.
    pub(super) fn empty(origin: &Path) -> Self {
        Self {
            shards: Vec::new(),
            entries: BTreeMap::new(),
            origin: origin.to_path_buf(),
            hasher: blake3::Hasher::new(),
            store: None,
            counts: BTreeMap::new(),
        }
    }

    /// Adds the tensors of a safetensors file.
    pub(super) fn add_safetensors(&mut self, mut shard: Shard) -> Result<(), EngineError> {
        let entries = safetensors::entries(&mut shard, self.shards.len())?;
        self.add(shard, entries);
        Ok(())
    }

    /// Adds a file whose tensors are known.
    pub(super) fn add(&mut self, shard: Shard, entries: Vec<(String, Entry)>) {
        self.entries.extend(entries);
        self.shards.push(shard);
    }

    /// Takes over the tensors of another checkpoint whose names begin with `prefix`, and its files. `false` = it has
    /// none, and nothing was taken.
    pub(super) fn adopt(&mut self, other: Self, prefix: &str) -> bool {
        let first = self.shards.len();
        let before = self.entries.len();
        let wanted = other.entries.into_iter().filter(|(name, _)| name.starts_with(prefix));
        self.entries.extend(wanted.map(|(name, entry)| (name, Entry { shard: entry.shard + first, ..entry })));
        let found = self.entries.len() > before;
        if found {
            self.shards.extend(other.shards);
        }
        found
    }

    /// Says which type matrices get when they are read. Those that are smaller already stay as they are (except that
    /// `f32` widens all), and so does the head, whose few numbers are the scale of every value.
    pub(super) fn store_as(&mut self, choice: DtypeChoice) {
        self.store = match choice {
            // Int8: the CPU's linear layers quantise what they are given.
            DtypeChoice::Auto | DtypeChoice::Int8 => None,
            DtypeChoice::F32 => Some(NumberType::F32),
            DtypeChoice::Bf16 => Some(NumberType::Bf16),
            DtypeChoice::F16 => Some(NumberType::F16),
            DtypeChoice::Q8_0 => Some(NumberType::Block(BlockType::Q8_0)),
        };
    }

    /// The name under which a tensor is kept: as given, or without its leading `model.`.
    fn find(&self, name: &str) -> Option<(&str, &Entry)> {
        let bare = name.strip_prefix("model.").unwrap_or(name);
        [name, bare].into_iter().find_map(|n| self.entries.get_key_value(n)).map(|(n, e)| (n.as_str(), e))
    }

    /// Is there such a tensor?
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The shape of a tensor, if there is one.
    pub(super) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.find(name).map(|(_, e)| e.shape.as_slice())
    }

    /// The type that a matrix gets when it is read; `None` = there is none, or of a type that cannot be read.
    pub(super) fn type_of(&self, name: &str) -> Option<&'static str> {
        Some(target(self.find(name)?.1.kind?, self.store).name())
    }

    /// A matrix, in the file's type unless another was asked for.
    pub(super) fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, EngineError> {
        let store = self.store.filter(|_| !name.starts_with("score."));
        let numbers = self.numbers(name, &[rows, cols], store)?;
        if name.contains(".layers.") {
            *self.counts.entry(numbers.kind().name()).or_default() += numbers.len();
        }
        Ok(Matrix::new(rows, cols, numbers))
    }

    /// Type of most numbers in the layers' matrices read so far: files quantised as Q4_K_M mix types.
    pub(super) fn main_type(&self) -> &'static str {
        self.counts.iter().max_by_key(|(_, count)| **count).map_or("f32", |(name, _)| name)
    }

    /// A vector as f32.
    pub(super) fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, EngineError> {
        Ok(Matrix::new(1, len, self.numbers(name, &[len], None)?).into_f32())
    }

    fn numbers(&mut self, name: &str, shape: &[usize], store: Option<NumberType>) -> Result<Numbers, EngineError> {
        let (entry, kind, row_bytes) = self.checked(name, shape)?;
        let cols = shape.last().copied().unwrap_or(1);
        let target = target(kind, store);
        if target.bytes_of(cols).is_none() {
            let expected = format!("rows of whole blocks of {} numbers ({})", target.group(), target.name());
            let help = "choose another type: --dtype bf16";
            return Err(self.problem(name, &entry, expected, format!("rows of {cols}"), help));
        }
        self.hasher.update(name.as_bytes()).update(entry.dtype.as_bytes());
        if target != kind && target != NumberType::F32 {
            // Rounding changes the values, widening does not.
            self.hasher.update(target.name().as_bytes());
        }
        let rows: usize = shape[..shape.len().saturating_sub(1)].iter().product();
        let step = (PIECE / row_bytes.max(1)).max(1);
        let mut numbers = Numbers::with_room(target, rows * cols);
        let (mut bytes, mut wide) = (Vec::new(), Vec::new());
        for row in (0..rows).step_by(step) {
            let here = step.min(rows - row);
            bytes.resize(here * row_bytes, 0);
            let Some(shard) = self.shards.get_mut(entry.shard) else { break };
            shard.read_at(entry.start + (row * row_bytes) as u64, &mut bytes)?;
            self.hasher.update(&bytes);
            if target == kind {
                numbers.push_bytes(&bytes);
                continue;
            }
            let mut piece = Numbers::with_room(kind, here * cols);
            piece.push_bytes(&bytes);
            wide.resize(here * cols, 0.0);
            piece.widen(0, &mut wide);
            if !numbers.push_f32(&wide) {
                let expected = format!("numbers that {} can hold", target.name());
                let help = "choose a type with more range: --dtype bf16";
                return Err(self.problem(name, &entry, expected, "larger ones, or not finite ones".into(), help));
            }
        }
        Ok(numbers)
    }

    /// A tensor of this shape, its type, and the bytes of one of its rows.
    fn checked(&self, name: &str, shape: &[usize]) -> Result<(Entry, NumberType, usize), EngineError> {
        let Some((_, entry)) = self.find(name) else {
            return Err(EngineError::Tensor {
                file: self.origin.clone(),
                tensor: name.into(),
                expected: format!("shape {shape:?}"),
                found: format!("no such tensor among {} in {} file(s)", self.entries.len(), self.shards.len()),
                help: "the checkpoint is incomplete or of another architecture than config.json says".into(),
            });
        };
        if entry.shape != shape {
            return Err(self.problem(
                name,
                entry,
                format!("shape {shape:?}"),
                format!("shape {:?}", entry.shape),
                "config.json and weights do not belong together: download both anew",
            ));
        }
        let Some(kind) = entry.kind else {
            return Err(self.problem(
                name,
                entry,
                "type F32, F16, BF16, or in GGUF files Q4_0 to Q8_0 or Q2_K to Q6_K".into(),
                format!("type {}", entry.dtype),
                "use a checkpoint of one of these types",
            ));
        };
        let cols = shape.last().copied().unwrap_or(1);
        match kind.bytes_of(cols) {
            Some(row) if row.checked_mul(shape.iter().rev().skip(1).product()) == Some(entry.len) => {
                Ok((entry.clone(), kind, row))
            }
            _ => Err(self.problem(
                name,
                entry,
                format!("rows of whole groups of {} numbers, {} bytes each", kind.group(), kind.group_bytes()),
                format!("rows of {cols} numbers, {} bytes in all", entry.len),
                "the file is damaged: download it anew, or convert it anew to a type without blocks (BF16)",
            )),
        }
    }

    fn problem(&self, name: &str, entry: &Entry, expected: String, found: String, help: &str) -> EngineError {
        let stored = self.find(name).map_or(name, |(key, _)| key);
        EngineError::Tensor {
            file: self.shards.get(entry.shard).map_or_else(PathBuf::new, |s| s.path.clone()),
            tensor: entry.stored.clone().unwrap_or_else(|| stored.into()),
            expected,
            found,
            help: help.into(),
        }
    }

    /// The folder or file.
    pub(super) fn origin(&self) -> &Path {
        &self.origin
    }

    /// The hash of every tensor read so far, in reading order.
    pub(super) fn hash(&self) -> blake3::Hash {
        self.hasher.finalize()
    }
}

/// The type for numbers of type `kind` where `store` was asked for.
fn target(kind: NumberType, store: Option<NumberType>) -> NumberType {
    match store {
        Some(NumberType::F32) => NumberType::F32,
        Some(wanted) if kind.at_least(wanted) => wanted,
        _ => kind,
    }
}

impl Shard {
    /// Opens a file; `help` is for the case that it is not there.
    pub(super) fn open(path: &Path, help: &str) -> Result<Self, EngineError> {
        let file = File::open(path).map_err(|e| EngineError::io(path, &e, help))?;
        let len = file.metadata().map_err(|e| EngineError::io(path, &e, help))?.len();
        Ok(Self { path: path.to_path_buf(), bytes: Bytes::File(file), len })
    }

    /// A file that is in memory.
    pub(super) fn in_memory(bytes: impl Into<Cow<'static, [u8]>>, name: &Path) -> Self {
        let bytes = bytes.into();
        Self { path: name.to_path_buf(), len: bytes.len() as u64, bytes: Bytes::Memory(bytes) }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads as many bytes as `buffer` has, from `start` on.
    pub(super) fn read_at(&mut self, start: u64, buffer: &mut [u8]) -> Result<(), EngineError> {
        let path = &self.path;
        let help = "the file is cut short or unreadable: download it anew";
        match &mut self.bytes {
            Bytes::File(file) => file
                .seek(SeekFrom::Start(start))
                .and_then(|_| file.read_exact(buffer))
                .map_err(|e| EngineError::io(path, &e, help)),
            Bytes::Memory(bytes) => {
                let found = usize::try_from(start).ok().and_then(|s| bytes.get(s..s.checked_add(buffer.len())?));
                let found = found.ok_or_else(|| EngineError::File {
                    file: path.clone(),
                    what: "cut short".into(),
                    help: help.into(),
                })?;
                buffer.copy_from_slice(found);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
