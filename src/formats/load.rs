//! Walks the paths given and reads every file below them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::document::{Document, Shape};
use super::sniff::{Match, Sniff};
use super::table::{Decoded, FORMATS, Format, Input, Kind};
use super::{bytes, names, unread};
use crate::trajectory::{
    ByteSpan, Dataset, Diagnostic, FileReport, Prediction, RunReport, Severity, SharedTrajectory, Trajectory,
};

/// Stack of a reading thread: walking a deeply nested value takes more than the default.
const STACK: usize = 16 << 20;
/// Files in which issue texts are looked for, beside a file of labelled steps or one folder above.
const TASK_FILES: [&str; 2] = ["instances.jsonl.gz", "instances.jsonl"];

/// One file as it was read.
#[derive(Debug, Clone)]
pub struct LoadedFile {
    /// What became of it.
    pub report: FileReport,
    /// Its trajectories, in file order.
    pub trajectories: Vec<SharedTrajectory>,
    /// Its predictions, in file order.
    pub predictions: Vec<Arc<Prediction>>,
    /// Its reports.
    pub reports: Vec<Arc<RunReport>>,
}

/// Reads every file at and below `paths`, in parallel on threads of its own. `on_file` gets each file as soon as it
/// is read, in any order and from any thread; the result is in order of the paths.
///
/// Folders are walked recursively in order of the names; `.git` is left out, and a folder reached twice (through a
/// link) is read once. Nothing is fatal: a path that cannot be read is listed with the reason.
pub fn load(paths: &[PathBuf], on_file: &(dyn Fn(LoadedFile) + Sync)) -> Dataset {
    let found = walk(paths);
    let tasks = TaskCache::default();
    let read = |found: &Found| {
        let mut file = match found {
            Found::File(path) => load_file(path, &tasks),
            Found::Unreadable(path, reason) => refused(path, reason.clone()),
        };
        file.report.foreign &= !paths.contains(&file.report.path);
        on_file(file.clone());
        file
    };
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(16);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build();
    let files: Vec<LoadedFile> = match pool {
        Ok(pool) => pool.install(|| found.par_iter().map(read).collect()),
        Err(_) => found.iter().map(read).collect(),
    };
    let mut dataset = Dataset::default();
    for file in files {
        dataset.trajectories.extend(file.trajectories);
        dataset.predictions.extend(file.predictions);
        dataset.reports.extend(file.reports);
        dataset.files.push(file.report);
    }
    dataset
}

/// Reads one file's bytes as [`load`] does, without looking for issue texts beside it.
pub fn load_bytes(path: &Path, bytes: Vec<u8>) -> LoadedFile {
    match bytes::unpack(bytes) {
        Ok(content) => decode(path, &content),
        Err(reason) => refused(path, reason),
    }
}

/// Every format that says yes to these bytes, the best first, with what it saw.
///
/// # Errors
/// One line saying what the bytes are when they hold no JSON.
pub fn recognise(path: &Path, bytes: Vec<u8>) -> Result<Vec<(&'static Format, Match)>, String> {
    let content = bytes::unpack(bytes)?;
    let document = Document::read(&content.bytes);
    match &document.shape {
        Shape::Other(what) => Err(what.clone().into_owned()),
        _ => Ok(matches(&Sniff::new(path, &document))),
    }
}

fn matches(sniff: &Sniff<'_>) -> Vec<(&'static Format, Match)> {
    let mut all: Vec<_> = FORMATS.iter().filter_map(|f| Some((f, (f.sniff)(sniff)?))).collect();
    // Stable: among equals the order of the table stays.
    all.sort_by_key(|(_, m)| std::cmp::Reverse(m.confidence));
    all
}

fn load_file(path: &Path, tasks: &TaskCache) -> LoadedFile {
    let content = match bytes::read(path) {
        Ok(content) => content,
        Err(reason) => return refused(path, reason),
    };
    let mut file = decode(path, &content);
    if file.report.format == Some("labelled") {
        tasks.fill(path, &mut file);
    }
    file
}

fn refused(path: &Path, reason: String) -> LoadedFile {
    let report = FileReport {
        path: path.to_owned(),
        format: None,
        reason,
        foreign: false,
        trajectories: 0,
        diagnostics: Vec::new(),
    };
    LoadedFile { report, trajectories: Vec::new(), predictions: Vec::new(), reports: Vec::new() }
}

/// Plain text or empty, and not called JSON: nobody meant it as data.
fn is_foreign(path: &Path, content: &bytes::Content) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let called_data = ["json", "jsonl", "traj", "pred", "eval"].iter().any(|e| name.ends_with(&format!(".{e}")));
    !called_data && !content.bytes.contains(&0)
}

