//! Models by name: what `huggingface-cli download` has put into the local cache. Never the network.
//!
//! The cache is `models--org--name/refs/<revision>`, a file with a commit, and `snapshots/<commit>/`, a folder whose
//! files are links.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::EngineError;
use super::source::is_gguf;

/// A name as typed: `org/name`, `org/name@revision`, both also after `hf:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name<'a> {
    org: &'a str,
    model: &'a str,
    revision: &'a str,
}

/// Can this be the name of a model in the cache? (A folder of that name on disk goes first; that is not asked here.)
pub fn is_hub_name(text: &str) -> bool {
    Name::parse(text).is_some()
}

/// The folder of a model: `text` itself if there is such a folder, else what the local Hugging Face cache holds under
/// that name.
///
/// # Errors
/// There is none: one line that says where was looked, what is there, and how to get it.
pub fn find_model(text: &str) -> Result<PathBuf, EngineError> {
    find_in(text, &caches(|name| std::env::var_os(name)))
}

/// `org/name` if `folder` is a snapshot in the cache: its own name is only a commit.
pub(super) fn name_of_snapshot(folder: &Path) -> Option<String> {
    let snapshots = folder.parent().filter(|p| p.file_name().is_some_and(|n| n == "snapshots"))?;
    let repository = snapshots.parent()?.file_name()?.to_str()?;
    Some(repository.strip_prefix("models--")?.replacen("--", "/", 1))
}

impl<'a> Name<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix("hf:").unwrap_or(text);
        let (path, revision) = text.split_once('@').unwrap_or((text, "main"));
        let (org, model) = path.split_once('/')?;
        let plain = |part: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            part.chars().all(known) && part.starts_with(|c: char| c.is_ascii_alphanumeric()) && !part.contains("..")
        };
        // Branches may have slashes (`refs/pr/1`); none may lead out of the folder.
        let good = plain(org) && plain(model) && revision.split('/').all(plain);
        good.then_some(Self { org, model, revision })
    }
}

