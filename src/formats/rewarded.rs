//! Rows of conversations with a reward that are no SWE-bench runs: tau-bench, verifiers, Docent.

use super::document::Row;
use super::json::{Map, Value};
use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader, numbered};
use super::{chat, field, rows};
use crate::trajectory::{Outcome, Role, Source, Step, Trajectory};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "tau-bench",
        name: "tau-bench result",
        writer: "tau-bench",
        recognised: "`task_id`, `reward` and `traj`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_tau, decode: decode_tau },
    },
    Format {
        id: "verifiers",
        name: "verifiers rollouts",
        writer: "verifiers (`results.jsonl`)",
        recognised: "rows with `prompt`, `completion` and `reward`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_verifiers, decode: decode_verifiers },
    },
    Format {
        id: "docent",
        name: "Docent agent run",
        writer: "Transluce Docent",
        recognised: "`transcripts` of `messages` beside `metadata`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_docent, decode: decode_docent },
    },
];

fn sniff_tau(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.is_rows() && sniff.has_all(&["task_id", "reward", "traj"]);
    if fits { Match::some(Confidence::Certain, "`task_id`, `reward` and `traj`") } else { None }
}

fn sniff_verifiers(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.is_rows() && sniff.has_all(&["prompt", "completion", "reward"]);
    let id = ["example_id", "id", "task", "answer", "info"].iter().any(|k| sniff.has(k));
    if fits && id { Match::some(Confidence::Certain, "rows with `prompt`, `completion` and `reward`") } else { None }
}

fn sniff_docent(sniff: &Sniff<'_>) -> Option<Match> {
    let all = sniff.first("transcripts")?;
    let messages = |v: &Value| v.get("messages").is_some_and(Value::is_array);
    let fits = match all {
        Value::Array(list) => !list.is_empty() && list.iter().all(messages),
        Value::Object(map) => !map.is_empty() && map.values().all(messages),
        _ => false,
    };
    if fits && sniff.form != Form::Other { Match::some(Confidence::Certain, "`transcripts` of messages") } else { None }
}

fn decode_tau(input: &Input<'_>) -> Decoded {
    decode(input, |row| {
        let value = row.value;
        value.get("traj")?;
        let mut out = Trajectory {
            instance_id: field::get(value, "task_id").and_then(field::scalar_text).map(|id| format!("task {id}")),
            attempt: field::get(value, "trial").and_then(field::scalar_text).map(|n| format!("trial {n}")),
            agent: Some("tau-bench".to_owned()),
            task: field::str_at(value, &["info", "task", "instruction"]).map(str::to_owned),
            steps: chat::steps_at(field::list(value, "traj"), &rows::pointer(row, "traj"), |_, _| {}),
            error: field::str_at(value, &["info", "error"]).map(str::to_owned),
            outcome: reward(value),
            ..Trajectory::default()
        };
        // The cost given is that of the simulated user, not of the agent.
        out.usage.cost = field::at(value, &["info", "agent_cost"]).and_then(field::number).filter(|c| *c > 0.0);
        Some(out)
    })
}

/// The reward as a label, where it is a yes or a no.
fn reward(value: &Value) -> Outcome {
    Outcome::from_bool(field::get(value, "reward").and_then(field::truth))
}

fn decode_verifiers(input: &Input<'_>) -> Decoded {
    decode(input, |row| {
        let value = row.value;
        value.get("completion")?;
        let id = ["example_id", "id"].iter().find_map(|k| field::get(value, k).and_then(field::scalar_text));
        let named = field::embedded(value, "info").and_then(|info| field::text(&info, "instance_id"));
        let mut steps = said(row, "prompt");
        for step in &mut steps {
            // Answers within the prompt are examples.
            step.is_demo = step.role == Role::Assistant;
        }
        steps.extend(said(row, "completion"));
        if let Some(answer) = field::text(value, "answer") {
            let mut step = Step::new(Role::Meta, format!("expected answer: {answer}"));
            step.raw.pointer = rows::pointer(row, "answer").into();
            steps.push(step);
        }
        Some(Trajectory {
            instance_id: named.or_else(|| id.map(|id| format!("example {id}"))),
            task: None,
            error: field::text(value, "error"),
            exit_status: field::text(value, "stop_condition"),
            steps,
            outcome: reward(value),
            ..Trajectory::default()
        })
    })
}

/// Messages, or one text.
fn said(row: Row<'_>, key: &str) -> Vec<Step> {
    let pointer = rows::pointer(row, key);
    match field::get(row.value, key) {
        Some(Value::Array(messages)) => chat::steps_at(messages, &pointer, |_, _| {}),
        Some(Value::String(text)) => {
            let mut step = Step::new(if key == "prompt" { Role::User } else { Role::Assistant }, text.clone());
            step.raw.pointer = pointer.into();
            vec![step]
        }
        _ => Vec::new(),
    }
}

fn decode_docent(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    decoded.diagnostics = input.document.rows(|row| {
        let base = rows::pointer(row, "transcripts");
        let each: Vec<(String, &Value)> = match field::get(row.value, "transcripts") {
            Some(Value::Array(list)) => list.iter().enumerate().map(|(i, v)| (format!("{base}/{i}"), v)).collect(),
            Some(Value::Object(map)) => {
                map.iter().map(|(k, v)| (format!("{base}/{}", k.replace('~', "~0").replace('/', "~1")), v)).collect()
            }
            _ => Vec::new(),
        };
        let metadata = field::get(row.value, "metadata").unwrap_or(&Value::Null);
        let named = |keys: &[&str]| keys.iter().find_map(|k| field::get(metadata, k).and_then(field::scalar_text));
        for (n, (pointer, transcript)) in each.iter().enumerate() {
            decoded.trajectories.push(Trajectory {
                source: Source { span: row.span, record: decoded.trajectories.len(), ..Source::default() },
                format: input.format,
                instance_id: named(&["instance_id", "sample_id", "task_id"]),
                attempt: named(&["epoch", "epoch_id", "run_id"]).or_else(|| field::text(row.value, "id")),
                model: named(&["model"]),
                steps: chat::steps_at(field::list(transcript, "messages"), &format!("{pointer}/messages"), |_, _| {}),
                outcome: only_score(metadata),
                // The transcripts behind the first are those of its helpers.
                parent: field::text(row.value, "id").filter(|_| n > 0),
                session: field::text(row.value, "id").filter(|_| n == 0),
                ..Trajectory::default()
            });
        }
    });
    decoded
}

/// The label, if there is a single score and it is a yes or a no.
fn only_score(metadata: &Value) -> Outcome {
    let scores = field::object(metadata, "scores");
    let mut all = scores.into_iter().flat_map(Map::values);
    match (all.next(), all.next()) {
        (Some(only), None) => Outcome::from_bool(field::truth(only)),
        _ => Outcome::Unknown,
    }
}

fn decode(input: &Input<'_>, read: impl Fn(Row<'_>) -> Option<Trajectory> + Sync) -> Decoded {
    let (found, diagnostics) = input.document.map_rows(|row| {
        let mut trajectory = read(row)?;
        trajectory.source = Source { span: row.span, ..Source::default() };
        trajectory.format = input.format;
        Some(trajectory)
    });
    Decoded { trajectories: numbered(found), diagnostics, ..Decoded::default() }
}

#[cfg(test)]
mod tests;
