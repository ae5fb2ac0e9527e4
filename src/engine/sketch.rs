//! What can be told of a critic without reading its weights, so that they need not be read for what was scored before.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::config::ModelConfig;
use super::machine::instruction_sets;
use super::source::{Source, folder_of};
use super::{CriticSpec, EngineOptions, NUMERICS, choose_profile};
use crate::critic::Sketch;

/// A file that was changed so lately may be changed again without a later time.
const SETTLED: Duration = Duration::from_secs(2);

/// The profile of a model on disk, and a stamp that changes with its files, the options and the program. `None` where
/// there is nothing to gain (the embedded critic) or the files cannot be told apart from changed ones.
pub fn sketch(spec: &CriticSpec, options: &EngineOptions) -> Option<Sketch> {
    let CriticSpec::Folder(path) = spec else { return None };
    let source = Source::open(path).ok()?;
    let config = ModelConfig::parse(&source.config, &source.config_file).ok()?;
    // Whether it is a language model only matters to the words of the error.
    let (profile, _) = choose_profile(path, (&config.class, false), options).ok()?;
    let whole = path.canonicalize().ok()?;
    let files = files(folder_of(&whole))?;
    let profile_hash = blake3::hash(profile.fingerprint_text().as_bytes()).to_hex();
    // The memory for beginnings changes no number.
    let options = EngineOptions { profile: None, prefix_cache: None, threads: None, ..options.clone() };
    let stamp = format!(
        "critic {} engine {NUMERICS} on {:?} with {} {options:?} {} profile {profile_hash}\n{files}",
        env!("CARGO_PKG_VERSION"),
        instruction_sets(),
        features(),
        whole.display(),
    );
    Some(Sketch { stamp, profile })
}

/// Where the program could run a model.
fn features() -> String {
    format!("cuda {} metal {}", cfg!(feature = "cuda"), cfg!(feature = "metal"))
}

/// Name, size and time of every file of a folder; `None` if one cannot be looked at or has just been changed.
fn files(folder: &Path) -> Option<String> {
    let now = SystemTime::now();
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let path = entry.ok()?.path();
        // Through links: Hugging Face's cache consists of them.
        let data = std::fs::metadata(&path).ok()?;
        if !data.is_file() {
            continue;
        }
        let changed = data.modified().ok()?;
        if now.duration_since(changed).ok()? < SETTLED {
            return None;
        }
        let since = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let target = path.canonicalize().ok()?;
        lines.push(format!("{} {} {}.{}", target.display(), data.len(), since.as_secs(), since.subsec_nanos()));
    }
    lines.sort();
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn fixture() -> tempfile::TempDir {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/engine/qwen2-token-1");
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = copy.path().join(entry.file_name());
            std::fs::copy(entry.path(), &to).unwrap();
            age(&to, 100);
        }
        copy
    }

    fn age(file: &Path, seconds: u64) {
        let at = SystemTime::now() - Duration::from_secs(seconds);
        File::options().append(true).open(file).unwrap().set_modified(at).unwrap();
    }

    #[test]
    fn the_stamp_follows_files_and_options_and_nothing_else() {
        let folder = fixture();
        let spec = CriticSpec::Folder(folder.path().to_owned());
        let plain = EngineOptions::default();
        let stamp = |options: &EngineOptions| sketch(&spec, options).unwrap().stamp;
        let first = stamp(&plain);
        assert_eq!(sketch(&spec, &plain).unwrap().profile.id, "openhands-32b");
        assert_eq!(stamp(&EngineOptions { threads: Some(3), prefix_cache: Some(7), ..plain.clone() }), first);
        assert_ne!(stamp(&EngineOptions { max_tokens: Some(77), ..plain.clone() }), first);
        let mut profile = crate::critic::Profile::by_id("openhands-32b").unwrap().clone();
        profile.max_tokens = 99;
        assert_ne!(stamp(&EngineOptions { profile: Some(profile), ..plain.clone() }), first);
        let weights = folder.path().join("model-00001-of-00004.safetensors");
        age(&weights, 50);
        let touched = stamp(&plain);
        assert_ne!(touched, first);
        std::fs::write(folder.path().join("profile.toml"), "").unwrap();
        assert!(sketch(&spec, &plain).is_none(), "a profile that cannot be read");
        std::fs::remove_file(folder.path().join("profile.toml")).unwrap();
        assert_eq!(stamp(&plain), touched);
        age(&weights, 0);
        assert!(sketch(&spec, &plain).is_none(), "changed just now");
        assert!(sketch(&CriticSpec::Embedded, &plain).is_none());
        assert!(sketch(&CriticSpec::Folder("/no/such/folder".into()), &plain).is_none());
    }
}
