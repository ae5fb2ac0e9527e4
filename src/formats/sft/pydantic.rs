//! Messages as pydantic-ai dumps them: requests and responses of parts.

use super::super::json::Value;
use super::super::sniff::{Confidence, Form, Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{action, chat, field, rows};
use crate::trajectory::{RawPlace, Role, Step, ToolCall, Trajectory, Usage};

fn is_message(value: &Value) -> bool {
    let kind = matches!(field::str(value, "kind"), Some("request" | "response"));
    kind && field::list(value, "parts").iter().all(|p| field::str(p, "part_kind").is_some())
}

/// A list of messages, or one a line.
pub fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let fits = sniff.form != Form::Other && !sniff.rows.is_empty() && sniff.rows.iter().all(|row| is_message(row));
    if fits { Match::some(Confidence::Certain, "`kind` request or response with `parts`") } else { None }
}

/// Reads them: one trajectory.
pub fn decode(input: &Input<'_>) -> Decoded {
    let mut trajectory = Trajectory { format: input.format, ..Trajectory::default() };
    let mut usage = Usage::default();
    let diagnostics = input.document.rows(|row| {
        let raw = rows::place(row);
        let message = row.value;
        if field::str(message, "kind") == Some("response") {
            trajectory.model = field::text(message, "model_name").or(trajectory.model.take());
            count(&mut usage, field::get(message, "usage").unwrap_or(&Value::Null));
            trajectory.steps.push(response(message, raw));
        } else {
            trajectory.steps.extend(field::list(message, "parts").iter().map(|part| request(part, &raw)));
        }
    });
    chat::name_tools(&mut trajectory.steps);
    trajectory.usage = usage;
    Decoded { trajectories: vec![trajectory], diagnostics, ..Decoded::default() }
}

fn count(usage: &mut Usage, given: &Value) {
    let number = |keys: [&str; 2]| keys.iter().find_map(|k| field::get(given, k).and_then(field::count));
    let plus = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
    usage.tokens_in = plus(usage.tokens_in, number(["request_tokens", "input_tokens"]));
    usage.tokens_out = plus(usage.tokens_out, number(["response_tokens", "output_tokens"]));
    usage.api_calls = plus(usage.api_calls, Some(1));
}

fn response(message: &Value, raw: RawPlace) -> Step {
    let parts = field::list(message, "parts");
    let of = |kind: &str| {
        let own = parts.iter().filter(|p| field::str(p, "part_kind") == Some(kind));
        let texts: Vec<String> = own.filter_map(|p| field::text(p, "content")).collect();
        texts.join("\n")
    };
    let calls = parts.iter().filter(|p| field::str(p, "part_kind") == Some("tool-call")).map(|part| ToolCall {
        id: field::text(part, "tool_call_id").unwrap_or_default(),
        name: field::text(part, "tool_name").unwrap_or_default(),
        arguments: field::get(part, "args").map(field::json_text).unwrap_or_default(),
    });
    let mut step = Step::new(Role::Assistant, of("text"));
    step.reasoning = Some(of("thinking")).filter(|t| !t.is_empty());
    step.calls = calls.collect();
    step.action = action::of_calls(&step.calls).or_else(|| action::in_text(&step.text));
    step.timestamp = field::text(message, "timestamp");
    step.raw = raw;
    step
}

fn request(part: &Value, raw: &RawPlace) -> Step {
    let text = field::get(part, "content").map(chat::content_text).unwrap_or_default();
    let kind = field::str(part, "part_kind").unwrap_or_default();
    let called = field::text(part, "tool_name");
    let mut step = match kind {
        "system-prompt" => Step::new(Role::System, text),
        "tool-return" => Step::new(Role::Tool, text),
        // A call that did not validate is answered like a call; an answer that did not, like by a user.
        "retry-prompt" if called.is_some() => Step { is_error: Some(true), ..Step::new(Role::Tool, text) },
        "user-prompt" | "retry-prompt" => Step::new(Role::User, text),
        other => Step::new(Role::Meta, format!("{other}: {text}")),
    };
    if step.role == Role::Tool {
        step.call_id = field::text(part, "tool_call_id");
        step.tool_name = called;
    }
    step.timestamp = field::text(part, "timestamp");
    step.raw = raw.clone();
    step
}
