//! Every file at and below the paths given, on disk or inside an archive, and which of them belong together.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::archive::Packed;
use super::bytes::{self, Content};
use super::json;
use super::json::Value;
use super::walk::Unit;
use crate::trajectory::Trajectory;

/// Where an entry's bytes are.
#[derive(Debug, Clone)]
enum Place {
    Disk,
    Packed(Packed),
}

/// A file found: on disk, or inside an archive (then its path goes through the archive's: `log.eval/samples/1.json`).
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes as it lies there (packed or not).
    pub len: u64,
    place: Place,
}

impl Entry {
    /// A file on disk.
    pub fn on_disk(path: PathBuf, len: u64) -> Self {
        Self { path, len, place: Place::Disk }
    }

    /// A file inside an archive.
    pub fn packed(path: PathBuf, len: u64, packed: Packed) -> Self {
        Self { path, len, place: Place::Packed(packed) }
    }

    /// Is it a file of its own on disk, so that parts of it can be read?
    pub fn is_on_disk(&self) -> bool {
        matches!(self.place, Place::Disk)
    }

    /// Its name without folders; bytes that are not UTF-8 are replaced.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// Its content, unpacked where it is compressed.
    ///
    /// # Errors
    /// One line saying what the file is instead, or why it cannot be read.
    pub fn read(&self) -> Result<Content, String> {
        match &self.place {
            Place::Disk => bytes::read(&self.path),
            Place::Packed(packed) => bytes::unpack(packed.read()?),
        }
    }

    /// Its first JSON value, repaired where needed: for small files. `None` if it holds none.
    pub fn value(&self) -> Option<Value<'static>> {
        let content = self.read().ok()?;
        let text = content.bytes.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(&content.bytes);
        let strict = json::strict_prefix(text).map(|(value, _)| value);
        let value = strict.or_else(|| json::repair_prefix(text).ok().map(|p| p.value));
        value.map(Value::into_owned)
    }
}

/// A folder (or archive) with everything below it, as a folder format looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Every file below it at any depth, in order of the paths.
    pub entries: &'a [Entry],
}

impl<'a> Folder<'a> {
    /// Path of an entry from this folder.
    pub fn relative<'e>(&self, entry: &'e Entry) -> &'e Path {
        entry.path.strip_prefix(self.path).unwrap_or(&entry.path)
    }

    /// The entry at a path from this folder (`"events/0.json"`) with its index. Quick: a binary search.
    pub fn find(&self, relative: &str) -> Option<(usize, &'a Entry)> {
        let path = self.path.join(relative);
        let at = self.entries.binary_search_by(|e| e.path.cmp(&path)).ok()?;
        Some((at, self.entries.get(at)?))
    }

    /// The files directly in a folder below this one (`""` for this folder itself) with their indices. Quick: leaves
    /// deeper folders out by jumps.
    pub fn files_in(&self, relative: &str) -> Vec<(usize, &'a Entry)> {
        let dir = if relative.is_empty() { self.path.to_owned() } else { self.path.join(relative) };
        let mut found = Vec::new();
        let mut at = self.entries.partition_point(|e| e.path < dir);
        while let Some(entry) = self.entries.get(at).filter(|e| e.path.starts_with(&dir)) {
            let Some(first) = entry.path.strip_prefix(&dir).ok().and_then(|rest| rest.components().next()) else {
                break;
            };
            let child = dir.join(first);
            if child == entry.path {
                found.push((at, entry));
                at += 1;
            } else {
                let rest = self.entries.get(at..).unwrap_or_default();
                at += rest.partition_point(|e| e.path.starts_with(&child));
            }
        }
        found
    }

    /// Every file at any depth below a folder in this one, with its index.
    pub fn files_below(&self, relative: &str) -> Vec<(usize, &'a Entry)> {
        let dir = if relative.is_empty() { self.path.to_owned() } else { self.path.join(relative) };
        let from = self.entries.partition_point(|e| e.path < dir);
        let below = self.entries.iter().enumerate().skip(from);
        below.take_while(|(_, e)| e.path.starts_with(&dir)).collect()
    }
}

/// Files of a folder that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Indices into [`Folder::entries`].
    pub members: Vec<usize>,
    /// By what it was recognised, in one clause.
    pub reason: Cow<'static, str>,
}

/// What a folder format's decoder gets.
#[derive(Debug, Clone, Copy)]
pub struct FolderInput<'a> {
    /// The folder: the path of what is decoded.
    pub path: &'a Path,
    /// The members claimed, in order of the paths.
    pub members: &'a [&'a Entry],
    /// The id of the format.
    pub format: &'static str,
    /// The only trajectory wanted, by its record: a decoder that can may leave out the others.
    pub only: Option<usize>,
    /// What is done with each trajectory as soon as it is read.
    pub each: Each<'a>,
}

/// What is done with each trajectory of a folder of many: it is shown at once, and its steps are let go where there is
/// no room for them.
#[derive(Clone, Copy)]
pub struct Each<'a>(pub &'a (dyn Fn(&mut Trajectory) + Sync));

impl std::fmt::Debug for Each<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Each")
    }
}

impl<'a> FolderInput<'a> {
    /// Hands on a trajectory that is read, when the decoder reads many. Its format and record must be set.
    pub fn hand_on(&self, trajectory: &mut Trajectory) {
        (self.each.0)(trajectory);
    }

    /// The member at a path from the folder.
    pub fn find(&self, relative: &str) -> Option<&'a Entry> {
        let path = self.path.join(relative);
        self.members.iter().copied().find(|e| e.path == path)
    }

    /// Path of a member from the folder.
    pub fn relative<'e>(&self, entry: &'e Entry) -> &'e Path {
        entry.path.strip_prefix(self.path).unwrap_or(&entry.path)
    }

    /// Members at and below a folder, read together where a folder format knows them.
    pub fn decode_folders(&self, dir: &Path) -> Vec<super::load::LoadedFile> {
        let below = self.members.iter().filter(|e| e.path.starts_with(dir)).map(|e| (*e).clone()).collect();
        let units = super::walk::units_among(below, &BTreeSet::from([dir]));
        let folders = units.iter().filter_map(|unit| match unit {
            Unit::Folder(unit) => Some(super::load::load_folder(unit, None, &|_| {})),
            Unit::File(_) | Unit::Unreadable(..) => None,
        });
        folders.collect()
    }

    /// A member read as a file by itself, by whatever format recognises it. Its trajectories have
    /// [`Source::path`](crate::trajectory::Source::path) set to the member's.
    pub fn decode_member(&self, entry: &Entry) -> super::load::LoadedFile {
        super::load::load_entry(entry)
    }
}
