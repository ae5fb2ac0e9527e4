//! Lists of events: exports, JSON lines, and a single event by itself.

use super::super::json::{Map, Value};
use super::super::sniff::{Confidence, Form, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{field, names, rows};
use super::forks::{Forks, Way};
use super::rows::is_output_row;
use super::{Generation, HistoryReader, Read, fill, generation_of, sdk};
use crate::trajectory::{Diagnostic, RawPlace, Severity, Trajectory};

/// A list of V0 events, as the user interface exports it.
pub fn sniff_v0(sniff: &Sniff<'_>) -> Option<Match> {
    if let Some(event) = sniff.object() {
        return if is_v0_event(event) { Match::some(Confidence::Possible, "one event with `source`") } else { None };
    }
    let list = sniff.form == Form::List || sniff.form == Form::Lines;
    let pairs = sniff.rows.first().is_some_and(|r| r.is_array());
    if !list || is_output_row(sniff) || generation_of(sniff.rows.iter().copied()) != Some(Generation::V0) {
        return None;
    }
    let marked = pairs || sniff.has("source") || sniff.has("args") || sniff.has("extras");
    if marked { Match::some(Confidence::Likely, "a list of events with `action` or `observation`") } else { None }
}

/// Is this an event of V0 and nothing else?
pub fn is_v0_event(event: &Map<'_>) -> bool {
    let named = ["action", "observation"].iter().any(|k| event.get(k).is_some_and(Value::is_string));
    let held = ["args", "extras", "content"].iter().any(|k| event.contains_key(k));
    named && held && event.get("source").is_some_and(Value::is_string)
}

/// A list of V1 events.
pub fn sniff_v1(sniff: &Sniff<'_>) -> Option<Match> {
    let known = sniff.rows.iter().filter_map(|r| field::str(r, "kind")).any(sdk::is_event);
    match sniff.form {
        Form::List | Form::Lines if known => Match::some(Confidence::Likely, "a list of events with `kind`"),
        Form::Object if known && sniff.has("source") => Match::some(Confidence::Possible, "one event with `kind`"),
        _ => None,
    }
}

/// Reads a list of events: one trajectory, or one for each way through a conversation that was rewound.
pub fn decode(input: &Input<'_>) -> Decoded {
    let v1 = input.format == "openhands-1-events";
    let mut forks = Forks::default();
    if v1 {
        input.document.rows(|row| forks.add(row.value));
    }
    let mut readers = Readers::new(if v1 { Generation::V1 } else { Generation::V0 }, forks.ways());
    let diagnostics = input.document.rows(|row| {
        let record = if input.document.list().is_none() && row.span.len == input.document.size() {
            RawPlace::default()
        } else {
            rows::place(row)
        };
        readers.entry(row.value, &record);
    });
    let mut trajectories = readers.finish(None);
    for trajectory in &mut trajectories {
        trajectory.format = input.format;
    }
    names::together(&mut trajectories, input.path);
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

/// Readers of a conversation's events, one for each way through it.
pub struct Readers {
    ways: Vec<(Way, HistoryReader)>,
    next: usize,
    /// Is there no other way, so that every event is read?
    only: bool,
}

impl Readers {
    /// Readers for these ways.
    pub fn new(generation: Generation, ways: Vec<Way>) -> Self {
        let only = ways.len() < 2;
        let ways = ways.into_iter().map(|way| (way, HistoryReader::new(generation))).collect();
        Self { ways, next: 0, only }
    }

    /// The next event.
    pub fn entry(&mut self, event: &Value, raw: &RawPlace) {
        let at = self.next;
        self.next += 1;
        for (_, reader) in self.ways.iter_mut().filter(|(way, _)| self.only || way.holds(at)) {
            reader.entry(event, raw.clone());
        }
    }

    /// The trajectories; `head` is the last event of the way the conversation is on, where that is known.
    pub fn finish(self, head: Option<usize>) -> Vec<Trajectory> {
        let n = self.ways.len();
        let read: Vec<(usize, Read)> = self.ways.into_iter().map(|(way, reader)| (way.leaf, reader.finish())).collect();
        let mut trajectories = Vec::new();
        for (i, (leaf, read)) in read.into_iter().enumerate() {
            let mut trajectory = Trajectory { agent: Some("OpenHands".to_owned()), ..Trajectory::default() };
            fill(&mut trajectory, read);
            if n > 1 {
                trajectory.source.record = i;
                trajectory.attempt = Some(format!("fork {}", i + 1));
                let here = head.map_or(i + 1 == n, |head| head == leaf);
                let what = if here { "the one the conversation is on" } else { "left when it was rewound" };
                let text = format!("one of {n} ways through the conversation, {what}; they share their beginning");
                trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "openhands.fork", text));
            }
            trajectories.push(trajectory);
        }
        trajectories
    }
}
