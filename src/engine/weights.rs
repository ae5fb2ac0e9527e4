//! Tensors of a safetensors checkpoint: one file, several shards, or bytes built into the program.
//!
//! Files are read tensor by tensor and not mapped: a mapped file that shrinks kills the process, and reading each
//! tensor once keeps a single copy in memory. What is read is hashed on the way, for the fingerprint.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::EngineError;
use super::matrix::{Matrix, Numbers};

/// Safetensors headers are far below this; a larger length means that the file is something else.
const MAX_HEADER: u64 = 100 << 20;

/// Where a tensor's numbers lie.
#[derive(Debug, Clone)]
struct Entry {
    shard: usize,
    dtype: String,
    shape: Vec<usize>,
    /// From the start of the file.
    start: u64,
    len: usize,
}

#[derive(Debug)]
enum Bytes {
    File(File),
    Memory(Cow<'static, [u8]>),
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    bytes: Bytes,
}

/// An opened checkpoint.
#[derive(Debug)]
pub(super) struct Weights {
    shards: Vec<Shard>,
    entries: BTreeMap<String, Entry>,
    /// Folder or file, for messages about tensors that are nowhere.
    origin: PathBuf,
    hasher: blake3::Hasher,
    /// Give every tensor as f32?
    wide: bool,
}

impl Weights {
    /// Opens `model.safetensors` of a folder, or all the shards that `model.safetensors.index.json` names.
    pub(super) fn open(folder: &Path) -> Result<Self, EngineError> {
        let single = folder.join("model.safetensors");
        let index = folder.join("model.safetensors.index.json");
        if single.is_file() {
            return Self::from_shards(folder, &[single]);
        }
        if index.is_file() {
            return Self::from_shards(folder, &shards_of_index(&index)?);
        }
        let other = [("pytorch_model.bin", "a pickle"), ("pytorch_model.bin.index.json", "pickles")];
        let found = other.iter().find(|(name, _)| folder.join(name).is_file());
        Err(EngineError::File {
            file: folder.to_path_buf(),
            what: match found {
                Some((name, kind)) => format!("no model.safetensors, only {name} ({kind})"),
                None => "no model.safetensors and no model.safetensors.index.json".into(),
            },
            help: "give a model folder with safetensors weights (transformers: `model.save_pretrained(DIR)`)".into(),
        })
    }

    /// A checkpoint in memory.
    pub(super) fn from_memory(bytes: Cow<'static, [u8]>, name: &Path) -> Result<Self, EngineError> {
        let mut weights = Self::empty(name);
        let len = bytes.len() as u64;
        weights.add(name.to_path_buf(), Bytes::Memory(bytes), len)?;
        Ok(weights)
    }

    fn empty(origin: &Path) -> Self {
        Self {
            shards: Vec::new(),
            entries: BTreeMap::new(),
            origin: origin.to_path_buf(),
            hasher: blake3::Hasher::new(),
            wide: false,
        }
    }

    fn from_shards(folder: &Path, paths: &[PathBuf]) -> Result<Self, EngineError> {
        let mut weights = Self::empty(folder);
        for path in paths {
            let help = "every shard that the index names must be there: download the missing file";
            let file = File::open(path).map_err(|e| EngineError::io(path, &e, help))?;
            let len = file.metadata().map_err(|e| EngineError::io(path, &e, help))?.len();
            weights.add(path.clone(), Bytes::File(file), len)?;
        }
        Ok(weights)
    }

    /// Reads a shard's header and notes its tensors.
    fn add(&mut self, path: PathBuf, bytes: Bytes, len: u64) -> Result<(), EngineError> {
        let mut shard = Shard { path, bytes };
        let size = shard.read_at(0, 8)?.try_into().map_or(u64::MAX, u64::from_le_bytes);
        if size > MAX_HEADER || size.saturating_add(8) > len {
            return Err(
                shard.broken(&format!("header of {size} bytes in a file of {len}: not safetensors or cut short"))
            );
        }
        let header = shard.read_at(8, size as usize)?;
        let header: Value =
            serde_json::from_slice(&header).map_err(|e| shard.broken(&format!("header is not JSON ({e})")))?;
        let Value::Object(header) = header else {
            return Err(shard.broken("header is not a JSON object"));
        };
        let number = self.shards.len();
        for (name, info) in &header {
            if name == "__metadata__" {
                continue;
            }
            let entry = entry(number, info, 8 + size).ok_or_else(|| {
                shard.broken(&format!("tensor `{name}`: dtype, shape and data_offsets make no sense"))
            })?;
            if entry.start + entry.len as u64 > len {
                let end = entry.start + entry.len as u64;
                return Err(shard.broken(&format!("cut short: tensor `{name}` ends at byte {end} of {len}")));
            }
            self.entries.insert(name.clone(), entry);
        }
        self.shards.push(shard);
        Ok(())
    }

    /// Says whether matrices are widened to f32 when they are read.
    pub(super) fn widen(&mut self, wide: bool) {
        self.wide = wide;
    }

    /// The name under which a tensor is stored: as given, or without its leading `model.`.
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

    /// A matrix, in the file's type unless it is to be widened.
    pub(super) fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, EngineError> {
        let matrix = Matrix::new(rows, cols, self.numbers(name, &[rows, cols])?);
        Ok(if self.wide { Matrix::new(rows, cols, Numbers::F32(matrix.into_f32())) } else { matrix })
    }

