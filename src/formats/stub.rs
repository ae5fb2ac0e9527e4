//! Rows cut down to what identifies them, so that a file of gigabytes is indexed without being read.
//!
//! A row keeps its small members; of its lists (the history, the messages) the first element stays, which tells the
//! generation. What is left goes through the format's own decoder, so a stub never disagrees with the row about what
//! its id, patch or label is called.

use super::document::{Document, RecordSpan};
use super::skim;
use super::table::Decoded;
use crate::trajectory::{Body, ByteSpan, Trajectory};

/// Members up to this size are kept as they are.
const SMALL: usize = 16 << 10;
/// A list's first element is kept up to this size.
const ELEMENT: usize = 64 << 10;
/// Texts up to this size are kept.
const TEXT: usize = 256 << 10;
/// Lists that make a run long: never worth reading for an index, however short they are.
const RUNS: [&[u8]; 7] =
    [b"history", b"messages", b"trajectory", b"conversations", b"trajectory_steps", b"steps", b"traj"];
/// Members that say nothing about identity, patch or label.
const ASIDE: [&[u8]; 6] =
    [b"metrics", b"tools", b"raw_completions", b"test_output", b"apply_patch_output", b"eval_logs"];

/// Where a row stands.
#[derive(Debug)]
struct Place {
    /// In the text of the stubs.
    start: usize,
    /// In the file.
    span: RecordSpan,
    /// It was not cut down.
    verbatim: bool,
}

/// Rows of one stretch of a file, cut down.
#[derive(Debug, Default)]
pub struct Stubs {
    text: Vec<u8>,
    rows: Vec<Place>,
    /// Values in each row: 1, but 0 for `null`, and more where a line holds several.
    pub values: Vec<u32>,
}

impl Stubs {
    /// Takes a row in.
    pub fn add(&mut self, row: &[u8], span: RecordSpan) {
        let start = self.text.len();
        let known = reduce(row, &mut self.text, 0) == Some(row.len());
        self.rows.push(Place { start, span, verbatim: !known });
        if !known {
            // Broken, or several values on one line: as it is, for the decoder to make sense of.
            self.text.truncate(start);
            self.text.extend_from_slice(row);
        }
        self.text.push(b'\n');
        let plain = known && row.first() == Some(&b'{');
        self.values.push(if plain { 1 } else { count(row) });
    }

    /// What the format's decoder makes of the rows: trajectories that were found, with their places in the file. Their
    /// record numbers count from the first row.
    pub fn decode(&self, input: impl Fn(&Document<'_>) -> Decoded) -> Vec<Trajectory> {
        let document = Document::lines(&self.text);
        let mut trajectories = input(&document).trajectories;
        for trajectory in &mut trajectories {
            let found = trajectory.source.span;
            let at = self.rows.partition_point(|row| row.start <= found.start as usize);
            if let Some(row) = at.checked_sub(1).and_then(|i| self.rows.get(i)) {
                let start = row.span.start as u64;
                trajectory.source.span = if row.verbatim {
                    ByteSpan { start: start + found.start - row.start as u64, len: found.len }
                } else {
                    ByteSpan { start, len: (row.span.end - row.span.start) as u64 }
                };
            }
            trajectory.body = Body::Found;
            trajectory.steps = Vec::new();
            trajectory.tools = Vec::new();
            // Of a row without its steps nothing is known about what is odd or what it cost.
            trajectory.diagnostics = Vec::new();
            trajectory.usage = crate::trajectory::Usage::default();
        }
        trajectories
    }
}

/// How many values a line holds.
fn count(row: &[u8]) -> u32 {
    let mut n = 0;
    drop(Document::lines(row).rows(|_| n += 1));
    n
}

/// Writes the object that `row` begins with, cut down; returns the offset behind it. `None` if it is no object.
fn reduce(row: &[u8], out: &mut Vec<u8>, depth: usize) -> Option<usize> {
    let (members, end) = skim::members(row)?;
    out.push(b'{');
    let mut first = true;
    for member in members {
        let (key, value) = (row.get(member.key.clone())?, row.get(member.value)?);
        if ASIDE.contains(&key) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(key);
        out.extend_from_slice(b"\":");
        reduce_value(key, value, out, depth)?;
    }
    out.push(b'}');
    Some(end)
}

fn reduce_value(key: &[u8], value: &[u8], out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let run = depth == 0 && RUNS.contains(&key);
    let patch = key.windows(5).any(|w| w == b"patch") || key == b"submission";
    match value.first()? {
        b'[' if run || value.len() > SMALL => {
            out.push(b'[');
            let mut kept = None;
            skim::elements(value, |element| {
                let null = value.get(element.clone()) == Some(b"null");
                kept = Some(element).filter(|_| !null);
                null
            })?;
            let element = kept.and_then(|range| value.get(range)).filter(|e| e.len() <= ELEMENT);
            out.extend_from_slice(element.unwrap_or_default());
            out.push(b']');
        }
        b'{' if value.len() > SMALL && depth < 3 => {
            reduce(value, out, depth + 1)?;
        }
        // Messages as JSON inside a string, and long logs.
        b'"' if !patch && (run || value.len() > TEXT) => out.extend_from_slice(b"\"[]\""),
        _ => out.extend_from_slice(value),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cut(row: &Value) -> Value {
        let text = row.to_string();
        let mut out = Vec::new();
        assert_eq!(reduce(text.as_bytes(), &mut out, 0), Some(text.len()));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn identity_patch_and_label_stay() {
        let patch = "x".repeat(300_000);
        let row = json!({
            "instance_id": "o__r-1", "attempt": 2, "test_result": {"git_patch": patch, "test_output": "y"},
            "history": [null, {"id": 0}, {"id": 1}], "metrics": {"a": 1}, "messages": "[1,2]",
            "instance": {"repo": "r", "long": "z".repeat(400_000), "list": vec!["t"; 9_000]}, "report": {"resolved": true}
        });
        let small = cut(&row);
        assert_eq!(small["test_result"], json!({"git_patch": patch}));
        assert_eq!(small["history"], json!([{"id": 0}]));
        assert_eq!(small["messages"], "[]");
        assert_eq!(small["instance"], json!({"repo": "r", "long": "[]", "list": ["t"]}));
        assert_eq!((&small["attempt"], &small["report"]), (&json!(2), &json!({"resolved": true})));
        assert_eq!(small.get("metrics"), None);
    }

    #[test]
    fn odd_lines_are_kept_for_the_decoder_and_counted() {
        let mut stubs = Stubs::default();
        for row in ["{\"a\":1}", "null", "{\"a\":1}{\"a\":2}", "{\"a\":", "[1]"] {
            stubs.add(row.as_bytes(), RecordSpan { start: 0, end: row.len(), line: 1 });
        }
        assert_eq!(stubs.values, [1, 0, 2, 0, 1]);
    }
}
