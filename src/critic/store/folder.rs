//! The folders of a store: what is in them, what goes when they are full.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{ENDING, FOLDERS, UNFINISHED};

/// A file takes whole blocks on most disks.
pub(super) const BLOCK: u64 = 4096;
/// What a crash left half written is removed after this long.
pub(super) const FORGOTTEN: Duration = Duration::from_hours(1);
/// A file's time of last use is renewed when it is older than this, so that most hits write nothing.
pub(super) const RENEW: Duration = Duration::from_hours(24);

/// Notes that a file was used. A folder that cannot be written to only loses the order of what goes first.
pub(super) fn renew(file: &Path) {
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
pub(super) fn prune(folder: &Path, share: u64, newest: &Path) {
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
