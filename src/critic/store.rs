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

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{ActionScore, CriticText, Cut, Scores};

/// First line of every file. The number is raised when the form of the rest changes.
const MAGIC: &str = "trajscope-scores 1";
/// Ending of the files, and of those being written.
const ENDING: &str = "scores";
const UNFINISHED: &str = ".unfinished";
/// Bytes kept in all, unless said otherwise: some 60,000 trajectories.
pub const LIMIT: u64 = 256 << 20;
/// Folders the files are spread over.
const FOLDERS: u64 = 256;
/// A file takes whole blocks on most disks.
const BLOCK: u64 = 4096;
/// No result is larger; a larger file is not ours.
const LARGEST: u64 = 64 << 20;
/// What a crash left half written is removed after this long.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// A file's time of last use is renewed when it is older than this, so that most hits write nothing.
const RENEW: Duration = Duration::from_hours(24);

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
        let file = self.place(key);
        match read(&file, key) {
            Ok(Some(scores)) => {
                count(&self.found);
                renew(&file);
                Some(scores)
            }
            Ok(None) => {
                count(&self.missing);
                None
            }
            Err(why) => {
                count(&self.missing);
                self.note(&self.damaged, &file, &why);
                None
            }
        }
    }

    /// Keeps the scores of a key. That it could not is counted, never an error: they can be computed again.
    pub fn put(&self, key: &Key, scores: &Scores) {
        let file = self.place(key);
        match write(&file, key, scores) {
            Ok(()) => {
                count(&self.written);
                if let Some(folder) = file.parent() {
                    prune(folder, self.share, &file);
                }
            }
            Err(error) => self.note(&self.unwritten, &file, &error.to_string()),
        }
    }

    fn place(&self, key: &Key) -> PathBuf {
        let (folder, name) = key.hash.split_at(2);
        self.folder.join(folder).join(format!("{name}.{ENDING}"))
    }

    fn note(&self, counter: &AtomicUsize, file: &Path, why: &str) {
        count(counter);
        let line = format!("{}: {why}", file.display());
        tracing::warn!("score cache: {line}");
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(line);
    }
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Reads a file; `Ok(None)` = there is none.
fn read(file: &Path, key: &Key) -> Result<Option<Scores>, String> {
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
    decode(&text, key).map(Some)
}

fn decode(text: &str, key: &Key) -> Result<Scores, String> {
    let rest = text.strip_prefix(MAGIC).and_then(|t| t.strip_prefix('\n'));
    let rest = rest.ok_or_else(|| format!("does not begin with {MAGIC:?}"))?;
    let (sum, body) = rest.split_once('\n').ok_or("cut off")?;
    let body = body.strip_suffix('\n').ok_or("cut off")?;
    if blake3::hash(body.as_bytes()).to_hex().as_str() != sum {
        return Err("the checksum does not fit: damaged".into());
    }
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
    let body = serde_json::to_string(&entry)?;
    Ok(format!("{MAGIC}\n{}\n{body}\n", blake3::hash(body.as_bytes()).to_hex()))
}

fn write(file: &Path, key: &Key, scores: &Scores) -> io::Result<()> {
    let text = encode(key, scores)?;
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    // A failed write removes what there is of the file on drop; a crash leaves it to `prune`.
    let mut beside = tempfile::Builder::new().prefix(".").suffix(UNFINISHED).tempfile_in(folder)?;
    beside.write_all(text.as_bytes())?;
    beside.persist(file).map_err(|e| e.error)?;
    Ok(())
}

/// Notes that a file was used. A folder that cannot be written to only loses the order of what goes first.
fn renew(file: &Path) {
    let now = SystemTime::now();
    let used = fs::metadata(file).and_then(|m| m.modified());
    let old = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > RENEW));
    if old && let Err(error) = File::options().append(true).open(file).and_then(|f| f.set_modified(now)) {
        tracing::debug!("score cache: {}: {error}", file.display());
    }
}

/// A file of a cache folder.
struct Kept {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    finished: bool,
}

/// The files of ours in one of the folders, in no order. What cannot be looked at is left alone.
fn kept(folder: &Path) -> Vec<Kept> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let ours = |entry: fs::DirEntry| {
        let (path, data) = (entry.path(), entry.metadata().ok().filter(fs::Metadata::is_file)?);
        let finished = path.extension().is_some_and(|e| e == ENDING);
        let unfinished = path.file_name().is_some_and(|n| n.to_string_lossy().ends_with(UNFINISHED));
        (finished || unfinished).then(|| Kept {
            bytes: data.len().next_multiple_of(BLOCK),
            used: data.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            path,
            finished,
        })
    };
    entries.filter_map(|e| ours(e.ok()?)).collect()
}

/// Brings a folder below its share: the longest unused go first, `newest` never; what a crash left goes too. Another
/// program may do the same at the same time; a file that is gone already is what both want.
fn prune(folder: &Path, share: u64, newest: &Path) {
    let mut files = kept(folder);
    let now = SystemTime::now();
    files.retain(|file| {
        let forgotten = !file.finished && now.duration_since(file.used).is_ok_and(|age| age > FORGOTTEN);
        !(forgotten && fs::remove_file(&file.path).is_ok())
    });
    let mut bytes: u64 = files.iter().map(|f| f.bytes).sum();
    files.sort_by_key(|f| f.used);
    for file in files.iter().filter(|f| f.finished && f.path != newest) {
        if bytes <= share {
            break;
        }
        if fs::remove_file(&file.path).is_ok() {
            bytes -= file.bytes;
        }
    }
}

/// What a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Results.
    pub entries: usize,
    /// Bytes on disk, in whole blocks.
    pub bytes: u64,
}

/// What the store in `folder` holds.
pub fn usage(folder: &Path) -> Usage {
    let mut usage = Usage::default();
    for file in folders(folder).iter().flat_map(|f| kept(f)) {
        usage.entries += usize::from(file.finished);
        usage.bytes += file.bytes;
    }
    usage
}

/// Removes every result from the store in `folder`, and nothing that is not the store's. Says what there was.
///
/// # Errors
/// The first file that could not be removed.
pub fn clear(folder: &Path) -> Result<Usage, (PathBuf, io::Error)> {
    let mut gone = Usage::default();
    for part in folders(folder) {
        for file in kept(&part) {
            match fs::remove_file(&file.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((file.path, error)),
                _ => {}
            }
            gone.entries += usize::from(file.finished);
            gone.bytes += file.bytes;
        }
        // It stays if something foreign is in it.
        if let Err(error) = fs::remove_dir(&part) {
            tracing::debug!("score cache: {}: {error}", part.display());
        }
    }
    Ok(gone)
}

/// The folders of a store that exist.
fn folders(folder: &Path) -> Vec<PathBuf> {
    (0..FOLDERS).map(|i| folder.join(format!("{i:02x}"))).filter(|f| f.is_dir()).collect()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
