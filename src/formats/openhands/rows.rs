//! Rows of `output.jsonl`: an attempt each, with its result beside its history.

use std::path::Path;

use super::super::document::Row;
use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{self, Decoded, Input};
use super::super::{chat, field, rows};
use super::{Generation, HistoryReader, fill, generation};
use crate::trajectory::{Diagnostic, Outcome, RawPlace, Role, Severity, Source, Step, Trajectory, Usage};

fn histories<'a>(sniff: &Sniff<'a>) -> impl Iterator<Item = &'a [Value<'a>]> {
    let rows = sniff.rows.clone();
    rows.into_iter()
        .filter_map(|row| field::get(row, "history")?.as_array().map(Vec::as_slice))
        .filter(|h| !h.is_empty())
}

/// Rows of an evaluation or of the resolver.
pub fn is_output_row(sniff: &Sniff<'_>) -> bool {
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

/// Reads rows: one trajectory each.
pub fn decode(input: &Input<'_>) -> Decoded {
    let named = attempt_in_name(input.path);
    let read = |row: Row<'_>| {
        let mut trajectory = if row.value.is_object() { trajectory(row) } else { return None };
        trajectory.attempt = trajectory.attempt.or_else(|| named.clone());
        Some(trajectory)
    };
    let (rows, diagnostics) = input.document.map_rows(read);
    Decoded { trajectories: table::numbered(rows), diagnostics, ..Decoded::default() }
}

/// `output.critic_attempt_2.jsonl` holds the second attempts.
fn attempt_in_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (_, rest) = name.split_once("critic_attempt_")?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    if number.is_empty() { None } else { Some(format!("attempt {number}")) }
}

fn trajectory(row: Row<'_>) -> Trajectory {
    let value = row.value;
    let history = field::list(value, "history");
    let generation = generation(history).unwrap_or(Generation::V0);
    let mut reader = HistoryReader::new(generation);
    reader.expect(history.len());
    let at = rows::pointer(row, "history");
    for (i, entry) in history.iter().enumerate() {
        reader.entry(entry, RawPlace::element(&at, i));
    }
    let read = reader.finish();
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
    let told = out.steps.iter().any(|s| s.role == Role::User);
    if let (false, Some(instruction)) = (told, field::text(value, "instruction")) {
        let at = usize::from(out.steps.first().is_some_and(|s| s.role == Role::System));
        let raw = RawPlace { pointer: rows::pointer(row, "instruction").into(), ..RawPlace::default() };
        out.steps.insert(at, Step { raw, ..Step::new(Role::User, instruction) });
    }
    if out.tools.is_empty() {
        // `output.with_completions.jsonl.gz` keeps what was sent to the model.
        let sent = field::get(value, "raw_completions").map(|c| field::list(c, "tools")).unwrap_or_default();
        out.tools = chat::tool_specs(sent);
    }
    let worked = out.n_actions() > 0;
    out.usage = field::get(value, "metrics").map(|m| Totals::of(m).usage(worked)).unwrap_or_default();
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

/// What a run's metrics add up to.
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    cost: Option<f64>,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    api_calls: Option<u64>,
}

impl Totals {
    /// Adds up.
    pub fn of(metrics: &Value) -> Self {
        let costs = field::list(metrics, "costs");
        let sum: f64 = costs.iter().filter_map(|c| field::number(c.get("cost").unwrap_or(c))).sum();
        let cost = field::get(metrics, "accumulated_cost").and_then(field::number).filter(|c| *c > 0.0 || sum == 0.0);
        let total = field::get(metrics, "accumulated_token_usage").unwrap_or(&Value::Null);
        let calls = field::list(metrics, "token_usages");
        let tokens = |key: &str| {
            let all: u64 = calls.iter().filter_map(|c| field::get(c, key).and_then(field::count)).sum();
            field::get(total, key).and_then(field::count).or(Some(all).filter(|_| !calls.is_empty()))
        };
        Self {
            cost: cost.or(Some(sum).filter(|s| *s > 0.0)),
            tokens_in: tokens("prompt_tokens"),
            tokens_out: tokens("completion_tokens"),
            api_calls: [costs.len(), calls.len()].into_iter().max().filter(|n| *n > 0).map(|n| n as u64),
        }
    }

    /// The same, but all zero although the run did work means that nobody counted.
    pub fn usage(self, worked: bool) -> Usage {
        let tokens = |n: Option<u64>| n.filter(|n| *n > 0 || !worked);
        Usage {
            cost: field::honest_cost(self.cost, worked),
            tokens_in: tokens(self.tokens_in),
            tokens_out: tokens(self.tokens_out),
            api_calls: self.api_calls,
            ..Usage::default()
        }
    }
}
