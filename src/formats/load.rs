//! Walks the paths given and reads every file below them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::big;
use super::document::{Document, Shape};
use super::keep::Keep;
use super::sniff::{Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader, formats};
use super::tasks::TaskCache;
use super::tree::{Each, Entry, FolderInput};
use super::walk::{self, FolderUnit, Unit};
use super::{bytes, checks, names, replay};
use crate::trajectory::{ByteSpan, Dataset, FileReport, Prediction, RunReport, SharedTrajectory, Trajectory};

/// Stack of a reading thread: walking a deeply nested value takes more than the default.
const STACK: usize = 16 << 20;

/// One file as it was read, or a folder whose files belong together.
#[derive(Debug, Clone)]
pub struct LoadedFile {
    /// What became of it.
    pub report: FileReport,
    /// What became of the files of a folder that were read together.
    pub members: Vec<FileReport>,
    /// Its trajectories, in file order.
    pub trajectories: Vec<SharedTrajectory>,
    /// Its predictions, in file order.
    pub predictions: Vec<Arc<Prediction>>,
    /// Its reports.
    pub reports: Vec<Arc<RunReport>>,
}

/// Reads every file at and below `paths`, in parallel on threads of its own, and keeps all of it in memory. `on_file`
/// gets each file as soon as it is read, in any order and from any thread; of a large file several parts, each of
/// which replaces what was known of the same trajectories before. The result is in order of the paths.
/// Nothing is fatal: a path that cannot be read is listed with the reason.
pub fn load(paths: &[PathBuf], on_file: &(dyn Fn(LoadedFile) + Sync)) -> Dataset {
    load_within(paths, None, on_file)
}

/// Reads as [`load`] does, but keeps only so many bytes of steps in memory: the other trajectories have
/// [`Body::Read`](crate::trajectory::Body), and [`open`](super::open()) brings their steps.
pub fn load_within(paths: &[PathBuf], bytes: Option<u64>, on_file: &(dyn Fn(LoadedFile) + Sync)) -> Dataset {
    let units = walk::units(paths);
    let tasks = TaskCache::default();
    let keep = Keep::new(bytes);
    let read = |unit: &Unit| {
        let mut file = match unit {
            Unit::File(entry) => load_single(entry, &tasks, &keep, on_file),
            Unit::Folder(unit) => load_many(unit, &keep, on_file),
            Unit::Unreadable(path, reason) => refused(path, reason),
        };
        file.report.foreign &= !paths.contains(&file.report.path);
        on_file(file.clone());
        file
    };
    let files: Vec<LoadedFile> = in_pool(|| units.par_iter().map(read).collect());
    let mut dataset = Dataset::default();
    for file in files {
        dataset.trajectories.extend(file.trajectories);
        dataset.predictions.extend(file.predictions);
        dataset.reports.extend(file.reports);
        dataset.files.push(file.report);
        dataset.files.extend(file.members);
    }
    replay::mark(&mut dataset.trajectories, |known| {
        let mut whole = super::open(known).ok()?;
        Arc::make_mut(&mut whole).ledger = Arc::clone(&known.ledger);
        Some(whole)
    });
    for trajectory in &mut dataset.trajectories {
        keep.settle_again(trajectory);
    }
    dataset
}

/// Runs on threads with stacks deep enough for nested values.
pub fn in_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(16);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// Reads one file's bytes as [`load`] does, without looking for issue texts beside it.
pub fn load_bytes(path: &Path, bytes: Vec<u8>) -> LoadedFile {
    match bytes::unpack(bytes) {
        Ok(content) => decode(path, &content),
        Err(reason) => refused(path, &reason),
    }
}

/// Reads an entry by itself.
pub fn load_entry(entry: &Entry) -> LoadedFile {
    match entry.read() {
        Ok(content) => decode(&entry.path, &content),
        Err(reason) => refused(&entry.path, &reason),
    }
}

