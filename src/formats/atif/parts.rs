//! A trajectory that lies in several files: continuations, summaries and sub-agents beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::field;
use super::super::json::Value;
use super::super::table::Decoded;
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::segment::{self, Place, Segment};
use super::steps::Reference;
use crate::trajectory::{Diagnostic, Severity, Trajectory};

/// The name of the trajectory that a file continues or summarises, without `.json`; and its number in the chain.
fn part_of(name: &str) -> Option<(&str, Option<u32>)> {
    let stem = name.strip_suffix(".json")?;
    if let Some((base, number)) = stem.rsplit_once(".cont-") {
        return number.parse().ok().map(|n| (base, Some(n)));
    }
    stem.split_once(".summarization-").map(|(base, _)| (base, None))
}

/// Groups of files by their names; a `trajectory.json` is asked for the files it names.
pub fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let files = folder.files_in("");
    let mut groups: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (at, entry) in &files {
        if let Some((base, _)) = part_of(&entry.name()) {
            groups.entry(base.to_owned()).or_default().insert(*at);
        }
    }
    let jsons = folder.entries.iter().filter(|e| e.path.extension().is_some_and(|x| x == "json")).take(2).count();
    if jsons > 1 && folder.find("trajectory.json").is_some() {
        groups.entry("trajectory".to_owned()).or_default();
    }
    let mut members = BTreeSet::new();
    for (base, mut group) in groups {
        let Some((at, entry)) = folder.find(&format!("{base}.json")) else { continue };
        let Some(root) = entry.value().filter(|v| super::tagged(v) || super::like(v)) else { continue };
        group.insert(at);
        let named = refs_of(&root);
        group.extend(named.iter().filter_map(|path| folder.find(path)).map(|(at, _)| at));
        if group.len() > 1 {
            members.append(&mut group);
        }
    }
    if members.is_empty() {
        return None;
    }
    Some(Claim {
        members: members.into_iter().collect(),
        reason: "an ATIF trajectory and the files it goes on in".into(),
    })
}

/// Files a root refers to.
fn refs_of(root: &Value) -> Vec<String> {
    let mut found: Vec<String> = field::text(root, "continued_trajectory_ref").into_iter().collect();
    let results =
        field::list(root, "steps").iter().filter_map(|s| field::at(s, &["observation", "results"])?.as_array());
    let refs = results.flatten().flat_map(|r| field::list(r, "subagent_trajectory_ref"));
    found.extend(refs.filter_map(|r| field::text(r, "trajectory_path")));
    found
}

/// Reads the files claimed.
pub fn decode(input: &FolderInput<'_>) -> Decoded {
    let mut decoded = join_files(input.members);
    for trajectory in &mut decoded.trajectories {
        trajectory.format = input.format;
    }
    decoded
}

struct Part {
    path: PathBuf,
    segment: Segment,
}

/// Reads ATIF files that lie together: continuations are appended to what they continue, sub-agents are given their
/// parents. Trajectories stand in order of the files and are numbered.
pub fn join_files(entries: &[&Entry]) -> Decoded {
    let mut decoded = Decoded::default();
    let mut parts: Vec<Option<Part>> = Vec::new();
    for entry in entries {
        let Some(root) = entry.value().filter(|v| super::tagged(v) || super::like(v)) else {
            let text = format!("{} could not be read as ATIF", entry.name());
            decoded.diagnostics.push(Diagnostic::new(Severity::Warning, "atif.unreadable", text));
            continue;
        };
        let place = Place { file: Some(Arc::from(entry.path.as_path())), ..Place::default() };
        let mut segment = segment::read(&root, &place, &entry.path);
        segment.name_instance(&entry.path);
        // Several lie in one folder: their files tell them apart.
        segment.trajectory.attempt = entry.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        parts.push(Some(Part { path: entry.path.clone(), segment }));
    }
    let next: Vec<Option<usize>> = (0..parts.len()).map(|i| next_of(&parts, i)).collect();
    let later: BTreeSet<usize> = next.iter().flatten().copied().collect();
    let mut joined: Vec<Part> = Vec::new();
    let starts = (0..parts.len()).filter(|i| !later.contains(i)).chain(later.iter().copied());
    for start in starts.collect::<Vec<_>>() {
        let Some(mut part) = parts.get_mut(start).and_then(Option::take) else { continue };
        let mut at = next.get(start).copied().flatten();
        while let Some(more) = at.and_then(|i| parts.get_mut(i)).and_then(Option::take) {
            part.segment.append(more.segment);
            at = at.and_then(|i| next.get(i).copied().flatten());
        }
        joined.push(part);
    }
    joined.sort_by(|a, b| a.path.cmp(&b.path));
    give_parents(&mut joined);
    decoded.trajectories = joined.into_iter().flat_map(|p| p.segment.finished()).collect();
    for (record, trajectory) in decoded.trajectories.iter_mut().enumerate() {
        trajectory.source.record = record;
    }
    decoded
}

