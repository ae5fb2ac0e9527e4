//! OpenHands: rows of `output.jsonl` (V0 events flat or in pairs, V1 events), event exports, and the resolver's rows.

mod events;
mod sdk;
mod tools;

use serde_json::Value;

use super::sniff::{Confidence, Form, Match, Sniff};
use super::table::{Decoded, Format, Input, Kind, Reader};
use super::{document::Row, field, table};
use crate::trajectory::{Diagnostic, Outcome, Severity, Source, Step, ToolSpec, Trajectory, Usage};

/// The rows of the table of formats.
pub static FORMATS: &[Format] = &[
    Format {
        id: "openhands-0",
        name: "OpenHands V0 output.jsonl",
        writer: "OpenHands (OpenDevin) evaluations to 2025, and its issue resolver",
        recognised: "rows with `instance_id` (or `issue`) and a `history` of actions and observations, flat or in pairs",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v0, decode: decode_rows },
    },
    Format {
        id: "openhands-1",
        name: "OpenHands V1 output.jsonl",
        writer: "OpenHands benchmarks on the software-agent SDK",
        recognised: "rows with `instance_id` and a `history` of events with `kind`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v1, decode: decode_rows },
    },
    Format {
        id: "openhands-0-events",
        name: "OpenHands V0 event list",
        writer: "OpenHands user interface, \"download trajectory\"",
        recognised: "a list of events with `action` or `observation`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v0_events, decode: decode_events },
    },
    Format {
        id: "openhands-1-events",
        name: "OpenHands V1 event list",
        writer: "software-agent SDK",
        recognised: "a list of events with `kind`",
        kind: Kind::Trajectory,
        reader: Reader::File { sniff: sniff_v1_events, decode: decode_events },
    },
];

/// Steps of a history, and what came with them.
#[derive(Debug, Default)]
struct Read {
    steps: Vec<Step>,
    tools: Vec<ToolSpec>,
    /// Model named by the answers.
    model: Option<String>,
    /// Calls written from an event's arguments, because the model's own text is not in the file.
    rebuilt: usize,
}

/// Generation of a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    V0,
    V1,
}

/// What the first event of a history is; `None` if it is no event.
fn generation(history: &[Value]) -> Option<Generation> {
    generation_of(history.iter().take(60))
}

fn generation_of<'a>(mut events: impl Iterator<Item = &'a Value> + Clone) -> Option<Generation> {
    let all = events.clone();
    let first = events.find(|e| !e.is_null())?;
    let inside = first.as_array().and_then(|pair| pair.first()).unwrap_or(first);
    if inside.get("kind").is_some_and(Value::is_string) && inside.get("role").is_none() {
        return Some(Generation::V1);
    }
    let event = |v: &Value| v.get("action").or_else(|| v.get("observation")).is_some_and(Value::is_string);
    let spoken = |v: &Value| v.get("source").is_some() && v.get("message").is_some();
    let mut any = all.flat_map(|e| e.as_array().map_or(std::slice::from_ref(e), Vec::as_slice));
    if any.any(|e| event(e) || spoken(e)) { Some(Generation::V0) } else { None }
}

fn histories<'a>(sniff: &Sniff<'a>) -> impl Iterator<Item = &'a [Value]> {
    let rows = sniff.rows.clone();
    rows.into_iter()
        .filter_map(|row| field::get(row, "history")?.as_array().map(Vec::as_slice))
        .filter(|h| !h.is_empty())
}

/// Rows of an evaluation or of the resolver.
fn is_output_row(sniff: &Sniff<'_>) -> bool {
    let one_of = |keys: &[&str]| keys.iter().any(|k| sniff.has(k));
    let identity = one_of(&["instance_id", "issue"]);
    let run = one_of(&["history", "metrics", "instruction", "error", "metadata"]);
    let result = one_of(&["test_result", "git_patch", "history"]);
    sniff.is_rows() && identity && run && result && !one_of(&["messages", "conversations", "model_patch", "steps"])
}