/// Every format that says yes to these bytes, the best first, with what it saw.
///
/// # Errors
/// One line saying what the bytes are when they hold no JSON and no format knows the text.
pub fn recognise(path: &Path, bytes: Vec<u8>) -> Result<Vec<(&'static Format, Match)>, String> {
    let content = bytes::unpack(bytes)?;
    let document = Document::read(&content.bytes);
    let found = matches(&Sniff::new(path, &document));
    match &document.shape {
        Shape::Other(what) if found.is_empty() => Err(what.clone().into_owned()),
        _ => Ok(found),
    }
}

fn matches(sniff: &Sniff<'_>) -> Vec<(&'static Format, Match)> {
    let asked = formats().filter_map(|format| match format.reader {
        Reader::File { sniff: ask, .. } => Some((format, ask(sniff)?)),
        Reader::Folder { .. } => None,
    });
    let mut all: Vec<_> = asked.collect();
    // Stable: among equals the order of the table stays.
    all.sort_by_key(|(_, m)| std::cmp::Reverse(m.confidence));
    all
}

fn load_single(entry: &Entry, tasks: &TaskCache, keep: &Keep, on_part: &(dyn Fn(LoadedFile) + Sync)) -> LoadedFile {
    let big = big::load(entry, keep, on_part);
    let small = big.is_none();
    let mut file = big.unwrap_or_else(|| load_entry(entry));
    if file.report.format == Some("labelled") {
        tasks.fill(&entry.path, &mut file);
    }
    if small {
        keep.settle_file(&mut file);
    }
    file
}

/// Reads the files of a folder that belong together. A decoder that finds many trajectories hands each on at once.
fn load_many(unit: &FolderUnit, keep: &Keep, on_file: &(dyn Fn(LoadedFile) + Sync)) -> LoadedFile {
    let settled = AtomicBool::new(false);
    let each = |trajectory: &mut Trajectory| {
        let mut part = Decoded { trajectories: vec![trajectory.clone()], ..Decoded::default() };
        finish(&unit.path, 0, false, &mut part);
        on_file(loaded(&unit.path, unit.format, &unit.reason, part));
        keep.settle(trajectory);
        settled.store(true, Ordering::Relaxed);
    };
    let mut file = load_folder(unit, None, &each);
    if !settled.into_inner() {
        keep.settle_file(&mut file);
    }
    file
}

/// Reads the files of a folder that belong together; of many trajectories only the one wanted, if one is.
pub fn load_folder(unit: &FolderUnit, only: Option<usize>, each: &(dyn Fn(&mut Trajectory) + Sync)) -> LoadedFile {
    let members: Vec<&Entry> = unit.members.iter().collect();
    let id = unit.format.id;
    let input = FolderInput { path: &unit.path, members: &members, format: id, only, each: Each(each) };
    let mut decoded = match unit.format.reader {
        Reader::Folder { decode, .. } => decode(&input),
        Reader::File { .. } => Decoded::default(),
    };
    finish(&unit.path, 0, true, &mut decoded);
    let name = unit.format.name;
    let mut file = loaded(&unit.path, unit.format, &format!("{name}: {}", unit.reason), decoded);
    let folder = unit.path.display();
    file.members = members
        .iter()
        .map(|member| FileReport {
            path: member.path.clone(),
            format: Some(id),
            reason: format!("{name}: read together with the other files of {folder}"),
            foreign: false,
            trajectories: 0,
            diagnostics: Vec::new(),
        })
        .collect();
    file
}

fn refused(path: &Path, reason: &str) -> LoadedFile {
    let report = FileReport {
        path: path.to_owned(),
        format: None,
        // Reasons quote the file: one line, whatever it holds.
        reason: crate::text::one_line(reason),
        foreign: false,
        trajectories: 0,
        diagnostics: Vec::new(),
    };
    LoadedFile { report, members: Vec::new(), trajectories: Vec::new(), predictions: Vec::new(), reports: Vec::new() }
}

/// Empty, or plain text that is not called JSON: nobody meant it as data. Writers that were killed leave empty files.
fn is_foreign(path: &Path, content: &bytes::Content) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let called_data = ["json", "jsonl", "traj", "pred", "eval"].iter().any(|e| name.ends_with(&format!(".{e}")));
    content.bytes.is_empty() || (!called_data && !content.bytes.contains(&0))
}

