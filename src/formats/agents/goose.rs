//! Goose: a line of metadata, then messages of parts.

use super::super::json::Value;
use super::super::sniff::{Match, Sniff};
use super::super::table::{Decoded, Input};
use super::super::{chat, field, session};
use super::{certain, of_file};
use crate::trajectory::{RawPlace, Role, Step, ToolCall};

pub(super) fn sniff(sniff: &Sniff<'_>) -> Option<Match> {
    let parts = |r: &&Value| {
        let tool = |p: &Value| matches!(field::str(p, "type"), Some("toolRequest" | "toolResponse"));
        field::list(r, "content").iter().any(tool) && r.get("role").is_some()
    };
    let head = sniff.rows.first().is_some_and(|r| r.get("working_dir").is_some() && r.get("role").is_none());
    let messages = sniff.rows.iter().any(|r| r.get("role").is_some() && r.get("created").is_some());
    let export = sniff.object().and_then(|o| o.get("conversation")).and_then(Value::as_array);
    let exported = export.is_some_and(|m| m.iter().take(20).any(|r| r.get("created").is_some()));
    certain(sniff.rows.iter().any(parts) || head && messages || exported, "parts toolRequest and toolResponse")
}

pub(super) fn decode(input: &Input<'_>) -> Decoded {
    let mut tally = session::Tally::default();
    let mut steps = Vec::new();
    let (mut session_id, mut tokens) = (None, None);
    let mut diagnostics = input.document.rows(|row| {
        if row.value.get("role").is_some() {
            read(row.value, &RawPlace::record(row.span), &mut steps, &mut tally);
            return;
        }
        // `goose session export` writes one object.
        for (i, message) in field::list(row.value, "conversation").iter().enumerate() {
            read(message, &RawPlace::element("/conversation", i), &mut steps, &mut tally);
        }
        session_id = field::text(row.value, "id").or(session_id.take());
        let count = |key| field::get(row.value, key).and_then(field::count);
        tokens = count("accumulated_input_tokens").zip(count("accumulated_output_tokens")).or(tokens);
        tally.skip("metadata");
    });
    diagnostics.extend(tally.finish());
    let mut out = of_file(input, "goose", steps);
    out.session = session_id;
    out.usage.tokens_in = tokens.map(|t| t.0);
    out.usage.tokens_out = tokens.map(|t| t.1);
    Decoded { trajectories: vec![out], diagnostics, ..Decoded::default() }
}

fn read(message: &Value, raw: &RawPlace, steps: &mut Vec<Step>, tally: &mut session::Tally) {
    let parts = field::list(message, "content");
    let known = ["toolRequest", "toolResponse", "thinking", "redactedThinking", "systemNotification"];
    let plain: Vec<Value> =
        parts.iter().filter(|p| !field::str(p, "type").is_some_and(|t| known.contains(&t))).cloned().collect();
    let text = session::text_of(&Value::Array(plain));
    let from = steps.len();
    if chat::role_of(message) == Role::Assistant {
        let thoughts: Vec<&str> = parts.iter().filter_map(|p| field::str(p, "thinking")).collect();
        let calls = parts.iter().filter(|p| field::str(p, "type") == Some("toolRequest")).map(|p| {
            let value = field::at(p, &["toolCall", "value"]).or_else(|| field::get(p, "toolCall"));
            ToolCall {
                id: field::text(p, "id").unwrap_or_default(),
                name: value.and_then(|v| field::text(v, "name")).unwrap_or_default(),
                arguments: value.and_then(|v| field::get(v, "arguments")).map(field::json_text).unwrap_or_default(),
            }
        });
        steps.push(session::answer(text, Some(thoughts.join("\n")), calls.collect()));
    } else {
        let results = parts.iter().filter(|p| field::str(p, "type") == Some("toolResponse"));
        steps.extend(results.map(response));
        if !text.is_empty() || steps.len() == from {
            steps.push(Step::new(Role::User, text));
        }
    }
    for part in parts.iter().filter(|p| field::str(p, "type") == Some("systemNotification")) {
        tally.skip("systemNotification");
        steps.push(session::note("goose", &field::text(part, "msg").unwrap_or_default()));
    }
    let time = field::get(message, "created").and_then(session::time_of);
    for step in steps.iter_mut().skip(from) {
        step.raw = raw.clone();
        step.timestamp = time.clone();
        step.id = field::text(message, "id").map(Into::into);
    }
}

fn response(part: &Value) -> Step {
    let result = field::get(part, "toolResult").unwrap_or(&Value::Null);
    let failed = field::str(result, "status").map(|s| s != "success");
    let body = field::get(result, "value").or_else(|| field::get(result, "error")).unwrap_or(&Value::Null);
    let inner = field::get(body, "content").unwrap_or(body);
    let is_error = field::get(body, "isError").and_then(field::truth).filter(|e| *e).or(failed);
    let text = session::text_of(inner);
    session::result(field::text(part, "id"), text, is_error)
}