    /// A vector as f32.
    pub(super) fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, EngineError> {
        Ok(Matrix::new(1, len, self.numbers(name, &[len])?).into_f32())
    }

    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Numbers, EngineError> {
        let Some((stored, entry)) = self.find(name) else {
            return Err(EngineError::Tensor {
                file: self.origin.clone(),
                tensor: name.into(),
                expected: format!("shape {shape:?}"),
                found: format!("no such tensor among {} in {} file(s)", self.entries.len(), self.shards.len()),
                help: "the checkpoint is incomplete or of another architecture than config.json says".into(),
            });
        };
        let (stored, entry) = (stored.to_string(), entry.clone());
        let problem = |shards: &[Shard], expected: String, found: String, help: &str| EngineError::Tensor {
            file: shards.get(entry.shard).map_or_else(PathBuf::new, |s| s.path.clone()),
            tensor: stored.clone(),
            expected,
            found,
            help: help.into(),
        };
        if entry.shape != shape {
            return Err(problem(
                &self.shards,
                format!("shape {shape:?}"),
                format!("shape {:?}", entry.shape),
                "config.json and weights do not belong together: download both anew",
            ));
        }
        let Some(shard) = self.shards.get_mut(entry.shard) else {
            return Err(problem(&self.shards, "a shard".into(), "none".into(), "this is a defect of trajscope"));
        };
        let bytes = shard.read_at(entry.start, entry.len)?;
        self.hasher.update(name.as_bytes()).update(entry.dtype.as_bytes()).update(&bytes);
        match entry.dtype.as_str() {
            "F32" => Ok(Numbers::F32(chunks(&bytes, f32::from_le_bytes))),
            "F16" => Ok(Numbers::F16(chunks(&bytes, u16::from_le_bytes))),
            "BF16" => Ok(Numbers::Bf16(chunks(&bytes, u16::from_le_bytes))),
            other => Err(problem(
                &self.shards,
                "type F32, F16 or BF16".into(),
                format!("type {other}"),
                "use the unquantised checkpoint",
            )),
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

impl Shard {
    fn read_at(&mut self, start: u64, len: usize) -> Result<Vec<u8>, EngineError> {
        let path = &self.path;
        let help = "the file is cut short or unreadable: download it anew";
        match &mut self.bytes {
            Bytes::File(file) => {
                let mut buffer = vec![0; len];
                file.seek(SeekFrom::Start(start))
                    .and_then(|_| file.read_exact(&mut buffer))
                    .map_err(|e| EngineError::io(path, &e, help))?;
                Ok(buffer)
            }
            Bytes::Memory(bytes) => {
                let range = start as usize..start as usize + len;
                let found = bytes.get(range).ok_or_else(|| EngineError::File {
                    file: path.clone(),
                    what: "cut short".into(),
                    help: help.into(),
                })?;
                Ok(found.to_vec())
            }
        }
    }

    fn broken(&self, what: &str) -> EngineError {
        EngineError::File {
            file: self.path.clone(),
            what: what.into(),
            help: "expected a safetensors file: download it anew".into(),
        }
    }
}

/// Little-endian numbers of `N` bytes.
fn chunks<T, const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
}

/// One line of a safetensors header; `None` if it contradicts itself.
fn entry(shard: usize, info: &Value, data_start: u64) -> Option<Entry> {
    let dtype = info.get("dtype")?.as_str()?.to_string();
    let shape = info.get("shape")?.as_array()?;
    let shape: Option<Vec<usize>> = shape.iter().map(|n| n.as_u64().and_then(|n| usize::try_from(n).ok())).collect();
    let shape = shape?;
    let offsets = info.get("data_offsets")?.as_array()?;
    let [start, end] = offsets.as_slice() else { return None };
    let (start, end) = (start.as_u64()?, end.as_u64()?);
    let len = usize::try_from(end.checked_sub(start)?).ok()?;
    let size = match dtype.as_str() {
        "F64" | "I64" | "U64" => 8,
        "F32" | "I32" | "U32" => 4,
        "F16" | "BF16" | "I16" | "U16" => 2,
        "I8" | "U8" | "BOOL" | "F8_E4M3" | "F8_E5M2" => 1,
        _ => 0,
    };
    let numbers = shape.iter().try_fold(1usize, |n, side| n.checked_mul(*side))?;
    if size > 0 && numbers.checked_mul(size)? != len {
        return None;
    }
    Some(Entry { shard, dtype, shape, start: data_start.checked_add(start)?, len })
}

/// The files a `model.safetensors.index.json` names, in order of their names.
fn shards_of_index(index: &Path) -> Result<Vec<PathBuf>, EngineError> {
    let help = "expected an index with `weight_map`: tensor name to file name; download it anew";
    let text = std::fs::read(index).map_err(|e| EngineError::io(index, &e, help))?;
    let broken = |what: String| EngineError::File { file: index.to_path_buf(), what, help: help.to_string() };
    let value: Value = serde_json::from_slice(&text).map_err(|e| broken(format!("not JSON ({e})")))?;
    let Some(Value::Object(map)) = value.get("weight_map") else {
        return Err(broken("key `weight_map` missing".into()));
    };
    let mut files = BTreeSet::new();
    for (tensor, file) in map {
        let name = file.as_str().filter(|name| !name.contains(['/', '\\']) && !name.is_empty());
        let name = name.ok_or_else(|| broken(format!("`weight_map`: tensor `{tensor}`: {file} is not a file name")))?;
        files.insert(index.with_file_name(name));
    }
    if files.is_empty() {
        return Err(broken("`weight_map` is empty".into()));
    }
    Ok(files.into_iter().collect())
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