/// `output.jsonl` with V0 events (or none at all), and the resolver's.
pub fn sniff_v0(sniff: &Sniff<'_>) -> Option<Match> {
    if !is_output_row(sniff) {
        let only = sniff.object().is_some_and(|o| o.len() == 1)
            && histories(sniff).any(|h| generation(h) == Some(Generation::V0));
        return if only { Match::some(Confidence::Possible, "an object with a `history` of events") } else { None };
    }
    match histories(sniff).find_map(generation) {
        Some(Generation::V1) => None,
        Some(Generation::V0) => Match::some(
            Confidence::Certain,
            "rows with `instance_id` or `issue` and a `history` of actions and observations",
        ),
        None if histories(sniff).next().is_some() => None,
        None => {
            Match::some(Confidence::Likely, "rows with `instance_id` and `test_result`, histories empty or missing")
        }
    }
}

/// `output.jsonl` of the benchmarks built on the SDK.
pub fn sniff_v1(sniff: &Sniff<'_>) -> Option<Match> {
    let v1 = is_output_row(sniff) && histories(sniff).find_map(generation) == Some(Generation::V1);
    if v1 {
        Match::some(Confidence::Certain, "rows with `instance_id` and a `history` of events with `kind`")
    } else {
        None
    }
}

/// A list of V0 events, as the user interface exports it.
pub fn sniff_v0_events(sniff: &Sniff<'_>) -> Option<Match> {
    let list = sniff.form == Form::List || sniff.form == Form::Lines;
    let pairs = sniff.rows.first().is_some_and(|r| r.is_array());
    if !list || is_output_row(sniff) || generation_of(sniff.rows.iter().copied()) != Some(Generation::V0) {
        return None;
    }
    let marked = pairs || sniff.has("source") || sniff.has("args") || sniff.has("extras");
    if marked { Match::some(Confidence::Likely, "a list of events with `action` or `observation`") } else { None }
}

/// A list of V1 events.
pub fn sniff_v1_events(sniff: &Sniff<'_>) -> Option<Match> {
    let list = sniff.form == Form::List || sniff.form == Form::Lines;
    let known = sniff.rows.iter().filter_map(|r| field::str(r, "kind")).any(sdk::is_event);
    if list && known { Match::some(Confidence::Likely, "a list of events with `kind`") } else { None }
}

/// Reads rows: one trajectory each.
pub fn decode_rows(input: &Input<'_>) -> Decoded {
    let (rows, diagnostics) =
        input.document.map_rows(|row| if row.value.is_object() { Some(trajectory(row)) } else { None });
    let trajectories = table::numbered(rows);
    Decoded { trajectories, diagnostics, ..Decoded::default() }
}

/// Reads a list of events: one trajectory.
pub fn decode_events(input: &Input<'_>) -> Decoded {
    let (events, diagnostics) = input.document.all_rows();
    let (read, _) = history(&events);
    let mut trajectory =
        Trajectory { format: input.format, agent: Some("OpenHands".to_owned()), ..Trajectory::default() };
    fill(&mut trajectory, read);
    let metrics = events.iter().rev().find_map(|e| field::get(e, "llm_metrics"));
    trajectory.usage = metrics.map(|m| usage(m, trajectory.n_actions() > 0)).unwrap_or_default();
    Decoded { trajectories: vec![trajectory], diagnostics, ..Decoded::default() }
}

fn history(events: &[Value]) -> (Read, Generation) {
    match generation(events) {
        Some(Generation::V1) => (sdk::read(events), Generation::V1),
        _ => (events::read(events), Generation::V0),
    }
}

fn fill(trajectory: &mut Trajectory, read: Read) {
    if read.rebuilt > 0 {
        let text = format!(
            "{} tool calls were written from the events' arguments: the model's own text is not in the file",
            read.rebuilt
        );
        trajectory.diagnostics.push(Diagnostic::new(Severity::Info, "openhands.rebuilt-calls", text));
    }
    trajectory.steps = read.steps;
    trajectory.tools = read.tools;
    trajectory.model = trajectory.model.take().or(read.model);
}

