//! Inspect AI logs: `.eval` archives, `.json` logs, samples by themselves.
//!
//! A sample is an attempt: its messages are the steps; events are folded into them or shown behind them. Epochs and
//! further logs of the same task are further attempts.

mod folder;
mod header;
mod messages;
mod sample;
mod scores;

use self::header::Header;
use self::sample::Parts;
use super::json::Value;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{field, trial};
use crate::trajectory::{RawPlace, Source};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "inspect-eval",
        name: "Inspect log",
        writer: "Inspect AI: `.eval`, also while it is being written",
        recognised: "an archive (or folder) with `header.json` or `_journal/start.json` beside `samples/`",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim: folder::claim, decode: folder::decode },
    },
    Format {
        id: "inspect-json",
        name: "Inspect JSON log",
        writer: "Inspect AI: logs written or converted as `.json`",
        recognised: "`version` and `status` beside `eval`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff, decode },
    },
    Format {
        id: "inspect-sample",
        name: "Inspect sample",
        writer: "Inspect AI: a sample taken out of its log",
        recognised: "`epoch` and `input` beside `messages` and `scores`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_sample, decode: decode_sample },
    },
];

fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object()?;
    let eval = root.get("eval").is_some_and(|e| e.get("task").is_some() || e.get("run_id").is_some());
    let fits = eval && (root.contains_key("status") || root.contains_key("plan") || root.contains_key("samples"));
    if fits { Match::some(Confidence::Certain, "`eval` of a task beside `status`") } else { None }
}

fn sniff_sample(sniff: &Sniff<'_>) -> Option<Match> {
    let around = ["scores", "model_usage", "events", "output"].iter().filter(|k| sniff.has(k)).count();
    let fits = sniff.is_rows() && sniff.has_all(&["id", "epoch", "input", "messages"]) && around >= 2;
    if fits { Match::some(Confidence::Certain, "`epoch` and `input` beside `messages`") } else { None }
}

/// Reads a log of JSON.
fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let (mut trajectories, mut reports, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    decoded.diagnostics = input.document.rows(|row| {
        let header = Header::of(row.value);
        let samples = field::list(row.value, "samples");
        for (at, value) in samples.iter().enumerate() {
            let root = RawPlace { pointer: format!("/samples/{at}").into(), ..RawPlace::record(row.span) };
            let mut trajectory = sample::read(&Parts::whole(value, &root), &header);
            trajectory.source = Source { record: trajectories.len(), span: row.span, ..Source::default() };
            trajectory.format = input.format;
            trajectories.push(trajectory);
        }
        remarks.extend(header.remarks(samples.len()));
        if samples.is_empty() {
            reports.extend(header.reductions(field::list(row.value, "reductions")));
        }
    });
    decoded.diagnostics.extend(remarks);
    decoded.trajectories = trajectories;
    decoded.reports = reports;
    decoded
}

/// Reads samples without their log. The folder's name may still say which log that was.
fn decode_sample(input: &Input<'_>) -> Decoded {
    let header = Header::of(&Value::Null);
    let (rows, diagnostics) = input.document.map_rows(|row| {
        row.value.get("messages")?;
        let mut trajectory = sample::read(&Parts::whole(row.value, &RawPlace::record(row.span)), &header);
        trajectory.source = Source { span: row.span, ..Source::default() };
        trajectory.format = input.format;
        Some(trajectory)
    });
    Decoded { trajectories: super::table::numbered(rows), diagnostics, ..Decoded::default() }
}

/// A place below another.
fn below(root: &RawPlace, pointer: &str) -> RawPlace {
    RawPlace { pointer: format!("{}{pointer}", root.pointer).into(), ..root.clone() }
}

/// All of a file of an archive.
fn file(path: &std::path::Path) -> RawPlace {
    trial::whole_file(path)
}

#[cfg(test)]
mod tests;
