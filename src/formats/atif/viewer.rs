//! What viewers of Terminal-Bench trajectories hold: made from ATIF and others, but with names of its own.

use super::super::json::Value;
use super::super::sniff::{Confidence, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{action, chat, field};
use super::steps::text_of;
use crate::trajectory::{RawPlace, Role, Source, Step, Trajectory, Usage};

/// Steps with the viewer's names.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let root = sniff.object().and(sniff.rows.first())?;
    let steps = field::list(root, "steps");
    let fits = |step: &Value| {
        ["role", "text", "toolCalls"].iter().all(|k| step.get(k).is_some()) && step.get("source").is_none()
    };
    if !steps.is_empty() && steps.iter().take(3).all(fits) {
        return Match::some(Confidence::Certain, "`steps` of role, text and toolCalls");
    }
    None
}

/// Reads one.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut decoded = Decoded::default();
    let mut trajectories = Vec::new();
    decoded.diagnostics = input.document.rows(|row| {
        let mut trajectory = trajectory(row.value);
        trajectory.format = input.format;
        trajectory.source = Source { record: row.record, span: row.span, ..Source::default() };
        trajectories.push(trajectory);
    });
    decoded.trajectories = trajectories;
    decoded
}

fn trajectory(root: &Value) -> Trajectory {
    let mut steps = Vec::new();
    let mut usage = Usage::default();
    for (at, value) in field::list(root, "steps").iter().enumerate() {
        let first = steps.len();
        steps.push(spoken(value));
        steps.extend(observed(value));
        for step in steps.iter_mut().skip(first) {
            step.raw = RawPlace::element("/steps", at);
            step.timestamp = field::get(value, "timestamp").and_then(field::scalar_text);
        }
        let tokens = |key: &str| field::at(value, &["tokens", key]).and_then(field::count);
        usage = super::steps::sum(
            usage,
            Usage { tokens_in: tokens("prompt"), tokens_out: tokens("completion"), ..Usage::default() },
        );
    }
    if let Some(log) = field::get(root, "verifierLog").map(text_of).filter(|t| !t.is_empty()) {
        steps.push(Step {
            raw: RawPlace { pointer: "/verifierLog".into(), ..RawPlace::default() },
            ..Step::new(Role::Meta, log)
        });
    }
    chat::name_tools(&mut steps);
    Trajectory { steps, usage, ..Trajectory::default() }
}

fn spoken(value: &Value) -> Step {
    let role = chat::role_of(value);
    let text = field::get(value, "text").map(text_of).unwrap_or_default();
    let mut step = Step::new(role, text);
    if role == Role::Assistant {
        step.calls = field::list(value, "toolCalls").iter().map(chat::tool_call).collect();
        step.reasoning = field::get(value, "reasoning").map(text_of).filter(|t| !t.is_empty());
        step.action = action::of_calls(&step.calls).or_else(|| action::in_text(&step.text));
    }
    step
}

/// What came of an action: a text, or one for each call.
fn observed(value: &Value) -> Vec<Step> {
    let results = match field::get(value, "observation") {
        Some(Value::Array(results)) => results.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let name = field::text(value, "toolName");
    let step = |result: &Value| {
        let content = if result.is_object() { result.get("content").unwrap_or(result) } else { result };
        Step { tool_name: name.clone(), ..Step::new(Role::Tool, text_of(content)) }
    };
    results.iter().map(step).collect()
}
