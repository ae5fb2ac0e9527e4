//! `.eval` archives, and folders they were unpacked to.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::json::Value;
use rayon::prelude::*;

use super::super::table::Decoded;
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{field, json, trial};
use super::file;
use super::header::Header;
use super::sample::{self, List, Parts};
use crate::trajectory::{Diagnostic, RawPlace, Severity, Trajectory};

/// A header, or at least the journal's start, beside samples or summaries.
pub fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let header = folder.find("header.json").is_some();
    let journal = folder.find("_journal/start.json").is_some();
    let samples = || !folder.files_below("samples").is_empty();
    let summaries = || folder.find("summaries.json").is_some() || !folder.files_below("_journal/summaries").is_empty();
    let reason = match (header, journal) {
        (true, _) if journal || samples() || summaries() => "`header.json` beside samples",
        (false, true) => "`_journal/start.json` without a header: still being written, or cut",
        _ => return None,
    };
    Some(Claim { members: (0..folder.entries.len()).collect(), reason: reason.into() })
}

/// Where a sample lies: a file, or a folder of several.
fn sample_of(relative: &Path) -> Option<(PathBuf, String, u64)> {
    let inside = relative.strip_prefix("samples").ok()?;
    let mut path = PathBuf::from("samples");
    // Ids may hold slashes: the first level that ends with the epoch is the sample.
    let mut id = String::new();
    for component in inside.components() {
        path.push(component);
        let name = component.as_os_str().to_string_lossy();
        let stem = name.strip_suffix(".json").unwrap_or(&name);
        if !id.is_empty() {
            id.push('/');
        }
        if let Some((before, epoch)) = stem.rsplit_once("_epoch_").and_then(|(b, e)| Some((b, e.parse().ok()?))) {
            id.push_str(before);
            return Some((path, id, epoch));
        }
        id.push_str(&name);
    }
    None
}

/// Numbers in order of their size, then names.
fn order(id: &str) -> (u64, &str) {
    id.parse().map_or((u64::MAX, id), |n| (n, ""))
}

/// Id, epoch and files of a sample.
type Sample<'a> = (String, u64, Vec<&'a Entry>);

/// Reads a log: its samples in parallel, in order of id and epoch.
pub fn decode(input: &FolderInput<'_>) -> Decoded {
    let whole = input.find("header.json").and_then(Entry::value);
    let start = || input.find("_journal/start.json").and_then(Entry::value);
    let root = whole.or_else(start).unwrap_or(Value::Null);
    let header = Header::of(&root);
    let mut groups: BTreeMap<PathBuf, (String, u64, Vec<&Entry>)> = BTreeMap::new();
    let mut strange = 0;
    for entry in input.members {
        let relative = input.relative(entry);
        match sample_of(relative) {
            Some((path, id, epoch)) => groups.entry(path).or_insert((id, epoch, Vec::new())).2.push(entry),
            None => strange += usize::from(relative.starts_with("samples")),
        }
    }
    let mut samples: Vec<Sample<'_>> = groups.into_values().collect();
    samples.sort_by(|a, b| (order(&a.0), a.1).cmp(&(order(&b.0), b.1)));
    let wanted = |record: &usize| input.only.is_none_or(|only| only == *record);
    let all: Vec<(usize, &Sample<'_>)> = samples.iter().enumerate().filter(|(record, _)| wanted(record)).collect();
    let read: Vec<Option<Trajectory>> =
        all.par_iter().map(|(record, s)| handed_on(input, *record, s, &header)).collect();
    let mut decoded = Decoded::default();
    let lost = read.iter().filter(|t| t.is_none()).count() + strange;
    decoded.trajectories = read.into_iter().flatten().collect();
    decoded.diagnostics = header.remarks(decoded.trajectories.len());
    if lost > 0 {
        let text = format!("{lost} files below samples/ could not be read as samples");
        decoded.diagnostics.push(Diagnostic::new(Severity::Warning, "inspect.unreadable-sample", text));
    }
    if decoded.trajectories.is_empty() {
        let reductions = input.find("reductions.json").and_then(Entry::value).unwrap_or(Value::Null);
        let list = reductions.as_array().map_or(&[][..], Vec::as_slice);
        decoded.reports.extend(header.reductions(list));
    }
    decoded
}

/// Reads a sample and hands it on: a log may hold thousands.
fn handed_on(input: &FolderInput<'_>, record: usize, sample: &Sample<'_>, header: &Header) -> Option<Trajectory> {
    let mut trajectory = read(&sample.2, header)?;
    trajectory.source.record = record;
    trajectory.format = input.format;
    input.hand_on(&mut trajectory);
    Some(trajectory)
}

fn read(files: &[&Entry], header: &Header) -> Option<Trajectory> {
    if let [only] = files
        && only.name() != "sample.json"
    {
        let value = only.value().filter(Value::is_object)?;
        return Some(sample::read(&Parts::whole(&value, &file(&only.path)), header));
    }
    split(files, header)
}

/// A large sample in a folder of its own.
fn split(files: &[&Entry], header: &Header) -> Option<Trajectory> {
    let own = files.iter().find(|e| e.name() == "sample.json")?;
    let mut value = own.value().filter(Value::is_object)?;
    let metadata = files.iter().find(|e| e.name() == "metadata.json").and_then(|e| e.value());
    if let (Value::Object(members), Some(metadata)) = (&mut value, metadata) {
        members.get_or_insert("metadata", metadata);
    }
    let chunks = |folder: &str| chunks(files, folder);
    let root = file(&own.path);
    let kept = |key: &str| (!field::list(&value, key).is_empty()).then(|| List::of(&root, &value, key));
    let messages = kept("messages").unwrap_or_else(|| chunks("messages"));
    let events = kept("events").unwrap_or_else(|| chunks("events"));
    let attachment = |hash: &str| {
        let inside = field::str_at(&value, &["attachments", hash]).map(str::to_owned);
        inside.or_else(|| attached(files, hash))
    };
    let parts = Parts { sample: &value, root: root.clone(), messages, events, attachment: Box::new(attachment) };
    Some(sample::read(&parts, header))
}

/// `messages/0.json`, `messages/100.json`, …: lists, by the number of their first element.
fn chunks<'a>(files: &[&Entry], folder: &str) -> List<'a> {
    let in_folder = |e: &&&Entry| e.path.parent().and_then(Path::file_name).is_some_and(|n| n == folder);
    let number = |e: &Entry| e.name().strip_suffix(".json").and_then(|n| n.parse::<u64>().ok());
    let mut numbered: Vec<(u64, &Entry)> =
        files.iter().filter(in_folder).filter_map(|e| Some((number(e)?, *e))).collect();
    numbered.sort_by_key(|(n, _)| *n);
    let chunk = |(_, entry): (u64, &Entry)| -> Option<(RawPlace, Cow<'a, [Value<'a>]>)> {
        match entry.value()? {
            Value::Array(items) => Some((file(&entry.path), Cow::Owned(items))),
            _ => None,
        }
    };
    List { chunks: numbered.into_iter().filter_map(chunk).collect() }
}

/// A text kept in a file: as JSON text, or as it is.
fn attached(files: &[&Entry], hash: &str) -> Option<String> {
    let fits = |e: &&&Entry| {
        let apart = e.path.parent().and_then(Path::file_name).is_some_and(|n| n == "attachments");
        apart && e.path.file_stem().is_some_and(|stem| stem == hash)
    };
    let text = trial::text(files.iter().find(fits)?)?;
    match json::strict_prefix(text.as_bytes()) {
        Some((Value::String(inner), _)) => Some(inner.into_owned()),
        _ => Some(text),
    }
}
