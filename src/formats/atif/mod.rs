//! ATIF trajectories (Agent Trajectory Interchange Format 1.0 to 1.8), files that are nearly that, and what a viewer
//! makes of them.
//!
//! One ATIF step is one call of the model: its tool calls and what came of them become one action and the tool steps
//! behind it. Steps copied from another segment or session are kept as such and never counted.

mod parts;
mod segment;
mod steps;
mod viewer;

use super::json::Value;

pub use self::parts::join_files;
use self::segment::Place;
use super::field;
use super::sniff::{Confidence, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use crate::trajectory::{Diagnostic, Severity, Source, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "atif-parts",
        name: "ATIF trajectory in several files",
        writer: "Harbor (Terminus 2): continuations, summaries and sub-agents beside the trajectory",
        recognised: "`X.json` with `X.cont-1.json`, `X.summarization-1-….json` or the files its sub-agents are said to be in",
        kind: Kind::Trajectory,
        reader: Reader::Folder { claim: parts::claim, decode: parts::decode },
    },
    Format {
        id: "atif",
        name: "ATIF trajectory",
        writer: "Harbor 1.0 to 1.8 and everything that exports ATIF",
        recognised: "`schema_version` ATIF-v…, or `steps` of source and message",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff, decode },
    },
    Format {
        id: "atif-viewer",
        name: "Trajectory as a viewer holds it",
        writer: "web viewers of Terminal-Bench trajectories: not ATIF, though made from it",
        recognised: "`steps` of index, role, text and toolCalls",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: viewer::sniff, decode: viewer::decode },
    },
];

/// Steps looked at to tell ATIF without its tag.
const HEAD: usize = 5;

/// Does it say it is ATIF?
fn tagged(root: &Value) -> bool {
    field::str(root, "schema_version").is_some_and(|s| s.get(..4).is_some_and(|s| s.eq_ignore_ascii_case("atif")))
}

/// Is it written like ATIF, tag or not?
fn like(root: &Value) -> bool {
    let steps = field::list(root, "steps");
    let fits = |step: &Value| {
        let source = field::str(step, "source").is_some_and(|s| matches!(s, "system" | "user" | "agent"));
        source && ["message", "tool_calls", "observation"].iter().any(|k| step.get(k).is_some())
    };
    !steps.is_empty() && steps.iter().take(HEAD).all(fits)
}

/// The tag, or the form of the steps.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    if !sniff.is_rows() {
        return None;
    }
    if sniff.rows.iter().any(|row| tagged(row)) {
        return Match::some(Confidence::Certain, "`schema_version` says ATIF");
    }
    if sniff.rows.iter().any(|row| like(row)) {
        return Match::some(Confidence::Likely, "`steps` of source and message, as ATIF has them, without its tag");
    }
    None
}

/// Reads a file: one trajectory, or one a row; embedded sub-agents behind the one that started them.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut trajectories: Vec<Trajectory> = Vec::new();
    let mut skipped = 0;
    let listed = input.document.list().is_some();
    let mut diagnostics = input.document.rows(|row| {
        if !tagged(row.value) && !like(row.value) {
            skipped += 1;
            return;
        }
        let pointer = if listed && row.span.len == 0 { format!("/{}", row.record) } else { String::new() };
        let mut segment = segment::read(row.value, &Place { file: None, span: row.span, pointer }, input.path);
        segment.name_missing(input.path);
        let mut found = segment.finished();
        for trajectory in &mut found {
            trajectory.source = Source { span: row.span, ..Source::default() };
        }
        trajectories.append(&mut found);
    });
    if skipped > 0 {
        let text = format!("{skipped} rows that are no ATIF trajectories were skipped");
        diagnostics.push(Diagnostic::new(Severity::Warning, "atif.no-steps", text));
    }
    for (record, trajectory) in trajectories.iter_mut().enumerate() {
        trajectory.format = input.format;
        trajectory.source.record = record;
    }
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

#[cfg(test)]
mod tests;
