//! From the paths given to units of reading: single files, and folders whose files belong together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::archive;
use super::table::{Format, Reader, formats};
use super::tree::{Claim, Entry, Folder};

/// What is read as one.
pub enum Unit {
    /// A file by itself.
    File(Entry),
    /// Several files as one format says.
    Folder(FolderUnit),
    /// A path that cannot be read, and why.
    Unreadable(PathBuf, String),
}

impl Unit {
    /// The file or folder.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(entry) => &entry.path,
            Self::Folder(unit) => &unit.path,
            Self::Unreadable(path, _) => path,
        }
    }
}

/// Files of a folder that a format claims.
pub struct FolderUnit {
    /// The folder.
    pub path: PathBuf,
    /// Who claims them.
    pub format: &'static Format,
    /// By what it was recognised.
    pub reason: String,
    /// The files, in order of the paths.
    pub members: Vec<Entry>,
}

enum Found {
    File(Entry),
    Unreadable(PathBuf, String),
}

/// Every unit at and below the paths, in order of the paths, each file once.
///
/// Folders are walked recursively in order of the names; `.git` is left out, and a folder reached twice (through a
/// link) is read once. Archives are walked like folders.
pub fn units(paths: &[PathBuf]) -> Vec<Unit> {
    let mut walker = Walker::default();
    for path in paths {
        walker.visit(path);
    }
    let mut entries = Vec::new();
    let mut units = Vec::new();
    for found in walker.found {
        match found {
            Found::File(entry) => entries.push(entry),
            Found::Unreadable(path, reason) => units.push(Unit::Unreadable(path, reason)),
        }
    }
    let roots: BTreeSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
    units.extend(units_among(entries, &roots));
    units.sort_by(|a, b| a.path().cmp(b.path()));
    units
}

/// The units that entries make, asking about the folders at and below the roots.
pub fn units_among(mut entries: Vec<Entry>, roots: &BTreeSet<&Path>) -> Vec<Unit> {
    // Sorted, so that every folder's files lie together whatever order the paths were given in.
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let (claims, taken) = claims(&entries, roots);
    group(entries, claims, &taken)
}

struct Claimed {
    path: PathBuf,
    format: &'static Format,
    claim: Claim,
}

/// Asks every folder format about every folder, the outer folders first.
fn claims(entries: &[Entry], roots: &BTreeSet<&Path>) -> (Vec<Claimed>, Vec<bool>) {
    let mut taken = vec![false; entries.len()];
    let mut claimed = Vec::new();
    let readers: Vec<_> = formats()
        .filter_map(|format| match format.reader {
            Reader::Folder { claim, .. } => Some((format, claim)),
            Reader::File { .. } => None,
        })
        .collect();
    for (path, range) in folders(entries, roots) {
        let below = entries.get(range.clone()).unwrap_or_default();
        for (format, claim) in &readers {
            let Some(mut claim) = claim(&Folder { path: &path, entries: below }) else { continue };
            for member in &mut claim.members {
                *member += range.start;
            }
            claim.members.sort_unstable();
            claim.members.dedup();
            // A folder further out may have taken some of them: the rest is still worth reading together.
            claim.members.retain(|i| taken.get(*i) == Some(&false));
            if claim.members.is_empty() {
                continue;
            }
            for member in &claim.members {
                if let Some(taken) = taken.get_mut(*member) {
                    *taken = true;
                }
            }
            claimed.push(Claimed { path: path.clone(), format, claim });
        }
    }
    (claimed, taken)
}

/// Every folder (and archive) that holds entries, with the range of what lies below it; outer folders first. Folders
/// above the paths given are left alone.
fn folders(entries: &[Entry], roots: &BTreeSet<&Path>) -> Vec<(PathBuf, std::ops::Range<usize>)> {
    let mut found: Vec<(PathBuf, std::ops::Range<usize>)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        while let Some(top) = open.last().and_then(|i| found.get_mut(*i)) {
            if entry.path.starts_with(&top.0) {
                break;
            }
            top.1.end = at;
            open.pop();
        }
        let known = open.last().and_then(|i| found.get(*i)).map(|(path, _)| path.clone());
        let mut new: Vec<&Path> = Vec::new();
        for above in entry.path.ancestors().skip(1) {
            if known.as_deref() == Some(above) {
                break;
            }
            new.push(above);
            // A file given by itself: its own folder is looked at, nothing further out.
            if roots.contains(above) || (known.is_none() && roots.contains(entry.path.as_path())) {
                break;
            }
        }
        for path in new.into_iter().rev() {
            open.push(found.len());
            found.push((path.to_owned(), at..entries.len()));
        }
    }
    found
}

/// Claims and the files left over.
fn group(entries: Vec<Entry>, claims: Vec<Claimed>, taken: &[bool]) -> Vec<Unit> {
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    let mut units = Vec::new();
    for Claimed { path, format, claim } in claims {
        let members = claim.members.iter().filter_map(|i| entries.get_mut(*i)?.take()).collect();
        units.push(Unit::Folder(FolderUnit { path, format, reason: claim.reason.into_owned(), members }));
    }
    let left = entries.into_iter().zip(taken).filter(|(_, taken)| !**taken);
    units.extend(left.filter_map(|(entry, _)| entry).map(Unit::File));
    units
}

#[derive(Default)]
struct Walker {
    found: Vec<Found>,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Walker {
    fn visit(&mut self, path: &Path) {
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => self.folder(path),
            Ok(meta) if meta.is_file() => {
                if self.files.insert(path.to_owned()) {
                    self.file(path, meta.len());
                }
            }
            Ok(_) => self.unreadable(path, "neither a file nor a folder (a device, a pipe?)"),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => self.inside(path),
            // `log.eval/samples/1.json`: a path through an archive.
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => self.inside(path),
            Err(e) => self.unreadable(path, &format!("cannot be read: {e}")),
        }
    }

    fn file(&mut self, path: &Path, len: u64) {
        match archive::entries(path) {
            None => self.found.push(Found::File(Entry::on_disk(path.to_owned(), len))),
            Some(Ok(listing)) => {
                self.found.extend(listing.entries.into_iter().map(Found::File));
                if let Some(remark) = listing.remark {
                    self.unreadable(path, remark);
                }
            }
            Some(Err(reason)) => self.unreadable(path, &reason),
        }
    }

    /// A path that leads into an archive.
    fn inside(&mut self, path: &Path) {
        let archive = path.ancestors().skip(1).find(|above| above.is_file());
        let entries = archive.and_then(archive::entries).and_then(Result::ok).unwrap_or_default().entries;
        let below: Vec<Entry> = entries.into_iter().filter(|e| e.path.starts_with(path)).collect();
        if below.is_empty() {
            return self.unreadable(path, "no such file or folder");
        }
        self.found.extend(below.into_iter().map(Found::File));
    }

    fn folder(&mut self, path: &Path) {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if !self.folders.insert(real) {
            return;
        }
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) => return self.unreadable(path, &format!("the folder cannot be read: {e}")),
        };
        let mut names: Vec<PathBuf> = entries.filter_map(Result::ok).map(|e| e.path()).collect();
        names.sort();
        for name in names {
            if name.file_name().is_some_and(|n| n == ".git") {
                continue;
            }
            self.visit(&name);
        }
    }

    fn unreadable(&mut self, path: &Path, reason: &str) {
        self.found.push(Found::Unreadable(path.to_owned(), reason.to_owned()));
    }
}
