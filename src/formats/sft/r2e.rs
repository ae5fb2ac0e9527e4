//! R2E-Gym: a row is a rollout of thoughts, actions in tags and observations.

use super::super::document::Row;
use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input, numbered};
use super::super::{action, chat, field, names, rows};
use crate::trajectory::{Outcome, RawPlace, Role, Source, Step, Trajectory, Usage};

/// Rows with `trajectory_steps`.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let steps = sniff.is_rows() && sniff.first("trajectory_steps").is_some_and(Value::is_array);
    if steps { Match::some(Confidence::Certain, "rows with `trajectory_steps`") } else { None }
}

/// Reads rows: one trajectory each.
pub fn decode(input: &Input<'_>) -> Decoded {
    let read = |row: Row<'_>| {
        let fits = row.value.get("trajectory_steps").is_some();
        if fits { Some(trajectory(row, input.format)) } else { None }
    };
    let (rows, diagnostics) = input.document.map_rows(read);
    Decoded { trajectories: numbered(rows), diagnostics, ..Decoded::default() }
}

fn trajectory(row: Row<'_>, format: &'static str) -> Trajectory {
    let value = row.value;
    let mut steps = Vec::new();
    let task = field::text(value, "problem_statement");
    if let Some(task) = &task {
        let raw = RawPlace { pointer: rows::pointer(row, "problem_statement").into(), ..RawPlace::default() };
        steps.push(Step { raw, ..Step::new(Role::User, task.clone()) });
    }
    let at = rows::pointer(row, "trajectory_steps");
    for (i, entry) in field::list(value, "trajectory_steps").iter().enumerate() {
        steps.extend(step(entry, &RawPlace::element(&at, i)));
    }
    let reward = ["reward", "resolved"].iter().find_map(|k| field::get(value, k).and_then(field::truth));
    Trajectory {
        source: Source { span: row.span, ..Source::default() },
        format,
        instance_id: instance(value),
        attempt: field::text(value, "exp_name"),
        agent: Some("R2E-Gym".to_owned()),
        model: field::str_at(value, &["agent_args", "llm_name"]).map(str::to_owned),
        task,
        patch: field::str(value, "output_patch").map(str::to_owned),
        exit_status: field::text(value, "exit_reason"),
        outcome: Outcome::from_bool(reward),
        usage: usage(value),
        steps,
        ..Trajectory::default()
    }
}

/// One entry is an action and what came of it.
fn step(entry: &Value, raw: &RawPlace) -> impl Iterator<Item = Step> {
    let text = |key: &str| field::text(entry, key).unwrap_or_default();
    let (thought, acted) = (text("thought"), text("action"));
    let between = if thought.is_empty() || acted.is_empty() { "" } else { "\n\n" };
    let mut step = Step { raw: raw.clone(), ..Step::new(Role::Assistant, format!("{thought}{between}{acted}")) };
    step.action = action::in_text(&acted).or_else(|| Some(acted).filter(|a| !a.trim().is_empty()));
    step.thought = Some(thought).filter(|t| !t.is_empty());
    let observed = field::get(entry, "observation").map(chat::content_text);
    let answer = observed.map(|text| Step { raw: raw.clone(), ..Step::new(Role::Tool, text) });
    std::iter::once(step).chain(answer)
}

/// The instance: named by the row of the data set, else by the image, which holds repository and commit.
fn instance(row: &Value) -> Option<String> {
    let set = field::embedded(row, "ds").or_else(|| field::embedded(row, "env_args"));
    let named = field::text(row, "instance_id").or_else(|| field::text(set.as_deref()?, "instance_id"));
    let image = || {
        let image = field::text(row, "docker_image").or_else(|| field::text(set.as_deref()?, "docker_image"))?;
        let tail = image.rsplit('/').next()?;
        let (name, tag) = tail.rsplit_once(':').unwrap_or(("", tail));
        let tagged = tag.rsplit("x86_64.").next().filter(|t| names::looks_like_instance(t));
        let commit = tag.get(..12).filter(|c| c.bytes().all(|b| b.is_ascii_hexdigit()));
        let made = || Some(format!("{}__{}", name.strip_suffix("_final").unwrap_or(name), commit?));
        tagged.map(str::to_owned).or_else(made).filter(|id| !id.starts_with("__"))
    };
    named.or_else(image)
}

/// Tokens of all calls, as far as the steps give them.
fn usage(row: &Value) -> Usage {
    let entries = field::list(row, "trajectory_steps");
    let sum = |key: &str| {
        let counts = entries.iter().filter_map(|e| field::get(e, key).and_then(field::count));
        counts.filter(|n| *n > 0).reduce(|a, b| a + b)
    };
    Usage {
        tokens_in: sum("token_usage_prompt"),
        tokens_out: sum("token_usage_completion"),
        api_calls: Some(entries.len() as u64).filter(|n| *n > 0),
        ..Usage::default()
    }
}