/// The folders that may hold the cache, most special first.
fn caches(var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| var(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let user = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME").or_else(|| set("USERPROFILE"))?.join(".cache")));
    let all = [
        set("HF_HUB_CACHE"),
        set("HUGGINGFACE_HUB_CACHE"),
        set("HF_HOME").map(|home| home.join("hub")),
        user.map(|cache| cache.join("huggingface").join("hub")),
    ];
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in all.into_iter().flatten() {
        if !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

fn find_in(text: &str, caches: &[PathBuf]) -> Result<PathBuf, EngineError> {
    let folder = Path::new(text);
    if folder.is_dir() || is_gguf(folder) && folder.is_file() {
        return Ok(folder.to_path_buf());
    }
    let refuse = |what: String, help: String| EngineError::File { file: folder.to_path_buf(), what, help };
    let Some(name) = Name::parse(text) else {
        let what = if folder.exists() { "is a file, not a folder" } else { "no such folder" };
        let help =
            "give a Hugging Face model folder, or the name of a downloaded model (org/name or org/name@revision)";
        return Err(refuse(what.into(), help.into()));
    };
    let Name { org, model, revision } = name;
    let repository = format!("models--{org}--{model}");
    let download = format!("`huggingface-cli download {org}/{model}` gets it (trajscope itself never downloads)");
    let Some(cache) = caches.iter().map(|c| c.join(&repository)).find(|r| r.is_dir()) else {
        let looked: Vec<String> = caches.iter().map(|c| c.display().to_string()).collect();
        let what = format!("neither a folder nor in the Hugging Face cache ({}); {}", looked.join(", "), there(caches));
        return Err(refuse(what, download));
    };
    let Some(snapshot) = snapshot(&cache, revision) else {
        let mut known = names_in(&cache.join("refs"));
        known.extend(names_in(&cache.join("snapshots")));
        let known = if known.is_empty() { "nothing".into() } else { known.join(", ") };
        let what = format!("{} has no revision {revision}, only {known}", cache.display());
        return Err(refuse(what, format!("choose one with {org}/{model}@REVISION, or: {download}")));
    };
    let gguf = || names_in(&snapshot).iter().any(|name| is_gguf(Path::new(name)));
    if snapshot.join("config.json").is_file() || gguf() {
        return Ok(snapshot);
    }
    let what = format!("{} has neither config.json nor a GGUF file: the download is not complete", snapshot.display());
    Err(refuse(what, download))
}

/// The folder of a revision: a branch or tag, or a commit.
fn snapshot(repository: &Path, revision: &str) -> Option<PathBuf> {
    let snapshots = repository.join("snapshots");
    let commit = std::fs::read_to_string(repository.join("refs").join(revision)).ok();
    let named = commit.as_deref().map_or(revision, str::trim);
    // What a file says must not lead out of the folder.
    let safe = !named.is_empty() && !named.contains(['/', '\\']) && named != "..";
    safe.then(|| snapshots.join(named)).filter(|folder| folder.is_dir())
}

/// The names in a folder, in order; none if it cannot be read.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The models in the caches with a folder each: the one of `main`, else any.
pub(super) fn downloaded() -> Vec<(String, PathBuf)> {
    downloaded_in(&caches(|name| std::env::var_os(name)))
}

fn downloaded_in(caches: &[PathBuf]) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for (cache, folder) in caches.iter().flat_map(|c| names_in(c).into_iter().map(move |name| (c.join(&name), name))) {
        let Some(name) = folder.strip_prefix("models--").map(|n| n.replacen("--", "/", 1)) else { continue };
        let any = || names_in(&cache.join("snapshots")).first().map(|s| cache.join("snapshots").join(s));
        if let Some(snapshot) = snapshot(&cache, "main").or_else(any)
            && found.iter().all(|(known, _)| *known != name)
        {
            found.push((name, snapshot));
        }
    }
    found.sort();
    found
}

/// What models the caches hold, in words.
fn there(caches: &[PathBuf]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = caches.iter().flat_map(|cache| names_in(cache)).collect();
    names.retain(|name| name.starts_with("models--"));
    names.sort();
    names.dedup();
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|n| n.trim_start_matches("models--").replacen("--", "/", 1)).collect();
    match names.len() {
        0 => "there are no models there".into(),
        n if n > SHOWN => format!("there are {} and {} more", shown.join(", "), n - SHOWN),
        _ => format!("there is {}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache with one model of two commits, `main` the newer, files as links into `blobs`.
    fn cache() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("models--all-hands--critic-32b");
        for part in ["refs", "blobs", "snapshots/aaa111", "snapshots/bbb222", "refs/pr"] {
            std::fs::create_dir_all(model.join(part)).unwrap();
        }
        std::fs::write(model.join("blobs/c0ffee"), "{}").unwrap();
        for commit in ["aaa111", "bbb222"] {
            let link = model.join("snapshots").join(commit).join("config.json");
            #[cfg(unix)]
            std::os::unix::fs::symlink("../../blobs/c0ffee", link).unwrap();
            #[cfg(not(unix))]
            std::fs::write(link, "{}").unwrap();
        }
        std::fs::write(model.join("refs/main"), "bbb222\n").unwrap();
        std::fs::write(model.join("refs/v1"), "aaa111").unwrap();
        std::fs::write(model.join("refs/pr/3"), "aaa111").unwrap();
        std::fs::write(model.join("refs/evil"), "../../..").unwrap();
        std::fs::create_dir_all(folder.path().join("models--org--empty/snapshots/ccc/x")).unwrap();
        folder
    }

    fn find(text: &str, cache: &Path) -> Result<String, String> {
        let found = find_in(text, &[PathBuf::from("/nowhere/hub"), cache.to_path_buf()]).map_err(|e| e.to_string())?;
        Ok(found.strip_prefix(cache).unwrap_or(&found).to_string_lossy().into_owned())
    }

    #[test]
    fn a_name_finds_the_snapshot_of_its_revision() {
        let cache = cache();
        let at = |text: &str| find(text, cache.path()).unwrap();
        let snapshots = "models--all-hands--critic-32b/snapshots";
        assert_eq!(at("all-hands/critic-32b"), format!("{snapshots}/bbb222"));
        assert_eq!(at("hf:all-hands/critic-32b"), format!("{snapshots}/bbb222"));
        for revision in ["v1", "aaa111", "pr/3"] {
            assert_eq!(at(&format!("hf:all-hands/critic-32b@{revision}")), format!("{snapshots}/aaa111"));
        }
        let found = find_in("all-hands/critic-32b", &[cache.path().into()]).unwrap();
        assert_eq!(std::fs::read_to_string(found.join("config.json")).unwrap(), "{}", "links are followed");
        assert_eq!(name_of_snapshot(&found).as_deref(), Some("all-hands/critic-32b"));
        assert_eq!(name_of_snapshot(Path::new("/models/mine")), None);
    }

    #[test]
    fn every_model_of_the_caches_is_listed_once_with_a_folder() {
        let cache = cache();
        let found = downloaded_in(&[cache.path().into(), "/nowhere".into(), cache.path().into()]);
        let below = |path: &Path| path.strip_prefix(cache.path()).unwrap().display().to_string();
        let found: Vec<(String, String)> = found.into_iter().map(|(name, folder)| (name, below(&folder))).collect();
        let critic = "models--all-hands--critic-32b/snapshots/bbb222".to_owned();
        let empty = "models--org--empty/snapshots/ccc".to_owned();
        assert_eq!(found, [("all-hands/critic-32b".to_owned(), critic), ("org/empty".to_owned(), empty)]);
    }

    #[test]
    fn a_folder_of_that_name_goes_first() {
        let cache = cache();
        let folder = cache.path().display().to_string();
        assert_eq!(find_in(&folder, &[]).unwrap(), cache.path());
    }

    #[test]
    fn what_is_not_there_is_said_with_where_was_looked_and_how_to_get_it() {
        let cache = cache();
        let said = find("Qwen/Qwen3-4B", cache.path()).unwrap_err();
        assert!(
            said.starts_with("Qwen/Qwen3-4B: neither a folder nor in the Hugging Face cache (/nowhere/hub, "),
            "{said}"
        );
        assert!(said.contains("there is all-hands/critic-32b, org/empty; `huggingface-cli download Qwen/Qwen3-4B`"));
        let said = find("all-hands/critic-32b@v2", cache.path()).unwrap_err();
        assert!(said.contains("has no revision v2, only evil, main, pr, v1, aaa111, bbb222"), "{said}");
        let said = find("org/empty@ccc", cache.path()).unwrap_err();
        assert!(said.contains("has neither config.json nor a GGUF file: the download is not complete"), "{said}");
        assert!(find("org/empty", cache.path()).unwrap_err().contains("has no revision main, only ccc"));
        assert!(find_in("a/b", &[]).unwrap_err().to_string().contains("there are no models there"));
        assert!(find("mini2", cache.path()).unwrap_err().contains("mini2: no such folder; give a Hugging Face"));
    }

    #[test]
    fn no_name_and_no_file_leads_out_of_the_cache() {
        let cache = cache();
        for text in ["../x", "a/..", "a/b@../../etc", "/etc/passwd", "a/b/c", "a", "", "a/b@", "hf:a"] {
            assert!(!is_hub_name(text), "{text}");
        }
        assert!(is_hub_name("Qwen/Qwen2.5-Coder-0.5B") && is_hub_name("hf:a/b@refs/pr/1"));
        assert!(find("all-hands/critic-32b@evil", cache.path()).unwrap_err().contains("has no revision evil"));
    }

    #[test]
    fn the_caches_are_those_of_the_environment_in_order() {
        let with = |set: &'static [(&str, &str)]| {
            let found = caches(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into()));
            found.iter().map(|p| p.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(with(&[("HOME", "/h")]), ["/h/.cache/huggingface/hub"]);
        assert_eq!(
            with(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/hf"), ("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]),
            ["/c", "/hf/hub", "/x/huggingface/hub"]
        );
        assert_eq!(with(&[("HF_HOME", "/h/.cache/huggingface"), ("HOME", "/h")]).len(), 1, "the same only once");
        assert!(with(&[("HF_HOME", "")]).is_empty());
    }
}