fn decode(path: &Path, content: &bytes::Content) -> LoadedFile {
    let document = Document::read(&content.bytes);
    let sniff = Sniff::new(path, &document);
    let refuse = |reason| {
        let mut file = refused(path, reason);
        file.report.diagnostics = content.diagnostics.iter().chain(&document.diagnostics).cloned().collect();
        file
    };
    if let Shape::Other(what) = &document.shape {
        let mut file = refuse(what.clone().into_owned());
        file.report.foreign = is_foreign(path, content);
        return file;
    }
    let Some((format, found)) = matches(&sniff).into_iter().next() else {
        return refuse(match unread::name(&sniff) {
            Some(name) => format!("{name}: not read in this version"),
            None => format!("no known format: {} (`trajscope formats` lists what is read)", sniff.describe()),
        });
    };
    let mut decoded = (format.decode)(&Input { path, document: &document, format: format.id });
    finish(path, &document, &mut decoded);
    let mut diagnostics = content.diagnostics.clone();
    diagnostics.extend(document.diagnostics.iter().cloned());
    diagnostics.extend(std::mem::take(&mut decoded.diagnostics));
    let mut reason = format!("{}: {}", format.name, found.reason);
    if format.kind == Kind::Trajectory && decoded.trajectories.is_empty() {
        reason.push_str("; no trajectory could be read from it");
    }
    let trajectories: Vec<_> = decoded.trajectories.into_iter().map(Arc::new).collect();
    let report = FileReport {
        path: path.to_owned(),
        format: Some(format.id),
        reason,
        foreign: false,
        trajectories: trajectories.len(),
        diagnostics,
    };
    LoadedFile {
        report,
        trajectories,
        predictions: decoded.predictions.into_iter().map(Arc::new).collect(),
        reports: decoded.reports.into_iter().map(Arc::new).collect(),
    }
}

/// What all decoders leave to be done.
fn finish(path: &Path, document: &Document<'_>, decoded: &mut Decoded) {
    let only = decoded.trajectories.len() == 1;
    for trajectory in &mut decoded.trajectories {
        path.clone_into(&mut trajectory.source.path);
        if only && trajectory.source.span == ByteSpan::default() {
            trajectory.source.span.len = document.bytes.len() as u64;
        }
        if only && trajectory.instance_id.is_none() {
            trajectory.instance_id = names::instance_of(path);
        }
        check(trajectory);
    }
    for prediction in &mut decoded.predictions {
        path.clone_into(&mut prediction.path);
    }
    for report in &mut decoded.reports {
        path.clone_into(&mut report.path);
    }
}

/// Remarks that hold for every format.
fn check(trajectory: &mut Trajectory) {
    let mut remark = |severity, code, text: &str| trajectory.diagnostics.push(Diagnostic::new(severity, code, text));
    if let Some(patch) = trajectory.patch.as_deref().filter(|p| !p.trim().is_empty()) {
        let diff = patch.lines().any(|l| l.starts_with("diff --git ") || l.starts_with("--- ") || l.starts_with("@@ "));
        if !diff {
            remark(
                Severity::Warning,
                "patch.not-a-diff",
                "the submission is not a diff (a flag or an error text?): kept as it is",
            );
        }
    }
    if !trajectory.steps.iter().any(crate::trajectory::Step::is_action) {
        let text = "no assistant step: there is nothing to score";
        trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "trajectory.no-action", text));
    }
}

enum Found {
    File(PathBuf),
    Unreadable(PathBuf, String),
}

/// Every file at and below the paths, in order, each once.
fn walk(paths: &[PathBuf]) -> Vec<Found> {
    let mut walker = Walker::default();
    for path in paths {
        walker.visit(path);
    }
    walker.found
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
                    self.found.push(Found::File(path.to_owned()));
                }
            }
            Ok(_) => self.unreadable(path, "neither a file nor a folder (a device, a pipe?)"),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => self.unreadable(path, "no such file or folder"),
            Err(e) => self.unreadable(path, &format!("cannot be read: {e}")),
        }
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

type Tasks = Arc<BTreeMap<String, String>>;

/// Issue texts by the file they were read from: read once for all files beside it.
#[derive(Default)]
struct TaskCache {
    files: Mutex<HashMap<PathBuf, Tasks>>,
}

impl TaskCache {
    fn fill(&self, path: &Path, file: &mut LoadedFile) {
        let above = path.ancestors().skip(1).take(2);
        let beside = above.flat_map(|folder| TASK_FILES.map(|name| folder.join(name))).find(|p| p.is_file());
        let Some(beside) = beside else {
            return;
        };
        let tasks = self.read(&beside);
        for trajectory in &mut file.trajectories {
            let text = trajectory.instance_id.as_ref().and_then(|id| tasks.get(id));
            if let (None, Some(text)) = (&trajectory.task, text) {
                Arc::make_mut(trajectory).task = Some(text.clone());
            }
        }
    }

    fn read(&self, path: &Path) -> Tasks {
        // Held while reading, so that the other threads wait for the texts instead of reading them too.
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = files.entry(path.to_owned()).or_insert_with(|| {
            let content = bytes::read(path).unwrap_or_default();
            let document = Document::read(&content.bytes);
            Arc::new(super::labelled::decode_tasks(&Input { path, document: &document, format: "tasks" }).tasks)
        });
        Arc::clone(tasks)
    }
}
