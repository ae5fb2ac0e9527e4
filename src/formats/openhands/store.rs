//! The V0 event store: one file an event, and pages of the same events as a cache.

use std::collections::BTreeMap;

use super::super::json::Value;
use super::super::table::Decoded;
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{field, names};
use super::list::{Readers, is_v0_event};
use super::{Generation, forks::Forks};
use crate::trajectory::{Diagnostic, RawPlace, Severity};

/// Files that lie beside the events of a session.
const BESIDE: [&str; 5] = ["metadata.json", "agent_state.pkl", "conversation_stats.pkl", "TASKS.md", "state.json"];

/// A session's folder: `events/<n>.json`, or only `event_cache/<a>-<b>.json`.
pub fn claim(folder: &Folder<'_>) -> Option<Claim> {
    // The folder of the events by itself comes last: the session's folder is asked before it.
    let inside = ["events", ""].into_iter().find(|dir| {
        let files = folder.files_in(dir);
        let numbered = files.iter().map(|(_, e)| *e).filter(|e| number(e).is_some());
        numbered.take(3).any(is_event)
    });
    let cached: Vec<usize> =
        folder.files_in("event_cache").iter().filter(|(_, e)| page(e).is_some()).map(|(i, _)| *i).collect();
    let pages = || cached.first().and_then(|i| folder.entries.get(*i)).is_some_and(is_page);
    if inside.is_none() && !pages() {
        return None;
    }
    let events = inside.map(|dir| folder.files_in(dir)).unwrap_or_default();
    let mut members: Vec<usize> = events.iter().filter(|(_, e)| number(e).is_some()).map(|(i, _)| *i).collect();
    members.extend(cached);
    members.extend(BESIDE.iter().filter_map(|name| folder.find(name)).map(|(i, _)| i));
    Some(Claim { members, reason: "numbered files of events with `action` or `observation`".into() })
}

/// `events/12.json` is event 12.
fn number(entry: &Entry) -> Option<u64> {
    entry.name().strip_suffix(".json")?.parse().ok()
}

/// `event_cache/25-50.json` holds events 25 to 49.
fn page(entry: &Entry) -> Option<(u64, u64)> {
    let name = entry.name();
    let (from, to) = name.strip_suffix(".json")?.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

fn is_event(entry: &Entry) -> bool {
    entry.value().is_some_and(|v| v.as_object().is_some_and(is_v0_event))
}

fn is_page(entry: &Entry) -> bool {
    let first = |v: Value<'static>| v.as_array().and_then(|l| l.first().cloned());
    entry.value().and_then(first).is_some_and(|v| v.as_object().is_some_and(is_v0_event))
}

/// Reads a session: the events in order of their numbers, those that are only cached from the cache.
pub fn decode(input: &FolderInput<'_>) -> Decoded {
    let mut diagnostics = Vec::new();
    let mut remark = |severity, code, text: String| diagnostics.push(Diagnostic::new(severity, code, text));
    let mut files: BTreeMap<u64, &Entry> = BTreeMap::new();
    let mut pages: BTreeMap<(u64, u64), &Entry> = BTreeMap::new();
    for &entry in input.members {
        let cached = input.relative(entry).starts_with("event_cache");
        match (number(entry), page(entry)) {
            (Some(n), _) => drop(files.insert(n, entry)),
            (None, Some(range)) if cached => drop(pages.insert(range, entry)),
            _ if entry.name().ends_with(".pkl") => {
                let text = format!("{} is a Python pickle: never loaded", entry.name());
                remark(Severity::Info, "openhands.pickle", text);
            }
            _ => {}
        }
    }
    let mut events: BTreeMap<u64, (Value, RawPlace)> = BTreeMap::new();
    let mut unreadable = 0;
    for (n, entry) in &files {
        // What a killed writer left may be an event without what happened.
        let event = entry.value().filter(|v| ["action", "observation", "message"].iter().any(|k| v.get(k).is_some()));
        match event {
            Some(value) => drop(events.insert(*n, (value, in_file(entry, "")))),
            None => unreadable += 1,
        }
    }
    let cached = from_cache(&pages, &mut events);
    if unreadable > 0 {
        let text = format!("{unreadable} event files hold no event and were left out");
        remark(Severity::Warning, "openhands.unreadable-event", text);
    }
    if cached > 0 {
        let text = format!("{cached} events have no file of their own and were read from the cache");
        remark(Severity::Info, "openhands.cached", text);
    }
    let span = events.keys().next_back().map_or(0, |last| last + 1);
    let missing = span.saturating_sub(events.len() as u64);
    if missing > 0 {
        let text = format!("{missing} of the event numbers 0 to {} are missing", span - 1);
        remark(Severity::Info, "openhands.gaps", text);
    }
    let mut readers = Readers::new(Generation::V0, Forks::default().ways());
    for (event, raw) in events.values() {
        readers.entry(event, raw);
    }
    let mut trajectories = readers.finish(None);
    let session = session(input);
    for trajectory in &mut trajectories {
        trajectory.format = input.format;
        trajectory.session.clone_from(&session);
        trajectory.instance_id = input.path.ancestors().take(3).find_map(names::instance_of);
    }
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

/// Adds what only the cache holds; how many that was.
fn from_cache(pages: &BTreeMap<(u64, u64), &Entry>, events: &mut BTreeMap<u64, (Value, RawPlace)>) -> usize {
    let mut added = 0;
    for ((from, to), entry) in pages {
        // Most caches repeat what lies in files: those need not be read.
        if (*from..*to).all(|n| events.contains_key(&n)) {
            continue;
        }
        let Some(Value::Array(list)) = entry.value() else { continue };
        for (i, event) in list.into_iter().enumerate().filter(|(_, e)| e.is_object()) {
            let n = field::get(&event, "id").and_then(field::count).unwrap_or(from + i as u64);
            events.entry(n).or_insert_with(|| {
                added += 1;
                (event, in_file(entry, &format!("/{i}")))
            });
        }
    }
    added
}

fn in_file(entry: &Entry, pointer: &str) -> RawPlace {
    RawPlace { file: Some(entry.path.as_path().into()), pointer: pointer.into(), ..RawPlace::default() }
}

/// The session's id is the name of its folder, unless the metadata says otherwise.
fn session(input: &FolderInput<'_>) -> Option<String> {
    let metadata = input.find("metadata.json").and_then(Entry::value);
    let given = metadata.and_then(|m| field::text(&m, "conversation_id").or_else(|| field::text(&m, "session_id")));
    let folder = if input.path.ends_with("events") { input.path.parent() } else { Some(input.path) };
    given.or_else(|| Some(folder?.file_name()?.to_string_lossy().into_owned()))
}