/// The part that goes on where this one ends: the file it names, else the one numbered next.
fn next_of(parts: &[Option<Part>], at: usize) -> Option<usize> {
    let own = parts.get(at)?.as_ref()?;
    let place = |wanted: &Path| parts.iter().flatten().position(|p| p.path == wanted).filter(|i| *i != at);
    let named = own.segment.continues.as_deref().and_then(|name| place(&own.path.with_file_name(name)));
    let name = own.path.file_name()?.to_str()?;
    let (base, number) = match part_of(name) {
        Some((base, Some(number))) => (base, number),
        Some((_, None)) => return named,
        None => (name.strip_suffix(".json")?, 0),
    };
    named.or_else(|| place(&own.path.with_file_name(format!("{base}.cont-{}.json", number.checked_add(1)?))))
}

/// Gives sub-agents in files of their own the session of whoever refers to them, and names those that are nowhere.
fn give_parents(parts: &mut [Part]) {
    for at in 0..parts.len() {
        let Some(part) = parts.get_mut(at) else { return };
        let path = part.path.clone();
        if let Some(name) = part.segment.continues.take() {
            part.segment.ends_early(&name);
        }
        if part.segment.refs.is_empty() {
            continue;
        }
        let refs = std::mem::take(&mut part.segment.refs);
        let session = part.segment.session_or_name(&path);
        let held: Vec<Option<String>> = part.segment.embedded.iter().map(|t| t.session.clone()).collect();
        for reference in refs.iter().filter(|r| r.id.is_none() || !held.contains(&r.id)) {
            let found =
                (0..parts.len()).find(|i| *i != at && parts.get(*i).is_some_and(|p| is_meant(p, &path, reference)));
            if let Some(sub) = found.and_then(|i| parts.get_mut(i)) {
                give_parent(&mut sub.segment.trajectory, &session);
            } else if let Some(part) = parts.get_mut(at) {
                let name = reference.path.as_deref().or(reference.id.as_deref());
                part.segment.missing(name.unwrap_or("without a name"));
            }
        }
    }
}

/// Does the reference, in the file `from`, mean this part?
fn is_meant(part: &Part, from: &Path, reference: &Reference) -> bool {
    let by_path = reference.path.as_deref().is_some_and(|name| lies_at(&part.path, from, name));
    by_path || (reference.id.is_some() && part.segment.trajectory.session == reference.id)
}

fn give_parent(sub: &mut Trajectory, session: &str) {
    sub.parent.get_or_insert_with(|| session.to_owned());
}

/// Is this the file called `name` from the folder of `from`? Copies of trajectories carry a name before it.
fn lies_at(path: &Path, from: &Path, name: &str) -> bool {
    if path == from.with_file_name(name) {
        return true;
    }
    let (Some(own), Some(from)) =
        (path.file_name().and_then(|n| n.to_str()), from.file_name().and_then(|n| n.to_str()))
    else {
        return false;
    };
    let base = from.strip_suffix(".json").and_then(|f| f.strip_suffix("trajectory")).unwrap_or_default();
    !base.is_empty() && own.strip_prefix(base) == Some(name)
}
