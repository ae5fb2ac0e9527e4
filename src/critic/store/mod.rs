//! Scores kept on disk, found again by what they were computed from.
//!
//! ```text
//! <folder>/ab/cdef….scores     one small file a trajectory; `abcdef…` is the key: blake3 over who scores and what is read
//!   trajscope-scores 1         what this is
//!   <64 hex digits>            blake3 over the next line
//!   {"key":…,"who":…,…}        key and critic in full, then the scores; numbers as bits
//! ```
//!
//! A file is written beside its place and renamed, so several programs may use one folder at once and a crash leaves
//! the old file or the new one. Whatever is damaged, foreign or of another key is not believed: it is counted, and
//! replaced by the next result. Each of the 256 folders keeps its share of the bound; the longest unused go first.

mod folder;

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{ActionScore, CriticText, Cut, Scores};
pub use folder::{Usage, clear, usage};
use folder::{prune, renew};

/// First line of every file. The number is raised when the form of the rest changes.
const MAGIC: &str = "trajscope-scores 1";
/// Ending of the files, and of those being written.
const ENDING: &str = "scores";
const UNFINISHED: &str = ".unfinished";
/// Bytes kept in all, unless said otherwise: some 60,000 trajectories.
pub const LIMIT: u64 = 256 << 20;
/// Folders the files are spread over.
const FOLDERS: u64 = 256;
/// No result is larger; a larger file is not ours.
const LARGEST: u64 = 64 << 20;

/// What scores were computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Hash over everything below and the text.
    hash: String,
    /// Who scores, in words: all that decides a value besides the text.
    who: String,
    /// Actions of the trajectory.
    actions: usize,
}

impl Key {
    /// The key of a text read by `who` (weights, tokenizer, profile, kernels, types, limit), for a trajectory with so
    /// many actions.
    pub fn new(who: &str, actions: usize, text: &CriticText) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            // With its length, so that no two lists of parts read the same.
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        part(MAGIC.as_bytes());
        part(who.as_bytes());
        part(&(actions as u64).to_le_bytes());
        for segment in &text.segments {
            part(segment.text.as_bytes());
            let (action, end) = segment.value.map_or((u64::MAX, 0), |v| (v.action as u64, v.end as u64));
            for number in [action, end, segment.turn as u64, u64::from(segment.pinned)] {
                part(&number.to_le_bytes());
            }
        }
        // The warnings are part of the result.
        part(b"warnings");
        text.warnings.iter().for_each(|w| part(w.as_bytes()));
        Self { hash: hasher.finalize().to_hex().to_string(), who: who.to_owned(), actions }
    }
}

/// What a store did so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Results found.
    pub found: usize,
    /// Results not there.
    pub missing: usize,
    /// Results written.
    pub written: usize,
    /// Files that were there but not to be believed.
    pub damaged: usize,
    /// Results that could not be written.
    pub unwritten: usize,
    /// The first thing that went wrong: one line with the file.
    pub problem: Option<String>,
}

impl Report {
    /// One line for a person, if anything went wrong. The scores themselves are right all the same.
    pub fn remark(&self) -> Option<String> {
        let problem = self.problem.as_deref()?;
        let mut parts = Vec::new();
        if self.damaged > 0 {
            parts.push(format!("{} damaged file(s) ignored", self.damaged));
        }
        if self.unwritten > 0 {
            parts.push(format!("{} result(s) not kept", self.unwritten));
        }
        let what = parts.join(", ");
        Some(format!("score cache: {what}; first: {problem} (the scores are not affected; --no-cache does without it)"))
    }
}

/// The folder, and what happened to it. Shared between threads and programs.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Bytes of one of the folders.
    share: u64,
    found: AtomicUsize,
    missing: AtomicUsize,
    written: AtomicUsize,
    damaged: AtomicUsize,
    unwritten: AtomicUsize,
    problem: Mutex<Option<String>>,
}

/// A result as it is written. Numbers as bits: what is read back is what was written.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    key: String,
    who: String,
    tokens: usize,
    score: Option<u64>,
    /// Reward, token, and whether something before it was cut, by action.
    actions: Vec<(Option<u64>, Option<usize>, bool)>,
    cut: Option<(usize, Vec<usize>, String)>,
    warnings: Vec<String>,
}

impl Store {
    /// A store in `folder`, which is made when the first result is written.
    pub fn new(folder: PathBuf) -> Self {
        Self::bounded(folder, LIMIT)
    }

    /// A store that keeps about `limit` bytes.
    pub fn bounded(folder: PathBuf, limit: u64) -> Self {
        let (found, missing, written, damaged, unwritten, problem) = Default::default();
        Self { folder, share: limit / FOLDERS, found, missing, written, damaged, unwritten, problem }
    }

