//! The folder of a V1 conversation: its state, and one file an event.

use std::path::Path;

use super::super::json::Value;
use super::super::table::Decoded;
use super::super::tree::{Claim, Entry, Folder, FolderInput};
use super::super::{field, names};
use super::Generation;
use super::forks::Forks;
use super::list::Readers;
use super::rows;
use crate::trajectory::{Diagnostic, RawPlace, Severity, Trajectory, Usage};

/// A conversation's folder: `events/event-00000-<id>.json`, or the event files in it directly.
pub fn claim(folder: &Folder<'_>) -> Option<Claim> {
    let dir = ["events", ""].into_iter().find(|dir| folder.files_in(dir).iter().any(|(_, e)| index(e).is_some()))?;
    let mut members: Vec<usize> =
        folder.files_in(dir).iter().filter(|(_, e)| index(e).is_some()).map(|(i, _)| *i).collect();
    let beside = ["base_state.json", "TASKS.json", "events/.eventlog.lock", ".eventlog.lock"];
    members.extend(beside.iter().filter_map(|name| folder.find(name)).map(|(i, _)| i));
    Some(Claim { members, reason: "files named event-<number>-<id>.json".into() })
}

/// `event-00012-<id>.json` is event 12.
fn index(entry: &Entry) -> Option<u64> {
    let name = entry.name();
    let (number, id) = name.strip_prefix("event-")?.strip_suffix(".json")?.split_once('-')?;
    let hex = id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if number.len() >= 5 && hex { number.parse().ok() } else { None }
}

/// Reads a conversation: one trajectory, or one for each way through it where it was rewound.
pub fn decode(input: &FolderInput<'_>) -> Decoded {
    let mut files: Vec<(u64, &Entry)> = input.members.iter().filter_map(|e| Some((index(e)?, *e))).collect();
    files.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.path.cmp(&b.1.path)));
    let mut diagnostics = Vec::new();
    let (mut events, mut unreadable) = (Vec::new(), 0);
    for (_, entry) in &files {
        match entry.value() {
            Some(value) => {
                let raw = RawPlace { file: Some(entry.path.as_path().into()), ..RawPlace::default() };
                events.push((value, raw));
            }
            None => unreadable += 1,
        }
    }
    if unreadable > 0 {
        let text = format!("{unreadable} event files hold no JSON and were left out");
        diagnostics.push(Diagnostic::new(Severity::Warning, "openhands.unreadable-event", text));
    }
    let state = input.find("base_state.json").and_then(Entry::value).unwrap_or(Value::Null);
    let mut forks = Forks::default();
    for (event, _) in &events {
        forks.add(event);
    }
    let head = field::str(&state, "leaf_event_id").and_then(|id| forks.find(id));
    let mut readers = Readers::new(Generation::V1, forks.ways());
    for (event, raw) in events {
        readers.entry(&event, &raw);
    }
    let mut trajectories = readers.finish(head);
    for trajectory in &mut trajectories {
        trajectory.format = input.format;
        identify(trajectory, input.path, &state);
    }
    names::together(&mut trajectories, input.path);
    let worked = trajectories.iter().any(|t| t.n_actions() > 0);
    // The totals are those of the conversation: with several ways through it nobody knows whose they are.
    if let [only] = trajectories.as_mut_slice() {
        only.usage = usage(&state, worked);
    }
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

fn identify(trajectory: &mut Trajectory, path: &Path, state: &Value) {
    let folder = if path.ends_with("events") { path.parent() } else { Some(path) };
    let name = folder.and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    trajectory.session = field::text(state, "id").or(name);
    trajectory.instance_id = archived(path).or_else(|| names::instance_of(path));
    trajectory.model = field::str_at(state, &["agent", "llm", "model"]).map(str::to_owned).or(trajectory.model.take());
    let agent = field::str_at(state, &["agent", "kind"]).filter(|k| *k != "Agent");
    trajectory.agent = agent.map(|kind| format!("OpenHands {kind}")).or(trajectory.agent.take());
    trajectory.exit_status = field::text(state, "execution_status");
}

/// `conversations/<instance id>.tar.gz`: the archive has the instance's name.
fn archived(path: &Path) -> Option<String> {
    path.ancestors().find_map(|above| {
        let name = above.file_name()?.to_str()?;
        let stem = [".tar.gz", ".tgz", ".tar", ".zip"].iter().find_map(|end| name.strip_suffix(end))?;
        let kept = above.parent().is_some_and(|p| p.ends_with("conversations"));
        if kept || names::looks_like_instance(stem) { Some(stem.to_owned()) } else { None }
    })
}

/// The totals of all models used.
fn usage(state: &Value, worked: bool) -> Usage {
    let metrics = field::at(state, &["stats", "usage_to_metrics"]).and_then(Value::as_object);
    let each: Vec<Usage> =
        metrics.map(|m| m.values().map(|v| rows::Totals::of(v).usage(worked)).collect()).unwrap_or_default();
    let sum = |of: fn(&Usage) -> Option<u64>| each.iter().filter_map(of).reduce(|a, b| a + b);
    Usage {
        cost: each.iter().filter_map(|u| u.cost).reduce(|a, b| a + b),
        tokens_in: sum(|u| u.tokens_in),
        tokens_out: sum(|u| u.tokens_out),
        api_calls: sum(|u| u.api_calls),
        ..Usage::default()
    }
}
