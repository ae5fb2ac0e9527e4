//! The models that lie in the local Hugging Face cache: which of them can be run here.

use std::path::{Path, PathBuf};

use super::config::ModelConfig;
use super::fit::Shape;
use super::hub;
use super::source::Source;

/// Tokens that the need of memory is said for, if the model reads as many.
pub const USUAL_TOKENS: usize = 32_768;
/// Tokens of a chunk, and bytes of a number in the cache of keys and values.
const CHUNK: u64 = 512;
const NUMBER: u64 = 4;

/// One model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundModel {
    /// `org/name`, as `--critic` takes it.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Class of the model, if it is one that can be run.
    pub class: Option<String>,
    /// Why it cannot.
    pub problem: Option<String>,
    /// Bytes of its weights on disk.
    pub bytes: u64,
    /// Bytes of memory it takes on the CPU with a text of [`USUAL_TOKENS`], or of as many as it reads.
    pub needs: Option<u64>,
}

/// The models in the caches that the environment names, in order of their names.
pub fn found_models() -> Vec<FoundModel> {
    hub::downloaded().into_iter().map(|(name, folder)| look(name, folder)).collect()
}

fn look(name: String, folder: PathBuf) -> FoundModel {
    let bytes = weight_bytes(&folder);
    let config = Source::open(&folder).and_then(|s| ModelConfig::parse(&s.config, &s.config_file));
    match config {
        Ok(config) => {
            let shape = Shape::of(&config, 1);
            let tokens = config.longest_text().min(USUAL_TOKENS) as u64;
            let cache = shape.cache_bytes_per_token(NUMBER) * tokens;
            let needs = bytes + cache + shape.chunk_bytes(CHUNK, NUMBER);
            FoundModel { name, folder, class: Some(config.class), problem: None, bytes, needs: Some(needs) }
        }
        Err(error) => FoundModel { name, folder, class: None, problem: Some(error.to_string()), bytes, needs: None },
    }
}

fn weight_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let weights =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "safetensors" || e == "gguf"));
    // Through the links: the cache keeps its files elsewhere.
    weights.filter_map(|p| std::fs::metadata(p).ok()).map(|m| m.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_looked_at_without_loading_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1");
        let shard = |i: u32| std::fs::metadata(folder.join(format!("model-0000{i}-of-00004.safetensors"))).unwrap();
        let size: u64 = (1..=4).map(|i| shard(i).len()).sum();
        let found = look("all/critic".into(), folder.clone());
        assert_eq!((found.class.as_deref(), found.problem), (Some("Qwen2ForTokenClassification"), None));
        assert_eq!(found.bytes, size);
        assert!(found.needs.unwrap() > size);
        let empty = tempfile::tempdir().unwrap();
        let broken = look("all/broken".into(), empty.path().to_owned());
        assert_eq!((broken.class, broken.bytes, broken.needs), (None, 0, None));
        assert!(broken.problem.unwrap().contains("config.json"));
    }
}