fn trajectory(row: Row<'_>) -> Trajectory {
    let value = row.value;
    let (read, generation) = history(field::list(value, "history"));
    let mut out = Trajectory {
        source: Source { record: row.record, span: row.span, ..Source::default() },
        format: if generation == Generation::V1 { "openhands-1" } else { "openhands-0" },
        instance_id: field::text(value, "instance_id").or_else(|| issue_id(value)),
        attempt: field::get(value, "attempt").and_then(field::scalar_text).map(|n| format!("attempt {n}")),
        agent: field::str_at(value, &["metadata", "agent_class"]).or(Some("OpenHands")).map(str::to_owned),
        model: model(value),
        task: task(value),
        patch: patch(value),
        error: field::text(value, "error"),
        outcome: outcome(value),
        ..Trajectory::default()
    };
    fill(&mut out, read);
    // Older histories leave the task out: it stands beside them.
    let told = out.steps.iter().any(|s| s.role == crate::trajectory::Role::User);
    if let (false, Some(instruction)) = (told, field::text(value, "instruction")) {
        let at = usize::from(out.steps.first().is_some_and(|s| s.role == crate::trajectory::Role::System));
        out.steps.insert(at, Step::new(crate::trajectory::Role::User, instruction));
    }
    let worked = out.n_actions() > 0;
    out.usage = field::get(value, "metrics").map(|m| usage(m, worked)).unwrap_or_default();
    if field::get(value, "issue").is_some() && field::get(value, "success").is_some() {
        let text = "`success` is the agent's own opinion, not a test result: the outcome stays unknown";
        out.diagnostics.push(Diagnostic::new(Severity::Info, "openhands.own-opinion", text));
    }
    out
}

/// The resolver names an issue by owner, repository and number.
fn issue_id(row: &Value) -> Option<String> {
    let issue = field::get(row, "issue")?;
    let number = field::get(issue, "number").and_then(field::scalar_text)?;
    Some(format!("{}__{}-{number}", field::text(issue, "owner")?, field::text(issue, "repo")?))
}

fn model(row: &Value) -> Option<String> {
    let paths = [["metadata", "llm_config", "model"], ["metadata", "llm", "model"]];
    paths.iter().find_map(|p| field::str_at(row, p)).map(str::to_owned)
}

fn task(row: &Value) -> Option<String> {
    field::str_at(row, &["instance", "problem_statement"])
        .or_else(|| field::str_at(row, &["issue", "body"]))
        .map(str::to_owned)
}

/// The agent's patch; `instance.patch` is the gold one and never looked at.
fn patch(row: &Value) -> Option<String> {
    let result = ["git_patch", "model_patch"].iter().find_map(|k| field::str_at(row, &["test_result", k]));
    result.or_else(|| field::str(row, "git_patch")).map(str::to_owned)
}

fn outcome(row: &Value) -> Outcome {
    let evaluated = field::at(row, &["test_result", "report", "resolved"]);
    let resolved =
        evaluated.or_else(|| field::at(row, &["report", "resolved"])).or_else(|| field::get(row, "resolved"));
    Outcome::from_bool(resolved.and_then(field::truth))
}

/// Totals. All zero although the run did work means that nobody counted.
fn usage(metrics: &Value, worked: bool) -> Usage {
    let costs = field::list(metrics, "costs");
    let sum: f64 = costs.iter().filter_map(|c| field::number(c.get("cost").unwrap_or(c))).sum();
    let cost = field::get(metrics, "accumulated_cost").and_then(field::number).filter(|c| *c > 0.0 || sum == 0.0);
    let total = field::get(metrics, "accumulated_token_usage").unwrap_or(&Value::Null);
    let calls = field::list(metrics, "token_usages");
    let tokens = |key: &str| {
        let all: u64 = calls.iter().filter_map(|c| field::get(c, key).and_then(field::count)).sum();
        let given = field::get(total, key).and_then(field::count).or(Some(all).filter(|_| !calls.is_empty()));
        given.filter(|n| *n > 0 || !worked)
    };
    let api_calls = [costs.len(), calls.len()].into_iter().max().filter(|n| *n > 0).map(|n| n as u64);
    Usage {
        cost: field::honest_cost(cost.or(Some(sum).filter(|s| *s > 0.0)), worked),
        tokens_in: tokens("prompt_tokens"),
        tokens_out: tokens("completion_tokens"),
        api_calls,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