    /// What it did so far.
    pub fn report(&self) -> Report {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Report {
            found: read(&self.found),
            missing: read(&self.missing),
            written: read(&self.written),
            damaged: read(&self.damaged),
            unwritten: read(&self.unwritten),
            problem: self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// The scores of a key, if they are there and sound. They say of themselves that they were kept.
    pub fn get(&self, key: &Key) -> Option<Scores> {
        let found = self.load(&key.hash, |body| decode(body, key));
        count(if found.is_some() { &self.found } else { &self.missing });
        found
    }

    /// Keeps the scores of a key. That it could not is counted, never an error: they can be computed again.
    pub fn put(&self, key: &Key, scores: &Scores) {
        if self.save(&key.hash, encode(key, scores)) {
            count(&self.written);
        }
    }

    /// A text kept under a name, beside the scores.
    pub fn recall(&self, name: &str) -> Option<String> {
        self.load(&note_hash(name), |body| {
            let (owner, text): (String, String) = serde_json::from_str(body).map_err(|e| format!("not a note: {e}"))?;
            if owner == name { Ok(text) } else { Err("belongs to another name".into()) }
        })
    }

    /// Keeps a text under a name.
    pub fn remember(&self, name: &str, text: &str) {
        self.save(&note_hash(name), serde_json::to_string(&(name, text)).map_err(Into::into));
    }

    fn load<T>(&self, hash: &str, read_body: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let file = self.place(hash);
        match read(&file).and_then(|body| body.map(|body| read_body(&body)).transpose()) {
            Ok(found) => {
                if found.is_some() {
                    renew(&file);
                }
                found
            }
            Err(why) => {
                self.note(&self.damaged, &file, &why);
                None
            }
        }
    }

    /// Writes a file and makes room for it; `false` if it could not.
    fn save(&self, hash: &str, body: io::Result<String>) -> bool {
        let file = self.place(hash);
        if let Err(error) = body.and_then(|body| write(&file, &body)) {
            self.note(&self.unwritten, &file, &error.to_string());
            return false;
        }
        if let Some(folder) = file.parent() {
            prune(folder, self.share, &file);
        }
        true
    }

    fn place(&self, hash: &str) -> PathBuf {
        let (folder, name) = hash.split_at(2);
        self.folder.join(folder).join(format!("{name}.{ENDING}"))
    }

    fn note(&self, counter: &AtomicUsize, file: &Path, why: &str) {
        count(counter);
        let line = format!("{}: {why}", file.display());
        tracing::warn!("score cache: {line}");
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(line);
    }
}

/// Where a note lies; never where scores do.
fn note_hash(name: &str) -> String {
    blake3::hash(format!("note {name}").as_bytes()).to_hex().to_string()
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Reads a file; `Ok(None)` = there is none.
fn read(file: &Path) -> Result<Option<String>, String> {
    let open = match File::open(file) {
        Ok(open) => open,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    let mut text = String::new();
    let length = open.take(LARGEST + 1).read_to_string(&mut text).map_err(|e| e.to_string())?;
    if length as u64 > LARGEST {
        return Err(format!("larger than {} MiB: not a file of scores", LARGEST >> 20));
    }
    body(&text).map(|body| Some(body.to_owned()))
}

/// The third line, if the first two fit.
fn body(text: &str) -> Result<&str, String> {
    let rest = text.strip_prefix(MAGIC).and_then(|t| t.strip_prefix('\n'));
    let rest = rest.ok_or_else(|| format!("does not begin with {MAGIC:?}"))?;
    let (sum, body) = rest.split_once('\n').ok_or("cut off")?;
    let body = body.strip_suffix('\n').ok_or("cut off")?;
    if blake3::hash(body.as_bytes()).to_hex().as_str() != sum {
        return Err("the checksum does not fit: damaged".into());
    }
    Ok(body)
}

fn decode(body: &str, key: &Key) -> Result<Scores, String> {
    let entry: Entry = serde_json::from_str(body).map_err(|e| format!("not a result: {e}"))?;
    if (entry.key.as_str(), entry.who.as_str()) != (key.hash.as_str(), key.who.as_str()) {
        return Err("belongs to another key".into());
    }
    if entry.actions.len() != key.actions {
        return Err(format!("{} actions, expected {}", entry.actions.len(), key.actions));
    }
    let number = |bits: Option<u64>| bits.map(f64::from_bits);
    let action = |(action, &(reward, token_index, after_cut)): (usize, &(Option<u64>, Option<usize>, bool))| {
        ActionScore { action, reward: number(reward), token_index, after_cut }
    };
    let actions: Vec<ActionScore> = entry.actions.iter().enumerate().map(action).collect();
    let score = number(entry.score);
    if actions.iter().filter_map(|a| a.reward).chain(score).any(|n| !n.is_finite()) {
        return Err("a reward that is not a finite number".into());
    }
    let cut = entry.cut.map(|(exact_until, unscored, note)| Cut { exact_until, unscored, note });
    Ok(Scores { actions, score, tokens: entry.tokens, cut, warnings: entry.warnings, kept: true })
}

fn encode(key: &Key, scores: &Scores) -> io::Result<String> {
    let entry = Entry {
        key: key.hash.clone(),
        who: key.who.clone(),
        tokens: scores.tokens,
        score: scores.score.map(f64::to_bits),
        actions: scores.actions.iter().map(|a| (a.reward.map(f64::to_bits), a.token_index, a.after_cut)).collect(),
        cut: scores.cut.clone().map(|c| (c.exact_until, c.unscored, c.note)),
        warnings: scores.warnings.clone(),
    };
    Ok(serde_json::to_string(&entry)?)
}

fn write(file: &Path, body: &str) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    // A failed write removes what there is of the file on drop; a crash leaves it to `prune`.
    let mut beside = tempfile::Builder::new().prefix(".").suffix(UNFINISHED).tempfile_in(folder)?;
    write!(beside, "{MAGIC}\n{}\n{body}\n", blake3::hash(body.as_bytes()).to_hex())?;
    beside.persist(file).map_err(|e| e.error)?;
    Ok(())
}

#[cfg(test)]
mod tests;