fn decode(path: &Path, content: &bytes::Content) -> LoadedFile {
    let document = Document::read(&content.bytes);
    let (format, found) = match recognise_document(path, &document) {
        Ok(found) => found,
        Err(mut file) => {
            file.report.foreign &= is_foreign(path, content);
            file.report.diagnostics.splice(0..0, content.diagnostics.iter().cloned());
            return *file;
        }
    };
    let mut decoded = match format.reader {
        Reader::File { decode, .. } => decode(&Input { path, document: &document, format: format.id }),
        Reader::Folder { .. } => Decoded::default(),
    };
    finish(path, document.size(), true, &mut decoded);
    let mut before = content.diagnostics.clone();
    before.extend(document.diagnostics.iter().cloned());
    decoded.diagnostics.splice(0..0, before);
    loaded(path, format, &format!("{}: {}", format.name, found.reason), decoded)
}

/// The format that fits best, and by what; or the file as one that is not understood.
pub fn recognise_document(path: &Path, document: &Document<'_>) -> Result<(&'static Format, Match), Box<LoadedFile>> {
    let sniff = Sniff::new(path, document);
    let best = explained(matches(&sniff));
    let refuse = |reason: &str, foreign| {
        let mut file = refused(path, reason);
        file.report.diagnostics.clone_from(&document.diagnostics);
        file.report.foreign = foreign;
        Box::new(file)
    };
    match (best, &document.shape) {
        (Some(best), _) => Ok(best),
        (None, Shape::Other(what)) => Err(refuse(what, true)),
        (None, _) => Err(refuse(
            &format!("no known format: {} (`trajscope formats` lists what is read)", sniff.describe()),
            false,
        )),
    }
}

/// The best match, its reason with how sure it is and what else the file looks like.
fn explained(all: Vec<(&'static Format, Match)>) -> Option<(&'static Format, Match)> {
    let mut all = all.into_iter();
    let (format, best) = all.next()?;
    let mut reason = format!("{} ({})", best.reason, best.confidence.name());
    for (i, (other, found)) in all.enumerate() {
        reason.push_str(if i == 0 { "; also looks like " } else { ", " });
        reason.push_str(&format!("{} ({}: {})", other.id, found.confidence.name(), found.reason));
    }
    Some((format, Match { reason: reason.into(), ..best }))
}

/// A file that was read.
pub fn loaded(path: &Path, format: &'static Format, seen: &str, decoded: Decoded) -> LoadedFile {
    let mut reason = seen.to_owned();
    if format.kind == Kind::Trajectory && decoded.trajectories.is_empty() {
        reason.push_str("; no trajectory could be read from it");
    }
    let trajectories: Vec<_> = decoded.trajectories.into_iter().map(Arc::new).collect();
    let report = FileReport {
        path: path.to_owned(),
        format: Some(format.id),
        reason: crate::text::one_line(&reason),
        foreign: false,
        trajectories: trajectories.len(),
        diagnostics: decoded.diagnostics,
    };
    LoadedFile {
        report,
        members: Vec::new(),
        trajectories,
        predictions: decoded.predictions.into_iter().map(Arc::new).collect(),
        reports: decoded.reports.into_iter().map(Arc::new).collect(),
    }
}

/// What all decoders leave to be done.
/// `all` if this is everything there is in the file: then its name may say which instance it is about.
pub fn finish(path: &Path, len: u64, all: bool, decoded: &mut Decoded) {
    let only = all && decoded.trajectories.len() == 1;
    for trajectory in &mut decoded.trajectories {
        path.clone_into(&mut trajectory.source.path);
        if only && trajectory.source.span == ByteSpan::default() {
            trajectory.source.span.len = len;
        }
        if only && trajectory.instance_id.is_none() && trajectory.parent.is_none() {
            trajectory.instance_id = names::instance_of(path);
        }
        checks::check(trajectory);
    }
    for prediction in &mut decoded.predictions {
        path.clone_into(&mut prediction.path);
    }
    // A folder's decoder knows better which of its files says so.
    for report in decoded.reports.iter_mut().filter(|r| r.path.as_os_str().is_empty()) {
        path.clone_into(&mut report.path);
    }
}
